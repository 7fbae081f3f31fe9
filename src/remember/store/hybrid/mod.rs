//! Searching for exchanges by likeness and by their words at once. What counts of it is decided in [`words`](crate::remember::words).

mod engine;

pub use engine::{WORDS, bag, count_words_of_older_exchanges, counted};

use std::sync::Arc;

use super::kept::Known;
use crate::remember::words::Weights;

/// What [`Engine::hybrid`] comes to.
pub struct Hybrid<S> {
    /// Each once, in no order.
    pub hits: Vec<Hit<S>>,
    /// What the question's terms weigh in this memory.
    pub weights: Weights,
}

/// A memory with its likeness to a question and its words.
pub struct Hit<S> {
    pub known: Arc<Known<S>>,
    pub cosine: f32,
}
