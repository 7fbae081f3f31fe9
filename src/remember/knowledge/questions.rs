//! Questions with the fact that each must find, and others that must find none: where the gate of facts comes from.

use serde::Deserialize;

use uuid::Uuid;

use super::facts::{Fact, Facts};
use super::rivals::Rivals;
use super::worded::{Near, Worded, in_order};
use super::{LIMIT, judged};
use crate::remember::KnownFact;
use crate::remember::calibrate::{self, CalibrateError, Measured};
use crate::remember::embed::{EmbedText, cosine};
use crate::remember::eval::{By, Ranked};
use crate::remember::words::Asked;

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

    /// Puts every question to the facts, as [`super::Knowledge`] would. Blocks for seconds.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`].
    pub fn ask(&self, facts: &Facts, embedder: &dyn EmbedText) -> Result<Vec<Found>, CalibrateError> {
        let mut stored = Vec::new();
        for fact in &facts.facts {
            let questions: Vec<&str> = fact.questions.iter().map(String::as_str).collect();
            stored.push((fact.id(), embedder.stored(&questions)?));
        }
        let worded = Worded::new(facts.facts.iter().map(|fact| (fact.id(), fact)));
        let rivals = Rivals::default();
        let id_of = |key: &str| facts.facts.iter().find(|fact| fact.key == key).map(Fact::id);
        let answerable = self.answerable.iter().map(|question| (&question.asks, id_of(&question.finds)));
        let mut all = Vec::new();
        for (asks, finds) in answerable.chain(self.others.iter().map(|other| (other, None))) {
            let vector = embedder.question(asks)?;
            let rival = rivals.nearest(&vector, embedder)?;
            let nearest = |rows: &[Vec<f32>]| rows.iter().map(|row| cosine(row, &vector)).fold(-1.0, f32::max);
            let asked = Asked::of(asks);
            let weights = worded.weights(&asked);
            let near = stored.iter().map(|(id, rows)| {
                let fact = KnownFact { id: *id, text: String::new(), score: nearest(rows) };
                Near { fact, words: worded.compare(*id, &asked, &weights) }
            });
            let near = in_order(near.collect());
            all.push(Found { asks: asks.clone(), finds, near, rival });
        }
        Ok(all)
    }
}

/// What a question found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub asks: String,
    /// The fact that answers; `None` for a question that none answers.
    pub finds: Option<Uuid>,
    /// Every fact, best first.
    near: Vec<Near>,
    /// Cosine of the nearest question that is not for facts.
    rival: f32,
}

impl Found {
    /// The facts that are told at a gate, best first.
    #[must_use]
    pub fn told(&self, gate: f32) -> Vec<Uuid> {
        let answer = judged(self.near.clone(), gate, self.rival, self.near.len());
        answer.facts.into_iter().take(LIMIT).map(|fact| fact.id).collect()
    }

    /// What it comes to at every gate; right is an answer that holds the fact.
    #[must_use]
    pub fn measured(&self, half: calibrate::Half) -> Measured {
        let best = self.near.iter().map(|near| near.fact.score).reduce(f32::max).filter(|best| *best > self.rival);
        let answer = |gate| {
            let told = self.told(gate);
            (!told.is_empty()).then(|| self.finds.is_some_and(|finds| told.contains(&finds)))
        };
        Measured::new(&self.asks, half, self.finds.is_some(), best, answer)
    }

    /// Put in order three ways, and whether it is answered with nothing at a gate. `category` is its name in the report.
    #[must_use]
    pub fn ranked(&self, category: &str, half: calibrate::Half, gate: f32) -> Ranked {
        Ranked {
            category: self.finds.map(|_| category.to_owned()),
            half,
            places: By::ALL.map(|by| self.place(by)),
            refused: self.told(gate).is_empty(),
            took_ms: None,
        }
    }

    /// The place, from 0, of the fact that answers, were there no gate; `None` where it would not be found this way.
    fn place(&self, by: By) -> Option<usize> {
        let score = |near: &Near| match by {
            By::Dense => Some(near.fact.score),
            By::Words => (near.words.bm25 > 0.0).then_some(near.words.bm25),
            By::Fused => Some(near.fused()),
        };
        let own = self.near.iter().find(|near| Some(near.fact.id) == self.finds).and_then(score)?;
        Some(self.near.iter().filter_map(score).filter(|other| *other > own).count())
    }
}
