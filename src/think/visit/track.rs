//! One face that is followed without a break, and who it is. Pure.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::{Gates, PersonId, Shot, Sighting};
use crate::remember::embed::cosine;

/// Embeddings that are looked back on, and how many of them must be the same person; from the notes on the face model.
const LOOKS: usize = 5;
const SAME: usize = 3;
/// Embeddings in a row under the lower gate, and over how long, that make a stranger: a known face in profile falls
/// under it for a moment.
const UNLIKE: u32 = 3;
const UNLIKE_FOR: SignedDuration = SignedDuration::from_secs(2);
/// Embeddings in a row that do not fit the person, after which the face is nobody decided any more.
const DOUBTS: u32 = 3;
/// Embeddings in a row unlike the stranger's own, after which it is another stranger.
const STRANGE: u32 = 2;
/// Shots that one enrolment stores at most, and needs at least.
pub(super) const MOST_SHOTS: usize = 5;
pub(super) const LEAST_SHOTS: usize = 3;

/// Who a face is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Undecided,
    Known(PersonId),
    Stranger,
}

/// What one usable embedding says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    /// At or over the gate, and nobody else nearly as like.
    Fits { person: PersonId, name: String, last_seen_at: Option<Timestamp> },
    /// Under the lower gate: nobody known.
    Unlike,
    /// Between the gates, or two people alike.
    Between { nearest: Option<PersonId>, can_be_learned: bool },
}

impl Look {
    /// What `sighting` says; `forgotten` people are nobody.
    pub(super) fn of(sighting: &Sighting, gates: &Gates, forgotten: impl Fn(PersonId) -> bool) -> Self {
        let Some(nearest) = &sighting.nearest else { return Self::Unlike };
        if forgotten(nearest.person) {
            return Self::Between { nearest: None, can_be_learned: false };
        }
        let apart = sighting.second.is_none_or(|second| nearest.score - second >= gates.margin);
        if nearest.score >= gates.greet && apart {
            let (name, last_seen_at) = (nearest.name.clone(), nearest.last_seen_at);
            return Self::Fits { person: nearest.person, name, last_seen_at };
        }
        // The nearest is the best there is: where another scores higher the store contradicts itself, and waits.
        let best = sighting.second.map_or(nearest.score, |second| second.max(nearest.score));
        if best < gates.ask {
            return Self::Unlike;
        }
        let can_be_learned = apart && (gates.ask..gates.greet).contains(&nearest.score);
        Self::Between { nearest: Some(nearest.person), can_be_learned }
    }

    fn fits(&self, who: PersonId) -> bool {
        matches!(self, Self::Fits { person, .. } if *person == who)
    }
}

/// What a look changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Nothing,
    /// Decided: this person.
    Became {
        person: PersonId,
        name: String,
        last_seen_at: Option<Timestamp>,
    },
    /// Somebody else may stand there now; what was decided is taken back.
    Another,
    /// A pose of the person who is there, unlike what is stored.
    Pose(PersonId),
}

/// A followed face.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub id: u32,
    pub place: [f32; 4],
    /// When it was last in a picture, by the clock of the view.
    pub seen: SignedDuration,
    /// When it was first in a picture.
    pub first_seen_at: Timestamp,
    pub who: Who,
    /// The head was turned away since the last look that fits.
    pub unsure: bool,
    /// The person whose name was taken back: never named so again.
    pub denied: Option<PersonId>,
    /// The name question was asked.
    pub asked: bool,
    /// When its words were last heard, by the clock that never stands still.
    pub spoke: Option<SignedDuration>,
    /// The first and the last of its unnamed words, said while it was alone in view.
    pub unnamed: Option<(Timestamp, Timestamp)>,
    pub shots: Vec<Shot>,
    looks: VecDeque<Look>,
    unlike: u32,
    unlike_since: SignedDuration,
    doubts: u32,
    strange: u32,
}

impl Track {
    pub(super) fn new(sighting: &Sighting, at: Timestamp, seen: SignedDuration) -> Self {
        Self {
            id: sighting.track,
            place: sighting.place,
            seen,
            first_seen_at: at,
            who: Who::Undecided,
            unsure: false,
            denied: None,
            asked: false,
            spoke: None,
            unnamed: None,
            shots: Vec::new(),
            looks: VecDeque::with_capacity(LOOKS),
            unlike: 0,
            unlike_since: seen,
            doubts: 0,
            strange: 0,
        }
    }

    /// Whether nothing speaks against who it is held to be.
    pub(super) fn is_certain(&self) -> bool {
        self.doubts == 0 && self.strange == 0 && !self.unsure
    }

    /// The person, where that is decided and certain.
    pub(super) fn known(&self) -> Option<PersonId> {
        match self.who {
            Who::Known(person) if self.is_certain() => Some(person),
            _ => None,
        }
    }

    /// Nothing is decided any more, and nothing that was said there is anybody's.
    pub(super) fn start_over(&mut self) {
        self.who = Who::Undecided;
        self.looks.clear();
        self.doubts = 0;
        self.unsure = false;
        self.forget_words();
    }

    pub(super) fn forget_words(&mut self) {
        self.unnamed = None;
        self.spoke = None;
    }

    /// It is this person from now on, without a look: they gave their name and were enrolled.
    pub(super) fn becomes(&mut self, person: PersonId) {
        self.start_over();
        self.who = Who::Known(person);
        self.shots.clear();
        self.unlike = 0;
        self.strange = 0;
    }

    /// Takes in what one usable embedding says, at `now` by the clock of the view.
    pub(super) fn look(&mut self, look: Look, shot: Option<&Shot>, gates: &Gates, now: SignedDuration) -> Change {
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(look.clone());
        let another_stranger = self.count_unlike(&look, shot, gates, now);
        match self.who {
            Who::Known(person) => self.look_at_known(person, &look, now),
            _ if another_stranger => {
                self.step_in(&look);
                Change::Another
            }
            Who::Stranger if matches!(look, Look::Fits { .. }) => {
                self.step_in(&look);
                Change::Another
            }
            Who::Stranger if matches!(look, Look::Between { .. }) && !self.asked => {
                // Perhaps somebody known after all: wait, and ask nothing.
                self.who = Who::Undecided;
                (self.unlike, self.strange) = (0, 0);
                self.shots.clear();
                Change::Nothing
            }
            Who::Stranger => {
                self.unsure &= !(look == Look::Unlike && self.strange == 0);
                Change::Nothing
            }
            Who::Undecided => self.decide(now),
        }
    }

    fn look_at_known(&mut self, person: PersonId, look: &Look, now: SignedDuration) -> Change {
        match look {
            Look::Fits { .. } if look.fits(person) => {
                (self.doubts, self.strange, self.unsure) = (0, 0, false);
                Change::Nothing
            }
            Look::Fits { .. } => {
                self.step_in(look);
                Change::Another
            }
            Look::Between { nearest, can_be_learned } if *nearest == Some(person) => {
                if *can_be_learned && self.is_certain() { Change::Pose(person) } else { Change::Nothing }
            }
            Look::Between { .. } | Look::Unlike => {
                self.doubts += 1;
                if self.doubts < DOUBTS {
                    // What is said from now on may be another's.
                    self.forget_words();
                    return Change::Nothing;
                }
                self.start_over();
                self.decide(now);
                Change::Another
            }
        }
    }

    /// Only `look` is left of what was known.
    fn step_in(&mut self, look: &Look) {
        self.start_over();
        self.looks.push_back(look.clone());
    }

    fn decide(&mut self, now: SignedDuration) -> Change {
        let same = |who: PersonId| self.looks.iter().filter(|look| look.fits(who)).count();
        let decided = self.looks.iter().rev().find_map(|look| match look {
            Look::Fits { person, name, last_seen_at } if same(*person) >= SAME && self.denied != Some(*person) => {
                Some(Change::Became { person: *person, name: name.clone(), last_seen_at: *last_seen_at })
            }
            _ => None,
        });
        if let Some(Change::Became { person, .. }) = decided {
            self.who = Who::Known(person);
            (self.doubts, self.strange, self.unsure) = (0, 0, false);
            self.forget_words();
            return decided.unwrap_or(Change::Nothing);
        }
        if self.unlike >= UNLIKE && now - self.unlike_since >= UNLIKE_FOR {
            self.who = Who::Stranger;
        }
        Change::Nothing
    }

    /// Counts looks in a row that are nobody known, and keeps their shots. Whether they turned out to be two strangers.
    fn count_unlike(&mut self, look: &Look, shot: Option<&Shot>, gates: &Gates, now: SignedDuration) -> bool {
        if *look != Look::Unlike {
            if self.who != Who::Stranger || matches!(look, Look::Fits { .. }) {
                (self.unlike, self.strange) = (0, 0);
                self.shots.clear();
            }
            return false;
        }
        if self.unlike == 0 {
            self.unlike_since = now;
        }
        self.unlike = self.unlike.saturating_add(1);
        let Some(shot) = shot else { return false };
        if self.shots.is_empty() || likeness(&self.shots, std::slice::from_ref(shot)) >= gates.ask {
            self.strange = 0;
            if self.shots.len() < MOST_SHOTS {
                self.shots.push(Shot::clone(shot));
            }
            return false;
        }
        self.strange += 1;
        if self.strange < STRANGE {
            self.forget_words();
            return false;
        }
        (self.strange, self.unlike, self.unlike_since) = (0, 1, now);
        self.shots = vec![Shot::clone(shot)];
        self.asked = false;
        true
    }
}

/// How alike two sets of shots are: the best cosine between them; −1 where one is empty or the lengths differ.
pub(super) fn likeness(some: &[Shot], others: &[Shot]) -> f32 {
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| one.len() == other.len()).map(|(one, other)| cosine(one, other)).fold(-1.0, f32::max)
}
