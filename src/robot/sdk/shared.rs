//! What the thread that owns Python shares with those who hear, see, speak and move.
//!
//! Short locks only: nobody asks Python or waits for anything but a change while holding one. Bounded: sound that
//! nobody takes pushes out the oldest, a picture that nobody takes is replaced by the next.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::State;
use super::link::{Pixels, Trouble};
use crate::robot::mover::Mover;
use crate::robot::pose::Pose;
use crate::robot::{Direction, Sound};

/// Most sound that waits for its listener, in milliseconds; what is older is dropped. The listening thread reads ten
/// times a second, and two seconds wait inside the SDK besides.
pub(super) const MOST_SOUND_MS: u64 = 5_000;
/// Most sound that is given at once, in milliseconds.
const GIVEN_MS: u64 = 100;
/// The microphone's clock is believed until it is off by this much, in milliseconds.
const DRIFT_MS: i64 = 100;

/// How the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Python is starting.
    Starting,
    /// There is no body, for good: why.
    Missing(String),
    /// Not connected just now: why.
    Lost(String),
    Connected,
}

/// A picture, and which one it is.
pub(super) struct Shot {
    pub number: u64,
    pub pixels: Result<Pixels, Trouble>,
    pub looked: Direction,
    pub at: Timestamp,
}

/// Everything that is shared.
pub(super) struct Body {
    pub link: Link,
    /// Versions of SDK and Python, once they are known.
    pub versions: String,
    pub state: State,
    pub mover: Option<Mover>,
    /// The newest pose that was sent.
    pub sent: Option<Pose>,
    /// Whether the newest pose went out.
    pub moves: bool,
    /// Why a pose was not sent, since somebody last looked.
    pub refused: Option<String>,
    pub sound: SoundQueue,
    pub shot: Option<Shot>,
    /// Whether somebody waits for a picture.
    pub wanted: bool,
    /// When Python last did anything.
    pub beat: Instant,
    /// When the microphone last gave anything.
    pub heard: Instant,
    /// When the gaze was last given a face, in seconds.
    pub gazed: f64,
    /// After the end nothing is heard any more.
    pub ended: bool,
}

pub(super) struct Shared {
    body: Mutex<Body>,
    changed: Condvar,
    began: Instant,
}

impl Shared {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let body = Body {
            link: Link::Starting,
            versions: String::new(),
            state: State::default(),
            mover: None,
            sent: None,
            moves: false,
            refused: None,
            sound: SoundQueue::default(),
            shot: None,
            wanted: false,
            beat: now,
            heard: now,
            gazed: f64::NEG_INFINITY,
            ended: false,
        };
        Self { body: Mutex::new(body), changed: Condvar::new(), began: now }
    }

    /// Every change under this lock is whole, whoever panics.
    pub(super) fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }

    /// The motion's time, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits for `what`, at most `most`.
    pub(super) fn wait<T>(&self, most: Duration, mut what: impl FnMut(&mut Body) -> Option<T>) -> Option<T> {
        let until = Instant::now() + most;
        let mut body = self.body();
        loop {
            if let Some(found) = what(&mut body) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            body = self.changed.wait_timeout(body, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sound that waits for its listener.
#[derive(Debug, Default)]
pub(super) struct SoundQueue {
    chunks: VecDeque<(Sound, Timestamp)>,
    millis: u64,
    /// When the next chunk begins, if nothing is missing.
    next: Option<Timestamp>,
    /// How much was dropped because nobody took it, in milliseconds.
    pub dropped_ms: u64,
}

impl SoundQueue {
    /// Takes a chunk that was read at `now`. `live` says that the reader had to wait for it: then it has only just ended;
    /// otherwise it follows the one before.
    pub(super) fn push(&mut self, sound: Sound, live: bool, now: Timestamp) {
        let millis = sound.millis();
        let length = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(0));
        let just_now = now - length;
        let drift = |next: Timestamp| just_now.duration_since(next).as_millis().abs();
        let at = match self.next {
            Some(next) if !live || drift(next) <= i128::from(DRIFT_MS) => next.min(just_now),
            _ => just_now,
        };
        self.next = Some(at + length);
        self.millis += millis;
        self.chunks.push_back((sound, at));
        while self.millis > MOST_SOUND_MS {
            let Some((dropped, _)) = self.chunks.pop_front() else { break };
            self.millis -= dropped.millis();
            self.dropped_ms += dropped.millis();
        }
    }

    /// The oldest sound, at most a tenth of a second of one format.
    pub(super) fn pop(&mut self) -> Option<(Sound, Timestamp)> {
        let (mut sound, at) = self.chunks.pop_front()?;
        while let Some((more, _)) = self.chunks.front() {
            let is_same = (more.rate, more.channels) == (sound.rate, sound.channels);
            if !is_same || sound.millis() + more.millis() > GIVEN_MS {
                break;
            }
            if let Some((more, _)) = self.chunks.pop_front() {
                sound.samples.extend(more.samples);
            }
        }
        self.millis -= sound.millis().min(self.millis);
        Some((sound, at))
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.chunks.iter().map(|(sound, _)| sound.samples.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 ms of two channels at 16 kHz.
    fn chunk(value: f32) -> Sound {
        Sound { samples: vec![value; 320], rate: 16_000, channels: 2 }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + millis).unwrap()
    }

    #[test]
    fn an_hour_of_sound_with_a_stuck_listener_stays_bounded_and_the_newest_is_kept() {
        let mut queue = SoundQueue::default();
        for step in 0..360_000_u32 {
            queue.push(chunk(step as f32), true, at(i64::from(step + 1) * 10));
        }
        assert_eq!(queue.held(), 160 * 2 * 500);
        assert_eq!(queue.dropped_ms, 3_600_000 - MOST_SOUND_MS);
        let (sound, first) = queue.pop().unwrap();
        assert_eq!((sound.millis(), sound.samples[0]), (100, 359_500.0));
        assert_eq!(first, at(3_595_000));
    }

    #[test]
    fn sound_keeps_its_time_through_a_backlog_and_a_pause() {
        let mut queue = SoundQueue::default();
        queue.push(chunk(0.0), true, at(10));
        // A second late, a second of sound comes at once.
        for _ in 0..100 {
            queue.push(chunk(0.0), false, at(1_010));
        }
        // Then the microphone was silent for a minute.
        queue.push(chunk(0.0), true, at(61_000));
        let mut times = Vec::new();
        while let Some((_, time)) = queue.pop() {
            times.push(time);
        }
        assert_eq!((times[0], times[1], times[9]), (at(0), at(100), at(900)));
        // The last tenth joins the chunk after the pause, which the queue does not look at.
        assert_eq!(times.len(), 11);
    }
}
