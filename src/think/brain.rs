//! The language model behind one trait, and the conversation as it is handed to one.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::mpsc;

use super::tools::{ToolCall, ToolResult};

/// One message of the conversation, oldest first in a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User {
        text: String,
        /// Who said it, when known.
        speaker: Option<String>,
        at: Timestamp,
    },
    Assistant {
        /// Only what was really spoken.
        text: String,
        /// Valid calls only; empty in a spoken answer.
        calls: Vec<ToolCall>,
    },
    /// Answers the call with the same id in the assistant message before it.
    Tool { call_id: String, name: String, result: ToolResult },
}

/// What a brain is asked to continue.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// First and unchanging, so that the server's prefix cache holds.
    pub system: String,
    /// The window's exchanges, then this turn.
    pub messages: Vec<Message>,
    /// Whether tools may be called; when false the answer must be words.
    pub tools_allowed: bool,
    /// The moment that "now" means in this turn.
    pub now: Timestamp,
}

/// A piece of an answer as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text to be spoken.
    Text(String),
    /// A whole, valid call; never a fragment.
    Call(ToolCall),
    /// A call that could not be used, with a sentence for the model that says why.
    BadCall { id: String, name: String, arguments: Value, why: String },
}

/// Tokens as the server counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
}

/// How a generation ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    pub usage: Option<Usage>,
    /// The stream ended before the server said so; what was spoken stays, nothing is run again.
    pub cut_short: bool,
    /// From the request to the first delta that means something.
    pub first_delta_after: Option<Duration>,
}

/// Why a brain did not answer; the variants say what the caller does next.
#[derive(Debug, Error)]
pub enum BrainError {
    /// Nobody answers at the address: another brain takes over, and this one is tried again later.
    #[error("the laptop at {url} does not answer: {why}")]
    Away { url: String, why: String },
    /// The server is loading or waking its model: say so, wait, try again.
    #[error("the server at {url} is still waking its model: {why}")]
    Waking { url: String, why: String },
    /// A fault in the configuration (key, model name, address): said once, not tried again.
    #[error("{sentence}")]
    Misconfigured { sentence: String },
    /// The conversation no longer fits: the oldest half moves to memory and the turn is tried once more.
    #[error("the conversation is longer than the model's context: {why}")]
    TooLong { why: String },
    /// The server answered, but not with anything usable.
    #[error("the server at {url} answered with something unusable: {why}")]
    Unusable { url: String, why: String },
    /// The turn's time was over.
    #[error("no answer within {limit:?}: {phase}")]
    TimedOut { limit: Duration, phase: &'static str },
    /// The receiver of deltas went away: somebody interrupted.
    #[error("the answer was interrupted")]
    Interrupted,
}

/// A language model, or what stands in for one.
pub trait Brain: Send + Sync {
    /// A short name for logs and transcripts, as in `offline` or `http gemma-4-e2b`.
    fn name(&self) -> String;

    /// Continues the conversation, sending deltas as they arrive. Dropping the future, or the receiver, stops the
    /// generation at the server too.
    ///
    /// # Errors
    /// [`BrainError`]; deltas that were sent before the error have been spoken.
    fn generate<'a>(
        &'a self,
        request: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>>;

    /// A cheap question: would a turn reach it now?
    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>>;
}
