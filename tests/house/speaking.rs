//! The voice: the real one where it is installed, programs in its place where it must hang or fail.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reachy_remembers::act::espeak::Espeak;
use reachy_remembers::act::{Mouth, Muteness, Synthesiser, Voice, VoiceError, VoiceReport};
use reachy_remembers::clock::Clock;
use reachy_remembers::config::ActConfig;
use reachy_remembers::robot::sim::{Doing, Sim};
use reachy_remembers::robot::{Robot, Sound};

const NEVER: &dyn Fn() -> bool = &|| false;

/// The installed voice, or `None` with a reason on the test's output.
fn real_voice() -> Option<Voice> {
    match Voice::find(&ActConfig::default()) {
        VoiceReport::Works(voice) => Some(voice),
        VoiceReport::Mute(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn seconds(sound: &Sound) -> f32 {
    sound.millis() as f32 / 1000.0
}

fn is_loud(sound: &Sound) -> bool {
    sound.samples.iter().any(|sample| sample.abs() > 0.05)
}

#[test]
fn a_sentence_becomes_a_sound_of_its_length() {
    let Some(voice) = real_voice() else { return };
    let sound = voice.speak("The key of the bicycle is in the blue box.", NEVER).unwrap().unwrap();
    assert_eq!((sound.rate, sound.channels), (22_050, 1));
    // Ten words at 160 a minute: about 3.75 s.
    assert!((1.5..6.0).contains(&seconds(&sound)), "{}", seconds(&sound));
    assert!(is_loud(&sound));
    assert!(sound.samples.iter().all(|sample| (-1.0..=1.0).contains(sample)));
}

#[test]
fn a_faster_voice_is_shorter() {
    let Some(slow) = real_voice() else { return };
    let fast = Voice::find(&ActConfig { words_per_minute: 320, ..ActConfig::default() }).voice();
    let length = |voice: &Voice| seconds(&voice.speak("One two three four five six.", NEVER).unwrap().unwrap());
    assert!(length(&fast) < 0.75 * length(&slow), "{} {}", length(&fast), length(&slow));
}

#[test]
fn text_that_looks_like_options_quotes_or_markup_is_spoken() {
    let Some(voice) = real_voice() else { return };
    for sentence in [
        "-5 degrees outside.",
        "--voices",
        "He said \"hello\" and 'bye'; $HOME `date` \\ |",
        "First line.\nSecond line.",
        "3 < 5 and <b>bold</b>",
        "Great 😀 news 👍!",
        "Größe und Übermut.",
    ] {
        let sound = voice.speak(sentence, NEVER).unwrap().unwrap();
        assert!(is_loud(&sound) && seconds(&sound) > 0.3, "{sentence}: {} s", seconds(&sound));
    }
    let one = seconds(&voice.speak("First line.", NEVER).unwrap().unwrap());
    let two = seconds(&voice.speak("First line.\nSecond line.", NEVER).unwrap().unwrap());
    assert!(two > 1.5 * one, "the second line is spoken as well: {one} {two}");
}

#[test]
fn two_thousand_characters_are_spoken_whole() {
    let Some(voice) = real_voice() else { return };
    let sound = voice.speak(&"word ".repeat(400), NEVER).unwrap().unwrap();
    // 400 words at 160 a minute: about 150 s.
    assert!((75.0..250.0).contains(&seconds(&sound)), "{}", seconds(&sound));
    let tail = sound.samples.len() - 22_050 * 5;
    assert!(sound.samples[tail..].iter().any(|sample| sample.abs() > 0.05), "it ends in speech, not in nothing");
    let most = "word ".repeat(900);
    assert!(matches!(voice.speak(&most, NEVER), Err(VoiceError::TooLong { most: 4_000, .. })));
}

#[test]
fn nothing_to_say_is_no_error() {
    let Some(voice) = real_voice() else { return };
    for sentence in ["", "   ", "***", "<br>", "😀", "…"] {
        assert_eq!(voice.speak(sentence, NEVER), Ok(None), "{sentence:?}");
    }
}

#[test]
fn an_unknown_voice_is_told_with_the_near_ones() {
    if real_voice().is_none() {
        return;
    }
    let report = Voice::find(&ActConfig { voice_name: "en-uk".into(), ..ActConfig::default() });
    match report.muteness() {
        Some(Muteness::UnknownVoice { voice, near }) => {
            assert_eq!(voice, "en-uk");
            assert!(near.iter().any(|name| name == "en-us"), "{near:?}");
        }
        other => panic!("{other:?}"),
    }
    for voice_name in ["en", "en-us+f3", "de"] {
        let report = Voice::find(&ActConfig { voice_name: voice_name.into(), ..ActConfig::default() });
        assert!(report.muteness().is_none(), "{report:?}");
    }
    let report = Voice::find(&ActConfig { voice_name: "en-us+zz".into(), ..ActConfig::default() });
    assert!(matches!(report.muteness(), Some(Muteness::UnknownVoice { .. })), "{report:?}");
    // A name that looks like an option is still only a name.
    let report = Voice::find(&ActConfig { voice_name: "--version".into(), ..ActConfig::default() });
    assert!(matches!(report.muteness(), Some(Muteness::UnknownVoice { .. })), "{report:?}");
}

/// A program in place of espeak-ng.
fn program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("voice.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_voice_that_hangs_is_ended_at_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    // The child of the child holds the pipe open as well.
    let espeak = Espeak::new(program(folder.path(), "sleep 600"), "en-us", 160);
    let before = Instant::now();
    let result = espeak.with_deadline(Duration::from_millis(300)).synthesise("Hello.", NEVER);
    assert_eq!(result, Err(VoiceError::TimedOut));
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[test]
fn a_stopped_voice_ends_soon_and_takes_its_children_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
    let espeak = Espeak::new(program(folder.path(), &script), "en-us", 160);
    let before = Instant::now();
    let child = || std::fs::read_to_string(&pid_file).ok().filter(|text| text.ends_with('\n'));
    let result = espeak.synthesise("Hello.", &|| child().is_some());
    assert_eq!(result, Err(VoiceError::Stopped));
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    let alive = || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", child().unwrap().trim()));
        // Killed but not yet collected by init counts as gone.
        status.is_ok_and(|status| !status.contains(") Z "))
    };
    let until = Instant::now() + Duration::from_secs(5);
    while alive() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!alive(), "the voice's child is still running");
}

#[test]
fn a_voice_that_fails_says_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let espeak = Espeak::new(program(folder.path(), "echo 'out of breath' >&2; exit 3"), "en-us", 160);
    match Voice::try_out(espeak) {
        VoiceReport::Mute(Muteness::Broken { why }) => {
            assert!(why.contains("out of breath") && why.contains('3'), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn forty_sentences_of_the_real_voice_arrive_whole() {
    let Some(voice) = real_voice() else { return };
    let sim =
        Arc::new(Sim::silent_room(Clock::scripted(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC)).paced(false));
    let mouth = Mouth::start(Arc::clone(&sim) as Arc<dyn Robot>, voice).unwrap();
    let sentences: Vec<String> = (0..40).map(|number| format!("This is sentence {number} of forty.")).collect();
    for sentence in &sentences {
        mouth.speak(7, sentence.clone()).await.unwrap();
    }
    assert_eq!(mouth.finished(7).await.unwrap().sentences, sentences);
    let journal = sim.journal();
    assert_eq!(journal.sentences(), sentences);
    let plays = journal.deeds.iter().filter_map(|deed| match deed.what {
        Doing::Plays { millis, stopped: false } => Some(millis),
        _ => None,
    });
    let plays: Vec<u64> = plays.collect();
    assert_eq!(plays.len(), 40);
    assert!(plays.iter().all(|millis| (800..6_000).contains(millis)), "{plays:?}");
}
