//! Answering a question from the shard: the searches; what counts is decided in [`recall`] and [`seen`].

use std::collections::HashMap;

use uuid::Uuid;

use super::engine::{Order, Scope, Space};
use super::payload::Stored;
use super::{Inner, MemoryError};
use crate::remember::embed::cosine;
use crate::remember::naming;
use crate::remember::recall::{self, Decision, Scored};
use crate::remember::seen::{self, Candidate, Pick};
use crate::remember::words::{self, Asked};
use crate::remember::{Exchange, Frame, HowSeen, Query, Recalled, SeenFrame, TimeRange};
use crate::think::tools::About;

/// Candidates asked of the engine for each memory that may be told, so that ties and gates have something to choose
/// from. Not measured; the search costs the same up to some dozens.
const CANDIDATES: usize = 4;
/// The newest exchanges of a range that a question naming nothing is answered from, which bounds its cost whatever
/// the age of the robot. A day of talk is shorter. Not measured.
const SAMPLED_FROM: usize = 500;
/// A day's sample is chosen among the newest frames of so many equal slices of its time, so that its cost does not
/// grow with the age of the robot, and every part of the day may be in it.
const SLICES: i64 = 16;
/// What is seen so soon after a turn began belongs to it; a turn has 45 s, and time for its pictures.
const LONGEST_TURN: jiff::SignedDuration = jiff::SignedDuration::from_secs(120);
/// Frames looked at in each slice.
const PER_SLICE: usize = 4;

/// One kind of search, for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searching {
    /// Exchanges by likeness.
    Exchanges,
    /// Exchanges by likeness and by words.
    ExchangesAndWords,
    /// Frames by the likeness of their sentences.
    Frames,
}

impl Inner {
    pub(super) fn search_once(&self, what: Searching, question: &str, limit: usize) -> Result<usize, MemoryError> {
        let (vector, scope) = (self.embedder.question(question)?, Scope::default());
        Ok(match what {
            Searching::Exchanges => self.engine.nearest::<Exchange>(vector, Space::Text, &scope, limit)?.len(),
            Searching::ExchangesAndWords => {
                self.engine.hybrid::<Exchange>(vector, &Asked::of(question), &scope, limit)?.hits.len()
            }
            Searching::Frames => self.engine.nearest::<Frame>(vector, Space::Text, &scope, limit)?.len(),
        })
    }

    pub(super) fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        match query.about {
            About::Seen => self.recall_seen(query),
            About::Any if names_seeing(&query.text) => self.first_found(query, Self::recall_seen, Self::recall_said),
            About::Any => self.first_found(query, Self::recall_said, Self::recall_pictured),
            About::Said | About::Me | About::Taught => self.recall_said(query),
        }
    }

    /// The first search's answer where it has one, else the second's.
    fn first_found(
        &self,
        query: &Query,
        first: impl Fn(&Self, &Query) -> Result<Recalled, MemoryError>,
        second: impl Fn(&Self, &Query) -> Result<Recalled, MemoryError>,
    ) -> Result<Recalled, MemoryError> {
        let (searched, best) = match first(self, query)? {
            Recalled::Nothing { searched, best } => (searched, best),
            found => return Ok(found),
        };
        match second(self, query)? {
            Recalled::Nothing { searched: more, best: other } => Ok(Recalled::Nothing {
                searched: searched + more,
                best: best.into_iter().chain(other).reduce(f32::max),
            }),
            found => Ok(found),
        }
    }

    fn recall_said(&self, query: &Query) -> Result<Recalled, MemoryError> {
        if recall::names_nothing(&query.text) {
            return self.sample_said(query);
        }
        match recall::decide(self.candidates(query)?, self.settings.exchange_gate, self.settings.limit) {
            Decision::Found(memories) => Ok(Recalled::Found { memories }),
            Decision::Nothing { best } => {
                let searched = self.engine.count::<Exchange>(&Scope::during(query.when))? + query.just_said.len();
                Ok(Recalled::Nothing { searched, best })
            }
        }
    }

    /// What may answer: the exchanges nearest to the question by likeness and by words, and what was just said.
    pub(super) fn candidates(&self, query: &Query) -> Result<Vec<Scored>, MemoryError> {
        let question = self.embedder.question(&query.text)?;
        let asked = Asked::of(&query.text);
        let just_said = self.just_said.scored(&query.just_said, &question, self.embedder.as_ref())?;
        let (scope, limit) = (Scope::during(query.when), self.settings.limit.max(1) * CANDIDATES);
        let hybrid = self.engine.hybrid::<Exchange>(question, &asked, &scope, limit)?;
        let stored = hybrid.hits.into_iter().map(|hit| Scored {
            words: hybrid.weights.compare(&asked, &hit.known.bag),
            exchange: hit.known.memory.clone(),
            score: hit.cosine,
            just_said: false,
        });
        let just_said = just_said.into_iter().map(|(exchange, score)| {
            let bag = exchange.words().map(|text| words::bag(&text)).unwrap_or_default();
            Scored { words: hybrid.weights.compare(&asked, &bag), exchange, score, just_said: true }
        });
        let mut candidates: Vec<Scored> = just_said.chain(stored).collect();
        candidates.retain(|candidate| recall::may_answer(candidate.exchange.said_at, query.when));
        Ok(candidates)
    }

    /// A question that names nothing is answered by its time.
    fn sample_said(&self, query: &Query) -> Result<Recalled, MemoryError> {
        let stored = self.engine.in_time::<Exchange>(&Scope::during(query.when), Order::NewestFirst, SAMPLED_FROM)?;
        let all = stored
            .into_iter()
            .map(|exchange| (exchange, false))
            .chain(query.just_said.iter().map(|exchange| (exchange.clone(), true)))
            .filter(|(exchange, _)| recall::may_answer(exchange.said_at, query.when))
            .collect();
        Ok(recall::sample(all, self.settings.limit))
    }

    fn recall_seen(&self, query: &Query) -> Result<Recalled, MemoryError> {
        if !seen::names_nothing(&query.text) {
            return self.recall_named(query);
        }
        let scope = scope_of(query);
        if query.direction.is_some() {
            let last = self.engine.in_time::<Frame>(&scope, Order::NewestFirst, 1)?;
            return Ok(seen_or_nothing(unscored(last), HowSeen::LastLook, 0));
        }
        let of = self.engine.count::<Frame>(&scope)?;
        let picks = self.picks(query, &scope)?;
        let frames = seen::sample(picks, self.settings.near_duplicate, seen::SAMPLE);
        Ok(seen_or_nothing(unscored(frames), HowSeen::Sampled { of }, of))
    }

    /// The frames that show what a question names, by their sentences.
    fn recall_named(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.recall_shown(query, false)
    }

    /// The same for a question that does not speak of seeing: a frame must be about it, not only show a thing in it.
    fn recall_pictured(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.recall_shown(query, true)
    }

    fn recall_shown(&self, query: &Query, must_pass_the_gate: bool) -> Result<Recalled, MemoryError> {
        let question = self.embedder.question(&query.text)?;
        let named = naming::named(&query.text);
        let all = scope_of(query);
        let scope = Scope { labels: named.clone(), ..all.clone() };
        let limit = self.settings.limit;
        let blank = cosine(&question, self.blank()?);
        let nearest = self.engine.nearest::<Frame>(question, Space::Text, &scope, limit.max(1) * CANDIDATES)?;
        let gate = self.settings.frame_gate;
        let counts = |score: f32| !must_pass_the_gate || (score >= gate && score > blank);
        let candidates: Vec<Candidate> = nearest
            .into_iter()
            .filter(|(_, score)| counts(*score))
            .map(|(frame, score)| Candidate { frame, score })
            .collect();
        let best = candidates.first().map(|candidate| candidate.score);
        let found = seen::decide(candidates, &named, gate, blank, limit);
        if found.is_empty() {
            return Ok(Recalled::Nothing { searched: self.engine.count::<Frame>(&all)?, best });
        }
        let frames =
            found.into_iter().map(|candidate| SeenFrame { score: Some(candidate.score), frame: candidate.frame });
        Ok(Recalled::Seen { frames: frames.collect(), how: HowSeen::Named })
    }

    /// Frames that a sample may choose from, spread over the time that was asked about.
    fn picks(&self, query: &Query, scope: &Scope) -> Result<Vec<Pick>, MemoryError> {
        let end = |order| self.engine.in_time::<Frame>(scope, order, 1);
        let (Some(first), Some(last)) = (end(Order::OldestFirst)?.pop(), end(Order::NewestFirst)?.pop()) else {
            return Ok(Vec::new());
        };
        let mut frames: HashMap<Uuid, Frame> = HashMap::new();
        for slice in slices(TimeRange { from: first.seen_at, to: last.seen_at }) {
            let scope = Scope { when: Some(slice), ..scope.clone() };
            let newest = self.engine.in_time::<Frame>(&scope, Order::NewestFirst, PER_SLICE)?;
            frames.extend(newest.into_iter().map(|frame| (frame.id(), frame)));
        }
        let mut images = self.engine.images(&frames.keys().copied().collect::<Vec<_>>())?;
        let words = match self.images.get() {
            Some(embedder) if !images.is_empty() => Some(embedder.words(&query.text)?),
            _ => None,
        };
        let picks = frames.into_iter().map(|(id, frame)| {
            let image = images.remove(&id);
            let nearness = image.as_ref().zip(words.as_ref()).map(|(image, words)| cosine(image, words));
            Pick { frame, image, nearness }
        });
        Ok(picks.collect())
    }

    fn blank(&self) -> Result<&[f32], MemoryError> {
        if let Some(blank) = self.blank.get() {
            return Ok(blank);
        }
        let blank = super::one_vector(self.embedder.as_ref(), seen::BLANK)?;
        Ok(self.blank.get_or_init(|| blank))
    }
}

/// A frame of this very turn is the present, not a memory.
fn scope_of(query: &Query) -> Scope {
    let to = query.now.saturating_add(LONGEST_TURN).unwrap_or(query.now);
    let present = Some(TimeRange { from: query.now, to });
    Scope { when: query.when, but: present, labels: Vec::new(), looked: query.direction }
}

fn unscored(frames: Vec<Frame>) -> Vec<SeenFrame> {
    frames.into_iter().map(|frame| SeenFrame { frame, score: None }).collect()
}

fn seen_or_nothing(frames: Vec<SeenFrame>, how: HowSeen, searched: usize) -> Recalled {
    if frames.is_empty() { Recalled::Nothing { searched, best: None } } else { Recalled::Seen { frames, how } }
}

/// Whether a question speaks of seeing.
fn names_seeing(question: &str) -> bool {
    const SEEING: [&str; 9] = ["see", "saw", "seen", "look", "looked", "notice", "noticed", "watch", "picture"];
    let lower = question.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| SEEING.contains(&word))
}

/// A stretch of time in [`SLICES`] slices, to the second.
fn slices(range: TimeRange) -> Vec<TimeRange> {
    let (from, to) = (range.from.as_second(), range.to.as_second());
    let edge = |slice: i64| from + (to + 1 - from) * slice / SLICES;
    let at = |second: i64| jiff::Timestamp::from_second(second).unwrap_or(range.to);
    (0..SLICES)
        .filter(|slice| edge(*slice) < edge(slice + 1))
        .map(|slice| TimeRange { from: at(edge(slice)), to: at(edge(slice + 1) - 1) })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn slices_cover_every_second_of_a_day_once() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (from, to) in [(0, 86_399), (100, 100), (7, 12)] {
            let slices = slices(TimeRange { from: at(from), to: at(to) });
            assert_eq!((slices[0].from, slices[slices.len() - 1].to), (at(from), at(to)));
            for pair in slices.windows(2) {
                assert_eq!(pair[0].to.as_second() + 1, pair[1].from.as_second());
            }
        }
    }
}
