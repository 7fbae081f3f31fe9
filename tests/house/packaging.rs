//! The package's files agree with the program: the installed configuration, the unit, and the maintainer scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reachy_remembers::config::{BodyKind, Config};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap()
}

fn make_config(config: &Path) -> Output {
    Command::new("sh").arg(project("packaging/make-config.sh")).arg(config).output().unwrap()
}

#[test]
fn the_installed_configuration_is_the_projects_own_with_a_real_body_and_the_folders_of_a_service() {
    let output = make_config(&project("config.toml"));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let installed = Config::from_toml(&text, Path::new("installed")).unwrap();
    assert_eq!(installed.remember.folder, Path::new("/var/lib/reachy-remembers/memory"));
    assert_eq!(installed.models.folder, Path::new("/var/lib/reachy-remembers/models"));
    assert_eq!(installed.robot.body, BodyKind::Sdk);
    let mut expected = Config::default();
    expected.robot.body = BodyKind::Sdk;
    expected.remember.folder = installed.remember.folder.clone();
    expected.models.folder = installed.models.folder.clone();
    assert_eq!(installed, expected);
    let own = read("config.toml");
    let changed = own.lines().zip(text.lines()).filter(|(ours, theirs)| ours != theirs).count();
    assert_eq!((own.lines().count(), changed), (text.lines().count(), 3));
}

#[test]
fn a_folder_that_the_configuration_lost_stops_the_packing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    fs::write(&config, read("config.toml").replace("folder = \"shards\"", "place = \"shards\"")).unwrap();
    let output = make_config(&config);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("[remember] folder"), "{output:?}");
}

#[test]
fn the_bridge_lies_beside_the_program_where_it_is_looked_for() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let place = |built: &str| {
        let asset = assets.iter().find(|asset| asset[0].as_str() == Some(built)).unwrap();
        Path::new(asset[1].as_str().unwrap()).to_owned()
    };
    let (program, bridge) = (place("target/release/reachy-remembers"), place("target/release/libreachy_bridge.so"));
    assert_eq!(program, Path::new("usr/lib/reachy-remembers/reachy-remembers"));
    assert_eq!(bridge, program.with_file_name("libreachy_bridge.so"));
}

#[test]
fn the_apps_own_tests_pass() {
    let Ok(output) = Command::new("python3").args(["-m", "unittest", "discover"]).arg(project("app/tests")).output()
    else {
        println!("skipped: python3 is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The unit's settings, in order.
fn unit() -> Vec<(String, String)> {
    let text = read("packaging/reachy-remembers.service");
    let lines = text.lines().filter(|line| !line.starts_with(['#', '[']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

#[test]
fn the_unit_keeps_what_the_rest_relies_on() {
    let unit = unit();
    let values = |key: &str| -> Vec<&str> {
        unit.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect()
    };
    let is = |key: &str, value: &str| assert!(values(key).contains(&value), "{key}={value}");
    is("Type", "notify");
    is("WatchdogSec", "30");
    is("Restart", "on-failure");
    // A wrong configuration is exit code 2.
    is("RestartPreventExitStatus", "2");
    is("After", "reachy-mini-daemon.service network.target sound.target");
    is("Wants", "reachy-mini-daemon.service");
    is("User", "pollen");
    is("UMask", "0077");
    is("StateDirectory", "reachy-remembers");
    is("StateDirectoryMode", "0700");
    is("NoNewPrivileges", "yes");
    is("ProtectSystem", "strict");
    is("IPAddressDeny", "any");
    let allowed: Vec<&str> = values("IPAddressAllow").into_iter().flat_map(str::split_whitespace).collect();
    for address in ["localhost", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "link-local", "multicast"] {
        assert!(allowed.contains(&address), "{address}");
    }
    assert!(!allowed.contains(&"any"));
    // The robot's daemon hands the camera over in /tmp, and shares its sound card's mixer.
    for unwanted in ["PrivateTmp", "RemoveIPC", "PrivateIPC"] {
        assert!(values(unwanted).is_empty(), "{unwanted}");
    }
    let start = "/usr/lib/reachy-remembers/reachy-remembers --config /etc/reachy-remembers/config.toml run";
    assert_eq!(values("ExecStart"), [start]);
}

#[test]
fn systemd_itself_accepts_the_unit_and_finds_it_closed() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("reachy-remembers.service");
    let own = read("packaging/reachy-remembers.service");
    fs::write(&unit, own.replace("/usr/lib/reachy-remembers/reachy-remembers", "/bin/true")).unwrap();
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).arg(&unit).output();
    let Ok(verified) = analyze(&["verify", "--man=no", "--recursive-errors=no"]) else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    // An older systemd does not know the growing pause, and says so; nothing else may be wrong.
    let words = String::from_utf8_lossy(&verified.stderr).into_owned();
    let wrong = words.lines().filter(|line| line.contains("reachy-remembers") && !line.contains("'Restart"));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&str>::new());
    // In tenths: 1.8 of 10 today, and never worse than 2.5.
    let security = analyze(&["security", "--offline=true", "--threshold=25"]).unwrap();
    assert!(security.status.success(), "{}", String::from_utf8_lossy(&security.stdout));
}

#[test]
fn every_shell_script_of_the_package_is_read_by_the_shell_without_an_error() {
    let mut scripts = 0;
    for folder in ["app", "packaging", "packaging/deb", "packaging/arm64", "tests/packaging"] {
        for entry in fs::read_dir(project(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            if !text.starts_with("#!/bin/sh") {
                continue;
            }
            let checked = Command::new("sh").arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success(), "{}: {checked:?}", path.display());
            scripts += 1;
        }
    }
    assert!(scripts >= 14, "{scripts}");
}
