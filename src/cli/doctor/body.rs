//! `doctor` and the body: it is really used, because everything else proves little. The camera's picture is kept to be
//! looked at, the microphone's level is measured, the speaker beeps, and the head nods.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::part;
use crate::clock::Clock;
use crate::config::{BodyKind, Config};
use crate::daemon::parts;
use crate::health::PartHealth;
use crate::robot::sdk::Sdk;
use crate::robot::{Gesture, MicrophoneRead, Robot, Sound};
use crate::see::picture;

/// Python and the SDK take 3 to 8 s to load, a connection a second or two, and the head two to rise.
const READY: Duration = Duration::from_secs(30);
/// How long the microphone is listened to.
const LISTENS: Duration = Duration::from_secs(2);
/// The beep: a tone that a small speaker gives well.
const BEEP_HERTZ: f32 = 880.0;
const BEEP_SECONDS: f32 = 0.3;
const BEEP_RATE: u32 = 16_000;
/// A tenth of full scale: heard in the room, and no fright.
const BEEP_PEAK: f32 = 0.1;
/// The meter's steps and its range in decibels below full scale: a quiet room at the robot's microphones is near the
/// bottom. Not measured.
const METER: (usize, f32) = (12, 72.0);
/// Below this there is no sound at all, in decibels of full scale: a room is never that quiet.
const DEAF: f32 = -95.0;

/// The lines for the body.
pub(super) async fn look(config: &Config) -> Vec<PartHealth> {
    if config.robot.body == BodyKind::Sim {
        let robot = parts::robot(config, 0);
        return vec![part("robot", robot.map(|(robot, _)| robot.describe()).map_err(|error| error.to_string()))];
    }
    let settings = (&config.robot).into();
    let tried = tokio::task::spawn_blocking(move || try_out(&Sdk::start(settings, Clock::system())));
    tried.await.unwrap_or_else(|error| vec![part("robot", Err(error.to_string()))])
}

fn try_out(body: &Sdk) -> Vec<PartHealth> {
    if let Err(why) = body.ready(READY) {
        // A body that never will be there has the whole sentence in its state.
        return vec![part("robot", Err(body.state().err().unwrap_or(why)))];
    }
    // It rises as soon as it is connected.
    let risen = body.wake();
    let mut found = vec![part("robot", body.state())];
    found.push(part("motion", risen.and_then(|()| body.gesture(Gesture::Nod)).map(|()| "nodded".into()).in_words()));
    found.push(part("camera", camera(body)));
    found.push(part("microphone", microphone(body)));
    let beeped = body.play(&beep(), &|| false);
    found.push(part("speaker", beeped.map(|()| "beeped; did you hear it?".into()).in_words()));
    body.rest();
    found
}

trait InWords<T> {
    fn in_words(self) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> InWords<T> for Result<T, E> {
    fn in_words(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

fn camera(body: &dyn Robot) -> Result<String, String> {
    let shot = body.picture().in_words()?;
    let rgb = picture::decode(&shot.encoded).in_words()?;
    let (width, height, light) = (rgb.width, rgb.height, rgb.brightness());
    let path = keep(&rgb.to_jpeg().in_words()?)?;
    rgb.check_light().in_words()?;
    Ok(format!("{width}×{height}, brightness {light:.0} of 255; look at {}", path.display()))
}

/// Keeps the picture for its owner alone.
fn keep(jpeg: &[u8]) -> Result<PathBuf, String> {
    let path = std::env::temp_dir().join(format!("reachy-camera-{}.jpg", std::process::id()));
    // A new file: whoever else may write there cannot have put a link in its place.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let kept = file.and_then(|mut file| file.write_all(jpeg));
    kept.map_err(|error| format!("its picture could not be kept as {}: {error}", path.display()))?;
    Ok(path)
}

fn microphone(body: &dyn Robot) -> Result<String, String> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    while began.elapsed() < LISTENS {
        if let MicrophoneRead::Sound { sound, .. } = body.hear().in_words()? {
            samples.extend(sound.samples);
        }
    }
    match level(&samples) {
        None => Err("it gave nothing in two seconds".into()),
        Some(level) if level <= DEAF => {
            Err("it gives only silence: is it switched off, or used by another program?".into())
        }
        Some(level) => Ok(format!("{} {level:.0} dB of full scale; say something to see it move", meter(level))),
    }
}

/// Mean power, in decibels of full scale.
fn level(samples: &[f32]) -> Option<f32> {
    let power = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / samples.len().max(1) as f64;
    // The smallest 24-bit step is −138 dB.
    (!samples.is_empty()).then(|| (10.0 * power.max(1e-14).log10()) as f32)
}

fn meter(level: f32) -> String {
    let (steps, range) = METER;
    let full = (((level + range) / range).clamp(0.0, 1.0) * steps as f32).round() as usize;
    (0..steps).map(|step| if step < full { '▮' } else { '▯' }).collect()
}

fn beep() -> Sound {
    let count = (BEEP_RATE as f32 * BEEP_SECONDS) as u32;
    let sample = |index: u32| {
        let at = index as f32 / BEEP_RATE as f32;
        // In and out over 20 ms, so that it does not click.
        let fade = (at / 0.02).min((BEEP_SECONDS - at) / 0.02).clamp(0.0, 1.0);
        BEEP_PEAK * fade * (at * BEEP_HERTZ * std::f32::consts::TAU).sin()
    };
    Sound { samples: (0..count).map(sample).collect(), rate: BEEP_RATE, channels: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_shows_silence_speech_and_the_loudest() {
        assert_eq!(level(&[]), None);
        assert!(level(&[0.0; 100]).unwrap() <= DEAF);
        let tone = beep().samples;
        let of_the_beep = level(&tone).unwrap();
        assert!((-24.0..-22.0).contains(&of_the_beep), "{of_the_beep}");
        assert_eq!(meter(DEAF), "▯".repeat(12));
        assert_eq!(meter(0.0), "▮".repeat(12));
        assert_eq!(meter(-36.0).matches('▮').count(), 6);
        assert!(tone.first() == Some(&0.0) && tone.last().unwrap().abs() < 0.01, "it does not click");
    }
}
