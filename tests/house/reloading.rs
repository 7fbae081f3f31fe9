//! The service as its manager sees it, and an edited configuration taken over by the real program.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use reachy_remembers::act::Voice;
use reachy_remembers::config::Config;
use reachy_remembers::daemon::reload::{LiveVoice, Outcome, Reloader, laptop_part};
use reachy_remembers::health::Health;
use reachy_remembers::think::brains::Brains;
use rustix::process::Signal;

use crate::weights;

const PROGRAM: &str = env!("CARGO_BIN_EXE_reachy-remembers");
/// Models are loaded, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// The service under a manager that is this test.
struct Managed {
    folder: tempfile::TempDir,
    manager: UnixDatagram,
    child: Child,
    told: Vec<String>,
}

impl Managed {
    /// Starts it; `models` is a folder of weights, and may be empty: then the robot is deaf and lives all the same.
    fn start(models: &Path, watchdog: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let config = format!(
            "[robot]\ntime_zone = \"UTC\"\n[remember]\nfolder = \"memory\"\nmin_free_mb = 10\n[models]\nfolder = {:?}\n",
            models.display().to_string()
        );
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let child = Command::new(PROGRAM)
            .arg("--config")
            .arg(folder.path().join("config.toml"))
            .arg("run")
            .env("NOTIFY_SOCKET", folder.path().join("notify"))
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .env_remove("WATCHDOG_PID")
            .env_remove("JOURNAL_STREAM")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { folder, manager, child, told: Vec::new() }
    }

    fn without_models() -> Self {
        let mut managed = Self::start(Path::new("no-models"), Duration::from_secs(30));
        managed.until_told("READY=1");
        managed
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Takes one datagram, if one comes soon.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        if let Ok(length) = self.manager.recv(&mut bytes) {
            self.told.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
    }

    /// Waits until a datagram with `words` has come, and forgets those up to it.
    fn until_told(&mut self, words: &str) -> String {
        let began = Instant::now();
        loop {
            if let Some(at) = self.told.iter().position(|told| told.contains(words)) {
                return self.told.drain(..=at).next_back().unwrap();
            }
            assert!(began.elapsed() < PATIENCE, "no {words}: {:?}\n{}", self.told, self.log());
            self.listen();
        }
    }

    fn until_logged(&mut self, words: &str) {
        let began = Instant::now();
        while !self.log().contains(words) {
            assert!(began.elapsed() < PATIENCE, "no {words} in\n{}", self.log());
            assert_eq!(self.child.try_wait().unwrap(), None, "it ended\n{}", self.log());
            self.listen();
        }
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    fn edit(&self, more: &str) {
        let text = fs::read_to_string(self.config()).unwrap();
        let kept = text.split("# edited").next().unwrap();
        fs::write(self.config(), format!("{kept}# edited\n{more}")).unwrap();
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_manager_is_told_of_the_start_of_life_and_of_the_end() {
    if !weights::all_are_here() {
        return;
    }
    let mut managed = Managed::start(&weights::folder(), Duration::from_secs(1));
    managed.until_told("READY=1");
    // The conversation, the ear and the eye live, so it is fed; and it stays so.
    for _ in 0..3 {
        managed.until_told("WATCHDOG=1");
    }
    managed.told.clear();
    managed.until_told("WATCHDOG=1");
    managed.signal(Signal::TERM);
    managed.until_told("STOPPING=1");
    let status = managed.child.wait().unwrap();
    assert!(status.success(), "{status}\n{}", managed.log());
    assert!(!managed.log().contains("not heard of in time"), "{}", managed.log());
}

#[test]
fn the_state_is_one_line_and_says_first_what_does_not_work() {
    let mut managed = Managed::start(Path::new("no-models"), Duration::from_secs(2));
    managed.until_told("READY=1");
    let told = managed.until_told("hearing: ");
    let line = told.lines().find(|line| line.starts_with("STATUS=")).unwrap();
    assert!(line.starts_with("STATUS=hearing: "), "{line}");
}

#[test]
fn a_hang_up_takes_an_edit_over_and_says_what_needs_a_restart() {
    let mut managed = Managed::without_models();
    managed.edit("[act]\nvoice = \"none\"\n[limits]\nwhisper_threads = 2\n");
    managed.signal(Signal::HUP);
    managed.until_told("RELOADING=1");
    managed.until_told("READY=1");
    managed.until_logged("[act] voice: \"espeak-ng\" → \"none\" (from the next sentence on)");
    managed.until_logged("These need a restart: [limits] whisper_threads: 3 → 2");
    assert_eq!(managed.child.try_wait().unwrap(), None);
}

#[test]
fn a_bad_edit_keeps_the_service_and_its_configuration_and_is_said_with_its_line() {
    let mut managed = Managed::without_models();
    managed.edit("[act]\nwords_per_minute = 9000\n");
    managed.signal(Signal::HUP);
    managed.until_told("READY=1");
    managed.until_logged("The configuration stays as it was");
    let lines = fs::read_to_string(managed.config()).unwrap().lines().count();
    managed.until_logged(&format!("config.toml:{lines}"));
    // Put right, it is taken over from what still runs.
    managed.edit("[act]\ngestures = false\n");
    managed.signal(Signal::HUP);
    managed.until_logged("[act] gestures: true → false (at once)");
}

#[test]
fn an_editor_that_replaces_the_file_is_noticed_without_a_signal() {
    let mut managed = Managed::without_models();
    let text = fs::read_to_string(managed.config()).unwrap();
    let beside = managed.folder.path().join(".config.toml.swp");
    fs::write(&beside, format!("{text}[privacy]\nlog_words = true\n")).unwrap();
    fs::rename(&beside, managed.config()).unwrap();
    managed.until_logged("[privacy] log_words: false → true (at once)");
    // And the one after it, written in place.
    fs::write(managed.config(), text).unwrap();
    managed.until_logged("[privacy] log_words: true → false (at once)");
}

#[test]
fn without_a_manager_nothing_is_told_and_a_wrong_one_does_not_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    fs::write(&config, "[remember]\nfolder = \"memory\"\nmin_free_mb = 10\n[models]\nfolder = \"none\"\n").unwrap();
    for address in [None, Some("somewhere")] {
        let log = folder.path().join("log");
        let mut command = Command::new(PROGRAM);
        command.arg("--config").arg(&config).arg("run").env_remove("NOTIFY_SOCKET").env_remove("JOURNAL_STREAM");
        if let Some(address) = address {
            command.env("NOTIFY_SOCKET", address);
        }
        let mut child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let began = Instant::now();
        while !fs::read_to_string(&log).unwrap().contains("ready") {
            assert!(began.elapsed() < PATIENCE, "{}", fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(fs::read_to_string(&log).unwrap().contains("nobody is told"), address.is_some());
    }
}

#[test]
fn a_voice_changes_between_two_sentences_and_one_that_does_not_exist_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "[act]\nwords_per_minute = 100\n").unwrap();
    let config = Config::load(Some(&file)).unwrap();
    let report = Voice::find(&config.act);
    if let Some(why) = report.muteness() {
        println!("skipped: {why}");
        return;
    }
    let live = LiveVoice::new(report.voice());
    let mut reloader = Reloader::new(config, Some(file.clone()));
    reloader.register(live.part(Arc::new(Health::default())));
    let length = || live.voice().speak("The key is in the blue box.", &|| false).unwrap().unwrap().samples.len();
    let slow = length();
    fs::write(&file, "[act]\nwords_per_minute = 300\n").unwrap();
    assert!(matches!(reloader.reload(), Outcome::Taken(_)));
    let fast = length();
    assert!(fast * 3 < slow * 2, "{fast} of {slow} samples");
    fs::write(&file, "[act]\nwords_per_minute = 100\nvoice_name = \"klingon-opera\"\n").unwrap();
    let refused = reloader.reload();
    assert!(refused.sentence().contains("klingon-opera"), "{}", refused.sentence());
    assert_eq!(length(), fast);
}

#[test]
fn a_new_address_of_the_laptop_is_asked_from_the_next_turn_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "").unwrap();
    let brains = Brains::new(None, None, Duration::from_secs(30));
    let (health, zone) = (Arc::new(Health::default()), TimeZone::UTC);
    let mut reloader = Reloader::new(Config::load(Some(&file)).unwrap(), Some(file.clone()));
    reloader.register(laptop_part(brains.seat(), None, zone, Arc::clone(&health)));
    assert!(!brains.choose().is_laptop);
    fs::write(&file, "[think]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"another\"\n").unwrap();
    assert!(matches!(reloader.reload(), Outcome::Taken(_)));
    let choice = brains.choose();
    assert!(choice.is_laptop && choice.brain.unwrap().name().contains("another"));
    assert!(health.parts().iter().any(|part| part.part == "laptop" && part.what.contains("another")));
    fs::write(&file, "").unwrap();
    assert!(matches!(reloader.reload(), Outcome::Taken(_)));
    assert!(!brains.choose().is_laptop);
}
