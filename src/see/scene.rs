//! A stable idea of what is visible, out of detections that flicker.
//!
//! [`super::eye::Eye`] owns one [`Scene`]; it is a state machine without a clock, a file or a model, and cannot fail.
//! Raw detections cannot say that something changed: 240 jittered frames of one scene gave 89 to 176 label changes,
//! this tracker 1 or 2 (measured). Every picture of the robot's own left, right and front has its own [`View`], so a
//! look to the left and back makes nothing new, and turning the head is not things vanishing.
//!
//! Within a view: overlapping boxes are one thing ([`OVERLAP_ONE`]); what overlaps a known thing is that thing
//! ([`OVERLAP_SAME`]); a new thing is born at [`BIRTH`] and goes on at [`KEPT`]; it counts once it was found in three
//! of five detections, and is gone when it was not found for `forget_after_s` and [`GONE_AFTER`] detections. Its label is voted. What counts as
//! visible is which labels there are, and of people how many; a difference is told once it stood for `stable_for_s`.
//!
//! Time in a view is the time it was looked at: a gap between two detections counts for at most a little more than
//! the usual one, so a dark hour, a turned head or a quiet room with a detection in five seconds makes nobody vanish.

mod track;

use std::collections::BTreeMap;

use jiff::Timestamp;

use self::track::Track;
use super::Detection;
use super::told::PERSON;
use crate::robot::Direction;

/// Two boxes of one picture that overlap more (intersection over union) are one thing, whatever their labels.
pub const OVERLAP_ONE: f32 = 0.65;
/// A box is a known thing when they overlap at least so much.
pub const OVERLAP_SAME: f32 = 0.3;
/// Added to the overlap where the labels agree, when the best match is chosen.
pub const SAME_LABEL: f32 = 0.1;
/// Score from which on a detection is a new thing.
pub const BIRTH: f32 = 0.5;
/// Score from which on a detection keeps a known thing alive.
pub const KEPT: f32 = 0.25;
/// A thing counts once it was found in this many of the last [`OF_THE_LAST`] detections.
pub const FOUND_IN: u32 = 3;
pub const OF_THE_LAST: u32 = 5;
/// How much of a label's votes is left after the next detection.
pub const VOTES_LEFT: f32 = 0.97;
/// A label takes over when its votes are this many times those of the label before.
pub const TAKES_OVER: f32 = 1.5;
/// People are counted up to here; more are "many". The numbers above and this one were chosen together, on 240
/// jittered frames.
pub const MOST_PEOPLE: u32 = 3;
/// A thing that was always found as something else in this many detections in a row, at [`BIRTH`] or over, was
/// exchanged: its old votes no longer count. A real switch of the scene came through after 8 frames.
pub const EXCHANGED: u32 = 8;
/// A thing is gone only after so many detections in a row without it, however slowly they come: at two a second four
/// misses are two seconds, and a small thing at the edge of being found misses four often. 240 jittered frames of four
/// small things, at two a second: 3 changes without this bound.
pub const GONE_AFTER: u32 = 8;
/// While something that counts was not found this many times in a row, it may be leaving: nothing is told, so that
/// what leaves and what comes are never told as seen together.
const LEAVING: u32 = 2;
/// A gap between two detections counts for at most this many times the usual one.
const MOST_GAP: f32 = 1.25;
/// Most detections of one picture that are looked at, best first, and most things in a view; a desk has fewer. What
/// is beyond is not seen until there is room.
pub const MOST_DETECTIONS: usize = 100;
pub const MOST_THINGS: usize = 64;

/// What the owner can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneSettings {
    /// Seconds that a difference must stand before it is told.
    pub stable_for_s: f32,
    /// Seconds without being found after which a thing is gone.
    pub forget_after_s: f32,
    /// Detections a second while something changes.
    pub frames_per_second: f32,
}

impl Default for SceneSettings {
    /// 1 s and 2 s as measured; two detections a second.
    fn default() -> Self {
        Self { stable_for_s: 1.0, forget_after_s: 2.0, frames_per_second: 2.0 }
    }
}

impl SceneSettings {
    /// Seconds in which a thing that left is surely gone.
    fn longest_leave(&self) -> f64 {
        f64::from(self.forget_after_s).max(f64::from(GONE_AFTER as f32 * MOST_GAP / self.frames_per_second))
    }
}

/// What is visible became another.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Labels that are there now and were not; a second person makes `person` appear.
    pub appeared: Vec<String>,
    /// Labels that were there and are not.
    pub gone: Vec<String>,
    /// Everything that counts now, one each, with its voted label, best first.
    pub visible: Vec<Detection>,
}

/// Which labels are there; only people have a count other than 1.
type Signature = BTreeMap<String, u32>;

/// The tracker of one camera.
#[derive(Debug)]
pub struct Scene {
    settings: SceneSettings,
    ahead: View,
    left: View,
    right: View,
}

/// What is known of one direction.
#[derive(Debug, Default)]
struct View {
    tracks: Vec<Track>,
    /// Seconds that this direction was looked at, and the last time.
    looked_for: f64,
    looked_at: Option<Timestamp>,
    /// What was told last.
    told: Signature,
    /// Nothing is told before the view was looked at for so long: known things have to be found again first.
    quiet_until: f64,
    /// A difference to what was told, and since when it stands.
    differs: Option<(Signature, f64)>,
}

impl Scene {
    /// A scene of which nothing is known yet.
    #[must_use]
    pub fn new(settings: SceneSettings) -> Self {
        let view = || View { quiet_until: f64::from(settings.forget_after_s), ..View::default() };
        Self { settings, ahead: view(), left: view(), right: view() }
    }

    /// Takes what the detector found in a picture of that direction; what became of the scene, where that is stable
    /// and new. The detections may be in any order; those with an impossible place or score are left out.
    pub fn update(&mut self, looked: Direction, found: &[Detection], now: Timestamp) -> Option<Change> {
        let settings = self.settings;
        let view = self.view(looked);
        view.pass(now, &settings);
        view.match_tracks(&one_each(found));
        let forget = f64::from(settings.forget_after_s);
        let now = view.looked_for;
        view.tracks.retain(|track| now - track.found_at < forget || (track.counts && track.missed < GONE_AFTER));
        view.tell(&settings)
    }

    /// Whether everything in that direction is as it was told, found and named without doubt. While it is not, the
    /// next pictures are worth a detection, whatever the change gate says.
    #[must_use]
    pub fn is_settled(&self, looked: Direction) -> bool {
        let view = self.of(looked);
        let doubt = |track: &Track| !track.counts || track.missed > 0 || track.in_exchange();
        view.differs.is_none() && !view.tracks.iter().any(doubt) && view.looked_for >= view.quiet_until
    }

    /// The camera's whole picture changed at once: labels lose the weight of their history, so that what is there now
    /// names itself within a few detections.
    pub fn cut(&mut self, looked: Direction) {
        self.view(looked).tracks.iter_mut().for_each(Track::forget_votes);
    }

    /// What is visible in that direction has been stored already: by a look on purpose, or before the process
    /// started. It is not told again; what goes from it is.
    pub fn is_known(&mut self, looked: Direction, stored: &[Detection]) {
        let forget = self.settings.longest_leave();
        let view = self.view(looked);
        let mut known = signature(stored.iter().map(|detection| detection.label.as_str()));
        let here = view.signature();
        for (label, count) in &view.told {
            if here.contains_key(label) {
                let known = known.entry(label.clone()).or_default();
                *known = (*known).max(*count);
            }
        }
        view.told = known;
        view.differs = None;
        view.quiet_until = view.looked_for + forget;
    }

    /// Everything that counts in that direction, best first.
    #[must_use]
    pub fn visible(&self, looked: Direction) -> Vec<Detection> {
        self.of(looked).visible()
    }

    fn of(&self, looked: Direction) -> &View {
        match looked {
            Direction::Ahead => &self.ahead,
            Direction::Left => &self.left,
            Direction::Right => &self.right,
        }
    }

    fn view(&mut self, looked: Direction) -> &mut View {
        match looked {
            Direction::Ahead => &mut self.ahead,
            Direction::Left => &mut self.left,
            Direction::Right => &mut self.right,
        }
    }
}

impl View {
    /// Lets the time since the last look pass, as far as it counts.
    fn pass(&mut self, now: Timestamp, settings: &SceneSettings) {
        if let Some(before) = self.looked_at {
            let most = f64::from(MOST_GAP / settings.frames_per_second);
            self.looked_for += now.duration_since(before).as_secs_f64().clamp(0.0, most);
        }
        self.looked_at = Some(now);
    }

    /// Gives each detection to the thing that it overlaps most, best pairs first, and lets new things be born.
    fn match_tracks(&mut self, found: &[Detection]) {
        let mut pairs = Vec::new();
        for (at, track) in self.tracks.iter().enumerate() {
            for (index, detection) in found.iter().enumerate() {
                let overlap = overlap(&track.place, &detection.place);
                if overlap >= OVERLAP_SAME {
                    let bonus = if track.label() == detection.label { SAME_LABEL } else { 0.0 };
                    pairs.push((overlap + bonus, at, index));
                }
            }
        }
        pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut given: Vec<Option<usize>> = vec![None; self.tracks.len()];
        let mut taken = vec![false; found.len()];
        for (_, at, index) in pairs {
            if given[at].is_none() && !taken[index] {
                given[at] = Some(index);
                taken[index] = true;
            }
        }
        let now = self.looked_for;
        for (track, given) in self.tracks.iter_mut().zip(given) {
            match given {
                Some(index) => track.found(&found[index], now),
                None => track.missed(),
            }
        }
        for (detection, taken) in found.iter().zip(taken) {
            if !taken && detection.score >= BIRTH && self.tracks.len() < MOST_THINGS {
                self.tracks.push(Track::born(detection, now));
            }
        }
    }

    /// The change, if what is visible has differed from what was told for long enough and nobody is coming or going.
    fn tell(&mut self, settings: &SceneSettings) -> Option<Change> {
        let here = self.signature();
        if here == self.told {
            self.differs = None;
            return None;
        }
        let now = self.looked_for;
        let since = match &self.differs {
            Some((signature, since)) if *signature == here => *since,
            _ => now,
        };
        self.differs = Some((here, since));
        // Half a millisecond, because sums of gaps are not exact.
        let stood = now - since + 0.0005;
        let stable = f64::from(settings.stable_for_s);
        // Things that come and go for ever may hold a change back only so long.
        let late = stable + settings.longest_leave();
        let moving = |track: &Track| !track.counts || track.missed >= LEAVING || track.in_exchange();
        if stood < stable || now < self.quiet_until || (stood < late && self.tracks.iter().any(moving)) {
            return None;
        }
        let (here, _) = self.differs.take()?;
        let before = std::mem::replace(&mut self.told, here);
        Some(Change {
            appeared: more_in(&self.told, &before),
            gone: more_in(&before, &self.told),
            visible: self.visible(),
        })
    }

    fn signature(&self) -> Signature {
        signature(self.tracks.iter().filter(|track| track.counts).map(Track::label))
    }

    fn visible(&self) -> Vec<Detection> {
        let mut visible: Vec<_> = self.tracks.iter().filter(|track| track.counts).map(Track::detection).collect();
        visible.sort_by(|one, other| other.score.total_cmp(&one.score));
        visible
    }
}

/// The labels of `one` of which there are more than in `other`.
fn more_in(one: &Signature, other: &Signature) -> Vec<String> {
    let more = |(label, count): &(&String, &u32)| *count > other.get(*label).unwrap_or(&0);
    one.iter().filter(more).map(|(label, _)| label.clone()).collect()
}

fn signature<'a>(labels: impl Iterator<Item = &'a str>) -> Signature {
    let mut signature = Signature::new();
    for label in labels {
        let most = if label == PERSON { MOST_PEOPLE } else { 1 };
        let count = signature.entry(label.to_owned()).or_default();
        *count = (*count + 1).min(most);
    }
    signature
}

/// The detections that count at all, best first, without those that overlap a better one ([`OVERLAP_ONE`]).
#[must_use]
pub fn one_each(found: &[Detection]) -> Vec<Detection> {
    let mut best: Vec<&Detection> = found.iter().filter(|detection| is_possible(detection)).collect();
    best.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut one_each: Vec<Detection> = Vec::new();
    for detection in best.into_iter().take(MOST_DETECTIONS) {
        if one_each.iter().all(|better| overlap(&better.place, &detection.place) <= OVERLAP_ONE) {
            one_each.push(detection.clone());
        }
    }
    one_each
}

fn is_possible(detection: &Detection) -> bool {
    let [left, top, right, bottom] = detection.place;
    (KEPT..=1.0).contains(&detection.score)
        && detection.place.iter().all(|side| side.is_finite())
        && right > left
        && bottom > top
        && !detection.label.is_empty()
}

/// Intersection over union of two places, 0…1.
#[must_use]
pub fn overlap(one: &[f32; 4], other: &[f32; 4]) -> f32 {
    let area = |place: &[f32; 4]| (place[2] - place[0]).max(0.0) * (place[3] - place[1]).max(0.0);
    let both = [one[0].max(other[0]), one[1].max(other[1]), one[2].min(other[2]), one[3].min(other[3])];
    let both = area(&both);
    let either = area(one) + area(other) - both;
    if either > 0.0 { both / either } else { 0.0 }
}

#[cfg(test)]
mod tests;
