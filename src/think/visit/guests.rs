//! Who is on a visit, who was, and which strangers were asked already. Pure.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::track::likeness;
use super::{Gates, PersonId, SEEN_EVERY, Shot};

/// Visits that are kept at once; of more the one that was out of view longest is over.
const MOST_GUESTS: usize = 64;
/// Ended visits whose last moment is kept; the memory of people knows the others.
const MOST_PAST: usize = 64;
/// Strangers who were asked and are still about.
const MOST_ASKED: usize = 16;
/// People who were forgotten and may still come back in embeddings on their way.
const MOST_FORGOTTEN: usize = 64;
/// All of them together.
pub(super) const MOST: usize = MOST_GUESTS + MOST_PAST + MOST_ASKED + MOST_FORGOTTEN;

/// Somebody known on a visit.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub person: PersonId,
    pub name: String,
    /// When they were last seen before this visit.
    pub before: Option<Timestamp>,
    pub greeted: bool,
    /// They said that this is not their name: nobody is named so in this visit.
    pub denied: bool,
    /// When a pose was last learned, by the clock that never stands still.
    pub learned: Option<SignedDuration>,
    seen_at: Timestamp,
    /// By the clock of the view.
    seen: SignedDuration,
    /// The last moment that was told to the memory, and when it was told.
    told: Option<(Timestamp, SignedDuration)>,
}

/// A stranger who was asked for a name in this visit.
#[derive(Clone, Debug)]
struct Asked {
    shots: Vec<Shot>,
    seen: SignedDuration,
}

/// The clocks of one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub at: Timestamp,
    /// Of the view.
    pub steady: SignedDuration,
    /// Which never stands still.
    pub passed: SignedDuration,
}

/// Everybody who is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Guests {
    guests: Vec<Guest>,
    past: VecDeque<(PersonId, Timestamp)>,
    asked: VecDeque<Asked>,
    forgotten: VecDeque<PersonId>,
}

/// The last moment of somebody, for the memory.
pub(super) type Seen = (PersonId, Timestamp);

impl Guests {
    pub(super) fn of(&self, person: PersonId) -> Option<&Guest> {
        self.guests.iter().find(|guest| guest.person == person)
    }

    pub(super) fn of_mut(&mut self, person: PersonId) -> Option<&mut Guest> {
        self.guests.iter_mut().find(|guest| guest.person == person)
    }

    pub(super) fn called(&self, name: &str) -> Option<PersonId> {
        self.guests.iter().find(|guest| guest.name == name).map(|guest| guest.person)
    }

    pub(super) fn kept(&self) -> usize {
        self.guests.len() + self.past.len() + self.asked.len() + self.forgotten.len()
    }

    /// `person` was recognised: their visit begins or goes on. Answers whose visit had to end to make room.
    ///
    /// After a start of the service the memory alone knows of them: seen less than `ends_after` ago, they are still on
    /// the same visit and were greeted.
    pub(super) fn arrives(
        &mut self,
        person: PersonId,
        name: &str,
        last_seen_at: Option<Timestamp>,
        now: Now,
        ends_after: SignedDuration,
    ) -> Option<Seen> {
        if self.of(person).is_some() {
            return None;
        }
        let past = self.past.iter().find(|(other, _)| *other == person).map(|(_, at)| *at);
        let goes_on = past.is_none()
            && last_seen_at.is_some_and(|last| {
                let since = now.at.duration_since(last);
                !since.is_negative() && since < ends_after
            });
        let before = if goes_on { None } else { past.max(last_seen_at).filter(|before| *before <= now.at) };
        let room = if self.guests.len() >= MOST_GUESTS { self.longest_unseen() } else { None };
        self.guests.push(Guest {
            person,
            name: name.to_owned(),
            before,
            greeted: goes_on,
            denied: false,
            learned: None,
            seen_at: now.at,
            seen: now.steady,
            told: None,
        });
        room
    }

    fn longest_unseen(&mut self) -> Option<Seen> {
        let place = (0..self.guests.len()).min_by_key(|place| self.guests[*place].seen)?;
        let guest = self.guests.remove(place);
        self.leaves(&guest)
    }

    /// `person` is in view. Answers whether the memory is to be told.
    pub(super) fn seen(&mut self, person: PersonId, now: Now) -> bool {
        let Some(guest) = self.of_mut(person) else { return false };
        (guest.seen_at, guest.seen) = (now.at, now.steady);
        let due = guest.told.is_none_or(|(_, told)| now.passed - told >= SEEN_EVERY);
        if due && !guest.denied {
            guest.told = Some((now.at, now.passed));
        }
        due && !guest.denied
    }

    /// A face like `person` is in view, whose name was taken back: the visit goes on and nothing is told.
    pub(super) fn still_denied(&mut self, person: PersonId, now: Now) {
        if let Some(guest) = self.of_mut(person).filter(|guest| guest.denied) {
            guest.seen = now.steady;
        }
    }

    /// Ends the visits of those out of view for long. Answers the last moments that the memory does not have yet.
    pub(super) fn end(&mut self, now: Now, ends_after: SignedDuration) -> Vec<Seen> {
        self.asked.retain(|asked| now.steady - asked.seen < ends_after);
        let (over, stay) =
            std::mem::take(&mut self.guests).into_iter().partition(|guest| now.steady - guest.seen >= ends_after);
        self.guests = stay;
        let over: Vec<Guest> = over;
        over.iter().filter_map(|guest| self.leaves(guest)).collect()
    }

    fn leaves(&mut self, guest: &Guest) -> Option<Seen> {
        if guest.denied {
            return None;
        }
        self.past.retain(|(person, _)| *person != guest.person);
        if self.past.len() >= MOST_PAST {
            self.past.pop_front();
        }
        self.past.push_back((guest.person, guest.seen_at));
        let told = guest.told.is_some_and(|(at, _)| at == guest.seen_at);
        (!told).then_some((guest.person, guest.seen_at))
    }

    /// Remembers that a stranger was asked.
    pub(super) fn was_asked(&mut self, shots: &[Shot], now: Now) {
        if self.asked.len() >= MOST_ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { shots: shots.to_vec(), seen: now.steady });
    }

    /// Whether a stranger may be one who was asked in this visit; whoever surely is stays on the visit.
    pub(super) fn perhaps_asked(&mut self, shots: &[Shot], gates: &Gates, now: Now) -> bool {
        let mut perhaps = false;
        for asked in &mut self.asked {
            let alike = likeness(&asked.shots, shots);
            if alike >= gates.greet {
                asked.seen = now.steady;
            }
            perhaps |= alike >= gates.ask;
        }
        perhaps
    }

    pub(super) fn forget(&mut self, person: PersonId) {
        self.guests.retain(|guest| guest.person != person);
        self.past.retain(|(other, _)| *other != person);
        if self.forgotten.len() >= MOST_FORGOTTEN {
            self.forgotten.pop_front();
        }
        self.forgotten.push_back(person);
    }

    pub(super) fn is_forgotten(&self, person: PersonId) -> bool {
        self.forgotten.contains(&person)
    }
}
