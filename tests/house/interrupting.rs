//! Speaking over the robot: the whole service against a model that goes on for ever, with real voice activity. The body
//! is a stand-in whose microphone plays a recorded sentence while it speaks; its voice is a tone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reachy_remembers::clock::Clock;
use reachy_remembers::config::Config;
use reachy_remembers::daemon::{self, Event};
use reachy_remembers::listen::RATE;
use reachy_remembers::listen::sound::{read_wav, to_16k_mono};
use reachy_remembers::robot::{Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};
use serde_json::json;

use crate::scripted_server::{ScriptedServer, Step};
use crate::weights;

/// A read of the microphone: the SDK gives 10 ms at a time.
const READ: usize = RATE as usize / 100;

/// A body that hears a question, and, once it speaks, is spoken over.
struct Body {
    question: Vec<f32>,
    interruption: Vec<f32>,
    heard: Mutex<Heard>,
    speaks: AtomicBool,
    /// Sentences whose sound was played to its end, and those that were begun.
    played: AtomicUsize,
    /// When the voice was cut.
    cut: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Heard {
    at: usize,
    /// When the interruption's first sample was given, once it was.
    spoken_over: Option<(Instant, usize)>,
}

impl Body {
    fn new(question: Vec<f32>, interruption: Vec<f32>) -> Self {
        Self {
            question,
            interruption,
            heard: Mutex::default(),
            speaks: AtomicBool::new(false),
            played: AtomicUsize::new(0),
            cut: Mutex::default(),
        }
    }

    fn read(from: &[f32], at: usize) -> Vec<f32> {
        (at..at + READ).map(|sample| from.get(sample).copied().unwrap_or(1e-4)).collect()
    }
}

impl Robot for Body {
    fn describe(&self) -> String {
        "a stand-in that is spoken over".into()
    }

    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        std::thread::sleep(Duration::from_millis(10));
        let mut heard = self.heard.lock().unwrap();
        let samples = match heard.spoken_over {
            Some((_, from)) => Self::read(&self.interruption, heard.at - from),
            // The robot has said a sentence, and is at the next one.
            None if self.played.load(Ordering::Acquire) >= 1 && self.speaks.load(Ordering::Acquire) => {
                heard.spoken_over = Some((Instant::now(), heard.at));
                Self::read(&self.interruption, 0)
            }
            None => Self::read(&self.question, heard.at),
        };
        heard.at += READ;
        let at = Timestamp::now();
        if heard.spoken_over.is_some_and(|(_, from)| heard.at - from > self.interruption.len() + 3 * RATE as usize) {
            return Ok(MicrophoneRead::Ended);
        }
        Ok(MicrophoneRead::Sound { sound: Sound { samples, rate: RATE, channels: 1 }, at })
    }

    fn picture(&self) -> Result<Picture, RobotError> {
        Err(RobotError::Missing { part: "camera", why: "a stand-in".into() })
    }

    /// Every sentence takes 700 ms.
    fn play(&self, _sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError> {
        self.speaks.store(true, Ordering::Release);
        for _ in 0..70 {
            std::thread::sleep(Duration::from_millis(10));
            if stop() {
                self.speaks.store(false, Ordering::Release);
                self.cut.lock().unwrap().get_or_insert(Instant::now());
                return Ok(());
            }
        }
        self.speaks.store(false, Ordering::Release);
        self.played.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn gesture(&self, _: Gesture) -> Result<(), RobotError> {
        Ok(())
    }

    fn look(&self, _: Direction) -> Result<(), RobotError> {
        Ok(())
    }

    fn rest(&self) {}
}

fn recorded(name: &str) -> Vec<f32> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sounds").join(name);
    to_16k_mono(&read_wav(&path).unwrap()).unwrap()
}

fn delta(text: &str) -> Vec<u8> {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {event}\n\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_over_the_robots_own_stops_the_voice_and_the_stream_and_only_what_was_spoken_stays() {
    let models = weights::folder();
    if !weights::all_are_here() {
        return;
    }
    if std::process::Command::new("espeak-ng").arg("--version").output().is_err() {
        eprintln!("skipped: no espeak-ng");
        return;
    }
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    let for_ever = vec![
        Step::Send(head.clone()),
        Step::Send(delta("This is the first sentence. This is the second one. ")),
        Step::Repeat(delta("And on it goes, without an end. "), Duration::from_millis(50)),
    ];
    // The server is asked what it can do first: not found, twice.
    let not_found = || vec![Step::Send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec())];
    let short = vec![Step::Send(head), Step::Send(delta("All right.")), Step::Send(b"data: [DONE]\n\n".to_vec())];
    let server = ScriptedServer::start(vec![not_found(), not_found(), for_ever, short.clone(), short]).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.remember.folder = folder.path().join("memory");
    config.remember.min_free_mb = 10;
    config.models.folder = models;
    config.listen.barge_in = true;
    config.see.enabled = false;
    config.think.url = server.url.clone();

    let body = Arc::new(Body::new(recorded("garden.wav"), recorded("look.wav")));
    let events: Arc<Mutex<Vec<(Instant, Event)>>> = Arc::default();
    let kept = Arc::clone(&events);
    let diary: daemon::Diary = Arc::new(move |event| kept.lock().unwrap().push((Instant::now(), event.clone())));
    let robot: Arc<dyn Robot> = Arc::clone(&body) as Arc<dyn Robot>;
    let live = daemon::live(&config, robot, Clock::system(), diary);
    tokio::time::timeout(Duration::from_secs(90), live).await.expect("the day ends").unwrap();

    let (spoken_over, _) = body.heard.lock().unwrap().spoken_over.expect("it spoke, and was spoken over");
    let events = events.lock().unwrap().clone();
    let cut = body.cut.lock().unwrap().expect("the voice was cut");
    let stopped = events.iter().find(|(_, event)| matches!(event, Event::Interrupted)).expect("it noticed").0;
    eprintln!("noticed after {:?}, silent after {:?}", stopped - spoken_over, cut - spoken_over);
    // The recording begins with some quiet; 300 ms count from the first sound in it.
    let quiet =
        recorded("look.wav").iter().position(|sample| sample.abs() > 0.02).unwrap() as u64 * 1000 / u64::from(RATE);
    let within = Duration::from_millis(quiet + 300);
    assert!(cut - spoken_over < within, "the voice went on for {:?} of {within:?}", cut - spoken_over);
    assert!(server.hung_up_within(Duration::from_millis(100)).await, "the stream was not dropped");
    let report = events
        .iter()
        .find_map(|(_, event)| match event {
            Event::TurnEnded { report, .. } => Some(report.clone()),
            _ => None,
        })
        .unwrap();
    assert!(report.interrupted);
    assert_eq!(report.exchange.said, "This is the first sentence.", "the history holds what was not spoken");
    let asked = server.requests();
    let next = asked.iter().filter(|request| request.line.contains("chat/completions")).nth(1).expect("a second turn");
    let history = next.json()["messages"].to_string();
    assert!(history.contains("This is the first sentence.") && !history.contains("second one"), "{history}");
}
