//! Which faces are in view, which one is alone there, and how much time has passed for them. Pure.

use jiff::{SignedDuration, Timestamp};

use super::track::Track;
use super::{Head, Sighting};

/// Faces that are followed at once; those beyond are not looked at.
pub(super) const MOST_TRACKS: usize = 16;
/// A face that a picture missed is still there for so long: as long as the tracker keeps one.
const LINGERS: SignedDuration = SignedDuration::from_secs(2);
/// A gesture takes less; a head that moves for longer may have lost who was alone. Not measured.
const LONGEST_GESTURE: SignedDuration = SignedDuration::from_secs(5);
/// A look takes less; a head that is away for longer comes back to faces that are decided anew. Not measured.
const LONGEST_LOOK: SignedDuration = SignedDuration::from_secs(60);

/// The one face in view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alone {
    pub track: u32,
    pub since: Timestamp,
}

/// What is in view.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub head: Head,
    pub tracks: Vec<Track>,
    /// Time that passed while the head was steady: the clock of faces and visits.
    pub steady: SignedDuration,
    /// Time that passed at all: the clock of turns. It never goes back, whatever is done to the robot's clock.
    pub passed: SignedDuration,
    alone: Option<Alone>,
    /// The newest moment, and when the head began to be away, by `passed`.
    newest: Option<Timestamp>,
    away: Option<SignedDuration>,
    /// When the newest picture with a steady head was taken, by `steady`.
    pictured: Option<SignedDuration>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            head: Head::Steady,
            tracks: Vec::new(),
            steady: SignedDuration::ZERO,
            passed: SignedDuration::ZERO,
            alone: None,
            newest: None,
            away: None,
            pictured: None,
        }
    }
}

impl View {
    /// Lets time pass until `at`; a clock that was set back lets none pass. Faces that nobody saw for a while are gone.
    pub(super) fn pass(&mut self, at: Timestamp) {
        let step =
            self.newest.map_or(SignedDuration::ZERO, |newest| at.duration_since(newest)).max(SignedDuration::ZERO);
        self.newest = Some(at);
        self.passed = self.passed.saturating_add(step);
        if self.head == Head::Steady {
            self.steady = self.steady.saturating_add(step);
        }
        let oldest = self.steady - LINGERS;
        self.tracks.retain(|track| track.seen >= oldest);
        if self.alone.is_some_and(|alone| self.track(alone.track).is_none()) {
            self.alone = None;
        }
    }

    /// The head is away; what is in view stays as it was.
    pub(super) fn freeze(&mut self, head: Head) {
        self.head = head;
        self.away.get_or_insert(self.passed);
        if head == Head::Turned {
            for track in &mut self.tracks {
                // Nobody watched: what is said meanwhile, and who stands there afterwards, is not known.
                track.unsure = true;
                track.forget_words();
            }
        }
    }

    /// The head is steady again, or still.
    pub(super) fn thaw(&mut self, at: Timestamp) {
        let turned = self.head == Head::Turned;
        self.head = Head::Steady;
        let Some(since) = self.away.take() else { return };
        let away = self.passed - since;
        if away > LONGEST_LOOK {
            self.tracks.clear();
            self.alone = None;
        } else if away > LONGEST_GESTURE || turned {
            if let Some(alone) = &mut self.alone {
                alone.since = at;
            }
            self.tracks.iter_mut().for_each(Track::forget_words);
        }
    }

    /// Takes in the faces of one picture, made with a steady head. Answers the tracks that are new.
    pub(super) fn picture(&mut self, at: Timestamp, faces: &[Sighting]) {
        self.pictured = Some(self.steady);
        for sighting in faces.iter().take(MOST_TRACKS) {
            let now = self.steady;
            match self.tracks.iter_mut().find(|track| track.id == sighting.track) {
                Some(track) => (track.place, track.seen) = (sighting.place, now),
                None => {
                    if self.tracks.len() >= MOST_TRACKS {
                        self.drop_one_unseen();
                    }
                    if self.tracks.len() < MOST_TRACKS {
                        self.tracks.push(Track::new(sighting, at, now));
                    }
                }
            }
        }
        self.find_alone(at, faces.len());
    }

    fn drop_one_unseen(&mut self) {
        let unseen = (0..self.tracks.len()).filter(|place| self.tracks[*place].seen < self.steady);
        if let Some(place) = unseen.min_by_key(|place| self.tracks[*place].seen) {
            self.tracks.remove(place);
        }
    }

    fn find_alone(&mut self, at: Timestamp, faces: usize) {
        let alone = match self.tracks.as_slice() {
            [only] if faces <= 1 => Some(only.id),
            _ => None,
        };
        if alone.is_some() && alone == self.alone.map(|alone| alone.track) {
            return;
        }
        self.alone = alone.map(|track| Alone { track, since: at });
        self.tracks.iter_mut().for_each(Track::forget_words);
    }

    /// Somebody else may stand there: whoever is alone is so from now on.
    pub(super) fn start_over(&mut self, track: u32, at: Timestamp) {
        if let Some(alone) = self.alone.as_mut().filter(|alone| alone.track == track) {
            alone.since = at;
        }
    }

    pub(super) fn alone(&self) -> Option<Alone> {
        self.alone
    }

    pub(super) fn track(&self, id: u32) -> Option<&Track> {
        self.tracks.iter().find(|track| track.id == id)
    }

    pub(super) fn track_mut(&mut self, id: u32) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|track| track.id == id)
    }

    /// The faces of the newest picture, if the head is steady.
    pub(super) fn in_newest(&self) -> impl Iterator<Item = &Track> {
        let steady = self.head == Head::Steady;
        self.tracks.iter().filter(move |track| steady && self.pictured == Some(track.seen))
    }
}
