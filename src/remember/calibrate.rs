//! Where a gate comes from: questions with what each should find, and the gate that gets most of them right.
//!
//! A gate decides WHETHER there is an answer. Too low, the robot tells something that was not asked; too high, it denies
//! what it remembers. The first is worse, so a wrong answer costs as much as [`WRONG_COSTS`] missed ones.

use serde::{Deserialize, Serialize};

use super::Exchange;
use super::embed::{EmbedError, EmbedText, cosine};

/// The questions that ship with the project.
pub const QUESTIONS: &str = include_str!("../../tests/questions/exchanges.toml");

/// Missed answers that one wrong answer weighs: a robot that makes something up is worse than one that asks again.
/// A choice, not a measurement.
pub const WRONG_COSTS: f32 = 2.0;

/// Gates are tried in steps of this.
const STEP: f32 = 0.01;

/// A file of questions over a memory of exchanges.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    exchanges: Vec<Turn>,
    answerable: Vec<Answerable>,
    absent: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    heard: String,
    said: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answerable {
    asks: String,
    finds: usize,
}

/// What one question's best match was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    pub question: String,
    pub best: f32,
    /// Whether the best match is the one that answers; `None` for a question that nothing answers.
    pub right: Option<bool>,
}

/// How a gate does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtGate {
    pub gate: f32,
    /// Answerable questions answered with the right exchange.
    pub right: usize,
    /// Answered with another exchange, or answered although nothing answers.
    pub wrong: usize,
    /// Answerable questions that found nothing.
    pub missed: usize,
}

/// Why a file of questions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error("the questions cannot be read: {0}")]
    Questions(String),
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

impl Questions {
    /// Reads a file of questions.
    ///
    /// # Errors
    /// [`CalibrateError::Questions`] for what it does not know, and for a question that finds no exchange.
    pub fn parse(text: &str) -> Result<Self, CalibrateError> {
        let questions: Self = toml::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))?;
        for answerable in &questions.answerable {
            if answerable.finds >= questions.exchanges.len() {
                let why = format!("“{}” finds exchange {}, which is not there", answerable.asks, answerable.finds);
                return Err(CalibrateError::Questions(why));
            }
        }
        Ok(questions)
    }

    /// Scores every question against every exchange. Blocks.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`].
    pub fn score(&self, embedder: &dyn EmbedText) -> Result<Vec<Scored>, CalibrateError> {
        let lines: Vec<String> = self.exchanges.iter().map(line).collect();
        let stored = embedder.stored(&lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        let answerable = self.answerable.iter().map(|question| (&question.asks, Some(question.finds)));
        let absent = self.absent.iter().map(|question| (question, None));
        let mut scored = Vec::new();
        for (question, finds) in answerable.chain(absent) {
            let vector = embedder.question(question)?;
            let best =
                stored.iter().map(|stored| cosine(stored, &vector)).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((place, best)) = best {
                scored.push(Scored { question: question.clone(), best, right: finds.map(|finds| finds == place) });
            }
        }
        Ok(scored)
    }
}

fn line(turn: &Turn) -> String {
    let (heard, said) = (turn.heard.clone(), turn.said.clone());
    Exchange { heard, said, speaker: None, said_at: jiff::Timestamp::UNIX_EPOCH }.line()
}

/// How each gate from 0.20 to 0.90 does.
#[must_use]
pub fn sweep(scored: &[Scored]) -> Vec<AtGate> {
    (20..=90).map(|step| at_gate(scored, step as f32 * STEP)).collect()
}

/// How `gate` does.
#[must_use]
pub fn at_gate(scored: &[Scored], gate: f32) -> AtGate {
    let mut at = AtGate { gate, right: 0, wrong: 0, missed: 0 };
    for question in scored {
        match (question.best >= gate, question.right) {
            (true, Some(true)) => at.right += 1,
            (true, Some(false) | None) => at.wrong += 1,
            (false, Some(_)) => at.missed += 1,
            (false, None) => {}
        }
    }
    at
}

/// The gate that costs least; of equals the one in their middle, which is farthest from both mistakes.
#[must_use]
pub fn best(sweep: &[AtGate]) -> Option<AtGate> {
    let cost = |at: &AtGate| at.missed as f32 + WRONG_COSTS * at.wrong as f32;
    let least = sweep.iter().map(cost).reduce(f32::min)?;
    let equals: Vec<&AtGate> = sweep.iter().filter(|at| cost(at) == least).collect();
    equals.get(equals.len() / 2).map(|at| **at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(best: f32, right: Option<bool>) -> Scored {
        Scored { question: String::new(), best, right }
    }

    #[test]
    fn the_best_gate_lies_between_what_is_there_and_what_is_not() {
        let all = [scored(0.7, Some(true)), scored(0.6, Some(true)), scored(0.4, None), scored(0.3, None)];
        let best = best(&sweep(&all)).unwrap();
        assert!(best.gate > 0.4 && best.gate <= 0.6, "{best:?}");
        assert_eq!((best.right, best.wrong, best.missed), (2, 0, 0));
    }

    #[test]
    fn a_wrong_answer_weighs_more_than_a_missed_one() {
        let all = [scored(0.5, Some(true)), scored(0.55, None), scored(0.7, Some(true))];
        assert!(best(&sweep(&all)).unwrap().gate > 0.55);
    }

    #[test]
    fn the_questions_that_ship_are_whole() {
        let questions = Questions::parse(QUESTIONS).unwrap();
        assert!(questions.answerable.len() >= 40 && questions.absent.len() >= 40);
        assert!(Questions::parse("exchanges = []\nabsent = []\nanswerable = [{ asks = \"x\", finds = 3 }]").is_err());
    }
}
