//! The gate of facts: the shipped questions put to the shipped facts, as [`crate::remember::knowledge`] would.

use super::{CalibrateError, Half, Measured};
use crate::remember::embed::EmbedText;
use crate::remember::knowledge::facts::Facts;
use crate::remember::knowledge::questions::{Found, Questions, SHIPPED};

/// What each question comes to at every gate. Blocks for seconds.
///
/// # Errors
/// [`CalibrateError`].
pub fn measure(facts: &Facts, embedder: &dyn EmbedText) -> Result<Vec<Measured>, CalibrateError> {
    let questions = Questions::parse(SHIPPED, facts)?;
    let mut measured = Vec::new();
    for (half, asked) in [(Half::Tune, &questions.tune), (Half::Held, &questions.held)] {
        measured.extend(asked.score(facts, embedder)?.iter().map(|found| of(half, found)));
    }
    Ok(measured)
}

/// A question that a rival took, as one about the person, has the score 0 and is answered at no gate.
fn of(half: Half, Found { question, best, right, .. }: &Found) -> Measured {
    let answer = |gate| (*best >= gate).then_some(*right == Some(true));
    Measured::new(question, half, right.is_some(), Some(*best), answer)
}
