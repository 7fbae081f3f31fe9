//! Speaking and moving: the real voice where it is installed, stand-ins for it where it must be slow or broken.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reachy_remembers::act::espeak::Espeak;
use reachy_remembers::act::{
    ActError, Motion, Mouth, Movement, Muteness, Synthesiser, Voice, VoiceError, VoiceReport,
};
use reachy_remembers::clock::Clock;
use reachy_remembers::config::ActConfig;
use reachy_remembers::robot::day::Day;
use reachy_remembers::robot::sim::{Doing, Sim};
use reachy_remembers::robot::{Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};

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

// ------------------------------------------------------------------------------------------------------- the mouth

/// Writes down what it plays; plays in no time, or as long as `slow` says, or not at all.
#[derive(Default)]
struct Body {
    said: Mutex<Vec<String>>,
    played: Mutex<Vec<usize>>,
    slow: Duration,
    playing: AtomicBool,
    broken_speaker: bool,
    gestures: Mutex<Vec<Gesture>>,
    gesture_takes: Duration,
}

impl Robot for Body {
    fn describe(&self) -> String {
        "a body for tests".into()
    }

    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        Ok(MicrophoneRead::Ended)
    }

    fn picture(&self) -> Result<Picture, RobotError> {
        Err(RobotError::Missing { part: "camera", why: "none".into() })
    }

    fn play(&self, sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError> {
        if self.broken_speaker {
            return Err(RobotError::Failed { part: "speaker", why: "no power".into() });
        }
        self.playing.store(true, Ordering::SeqCst);
        let until = Instant::now() + self.slow;
        while Instant::now() < until && !stop() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.played.lock().unwrap().push(sound.samples.len());
        self.playing.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn say(&self, sentence: &str) {
        self.said.lock().unwrap().push(sentence.to_owned());
    }

    fn gesture(&self, gesture: Gesture) -> Result<(), RobotError> {
        self.gestures.lock().unwrap().push(gesture);
        std::thread::sleep(self.gesture_takes);
        Ok(())
    }

    fn look(&self, _direction: Direction) -> Result<(), RobotError> {
        Err(RobotError::Failed { part: "motors", why: "they are off".into() })
    }

    fn rest(&self) {}
}

/// A voice whose sound has one sample a character.
#[derive(Default)]
struct Fake {
    takes: Duration,
    made: AtomicUsize,
    /// Whether the body was playing while a sentence was made.
    overlapped: AtomicBool,
    body: Option<Arc<Body>>,
}

impl Synthesiser for Fake {
    fn synthesise(&self, words: &str, _stop: &dyn Fn() -> bool) -> Result<Sound, VoiceError> {
        std::thread::sleep(self.takes);
        self.made.fetch_add(1, Ordering::SeqCst);
        if self.body.as_ref().is_some_and(|body| body.playing.load(Ordering::SeqCst)) {
            self.overlapped.store(true, Ordering::SeqCst);
        }
        if words.contains("hiccup") {
            return Err(VoiceError::Failed { why: "a hiccup".into() });
        }
        Ok(Sound { samples: vec![0.1; words.len()], rate: 16_000, channels: 1 })
    }
}

fn mouth_of(body: &Arc<Body>, fake: Fake) -> (Mouth, Arc<Fake>) {
    let fake = Arc::new(fake);
    let robot: Arc<dyn Robot> = Arc::clone(body) as Arc<dyn Robot>;
    (Mouth::start(robot, Voice::from_synthesiser(Arc::clone(&fake) as Arc<dyn Synthesiser>)).unwrap(), fake)
}

#[tokio::test]
async fn only_the_first_words_were_spoken() {
    // A long reply through a slow voice arrives whole and in order.
    let body = Arc::new(Body { slow: Duration::from_millis(3), ..Body::default() });
    let (mouth, _) = mouth_of(&body, Fake { takes: Duration::from_millis(5), ..Fake::default() });
    let sentences: Vec<String> = (0..100).map(|number| format!("Sentence number {number}.")).collect();
    for sentence in &sentences {
        mouth.speak(1, sentence.clone()).await.unwrap();
    }
    let spoken = mouth.finished(1).await.unwrap();
    assert_eq!(spoken.sentences, sentences);
    assert!(!spoken.interrupted && spoken.mute.is_none());
    assert_eq!(*body.said.lock().unwrap(), sentences);
    let lengths: Vec<usize> = sentences.iter().map(String::len).collect();
    assert_eq!(*body.played.lock().unwrap(), lengths);
}

#[tokio::test]
async fn forty_sentences_of_the_real_voice_arrive_whole() {
    let Some(voice) = real_voice() else { return };
    let sim = Arc::new(Sim::silent_room(Clock::scripted(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC)).paced(false));
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

#[tokio::test]
async fn the_next_sentence_is_made_while_this_one_plays() {
    let body = Arc::new(Body { slow: Duration::from_millis(60), ..Body::default() });
    let fake = Fake { takes: Duration::from_millis(20), body: Some(Arc::clone(&body)), ..Fake::default() };
    let (mouth, fake) = mouth_of(&body, fake);
    for number in 0..3 {
        mouth.speak(1, format!("Number {number}.")).await.unwrap();
    }
    mouth.finished(1).await.unwrap();
    assert!(fake.overlapped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn the_conversation_went_on_after_stop() {
    let body = Arc::new(Body { slow: Duration::from_secs(30), ..Body::default() });
    let (mouth, _) = mouth_of(&body, Fake::default());
    for sentence in ["One.", "Two.", "Three."] {
        mouth.speak(1, sentence).await.unwrap();
    }
    while !body.playing.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = Instant::now();
    mouth.stop();
    // A sentence that was already on its way does not start it again.
    mouth.speak(1, "Four.").await.unwrap();
    let spoken = mouth.finished(1).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    assert!(spoken.sentences.is_empty(), "the first was cut: {spoken:?}");
    assert!(spoken.interrupted);
    assert_eq!(*body.said.lock().unwrap(), ["One."], "nothing was begun after the stop");
}

#[tokio::test]
async fn the_turn_after_a_stop_is_heard() {
    let body = Arc::new(Body::default());
    let (mouth, _) = mouth_of(&body, Fake::default());
    mouth.stop_turn(1);
    mouth.speak(1, "Old.").await.unwrap();
    assert!(mouth.finished(1).await.unwrap().interrupted);
    mouth.speak(2, "New.").await.unwrap();
    let spoken = mouth.finished(2).await.unwrap();
    assert_eq!(spoken.sentences, ["New."]);
    assert!(!spoken.interrupted);
    assert_eq!(*body.said.lock().unwrap(), ["New."]);
}

#[tokio::test]
async fn a_mute_robot_still_answers_in_text_and_says_why_it_is_mute() {
    let body = Arc::new(Body::default());
    let voice = Voice::mute(Muteness::ProgramMissing { program: "espeak-ng".into() });
    let mouth = Mouth::start(Arc::clone(&body) as Arc<dyn Robot>, voice).unwrap();
    mouth.speak(1, "Hello.").await.unwrap();
    let spoken = mouth.finished(1).await.unwrap();
    assert_eq!(spoken.sentences, ["Hello."]);
    assert!(spoken.mute.is_some_and(|why| why.contains("apt install espeak-ng")));
    assert_eq!(*body.said.lock().unwrap(), ["Hello."]);
    assert!(body.played.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_sentence_that_fails_does_not_silence_the_rest() {
    let body = Arc::new(Body::default());
    let (mouth, _) = mouth_of(&body, Fake::default());
    for sentence in ["One.", "A hiccup.", "***", "Three."] {
        mouth.speak(1, sentence).await.unwrap();
    }
    let spoken = mouth.finished(1).await.unwrap();
    assert_eq!(spoken.sentences, ["One.", "A hiccup.", "***", "Three."]);
    assert_eq!(spoken.mute.as_deref(), Some("a hiccup"));
    assert_eq!(body.played.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_broken_speaker_is_told_and_the_turn_ends() {
    let body = Arc::new(Body { broken_speaker: true, ..Body::default() });
    let (mouth, _) = mouth_of(&body, Fake::default());
    mouth.speak(1, "Hello.").await.unwrap();
    let spoken = mouth.finished(1).await.unwrap();
    assert!(spoken.mute.is_some_and(|why| why.contains("speaker") && why.contains("no power")));
}

#[tokio::test]
async fn a_turn_that_said_nothing_ends_at_once_and_no_turn_gets_anothers_words() {
    let body = Arc::new(Body::default());
    let (mouth, _) = mouth_of(&body, Fake::default());
    assert_eq!(mouth.finished(1).await.unwrap(), Default::default());
    mouth.speak(2, "Two.").await.unwrap();
    mouth.speak(3, "Three.").await.unwrap();
    assert_eq!(mouth.finished(3).await.unwrap().sentences, ["Three."]);
    assert_eq!(mouth.finished(3).await.unwrap(), Default::default(), "fetched already");
}

// ---------------------------------------------------------------------------------------------------------- motion

#[tokio::test]
async fn of_many_gestures_the_newest_wins_and_the_others_are_told() {
    let body = Arc::new(Body { gesture_takes: Duration::from_millis(150), ..Body::default() });
    let motion = Arc::new(Motion::start(Arc::clone(&body) as Arc<dyn Robot>, true).unwrap());
    let ask = |gesture| {
        let motion = Arc::clone(&motion);
        tokio::spawn(async move { motion.make(Movement::Gesture(gesture)).await })
    };
    let first = ask(Gesture::Nod);
    while body.gestures.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = ask(Gesture::Shake);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let third = ask(Gesture::Dance);
    assert!(first.await.unwrap().is_ok());
    assert!(matches!(second.await.unwrap(), Err(ActError::Superseded)));
    assert!(third.await.unwrap().is_ok());
    assert_eq!(*body.gestures.lock().unwrap(), [Gesture::Nod, Gesture::Dance]);
}

#[tokio::test]
async fn moving_does_not_wait_for_a_long_sentence() {
    let body = Arc::new(Body { slow: Duration::from_secs(30), ..Body::default() });
    let (mouth, _) = mouth_of(&body, Fake::default());
    let motion = Motion::start(Arc::clone(&body) as Arc<dyn Robot>, true).unwrap();
    mouth.speak(1, "A very long story.").await.unwrap();
    let before = Instant::now();
    motion.make(Movement::Gesture(Gesture::Nod)).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    mouth.stop();
}

#[tokio::test]
async fn a_movement_that_did_not_happen_is_an_error() {
    let body = Arc::new(Body::default());
    let motion = Motion::start(Arc::clone(&body) as Arc<dyn Robot>, false).unwrap();
    let looked = motion.make(Movement::Look(Direction::Left)).await;
    assert!(matches!(looked, Err(ActError::Robot(RobotError::Failed { part: "motors", .. }))));
    assert!(matches!(motion.make(Movement::Gesture(Gesture::Nod)).await, Err(ActError::GesturesOff)));
    assert!(body.gestures.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_move_with_motors_off_is_an_error_in_the_simulated_day() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.toml");
    let script = "title = \"t\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n[[event]]\nat = \"08:05\"\n\
                  fault = \"motors-off\"\nfor_s = 60\n";
    std::fs::write(&path, script).unwrap();
    let day = Day::load(&path).unwrap();
    let sim = Arc::new(Sim::new(&day, 0, day.clock(0).unwrap()).unwrap());
    let motion = Motion::start(Arc::clone(&sim) as Arc<dyn Robot>, true).unwrap();
    assert!(motion.make(Movement::Gesture(Gesture::Nod)).await.is_ok());
    sim.hear().unwrap();
    let refused = motion.make(Movement::Gesture(Gesture::Nod)).await.unwrap_err();
    assert!(refused.to_string().contains("motors"), "{refused}");
    sim.clock().advance(jiff::SignedDuration::from_secs(61));
    assert!(motion.make(Movement::Gesture(Gesture::Nod)).await.is_ok());
}
