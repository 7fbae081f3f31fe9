//! What stands behind [`super::People`]: the open shard and its rules. Every call blocks; writers take turns.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::engine::{Engine, Whole};
use super::open::write_count;
use super::payload::Card;
use super::{
    FACE_DIMENSION, Learned, Likeness, MOST_PEOPLE, MOST_SHOTS, Merged, PeopleError, PeopleSettings, Person, PersonId,
    names,
};
use crate::remember::embed::cosine;
use crate::remember::engine::check_vector;
use crate::remember::folder::{self, Lock};
use crate::remember::store::mb;

/// That somebody was seen is written at most this often. Not measured: "ten minutes ago" may be told a minute wrong
/// after a pulled plug, and an SD card has one small write a minute while somebody is there.
const SEEN_EVERY: SignedDuration = SignedDuration::from_secs(60);

pub struct Shelf {
    // The engine is dropped, and so flushed, before the lock is given back: fields drop in this order.
    pub engine: Engine,
    pub _lock: Arc<Lock>,
    pub shard: PathBuf,
    pub settings: PeopleSettings,
    /// Held while the shard is changed.
    pub writing: Mutex<()>,
    /// When people were last seen, where that is not in the shard yet.
    pub seen: Mutex<HashMap<PersonId, Timestamp>>,
}

impl Shelf {
    pub fn nearest(&self, face: Vec<f32>, limit: usize) -> Result<Vec<Likeness>, PeopleError> {
        let face = unit(face)?;
        if limit == 0 {
            return Ok(Vec::new());
        }
        Ok(self.engine.nearest(face, limit)?)
    }

    pub fn enrol(
        &self,
        name: &str,
        shots: Vec<Vec<f32>>,
        met_at: Timestamp,
        now: Timestamp,
    ) -> Result<Person, PeopleError> {
        let name = names::checked(name)?;
        let taught = units(shots)?;
        require_room(taught.len())?;
        let _turn = self.turn();
        self.require_space(0)?;
        let known = self.engine.cards()?;
        if known.len() >= MOST_PEOPLE {
            return Err(PeopleError::TooMany { most: MOST_PEOPLE });
        }
        let name = names::free(&name, known.iter().map(|card| card.person.name.as_str()));
        let id = random_id()?;
        let shots = taught.len();
        let person = Person { id, name, met_at, taught_at: now, last_seen_at: now, shots };
        self.put(Whole { person: person.clone(), taught, poses: Vec::new() })?;
        Ok(person)
    }

    pub fn add_shots(&self, id: PersonId, shots: Vec<Vec<f32>>, now: Timestamp) -> Result<Person, PeopleError> {
        let shots = units(shots)?;
        let _turn = self.turn();
        self.require_space(0)?;
        let mut whole = self.whole(id)?;
        require_room(whole.taught.len() + shots.len())?;
        whole.taught.extend(shots);
        whole.person.taught_at = whole.person.taught_at.max(now);
        whole.person.shots = whole.taught.len() + whole.poses.len();
        let person = whole.person.clone();
        self.put(whole)?;
        Ok(person)
    }

    pub fn learn_pose(&self, id: PersonId, shot: Vec<f32>) -> Result<Learned, PeopleError> {
        let pose = unit(shot)?;
        let _turn = self.turn();
        self.require_space(0)?;
        let mut whole = self.whole(id)?;
        let own = whole.taught.iter().chain(&whole.poses).map(|shot| cosine(shot, &pose)).fold(-1.0, f32::max);
        let other = self.engine.nearest(pose.clone(), 2)?.into_iter().find(|likeness| likeness.person != id);
        if let Some(other) = other
            && other.score >= own
        {
            return Ok(Learned::NearerToAnother { other, own });
        }
        if own >= self.settings.too_alike {
            return Ok(Learned::TooAlike { score: own });
        }
        let poses = whole.poses.len();
        if poses >= self.settings.most_poses {
            return Ok(Learned::Full { poses });
        }
        whole.poses.push(pose);
        self.put(whole)?;
        Ok(Learned::Stored { poses: poses + 1 })
    }

    pub fn seen(&self, id: PersonId, at: Timestamp) -> Result<(), PeopleError> {
        let _turn = self.turn();
        let card = self.engine.card(id)?.ok_or(PeopleError::Unknown)?;
        let known = self.with_seen(card.person.clone());
        if at <= known.last_seen_at {
            return Ok(());
        }
        // Noted first: where the disk is full it is still told, and written later.
        self.noted().insert(id, at);
        if at.duration_since(card.person.last_seen_at) >= SEEN_EVERY {
            self.require_space(0)?;
            self.write_seen(Person { last_seen_at: at, ..card.person })?;
        }
        Ok(())
    }

    pub fn flush(&self) -> Result<(), PeopleError> {
        let _turn = self.turn();
        self.write_all_seen()?;
        Ok(self.engine.flush()?)
    }

    pub fn get(&self, id: PersonId) -> Result<Option<Person>, PeopleError> {
        Ok(self.engine.card(id)?.map(|card| self.with_seen(card.person)))
    }

    pub fn find(&self, name: &str) -> Result<Option<Person>, PeopleError> {
        let tidy = name.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(self.list()?.into_iter().find(|person| names::same(&person.name, &tidy)))
    }

    pub fn list(&self) -> Result<Vec<Person>, PeopleError> {
        let mut people: Vec<Person> =
            self.engine.cards()?.into_iter().map(|card| self.with_seen(card.person)).collect();
        people.sort_by_key(|person| (person.name.to_lowercase(), person.id));
        Ok(people)
    }

    pub fn rename(&self, id: PersonId, new: &str) -> Result<Person, PeopleError> {
        let new = names::checked(new)?;
        let _turn = self.turn();
        let cards = self.engine.cards()?;
        let taken = |card: &&Card| card.person.id != id && names::same(&card.person.name, &new);
        if let Some(other) = cards.iter().find(taken) {
            return Err(PeopleError::NameTaken { name: other.person.name.clone() });
        }
        let whole = self.whole(id)?;
        if whole.person.name == new {
            return Ok(self.with_seen(whole.person));
        }
        self.rewrite(|whole| {
            let renamed = Person { name: new.clone(), ..whole.person.clone() };
            Some(if whole.person.id == id { Whole { person: renamed, ..whole } } else { whole })
        })?;
        self.get(id)?.ok_or(PeopleError::Unknown)
    }

    pub fn merge(&self, keep: PersonId, other: PersonId) -> Result<Merged, PeopleError> {
        let _turn = self.turn();
        let (kept, gone) = (self.whole(keep)?, self.whole(other)?);
        if keep == other {
            return Ok(Merged { person: kept.person, gone: gone.person.name, left_out: 0 });
        }
        let name = gone.person.name.clone();
        let (merged, left_out) = merged(kept, gone, self.settings.most_poses);
        self.rewrite(|whole| match whole.person.id {
            id if id == keep => Some(merged.clone()),
            id if id == other => None,
            _ => Some(whole),
        })?;
        self.noted().remove(&other);
        let person = self.get(keep)?.ok_or(PeopleError::Unknown)?;
        Ok(Merged { person, gone: name, left_out })
    }

    pub fn forget(&self, id: PersonId) -> Result<Option<Person>, PeopleError> {
        let _turn = self.turn();
        let Some(card) = self.engine.card(id)? else { return Ok(None) };
        self.rewrite(|whole| (whole.person.id != id).then_some(whole))?;
        self.noted().remove(&id);
        Ok(Some(card.person))
    }

    /// Builds the shard anew; the caller holds the turn.
    fn rewrite(&self, carry: impl FnMut(Whole) -> Option<Whole>) -> Result<(), PeopleError> {
        self.require_space(folder::allocated_bytes(&self.shard))?;
        self.write_all_seen()?;
        self.engine.rebuild(&self.shard, carry, |beside, count| Ok(write_count(beside, count)?))
    }

    /// Writes a person so that they are on the disk itself; the caller holds the turn.
    fn put(&self, whole: Whole) -> Result<(), PeopleError> {
        self.engine.put(whole)?;
        self.engine.flush()?;
        Ok(write_count(&self.shard, self.engine.count()?)?)
    }

    fn whole(&self, id: PersonId) -> Result<Whole, PeopleError> {
        let mut whole = self.engine.get(id)?.ok_or(PeopleError::Unknown)?;
        whole.person = self.with_seen(whole.person);
        Ok(whole)
    }

    fn write_all_seen(&self) -> Result<(), PeopleError> {
        let noted: Vec<PersonId> = self.noted().keys().copied().collect();
        if noted.is_empty() {
            return Ok(());
        }
        self.require_space(0)?;
        for id in noted {
            match self.engine.card(id)? {
                Some(card) => self.write_seen(self.with_seen(card.person))?,
                None => drop(self.noted().remove(&id)),
            }
        }
        Ok(())
    }

    fn write_seen(&self, person: Person) -> Result<(), PeopleError> {
        self.engine.set_seen(&person)?;
        self.noted().remove(&person.id);
        Ok(())
    }

    /// The person with the latest moment at which they were seen.
    fn with_seen(&self, person: Person) -> Person {
        let noted = self.noted().get(&person.id).copied();
        Person { last_seen_at: person.last_seen_at.max(noted.unwrap_or(person.last_seen_at)), ..person }
    }

    fn require_space(&self, more: u64) -> Result<(), PeopleError> {
        let needed = self.settings.min_free_bytes.saturating_add(more);
        match folder::free_bytes(&self.settings.folder) {
            Ok(free) if free < needed => Err(PeopleError::DiskFull { free_mb: mb(free), needed_mb: mb(needed) }),
            _ => Ok(()),
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<PersonId, Timestamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One person out of two, and how many shots and poses of the second found no room.
fn merged(keep: Whole, other: Whole, most_poses: usize) -> (Whole, usize) {
    let all = keep.taught.len() + keep.poses.len() + other.taught.len() + other.poses.len();
    let mut taught = keep.taught;
    taught.extend(other.taught);
    taught.truncate(MOST_SHOTS);
    let mut poses = keep.poses;
    poses.extend(other.poses);
    poses.truncate(most_poses);
    let shots = taught.len() + poses.len();
    let person = Person {
        met_at: keep.person.met_at.min(other.person.met_at),
        taught_at: keep.person.taught_at.max(other.person.taught_at),
        last_seen_at: keep.person.last_seen_at.max(other.person.last_seen_at),
        shots,
        ..keep.person
    };
    (Whole { person, taught, poses }, all - shots)
}

fn require_room(shots: usize) -> Result<(), PeopleError> {
    if shots > MOST_SHOTS {
        return Err(PeopleError::TooManyShots { got: shots, most: MOST_SHOTS });
    }
    Ok(())
}

fn units(shots: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, PeopleError> {
    if shots.is_empty() {
        return Err(PeopleError::Shot { why: "there is none".into() });
    }
    shots.into_iter().map(unit).collect()
}

/// The checked vector at length one, so that a product of two is their cosine.
fn unit(mut shot: Vec<f32>) -> Result<Vec<f32>, PeopleError> {
    check_vector("face", FACE_DIMENSION, &shot).map_err(|error| PeopleError::Shot { why: error.0 })?;
    let length = shot.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    for number in &mut shot {
        *number = (f64::from(*number) / length) as f32;
    }
    Ok(shot)
}

/// A random identity (version 4), from the system.
fn random_id() -> Result<PersonId, PeopleError> {
    let path = std::path::Path::new("/dev/urandom");
    let mut bytes = [0_u8; 16];
    std::fs::File::open(path)
        .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut bytes))
        .map_err(|source| folder::FolderError::NotReadable { path: path.to_owned(), source })?;
    Ok(PersonId(uuid::Builder::from_random_bytes(bytes).into_uuid()))
}
