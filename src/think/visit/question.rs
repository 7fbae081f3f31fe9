//! The name question, from asking to enrolment. One at a time.

use jiff::{SignedDuration, Timestamp};

use super::Shot;

/// Where the name question stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    None,
    /// Asked; the next utterance before `until`, by the clock of the view, is the reply.
    Asked {
        track: u32,
        until: SignedDuration,
    },
    /// The reply is being read.
    Reading {
        track: u32,
        reply: String,
        enrolment: Enrolment,
        since: SignedDuration,
    },
    /// The person is being stored.
    Enrolling {
        track: u32,
        enrolment: Enrolment,
        since: SignedDuration,
    },
}

/// What is known of the stranger at the moment of their reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Enrolment {
    pub shots: Vec<Shot>,
    pub met_at: Timestamp,
    /// The first and the last of their unnamed words.
    pub words: (Timestamp, Timestamp),
}

impl Question {
    /// The face that was asked and has not replied yet.
    pub(super) fn waits_for(&self) -> Option<u32> {
        match self {
            Self::Asked { track, .. } => Some(*track),
            _ => None,
        }
    }
}
