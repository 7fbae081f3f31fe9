//! Opening the people: the lock, the face model's identity, a damaged shard, our own count.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::shelf::Shelf;
use super::{FACE_DIMENSION, People, PeopleSettings};
use crate::remember::beside;
use crate::remember::embed::Identity;
use crate::remember::engine::EngineError;
use crate::remember::folder::{self, FolderError, Lock};
use crate::remember::store::{describe, mb};

/// The opened people and what their owner must be told about them.
pub struct OpenedPeople {
    pub people: People,
    /// Sentences about what was repaired, set aside or is missing; empty when all is well.
    pub notes: Vec<String>,
}

/// Why the people could not be opened; what was stored is still on the disk then, untouched or set aside.
#[derive(Debug, thiserror::Error)]
pub enum PeopleOpenError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "the disk under {} has {free_mb} MB free and the people need {needed_mb}: free some space, or lower `min_free_mb` \
         in [remember]",
        folder.display()
    )]
    DiskFull { folder: PathBuf, free_mb: u64, needed_mb: u64 },
    #[error(
        "the people in {} were introduced with the face model {stored}, and {current} is in use: their faces cannot be \
         compared. Name the first one in [models] again, or move that folder away and introduce everybody anew; \
         nothing in it was changed",
        shard.display()
    )]
    OtherFaceModel { shard: PathBuf, stored: String, current: String },
    #[error(
        "the face model gives vectors of {got} numbers and a person's shots have {FACE_DIMENSION}: choose another in [models]"
    )]
    Dimension { got: usize },
    #[error("the people's shard in {} could not be made: {source}", shard.display())]
    Engine { shard: PathBuf, source: EngineError },
}

/// How many people there were when one was last stored or forgotten: a count of our own, because the engine loads a
/// shard with a damaged log as if nobody were missing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Count {
    people: usize,
}

/// Writes the count beside the shard.
pub fn write_count(shard: &Path, people: usize) -> Result<(), FolderError> {
    folder::write_note(&shard.join(folder::COUNT), &Count { people })
}

impl People {
    /// Opens the people in `settings.folder`, or makes an empty shard for faces of the model `identity`. Blocks.
    ///
    /// # Errors
    /// [`PeopleOpenError`].
    pub fn open(
        settings: PeopleSettings,
        identity: &Identity,
        now: Timestamp,
    ) -> Result<OpenedPeople, PeopleOpenError> {
        if identity.dimension != FACE_DIMENSION {
            return Err(PeopleOpenError::Dimension { got: identity.dimension });
        }
        let lock = claim(&settings)?;
        let shard = settings.folder.join(folder::PEOPLE);
        let notes = beside::recover(&shard)?.into_iter().collect();
        if !shard.exists() {
            create(&shard, identity, settings.search_threads)?;
        }
        match folder::identity(&shard)? {
            Some(stored) if stored == *identity => load(settings, lock, identity, notes, now),
            stored => Err(PeopleOpenError::OtherFaceModel {
                shard,
                stored: stored.map_or_else(|| "that nobody wrote down".into(), |stored| describe(&stored)),
                current: describe(identity),
            }),
        }
    }

    /// Opens the people for a command that compares no faces, whatever face model they were introduced with; `None`
    /// where nobody was ever introduced. Blocks.
    ///
    /// # Errors
    /// [`PeopleOpenError`].
    pub fn open_as_they_are(settings: PeopleSettings, now: Timestamp) -> Result<Option<OpenedPeople>, PeopleOpenError> {
        let lock = claim(&settings)?;
        let shard = settings.folder.join(folder::PEOPLE);
        let notes = beside::recover(&shard)?.into_iter().collect();
        if !shard.exists() {
            return Ok(None);
        }
        let unknown = || PeopleOpenError::OtherFaceModel {
            shard: shard.clone(),
            stored: "that nobody wrote down".into(),
            current: "none".into(),
        };
        let identity = folder::identity(&shard)?.ok_or_else(unknown)?;
        load(settings, lock, &identity, notes, now).map(Some)
    }
}

/// Takes the folder's lock, where this process has not, and sees to the disk: all that must hold before the engine is
/// called.
fn claim(settings: &PeopleSettings) -> Result<Arc<Lock>, PeopleOpenError> {
    let lock = match &settings.lock {
        Some(lock) => Arc::clone(lock),
        None => Arc::new(folder::take(&settings.folder)?),
    };
    match folder::free_bytes(&settings.folder) {
        Ok(free) if free < settings.min_free_bytes => Err(PeopleOpenError::DiskFull {
            folder: settings.folder.clone(),
            free_mb: mb(free),
            needed_mb: mb(settings.min_free_bytes),
        }),
        _ => Ok(lock),
    }
}

fn load(
    settings: PeopleSettings,
    lock: Arc<Lock>,
    identity: &Identity,
    mut notes: Vec<String>,
    now: Timestamp,
) -> Result<OpenedPeople, PeopleOpenError> {
    let shard = settings.folder.join(folder::PEOPLE);
    let threads = settings.search_threads;
    let failed = |source| PeopleOpenError::Engine { shard: shard.clone(), source };
    let (engine, there) = match Engine::load(&shard, threads).and_then(|engine| {
        let there = engine.count()?;
        Ok((engine, there))
    }) {
        Ok(opened) => opened,
        Err(error) => {
            let aside = folder::set_aside(&shard, now)?;
            notes.push(format!(
                "The people could not be opened ({error}). Their shard was set aside, whole, in {}, and an empty one \
                 took its place: everybody is a stranger until they are introduced again.",
                aside.display()
            ));
            create(&shard, identity, threads)?;
            (Engine::load(&shard, threads).map_err(failed)?, 0)
        }
    };
    // Our own count is only a second opinion: where it cannot be read, that is said, and the shard is used.
    match folder::read_note::<Count>(&shard.join(folder::COUNT)) {
        Ok(Some(Count { people })) if there < people => notes.push(format!(
            "The robot should know {people} people and knows {there}: {} are missing. A part of the log in {} was \
             damaged; a copy of it made now would help to look into it.",
            people - there,
            shard.display()
        )),
        Ok(_) => {}
        Err(error) => notes.push(format!("How many people the robot should know is not known: {error}")),
    }
    let (writing, seen) = (Mutex::new(()), Mutex::new(HashMap::new()));
    let shelf = Shelf { engine, _lock: lock, shard: shard.clone(), settings, writing, seen };
    Ok(OpenedPeople { people: People { shelf: Arc::new(shelf) }, notes })
}

/// Makes an empty shard: built beside, opened once to see that it can be, then renamed into place.
fn create(shard: &Path, identity: &Identity, search_threads: usize) -> Result<(), PeopleOpenError> {
    let place = beside::new_place(shard)?;
    let failed = |source| PeopleOpenError::Engine { shard: place.clone(), source };
    drop(Engine::create(&place, search_threads).map_err(failed)?);
    folder::write_identity(&place, identity)?;
    write_count(&place, 0)?;
    drop(Engine::load(&place, search_threads).map_err(failed)?);
    Ok(folder::rename(&place, shard)?)
}
