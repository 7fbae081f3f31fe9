//! Acting: what the robot says and how it moves.
//!
//! [`Mouth`] owns the voice and speaks sentence by sentence; [`Motion`] owns the head and the antennas. Each is a handle
//! on threads of its own, so that moving never waits for speaking nor the other way round. When a thread dies, its
//! handle answers [`ActError::Gone`] from then on and the rest of the robot goes on.

pub mod espeak;
mod motion;
mod mouth;
mod speakable;
pub mod voice;

use thiserror::Error;

pub use motion::{Motion, Movement};
pub use mouth::{Mouth, Spoken, TurnId};
pub use speakable::speakable;
pub use voice::{Muteness, Synthesiser, Voice, VoiceError, VoiceReport};

use crate::robot::RobotError;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum ActError {
    /// The thread could not be started: the machine is out of threads or memory.
    #[error("the {part} could not be started: {source}")]
    NotStarted { part: &'static str, source: std::io::Error },
    /// The thread has ended; only a restart of the program brings it back.
    #[error("the {part} has stopped working; restart the robot's service")]
    Gone { part: &'static str },
    /// A newer movement took its place before it began.
    #[error("a newer movement took its place")]
    Superseded,
    /// Somebody asked the robot to stop before it began.
    #[error("it was stopped before it began")]
    Stopped,
    /// The owner switched gestures off.
    #[error("gestures are switched off in the config ([act] gestures = false)")]
    GesturesOff,
    /// The body did not do it.
    #[error(transparent)]
    Robot(#[from] RobotError),
}
