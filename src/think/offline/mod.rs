//! The offline brain: answers without a language model, when no laptop is configured or it is away.
//!
//! [`choose`] picks a tool by the nearest examples of `examples.toml` (with the text embedder that is loaded anyway) and
//! by a few rules on the words in [`form`]; [`answer`] puts what the tool found into sentences, [`chat`] has words for
//! the rest. English only. It holds no state between turns: the same request gets the same answer. A failing text model
//! is told to the person; nothing is guessed without it.

mod answer;
mod chat;
mod choose;
mod form;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use thiserror::Error;
use tokio::sync::mpsc;

use super::brain::{Brain, BrainError, Delta, Finish, Message, Request};
use super::tools::{RememberArguments, Tool, ToolCall, ToolResult};
use super::when;
use crate::remember::embed::{EmbedError, EmbedText};
use answer::Asked;
use chat::Sentences;
use choose::{Choice, Kind, Likeness};
use form::Sentence;

const EXAMPLES: &str = include_str!("examples.toml");
const SENTENCES: &str = include_str!("sentences.toml");

/// Letters of what was heard that are looked at; the rest of a longer one is left out of the choice of a tool. An
/// utterance of 15 seconds has about 250.
const MOST_LETTERS: usize = 2000;

/// Why the offline brain could not be made.
#[derive(Debug, Error)]
pub enum OfflineError {
    /// A file inside the program is broken; only a changed program helps.
    #[error("the offline brain's {file} is malformed: {why}")]
    File { file: &'static str, why: String },
    /// The text model does not work: verify its files.
    #[error("the offline brain could not learn its examples: {0}")]
    Embed(#[from] EmbedError),
}

/// Answers from examples, rules and sentence templates.
pub struct OfflineBrain {
    inner: Arc<Inner>,
}

struct Inner {
    embedder: Arc<dyn EmbedText>,
    zone: TimeZone,
    kinds: Vec<Kind>,
    /// Unit vectors, one an example.
    vectors: Vec<Vec<f32>>,
    sentences: Sentences,
}

/// Whether somebody asks or demands, rather than tells something. English; elsewhere the question mark decides.
#[must_use]
pub fn asks(heard: &str) -> bool {
    heard.contains('?') || Sentence::that_asks(heard).form() == form::Form::Asks
}

impl OfflineBrain {
    /// Embeds the examples; blocks (2.1 s measured on two busy x86 cores with MiniLM), so call it from a blocking thread.
    /// `zone` is the house's: times are told in it.
    ///
    /// # Errors
    /// [`OfflineError`] when the text model fails.
    pub fn new(embedder: Arc<dyn EmbedText>, zone: TimeZone) -> Result<Self, OfflineError> {
        let examples: BTreeMap<String, Vec<String>> = toml::from_str(EXAMPLES)
            .map_err(|error| OfflineError::File { file: "examples.toml", why: error.to_string() })?;
        let sentences = toml::from_str(SENTENCES)
            .map_err(|error| OfflineError::File { file: "sentences.toml", why: error.to_string() })?;
        let mut kinds = Vec::new();
        let mut spoken = Vec::new();
        for (name, texts) in &examples {
            let kind: Kind = serde_json::from_value(serde_json::Value::from(name.as_str()))
                .map_err(|error| OfflineError::File { file: "examples.toml", why: error.to_string() })?;
            kinds.extend(std::iter::repeat_n(kind, texts.len()));
            spoken.extend(texts.iter().map(|text| Sentence::read(text).spoken()));
        }
        let vectors = embedder.stored(&spoken.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(Self { inner: Arc::new(Inner { embedder, zone, kinds, vectors, sentences }) })
    }

    /// The tool that `heard` needs, with its arguments; `None` where words are enough. Blocks for one embedding.
    ///
    /// # Errors
    /// [`EmbedError`] when the text model fails.
    pub fn tool_for(&self, heard: &str, now: Timestamp) -> Result<Option<Tool>, EmbedError> {
        self.inner.tool_for(heard, &self.inner.here(now))
    }

    async fn delta(&self, request: &Request) -> Delta {
        let now = self.inner.here(request.now);
        let user = request.messages.iter().rev().find_map(|message| match message {
            Message::User { text, speaker, .. } => Some((text.as_str(), speaker.as_deref())),
            _ => None,
        });
        let Some((heard, speaker)) = user else {
            return Delta::Text(self.inner.sentences.no_tools().to_owned());
        };
        if let Some((result, when)) = last_result(&request.messages) {
            return Delta::Text(answer::answer(result, &Asked { speaker, when, now: &now }));
        }
        let inner = Arc::clone(&self.inner);
        let (owned, at) = (heard.to_owned(), now.clone());
        let chosen = tokio::task::spawn_blocking(move || inner.tool_for(&owned, &at)).await;
        let turn = request.messages.len() / 2;
        match chosen {
            Ok(Ok(Some(_))) if !request.tools_allowed => Delta::Text(self.inner.sentences.no_tools().to_owned()),
            Ok(Ok(Some(tool))) => Delta::Call(ToolCall { id: format!("offline-{}", request.messages.len()), tool }),
            Ok(Ok(None)) => Delta::Text(self.inner.sentences.answer(heard, speaker, &now, turn)),
            Ok(Err(error)) => could_not(&error.to_string()),
            Err(error) => could_not(&error.to_string()),
        }
    }
}

impl Inner {
    fn here(&self, now: Timestamp) -> Zoned {
        now.to_zoned(self.zone.clone())
    }

    fn tool_for(&self, heard: &str, now: &Zoned) -> Result<Option<Tool>, EmbedError> {
        let heard: String = heard.chars().take(MOST_LETTERS).collect();
        let sentence = Sentence::that_asks(&heard);
        if sentence.words.is_empty() {
            return Ok(None);
        }
        let time = when::find_in(&sentence.text, now);
        let likeness = self.likeness(&sentence)?;
        Ok(match choose::choose(&sentence, &likeness, time.is_some()) {
            Choice::Words => None,
            Choice::Camera(direction) => Some(Tool::Camera { direction }),
            Choice::Move(gesture) => Some(Tool::Move { gesture }),
            Choice::Remember(about) => Some(Tool::Remember(RememberArguments {
                direction: sentence.direction(),
                query: sentence.text,
                about,
                when: time.map(|(_, words)| words),
            })),
        })
    }

    fn likeness(&self, sentence: &Sentence) -> Result<Likeness, EmbedError> {
        // Like against like: both sides are embedded as stored texts, without a question's prefix.
        let vector = self.embedder.stored(&[&sentence.spoken()])?.pop().unwrap_or_default();
        let cosines: Vec<f32> = self
            .vectors
            .iter()
            .map(|example| example.iter().zip(&vector).map(|(left, right)| left * right).sum())
            .collect();
        Ok(Likeness::of(&cosines, &self.kinds))
    }
}

/// What the tool answered in this turn, and the words for a time that it was asked with.
fn last_result(messages: &[Message]) -> Option<(&ToolResult, Option<&str>)> {
    let Some(Message::Tool { call_id, result, .. }) = messages.last() else { return None };
    let when = messages.iter().rev().find_map(|message| match message {
        Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == *call_id),
        _ => None,
    });
    let when = when.and_then(|call| match &call.tool {
        Tool::Remember(arguments) => arguments.when.as_deref(),
        _ => None,
    });
    Some((result, when))
}

fn could_not(why: &str) -> Delta {
    tracing::warn!(why, "the offline brain could not choose");
    Delta::Text(format!("I cannot answer right now: {why}."))
}

impl Brain for OfflineBrain {
    fn name(&self) -> String {
        let model = &self.inner.embedder.identity().model;
        format!("offline {model}")
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            let started = Instant::now();
            let delta = self.delta(request).await;
            let first_delta_after = Some(started.elapsed());
            deltas.send(delta).await.map_err(|_| BrainError::Interrupted)?;
            Ok(Finish { usage: None, cut_short: false, first_delta_after })
        }
        .boxed()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        async { Ok(()) }.boxed()
    }
}

#[cfg(test)]
mod tests;
