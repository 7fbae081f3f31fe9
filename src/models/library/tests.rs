use super::*;
use crate::models::Sources;

const MANIFEST: &str = r#"
[[model]]
name = "first-ear"
role = "speech"
licence = "MIT"
purpose = "Hears."
files = [{ name = "ear.bin", part = "weights", size = 5, sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" }]
sources = [{ hub = { repository = "some/ears", revision = "1" } }]
speech = { english_only = true }

[[model]]
name = "second-ear"
role = "speech"
licence = "MIT"
purpose = "Hears too."
files = [{ name = "ear.bin", part = "weights", size = 5, sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" }]
sources = [{ hub = { repository = "some/ears", revision = "2" } }]
speech = { english_only = false }
"#;

fn library(folder: &Path, speech: &str) -> Result<Library, ModelError> {
    let config = ModelsConfig { folder: "here".into(), speech: speech.into(), ..ModelsConfig::default() };
    let sources = Sources { mirror: None, hub: "http://hub.invalid".into(), hub_token: None, python: "python3".into() };
    Library::with(Manifest::parse(MANIFEST)?, sources, &config, folder)
}

fn put(folder: &Path, model: &str, bytes: &[u8]) -> PathBuf {
    let folder = folder.join("here").join(model);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("ear.bin"), bytes).expect("a file");
    folder.join("ear.bin")
}

#[test]
fn auto_takes_the_first_that_is_whole_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "auto").expect("a library");
    put(folder.path(), "second-ear", b"hello");
    let ear = library.speech().expect("a model");
    assert_eq!(ear.name, "second-ear");
    assert!(!ear.english_only);
    assert_eq!(
        ear.in_use,
        "speech: second-ear (the first choice, first-ear, is not here: `reachy-remembers models fetch first-ear`)"
    );
    put(folder.path(), "first-ear", b"hello");
    assert_eq!(library.speech().expect("a model").in_use, "speech: first-ear");
}

#[test]
fn a_damaged_first_choice_is_passed_over_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "auto").expect("a library");
    put(folder.path(), "first-ear", b"jello");
    put(folder.path(), "second-ear", b"hello");
    let ear = library.speech().expect("a model");
    assert_eq!(ear.name, "second-ear");
    assert!(ear.in_use.contains("first-ear, cannot be used because ear.bin has the wrong SHA-256"), "{}", ear.in_use);
}

#[test]
fn a_model_named_in_the_config_is_never_replaced_by_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "first-ear").expect("a library");
    put(folder.path(), "second-ear", b"hello");
    let error = library.speech().expect_err("no model").to_string();
    assert!(error.contains("first-ear is not here") && error.contains("models fetch"), "{error}");
    assert!(!error.contains("second-ear"), "{error}");
}

#[test]
fn a_name_that_no_model_has_is_refused_with_those_that_exist() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = library(folder.path(), "third-ear").expect_err("an unknown name").to_string();
    assert_eq!(error, "there is no speech model named \"third-ear\"; there are: auto, first-ear, second-ear");
}

#[test]
fn a_short_file_is_damaged_and_its_sizes_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "auto").expect("a library");
    put(folder.path(), "first-ear", b"hel");
    let rows = library.list().expect("rows");
    assert_eq!(rows[0].state, State::Damaged);
    assert_eq!(rows[0].problem.as_deref(), Some("ear.bin has 3 bytes instead of 5"));
    assert_eq!(rows[1].state, State::Missing);
    assert!(rows.iter().all(|row| !row.in_use));
}

#[test]
fn a_file_is_hashed_once_and_not_at_every_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), "auto").expect("a library");
    let path = put(folder.path(), "first-ear", b"hello");
    assert_eq!(library.list().expect("rows")[0].state, State::Here);
    library.speech().expect("a model");
    assert_eq!(library.list().expect("rows")[0].state, State::Verified);

    // Other bytes of the same size and time: only a full check can see them.
    let then = fs::metadata(&path).expect("metadata").modified().expect("a time");
    fs::write(&path, b"jello").expect("a file");
    let file = fs::File::options().write(true).open(&path).expect("the file");
    file.set_modified(then).expect("the old time");
    library.speech().expect("the record is believed");
    let rows = library.verify().expect("rows");
    assert_eq!(rows[0].state, State::Damaged);
    let error = library.speech().expect_err("damage is remembered").to_string();
    assert!(error.contains("wrong SHA-256"), "{error}");
}

#[test]
fn one_missing_file_of_several_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = Library::new(&ModelsConfig::default(), folder.path()).expect("a library");
    let there = folder.path().join("models/cache/all-minilm-l6-v2");
    fs::create_dir_all(&there).expect("a folder");
    let config = fs::File::create(there.join("config.json")).expect("a file");
    config.set_len(612).expect("a length");
    let rows = library.list().expect("rows");
    let row = rows.iter().find(|row| row.name == "all-minilm-l6-v2").expect("a row");
    assert_eq!(row.state, State::Missing);
    assert_eq!(row.problem.as_deref(), Some("model.safetensors is not here"));
    assert_eq!(serde_json::to_value(row).expect("JSON")["role"], "text");
}
