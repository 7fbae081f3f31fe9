//! The program as people run it: the service, the commands beside it, its end, and its errors. Real weights.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::weights;

const PROGRAM: &str = env!("CARGO_BIN_EXE_reachy-remembers");

/// A house of its own: a config, a memory folder, and no laptop.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap() };
        let models = weights::folder();
        let config = format!(
            "[robot]\ntime_zone = \"UTC\"\n[remember]\nfolder = \"memory\"\nmin_free_mb = 10\n[models]\nfolder = {:?}\n",
            models.display().to_string()
        );
        fs::write(house.config(), config).unwrap();
        house
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn memory(&self) -> PathBuf {
        self.folder.path().join("memory")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("--config").arg(self.config()).args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    fn talk(&self, lines: &str) -> String {
        let mut talk = self.command(&["talk"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        talk.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = talk.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn service(&self) -> Service {
        let child = self.command(&["run"]).stderr(Stdio::piped()).spawn().unwrap();
        let socket = self.memory().join("control.sock");
        let mut service = Service { child };
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "the service did not start");
            assert_eq!(service.child.try_wait().unwrap(), None, "the service ended at once");
            std::thread::sleep(Duration::from_millis(50));
        }
        service
    }
}

/// A running service, killed when the test is over.
struct Service {
    child: Child,
}

impl Service {
    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_service_answers_commands_refuses_a_second_and_ends_safely_within_ten_seconds() {
    if !weights::all_are_here() {
        return;
    }
    let house = House::new();
    let mut service = house.service();
    let stats = house.json(&["memory", "stats", "--json"]);
    assert_eq!(stats["exchanges"], 0);
    let search = house.json(&["memory", "search", "where is the key", "--json"]);
    assert_eq!((search["memories"].as_array().unwrap().len(), &search["searched"]), (0, &Value::from(0)));
    let health = house.json(&["doctor", "--json"]);
    assert_eq!(health["service"], true);
    assert!(health["parts"].as_array().unwrap().iter().any(|part| part["part"] == "memory" && part["works"] == true));

    // What an earlier process left in the journal is found and shown before it is in the memory.
    let waiting = r#"{"heard":"The ladder is at the neighbour's.","said":"All right.","speaker":null,"said_at":"2026-05-04T08:00:00Z"}"#;
    fs::write(house.memory().join("window.jsonl"), format!("{waiting}\n")).unwrap();
    let search = house.json(&["memory", "search", "where is the ladder", "--json"]);
    assert_eq!(search["memories"][0]["just_said"], true, "{search}");
    let shown = house.run(&["memory", "show"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("ladder"), "{shown:?}");

    let second = house.run(&["run"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(words(&second).contains(&format!("process {}", service.child.id())), "{}", words(&second));
    let talk = house.run(&["talk"]);
    assert!(words(&talk).contains("the service is running"), "{}", words(&talk));

    let socket = house.memory().join("control.sock").metadata().unwrap();
    assert!(socket.file_type().is_socket() && socket.permissions().mode() & 0o777 == 0o600);
    for (path, mode) in every_file(&house.memory()) {
        assert_eq!(mode & 0o077, 0, "{} is open to others: {mode:o}", path.display());
    }

    let began = Instant::now();
    service.signal(rustix::process::Signal::TERM);
    let status = service.child.wait().unwrap();
    assert!(status.success() && began.elapsed() < Duration::from_secs(10), "{status} after {:?}", began.elapsed());
    assert_eq!(house.json(&["memory", "stats", "--json"])["exchanges"], 0);
}

#[test]
fn after_kill_9_the_service_starts_again_over_its_old_socket() {
    if !weights::all_are_here() {
        return;
    }
    let house = House::new();
    let mut service = house.service();
    service.signal(rustix::process::Signal::KILL);
    service.child.wait().unwrap();
    let _service = house.service();
    assert_eq!(house.json(&["memory", "stats", "--json"])["exchanges"], 0);
}

#[test]
fn what_was_typed_yesterday_is_answered_from_memory_and_what_was_just_typed_as_just_said() {
    if !weights::all_are_here() {
        return;
    }
    let house = House::new();
    let first = house.talk("The key of the bicycle is in the blue box.\nWhere is the key of the bicycle?\n");
    assert!(first.contains("just said") && first.contains("blue box"), "{first}");
    assert_eq!(house.json(&["memory", "stats", "--json"])["exchanges"], 1, "the answer out of memory is not stored");
    let second = house.talk("Where is the key of the bicycle?\nWhen is my dentist's appointment?\n");
    assert!(second.contains("blue box") && !second.contains("just said"), "{second}");
    assert!(second.contains("nothing found"), "{second}");
    let found = house.json(&["memory", "search", "where is the key of the bicycle", "--json"]);
    assert!(found["memories"][0]["score"].as_f64().unwrap() > found["gate"].as_f64().unwrap(), "{found}");
}

#[test]
fn a_wrong_config_is_exit_code_2_with_file_and_line() {
    let house = House::new();
    fs::write(house.config(), "[think]\nwindow_tokens = 1000\nwindow_tokns = 3\n").unwrap();
    let output = house.run(&["models", "list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("config.toml:3") && words(&output).contains("window_tokens"), "{}", words(&output));

    fs::write(house.config(), b"[think]\nurl = \"\xff\xfe\"\n").unwrap();
    let output = house.run(&["models", "list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("UTF-8"), "{}", words(&output));

    fs::remove_file(house.config()).unwrap();
    fs::create_dir(house.config()).unwrap();
    let output = house.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!words(&output).contains("panicked"), "{}", words(&output));
}

#[test]
fn a_memory_folder_that_may_not_be_written_is_a_sentence_and_nothing_is_lost() {
    if !weights::all_are_here() {
        return;
    }
    let house = House::new();
    house.talk("The spare fuse is behind the fridge.\n");
    let nobody = 65_534;
    // The weights are their owner's alone, so somebody else needs a copy.
    let models = house.folder.path().join("models");
    copy_text_model(&models);
    let config = fs::read_to_string(house.config()).unwrap();
    let mine = format!("{:?}", weights::folder().display().to_string());
    fs::write(house.config(), config.replace(&mine, &format!("{:?}", models.display().to_string()))).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    fs::set_permissions(house.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(house.config(), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(house.memory(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = house.command(&["memory", "stats"]);
    if is_root {
        // The owner of everything may write everywhere, so somebody else tries.
        command.uid(nobody).gid(nobody);
    }
    let output = match command.output() {
        Ok(output) => output,
        other => {
            println!("skipped: this checkout cannot be read by an ordinary user ({other:?})");
            return;
        }
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(words(&output).contains("memory") && words(&output).contains("ermission denied"), "{}", words(&output));
    fs::set_permissions(house.memory(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(house.json(&["memory", "stats", "--json"])["exchanges"], 1);
}

#[test]
fn a_robot_without_weights_says_what_to_do() {
    let house = House::new();
    let config = format!("[models]\nfolder = {:?}\n", house.folder.path().join("no-models").display().to_string());
    fs::write(house.config(), config).unwrap();
    let output = house.run(&["memory", "stats"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(words(&output).contains("models fetch"), "{}", words(&output));
    let doctor = house.run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("models fetch"), "{doctor:?}");
}

fn copy_text_model(to: &Path) {
    use reachy_remembers::config::ModelsConfig;
    use reachy_remembers::models::Library;
    let config = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    let text = Library::new(&config, Path::new("")).unwrap().text().unwrap();
    let folder = to.join(&text.name);
    fs::create_dir_all(&folder).unwrap();
    for file in [&text.weights, &text.tokenizer, &text.config] {
        let copy = folder.join(file.file_name().unwrap());
        fs::copy(file, &copy).unwrap();
        fs::set_permissions(copy, fs::Permissions::from_mode(0o644)).unwrap();
    }
    for folder in [to, &folder] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn every_file(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        all.push((path.clone(), metadata.permissions().mode()));
        if metadata.is_dir() {
            all.extend(every_file(&path));
        }
    }
    all
}
