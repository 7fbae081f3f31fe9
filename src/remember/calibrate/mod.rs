//! Where a gate comes from: questions with what each should find, and the gate that gets most of them right.
//!
//! A gate decides WHETHER there is an answer. Too low, the robot tells something that was not asked; too high, it denies
//! what it remembers. The first is worse, so a wrong answer costs more ([`WRONG_COSTS`]) than a missed one ([`MISSED_COSTS`]). [`exchanges`]
//! and [`frames`] ask their store's questions at every gate with the very functions that answer on the robot, and
//! [`facts`](super::knowledge::questions) theirs with their rivals;
//! the gate is chosen over the tune half of the questions, and the held half only says how well that went.

pub mod exchanges;
pub mod frames;
pub mod write;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::embed::EmbedError;
use super::{MemoryError, OpenError};

/// What a wrong answer costs against [`MISSED_COSTS`]: a robot that makes something up is worse than one that asks again,
/// but one that denies a third of what it remembers is no good either. A choice, not a measurement.
pub const WRONG_COSTS: usize = 3;
/// What an answerable question that found nothing costs.
pub const MISSED_COSTS: usize = 2;

/// The gates that are tried, in hundredths.
const TRIED: RangeInclusive<u8> = 20..=90;

/// A stored gate this near to the chosen one is that one, rounded.
pub const SAME: f32 = 0.005;

/// What a gate is chosen over, and what only says how well that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    Tune,
    Held,
}

/// One half of the questions of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halves<A> {
    pub answerable: Vec<A>,
    /// Questions that nothing answers.
    pub absent: Vec<String>,
}

impl<A> Default for Halves<A> {
    fn default() -> Self {
        Self { answerable: Vec::new(), absent: Vec::new() }
    }
}

/// What a question comes to at one gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Answered with what answers it.
    Right,
    /// Answered with something else, or answered although nothing answers it.
    Wrong,
    Nothing,
}

/// What one question came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub asks: String,
    pub half: Half,
    pub answerable: bool,
    /// The score of the first of its answers, were there no gate; 0 where there is none.
    pub best: f32,
    /// At each gate that is tried.
    #[serde(skip)]
    outcomes: Vec<Outcome>,
}

impl Measured {
    /// Asks at every gate. `answer` says whether the first answer at a gate is the right one; `None`: there is none.
    pub fn new(
        asks: &str,
        half: Half,
        answerable: bool,
        best: Option<f32>,
        answer: impl Fn(f32) -> Option<bool>,
    ) -> Self {
        let outcomes = gates().map(|gate| match answer(gate) {
            Some(true) => Outcome::Right,
            Some(false) => Outcome::Wrong,
            None => Outcome::Nothing,
        });
        Self { asks: asks.to_owned(), half, answerable, best: best.unwrap_or(0.0), outcomes: outcomes.collect() }
    }

    /// What it comes to at the tried gate nearest to `gate`.
    #[must_use]
    pub fn at(&self, gate: f32) -> Outcome {
        self.outcomes.get(place(gate)).copied().unwrap_or(Outcome::Nothing)
    }

    /// Whether that is a mistake.
    #[must_use]
    pub fn is_mistake(&self, gate: f32) -> bool {
        match self.at(gate) {
            Outcome::Right => false,
            Outcome::Wrong => true,
            Outcome::Nothing => self.answerable,
        }
    }
}

fn gates() -> impl Iterator<Item = f32> {
    TRIED.map(|hundredths| f32::from(hundredths) / 100.0)
}

/// The place of the tried gate nearest to `gate`.
fn place(gate: f32) -> usize {
    let steps = (gate * 100.0).round() - f32::from(*TRIED.start());
    // A gate outside of what is tried does as the last one before it.
    (steps.max(0.0) as usize).min(TRIED.len() - 1)
}

/// How a gate does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtGate {
    pub gate: f32,
    /// Answerable questions answered with what answers them.
    pub right: usize,
    /// Answered with something else, or answered although nothing answers.
    pub wrong: usize,
    /// Answerable questions that found nothing.
    pub missed: usize,
}

impl AtGate {
    fn cost(&self) -> usize {
        MISSED_COSTS * self.missed + WRONG_COSTS * self.wrong
    }
}

/// How `gate` does over the questions of a half, or over all.
#[must_use]
pub fn at_gate(measured: &[Measured], half: Option<Half>, gate: f32) -> AtGate {
    let mut at = AtGate { gate, right: 0, wrong: 0, missed: 0 };
    for question in measured.iter().filter(|question| half.is_none_or(|half| half == question.half)) {
        match question.at(gate) {
            Outcome::Right => at.right += 1,
            Outcome::Wrong => at.wrong += 1,
            Outcome::Nothing => at.missed += usize::from(question.answerable),
        }
    }
    at
}

/// How each gate from 0.20 to 0.90 does over the tune half.
#[must_use]
pub fn sweep(measured: &[Measured]) -> Vec<AtGate> {
    gates().map(|gate| at_gate(measured, Some(Half::Tune), gate)).collect()
}

/// The gate that costs least; of equals those that answer most, and of these the one in their middle, which is farthest
/// from both mistakes.
#[must_use]
pub fn best(sweep: &[AtGate]) -> Option<AtGate> {
    let least = sweep.iter().map(AtGate::cost).min()?;
    let most = sweep.iter().filter(|at| at.cost() == least).map(|at| at.right).max()?;
    let equals: Vec<&AtGate> = sweep.iter().filter(|at| at.cost() == least && at.right == most).collect();
    equals.get(equals.len() / 2).map(|at| **at)
}

/// How far right answers lie over absent ones: the lowest score of a rightly answered question, and the highest that a
/// question without an answer reached. Only what likeness alone decided counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Margin {
    pub lowest_right: Option<f32>,
    pub highest_absent: Option<f32>,
}

/// The margin over all questions.
#[must_use]
pub fn margin(measured: &[Measured]) -> Margin {
    // At the highest gate only what the gate does not decide is answered.
    let by_likeness = |question: &&Measured| question.outcomes.last() == Some(&Outcome::Nothing);
    let right = |question: &&Measured| question.answerable && question.at(0.0) == Outcome::Right;
    let scores = |keep: &dyn Fn(&&Measured) -> bool| -> Vec<f32> {
        measured.iter().filter(by_likeness).filter(|question| keep(question)).map(|question| question.best).collect()
    };
    Margin {
        lowest_right: scores(&right).into_iter().reduce(f32::min),
        highest_absent: scores(&|question| !question.answerable).into_iter().reduce(f32::max),
    }
}

/// Why a gate cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error("the questions cannot be read: {0}")]
    Questions(String),
    #[error("the memory that the questions are asked of could not be made: {0}")]
    Place(#[from] std::io::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answered by likeness alone, with what `right` says.
    fn measured(best: f32, right: Option<bool>) -> Measured {
        let answer = |gate| (best >= gate).then_some(right == Some(true));
        Measured::new("", Half::Tune, right.is_some(), Some(best), answer)
    }

    #[test]
    fn the_best_gate_lies_between_what_is_there_and_what_is_not() {
        let there = [0.7, 0.6].map(|best| measured(best, Some(true)));
        let not = [0.4, 0.4, 0.4, 0.3].map(|best| measured(best, None));
        let all: Vec<Measured> = there.into_iter().chain(not).collect();
        let best = best(&sweep(&all)).unwrap();
        assert!(best.gate > 0.4 && best.gate <= 0.6, "{best:?}");
        assert_eq!((best.right, best.wrong, best.missed), (2, 0, 0));
        assert_eq!(margin(&all), Margin { lowest_right: Some(0.6), highest_absent: Some(0.4) });
    }

    #[test]
    fn a_wrong_answer_weighs_more_than_a_missed_one() {
        let absent = (0..3).map(|_| measured(0.55, None));
        let all: Vec<Measured> = [0.5, 0.7].map(|best| measured(best, Some(true))).into_iter().chain(absent).collect();
        assert!(best(&sweep(&all)).unwrap().gate > 0.55);
    }

    #[test]
    fn of_gates_that_cost_the_same_the_one_that_answers_more_is_chosen() {
        // Two wrong answers cost what three missed ones do.
        let there = [0.7, 0.5, 0.5, 0.5].map(|best| measured(best, Some(true)));
        let all: Vec<Measured> = there.into_iter().chain([measured(0.55, None), measured(0.55, None)]).collect();
        let best = best(&sweep(&all)).unwrap();
        assert_eq!((best.right, best.wrong, best.missed), (4, 2, 0));
    }

    #[test]
    fn the_held_half_has_no_say() {
        let held = Measured { half: Half::Held, ..measured(0.9, None) };
        let all = [measured(0.7, Some(true)), measured(0.4, None), held];
        assert!(best(&sweep(&all)).unwrap().gate < 0.71);
        assert_eq!(at_gate(&all, Some(Half::Held), 0.5).wrong, 1);
    }

    #[test]
    fn a_gate_outside_of_what_is_tried_does_as_the_last_one() {
        assert_eq!((place(0.0), place(0.2), place(0.57), place(1.0)), (0, 0, 37, 70));
    }
}
