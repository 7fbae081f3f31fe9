//! Endpointing: where an utterance begins and ends. A state machine over frames of 512 samples and their
//! probability of speech; no clock, no file, no model.
//!
//! The listening thread owns one [`Endpointer`]; it holds at most one utterance of the configured greatest length
//! and cannot fail once it is made.
//!
//! Speech begins with a frame at or over `speech_on` and goes on while frames stay at or over `speech_off`. Once
//! `min_speech_ms` of it were heard, it is an utterance; it ends after `end_silence_ms` below `speech_off`. The
//! utterance takes `pre_roll_ms` of sound from before it along, and [`TAIL_MS`] from after it; the rest of the
//! silence is the next utterance's pre-roll, so no sample is ever in two utterances. Speech that reaches
//! `max_utterance_s` is cut there and goes on as the next utterance with the very next sample.
//!
//! The default numbers (0.5, 0.35, 200, 300 and 600 ms, 15 s) were measured with Silero v5: ten of ten spoken turns
//! were cut once, none of them clipped at its start.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::{FRAME, RATE, Utterance};
use crate::config::ListenConfig;

/// Silence that an utterance keeps at its end, in milliseconds, so that no soft last sound is lost. Not measured.
pub const TAIL_MS: u32 = 192;
/// Longest utterance that may be configured, in seconds: Whisper's window is 30 s.
pub const LONGEST_UTTERANCE_S: u32 = 29;

/// Milliseconds of one frame.
const FRAME_MS: u32 = (FRAME as u32) * 1000 / RATE;

/// Why these settings cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EndpointError {
    #[error("listen.speech_on ({on}) and listen.speech_off ({off}) must be in 0…1, and speech_off below speech_on")]
    Probabilities { on: f32, off: f32 },
    #[error("listen.max_utterance_s is {seconds}; 1 to {LONGEST_UTTERANCE_S} can be used")]
    Longest { seconds: u32 },
    #[error(
        "listen.pre_roll_ms, listen.min_speech_ms and listen.end_silence_ms add up to {sum} ms, more than \
         listen.max_utterance_s allows ({most} ms)"
    )]
    TooLong { sum: u64, most: u64 },
    #[error("listen.{name} is 0; at least {least} is needed")]
    Zero { name: &'static str, least: u32 },
}

/// What a frame did.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// There has been enough speech to be an utterance; it began at `at`.
    Began { at: Timestamp },
    /// An utterance is over, because silence followed it.
    Ended(Utterance),
    /// An utterance reached its greatest length; what follows belongs to the next one.
    Cut(Utterance),
    /// It was too short to be speech; its sound is forgotten.
    Dropped,
}

/// The state machine.
pub struct Endpointer {
    limits: Limits,
    state: State,
    /// The newest silence, at most the pre-roll.
    recent: VecDeque<f32>,
}

struct Limits {
    on: f32,
    off: f32,
    /// Frames of speech that make an utterance.
    speech: u32,
    /// Frames of silence that end one.
    silence: u32,
    /// Samples.
    pre_roll: usize,
    tail: usize,
    most: usize,
}

enum State {
    Quiet,
    Speech(Speech),
}

struct Speech {
    samples: Vec<f32>,
    started_at: Timestamp,
    /// Where the last frame of speech ended, as a time and in `samples`.
    ended_at: Timestamp,
    voiced_to: usize,
    /// Frames of speech, and of silence since the last of them.
    voiced: u32,
    silent: u32,
    /// Whether the utterance before was cut where this one begins: then its shortest rest counts.
    goes_on: bool,
}

impl Endpointer {
    /// An endpointer with the owner's settings.
    ///
    /// # Errors
    /// [`EndpointError`] when they contradict each other.
    pub fn new(config: &ListenConfig) -> Result<Self, EndpointError> {
        let (on, off) = (config.speech_on, config.speech_off);
        if !(0.0..=1.0).contains(&on) || !(0.0..=1.0).contains(&off) || off >= on {
            return Err(EndpointError::Probabilities { on, off });
        }
        if config.max_utterance_s == 0 || config.max_utterance_s > LONGEST_UTTERANCE_S {
            return Err(EndpointError::Longest { seconds: config.max_utterance_s });
        }
        for (name, value) in [("min_speech_ms", config.min_speech_ms), ("end_silence_ms", config.end_silence_ms)] {
            if value == 0 {
                return Err(EndpointError::Zero { name, least: 1 });
            }
        }
        let sum = u64::from(config.pre_roll_ms) + u64::from(config.min_speech_ms) + u64::from(config.end_silence_ms);
        let most = u64::from(config.max_utterance_s) * 1000;
        if sum > most {
            return Err(EndpointError::TooLong { sum, most });
        }
        let samples = |millis: u32| (u64::from(millis) * u64::from(RATE) / 1000) as usize;
        let limits = Limits {
            on,
            off,
            speech: config.min_speech_ms.div_ceil(FRAME_MS),
            silence: config.end_silence_ms.div_ceil(FRAME_MS),
            pre_roll: samples(config.pre_roll_ms),
            tail: samples(TAIL_MS.min(config.end_silence_ms)),
            most: config.max_utterance_s as usize * RATE as usize,
        };
        Ok(Self { limits, state: State::Quiet, recent: VecDeque::new() })
    }

    /// Takes the stream's next frame ([`FRAME`] samples at 16 kHz), the probability that there is speech in it, and
    /// the time of its first sample. A probability that is no number counts as silence.
    pub fn push(&mut self, frame: &[f32], probability: f32, at: Timestamp) -> Option<Event> {
        let end = at + SignedDuration::from_millis(i64::from(FRAME_MS));
        match &mut self.state {
            State::Quiet if probability >= self.limits.on => {
                let mut samples: Vec<f32> = self.recent.drain(..).collect();
                samples.extend_from_slice(frame);
                let voiced_to = samples.len();
                let speech =
                    Speech { samples, started_at: at, ended_at: end, voiced_to, voiced: 1, silent: 0, goes_on: false };
                self.state = State::Speech(speech);
                (self.limits.speech == 1).then_some(Event::Began { at })
            }
            State::Quiet => {
                remember(&mut self.recent, frame, self.limits.pre_roll);
                None
            }
            State::Speech(speech) => {
                speech.take(frame, probability >= self.limits.off, at, end);
                self.judge()
            }
        }
    }

    /// The stream is over, or has a gap: whatever was heard is ended here.
    pub fn finish(&mut self) -> Option<Event> {
        let state = std::mem::replace(&mut self.state, State::Quiet);
        self.recent.clear();
        match state {
            State::Quiet => None,
            State::Speech(speech) => speech.end(&self.limits, &mut VecDeque::new()),
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.state = State::Quiet;
        self.recent.clear();
    }

    /// Samples held now: at most the longest utterance and the pre-roll.
    #[must_use]
    pub fn held(&self) -> usize {
        let speech = match &self.state {
            State::Quiet => 0,
            State::Speech(speech) => speech.samples.len(),
        };
        speech + self.recent.len()
    }

    /// Whether somebody is speaking (and has been for long enough to be believed).
    #[must_use]
    pub fn speaking(&self) -> bool {
        matches!(&self.state, State::Speech(speech) if speech.is_utterance(&self.limits))
    }

    /// Speech of the utterance that is being spoken, in milliseconds, however short; 0 where nobody speaks.
    #[must_use]
    pub fn voiced_ms(&self) -> u32 {
        match &self.state {
            State::Quiet => 0,
            State::Speech(speech) => speech.voiced * FRAME_MS,
        }
    }

    /// Whether there is no speech, not even its first frame.
    #[must_use]
    pub fn quiet(&self) -> bool {
        matches!(self.state, State::Quiet)
    }

    /// What the frame that was just taken did to the speech.
    fn judge(&mut self) -> Option<Event> {
        let State::Speech(speech) = &mut self.state else { return None };
        if speech.silent >= self.limits.silence {
            let State::Speech(speech) = std::mem::replace(&mut self.state, State::Quiet) else { return None };
            return speech.end(&self.limits, &mut self.recent);
        }
        if speech.samples.len() + FRAME > self.limits.most && speech.voiced > 0 {
            return Some(Event::Cut(speech.cut()));
        }
        let begins = speech.silent == 0 && speech.voiced == self.limits.speech && !speech.goes_on;
        begins.then_some(Event::Began { at: speech.started_at })
    }
}

impl Speech {
    fn take(&mut self, frame: &[f32], voiced: bool, at: Timestamp, end: Timestamp) {
        self.samples.extend_from_slice(frame);
        if voiced {
            if self.voiced == 0 {
                self.started_at = at;
            }
            self.voiced += 1;
            self.silent = 0;
            self.ended_at = end;
            self.voiced_to = self.samples.len();
        } else {
            self.silent += 1;
        }
    }

    fn is_utterance(&self, limits: &Limits) -> bool {
        self.voiced >= limits.speech || (self.goes_on && self.voiced > 0)
    }

    /// Everything so far as one utterance; what follows starts empty, in the same silence if there is one.
    fn cut(&mut self) -> Utterance {
        let samples = std::mem::take(&mut self.samples);
        let utterance = Utterance { samples, started_at: self.started_at, ended_at: self.ended_at };
        self.voiced = 0;
        self.voiced_to = 0;
        self.goes_on = true;
        utterance
    }

    /// The end after silence; `recent` gets what is left of the silence.
    fn end(mut self, limits: &Limits, recent: &mut VecDeque<f32>) -> Option<Event> {
        let keep = (self.voiced_to + limits.tail).min(self.samples.len());
        if !self.is_utterance(limits) {
            remember(recent, &self.samples, limits.pre_roll);
            return (self.voiced > 0).then_some(Event::Dropped);
        }
        remember(recent, &self.samples[keep..], limits.pre_roll);
        self.samples.truncate(keep);
        let Self { samples, started_at, ended_at, .. } = self;
        Some(Event::Ended(Utterance { samples, started_at, ended_at }))
    }
}

/// Keeps the newest `most` samples.
fn remember(recent: &mut VecDeque<f32>, samples: &[f32], most: usize) {
    recent.extend(&samples[samples.len().saturating_sub(most)..]);
    recent.drain(..recent.len().saturating_sub(most));
}

#[cfg(test)]
mod tests;
