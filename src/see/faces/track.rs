//! Following faces from picture to picture: which of them is one that was there before. A state machine without a
//! clock; it cannot fail.
//!
//! Only places are compared, never what the faces look like, so a number says "followed without a break" and nothing
//! of who it is. Whoever gives a name to a number must never find it on somebody else: wherever two faces may have
//! been exchanged (they overlap, meet, or one hides the other), both get new numbers. A number that ends costs one
//! embedding; one that jumps to another person costs a wrong name.
//!
//! What it cannot see: somebody who takes another's place within the one or two looks for which a face may be missed,
//! and two faces that appear in one look and change places before the next. The embedding of every second does.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::see::scene::overlap;

/// A face that was not found for longer has left.
pub const LEFT_AFTER: SignedDuration = SignedDuration::from_secs(2);
/// A face may be missed in so many looks in a row.
pub const MOST_MISSED: u32 = 2;
/// Boxes that overlap so much (intersection over union) are one face. As for objects.
const SAME_FACE: f32 = 0.3;
/// Without overlap a face may have moved this many of its own widths since the last look; at three looks a second and
/// 16 cm of face that is half a metre a second. Not measured.
const NEAR: f32 = 1.0;
/// One face does not grow or shrink more than this from look to look.
const MOST_GROWTH: f32 = 1.6;
/// What a near face without overlap counts at most, against the overlap of others.
const NEAR_COUNTS: f32 = 0.3;
/// A match is in doubt when another one is at least this share as good.
const RIVAL: f32 = 0.5;
/// Two faces this near, in widths, may be either.
const TOUCHING: f32 = 0.5;
/// Two faces this near, in widths, of which only one is found: it may be either.
const HIDING: f32 = 1.5;
/// A face that comes while another one, this near in widths, is not found any more, may be that one in a hurry: at
/// three looks a second and 16 cm of face two metres a second. Not measured.
const HURRY: f32 = 4.0;
/// Two faces may have met when they came closer by this share of their distance since the last look. Together with
/// [`TOUCHING`] and [`HIDING`] chosen on the scripted walks of the tests, not on people.
const MEETING: f32 = 0.65;

/// The faces that are followed.
#[derive(Debug, Default)]
pub struct Tracker {
    tracks: Vec<Track>,
    /// How many numbers were given; the last one is the same.
    given: u32,
}

#[derive(Clone, Debug)]
struct Track {
    number: u32,
    /// Left, top, right, bottom.
    place: [f32; 4],
    /// Widths and heights of itself a second.
    speed: [f32; 2],
    found_at: Timestamp,
    missed: u32,
}

impl Tracker {
    /// Gives each face of a look its number; `places` are in 0…1 of the picture.
    pub fn follow(&mut self, places: &[[f32; 4]], now: Timestamp) -> Vec<u32> {
        // A clock that was set back breaks every track.
        self.tracks.retain(|track| (SignedDuration::ZERO..=LEFT_AFTER).contains(&now.duration_since(track.found_at)));
        let matches = self.matched(places);
        let doubted = self.doubted(places, &matches, now);
        let mut numbers = vec![0; places.len()];
        let mut kept = Vec::with_capacity(places.len());
        for (at, mut track) in std::mem::take(&mut self.tracks).into_iter().enumerate() {
            let in_doubt = doubted.contains(&at);
            match matches.iter().find(|(of, _)| *of == at) {
                Some((_, index)) => {
                    track.found(places[*index], now);
                    if in_doubt {
                        track.number = self.number();
                    }
                    numbers[*index] = track.number;
                    kept.push(track);
                }
                None if in_doubt || track.missed >= MOST_MISSED => {}
                None => {
                    track.missed += 1;
                    kept.push(track);
                }
            }
        }
        for (place, number) in places.iter().zip(&mut numbers).filter(|(_, number)| **number == 0) {
            *number = self.number();
            let born = Track::born(*number, *place, &mut kept, now);
            kept.push(born);
        }
        self.tracks = kept;
        numbers
    }

    /// The view became another, or the head looks elsewhere: nobody was followed.
    pub fn cut(&mut self) {
        self.tracks.clear();
    }

    /// Whether a face is followed.
    #[must_use]
    pub fn has_faces(&self) -> bool {
        !self.tracks.is_empty()
    }

    /// The numbers that are followed, also those missed just now.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.tracks.iter().map(|track| track.number)
    }

    fn number(&mut self) -> u32 {
        self.given = self.given.saturating_add(1);
        self.given
    }

    /// (track, place) in order of the best match, each once.
    fn matched(&self, places: &[[f32; 4]]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (at, track) in self.tracks.iter().enumerate() {
            for (index, place) in places.iter().enumerate() {
                pairs.extend(track.likeness(place).map(|likeness| (likeness, at, index)));
            }
        }
        pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut matches: Vec<(usize, usize)> = Vec::new();
        for (_, at, index) in pairs {
            if matches.iter().all(|(of, to)| *of != at && *to != index) {
                matches.push((at, index));
            }
        }
        matches
    }

    /// The tracks that may have been exchanged with another one.
    fn doubted(&self, places: &[[f32; 4]], matches: &[(usize, usize)], now: Timestamp) -> BTreeSet<usize> {
        let mut doubted = BTreeSet::new();
        for (at, index) in matches {
            let mine = self.tracks[*at].likeness(&places[*index]).unwrap_or(0.0);
            let rivals = |likeness: Option<f32>| likeness.is_some_and(|likeness| likeness >= RIVAL * mine);
            let other_place =
                (0..places.len()).any(|other| other != *index && rivals(self.tracks[*at].likeness(&places[other])));
            let other_tracks = (0..self.tracks.len())
                .filter(|other| other != at && rivals(self.tracks[*other].likeness(&places[*index])));
            let others: Vec<usize> = other_tracks.collect();
            if other_place || !others.is_empty() {
                doubted.insert(*at);
                doubted.extend(others);
            }
        }
        for one in 0..self.tracks.len() {
            for other in one + 1..self.tracks.len() {
                let is_found = |at: usize| matches.iter().any(|(of, _)| *of == at);
                let one_hides = is_found(one) != is_found(other);
                if self.tracks[one].may_meet(&self.tracks[other], one_hides, now) {
                    doubted.extend([one, other]);
                }
            }
        }
        doubted
    }
}

impl Track {
    /// A new face. Where it may be one of `others` that was lost just now, that one ends, and its way is the new one's.
    fn born(number: u32, place: [f32; 4], others: &mut Vec<Self>, now: Timestamp) -> Self {
        let mut born = Self { number, place, speed: [0.0, 0.0], found_at: now, missed: 0 };
        let far = |track: &Self| distance(&track.place, &place);
        let lost = others.iter().enumerate().filter(|(_, track)| track.missed > 0 && far(track) <= HURRY);
        let nearest = lost.min_by(|one, other| far(one.1).total_cmp(&far(other.1))).map(|(at, _)| at);
        if let Some(at) = nearest {
            let mut lost = others.swap_remove(at);
            lost.found(place, now);
            born.speed = lost.speed;
        }
        born
    }

    /// How well a place fits, 0…1; `None` where it cannot be the same face.
    fn likeness(&self, place: &[f32; 4]) -> Option<f32> {
        let (one, other) = (size(&self.place), size(place));
        let growth = (other[0] / one[0]).max(one[0] / other[0]);
        if growth > MOST_GROWTH {
            return None;
        }
        let over = overlap(&self.place, place);
        if over >= SAME_FACE {
            return Some(over);
        }
        // Where it was missed, nobody knows where it went.
        let far = distance(&self.place, place);
        (self.missed == 0 && far <= NEAR).then_some(over.max(NEAR_COUNTS * (1.0 - far)))
    }

    fn found(&mut self, place: [f32; 4], now: Timestamp) {
        let seconds = now.duration_since(self.found_at).as_secs_f32();
        let (one, other, size) = (centre(&self.place), centre(&place), size(&self.place));
        if seconds > 0.0 {
            self.speed = [(other[0] - one[0]) / size[0] / seconds, (other[1] - one[1]) / size[1] / seconds];
        }
        (self.place, self.found_at, self.missed) = (place, now, 0);
    }

    /// Whether the two may have been exchanged since they were found.
    fn may_meet(&self, other: &Self, one_hides: bool, now: Timestamp) -> bool {
        let far = distance(&self.place, &other.place);
        if far <= TOUCHING || (one_hides && far <= HIDING) {
            return true;
        }
        let apart = [self.speed[0] - other.speed[0], self.speed[1] - other.speed[1]];
        let (mine, theirs) = (centre(&self.place), centre(&other.place));
        let size = mean_size(&self.place, &other.place);
        let between = [(theirs[0] - mine[0]) / size[0], (theirs[1] - mine[1]) / size[1]];
        // How fast the distance shrinks, in widths a second.
        let closing = (apart[0] * between[0] + apart[1] * between[1]) / far;
        let since = now.duration_since(self.found_at.min(other.found_at)).as_secs_f32();
        closing * since >= MEETING * far
    }
}

fn size(&[left, top, right, bottom]: &[f32; 4]) -> [f32; 2] {
    // A face without a size would be endlessly far from everything.
    [(right - left).max(f32::EPSILON), (bottom - top).max(f32::EPSILON)]
}

fn mean_size(one: &[f32; 4], other: &[f32; 4]) -> [f32; 2] {
    let (one, other) = (size(one), size(other));
    [(one[0] + other[0]) / 2.0, (one[1] + other[1]) / 2.0]
}

fn centre(&[left, top, right, bottom]: &[f32; 4]) -> [f32; 2] {
    [(left + right) / 2.0, (top + bottom) / 2.0]
}

/// How far two faces are apart, in their mean width and height.
fn distance(one: &[f32; 4], other: &[f32; 4]) -> f32 {
    let size = mean_size(one, other);
    let (one, other) = (centre(one), centre(other));
    ((one[0] - other[0]) / size[0]).hypot((one[1] - other[1]) / size[1])
}

#[cfg(test)]
mod tests;
