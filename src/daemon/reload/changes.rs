//! What differs between two configurations, and what of it can hold at once. Pure.
//!
//! Keys are compared as the file has them, so a key that is added to the config is compared without a word here: it
//! needs a restart until it stands in [`LIVE`].

use std::fmt;

use toml::{Table, Value};

use crate::config::{Config, ConfigError};

/// The keys that change while the robot lives, and from when on. A key stands here only when a part takes it over.
/// Keys that are checked against each other are either all here or none of them.
pub const LIVE: [(&str, &str, &str); 15] = [
    ("think", "url", NEXT_TURN),
    ("think", "model", NEXT_TURN),
    ("think", "key_file", NEXT_TURN),
    ("think", "answer_tokens", NEXT_TURN),
    ("think", "connect_timeout_s", NEXT_TURN),
    ("think", "first_token_timeout_s", NEXT_TURN),
    ("think", "cold_token_timeout_s", NEXT_TURN),
    ("think", "next_token_timeout_s", NEXT_TURN),
    ("think", "turn_timeout_s", NEXT_TURN),
    ("think", "retry_after_s", NEXT_TURN),
    ("act", "voice", NEXT_SENTENCE),
    ("act", "voice_name", NEXT_SENTENCE),
    ("act", "words_per_minute", NEXT_SENTENCE),
    ("act", "gestures", "at once"),
    ("privacy", "log_words", "at once"),
];

const NEXT_TURN: &str = "from the next answer on";
const NEXT_SENTENCE: &str = "from the next sentence on";
/// The longest value that is repeated, in characters.
const LONGEST_VALUE: usize = 60;

/// One key with another value. `None` is a key that is not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub section: String,
    pub key: String,
    /// As the file would have it; long values are cut, and an address is without the name and password in it.
    pub before: Option<String>,
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unset = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
        write!(f, "[{}] {}: {} → {}", self.section, self.key, or_unset(&self.before), or_unset(&self.after))?;
        match from_when(&self.section, &self.key) {
            Some(when) => write!(f, " ({when})"),
            None => Ok(()),
        }
    }
}

/// Everything that differs, by section and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub live: Vec<Change>,
    pub needs_restart: Vec<Change>,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
        match (self.live.is_empty(), self.needs_restart.is_empty()) {
            (true, true) => f.write_str("Nothing in it is new."),
            (false, true) => write!(f, "Changed: {}.", list(&self.live)),
            (true, false) => write!(f, "These need a restart: {}.", list(&self.needs_restart)),
            (false, false) => {
                write!(f, "Changed: {}. These need a restart: {}.", list(&self.live), list(&self.needs_restart))
            }
        }
    }
}

/// From when on a key holds once it is edited; `None`: after a restart.
fn from_when(section: &str, key: &str) -> Option<&'static str> {
    LIVE.iter().find(|(of, name, _)| *of == section && *name == key).map(|(_, _, when)| *when)
}

/// What is different in `new`.
///
/// # Errors
/// [`ConfigError::Unprintable`] when a path is not UTF-8.
pub fn compare(old: &Config, new: &Config) -> Result<Changes, ConfigError> {
    let (old, new) = (table(old)?, table(new)?);
    let mut changes = Changes::default();
    for (section, keys) in &new {
        let none = Table::new();
        let before = old.get(section).and_then(Value::as_table).unwrap_or(&none);
        let after = keys.as_table().unwrap_or(&none);
        let gone = before.keys().filter(|key| !after.contains_key(*key));
        for key in after.keys().chain(gone) {
            let (was, is) = (before.get(key), after.get(key));
            if was == is {
                continue;
            }
            let change =
                Change { section: section.clone(), key: key.clone(), before: was.map(written), after: is.map(written) };
            let live = from_when(section, key).is_some();
            if live { changes.live.push(change) } else { changes.needs_restart.push(change) }
        }
    }
    Ok(changes)
}

/// `running` with the live keys of `new`: what holds once they are taken over.
///
/// # Errors
/// [`ConfigError::Unprintable`] when a path is not UTF-8.
pub fn taken_over(running: &Config, new: &Config) -> Result<Config, ConfigError> {
    let (mut next, new) = (table(running)?, table(new)?);
    for (section, key, _) in LIVE {
        let Some(keys) = next.get_mut(section).and_then(Value::as_table_mut) else {
            continue;
        };
        match new.get(section).and_then(Value::as_table).and_then(|keys| keys.get(key)) {
            Some(value) => drop(keys.insert(key.to_owned(), value.clone())),
            None => drop(keys.remove(key)),
        }
    }
    next.try_into().map_err(|error: toml::de::Error| ConfigError::Unprintable { why: error.to_string() })
}

fn table(config: &Config) -> Result<Table, ConfigError> {
    Table::try_from(config).map_err(|error| ConfigError::Unprintable { why: error.to_string() })
}

/// A value as a person wrote it.
fn written(value: &Value) -> String {
    let text = match value {
        // The config's numbers are single precision; their double has digits that nobody wrote.
        Value::Float(number) => (*number as f32).to_string(),
        Value::String(text) => format!("{:?}", without_password(text)),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(&text)),
        None => text,
    }
}

/// An address without the name and password that may stand in it.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}{path}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(text, Path::new("test")).unwrap()
    }

    #[test]
    fn what_is_live_and_what_needs_a_restart_is_told_apart_in_words_for_people() {
        let new = config(
            "[act]\nwords_per_minute = 180\n[limits]\nwhisper_threads = 2\n[see]\nframe_gate = 0.7\n[listen]\nspeech_on = 0.6\n",
        );
        let changes = compare(&Config::default(), &new).unwrap();
        let words = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>();
        assert_eq!(words(&changes.live), ["[act] words_per_minute: 160 → 180 (from the next sentence on)"]);
        assert_eq!(
            words(&changes.needs_restart),
            ["[limits] whisper_threads: 3 → 2", "[listen] speech_on: 0.5 → 0.6", "[see] frame_gate: unset → 0.7"]
        );
        let back = compare(&new, &Config::default()).unwrap();
        assert!(words(&back.needs_restart).contains(&"[see] frame_gate: 0.7 → unset".into()), "{back}");
        assert_eq!(compare(&new, &new).unwrap(), Changes::default());
    }

    #[test]
    fn only_live_keys_are_taken_over() {
        let new = config("[act]\nwords_per_minute = 180\ngestures = false\n[limits]\nwhisper_threads = 2\n");
        let next = taken_over(&Config::default(), &new).unwrap();
        assert_eq!((next.act.words_per_minute, next.act.gestures), (180, false));
        assert_eq!(next.limits, Config::default().limits);
        // What was taken over is no news; what was not is.
        let rest = compare(&next, &new).unwrap();
        assert!(rest.live.is_empty() && rest.needs_restart.len() == 1, "{rest}");
    }

    #[test]
    fn every_live_key_is_a_key_of_the_config() {
        let all = table(&Config::default()).unwrap();
        for (section, key, _) in LIVE {
            assert!(all[section].get(key).is_some(), "[{section}] {key}");
        }
    }

    #[test]
    fn a_mixture_of_running_and_new_keys_is_always_a_config_that_would_be_accepted() {
        // Each pair of keys that is checked against each other, moved together past the defaults.
        for text in [
            "[think]\nfirst_token_timeout_s = 500\ncold_token_timeout_s = 600\nturn_timeout_s = 700\n",
            "[listen]\nspeech_on = 0.2\nspeech_off = 0.1\n",
            "[see]\nframes_per_second_changing = 0.1\nseconds_between_quiet = 10.0\n",
        ] {
            let next = taken_over(&Config::default(), &config(text)).unwrap();
            let accepted = Config::from_toml(&next.to_toml().unwrap(), Path::new("mixture"));
            assert_eq!(accepted.unwrap(), next, "{text}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated_and_a_long_value_is_cut() {
        assert_eq!(without_password("http://me:secret@laptop.local:8080/v1"), "http://…@laptop.local:8080/v1");
        assert_eq!(without_password("http://laptop.local/a@b"), "http://laptop.local/a@b");
        assert_eq!(without_password("gemma"), "gemma");
        assert_eq!(written(&Value::String("ü".repeat(500))).chars().count(), LONGEST_VALUE + 1);
    }
}
