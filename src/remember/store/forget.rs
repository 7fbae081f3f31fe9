//! Whose memories these are: naming a speaker, carrying a name over to another, and forgetting somebody.
//!
//! What is replaced is decided in [`Change`]. The engine keeps what was deleted in its files and in its log, so a change
//! builds the shard anew beside the old one, which is removed when the new one has taken its place: then the bytes are
//! gone from every file. What the disk itself keeps of freed blocks, as SD cards do, is beyond this. Searches go on
//! meanwhile; what is to be stored waits until the new shard is in its place.

mod engine;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Inner, Memory, MemoryError, folder, mb, points};
use crate::remember::people::Change;
use crate::remember::{Exchange, Frame};
pub(super) use engine::Becomes;
use engine::Either;

/// What a change does to the memory, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Exchanges that were theirs, and are nobody's now.
    pub exchanges_unnamed: usize,
    /// Other exchanges in whose words the name stood.
    pub exchanges_reworded: usize,
    pub exchanges_removed: usize,
    /// Frames that showed them by name, and do so no more.
    pub frames_unnamed: usize,
    /// Other frames in whose words the name stood.
    pub frames_reworded: usize,
    pub frames_removed: usize,
}

impl Forgotten {
    /// Whether the memory holds nothing that the change is about.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Exchanges of which anything is changed.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        self.exchanges_unnamed + self.exchanges_reworded + self.exchanges_removed
    }

    /// Frames of which anything is changed.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames_unnamed + self.frames_reworded + self.frames_removed
    }

    /// Counts what becomes of one exchange.
    pub fn count_exchange(&mut self, before: &Exchange, after: Option<&Exchange>) {
        match after {
            None => self.exchanges_removed += 1,
            Some(after) if after.speaker != before.speaker => self.exchanges_unnamed += 1,
            Some(after) if after != before => self.exchanges_reworded += 1,
            Some(_) => {}
        }
    }

    fn count_frame(&mut self, before: &Frame, after: Option<&Frame>) {
        match after {
            None => self.frames_removed += 1,
            Some(after) if after.names != before.names => self.frames_unnamed += 1,
            Some(after) if after != before => self.frames_reworded += 1,
            Some(_) => {}
        }
    }
}

impl Memory {
    /// Gives unnamed exchanges their speaker; one that has a speaker already, or is not there, is left be. Answers how
    /// many got one; when it returns they are on the disk itself.
    ///
    /// # Errors
    /// [`MemoryError`]; some of them may have got it then.
    pub async fn name_speaker(&self, ids: Vec<Uuid>, name: &str) -> Result<usize, MemoryError> {
        let name = name.to_owned();
        self.change_alone(move |inner| inner.name_speaker(&ids, &name)).await
    }

    /// Carries everything that is `old`'s over to `new`: speakers, frames' names, and the name in the words of these.
    /// Where nothing is, nothing is written.
    ///
    /// # Errors
    /// [`MemoryError`]; the memory is then as it was.
    pub async fn rename_person(&self, old: &str, new: &str) -> Result<Forgotten, MemoryError> {
        let change = Change::Rename { from: old.to_owned(), to: new.to_owned() };
        let would = self.would(change.clone()).await?;
        if would.is_nothing() {
            return Ok(would);
        }
        self.apply(change).await
    }

    /// Takes somebody out of the memory; when it returns, the name is in no file of the shard, but for what [`Change`]
    /// says of namesakes and everyday words. `namesake`: somebody else's name is spoken the same.
    ///
    /// # Errors
    /// [`MemoryError`]; the memory is then as it was, or the old files could not be removed, which the next opening does.
    pub async fn forget_person(&self, name: &str, everything: bool, namesake: bool) -> Result<Forgotten, MemoryError> {
        self.apply(Change::Forget { name: name.to_owned(), everything, namesake }).await
    }

    /// What a change would do; nothing is written. Reads everything but the pictures.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn would(&self, change: Change) -> Result<Forgotten, MemoryError> {
        self.blocking(move |inner| {
            let mut would = Forgotten::default();
            inner.engine.all(|memory| match memory {
                Either::Said(exchange) => would.count_exchange(&exchange, change.exchange(&exchange).as_ref()),
                Either::Seen(frame) => would.count_frame(&frame, change.frame(&frame).as_ref()),
            })?;
            Ok(would)
        })
        .await
    }

    /// Builds the shard anew with a change.
    async fn apply(&self, change: Change) -> Result<Forgotten, MemoryError> {
        self.change_alone(move |inner| inner.apply(&change)).await
    }

    /// Runs a change with the writer's turn, which is kept to its end even where nobody waits for it any more.
    async fn change_alone<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Inner) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let turn = Arc::clone(&self.inner.writing).lock_owned().await;
        self.blocking(move |inner| {
            let _turn = turn;
            call(inner)
        })
        .await
    }
}

impl Inner {
    fn name_speaker(&self, ids: &[Uuid], name: &str) -> Result<usize, MemoryError> {
        let mut named = Vec::new();
        for id in ids {
            match self.engine.get::<Exchange>(*id)? {
                Some((exchange, _)) if exchange.speaker.is_none() => {
                    named.push(Exchange { speaker: Some(name.to_owned()), ..exchange });
                }
                _ => {}
            }
        }
        let count = named.len();
        if count > 0 {
            self.write(points(self.embedder.as_ref(), named)?)?;
        }
        Ok(count)
    }

    fn apply(&self, change: &Change) -> Result<Forgotten, MemoryError> {
        self.require_space_for(folder::allocated_bytes(&self.shard))?;
        let mut done = Forgotten::default();
        self.unflushed.store(true, Ordering::Release);
        self.engine.rebuild(&self.shard, self.settings.search_threads, |memory| -> Result<Becomes, MemoryError> {
            self.require_space()?;
            match memory {
                Either::Said(exchange) => {
                    let after = change.exchange(&exchange);
                    done.count_exchange(&exchange, after.as_ref());
                    self.said_becomes(&exchange, after)
                }
                Either::Seen(frame) => {
                    let after = change.frame(&frame);
                    done.count_frame(&frame, after.as_ref());
                    self.seen_becomes(&frame, after)
                }
            }
        })?;
        self.flush()?;
        Ok(done)
    }

    fn said_becomes(&self, before: &Exchange, after: Option<Exchange>) -> Result<Becomes, MemoryError> {
        match after {
            None => Ok(Becomes::Removed),
            Some(after) if after == *before => Ok(Becomes::Same),
            Some(after) => {
                let point = points(self.embedder.as_ref(), vec![after])?.pop();
                Ok(point.map_or(Becomes::Same, Becomes::Another))
            }
        }
    }

    fn seen_becomes(&self, before: &Frame, after: Option<Frame>) -> Result<Becomes, MemoryError> {
        match after {
            None => Ok(Becomes::Removed),
            Some(after) if after == *before => Ok(Becomes::Same),
            Some(after) => {
                let image = self.engine.get::<Frame>(before.id())?.and_then(|(_, image)| image);
                Ok(Becomes::Another(self.frame_point(&after, image)?))
            }
        }
    }

    /// Refuses where not even `more` bytes fit over the floor of free space.
    fn require_space_for(&self, more: u64) -> Result<(), MemoryError> {
        let needed = self.settings.min_free_bytes.saturating_add(more);
        match folder::free_bytes(&self.settings.folder) {
            Ok(free) if free < needed => Err(MemoryError::DiskFull { free_mb: mb(free), needed_mb: mb(needed) }),
            _ => Ok(()),
        }
    }
}
