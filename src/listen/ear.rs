//! The ear: reads of the microphone → utterances. Converter, voice activity and endpointing in one, for one stream.
//!
//! The daemon's listening thread owns the [`Ear`] and feeds it every read of the microphone. It holds at most one
//! utterance and some milliseconds of sound, whatever comes in. After an error it is ready for the next read; only
//! a microphone that gives nothing makes it deaf, and its [`EarReport`] says so.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::endpoint::{EndpointError, Endpointer, Event};
use super::sound::{Converter, SoundError, check};
use super::vad::{Vad, VadError};
use super::{FRAME, RATE, Utterance};
use crate::config::ListenConfig;
use crate::robot::Sound;

/// A read that begins this much before or after the end of the one before is no jitter: sound is missing. In
/// milliseconds; a microphone's reads jitter by less than 100. Not measured on the robot.
pub const GAP_MS: i64 = 250;

/// Sound that is worked on at once, in milliseconds, so that a long read needs no memory of its own.
const PORTION_MS: usize = 100;

/// Why a read could not be heard.
#[derive(Debug, Error)]
pub enum EarError {
    /// This read was no sound; the next one may be.
    #[error("the microphone gave no sound: {0}")]
    Sound(#[from] SoundError),
    #[error(transparent)]
    Vad(#[from] VadError),
    /// The settings must be corrected.
    #[error(transparent)]
    Settings(#[from] EndpointError),
}

/// How hearing is going, for the health report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarReport {
    /// Sound that the microphone gave since the start, in seconds, also while muted.
    pub seconds: f64,
    pub utterances: u64,
    /// Since when the microphone has given nothing but zeros; `None` while it gives sound.
    pub zeros_since: Option<Timestamp>,
    /// Whether it has given only zeros for `listen.deaf_after_s`: then it is broken or switched off.
    pub deaf: bool,
    /// Whether the ear is closed because the robot itself is speaking.
    pub muted: bool,
    /// Whether somebody is speaking now.
    pub speaking: bool,
}

/// One microphone's stream.
pub struct Ear {
    vad: Vad,
    endpointer: Endpointer,
    converter: Option<Converter>,
    /// Samples at 16 kHz that wait for a full frame, and the time of the first of them.
    waiting: Vec<f32>,
    waiting_from: Timestamp,
    /// When the newest sound ended.
    heard_to: Option<Timestamp>,
    muted: bool,
    /// Sound from before this moment is the robot's own echo.
    deaf_until: Option<Timestamp>,
    echo_wait: SignedDuration,
    end_silence: SignedDuration,
    deaf_after: SignedDuration,
    millis: f64,
    utterances: u64,
    zeros: Option<Zeros>,
}

#[derive(Clone, Copy)]
struct Zeros {
    since: Timestamp,
    /// Length of the sound, which is not the time that passed: a microphone may give nothing at all for a while.
    millis: f64,
}

impl Ear {
    /// An open ear.
    ///
    /// # Errors
    /// [`EarError::Settings`] when the settings contradict each other.
    pub fn new(vad: Vad, config: &ListenConfig) -> Result<Self, EarError> {
        Ok(Self {
            vad,
            endpointer: Endpointer::new(config)?,
            converter: None,
            waiting: Vec::with_capacity(FRAME),
            waiting_from: Timestamp::UNIX_EPOCH,
            heard_to: None,
            muted: false,
            deaf_until: None,
            echo_wait: SignedDuration::from_millis(i64::from(config.echo_wait_ms)),
            end_silence: SignedDuration::from_millis(i64::from(config.end_silence_ms)),
            deaf_after: SignedDuration::from_secs(i64::from(config.deaf_after_s)),
            millis: 0.0,
            utterances: 0,
            zeros: None,
        })
    }

    /// Takes a read of the microphone whose first sample was taken at `at`, and gives the utterances that ended in
    /// it. A change of format, or a gap of more than [`GAP_MS`] to the read before, ends the utterance so far.
    ///
    /// # Errors
    /// [`EarError`]; the utterance that was being spoken is lost, the next read begins anew.
    pub fn push(&mut self, sound: &Sound, at: Timestamp) -> Result<Vec<Utterance>, EarError> {
        let result = self.hear(sound, at);
        if result.is_err() {
            self.forget();
        }
        result
    }

    /// The microphone gave nothing, and it is now `now`: an utterance that has been followed by nothing for
    /// `listen.end_silence_ms` is over.
    ///
    /// # Errors
    /// As [`Ear::push`].
    pub fn nothing(&mut self, now: Timestamp) -> Result<Vec<Utterance>, EarError> {
        match self.heard_to {
            Some(heard_to) if now.duration_since(heard_to) >= self.end_silence => self.end(),
            _ => Ok(Vec::new()),
        }
    }

    /// The stream is over: gives what was being spoken.
    ///
    /// # Errors
    /// As [`Ear::push`].
    pub fn end(&mut self) -> Result<Vec<Utterance>, EarError> {
        let mut ended = Vec::new();
        if let Some(converter) = &mut self.converter {
            let rest = converter.flush()?;
            self.take(&rest, &mut ended)?;
        }
        if !self.waiting.is_empty() {
            let missing = vec![0.0; FRAME - self.waiting.len()];
            self.take(&missing, &mut ended)?;
        }
        let last = self.endpointer.finish();
        self.note(last, &mut ended);
        self.forget();
        Ok(ended)
    }

    /// Closes the ear, because the robot is about to speak; what was being heard is forgotten.
    pub fn mute(&mut self) {
        self.muted = true;
        self.forget();
    }

    /// Opens the ear at `at`; the echo of the robot's own voice is still ignored for `listen.echo_wait_ms`.
    pub fn unmute(&mut self, at: Timestamp) {
        self.muted = false;
        self.deaf_until = Some(at.saturating_add(self.echo_wait).unwrap_or(at));
        self.forget();
    }

    /// Speech of the utterance that is being spoken, in milliseconds, however short; 0 where nobody speaks.
    #[must_use]
    pub fn voiced_ms(&self) -> u32 {
        self.endpointer.voiced_ms()
    }

    /// How hearing is going.
    #[must_use]
    pub fn report(&self) -> EarReport {
        EarReport {
            seconds: self.millis / 1000.0,
            utterances: self.utterances,
            zeros_since: self.zeros.map(|zeros| zeros.since),
            deaf: self.zeros.is_some_and(|zeros| zeros.millis >= self.deaf_after.as_secs_f64() * 1000.0),
            muted: self.muted,
            speaking: self.endpointer.speaking(),
        }
    }

    /// Samples held now: at most the longest utterance, the pre-roll and one frame.
    #[must_use]
    pub fn held(&self) -> usize {
        self.endpointer.held() + self.waiting.len()
    }

    fn hear(&mut self, sound: &Sound, at: Timestamp) -> Result<Vec<Utterance>, EarError> {
        check(sound)?;
        self.watch_zeros(sound, at);
        let mut ended = Vec::new();
        let Some((samples, at)) = self.after_echo(sound, at) else { return Ok(ended) };
        if samples.is_empty() {
            return Ok(ended);
        }
        if self.breaks(sound, at) {
            ended = self.end()?;
        }
        let mut converter = match self.converter.take() {
            Some(converter) if converter.fits(sound) => converter,
            _ => Converter::new(sound.rate, sound.channels)?,
        };
        if self.heard_to.is_none() {
            converter.reset();
        }
        if self.endpointer.quiet() {
            // A microphone's clock drifts from the robot's by seconds a day; between utterances they are set equal.
            let held = converter.held_millis() + self.waiting.len() as f64 * 1000.0 / f64::from(RATE);
            let held = SignedDuration::from_nanos((held * 1e6) as i64);
            self.waiting_from = at.saturating_sub(held).unwrap_or(at);
        }
        let portion = PORTION_MS * sound.rate as usize / 1000 * usize::from(sound.channels);
        for samples in samples.chunks(portion) {
            let part = Sound { samples: samples.to_vec(), rate: sound.rate, channels: sound.channels };
            let converted = converter.push(&part)?;
            self.take(&converted, &mut ended)?;
        }
        self.converter = Some(converter);
        self.heard_to = Some(later(at, samples.len() / usize::from(sound.channels), sound.rate));
        Ok(ended)
    }

    /// Counts sound, and zeros at its end.
    fn watch_zeros(&mut self, sound: &Sound, at: Timestamp) {
        let channels = usize::from(sound.channels);
        let frames = sound.samples.len() / channels;
        let millis = |frames: usize| frames as f64 * 1000.0 / f64::from(sound.rate);
        self.millis += millis(frames);
        match sound.samples.iter().rposition(|sample| *sample != 0.0) {
            None if frames == 0 => {}
            None => {
                let zeros = self.zeros.get_or_insert(Zeros { since: at, millis: 0.0 });
                zeros.millis += millis(frames);
            }
            Some(last) => {
                let first = last / channels + 1;
                self.zeros = (first < frames)
                    .then(|| Zeros { since: later(at, first, sound.rate), millis: millis(frames - first) });
            }
        }
    }

    /// What of a read is to be heard: nothing while muted, and nothing of the robot's echo.
    fn after_echo<'a>(&mut self, sound: &'a Sound, at: Timestamp) -> Option<(&'a [f32], Timestamp)> {
        if self.muted {
            return None;
        }
        let Some(until) = self.deaf_until else { return Some((&sound.samples, at)) };
        let early = until.duration_since(at);
        if early <= SignedDuration::ZERO {
            self.deaf_until = None;
            return Some((&sound.samples, at));
        }
        let frames = (early.as_secs_f64() * f64::from(sound.rate)).ceil() as usize;
        let samples = sound.samples.get(frames.saturating_mul(usize::from(sound.channels))..)?;
        self.deaf_until = None;
        Some((samples, later(at, frames, sound.rate)))
    }

    /// Whether a read does not go on where the one before ended.
    fn breaks(&self, sound: &Sound, at: Timestamp) -> bool {
        let other = self.converter.as_ref().is_some_and(|converter| !converter.fits(sound));
        let gap = self.heard_to.is_some_and(|end| at.duration_since(end).as_millis().abs() > i128::from(GAP_MS));
        other || gap
    }

    /// Runs samples at 16 kHz through voice activity and endpointing.
    fn take(&mut self, samples: &[f32], ended: &mut Vec<Utterance>) -> Result<(), EarError> {
        let mut rest = samples;
        while !rest.is_empty() {
            let part = rest.len().min(FRAME - self.waiting.len());
            self.waiting.extend_from_slice(&rest[..part]);
            rest = &rest[part..];
            if self.waiting.len() < FRAME {
                break;
            }
            let probability = self.vad.probability(&self.waiting)?;
            let event = self.endpointer.push(&self.waiting, probability, self.waiting_from);
            self.note(event, ended);
            self.waiting.clear();
            self.waiting_from = later(self.waiting_from, FRAME, RATE);
        }
        Ok(())
    }

    fn note(&mut self, event: Option<Event>, ended: &mut Vec<Utterance>) {
        if let Some(Event::Ended(utterance) | Event::Cut(utterance)) = event {
            self.utterances += 1;
            ended.push(utterance);
        }
    }

    /// The next read begins a new stream.
    fn forget(&mut self) {
        self.vad.reset();
        self.endpointer.reset();
        self.waiting.clear();
        self.heard_to = None;
    }
}

/// The time so many samples after `at`. At the end of time it stands still.
fn later(at: Timestamp, samples: usize, rate: u32) -> Timestamp {
    let nanos = samples as u64 * 1_000_000_000 / u64::from(rate.max(1));
    at.saturating_add(SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))).unwrap_or(at)
}

#[cfg(test)]
mod tests;
