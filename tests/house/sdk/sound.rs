//! Sound through the SDK's own player and microphone pipeline, into and out of a sound server without a sound card.
//!
//! The pipeline is the one of the robot: ALSA devices by the names that the robot gives them. Behind them is a PulseAudio
//! with one null sink, whose monitor is the microphone, where on the robot there is the chip that takes the echo out.

use super::media::{hear, pitch, tone};
use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A sound server of our own.
struct Pulse {
    home: tempfile::TempDir,
    child: Child,
}

impl Pulse {
    fn start() -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| std::fs::write(home.path().join(name), text).unwrap();
        file(
            ".asoundrc",
            "pcm.reachymini_audio_sink { type pulse device robot }\n\
             pcm.reachymini_audio_src { type pulse device robot.monitor }\n"
                .into(),
        );
        file(
            "pulse.pa",
            format!(
                "load-module module-native-protocol-unix socket={} auth-anonymous=1\n\
                 load-module module-null-sink sink_name=robot rate=16000 channels=2\n\
                 set-default-sink robot\nset-default-source robot.monitor\n",
                home.path().join("pulse.sock").display()
            ),
        );
        let run = home.path().join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = Command::new("pulseaudio");
        command
            .args(["-n", "--exit-idle-time=-1", "--daemonize=no", "--use-pid-file=no"])
            .arg(format!("--file={}", home.path().join("pulse.pa").display()))
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", &run)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("skipped: there is no pulseaudio on this machine");
            return None;
        };
        let pulse = Self { home, child };
        let socket = pulse.home.path().join("pulse.sock");
        within(Duration::from_secs(20), "the sound server starts", || socket.exists());
        Some(pulse)
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        let at = |name: &str| self.home.path().join(name).display().to_string();
        [
            ("HOME", self.home.path().display().to_string()),
            ("XDG_RUNTIME_DIR", at("run")),
            ("PULSE_SERVER", format!("unix:{}", at("pulse.sock"))),
        ]
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sound_goes_there_and_back_through_the_sdks_own_pipeline_and_is_stopped() {
    const NAME: &str = "sound::sound_goes_there_and_back_through_the_sdks_own_pipeline_and_is_stopped";
    let pulse = if venv().is_none() || is_alone(NAME) { None } else { Pulse::start() };
    if pulse.is_none() && !is_alone(NAME) {
        return;
    }
    let variables = pulse.as_ref().map(Pulse::variables).unwrap_or_default();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    alone(NAME, &variables, |venv| {
        let daemon = Daemon::start_with(venv, &[]);
        let sdk = daemon.body();
        assert!(sdk.now().audio);
        within(Duration::from_secs(5), "the microphone starts", || !hear(&sdk, 0.2).is_empty());
        hear(&sdk, 1.0);
        let room = hear(&sdk, 2.0);
        let seconds = room.len() as f64 / 16_000.0;
        assert!((1.7..=2.5).contains(&seconds), "2 s of a room gave {seconds} s");

        std::thread::scope(|scope| {
            let heard = scope.spawn(|| hear(&sdk, 2.5));
            sdk.play(&tone(440.0, 22_050, 1.0), &|| false).unwrap();
            let heard = heard.join().unwrap();
            let first = heard.iter().position(|sample| sample.abs() > 0.05).unwrap() as f64 / 16.0;
            let last = heard.iter().rposition(|sample| sample.abs() > 0.05).unwrap() as f64 / 16.0;
            let pitch = pitch(&heard);
            println!("440 Hz came back at {pitch:.1} Hz after {first:.0} ms, {:.0} ms long", last - first);
            assert!((pitch - 440.0).abs() < 8.0, "{pitch}");
            assert!((900.0..1_100.0).contains(&(last - first)), "{} ms", last - first);
        });

        for _ in 0..3 {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let play = scope.spawn(|| sdk.play(&tone(440.0, 16_000, 20.0), &|| stop.load(Ordering::Acquire)));
                hear(&sdk, 0.8);
                let asked = Instant::now();
                stop.store(true, Ordering::Release);
                play.join().unwrap().unwrap();
                let took = asked.elapsed();
                let after = hear(&sdk, 1.5);
                let silent =
                    after.iter().rposition(|sample| sample.abs() > 0.05).map_or(0.0, |last| last as f64 / 16.0);
                println!("stopped after {took:?}; what the sound server still held lasted {silent:.0} ms");
                // The server itself holds about a third of a second both ways.
                assert!(took < Duration::from_millis(50) && silent < 700.0, "{took:?}, {silent} ms");
            });
        }
        sdk.rest();
    });
}
