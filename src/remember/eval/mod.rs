//! How well the memory finds what was said: ranks over questions whose answers are known, by category.
//!
//! Pure counting; [`locomo`] reads conversations in another project's format. The same candidates are put in order by
//! likeness alone, by BM25 alone and by both, so that the three can be held against each other; whether there is an answer
//! at all is decided as on the robot.

pub mod locomo;

use std::collections::BTreeMap;

use serde::Serialize;

use super::Exchange;
use super::calibrate::Half;
use super::calibrate::exchanges::Searched;
use super::recall::{self, Decision, Scored};

/// The name of the row over all categories.
pub const ALL: &str = "all";

/// What candidates are put in order by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The cosine of the vectors.
    Dense,
    /// BM25.
    Words,
    /// Both; the order of the robot's answers.
    Fused,
}

impl By {
    pub const ALL: [Self; 3] = [Self::Dense, Self::Words, Self::Fused];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Words => "BM25",
            Self::Fused => "fused",
        }
    }

    /// What a candidate is ordered by; `None` where it would not have been found this way.
    fn score(self, candidate: &Scored) -> Option<f32> {
        match self {
            Self::Dense => Some(candidate.score),
            Self::Words => (candidate.words.bm25 > 0.0).then_some(candidate.words.bm25),
            Self::Fused => Some(candidate.fused()),
        }
    }

    /// The place, from 0, of the first candidate that answers.
    fn rank(self, candidates: &[Scored], finds: &[Exchange]) -> Option<usize> {
        let mut order: Vec<(f32, &Scored)> =
            candidates.iter().filter_map(|candidate| Some((self.score(candidate)?, candidate))).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.iter().position(|(_, candidate)| finds.contains(&candidate.exchange))
    }
}

/// One question, put in order three ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// `None` for a question that nothing answers.
    pub category: Option<String>,
    pub half: Half,
    /// The place, from 0, of the first candidate that answers, in the order of [`By::ALL`]; `None` where it was not
    /// found that way.
    pub places: [Option<usize>; 3],
    /// Whether the robot answers with nothing.
    pub refused: bool,
    /// How long the search took, embedding included, in milliseconds; `None` where it was not timed.
    pub took_ms: Option<f64>,
}

impl Ranked {
    /// A question about what was said, at the gate in use.
    #[must_use]
    pub fn said(searched: &Searched, gate: f32) -> Self {
        let refused = matches!(recall::decide(searched.candidates.clone(), gate, 1), Decision::Nothing { .. });
        Self {
            category: searched.category.clone(),
            half: searched.half,
            places: By::ALL.map(|by| by.rank(&searched.candidates, &searched.finds)),
            refused,
            took_ms: Some(searched.took_ms),
        }
    }
}

/// One category, one order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub category: String,
    pub by: By,
    pub asked: usize,
    /// Shares of the questions, 0…1, with one of their answers in the first place, the first 5, the first 10.
    pub recall_at_1: f64,
    pub recall_at_5: f64,
    pub recall_at_10: f64,
    /// Mean of 1 / (place of the first answer).
    pub mrr: f64,
}

/// Whether there is an answer at all, at the gates in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Abstention {
    pub absent: usize,
    /// Absent questions that were answered with nothing, as they should be.
    pub absent_refused: usize,
    pub answerable: usize,
    /// Answerable questions that were answered with nothing.
    pub answerable_refused: usize,
}

/// Everything that was counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub rows: Vec<Row>,
    pub abstention: Abstention,
    /// Of one question, embedding included, in milliseconds.
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Counts; `half`: only the questions of that half.
#[must_use]
pub fn report(ranked: &[Ranked], half: Option<Half>) -> Report {
    let kept: Vec<&Ranked> = ranked.iter().filter(|question| half.is_none_or(|half| half == question.half)).collect();
    let mut ranks: BTreeMap<(&str, By), Vec<Option<usize>>> = BTreeMap::new();
    let mut abstention = Abstention::default();
    for question in &kept {
        let Some(category) = &question.category else {
            abstention.absent += 1;
            abstention.absent_refused += usize::from(question.refused);
            continue;
        };
        abstention.answerable += 1;
        abstention.answerable_refused += usize::from(question.refused);
        for (by, place) in By::ALL.into_iter().zip(question.places) {
            for name in [category.as_str(), ALL] {
                ranks.entry((name, by)).or_default().push(place);
            }
        }
    }
    let mut rows: Vec<Row> = ranks.into_iter().map(|((category, by), ranks)| row(category, by, &ranks)).collect();
    rows.sort_by_key(|row| row.category == ALL);
    let took: Vec<f64> = kept.iter().filter_map(|question| question.took_ms).collect();
    Report { rows, abstention, p50_ms: percentile(&took, 0.5), p99_ms: percentile(&took, 0.99) }
}

fn row(category: &str, by: By, ranks: &[Option<usize>]) -> Row {
    let count = ranks.len().max(1) as f64;
    let within = |places: usize| ranks.iter().flatten().filter(|rank| **rank < places).count() as f64 / count;
    Row {
        category: category.to_owned(),
        by,
        asked: ranks.len(),
        recall_at_1: within(1),
        recall_at_5: within(5),
        recall_at_10: within(10),
        mrr: ranks.iter().flatten().map(|rank| 1.0 / (*rank + 1) as f64).sum::<f64>() / count,
    }
}

/// The value under which `share` of them lie (the nearest rank); 0 where there is none.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::remember::words::Match;

    fn exchange(heard: &str) -> Exchange {
        Exchange { heard: heard.into(), said: String::new(), speaker: None, said_at: Timestamp::UNIX_EPOCH }
    }

    fn scored(heard: &str, score: f32, share: f32) -> Scored {
        let words = Match { bm25: share * 5.0, share, found: share > 0.6 };
        Scored { exchange: exchange(heard), score, words, just_said: false }
    }

    fn question(category: Option<&str>, candidates: Vec<Scored>, took_ms: f64) -> Ranked {
        let finds = if category.is_some() { vec![exchange("right")] } else { Vec::new() };
        let category = category.map(str::to_owned);
        let searched = Searched { asks: String::new(), category, half: Half::Tune, candidates, finds, took_ms };
        Ranked::said(&searched, 0.45)
    }

    #[test]
    fn ranks_are_counted_for_each_order_apart() {
        let first = question(Some("number"), vec![scored("right", 0.4, 1.0), scored("other", 0.6, 0.0)], 1.0);
        let second = question(Some("number"), vec![scored("right", 0.5, 0.0), scored("other", 0.4, 0.2)], 3.0);
        let absent = question(None, vec![scored("other", 0.3, 0.1)], 2.0);
        let report = report(&[first, second, absent], None);
        let of = |by| report.rows.iter().find(|row| row.by == by && row.category == "number").unwrap();
        assert_eq!((of(By::Dense).recall_at_1, of(By::Dense).mrr), (0.5, 0.75));
        // What holds none of the words is not found by them at all.
        assert_eq!((of(By::Words).recall_at_1, of(By::Words).recall_at_10), (0.5, 0.5));
        assert_eq!((of(By::Fused).recall_at_1, of(By::Fused).asked), (1.0, 2));
        let wanted = Abstention { absent: 1, absent_refused: 1, answerable: 2, answerable_refused: 0 };
        assert_eq!(report.abstention, wanted);
        assert_eq!((report.p50_ms, report.p99_ms), (2.0, 3.0));
    }

    #[test]
    fn nothing_asked_is_no_panic() {
        assert_eq!(report(&[], None).rows, []);
        assert_eq!(percentile(&[], 0.99), 0.0);
    }
}
