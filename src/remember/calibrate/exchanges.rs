//! Questions over a memory of exchanges, asked of the real engine.

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::{CalibrateError, Half, Halves, Measured};
use crate::remember::embed::EmbedText;
use crate::remember::recall::{self, Decision, Scored};
use crate::remember::{Exchange, Memory, MemoryError, Query, Settings};
use crate::think::tools::About;

/// The questions that ship with the project: a house of single facts in two halves, and five in which many things are
/// near to one another, of which three are for choosing and two for measuring only.
pub const SHIPPED: [&str; 6] = [
    include_str!("../../../tests/questions/exchanges.toml"),
    include_str!("../../../tests/questions/year_tune.toml"),
    include_str!("../../../tests/questions/coast_tune.toml"),
    include_str!("../../../tests/questions/village_tune.toml"),
    include_str!("../../../tests/questions/year_held.toml"),
    include_str!("../../../tests/questions/flat_held.toml"),
];

/// Answers looked at; recall at 10 needs no more.
const ANSWERS: usize = 10;

/// A memory and questions about it; a file may have one half only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    exchanges: Vec<Turn>,
    /// Questions that name nothing to look for.
    pub naming_nothing: Vec<String>,
    #[serde(default)]
    pub tune: Halves<Answerable>,
    #[serde(default)]
    pub held: Halves<Answerable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    id: String,
    heard: String,
    said: String,
}

/// A question and the exchanges that answer it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answerable {
    pub category: String,
    pub asks: String,
    pub finds: Vec<String>,
}

/// A question with everything that may answer it.
pub struct Searched {
    pub asks: String,
    /// `None` for a question that nothing answers.
    pub category: Option<String>,
    pub half: Half,
    pub candidates: Vec<Scored>,
    /// The exchanges that answer.
    pub finds: Vec<Exchange>,
    /// How long the search took, embedding included, in milliseconds.
    pub took_ms: f64,
}

/// Asks every question of several files, each over its own exchanges.
///
/// # Errors
/// [`CalibrateError`].
pub async fn search(files: &[Questions], embedder: &Arc<dyn EmbedText>) -> Result<Vec<Searched>, CalibrateError> {
    let mut searched = Vec::new();
    for questions in files {
        searched.extend(questions.search(Arc::clone(embedder)).await?);
    }
    Ok(searched)
}

impl Questions {
    /// The files that ship with the project.
    ///
    /// # Errors
    /// As [`Questions::parse`]; a test rules them out.
    pub fn shipped() -> Result<Vec<Self>, CalibrateError> {
        SHIPPED.iter().map(|text| Self::parse(text)).collect()
    }

    /// Reads a file of questions.
    ///
    /// # Errors
    /// [`CalibrateError::Questions`] for what it does not know, and for a question that finds no exchange.
    pub fn parse(text: &str) -> Result<Self, CalibrateError> {
        let questions: Self = toml::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))?;
        for answerable in questions.tune.answerable.iter().chain(&questions.held.answerable) {
            let known = |id: &String| questions.exchanges.iter().any(|turn| turn.id == *id);
            if answerable.finds.is_empty() || !answerable.finds.iter().all(known) {
                let why = format!("“{}” finds {:?}, which is not all there", answerable.asks, answerable.finds);
                return Err(CalibrateError::Questions(why));
            }
        }
        Ok(questions)
    }

    /// Puts the exchanges into a memory of their own and asks it every question.
    ///
    /// # Errors
    /// [`CalibrateError`].
    pub async fn search(&self, embedder: Arc<dyn EmbedText>) -> Result<Vec<Searched>, CalibrateError> {
        let folder = tempfile::tempdir()?;
        let memory = open(folder.path(), embedder).await?;
        let exchanges: Vec<Exchange> =
            self.exchanges.iter().zip(0..).map(|(turn, hour)| exchange(turn, hour)).collect();
        memory.store(exchanges.clone()).await?;
        let mut all = Vec::new();
        for (half, questions) in [(Half::Tune, &self.tune), (Half::Held, &self.held)] {
            let answerable = questions.answerable.iter().map(|one| (&one.asks, Some(one)));
            for (asks, answerable) in answerable.chain(questions.absent.iter().map(|asks| (asks, None))) {
                let finds = answerable.map(|one| one.finds.as_slice()).unwrap_or_default();
                let places = finds.iter().filter_map(|id| self.exchanges.iter().position(|turn| turn.id == *id));
                let finds = places.filter_map(|place| exchanges.get(place).cloned()).collect();
                let began = std::time::Instant::now();
                let candidates = memory.candidates(query(asks)).await?;
                all.push(Searched {
                    asks: asks.clone(),
                    category: answerable.map(|one| one.category.clone()),
                    half,
                    candidates,
                    finds,
                    took_ms: began.elapsed().as_secs_f64() * 1000.0,
                });
            }
        }
        Ok(all)
    }
}

/// Opens an empty memory for measuring.
///
/// # Errors
/// [`CalibrateError`].
pub async fn open(folder: &Path, embedder: Arc<dyn EmbedText>) -> Result<Memory, CalibrateError> {
    let settings = Settings {
        folder: folder.to_owned(),
        // Nothing here is decided by the memory's own gates.
        exchange_gate: 1.0,
        frame_gate: 1.0,
        near_duplicate: 1.0,
        limit: ANSWERS,
        min_free_bytes: 0,
        search_threads: 1,
    };
    let opened = tokio::task::spawn_blocking(move || Memory::open(settings, embedder, Timestamp::UNIX_EPOCH)).await;
    Ok(opened.map_err(|_| MemoryError::Closed)??.memory)
}

/// A question about what was said at any time.
#[must_use]
pub fn query(text: &str) -> Query {
    let now = Timestamp::UNIX_EPOCH;
    Query { text: text.to_owned(), about: About::Said, when: None, direction: None, just_said: Vec::new(), now }
}

/// What each question comes to at every gate.
#[must_use]
pub fn measure(searched: &[Searched]) -> Vec<Measured> {
    let first = |question: &Searched, gate: f32| match recall::decide(question.candidates.clone(), gate, 1) {
        Decision::Found(memories) => memories.into_iter().next(),
        Decision::Nothing { .. } => None,
    };
    let measured = searched.iter().map(|question| {
        let best = first(question, f32::MIN).and_then(|memory| memory.score);
        let answer = |gate| first(question, gate).map(|memory| question.finds.contains(&memory.exchange));
        Measured::new(&question.asks, question.half, question.category.is_some(), best, answer)
    });
    measured.collect()
}

/// The turn as an exchange, said `hour` hours after the first.
fn exchange(turn: &Turn, hour: i64) -> Exchange {
    let said_at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour);
    Exchange { heard: turn.heard.clone(), said: turn.said.clone(), speaker: None, said_at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_that_ship_are_whole_and_enough() {
        for questions in Questions::shipped().unwrap() {
            is_whole_and_enough(&questions);
        }
    }

    fn is_whole_and_enough(questions: &Questions) {
        let halves = [&questions.tune, &questions.held];
        let count = |count: fn(&Halves<Answerable>) -> usize| halves.iter().map(|half| count(half)).sum::<usize>();
        assert!(questions.exchanges.len() >= 150);
        assert!(count(|half| half.answerable.len()) >= 60 && count(|half| half.absent.len()) >= 40);
        for asks in &questions.naming_nothing {
            assert!(recall::names_nothing(asks), "{asks}");
        }
        for asks in halves.iter().flat_map(|half| half.answerable.iter().map(|one| &one.asks)) {
            assert!(!recall::names_nothing(asks), "{asks}");
        }
    }

    #[test]
    fn a_question_that_finds_what_is_not_there_is_refused() {
        let text = "exchanges = []\nnaming_nothing = []\n[held]\nanswerable = []\nabsent = []\n[tune]\nabsent = []\n\
                    answerable = [{ category = \"name\", asks = \"x\", finds = [\"y\"] }]\n";
        assert!(Questions::parse(text).unwrap_err().to_string().contains("not all there"));
    }
}
