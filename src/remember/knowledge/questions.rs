//! Questions with the fact that each must find, and others that must find none: where the gate of facts comes from.

use serde::Deserialize;

use super::facts::Facts;
use super::rivals::Rivals;
use super::{LIMIT, NEARLY_AS_NEAR};
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

    /// Puts every question to the facts, as [`super::Knowledge`] would. A fact that a rival beats scores 0, which no
    /// gate lets pass. Blocks for seconds.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`].
    pub fn score(&self, facts: &Facts, embedder: &dyn EmbedText) -> Result<Vec<Found>, CalibrateError> {
        let mut stored = Vec::new();
        for fact in &facts.facts {
            let questions: Vec<&str> = fact.questions.iter().map(String::as_str).collect();
            stored.push((fact.key.as_str(), embedder.stored(&questions)?));
        }
        let rivals = Rivals::default();
        let answerable = self.answerable.iter().map(|question| (&question.asks, Some(question.finds.as_str())));
        let mut all = Vec::new();
        for (asked, finds) in answerable.chain(self.others.iter().map(|other| (other, None))) {
            let vector = embedder.question(asked)?;
            let rival = rivals.nearest(&vector, embedder)?;
            let nearest = |rows: &[Vec<f32>]| rows.iter().map(|row| cosine(row, &vector)).fold(-1.0, f32::max);
            let mut near: Vec<(&str, f32)> = stored.iter().map(|(key, rows)| (*key, nearest(rows))).collect();
            near.sort_by(|a, b| b.1.total_cmp(&a.1));
            let Some((_, top)) = near.first().copied() else { continue };
            let mut told = near.iter().take(LIMIT).filter(|(_, score)| top - score <= NEARLY_AS_NEAR);
            let right = finds.map(|finds| told.any(|(key, _)| *key == finds));
            let first = finds.is_some_and(|finds| near.first().is_some_and(|(key, _)| *key == finds));
            let best = if top > rival { top } else { 0.0 };
            all.push(Found { scored: Scored { question: asked.clone(), best, right }, first });
        }
        Ok(all)
    }
}

/// What a question found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// `right`: the fact that answers is among those that would be told.
    pub scored: Scored,
    /// It is the first of them.
    pub first: bool,
}
