//! A scripted day.

/// Why a day cannot be played.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DayError(pub String);
