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

/// The most pictures of one [`PictureRequest`]. From the field: with more, small models mix them up.
pub const MOST_PICTURES: usize = 4;

/// What the pictures of a [`PictureRequest`] are to the robot; decides how it speaks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureKind {
    /// Taken this moment.
    Now,
    /// One memory, from an earlier moment.
    Memory,
    /// Several memories of one stretch of time.
    Day,
}

/// A picture with the words that go before it.
#[derive(Clone, PartialEq, Eq)]
pub struct DatedPicture {
    /// A whole JPEG file.
    pub jpeg: Vec<u8>,
    /// When it was taken, where the robot looked, and who was in it, as a sentence for the model.
    pub note: String,
}

impl std::fmt::Debug for DatedPicture {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "DatedPicture({} bytes, {:?})", self.jpeg.len(), self.note)
    }
}

/// Pictures to be put into words, beside the conversation and without its history.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureRequest {
    pub kind: PictureKind,
    /// One to [`MOST_PICTURES`], newest first.
    pub pictures: Vec<DatedPicture>,
    /// What the person asked, in their words.
    pub question: String,
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
    /// It takes no pictures, now or later: say what is known without looking, and show it none until it is another
    /// server.
    #[error("{who} sees no pictures: {why}")]
    Blind { who: String, why: String },
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

    /// Whether [`Brain::describe`] is worth asking. True as long as nothing speaks against it.
    fn sees_pictures(&self) -> bool {
        false
    }

    /// Puts pictures into words. No tool is called, and the conversation knows nothing of it.
    ///
    /// # Errors
    /// [`BrainError::Blind`] from a brain that takes no pictures; else as [`Brain::generate`].
    fn describe<'a>(
        &'a self,
        _request: &'a PictureRequest,
        _deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        let why = "it is no model for pictures".to_owned();
        Box::pin(std::future::ready(Err(BrainError::Blind { who: self.name(), why })))
    }

    /// Answers a small question beside the conversation, of which it knows nothing: `system` says what is wanted, `text`
    /// is what it is about. No tool is called, and nothing is spoken.
    ///
    /// # Errors
    /// [`BrainError`]; [`BrainError::Unusable`] from a brain that cannot.
    fn aside<'a>(&'a self, _system: &'a str, _text: &'a str) -> BoxFuture<'a, Result<String, BrainError>> {
        let error = BrainError::Unusable { url: self.name(), why: "it answers no questions beside a turn".into() };
        Box::pin(std::future::ready(Err(error)))
    }

    /// Tokens that `request` takes with everything around it (system prompt, tools, template), as the brain itself
    /// counts them; `None` where it does not count.
    fn count<'a>(&'a self, _request: &'a Request) -> BoxFuture<'a, Option<u32>> {
        Box::pin(std::future::ready(None))
    }

    /// Tokens that one request may take so that its whole answer still fits, as far as known.
    fn prompt_room(&self) -> Option<u32> {
        None
    }

    /// A cheap question: would a turn reach it now?
    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>>;
}
