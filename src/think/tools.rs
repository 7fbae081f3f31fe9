//! The three tools that reach the world, their arguments, and what they answer.
//!
//! `remember` searches the memory, `camera` looks now, `move` makes a gesture. Arguments are validated here; what
//! does not validate never runs and never stays in the conversation's history.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::remember::Recalled;
use crate::robot::{Direction, Gesture};

/// A call that may run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub tool: Tool,
}

/// A tool with its validated arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    Remember(RememberArguments),
    Camera { direction: Direction },
    Move { gesture: Gesture },
}

/// What `remember` is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct RememberArguments {
    /// What to look for, in the person's words.
    pub query: String,
    pub about: About,
    pub direction: Option<Direction>,
    /// The person's own words for a time, as in "this morning"; resolved on the robot, never by the model.
    pub when: Option<String>,
}

/// Which part of the memory a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    Seen,
    Said,
    Me,
    Taught,
    #[default]
    Any,
}

/// What a tool answered. "Nothing found" and "could not look" are different values down to the model's sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    Recalled(Recalled),
    /// The memory could not be searched; the sentence says why.
    CouldNotLook { why: String },
    /// What the camera shows now, as a sentence, as in "I see a cup and a person."
    Seen { sentence: String },
    /// The camera gave no picture, or the head did not turn.
    CouldNotSee { why: String },
    Moved { gesture: Gesture },
    CouldNotMove { why: String },
    /// The call itself was wrong; the sentence says what is allowed.
    Refused { why: String },
}

/// Why a call from a model cannot run, as a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCall(pub String);

impl ToolCall {
    /// Validates a call as a server sent it. Missing optional arguments take their defaults.
    ///
    /// # Errors
    /// [`InvalidCall`] for an unknown tool, a missing `query`, or a value that is not offered.
    pub fn parse(id: &str, name: &str, arguments: &Value) -> Result<Self, InvalidCall> {
        let _ = (id, name, arguments);
        todo!()
    }
}
