//! Questions about what was seen. A question that names something of the detector's vocabulary is answered by what a
//! frame shows, whatever the gate; the gate decides about the others.

use jiff::civil::{Time, date};
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::{CalibrateError, Half, Measured};
use crate::remember::Frame;
use crate::remember::embed::{EmbedError, EmbedText, cosine};
use crate::remember::{naming, seen};
use crate::robot::Direction;
use crate::see::told;

/// The questions that ship with the project.
pub const QUESTIONS: &str = include_str!("../../../tests/questions/frames.toml");

/// Frames told at most, as on the robot.
const LIMIT: usize = 5;

/// A day and questions about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    day: Vec<Look>,
    looks: Vec<Look>,
    found: Vec<Shown>,
    found_by_words: Vec<Shown>,
    absent: Vec<String>,
    nothing_named: Vec<String>,
    /// Asked only to see how well the gate does.
    #[serde(default)]
    held: Held,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    found_by_words: Vec<Shown>,
    absent: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    at: Time,
    sees: Vec<String>,
    looked: Option<Direction>,
    said: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    asks: String,
    shows: String,
}

impl Questions {
    /// Reads a file of questions.
    ///
    /// # Errors
    /// [`CalibrateError::Questions`].
    pub fn parse(text: &str) -> Result<Self, CalibrateError> {
        toml::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))
    }

    /// How many questions name nothing, and how many of them are taken so.
    #[must_use]
    pub fn naming_nothing(&self) -> (usize, usize) {
        let taken = self.nothing_named.iter().filter(|asks| seen::names_nothing(asks)).count();
        (self.nothing_named.len(), taken)
    }

    /// What each question comes to at every gate. Blocks.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`].
    pub fn measure(&self, embedder: &dyn EmbedText) -> Result<Vec<Measured>, CalibrateError> {
        let frames = self.day.iter().chain(&self.looks).map(Look::frame).collect::<Result<Vec<_>, _>>()?;
        let words: Vec<String> = frames.iter().map(Frame::words).collect();
        let vectors = embedder.stored(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        let blank = embedder.stored(&[seen::BLANK])?.pop();
        let blank = blank.ok_or_else(|| EmbedError::Run { why: "one text gave no vector".into() })?;
        let there = self.found.iter().chain(&self.found_by_words).map(|one| (Half::Tune, one));
        let there = there.chain(self.held.found_by_words.iter().map(|one| (Half::Held, one)));
        let there = there.map(|(half, one)| (half, &one.asks, Some(one.shows.as_str())));
        let absent = self.absent.iter().map(|asks| (Half::Tune, asks, None));
        let absent = absent.chain(self.held.absent.iter().map(|asks| (Half::Held, asks, None)));
        let mut measured = Vec::new();
        for (half, asks, shows) in there.chain(absent) {
            let question = embedder.question(asks)?;
            let named = naming::named(asks);
            let blank = cosine(&question, &blank);
            let candidates = || {
                let scored = frames.iter().zip(&vectors).map(|(frame, vector)| (frame, cosine(&question, vector)));
                scored.map(|(frame, score)| seen::Candidate { frame: frame.clone(), score }).collect::<Vec<_>>()
            };
            let best = candidates().iter().map(|candidate| candidate.score).reduce(f32::max);
            let answer = |gate| {
                let found = seen::decide(candidates(), &named, gate, blank, LIMIT);
                found
                    .first()
                    .map(|first| shows.is_some_and(|shows| first.frame.labels.iter().any(|label| label == shows)))
            };
            measured.push(Measured::new(asks, half, shows.is_some(), best, answer));
        }
        Ok(measured)
    }
}

impl Look {
    fn frame(&self) -> Result<Frame, CalibrateError> {
        let looked = self.looked.unwrap_or(Direction::Ahead);
        let seen_at = date(2026, 5, 4)
            .to_datetime(self.at)
            .to_zoned(TimeZone::UTC)
            .map_err(|error| CalibrateError::Questions(format!("{}: {error}", self.at)))?
            .timestamp();
        let mut labels = self.sees.clone();
        let people = labels.iter().filter(|label| *label == told::PERSON).count();
        let sentence = told::sentence(&told::counts(self.sees.iter().map(String::as_str)), looked, &[]);
        labels.sort();
        labels.dedup();
        Ok(Frame {
            seen_at,
            looked,
            labels,
            detections: Vec::new(),
            names: Vec::new(),
            people: u32::try_from(people).unwrap_or(u32::MAX),
            sentence,
            caption: self.said.clone(),
            jpeg: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_that_ship_are_whole() {
        let questions = Questions::parse(QUESTIONS).unwrap();
        let (asked, taken) = questions.naming_nothing();
        assert!(asked >= 10 && taken == asked, "{taken} of {asked}");
        assert!(questions.found_by_words.len() >= 6 && questions.held.found_by_words.len() >= 6);
        assert!(questions.absent.len() >= 15 && questions.held.absent.len() >= 10);
    }
}
