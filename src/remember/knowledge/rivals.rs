//! Questions that are not for facts, which every fact must beat.
//!
//! "Who am I?" is as near to "Who are you?" as two sentences can be, so no gate tells them apart. What is asked is put
//! beside a few questions about the person, the past, the present and the world: where one of them is nearer than every
//! question of a fact, the fact is no answer.

use std::sync::OnceLock;

use crate::remember::embed::{EmbedError, EmbedText, cosine};

/// One for each kind of question that people ask a robot and that no fact answers. Chosen on the tuning half of
/// `tests/questions/facts.toml`, where “Who am I?” scores 0.79 against a fact.
const QUESTIONS: [&str; 16] = [
    "Who am I?",
    "What is my name?",
    "What day is it today?",
    "What is in front of you now?",
    "Where is my cup?",
    "What did I do today?",
    "What did you see today?",
    "Who was here?",
    "Good morning, how are you?",
    "What is the capital of this country?",
    "Can you do something for me?",
    "What did I tell you?",
    "I love you.",
    "Are you bored?",
    "What is our password?",
    "How do I write a program?",
];

/// Their vectors, embedded when they are first needed.
#[derive(Default)]
pub struct Rivals {
    vectors: OnceLock<Vec<Vec<f32>>>,
}

impl Rivals {
    /// Cosine of the nearest of them to a question.
    ///
    /// # Errors
    /// [`EmbedError`] when they could not be embedded.
    pub fn nearest(&self, question: &[f32], embedder: &dyn EmbedText) -> Result<f32, EmbedError> {
        let vectors = match self.vectors.get() {
            Some(vectors) => vectors,
            None => {
                let made = embedder.stored(&QUESTIONS)?;
                self.vectors.get_or_init(|| made)
            }
        };
        Ok(vectors.iter().map(|rival| cosine(rival, question)).fold(-1.0, f32::max))
    }
}
