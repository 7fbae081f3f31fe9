//! The config as an owner meets it: as a file on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use reachy_remembers::config::{Config, ConfigError, VoiceKind};

fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// A config file with this content in a folder of its own.
fn house(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn refused(content: impl AsRef<[u8]>) -> (usize, String) {
    let (_folder, path) = house(content);
    match Config::load(Some(&path)).unwrap_err() {
        ConfigError::Refused { path: named, line, why } => {
            assert_eq!(named, path);
            (line, why)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn no_file_means_the_defaults() {
    assert_eq!(Config::load(None).unwrap(), Config::default());
}

#[test]
fn an_empty_file_means_the_defaults_in_its_folder() {
    let (folder, path) = house("");
    let config = Config::load(Some(&path)).unwrap();
    let mut expected = Config::default();
    expected.remember.folder = folder.path().join("shards");
    expected.knowledge.snapshot = folder.path().join("shards/knowledge.snapshot");
    expected.models.folder = folder.path().join("models/cache");
    assert_eq!(config, expected);
}

#[test]
fn the_projects_config_shows_every_key_at_its_default() {
    let text = fs::read_to_string(project("config.toml")).unwrap();
    assert_eq!(Config::from_toml(&text, Path::new("config.toml")).unwrap(), Config::default());
    let shown: toml::Table = text.parse().unwrap();
    let all: toml::Table = Config::default().to_toml().unwrap().parse().unwrap();
    for (section, body) in &all {
        for key in body.as_table().unwrap().keys() {
            assert!(shown.get(section).and_then(|shown| shown.get(key)).is_some(), "[{section}] {key} is not shown");
        }
    }
    for unset in ["exchange_gate", "near_duplicate", "frame_gate", "fact_gate"] {
        assert!(text.contains(&format!("# {unset} = ")), "{unset}, which is unset by default, is shown in a comment");
    }
    for (number, line) in text.lines().enumerate() {
        assert!(line.chars().count() <= 120, "line {} is too long to read in a terminal", number + 1);
    }
}

#[test]
fn a_minimal_file_changes_only_what_it_says() {
    let (_folder, path) = house("[think]\nurl = \"http://laptop.local:8080/v1\"\n");
    let config = Config::load(Some(&path)).unwrap();
    assert_eq!(config.think.url, "http://laptop.local:8080/v1");
    assert_eq!(config.think.window_tokens, Config::default().think.window_tokens);
    assert_eq!(config.listen, Config::default().listen);
}

#[test]
fn a_full_file_sets_everything() {
    let (folder, path) = house(
        r#"
[robot]
body = "sim"
day = "days/monday.toml"
venv = "/opt/reachy/venv"
host = "reachy-mini.local"
port = 8001
volume = 70
time_zone = "Europe/Berlin"
[listen]
enabled = false
language = "de"
speech_on = 0.6
speech_off = 0.4
min_speech_ms = 150
pre_roll_ms = 250
end_silence_ms = 700
max_utterance_s = 20
echo_wait_ms = 400
barge_in = true
min_log_probability = -1
max_no_speech = 0.5
deaf_after_s = 30
[see]
enabled = false
backend = "rten"
onnx_runtime = "lib/libonnxruntime.so"
frames_per_second_changing = 1
seconds_between_quiet = 10
faces = false
faces_per_second = 2
stable_for_s = 1.5
forget_after_s = 3
near_duplicate = 0.95
frame_gate = 0.7
[remember]
folder = "/var/lib/reachy-remembers"
flush_every_s = 10
limit = 3
exchange_gate = 0.7
min_free_mb = 500
[people]
visit_ends_after_min = 5
greet = false
ask_names = false
[knowledge]
enabled = false
facts = "facts.toml"
snapshot = "facts.snapshot"
source = "https://qdrant.local:6333"
collection = "facts"
shard = 2
api_key_file = "qdrant-key"
pull_every_h = 6
fact_gate = 0.7
[think]
url = "https://laptop:8080/v1"
model = "other"
key_file = "key"
window_tokens = 2000
window_exchanges = 20
answer_tokens = 200
connect_timeout_s = 3
first_token_timeout_s = 10
cold_token_timeout_s = 90
next_token_timeout_s = 6
turn_timeout_s = 100
retry_after_s = 20
[act]
voice = "none"
voice_name = "de"
words_per_minute = 140
gestures = false
[models]
folder = "weights"
mirror = "mirror"
text = "bge-small"
speech = "base"
voice_activity = "silero"
detector = "yolox"
face_detector = "yunet"
face = "sface"
image = "siglip"
[privacy]
log_words = true
[limits]
whisper_threads = 2
embed_threads = 1
search_threads = 2
see_threads = 2
"#,
    );
    fs::write(folder.path().join("key"), "secret\n").unwrap();
    let config = Config::load(Some(&path)).unwrap();
    // No key may be left at its default, or this file would not be full.
    let (set, default): (toml::Table, toml::Table) =
        (config.to_toml().unwrap().parse().unwrap(), Config::default().to_toml().unwrap().parse().unwrap());
    for (section, body) in &default {
        for (key, value) in body.as_table().unwrap() {
            if (section.as_str(), key.as_str()) != ("robot", "body") {
                assert_ne!(&set[section][key], value, "[{section}] {key}");
            }
        }
    }
    assert_eq!(config.act.voice, VoiceKind::None);
    assert_eq!(config.listen.min_log_probability, -1.0);
    assert_eq!(config.remember.exchange_gate, Some(0.7));
    assert_eq!(config.see.near_duplicate, Some(0.95));
    assert_eq!(config.knowledge.facts, folder.path().join("facts.toml"));
    assert_eq!(config.knowledge.api_key_file, folder.path().join("qdrant-key"));
    assert_eq!(config.see.onnx_runtime, folder.path().join("lib/libonnxruntime.so"));
    assert_eq!(config.robot.day, folder.path().join("days/monday.toml"));
    assert_eq!(config.remember.folder, Path::new("/var/lib/reachy-remembers"), "absolute paths stay");
    assert_eq!(config.models.mirror, folder.path().join("mirror").display().to_string());
    // What is printed can be read again.
    assert_eq!(Config::from_toml(&config.to_toml().unwrap(), Path::new("again")).unwrap(), config);
}

#[test]
fn an_address_as_mirror_is_not_taken_for_a_folder() {
    let (_folder, path) = house("[models]\nmirror = \"http://nas.local/weights\"\n");
    assert_eq!(Config::load(Some(&path)).unwrap().models.mirror, "http://nas.local/weights");
}

#[test]
fn the_sentence_names_file_line_and_the_key_that_was_meant() {
    let (_folder, path) = house("# mine\n[act]\nword_per_minute = 120\n");
    let sentence = Config::load(Some(&path)).unwrap_err().to_string();
    assert!(sentence.starts_with(&format!("{}:3: ", path.display())), "{sentence}");
    assert!(sentence.contains("did you mean `words_per_minute`?"), "{sentence}");
}

#[test]
fn a_key_file_that_is_missing_or_empty_is_refused_on_its_line() {
    let (line, why) = refused("[think]\nmodel = \"a\"\nkey_file = \"nowhere\"\n");
    assert_eq!(line, 3);
    assert!(why.contains("nowhere") && why.contains("cannot be read"), "{why}");
    let (folder, path) = house("[think]\nkey_file = \"key\"\n");
    fs::write(folder.path().join("key"), "\n").unwrap();
    assert!(Config::load(Some(&path)).unwrap_err().to_string().contains("is empty"));
}

#[test]
fn what_is_no_config_file_is_refused_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [(folder.path().join("none.toml"), "cannot be read"), (folder.path().to_owned(), "is a folder")];
    for (path, says) in cases {
        let error = Config::load(Some(&path)).unwrap_err();
        assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let (_folder, path) = house("# ".repeat(600_000));
    let error = Config::load(Some(&path)).unwrap_err().to_string();
    assert!(error.contains("larger than 1000000 bytes"), "{error}");
    assert!(Config::load(Some(Path::new("/dev/zero"))).unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let (line, why) = refused(b"[robot]\n# caf\xe9\n");
    assert_eq!(line, 2);
    assert!(why.contains("byte 14") && why.contains("UTF-8"), "{why}");
    let (line, why) = refused(b"\xEF\xBB\xBF[robot]\n");
    assert_eq!(line, 1);
    assert!(why.contains("byte-order mark"), "{why}");
}

#[test]
fn the_demos_config_loads_and_points_into_the_project() {
    let config = Config::load(Some(&project("demo/config.toml"))).unwrap();
    assert_eq!(config.robot.day, project("demo/day.toml"));
    assert_eq!(config.think.window_tokens, 120);
    assert!(config.robot.day.is_file());
}
