//! The text tower and its tokenizer, in memory only while they are asked.
//!
//! Both are loaded together by the first question and let go together: by the owner, or by a thread that lives exactly
//! as long as they do and waits for them to be idle. If that thread cannot be made, the question is answered all the
//! same and nothing is kept.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::checkpoint::{AtRest, Checkpoint};
use super::load_error;
use super::tower::{TOKEN_TABLE, TextTower, WIDTH};
use super::words::Words;
use crate::remember::embed::EmbedError;

/// Where the text side is read from.
pub(super) struct TextFiles {
    /// For error sentences; the file itself is open already.
    pub weights: PathBuf,
    pub tokenizer: PathBuf,
    pub tokenizer_config: Option<PathBuf>,
}

struct Loaded {
    tower: TextTower,
    words: Words,
}

struct State {
    loaded: Option<Arc<Loaded>>,
    used: Instant,
    /// Questions that are being embedded now; while there are any, the tower is not idle, however long they take.
    asking: usize,
    /// Counts the loadings, so that a thread that waits for one of them does not take the next one for it.
    loading: u64,
}

struct Shared {
    /// Locked while the tower is loaded, so that it is loaded once; not while it runs.
    state: Mutex<State>,
    /// Told whenever the tower was let go or a question is done.
    changed: Condvar,
}

/// A question that is being embedded; its end is noted on every way out.
struct Asking<'a>(&'a Shared);

impl<'a> Asking<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.state().asking += 1;
        Self(shared)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.asking = state.asking.saturating_sub(1);
        state.used = Instant::now();
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Poison can be passed over: the state is whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the loading `loading` go once nobody has asked it for `keep`; ends when it is gone.
    fn watch(&self, loading: u64, keep: Duration) {
        let mut state = self.state();
        while state.loaded.is_some() && state.loading == loading {
            if state.asking > 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(left) = time_left(state.used, keep, Instant::now()) else {
                state.loaded = None;
                tracing::debug!("the text tower for pictures was idle and is let go");
                return;
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How long something used at `used` is kept from `now` on; `None` when its time is over.
fn time_left(used: Instant, keep: Duration, now: Instant) -> Option<Duration> {
    keep.checked_sub(now.saturating_duration_since(used)).filter(|left| !left.is_zero())
}

/// The text half of the embedder.
pub(super) struct TextSide {
    files: TextFiles,
    checkpoint: Arc<Checkpoint>,
    at_rest: AtRest,
    keep: Duration,
    shared: Arc<Shared>,
}

impl TextSide {
    pub fn new(files: TextFiles, checkpoint: Arc<Checkpoint>, at_rest: AtRest, keep: Duration) -> Self {
        let state = State { loaded: None, used: Instant::now(), asking: 0, loading: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        Self { files, checkpoint, at_rest, keep, shared }
    }

    /// The vector of a text, not of length one.
    pub fn vector(&self, words: &str) -> Result<Vec<f32>, EmbedError> {
        let _asking = Asking::begin(&self.shared);
        let loaded = self.loaded()?;
        let tokens = loaded.words.tokens(words)?;
        let rows = self
            .checkpoint
            .picked_rows(TOKEN_TABLE, &tokens, WIDTH)
            .map_err(|why| EmbedError::Run { why: format!("{}: {why}", self.files.weights.display()) })?;
        loaded.tower.run(rows).map_err(|error| EmbedError::Run { why: error.to_string() })
    }

    /// Lets the tower go; true when there was one.
    pub fn release(&self) -> bool {
        let was_there = self.shared.state().loaded.take().is_some();
        self.shared.changed.notify_all();
        was_there
    }

    pub fn is_loaded(&self) -> bool {
        self.shared.state().loaded.is_some()
    }

    fn loaded(&self) -> Result<Arc<Loaded>, EmbedError> {
        let mut state = self.shared.state();
        if let Some(loaded) = &state.loaded {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(self.load()?);
        state.loading += 1;
        let (shared, loading, keep) = (Arc::clone(&self.shared), state.loading, self.keep);
        let watching =
            std::thread::Builder::new().name("text-tower".to_owned()).spawn(move || shared.watch(loading, keep));
        match watching {
            Ok(_) => state.loaded = Some(Arc::clone(&loaded)),
            Err(error) => tracing::warn!(%error, "the text tower for pictures is not kept: no thread to watch it"),
        }
        Ok(loaded)
    }

    fn load(&self) -> Result<Loaded, EmbedError> {
        let words = Words::load(&self.files.tokenizer, self.files.tokenizer_config.as_deref())?;
        let rows = self.checkpoint.rows(TOKEN_TABLE, WIDTH).map_err(|why| load_error(&self.files.weights, why))?;
        if words.known() > rows {
            let why = format!("it knows {} pieces, the model {rows}; they do not belong together", words.known());
            return Err(load_error(&self.files.tokenizer, why));
        }
        let tower =
            TextTower::load(&self.checkpoint, self.at_rest).map_err(|why| load_error(&self.files.weights, why))?;
        Ok(Loaded { tower, words })
    }
}

impl Drop for TextSide {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tower_is_kept_exactly_as_long_as_stated() {
        let used = Instant::now();
        let keep = Duration::from_secs(120);
        assert_eq!(time_left(used, keep, used), Some(keep));
        assert_eq!(time_left(used, keep, used + Duration::from_secs(119)), Some(Duration::from_secs(1)));
        assert_eq!(time_left(used, keep, used + keep), None);
        assert_eq!(time_left(used, keep, used + Duration::from_secs(500)), None);
        assert_eq!(time_left(used + keep, keep, used), Some(keep), "a clock that seems to go back");
    }
}
