//! The people: who was introduced to the robot, kept in a shard of their own, one point a person.
//!
//! [`People`] is a handle that may be cloned; behind it is one shard with one writer, and every call runs on tokio's
//! blocking threads. What an introduction stored is on the disk itself when it returns. A person has *shots*: face
//! vectors from introductions, which are never displaced, and *learned poses*, which are capped. A shard that cannot be
//! opened is set aside, whole; one of another face model is refused and left as it is. Renaming, merging and forgetting
//! build the shard anew beside the old one, so that what is gone is gone from every file; what the disk itself keeps
//! of freed blocks is beyond any program.

mod change;
mod engine;
mod names;
mod open;
mod payload;
mod shelf;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use change::Change;
pub(crate) use names::{checked as checked_name, same as same_name};
pub use names::{nearest_names, spoken_name};
pub use open::{OpenedPeople, PeopleOpenError};

use super::engine::EngineError;
use super::folder::{FolderError, Lock};
use shelf::Shelf;

/// Numbers in a face's vector; the contract of the shard.
pub const FACE_DIMENSION: usize = 128;
/// People at most. A lookup among so many, with 20 shots each, was measured to stay under 20 ms on one core.
pub const MOST_PEOPLE: usize = 1000;
/// Shots from introductions that one person may have. Not measured: some introductions of five to ten shots each.
pub const MOST_SHOTS: usize = 40;

/// Who somebody is: chosen at random when they were introduced, and theirs whatever they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PersonId(pub Uuid);

/// Somebody whom the robot knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Person {
    pub id: PersonId,
    /// Unique without regard to case; see [`spoken_name`].
    pub name: String,
    /// When the robot first saw them.
    pub met_at: Timestamp,
    /// When they were introduced last.
    pub taught_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// Face vectors, learned poses among them.
    pub shots: usize,
}

/// How like somebody a face is.
#[derive(Clone, Debug, PartialEq)]
pub struct Likeness {
    pub person: PersonId,
    pub name: String,
    /// Cosine to the person's best shot (MaxSim), −1…1.
    pub score: f32,
}

/// What became of a pose.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// It is stored; the person has so many learned poses now.
    Stored { poses: usize },
    /// Somebody else is as near to it or nearer, so it was not stored.
    NearerToAnother { other: Likeness, own: f32 },
    /// The person has as many learned poses as they may have.
    Full { poses: usize },
    /// A shot that is as good as the same is there already.
    TooAlike { score: f32 },
}

/// What a merge came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    pub person: Person,
    /// The name that is nobody's any more.
    pub gone: String,
    /// Shots and poses of the other one that found no room, the last ones.
    pub left_out: usize,
}

/// How the people are opened.
#[derive(Clone, Debug)]
pub struct PeopleSettings {
    /// Folder of the shards.
    pub folder: PathBuf,
    /// The folder's lock, where this process holds it already, as with an open [`super::Memory`]; `None` takes it.
    pub lock: Option<Arc<Lock>>,
    /// Nothing is written, and no shard opened, with less than this free on the disk, in bytes.
    pub min_free_bytes: u64,
    /// Threads that one search may use.
    pub search_threads: usize,
    /// Learned poses that one person may have.
    pub most_poses: usize,
    /// From this cosine on a pose is as good as the same as a shot that is there.
    pub too_alike: f32,
}

impl PeopleSettings {
    /// Learned poses a person, where nobody says otherwise. Not measured: two angles each to four sides.
    pub const POSES: usize = 8;
    /// As [`PeopleSettings::too_alike`], where nobody says otherwise. Not measured: shots of one visit lie over it, and
    /// a face of the same person from the side under it.
    pub const TOO_ALIKE: f32 = 0.9;

    /// The settings for the shard in `folder`: its own lock, no floor of free space, one thread.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            lock: None,
            min_free_bytes: 0,
            search_threads: 1,
            most_poses: Self::POSES,
            too_alike: Self::TOO_ALIKE,
        }
    }
}

/// Why the people could not be asked or changed. "Nobody is like this face" is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// Ask for another name.
    #[error("`{name}` cannot be anybody's name: {why}")]
    BadName { name: String, why: &'static str },
    /// Choose another name, or merge the two.
    #[error("somebody is called {name} already; choose another name, or merge the two with `people merge`")]
    NameTaken { name: String },
    /// The person was forgotten or merged meanwhile.
    #[error("that person is not known (any more)")]
    Unknown,
    /// The caller handed over what is no face's vector.
    #[error("this is no picture of a face that can be kept: {why}")]
    Shot { why: String },
    #[error(
        "{got} shots of one person are too many: {most} at most are kept; forget the person and introduce them anew"
    )]
    TooManyShots { got: usize, most: usize },
    #[error("{most} people are known, and no more fit; forget some with `people forget`")]
    TooMany { most: usize },
    /// Try again when there is space; nothing was written.
    #[error("the disk is nearly full ({free_mb} MB free, {needed_mb} needed), so nothing is written about people")]
    DiskFull { free_mb: u64, needed_mb: u64 },
    /// Try again.
    #[error("the people could not be asked: {0}")]
    Engine(#[from] EngineError),
    /// Try again.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Give up: the process is ending.
    #[error("the people's shard is closed")]
    Closed,
}

/// A handle on the people. Clones share one shard, whose only writer is behind them.
#[derive(Clone)]
pub struct People {
    shelf: Arc<Shelf>,
}

impl People {
    /// The people most like `face` ([`FACE_DIMENSION`] numbers of any length but zero), best first.
    ///
    /// # Errors
    /// [`PeopleError::Shot`], [`PeopleError::Engine`].
    pub async fn nearest(&self, face: Vec<f32>, limit: usize) -> Result<Vec<Likeness>, PeopleError> {
        self.blocking(move |shelf| shelf.nearest(face, limit)).await
    }

    /// Stores somebody new under `name`, or under its next number where somebody has that name already ("Anna 2").
    /// When it returns, it is on the disk itself.
    ///
    /// # Errors
    /// [`PeopleError`]; nothing is stored then.
    pub async fn enrol(
        &self,
        name: &str,
        shots: Vec<Vec<f32>>,
        met_at: Timestamp,
        now: Timestamp,
    ) -> Result<Person, PeopleError> {
        let name = name.to_owned();
        self.blocking(move |shelf| shelf.enrol(&name, shots, met_at, now)).await
    }

    /// Adds shots from another introduction of the same person, at `now`; durable when it returns.
    ///
    /// # Errors
    /// [`PeopleError`]; nothing is added then.
    pub async fn add_shots(&self, id: PersonId, shots: Vec<Vec<f32>>, now: Timestamp) -> Result<Person, PeopleError> {
        self.blocking(move |shelf| shelf.add_shots(id, shots, now)).await
    }

    /// Adds a pose of somebody who never left the view, unless it is nearer to another, too like a shot that is there,
    /// or one too many. Checked and stored in one step.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn learn_pose(&self, id: PersonId, shot: Vec<f32>) -> Result<Learned, PeopleError> {
        self.blocking(move |shelf| shelf.learn_pose(id, shot)).await
    }

    /// Notes that somebody was seen. [`People::get`], [`People::find`] and [`People::list`] tell it at once; the shard
    /// is written at most once a minute a person, and by [`People::flush`], which is for the end of a visit and of the
    /// process. A moment before the one noted changes nothing.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn seen(&self, id: PersonId, at: Timestamp) -> Result<(), PeopleError> {
        self.blocking(move |shelf| shelf.seen(id, at)).await
    }

    /// Writes what [`People::seen`] has not written yet, and puts everything on the disk itself.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn flush(&self) -> Result<(), PeopleError> {
        self.blocking(Shelf::flush).await
    }

    /// Somebody by identity; `None` where they are not known (any more).
    ///
    /// # Errors
    /// [`PeopleError::Engine`].
    pub async fn get(&self, id: PersonId) -> Result<Option<Person>, PeopleError> {
        self.blocking(move |shelf| shelf.get(id)).await
    }

    /// Somebody by name, without regard to case.
    ///
    /// # Errors
    /// [`PeopleError::Engine`].
    pub async fn find(&self, name: &str) -> Result<Option<Person>, PeopleError> {
        let name = name.to_owned();
        self.blocking(move |shelf| shelf.find(&name)).await
    }

    /// Everybody, by name.
    ///
    /// # Errors
    /// [`PeopleError::Engine`].
    pub async fn list(&self) -> Result<Vec<Person>, PeopleError> {
        self.blocking(|shelf| shelf.list()).await
    }

    /// Gives somebody another name; the old one is gone from every file of the shard when it returns.
    ///
    /// # Errors
    /// [`PeopleError::NameTaken`] when another has it, and the others; nothing is changed then.
    pub async fn rename(&self, id: PersonId, new: &str) -> Result<Person, PeopleError> {
        let new = new.to_owned();
        self.blocking(move |shelf| shelf.rename(id, &new)).await
    }

    /// Makes one person of two who are the same: `keep` gets the shots of `other` as far as they find room, the earlier
    /// `met_at` and the later times; `other` is gone from every file of the shard.
    ///
    /// # Errors
    /// [`PeopleError`]; nothing is changed then.
    pub async fn merge(&self, keep: PersonId, other: PersonId) -> Result<Merged, PeopleError> {
        self.blocking(move |shelf| shelf.merge(keep, other)).await
    }

    /// Forgets somebody: name and face are gone from every file of the shard when it returns. Answers whom; `None`
    /// where nobody was there.
    ///
    /// # Errors
    /// [`PeopleError`]; the person is then still known, or gone from the shard and not yet from a leftover beside it,
    /// which the next opening removes.
    pub async fn forget(&self, id: PersonId) -> Result<Option<Person>, PeopleError> {
        self.blocking(move |shelf| shelf.forget(id)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Shelf) -> Result<T, PeopleError> + Send + 'static,
    ) -> Result<T, PeopleError> {
        let shelf = Arc::clone(&self.shelf);
        tokio::task::spawn_blocking(move || call(&shelf)).await.map_err(|_| PeopleError::Closed)?
    }
}
