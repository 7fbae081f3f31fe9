//! Hearing: sound → voice activity → endpointing → Whisper → [`Heard`].
//!
//! [`sound`] decodes and resamples, [`vad`] says how likely each 32 ms is speech, [`endpoint`] cuts utterances,
//! [`whisper`] transcribes on a thread of its own, [`reject`] throws away what was no speech. The daemon's listening
//! thread owns one [`Ear`]; when it dies, the robot is deaf and says so.

pub mod ear;
pub mod endpoint;
pub mod reject;
pub mod sound;
pub mod vad;
pub mod whisper;

use jiff::Timestamp;

pub use ear::{Ear, EarReport};

/// Samples a second that everything after [`sound`] works with.
pub const RATE: u32 = 16_000;
/// Samples in one voice-activity frame (32 ms at 16 kHz).
pub const FRAME: usize = 512;

/// A stretch of speech, cut out of the microphone's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// 16 kHz, one channel, −1…1.
    pub samples: Vec<f32>,
    pub started_at: Timestamp,
    /// When speech ended (the trailing silence is not counted).
    pub ended_at: Timestamp,
}

/// What somebody said.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub text: String,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Mean probability of the text's tokens, 0…1.
    pub confidence: f32,
    /// How long the transcription took, in milliseconds of real time.
    pub transcribed_in_ms: u64,
}
