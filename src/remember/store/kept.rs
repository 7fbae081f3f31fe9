//! Memories that were read lately, kept as they were read: the engine takes longer to read a payload than to find it
//! (measured with `bench`, 500 memories: 40 of 75 µs for twenty exchanges; ten times that for frames, whose pictures
//! are read with them).
//!
//! A copy is dropped whenever its point is written or the shard is built anew, so it is never older than the shard; and
//! when somebody is forgotten, nothing of them stays here.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use quick_cache::sync::Cache;
use uuid::Uuid;

use super::payload::Stored;
use crate::remember::words::Bag;
use crate::remember::{Exchange, Frame};

/// How many of each kind are kept at most: about 4 MB together, and more than a house says in half a year.
const MOST: usize = 4096;

/// A memory as it was read; a frame without its picture.
pub struct Known<S> {
    pub memory: S,
    /// Its words, as the shard holds them.
    pub bag: Bag,
}

/// The copies of one shard.
pub struct Kept {
    pub(super) exchanges: Cache<Uuid, Arc<Known<Exchange>>>,
    pub(super) frames: Cache<Uuid, Arc<Known<Frame>>>,
    /// Held for reading from before a point is read until its copy is kept, and for writing while copies are dropped:
    /// so no copy is kept that was read before its point was written.
    changing: RwLock<()>,
}

impl Kept {
    pub fn new() -> Self {
        Self { exchanges: Cache::new(MOST), frames: Cache::new(MOST), changing: RwLock::new(()) }
    }

    /// The copy of a memory, if it is kept.
    pub fn get<S: Stored>(&self, id: Uuid) -> Option<Arc<Known<S>>> {
        S::kept(self).get(&id)
    }

    /// Keeps what `read` reads; what is read is also returned.
    pub fn keep<S: Stored, E>(
        &self,
        read: impl FnOnce() -> Result<Vec<(Uuid, Known<S>)>, E>,
    ) -> Result<HashMap<Uuid, Arc<Known<S>>>, E> {
        let _reading = self.changing.read().unwrap_or_else(PoisonError::into_inner);
        let known: HashMap<_, _> = read()?.into_iter().map(|(id, known)| (id, Arc::new(known))).collect();
        for (id, known) in &known {
            S::kept(self).insert(*id, Arc::clone(known));
        }
        Ok(known)
    }

    /// Drops the copies of points that were just written.
    pub fn drop_written(&self, ids: &[Uuid]) {
        let _changing = self.changing.write().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            self.exchanges.remove(id);
            self.frames.remove(id);
        }
    }

    /// Drops everything, because the shard is another one.
    pub fn drop_all(&self) {
        let _changing = self.changing.write().unwrap_or_else(PoisonError::into_inner);
        self.exchanges.clear();
        self.frames.clear();
    }
}
