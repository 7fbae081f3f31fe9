//! One thing that is followed from picture to picture.

use super::{BIRTH, EXCHANGED, FOUND_IN, OF_THE_LAST, TAKES_OVER, VOTES_LEFT};
use crate::see::Detection;

/// Labels that one thing keeps votes for; the weakest makes room.
const MOST_LABELS: usize = 8;
/// From this many detections in a row as something else on, it may have been exchanged.
const IN_DOUBT: u32 = 3;

#[derive(Debug)]
pub(super) struct Track {
    pub place: [f32; 4],
    /// The view's time when it was found last.
    pub found_at: f64,
    /// Detections in a row in which it was not found.
    pub missed: u32,
    /// Whether it was ever found often enough; it counts from then on until it is gone.
    pub counts: bool,
    /// The last five detections, a bit each, the newest lowest.
    history: u32,
    /// How sure, averaged like the votes.
    score: f32,
    votes: Vec<Vote>,
    /// Which of the votes names it.
    named: usize,
    /// As what it was found last against its name, at birth score, and how many times in a row.
    other: Option<(String, u32)>,
}

#[derive(Debug)]
struct Vote {
    label: String,
    weight: f32,
    /// Whether it was found as this at birth score: only then it may become the name.
    strong: bool,
}

impl Track {
    pub fn born(detection: &Detection, now: f64) -> Self {
        Self {
            place: detection.place,
            found_at: now,
            missed: 0,
            counts: false,
            history: 1,
            score: detection.score,
            votes: vec![Vote { label: detection.label.clone(), weight: detection.score, strong: true }],
            named: 0,
            other: None,
        }
    }

    pub fn label(&self) -> &str {
        self.votes.get(self.named).map_or("", |vote| &vote.label)
    }

    pub fn detection(&self) -> Detection {
        Detection { label: self.label().to_owned(), score: self.score, place: self.place }
    }

    /// Whether its last detections all say that it is something else, without having taken over yet.
    pub fn in_exchange(&self) -> bool {
        self.other.as_ref().is_some_and(|(_, times)| *times >= IN_DOUBT)
    }

    pub fn found(&mut self, detection: &Detection, now: f64) {
        self.place = detection.place;
        self.found_at = now;
        self.missed = 0;
        self.remember(1);
        self.score += (detection.score - self.score) * 0.3;
        for vote in &mut self.votes {
            vote.weight *= VOTES_LEFT;
        }
        self.vote(detection);
        self.doubt(detection);
        self.name();
    }

    pub fn missed(&mut self) {
        self.missed = self.missed.saturating_add(1);
        self.remember(0);
    }

    /// Every label keeps its share, and all together weigh as one detection.
    pub fn forget_votes(&mut self) {
        let sum: f32 = self.votes.iter().map(|vote| vote.weight).sum();
        if sum > 1.0 {
            self.votes.iter_mut().for_each(|vote| vote.weight /= sum);
        }
    }

    #[cfg(test)]
    pub fn is_bounded(&self) -> bool {
        self.votes.len() <= MOST_LABELS && self.named < self.votes.len() && self.history < 1 << OF_THE_LAST
    }

    fn remember(&mut self, found: u32) {
        self.history = ((self.history << 1) | found) & ((1 << OF_THE_LAST) - 1);
        self.counts |= self.history.count_ones() >= FOUND_IN;
    }

    fn vote(&mut self, detection: &Detection) {
        let strong = detection.score >= BIRTH;
        if let Some(vote) = self.votes.iter_mut().find(|vote| vote.label == detection.label) {
            vote.weight += detection.score;
            vote.strong |= strong;
            return;
        }
        if self.votes.len() >= MOST_LABELS {
            let others = self.votes.iter().enumerate().filter(|(index, _)| *index != self.named);
            let weakest = others.min_by(|(_, one), (_, other)| one.weight.total_cmp(&other.weight));
            if let Some(index) = weakest.map(|(index, _)| index) {
                self.votes.remove(index);
                self.named -= usize::from(index < self.named);
            }
        }
        self.votes.push(Vote { label: detection.label.clone(), weight: detection.score, strong });
    }

    /// Counts how often in a row it was found as one other thing; after [`EXCHANGED`] times the name loses its votes.
    fn doubt(&mut self, detection: &Detection) {
        if detection.label == self.label() || detection.score < BIRTH {
            self.other = None;
            return;
        }
        let times = match &self.other {
            Some((label, times)) if *label == detection.label => times + 1,
            _ => 1,
        };
        self.other = Some((detection.label.clone(), times));
        if times >= EXCHANGED {
            self.votes.retain(|vote| vote.label == detection.label);
            self.named = 0;
            self.other = None;
        }
    }

    fn name(&mut self) {
        let Some(current) = self.votes.get(self.named).map(|vote| vote.weight) else { return };
        let strong = self.votes.iter().enumerate().filter(|(_, vote)| vote.strong);
        let best = strong.max_by(|(_, one), (_, other)| one.weight.total_cmp(&other.weight));
        if let Some((index, vote)) = best
            && index != self.named
            && vote.weight >= TAKES_OVER * current
        {
            self.named = index;
            self.other = None;
        }
    }
}
