//! How long the robot itself takes from the end of speech to the first byte of the request to the language model, beyond
//! the transcription: the whole service, real voice activity, real Whisper, and a server on this machine that notes when
//! the first byte came. The body is a stand-in whose microphone speaks with the robot's own voice.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::CliError;
use crate::act::Voice;
use crate::clock::Clock;
use crate::config::Config;
use crate::daemon::{self, Diary, Event};
use crate::listen::RATE;
use crate::listen::sound::to_16k_mono;
use crate::robot::{Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};

/// What is said to the robot, again and again.
const SENTENCE: &str = "I had tomato soup for lunch today, and it was very good.";
/// A read of the microphone, in samples: ten milliseconds, as the robot's SDK gives them.
const READ: usize = RATE as usize / 100;
/// A turn that takes longer is given up.
const LONGEST_TURN: Duration = Duration::from_secs(30);
/// Not quite silence, so that the microphone does not count as deaf.
const QUIET: f32 = 1e-4;

/// The robot's own time of some turns.
pub struct Reaction {
    /// Ascending, one a turn.
    pub own: Vec<Duration>,
    /// The transcriptions in the same turns, ascending.
    pub transcriptions: Vec<Duration>,
}

/// Lets the robot be spoken to `turns` times.
///
/// # Errors
/// [`CliError`] where a part is missing: the voice, the models that hear, or a free port.
pub async fn measure(config: &Config, turns: usize) -> Result<Reaction, CliError> {
    let folder = tempfile::tempdir().map_err(CliError::could_not)?;
    let report = Voice::find(&config.act);
    let spoken = report.voice().speak(SENTENCE, &|| false).map_err(CliError::could_not)?;
    let spoken = spoken.ok_or_else(|| CliError::could_not("the voice says nothing"))?;
    let body = Arc::new(Body {
        sentence: to_16k_mono(&spoken).map_err(CliError::could_not)?,
        turns,
        given: Mutex::default(),
        answered: AtomicUsize::new(0),
        began: Instant::now(),
    });
    let noted: Arc<Mutex<Noted>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(CliError::could_not)?;
    let address = listener.local_addr().map_err(CliError::could_not)?;
    let kept = Arc::clone(&noted);
    std::thread::spawn(move || serve(&listener, &kept));

    let mut config = config.clone();
    config.remember.folder = folder.path().join("memory");
    config.see.enabled = false;
    config.listen.enabled = true;
    config.think.url = format!("http://{address}/v1");
    let (kept, answers) = (Arc::clone(&noted), Arc::clone(&body));
    let diary: Diary = Arc::new(move |event| match event {
        Event::Heard { heard, after, .. } => {
            let transcription = Duration::from_millis(heard.transcribed_in_ms);
            lock(&kept).heard.push((Instant::now(), after.saturating_sub(transcription), transcription));
        }
        Event::TurnEnded { .. } | Event::NotHeard { .. } => {
            answers.answered.fetch_add(1, Ordering::AcqRel);
        }
        _ => {}
    });
    let robot: Arc<dyn Robot> = body;
    daemon::live(&config, robot, Clock::system(), diary).await.map_err(CliError::could_not)?;
    let reaction = lock(&noted).reaction();
    if reaction.own.is_empty() {
        return Err(CliError::could_not("the robot heard nothing of what was said to it"));
    }
    Ok(reaction)
}

/// What happened when.
#[derive(Default)]
struct Noted {
    /// When a turn began, the own time before it, and its transcription.
    heard: Vec<(Instant, Duration, Duration)>,
    /// When the first byte of a request for an answer came.
    asked: Vec<Instant>,
}

impl Noted {
    fn reaction(&self) -> Reaction {
        let first_byte = |begun: Instant| self.asked.iter().copied().filter(|asked| *asked >= begun).min();
        let mut own: Vec<Duration> = self
            .heard
            .iter()
            .filter_map(|(begun, before, _)| Some(*before + first_byte(*begun)?.duration_since(*begun)))
            .collect();
        let mut transcriptions: Vec<Duration> = self.heard.iter().map(|(_, _, took)| *took).collect();
        own.sort_unstable();
        transcriptions.sort_unstable();
        Reaction { own, transcriptions }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(listener: &TcpListener, noted: &Mutex<Noted>) {
    for stream in listener.incoming().flatten() {
        // A client that hangs up is none of the measurement's business.
        let _ = answer(stream, noted);
    }
}

/// Answers one request, and notes when its first byte came if it asks for an answer.
fn answer(mut stream: TcpStream, noted: &Mutex<Noted>) -> std::io::Result<()> {
    let mut request = vec![0; 1];
    stream.read_exact(&mut request)?;
    let first_byte = Instant::now();
    let mut buffer = [0; 16 * 1024];
    let head = loop {
        if let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
    };
    let words = String::from_utf8_lossy(&request[..head]).to_lowercase();
    let length = words.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    while request.len() < head + length.unwrap_or(0) {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
    if !words.starts_with("post") || !words.contains("/chat/completions http") {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
    lock(noted).asked.push(first_byte);
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
          data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"All right.\"}}]}\n\n\
          data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )
}

/// A body that is spoken to as soon as the turn before is over.
struct Body {
    sentence: Vec<f32>,
    turns: usize,
    /// The turn, and the samples that were given in it.
    given: Mutex<(usize, usize)>,
    /// Turns that are over.
    answered: AtomicUsize,
    began: Instant,
}

impl Robot for Body {
    fn describe(&self) -> String {
        "a stand-in that is spoken to".into()
    }

    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        std::thread::sleep(Duration::from_millis(10));
        let answered = self.answered.load(Ordering::Acquire);
        let given_up = LONGEST_TURN.saturating_mul(u32::try_from(answered + 1).unwrap_or(u32::MAX));
        if answered >= self.turns || self.began.elapsed() > given_up {
            return Ok(MicrophoneRead::Ended);
        }
        let mut given = lock(&self.given);
        if given.0 != answered {
            *given = (answered, 0);
        }
        // A second of quiet before the sentence, in which the ear opens again.
        let spoken = given.1.checked_sub(RATE as usize);
        given.1 += READ;
        let samples = (0..READ)
            .map(|sample| spoken.and_then(|spoken| self.sentence.get(spoken + sample)).copied().unwrap_or(QUIET))
            .collect();
        Ok(MicrophoneRead::Sound { sound: Sound { samples, rate: RATE, channels: 1 }, at: Timestamp::now() })
    }

    fn picture(&self) -> Result<Picture, RobotError> {
        Err(RobotError::Missing { part: "camera", why: "this is a stand-in".into() })
    }

    fn play(&self, _: &Sound, _: &dyn Fn() -> bool) -> Result<(), RobotError> {
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
