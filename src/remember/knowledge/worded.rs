//! Facts by their words, and the order of facts by likeness and words together.
//!
//! There are at most [`MOST_FACTS`](super::facts::MOST_FACTS) facts, so their words are counted into memory when the
//! shard is opened, whoever made it: a server's collection holds no words. Pure; nothing here can fail.

use std::collections::HashMap;

use uuid::Uuid;

use super::facts::Fact;
use crate::remember::KnownFact;
use crate::remember::words::{self, Asked, Bag, Match, Weights};

/// The words of every fact.
pub struct Worded {
    /// In the order of the shard.
    facts: Vec<(Uuid, Bag)>,
    /// How many facts hold a term.
    holders: HashMap<u32, usize>,
}

/// A fact with its likeness to a question and how it matches by its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    pub fact: KnownFact,
    pub words: Match,
}

impl Near {
    /// What the order of facts is made by.
    #[must_use]
    pub fn fused(&self) -> f32 {
        self.fact.score + self.words.lift(words::FACTS)
    }
}

impl Worded {
    pub fn new<'a>(facts: impl IntoIterator<Item = (Uuid, &'a Fact)>) -> Self {
        let facts: Vec<(Uuid, Bag)> = facts.into_iter().map(|(id, fact)| (id, words::bag(&all_words(fact)))).collect();
        let mut holders = HashMap::new();
        for (term, _) in facts.iter().flat_map(|(_, bag)| bag.terms()) {
            *holders.entry(*term).or_default() += 1;
        }
        Self { facts, holders }
    }

    /// What a question's terms weigh among these facts.
    #[must_use]
    pub fn weights(&self, asked: &Asked) -> Weights {
        let all = self.facts.len();
        let found = asked.terms().iter().filter_map(|term| Some((*term, words::rarity(*self.holders.get(term)?, all))));
        Weights::new(asked, &found.collect::<Vec<_>>(), all)
    }

    /// The facts that hold a term of the question, best BM25 score first, at most `limit`.
    #[must_use]
    pub fn best(&self, asked: &Asked, weights: &Weights, limit: usize) -> Vec<Uuid> {
        let scores = self.facts.iter().map(|(id, bag)| (*id, weights.compare(asked, bag).bm25));
        let mut scores: Vec<(Uuid, f32)> = scores.filter(|(_, bm25)| *bm25 > 0.0).collect();
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        scores.into_iter().take(limit).map(|(id, _)| id).collect()
    }

    /// How one fact matches.
    #[must_use]
    pub fn compare(&self, id: Uuid, asked: &Asked, weights: &Weights) -> Match {
        let bag = self.facts.iter().find(|(other, _)| *other == id).map(|(_, bag)| bag);
        bag.map(|bag| weights.compare(asked, bag)).unwrap_or_default()
    }
}

/// Best first.
#[must_use]
pub fn in_order(mut near: Vec<Near>) -> Vec<Near> {
    near.sort_by(|a, b| b.fused().total_cmp(&a.fused()));
    near
}

/// A fact and its questions as one text.
fn all_words(fact: &Fact) -> String {
    format!("{} {}", fact.text, fact.questions.join(" "))
}
