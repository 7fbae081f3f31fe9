//! What each key of the config may be.
//!
//! One table says it for every key; unknown keys, wrong types and values out of range are all found by walking the
//! file's own tree against the table, so that every refusal has the line of the key and says what is allowed. Pure:
//! nothing here opens a file.

use std::ops::Range;

use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::file::{closest, line_of};

/// What a key may be.
#[derive(Clone, Copy, Debug)]
enum Allowed {
    Flag,
    /// A whole number from, to (both allowed), and its unit.
    Whole(i64, i64, &'static str),
    /// A number from, to (both allowed).
    Number(f64, f64),
    /// Text of at least this many characters, and what it is.
    Text(usize, &'static str),
    OneOf(&'static [&'static str]),
    Language,
    Zone,
    Address,
}

use Allowed::{Address, Flag, Language, Number, OneOf, Text, Whole, Zone};

/// Every key, section by section in the order of the file. The ranges are wide: they keep out what cannot work or
/// what was meant in another unit, and leave the rest to the owner.
const SECTIONS: [(&str, &[(&str, Allowed)]); 11] = [
    (
        "robot",
        &[
            ("body", OneOf(&["sim", "sdk"])),
            ("day", Text(0, "the path of a file")),
            ("venv", Text(1, "the path of a folder")),
            ("host", Text(1, "the name of a machine")),
            ("port", Whole(1, 65_535, "as ports go")),
            ("volume", Whole(0, 100, "percent")),
            ("time_zone", Zone),
        ],
    ),
    (
        "listen",
        &[
            ("enabled", Flag),
            ("language", Language),
            ("speech_on", Number(0.01, 0.99)),
            ("speech_off", Number(0.01, 0.99)),
            // One voice-activity frame is 32 ms.
            ("min_speech_ms", Whole(32, 2_000, "milliseconds")),
            ("pre_roll_ms", Whole(0, 2_000, "milliseconds")),
            ("end_silence_ms", Whole(100, 5_000, "milliseconds")),
            // Whisper's own window is 30 s, and the pre-roll comes on top.
            ("max_utterance_s", Whole(2, 28, "seconds")),
            ("echo_wait_ms", Whole(0, 5_000, "milliseconds")),
            ("barge_in", Flag),
            ("min_log_probability", Number(-10.0, 0.0)),
            ("max_no_speech", Number(0.0, 1.0)),
            ("deaf_after_s", Whole(5, 3_600, "seconds")),
        ],
    ),
    (
        "see",
        &[
            ("enabled", Flag),
            ("backend", OneOf(&["auto", "onnxruntime", "rten"])),
            ("onnx_runtime", Text(0, "the path of a library")),
            // A camera gives 30 a second, and no robot detects objects in all of them.
            ("frames_per_second_changing", Number(0.1, 30.0)),
            ("seconds_between_quiet", Number(0.1, 3_600.0)),
            ("faces", Flag),
            ("faces_per_second", Number(0.1, 30.0)),
            ("stable_for_s", Number(0.0, 60.0)),
            ("forget_after_s", Number(0.1, 600.0)),
            ("near_duplicate", Number(0.0, 1.0)),
            ("frame_gate", Number(0.0, 1.0)),
        ],
    ),
    (
        "remember",
        &[
            ("folder", Text(1, "the path of a folder")),
            ("flush_every_s", Whole(1, 300, "seconds")),
            ("limit", Whole(1, 20, "memories")),
            ("exchange_gate", Number(0.0, 1.0)),
            ("min_free_mb", Whole(10, 1_000_000, "megabytes")),
        ],
    ),
    ("people", &[("visit_ends_after_min", Whole(1, 1_440, "minutes")), ("greet", Flag), ("ask_names", Flag)]),
    (
        "knowledge",
        &[
            ("enabled", Flag),
            ("facts", Text(0, "the path of a file")),
            ("snapshot", Text(0, "the path of a file")),
            ("source", Address),
            ("collection", Text(1, "the name of a collection")),
            ("shard", Whole(0, 100_000, "as a shard's number")),
            ("api_key_file", Text(0, "the path of a file")),
            // A month; facts that change more seldom are pulled by hand.
            ("pull_every_h", Whole(0, 720, "hours")),
            ("fact_gate", Number(0.0, 1.0)),
        ],
    ),
    (
        "think",
        &[
            ("url", Address),
            ("model", Text(1, "the name of a model")),
            ("key_file", Text(0, "the path of a file")),
            ("window_tokens", Whole(50, 131_072, "tokens")),
            // The window gives up its older half, which one exchange does not have.
            ("window_exchanges", Whole(2, 1_000, "exchanges")),
            ("answer_tokens", Whole(16, 4_096, "tokens")),
            ("connect_timeout_s", Whole(1, 60, "seconds")),
            ("first_token_timeout_s", Whole(1, 600, "seconds")),
            ("cold_token_timeout_s", Whole(1, 3_600, "seconds")),
            ("next_token_timeout_s", Whole(1, 600, "seconds")),
            ("turn_timeout_s", Whole(1, 3_600, "seconds")),
            ("retry_after_s", Whole(1, 3_600, "seconds")),
        ],
    ),
    (
        "act",
        &[
            ("voice", OneOf(&["espeak-ng", "none"])),
            ("voice_name", Text(1, "the name of a voice")),
            // espeak-ng speaks no slower than 80 and sounds like a rattle over 450.
            ("words_per_minute", Whole(80, 450, "words a minute")),
            ("gestures", Flag),
        ],
    ),
    (
        "models",
        &[
            ("folder", Text(1, "the path of a folder")),
            ("mirror", Text(0, "a folder or an address")),
            ("text", Text(1, "the name of a model, or \"auto\"")),
            ("speech", Text(1, "the name of a model, or \"auto\"")),
            ("voice_activity", Text(1, "the name of a model, or \"auto\"")),
            ("detector", Text(1, "the name of a model, or \"auto\"")),
            ("face_detector", Text(1, "the name of a model, or \"auto\"")),
            ("face", Text(1, "the name of a model, or \"auto\"")),
            ("image", Text(1, "the name of a model, or \"auto\"")),
        ],
    ),
    ("privacy", &[("log_words", Flag)]),
    (
        "limits",
        &[
            ("whisper_threads", Whole(1, 64, "threads")),
            ("embed_threads", Whole(1, 64, "threads")),
            ("search_threads", Whole(1, 64, "threads")),
            ("see_threads", Whole(1, 64, "threads")),
        ],
    ),
];

/// A key, a line, and what is wrong there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) line: usize,
    pub(super) why: String,
}

/// The config that `text` describes, its paths as written.
pub(super) fn parse(text: &str) -> Result<Config, Refusal> {
    let of_toml = |error: toml::de::Error| Refusal {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    };
    let tree = DeTable::parse(text).map_err(of_toml)?;
    check_keys(text, tree.get_ref())?;
    let config: Config = toml::from_str(text).map_err(of_toml)?;
    check_pairs(&config, |section, key| line_of_key(text, tree.get_ref(), section, key))?;
    Ok(config)
}

/// The line of a key; of its section where the key is not written; 1 where neither is.
pub(super) fn line_of_key_in(text: &str, section: &str, key: &str) -> usize {
    DeTable::parse(text).map_or(1, |tree| line_of_key(text, tree.get_ref(), section, key))
}

fn line_of_key(text: &str, tree: &DeTable<'_>, section: &str, key: &str) -> usize {
    let Some((name, body)) = tree.get_key_value(section) else {
        return 1;
    };
    let span = body
        .get_ref()
        .as_table()
        .and_then(|table| table.get_key_value(key))
        .map_or_else(|| name.span(), |(written, _)| written.span());
    line_of(text, span.start)
}

fn check_keys(text: &str, tree: &DeTable<'_>) -> Result<(), Refusal> {
    for (name, body) in tree {
        let refuse = |why: String| Err(Refusal { line: line_of(text, name.span().start), why });
        let Some((section, keys)) = SECTIONS.iter().find(|(section, _)| *section == name.get_ref().as_ref()) else {
            return refuse(unknown_section(name.get_ref()));
        };
        let Some(table) = body.get_ref().as_table() else {
            return refuse(format!("`{section}` is a section: write [{section}] on a line of its own, its keys below"));
        };
        for (key, value) in table {
            check_key(text, section, keys, key, value)?;
        }
    }
    Ok(())
}

fn check_key(
    text: &str,
    section: &str,
    keys: &[(&str, Allowed)],
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), Refusal> {
    let refuse = |why| Refusal { line: line_of(text, key.span().start), why };
    let written = key.get_ref().as_ref();
    let Some((_, allowed)) = keys.iter().find(|(known, _)| *known == written) else {
        return Err(refuse(unknown_key(section, keys, written)));
    };
    allowed.check(value.get_ref()).map_err(|what| {
        let found = short(text, value.span());
        refuse(format!("[{section}] {written} must be {what}, and is {found}"))
    })
}

fn unknown_section(written: &str) -> String {
    let names = || SECTIONS.iter().map(|(section, _)| *section);
    let all = names().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ");
    if let Some((section, _)) = SECTIONS.iter().find(|(_, keys)| keys.iter().any(|(key, _)| *key == written)) {
        return format!("`{written}` stands outside a section; it belongs under [{section}]");
    }
    let meant = closest(written, names()).map_or(String::new(), |name| format!("did you mean [{name}]? "));
    format!("there is no section [{written}]; {meant}The sections are {all}")
}

fn unknown_key(section: &str, keys: &[(&str, Allowed)], written: &str) -> String {
    let names = || keys.iter().map(|(key, _)| *key);
    let all = names().collect::<Vec<_>>().join(", ");
    let meant = match closest(written, names()) {
        Some(name) => format!("did you mean `{name}`? "),
        None => SECTIONS
            .iter()
            .find(|(_, keys)| keys.iter().any(|(key, _)| *key == written))
            .map_or(String::new(), |(home, _)| format!("`{written}` belongs under [{home}]. ")),
    };
    format!("[{section}] has no key `{written}`; {meant}Its keys are {all}")
}

/// The value as it is written, one line and not more than about 60 characters of it.
fn short(text: &str, span: Range<usize>) -> String {
    let written = text.get(span).unwrap_or("something else").lines().next().unwrap_or("nothing");
    match written.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", written.get(..end).unwrap_or(written)),
        None => written.to_owned(),
    }
}

impl Allowed {
    /// What is allowed, as the error says it.
    fn check(self, value: &DeValue<'_>) -> Result<(), String> {
        let fits = match self {
            Flag => value.as_bool().is_some(),
            Whole(from, to, _) => whole(value).is_some_and(|number| (from..=to).contains(&number)),
            Number(from, to) => number(value).is_some_and(|number| (from..=to).contains(&number)),
            Text(least, _) => value.as_str().is_some_and(|text| is_plain(text) && text.trim().chars().count() >= least),
            OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
            Language => value.as_str().is_some_and(is_language),
            Zone => value.as_str().is_some_and(|name| name.is_empty() || TimeZone::get(name).is_ok()),
            Address => value.as_str().is_some_and(is_address),
        };
        if fits { Ok(()) } else { Err(self.describe()) }
    }

    fn describe(self) -> String {
        match self {
            Flag => "true or false".into(),
            Whole(from, to, unit) => format!("a whole number of {unit} from {from} to {to}"),
            Number(from, to) => format!("a number from {from} to {to}"),
            Text(0, what) => format!("{what} in quotes (\"\" for none)"),
            Text(_, what) => format!("{what} in quotes, not empty"),
            OneOf(names) => names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" or "),
            Language => "the two or three small letters of a language, as in \"en\"".into(),
            Zone => "a time zone that this machine knows, as in \"Europe/Berlin\" (\"\" for the machine's own)".into(),
            Address => "an address that begins with http:// or https://, or \"\" for none".into(),
        }
    }
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    let written = value.as_integer()?;
    i64::from_str_radix(written.as_str(), written.radix()).ok()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(written) => written.as_str().parse().ok(),
        None => whole(value).map(|number| number as f64),
    }
}

/// No control characters: a path or a name with a line break in it is a slip of the pen, and NUL cannot be opened.
fn is_plain(text: &str) -> bool {
    text.chars().count() <= 1_000 && !text.chars().any(char::is_control)
}

fn is_language(text: &str) -> bool {
    (2..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_address(text: &str) -> bool {
    let host_of = |rest: &str| rest.split('/').next().is_some_and(|host| !host.is_empty());
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    text.is_empty() || (rest.is_some_and(host_of) && !text.chars().any(|c| c.is_whitespace() || c.is_control()))
}

/// Rules between two keys. `line` finds the line of a section's key.
fn check_pairs(config: &Config, line: impl Fn(&str, &str) -> usize) -> Result<(), Refusal> {
    let refuse = |section: &str, key: &str, why: String| Err(Refusal { line: line(section, key), why });
    let listen = &config.listen;
    if listen.speech_off >= listen.speech_on {
        return refuse(
            "listen",
            "speech_off",
            format!(
                "[listen] speech_off ({}) must be less than speech_on ({}): speech goes on more easily than it starts",
                listen.speech_off, listen.speech_on
            ),
        );
    }
    let see = &config.see;
    let (most_often, quiet) = (1.0 / see.frames_per_second_changing, see.seconds_between_quiet);
    if quiet < most_often {
        return refuse(
            "see",
            "seconds_between_quiet",
            format!(
                "[see] seconds_between_quiet ({quiet}) must be at least 1 / frames_per_second_changing \
                 ({most_often:.2}): the robot looks no oftener when nothing changes than when something does"
            ),
        );
    }
    let think = &config.think;
    if think.cold_token_timeout_s < think.first_token_timeout_s {
        return refuse(
            "think",
            "cold_token_timeout_s",
            format!(
                "[think] cold_token_timeout_s ({}) must be at least first_token_timeout_s ({}): a model that has to \
                 load first is never faster",
                think.cold_token_timeout_s, think.first_token_timeout_s
            ),
        );
    }
    if think.turn_timeout_s < think.first_token_timeout_s {
        return refuse(
            "think",
            "turn_timeout_s",
            format!(
                "[think] turn_timeout_s ({}) must be at least first_token_timeout_s ({}): the first token is part of \
                 the turn",
                think.turn_timeout_s, think.first_token_timeout_s
            ),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> Refusal {
        parse(text).unwrap_err()
    }

    /// The keys that a config may leave out even when it is written in full.
    const UNSET: [(&str, &str); 5] = [
        ("robot", "volume"),
        ("remember", "exchange_gate"),
        ("see", "near_duplicate"),
        ("see", "frame_gate"),
        ("knowledge", "fact_gate"),
    ];

    #[test]
    fn the_table_has_every_key_of_the_config_and_no_other() {
        let written = toml::Table::try_from(Config::default()).unwrap();
        let of_config: Vec<(String, String)> = written
            .iter()
            .flat_map(|(section, body)| {
                let keys: Vec<_> = body.as_table().unwrap().keys().cloned().collect();
                keys.into_iter().map(|key| (section.clone(), key))
            })
            .chain(UNSET.map(|(section, key)| (section.to_owned(), key.to_owned())))
            .collect();
        let of_table: Vec<(String, String)> = SECTIONS
            .iter()
            .flat_map(|(section, keys)| keys.iter().map(|(key, _)| ((*section).to_owned(), (*key).to_owned())))
            .collect();
        for key in &of_config {
            assert!(of_table.contains(key), "the table lacks {key:?}");
        }
        for key in &of_table {
            assert!(of_config.contains(key), "the config lacks {key:?}");
        }
    }

    #[test]
    fn an_unknown_key_names_its_line_the_closest_key_and_all_keys() {
        let refusal = refusal("[listen]\nenabled = true\nspeach_on = 0.4\n");
        assert_eq!(refusal.line, 3);
        assert!(refusal.why.contains("did you mean `speech_on`?"), "{}", refusal.why);
        assert!(refusal.why.contains("deaf_after_s"), "{}", refusal.why);
    }

    #[test]
    fn a_key_of_another_section_is_sent_home() {
        assert!(refusal("[listen]\nwindow_tokens = 500\n").why.contains("belongs under [think]"));
        let outside = refusal("url = \"http://laptop:8080/v1\"\n");
        assert!(outside.why.contains("belongs under [think]"), "{}", outside.why);
    }

    #[test]
    fn an_unknown_section_names_the_closest_one() {
        let refusal = refusal("[robot]\n\n[thinking]\nurl = \"\"\n");
        assert_eq!(refusal.line, 3);
        assert!(refusal.why.contains("did you mean [think]?"), "{}", refusal.why);
    }

    #[test]
    fn each_wrong_value_is_refused_on_its_line_with_what_is_allowed() {
        let cases = [
            ("[listen]\nenabled = \"yes\"", "true or false"),
            ("[listen]\nlanguage = \"English\"", "two or three small letters"),
            ("[listen]\nspeech_on = 1.5", "a number from 0.01 to 0.99"),
            ("[listen]\nspeech_on = nan", "a number from 0.01 to 0.99"),
            ("[listen]\nmin_speech_ms = -5", "milliseconds from 32 to 2000"),
            ("[listen]\nmax_utterance_s = 15.5", "a whole number of seconds"),
            ("[listen]\nmax_utterance_s = 99999999999999999999", "a whole number of seconds"),
            ("[see]\nbackend = \"tract\"", "\"auto\" or \"onnxruntime\" or \"rten\""),
            ("[see]\nframes_per_second_changing = 0", "a number from 0.1 to 30"),
            ("[see]\nonnx_runtime = true", "the path of a library"),
            ("[see]\nnear_duplicate = 1.1", "a number from 0 to 1"),
            ("[models]\ndetector = \"\"", "not empty"),
            ("[robot]\ntime_zone = \"Mars/Base\"", "time zone that this machine knows"),
            ("[robot]\nbody = \"android\"", "\"sim\""),
            ("[think]\nurl = \"laptop:8080\"", "http:// or https://"),
            ("[think]\nurl = \"http:///v1\"", "http:// or https://"),
            ("[think]\nurl = \"http://a b/v1\"", "http:// or https://"),
            ("[think]\nmodel = \" \"", "not empty"),
            ("[remember]\nfolder = \"\"", "not empty"),
            ("[remember]\nfolder = \"a\\u0000b\"", "not empty"),
            ("[limits]\nwhisper_threads = 0", "threads from 1 to 64"),
            ("[act]\nvoice = \"piper\"", "\"espeak-ng\" or \"none\""),
        ];
        for (text, allowed) in cases {
            let refusal = refusal(text);
            assert_eq!(refusal.line, 2, "{text}: {}", refusal.why);
            assert!(refusal.why.contains(allowed), "{text}: {}", refusal.why);
        }
    }

    #[test]
    fn pairs_that_contradict_each_other_are_refused() {
        let off = refusal("[listen]\nspeech_on = 0.5\nspeech_off = 0.5\n");
        assert_eq!(off.line, 3);
        assert!(off.why.contains("less than speech_on"), "{}", off.why);
        // The key that is not written has no line: the section's is given.
        assert_eq!(refusal("\n[listen]\nspeech_on = 0.3\n").line, 2);
        assert_eq!(refusal("[think]\nturn_timeout_s = 3\n").line, 2);
        let quiet = refusal("[see]\nframes_per_second_changing = 0.5\nseconds_between_quiet = 1\n");
        assert_eq!(quiet.line, 3);
        assert!(quiet.why.contains("at least 1 / frames_per_second_changing (2.00)"), "{}", quiet.why);
        assert_eq!(refusal("[think]\nfirst_token_timeout_s = 20\ncold_token_timeout_s = 10\n").line, 3);
    }

    #[test]
    fn a_section_that_is_a_value_and_a_broken_line_are_refused() {
        assert!(refusal("think = 3").why.contains("is a section"));
        assert_eq!(refusal("[think]\nurl = \n").line, 2);
        assert_eq!(refusal("[think]\nmodel = \"a\"\nmodel = \"b\"\n").line, 3);
    }

    #[test]
    fn a_very_long_value_is_not_repeated_in_full() {
        let refusal = refusal(&format!("[listen]\nlanguage = \"{}\"\n", "ü".repeat(5_000)));
        assert!(refusal.why.len() < 400, "{}", refusal.why.len());
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_answered(text in "[\\[\\]a-z_=\"0-9.\n ]{0,80}") {
            let _ = parse(&text);
        }
    }
}
