//! Small questions beside the conversation: a system prompt of their own, no tools, a few words as the answer.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::HttpBrain;
use super::answer::{Attempt, Pace};
use super::body::{Shape, add_options};
use crate::think::brain::{BrainError, Delta, Request};

/// Tokens of the answer: a name, or one short sentence.
const ANSWER_TOKENS: u32 = 40;
/// Deltas that may wait; they are taken at once.
const HELD: usize = 64;
/// One as it is, and one without the options that the server refused.
const ATTEMPTS: usize = 2;

impl HttpBrain {
    /// Asks once, and once more without refused options.
    pub(super) async fn answer_aside(&self, system: &str, text: &str) -> Result<String, BrainError> {
        let mut pace = Pace::new(self.limits.turn);
        let mut last_why = String::new();
        for _ in 0..ATTEMPTS {
            let left_out = self.left_out.load(Ordering::Acquire);
            let shape = Shape {
                model: &self.model,
                answer_tokens: ANSWER_TOKENS,
                left_out,
                with_tools: false,
                in_words: false,
                again: false,
                zone: &self.zone,
            };
            let (sender, mut receiver) = mpsc::channel(HELD);
            // Only the ids of calls are read from the request, and there are none.
            let asked = Request {
                system: String::new(),
                messages: Vec::new(),
                tools_allowed: false,
                now: Timestamp::UNIX_EPOCH,
            };
            let attempt = async {
                let outcome = self.attempt(&asked, body(system, text, &shape).to_string(), &sender, &mut pace).await;
                drop(sender);
                outcome
            };
            let collect = async {
                let mut said = String::new();
                while let Some(delta) = receiver.recv().await {
                    if let Delta::Text(text) = delta {
                        said.push_str(&text);
                    }
                }
                said
            };
            let (outcome, said) = tokio::join!(attempt, collect);
            match outcome? {
                Attempt::Done(_) => {
                    self.set_warm(true);
                    return Ok(said);
                }
                Attempt::WithoutOptions(mask, _) if mask & !left_out != 0 => {
                    self.left_out.fetch_or(mask, Ordering::AcqRel);
                }
                Attempt::WithoutOptions(_, why) | Attempt::Again(why) => last_why = why,
            }
        }
        Err(BrainError::Unusable { url: self.url.clone(), why: last_why })
    }
}

fn body(system: &str, text: &str, shape: &Shape<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(shape.model));
    body.insert(
        "messages".into(),
        json!([
            { "role": "system", "content": system.trim_end() },
            { "role": "user", "content": text.trim() },
        ]),
    );
    add_options(&mut body, shape);
    Value::Object(body)
}
