//! Transcription: one utterance → [`Heard`], by Whisper on an operating-system thread of its own.
//!
//! Anybody may hold a [`Whisper`] (in an `Arc`) and ask it; the model lives on its thread alone. One utterance is
//! transcribed at a time and ONE may wait; a third is refused with [`HearError::Busy`] at once. So an utterance
//! that ends while the one before is still being transcribed is not lost, and a caller that hands in faster than
//! Whisper works holds no more than two utterances here. A caller that goes away cancels its request. When the
//! thread dies, every request is answered with [`HearError::Dead`], and the robot is deaf until the service
//! starts again.
//!
//! Settings, measured with tiny.en on spoken sentences and on six minutes of noise: greedy, no second try at another
//! temperature, no context from before, one segment, at most [`MOST_TOKENS`] tokens; timestamps ON and non-speech
//! tokens allowed, because the other way round every noise became words.

mod engine;
mod file;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use thiserror::Error;
use tokio::sync::oneshot;

use engine::Engine;

use super::reject::Rejection;
use super::{Heard, RATE, Utterance};
use crate::config::ListenConfig;

/// Tokens of one utterance at most; fifteen seconds of fast speech are about 60.
pub const MOST_TOKENS: u32 = 64;
/// Sound shorter than this is refused: whisper.cpp takes nothing under 100 ms, and older versions crashed on it.
pub const SHORTEST_MS: u64 = 100;
/// Sound longer than this is refused: the model's window is 30 s.
pub const LONGEST_MS: u64 = 29_500;
/// Requests at once: one that runs and one that waits.
const OPEN: usize = 2;
/// Most threads that may be asked for; the robot has four cores.
pub const MOST_THREADS: u32 = 64;

/// Why there is no recogniser.
#[derive(Debug, Error)]
pub enum WhisperError {
    #[error("the speech model {} cannot be read: {source}; `reachy-remembers models fetch` gets it", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is no speech model in ggml format, or is damaged ({why}); `reachy-remembers models verify` checks it", path.display())]
    NoModel { path: PathBuf, why: String },
    #[error("{} was said to know {said}, but it knows {found}; correct the model's entry", path.display())]
    OtherLanguages { path: PathBuf, said: &'static str, found: &'static str },
    #[error("listen.language is `{language}`, but this speech model knows {known}; choose another language or model")]
    Language { language: String, known: &'static str },
    #[error("{threads} threads for the speech model cannot be used; limits.whisper_threads may be 1 to {MOST_THREADS}")]
    Threads { threads: u32 },
    #[error("the speech model's thread could not be started: {source}")]
    Thread { source: std::io::Error },
    #[error("the speech model's thread died while it loaded the model")]
    Died,
}

/// Why there is no text for an utterance.
#[derive(Debug, Error)]
pub enum HearError {
    /// Nobody said anything that counts; go on listening.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// One utterance is being transcribed and one waits; drop this one or ask again later.
    #[error("the speech model is busy: one utterance is being transcribed and one waits")]
    Busy,
    /// [`Whisper::abort`] was called, or the caller went away.
    #[error("the transcription was stopped")]
    Aborted,
    #[error("{millis} ms of sound are too short to be speech; at least {SHORTEST_MS} ms are needed")]
    TooShort { millis: u64 },
    #[error("{millis} ms of sound are too long for one utterance; at most {LONGEST_MS} ms are taken")]
    TooLong { millis: u64 },
    #[error("sample {index} of the utterance is no number")]
    NoNumber { index: usize },
    /// This utterance failed; the next one may work.
    #[error("the speech model failed: {why}")]
    Failed { why: String },
    /// Only a new start helps.
    #[error("the speech model's thread has died; restart the service")]
    Dead,
}

/// A handle on the recogniser. Dropping it stops what runs and waits for the thread to end.
pub struct Whisper {
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// What the handle and the thread share. Requests are numbered from 1.
#[derive(Debug, Default)]
struct Control {
    desk: Mutex<Desk>,
    /// Something on the desk changed.
    changed: Condvar,
    /// Number of the request that runs, or 0.
    running: AtomicU64,
    /// This request is not wanted any more.
    unwanted: AtomicU64,
}

#[derive(Debug, Default)]
struct Desk {
    newest: u64,
    waiting: VecDeque<Job>,
    /// The thread is at work; `reply` is gone when the request was aborted meanwhile.
    working: bool,
    reply: Option<Reply>,
    /// The handle is gone: the thread ends.
    closed: bool,
    /// The thread is gone.
    dead: bool,
}

#[derive(Debug)]
struct Job {
    number: u64,
    utterance: Utterance,
    reply: Reply,
}

impl Control {
    /// No code panics while it holds this lock, and the desk is whole at any moment.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the request that runs shall stop.
    fn stops(&self) -> bool {
        self.running.load(Ordering::Acquire) == self.unwanted.load(Ordering::Acquire)
    }

    fn hand_in(&self, utterance: Utterance, reply: Reply) -> Result<u64, HearError> {
        let mut desk = self.desk();
        if desk.dead {
            return Err(HearError::Dead);
        }
        desk.waiting.retain(|job| !job.reply.is_closed());
        if desk.waiting.len() + usize::from(desk.working) >= OPEN {
            return Err(HearError::Busy);
        }
        desk.newest += 1;
        let number = desk.newest;
        desk.waiting.push_back(Job { number, utterance, reply });
        self.changed.notify_one();
        Ok(number)
    }

    /// Waits for the next request; its reply stays on the desk. `None`: the handle is gone.
    fn next(&self) -> Option<Utterance> {
        let mut desk = self.desk();
        loop {
            if desk.closed {
                return None;
            }
            if let Some(Job { number, utterance, reply }) = desk.waiting.pop_front() {
                if reply.is_closed() {
                    continue;
                }
                desk.working = true;
                desk.reply = Some(reply);
                self.running.store(number, Ordering::Release);
                return Some(utterance);
            }
            desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, result: Result<Heard, HearError>) {
        let reply = {
            let mut desk = self.desk();
            desk.working = false;
            desk.reply.take()
        };
        if let Some(reply) = reply {
            reply.give(result);
        }
    }

    fn abort(&self) {
        let mut desk = self.desk();
        if desk.working {
            self.unwanted.store(self.running.load(Ordering::Acquire), Ordering::Release);
        }
        let running = desk.reply.take();
        let waiting: Vec<Reply> = desk.waiting.drain(..).map(|job| job.reply).collect();
        drop(desk);
        for reply in running.into_iter().chain(waiting) {
            reply.give(Err(HearError::Aborted));
        }
    }
}

#[derive(Debug)]
enum Reply {
    Async(oneshot::Sender<Result<Heard, HearError>>),
    Blocking(SyncSender<Result<Heard, HearError>>),
}

impl Reply {
    fn is_closed(&self) -> bool {
        matches!(self, Self::Async(sender) if sender.is_closed())
    }

    /// A caller that went away needs no answer.
    fn give(self, result: Result<Heard, HearError>) {
        match self {
            Self::Async(sender) => drop(sender.send(result)),
            Self::Blocking(sender) => drop(sender.send(result)),
        }
    }
}

impl Whisper {
    /// Loads the model and starts its thread; blocks until it is ready (tenths of a second).
    ///
    /// `english_only` is what the model's entry says: it decides whether `listen.language` may be another one and
    /// whether the model's "no speech" means anything. `threads` is `limits.whisper_threads`.
    ///
    /// # Errors
    /// [`WhisperError`].
    pub fn start(
        model_path: &Path,
        english_only: bool,
        config: &ListenConfig,
        threads: u32,
    ) -> Result<Self, WhisperError> {
        if threads == 0 || threads > MOST_THREADS {
            return Err(WhisperError::Threads { threads });
        }
        let control = Arc::new(Control::default());
        let (ready, loaded) = mpsc::sync_channel(1);
        let (path, config) = (model_path.to_owned(), config.clone());
        let shared = Arc::clone(&control);
        let thread = std::thread::Builder::new()
            .name("whisper".into())
            .spawn(move || {
                let _end = End(Arc::clone(&shared));
                match Engine::load(&path, english_only, config, threads, Arc::clone(&shared)) {
                    Ok(mut engine) => {
                        drop(ready.send(Ok(())));
                        while let Some(utterance) = shared.next() {
                            shared.finish(engine.transcribe(&utterance));
                        }
                    }
                    Err(error) => drop(ready.send(Err(error))),
                }
            })
            .map_err(|source| WhisperError::Thread { source })?;
        loaded.recv().map_err(|_| WhisperError::Died)??;
        Ok(Self { control, thread: Some(thread) })
    }

    /// Transcribes an utterance. Dropping the future stops the work on it.
    ///
    /// # Errors
    /// [`HearError`]; [`HearError::Rejected`] means that nobody said anything that counts.
    pub async fn transcribe(&self, utterance: Utterance) -> Result<Heard, HearError> {
        let (reply, answer) = oneshot::channel();
        let number = self.hand_in(utterance, Reply::Async(reply))?;
        let _guard = Abandon { control: &self.control, number };
        answer.await.map_err(|_| HearError::Dead)?
    }

    /// The same, for callers outside of tokio.
    ///
    /// # Errors
    /// As [`Whisper::transcribe`].
    pub fn transcribe_blocking(&self, utterance: Utterance) -> Result<Heard, HearError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.hand_in(utterance, Reply::Blocking(reply))?;
        answer.recv().map_err(|_| HearError::Dead)?
    }

    /// Stops what is being transcribed and what waits; both callers get [`HearError::Aborted`] at once. Later
    /// requests are not concerned. The thread itself is free after the step that it is in: whisper.cpp asks whether
    /// to stop between encoding and each token, and encoding takes most of a short utterance's time.
    pub fn abort(&self) {
        self.control.abort();
    }

    fn hand_in(&self, utterance: Utterance, reply: Reply) -> Result<u64, HearError> {
        check(&utterance.samples)?;
        self.control.hand_in(utterance, reply)
    }
}

impl Drop for Whisper {
    fn drop(&mut self) {
        self.control.desk().closed = true;
        self.control.abort();
        self.control.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the speech model's thread ended by a panic");
        }
    }
}

/// Tells the thread when the caller of a request is gone.
struct Abandon<'a> {
    control: &'a Control,
    number: u64,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let desk = self.control.desk();
        if desk.working && self.control.running.load(Ordering::Acquire) == self.number {
            self.control.unwanted.store(self.number, Ordering::Release);
        }
    }
}

/// What whisper.cpp must not be given.
fn check(samples: &[f32]) -> Result<(), HearError> {
    let millis = samples.len() as u64 * 1000 / u64::from(RATE);
    if millis < SHORTEST_MS {
        return Err(HearError::TooShort { millis });
    }
    if millis > LONGEST_MS {
        return Err(HearError::TooLong { millis });
    }
    match samples.iter().position(|sample| !sample.is_finite()) {
        Some(index) => Err(HearError::NoNumber { index }),
        None => Ok(()),
    }
}

/// The thread is over, by its end or by a panic: every reply is dropped, which its caller reads as
/// [`HearError::Dead`].
struct End(Arc<Control>);

impl Drop for End {
    fn drop(&mut self) {
        let mut desk = self.0.desk();
        desk.dead = true;
        desk.reply = None;
        desk.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_that_could_crash_the_model_is_refused_before_it() {
        assert!(matches!(check(&[]), Err(HearError::TooShort { millis: 0 })));
        assert!(matches!(check(&[0.0]), Err(HearError::TooShort { millis: 0 })));
        assert!(matches!(check(&[0.0; 1584]), Err(HearError::TooShort { millis: 99 })));
        assert!(check(&[0.0; 1600]).is_ok());
        assert!(matches!(check(&vec![0.0; 16_000 * 30]), Err(HearError::TooLong { millis: 30_000 })));
        let mut samples = vec![0.0; 1600];
        samples[7] = f32::NAN;
        assert!(matches!(check(&samples), Err(HearError::NoNumber { index: 7 })));
    }

    #[test]
    fn a_model_that_is_not_there_or_is_none_is_said_so() {
        let config = ListenConfig::default();
        let start = |path: &Path, threads| Whisper::start(path, true, &config, threads).err().unwrap();
        assert!(matches!(start(Path::new("/nowhere/ggml.bin"), 1), WhisperError::Unreadable { .. }));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ggml-text.bin");
        std::fs::write(&path, "this is a text").unwrap();
        assert!(matches!(start(&path, 1), WhisperError::NoModel { .. }));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(start(&path, 1), WhisperError::NoModel { .. }));
        assert!(matches!(start(&path, 0), WhisperError::Threads { threads: 0 }));
    }

    fn asked(control: &Control) -> (Result<u64, HearError>, mpsc::Receiver<Result<Heard, HearError>>) {
        let (reply, answer) = mpsc::sync_channel(1);
        let at = jiff::Timestamp::UNIX_EPOCH;
        let utterance = Utterance { samples: vec![], started_at: at, ended_at: at };
        (control.hand_in(utterance, Reply::Blocking(reply)), answer)
    }

    #[test]
    fn one_runs_one_waits_and_the_third_is_refused() {
        let control = Control::default();
        let (first, _answer) = asked(&control);
        assert!(first.is_ok());
        let (second, _answer) = asked(&control);
        assert!(second.is_ok(), "also when the thread has not yet taken the first");
        assert!(matches!(asked(&control).0, Err(HearError::Busy)));
        control.next();
        assert!(matches!(asked(&control).0, Err(HearError::Busy)));
        control.finish(Err(HearError::Aborted));
        assert!(asked(&control).0.is_ok());
    }

    #[test]
    fn a_stop_answers_at_once_and_concerns_what_was_handed_in_before_it_only() {
        let control = Control::default();
        let (_, first) = asked(&control);
        control.next();
        let (_, second) = asked(&control);
        assert!(!control.stops());
        control.abort();
        assert!(control.stops());
        for answer in [first, second] {
            assert!(matches!(answer.try_recv(), Ok(Err(HearError::Aborted))));
        }
        for _ in 0..5 {
            assert!(asked(&control).0.is_ok(), "stop after stop leaves a place free");
            control.abort();
        }
        let (later, answer) = asked(&control);
        assert!(later.is_ok());
        control.finish(Err(HearError::Aborted));
        control.next();
        assert!(!control.stops());
        assert!(answer.try_recv().is_err(), "the later one has no answer yet");
    }

    #[test]
    fn when_the_thread_is_gone_everybody_learns_it() {
        let control = Arc::new(Control::default());
        let (_, running) = asked(&control);
        control.next();
        let (_, waiting) = asked(&control);
        drop(End(Arc::clone(&control)));
        assert!(running.recv().is_err() && waiting.recv().is_err());
        assert!(matches!(asked(&control).0, Err(HearError::Dead)));
    }
}
