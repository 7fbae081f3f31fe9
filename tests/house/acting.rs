//! The mouth and the motion, with a body and a voice that are slow or broken on purpose.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reachy_remembers::act::{ActError, Motion, Mouth, Movement, Muteness, Synthesiser, Voice, VoiceError};
use reachy_remembers::robot::day::Day;
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::robot::{Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};

/// Writes down what it plays; plays in no time, or as long as `slow` says, or not at all.
#[derive(Default)]
struct Body {
    said: Mutex<Vec<String>>,
    played: Mutex<Vec<usize>>,
    slow: Duration,
    playing: AtomicBool,
    broken_speaker: bool,
    panics: bool,
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
        assert!(!self.panics, "the body's own fault");
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
        assert!(!self.panics, "the body's own fault");
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

#[tokio::test]
async fn a_body_whose_calls_panic_leaves_typed_errors_and_nobody_waiting() {
    let body = Arc::new(Body { panics: true, ..Body::default() });
    let motion = Motion::start(Arc::clone(&body) as Arc<dyn Robot>, true).unwrap();
    let (mouth, _) = mouth_of(&body, Fake::default());
    for _ in 0..2 {
        let nod = motion.make(Movement::Gesture(Gesture::Nod)).await;
        assert!(matches!(nod, Err(ActError::Gone { part: "motion" })));
    }
    mouth.speak(1, "Hello.").await.unwrap();
    let finished = mouth.finished(1).await;
    assert!(matches!(finished, Err(ActError::Gone { part: "mouth" })));
    // The voice notices with the next sentence that nobody plays it, and then refuses the rest.
    let refused = async { while mouth.speak(2, "Hello?").await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(5), refused).await.unwrap();
}
