//! Questions with the fact that each must find, and others that must find none: where the gate of facts comes from.

use serde::Deserialize;

use super::facts::Facts;
use super::rivals::Rivals;
use crate::remember::calibrate::{CalibrateError, Scored};
use crate::remember::embed::{EmbedText, cosine};

/// The questions that ship with the project.
pub const SHIPPED: &str = include_str!("../../../tests/questions/facts.toml");

/// A file of questions over a file of facts, in two halves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// What a gate, the stored questions and the rivals may be chosen on.
    pub tune: Half,
    /// What is only ever measured.
    pub held: Half,
}

/// One half.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Half {
    answerable: Vec<Answerable>,
    others: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answerable {
    asks: String,
    /// The key of a fact.
    finds: String,
}

impl Questions {
    /// Reads a file of questions about `facts`.
    ///
    /// # Errors
    /// [`CalibrateError::Questions`] for what it does not know, and for a fact that is not there.
    pub fn parse(text: &str, facts: &Facts) -> Result<Self, CalibrateError> {
        let questions: Self = toml::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))?;
        for Answerable { asks, finds } in questions.tune.answerable.iter().chain(&questions.held.answerable) {
            if !facts.facts.iter().any(|fact| fact.key == *finds) {
                return Err(CalibrateError::Questions(format!("“{asks}” finds `{finds}`, which is no fact")));
            }
        }
        Ok(questions)
    }
}

impl Half {
    /// How many questions have an answer, and how many have none.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.answerable.len(), self.others.len())
    }

    /// Scores every question against every fact, as [`super::Knowledge`] would: a fact that a rival beats scores 0,
    /// which no gate lets pass. Blocks for seconds.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`].
    pub fn score(&self, facts: &Facts, embedder: &dyn EmbedText) -> Result<Vec<Scored>, CalibrateError> {
        let mut stored = Vec::new();
        for fact in &facts.facts {
            let questions: Vec<&str> = fact.questions.iter().map(String::as_str).collect();
            stored.push((fact.key.as_str(), embedder.stored(&questions)?));
        }
        let rivals = Rivals::default();
        let answerable = self.answerable.iter().map(|question| (&question.asks, Some(question.finds.as_str())));
        let mut scored = Vec::new();
        for (asked, finds) in answerable.chain(self.others.iter().map(|other| (other, None))) {
            let vector = embedder.question(asked)?;
            let rival = rivals.nearest(&vector, embedder)?;
            let nearest = stored.iter().flat_map(|(key, rows)| rows.iter().map(move |row| (*key, row)));
            let nearest = nearest.map(|(key, row)| (key, cosine(row, &vector)));
            let Some((key, score)) = nearest.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let best = if score > rival { score } else { 0.0 };
            scored.push(Scored { question: asked.clone(), best, right: finds.map(|finds| finds == key) });
        }
        Ok(scored)
    }
}
