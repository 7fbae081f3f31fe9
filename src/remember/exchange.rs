//! One exchange: what somebody said and what the robot answered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Both sides of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// What was heard.
    pub heard: String,
    /// What the robot really said.
    pub said: String,
    /// Who spoke, when known.
    pub speaker: Option<String>,
    /// When the person began to speak.
    pub said_at: Timestamp,
}
