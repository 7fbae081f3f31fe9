//! A fact as a point of `knowledge/`: the contract that another program, or a later version, reads.
//!
//! `kind` is `fact`, `text` is what the robot says, `questions` are those that it answers, in the order of the rows of
//! its multivector; `key` is its short name where it came from a file of facts.

use qdrant_edge::Payload;
use serde_json::{Value, json};

use super::super::engine::EngineError;
use super::facts::Fact;

const KIND: &str = "kind";
const FACT: &str = "fact";
const TEXT: &str = "text";
const QUESTIONS: &str = "questions";
const KEY: &str = "key";

/// A fact as it is stored.
pub fn write(fact: &Fact) -> Value {
    json!({ KIND: FACT, TEXT: fact.text, QUESTIONS: fact.questions, KEY: fact.key })
}

/// Reads what [`write`] wrote, or what a server's collection holds in the same form.
pub fn read(payload: &Payload) -> Result<Fact, EngineError> {
    let words = |key: &str| payload.0.get(key).and_then(Value::as_str).map(str::to_owned);
    if words(KIND).as_deref() != Some(FACT) {
        return Err(EngineError("it holds a point that is no fact (`kind` is not \"fact\")".into()));
    }
    let text = words(TEXT).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| EngineError("it holds a fact without its `text`".into()))?;
    let questions = payload.0.get(QUESTIONS).cloned().unwrap_or(Value::Null);
    let questions = serde_json::from_value(questions)
        .map_err(|_| EngineError(format!("the fact “{text}” has no list of `questions`")))?;
    Ok(Fact { key: words(KEY).unwrap_or_default(), text, questions })
}
