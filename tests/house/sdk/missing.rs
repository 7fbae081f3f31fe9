//! A robot whose body is not there: the service runs, and says so.

use super::*;

const PROGRAM: &str = env!("CARGO_BIN_EXE_reachy-remembers");

#[test]
fn a_service_without_its_body_runs_as_a_silent_room_and_says_what_is_missing() {
    let house = tempfile::tempdir().unwrap();
    let config = house.path().join("config.toml");
    std::fs::write(
        &config,
        "[robot]\nbody = \"sdk\"\nvenv = \"no-venv\"\n[remember]\nfolder = \"memory\"\n[models]\nfolder = \"no-models\"\n",
    )
    .unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("--config").arg(&config).args(arguments).stdin(Stdio::null());
        command
    };
    let mut service = command(&["run"]).stderr(Stdio::null()).spawn().unwrap();
    let socket = house.path().join("memory/control.sock");
    within(Duration::from_secs(30), "the service starts", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let told = || {
        let output = command(&["doctor", "--json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    within(Duration::from_secs(10), "it says what is missing", || {
        let told = told();
        told.contains("silent room") && told.contains("no-venv") && told.contains("[robot] venv")
    });
    // The signals are taken last of all when it starts.
    within(Duration::from_secs(10), "it has started", || told().contains("\"hearing\""));
    std::thread::sleep(Duration::from_secs(1));
    assert!(service.try_wait().unwrap().is_none(), "it runs on");
    let began = Instant::now();
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success() && began.elapsed() < Duration::from_secs(10));
    // Without the service the parts are looked at, and the sentence is the same.
    assert!(told().contains("[robot] venv"));
}
