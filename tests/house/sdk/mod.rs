//! The real body: the robot's own SDK and its own daemon, with a simulated robot in it (`--mockup-sim`).
//!
//! `make test-sdk` installs both under `target/`; elsewhere these tests are skipped. A process has one Python, so every
//! test that needs the body runs in a process of its own, one after the other.

mod day;
mod losing;
mod media;
mod missing;
mod moving;
mod sound;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reachy_remembers::clock::Clock;
use reachy_remembers::robot::Robot;
use reachy_remembers::robot::gestures::breath;
use reachy_remembers::robot::pose::{AHEAD, ASLEEP, Pose};
use reachy_remembers::robot::sdk::find::BRIDGE_VARIABLE;
use reachy_remembers::robot::sdk::{Sdk, Settings};
use reachy_remembers::robot::{Direction, Gesture};
use rustix::process::{Pid, Signal, kill_process};

/// Names the Python environment that has the SDK, as `tests/sdk/prepare.sh` makes it.
const VENV: &str = "REACHY_TEST_SDK";
/// The test that this process runs alone.
const ALONE: &str = "REACHY_SDK_ALONE";
/// Starting took 10 to 12 s on two idle cores.
const STARTS_WITHIN: Duration = Duration::from_secs(90);

fn venv() -> Option<PathBuf> {
    let venv = std::env::var_os(VENV).map(PathBuf::from);
    if venv.is_none() {
        println!("skipped: {VENV} names no Python environment with the robot's SDK; `make test-sdk` does");
    }
    venv
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(path)
}

fn is_alone(test: &str) -> bool {
    std::env::var_os(ALONE).is_some_and(|name| name == test)
}

/// Runs `what` in a process of its own, with those variables.
fn alone(test: &str, variables: &[(&str, &str)], what: impl FnOnce(&Path)) {
    let Some(venv) = venv() else { return };
    if is_alone(test) {
        return what(&venv);
    }
    let one_at_a_time = File::create(std::env::temp_dir().join("reachy-test-sdk.lock")).unwrap();
    one_at_a_time.lock().unwrap();
    let program = std::env::current_exe().unwrap();
    let bridge = program.parent().unwrap().parent().unwrap().join("libreachy_bridge.so");
    assert!(bridge.is_file(), "{} is missing: cargo build -p reachy-bridge", bridge.display());
    let status = Command::new(&program)
        .args(["--exact", &format!("sdk::{test}"), "--nocapture", "--test-threads=1"])
        .env(ALONE, test)
        .env(BRIDGE_VARIABLE, bridge)
        .env("REACHY_MINI_TELEMETRY", "0")
        .envs(variables.iter().copied())
        .status()
        .unwrap();
    assert!(status.success(), "{test}, alone in its process: {status}");
}

/// The robot's own daemon with a simulated robot; it ends with the test.
struct Daemon {
    venv: PathBuf,
    port: u16,
    home: tempfile::TempDir,
    child: Child,
    arguments: &'static [&'static str],
}

impl Daemon {
    fn start(venv: &Path) -> Self {
        Self::start_with(venv, &["--no-media"])
    }

    fn start_with(venv: &Path, arguments: &'static [&'static str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let home = tempfile::tempdir().unwrap();
        let child = spawn(venv, port, home.path(), arguments);
        Self { venv: venv.to_owned(), port, home, child, arguments }
    }

    fn settings(&self) -> Settings {
        Settings { venv: self.venv.clone(), port: self.port, ..Settings::default() }
    }

    /// A body that is connected to it.
    fn body(&self) -> Sdk {
        let sdk = Sdk::start(self.settings(), Clock::system());
        let began = Instant::now();
        sdk.ready(STARTS_WITHIN).unwrap();
        println!("connected after {:?}: {}", began.elapsed(), sdk.state().unwrap());
        sdk
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The same daemon again, after it was killed.
    fn restart(&mut self) {
        self.child.wait().unwrap();
        self.child = spawn(&self.venv, self.port, self.home.path(), self.arguments);
    }

    /// Asks its interface, as another program of the house might.
    fn post(&self, path: &str, body: &str) -> String {
        self.ask("POST", path, body)
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, "")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::CONT);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(venv: &Path, port: u16, home: &Path, arguments: &[&str]) -> Child {
    Command::new(venv.join("bin/reachy-mini-daemon"))
        .args(["--mockup-sim", "--no-wake-up-on-start", "--fastapi-host", "127.0.0.1", "--fastapi-port"])
        .arg(port.to_string())
        .args(arguments)
        .env("REACHY_MINI_TELEMETRY", "0")
        .env("HOME", home)
        .env_remove("REACHY_STUB")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until `what` holds; how long it took.
fn within(most: Duration, why: &str, mut what: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < most, "{why}: not within {most:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    began.elapsed()
}

/// Memory of this process, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn what_we_rely_on_of_the_sdk_is_in_the_installed_version() {
    let Some(venv) = venv() else { return };
    let output = Command::new(venv.join("bin/python")).arg(project("signatures.py")).output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words}{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", words.trim());
}

#[test]
fn every_pose_of_every_gesture_can_be_reached_by_the_sdks_own_kinematics() {
    let Some(venv) = venv() else { return };
    let mut lines = String::new();
    let mut add = |pose: Pose| {
        pose.check().unwrap();
        for number in pose.head().into_iter().chain([pose.body]) {
            lines += &format!("{number} ");
        }
        lines.push('\n');
    };
    // Where it looks, and where its gaze may be at most.
    let looks = [(0.0, 0.0), (0.785, 0.26), (-0.785, -0.26)].map(|(yaw, body)| Pose { yaw, body, ..AHEAD });
    let gazes =
        [(0.35, 0.21), (-0.35, 0.21), (0.35, -0.12), (-0.35, -0.12)].map(|(yaw, pitch)| Pose { yaw, pitch, ..AHEAD });
    for held in looks.into_iter().chain(gazes) {
        for sequence in Gesture::ALL.into_iter().filter_map(Gesture::sequence) {
            for step in 0..=(sequence.seconds() * 50.0) as u32 {
                add(held + sequence.at(f64::from(step) / 50.0) + breath(1.25));
            }
        }
    }
    for step in 0..=100 {
        let part = reachy_remembers::robot::gestures::minimum_jerk(f64::from(step) / 100.0);
        add(Pose::of(std::array::from_fn(|axis| {
            AHEAD.axes()[axis] + (ASLEEP.axes()[axis] - AHEAD.axes()[axis]) * part
        })));
    }
    let mut python = Command::new(venv.join("bin/python"))
        .arg(project("reachable.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It stops reading at the first pose that it cannot reach; its words say so.
    let _ = python.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = words.split_whitespace().map(|number| number.parse().unwrap()).collect();
    println!(
        "{} poses, {:.0} % of a leg's range, {:.2} mm and {:.2}° off",
        numbers[0],
        numbers[1] * 100.0,
        numbers[2],
        numbers[3]
    );
    assert!(numbers[0] > 5_000.0 && numbers[1] < 1.0, "{words}");
    assert!(numbers[2] < 2.0 && numbers[3] < 1.0, "{words}");
}
