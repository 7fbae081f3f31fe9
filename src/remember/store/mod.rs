//! The store: one owner of the shard, reached through a handle that may be cloned.
//!
//! [`Memory`] validates, embeds, writes and searches; every blocking call runs on tokio's blocking threads and writers
//! take turns. When `store` returns, the batch is on the disk itself. [`engine`] is the only file that names Qdrant
//! Edge; [`folder`] owns the lock and what stands beside the shard. When the shard cannot be opened it is set aside
//! and an empty one takes its place, and [`Opened::notes`] says so.

mod engine;
mod folder;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Mutex;

pub use engine::{EngineError, IMAGE_DIMENSION, TEXT_DIMENSION};
pub use folder::{FolderError, Lock};

use super::embed::{EmbedError, EmbedText, Identity};
use super::just_said::JustSaid;
use super::recall::{self, Scored};
use super::{Exchange, Query, Recalled};
use engine::{Engine, Order, Point};

/// Candidates asked of the engine for each memory that may be told, so that ties and gates have something to choose
/// from. Not measured; the search costs the same up to some dozens.
const CANDIDATES: usize = 4;
/// The newest exchanges of a range that a question naming nothing is answered from, which bounds its cost whatever
/// the age of the robot. A day of talk is shorter. Not measured.
const SAMPLED_FROM: usize = 500;
/// Texts embedded and written at once, which bounds memory while a large shard is embedded again.
const BATCH: usize = 64;

/// How a memory is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder of the shards.
    pub folder: PathBuf,
    /// From this cosine on an exchange counts as found.
    pub exchange_gate: f32,
    /// Memories told at most.
    pub limit: usize,
    /// Nothing is written, and no shard opened, with less than this free on the disk, in bytes.
    pub min_free_bytes: u64,
    /// Threads that one search may use.
    pub search_threads: usize,
}

/// An opened memory and what its owner must be told about it.
pub struct Opened {
    pub memory: Memory,
    /// Sentences about what was repaired, set aside or is missing; empty when all is well.
    pub notes: Vec<String>,
}

/// Why a memory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "the disk under {} has {free_mb} MB free and the memory needs {needed_mb}: free some space, or lower \
         `min_free_mb` in [remember]",
        folder.display()
    )]
    DiskFull { folder: PathBuf, free_mb: u64, needed_mb: u64 },
    #[error(
        "the memory in {} was made with the text model {stored}, and {current} is in use; run `reachy-remembers memory \
         reembed` to carry it over, or name the first one in [models]",
        shard.display()
    )]
    OtherEmbedder { shard: PathBuf, stored: String, current: String },
    #[error(
        "the text model gives vectors of {got} numbers and the memory holds {TEXT_DIMENSION}: choose another in [models]"
    )]
    Dimension { got: usize },
    #[error("the memory in {} could not be made: {source}", shard.display())]
    Engine { shard: PathBuf, source: EngineError },
    #[error("the memory could not be embedded again: {0}")]
    Embed(#[from] EmbedError),
}

/// Why the memory could not do what it was asked. "Nothing found" is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Try again when there is space; nothing was written.
    #[error("the disk is nearly full ({free_mb} MB free, {needed_mb} needed), so nothing is written")]
    DiskFull { free_mb: u64, needed_mb: u64 },
    /// Try again.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Try again.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// Try again.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Give up: the process is ending.
    #[error("the memory is closed")]
    Closed,
}

/// What a memory holds, for people.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct Stats {
    pub folder: PathBuf,
    pub exchanges: usize,
    /// Unix seconds of the first and the last exchange.
    pub oldest: Option<i64>,
    pub newest: Option<i64>,
    /// Bytes on the disk, allocated blocks.
    pub disk_bytes: u64,
    /// Bytes free on that disk.
    pub free_bytes: Option<u64>,
    pub text_model: String,
    pub exchange_gate: f32,
}

/// A handle on the memory. Clones share one shard, whose only writer is behind them.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    // The engine is dropped, and so flushed, before the lock is given back: fields drop in this order.
    engine: Engine,
    _lock: Lock,
    shard: PathBuf,
    embedder: Arc<dyn EmbedText>,
    settings: Settings,
    just_said: JustSaid,
    writing: Mutex<()>,
    exchanges: AtomicUsize,
    unflushed: AtomicBool,
}

impl Memory {
    /// Opens the memory in `settings.folder`, or makes an empty one. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]; nothing has been changed on the disk then.
    pub fn open(settings: Settings, embedder: Arc<dyn EmbedText>, now: Timestamp) -> Result<Opened, OpenError> {
        let lock = claim(&settings, embedder.identity())?;
        let shard = settings.folder.join(folder::MEMORY);
        let mut notes = Vec::new();
        if !shard.exists() {
            create(&shard, embedder.identity(), settings.search_threads)?;
        }
        check_identity(&shard, embedder.identity())?;
        let engine = match Engine::load(&shard, settings.search_threads) {
            Ok(engine) => engine,
            Err(error) => {
                let aside = folder::set_aside(&shard, now)?;
                notes.push(format!(
                    "The memory could not be opened ({error}). It was set aside, whole, in {}, and an empty one took \
                     its place.",
                    aside.display()
                ));
                create(&shard, embedder.identity(), settings.search_threads)?;
                load(&shard, settings.search_threads)?
            }
        };
        let stored = engine.count(None).map_err(|source| OpenError::Engine { shard: shard.clone(), source })?;
        let expected = folder::count(&shard)?.unwrap_or_default().exchanges;
        if stored < expected {
            notes.push(format!(
                "The memory should hold {expected} exchanges and holds {stored}: {} are missing. A part of its log was \
                 damaged; a copy of {} made now would help to look into it.",
                expected - stored,
                shard.display()
            ));
        }
        let inner = Inner {
            engine,
            _lock: lock,
            shard,
            embedder,
            settings,
            just_said: JustSaid::default(),
            writing: Mutex::new(()),
            exchanges: AtomicUsize::new(stored),
            unflushed: AtomicBool::new(false),
        };
        Ok(Opened { memory: Self { inner: Arc::new(inner) }, notes })
    }

    /// Stores exchanges as one batch, in order; when it returns they are on the disk itself. Storing an exchange
    /// again changes nothing.
    ///
    /// # Errors
    /// [`MemoryError`]; the batch may then be stored in part, and may be stored again.
    pub async fn store(&self, exchanges: Vec<Exchange>) -> Result<(), MemoryError> {
        if exchanges.is_empty() {
            return Ok(());
        }
        let _turn = self.inner.writing.lock().await;
        self.blocking(move |inner| inner.store(exchanges)).await
    }

    /// Answers a question from the memory and from what was just said.
    ///
    /// # Errors
    /// [`MemoryError`] when it could not look; that nothing was found is [`Recalled::Nothing`].
    pub async fn recall(&self, query: Query) -> Result<Recalled, MemoryError> {
        self.blocking(move |inner| inner.recall(&query)).await
    }

    /// Flushes, if something was written and not flushed yet.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn flush(&self) -> Result<(), MemoryError> {
        let _turn = self.inner.writing.lock().await;
        self.blocking(Inner::flush).await
    }

    /// From this cosine on an exchange counts as found.
    #[must_use]
    pub fn exchange_gate(&self) -> f32 {
        self.inner.settings.exchange_gate
    }

    /// What the memory holds.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn stats(&self) -> Result<Stats, MemoryError> {
        self.blocking(|inner| inner.stats()).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Inner) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || call(&inner)).await.map_err(|_| MemoryError::Closed)?
    }
}

impl Inner {
    fn store(&self, exchanges: Vec<Exchange>) -> Result<(), MemoryError> {
        self.require_space()?;
        let points = points(self.embedder.as_ref(), exchanges)?;
        self.unflushed.store(true, Ordering::Release);
        self.engine.upsert(points)?;
        self.flush()
    }

    fn flush(&self) -> Result<(), MemoryError> {
        if !self.unflushed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.engine.flush()?;
        let exchanges = self.engine.count(None)?;
        folder::write_count(&self.shard, folder::Count { exchanges })?;
        self.exchanges.store(exchanges, Ordering::Release);
        self.unflushed.store(false, Ordering::Release);
        Ok(())
    }

    fn require_space(&self) -> Result<(), MemoryError> {
        let settings = &self.settings;
        let Ok(free) = folder::free_bytes(&settings.folder) else { return Ok(()) };
        if free < settings.min_free_bytes {
            return Err(MemoryError::DiskFull { free_mb: mb(free), needed_mb: mb(settings.min_free_bytes) });
        }
        Ok(())
    }

    fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        if recall::names_nothing(&query.text) {
            return self.sample(query);
        }
        let question = self.embedder.question(&query.text)?;
        let limit = self.settings.limit;
        let mut candidates = self.just_said.scored(&query.just_said, &question, self.embedder.as_ref())?;
        let stored = self.engine.nearest(question, query.when, (limit * CANDIDATES).max(CANDIDATES))?;
        let searched = self.engine.count(query.when)? + query.just_said.len();
        candidates.extend(stored.into_iter().map(|(exchange, score)| Scored { exchange, score, just_said: false }));
        candidates.retain(|candidate| recall::may_answer(candidate.exchange.said_at, query.when, query.now));
        Ok(recall::decide(candidates, self.settings.exchange_gate, limit, searched))
    }

    /// A question that names nothing is answered by its time.
    fn sample(&self, query: &Query) -> Result<Recalled, MemoryError> {
        let stored = self.engine.in_time(query.when, Order::NewestFirst, SAMPLED_FROM)?;
        let all = stored
            .into_iter()
            .map(|exchange| (exchange, false))
            .chain(query.just_said.iter().map(|exchange| (exchange.clone(), true)))
            .filter(|(exchange, _)| recall::may_answer(exchange.said_at, query.when, query.now))
            .collect();
        Ok(recall::sample(all, self.settings.limit))
    }

    fn stats(&self) -> Result<Stats, MemoryError> {
        let end = |order| -> Result<Option<i64>, MemoryError> {
            Ok(self.engine.in_time(None, order, 1)?.first().map(|exchange| exchange.said_at.as_second()))
        };
        Ok(Stats {
            folder: self.settings.folder.clone(),
            exchanges: self.engine.count(None)?,
            oldest: end(Order::OldestFirst)?,
            newest: end(Order::NewestFirst)?,
            disk_bytes: folder::allocated_bytes(&self.shard),
            free_bytes: folder::free_bytes(&self.settings.folder).ok(),
            text_model: self.embedder.identity().model.clone(),
            exchange_gate: self.settings.exchange_gate,
        })
    }
}

/// Embeds every exchange again with another text model, into a shard built beside that replaces the old one only when
/// it is complete. Blocks; `progress` is told how many are done, of how many. Answers how many there were.
///
/// # Errors
/// [`OpenError`]; the old shard is then still in place.
pub fn reembed(
    settings: &Settings,
    embedder: &dyn EmbedText,
    mut progress: impl FnMut(usize, usize),
) -> Result<usize, OpenError> {
    let _lock = claim(settings, embedder.identity())?;
    let shard = settings.folder.join(folder::MEMORY);
    let failed = |source| OpenError::Engine { shard: shard.clone(), source };
    if !shard.exists() {
        create(&shard, embedder.identity(), settings.search_threads)?;
        return Ok(0);
    }
    let old = load(&shard, settings.search_threads)?;
    let total = old.count(None).map_err(failed)?;
    let beside = clear_sibling(&shard, "new")?;
    let new = Engine::create(&beside, settings.search_threads).map_err(failed)?;
    let (mut done, mut from) = (0, None);
    loop {
        let (page, next) = old.page(from).map_err(failed)?;
        done += page.len();
        new.upsert(points(embedder, page).map_err(open_error(&shard))?).map_err(failed)?;
        progress(done, total);
        match next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    new.flush().map_err(failed)?;
    let carried = new.count(None).map_err(failed)?;
    if carried != total {
        let why = format!("{carried} of {total} exchanges were carried over, so the old shard stays in place");
        return Err(failed(EngineError(why)));
    }
    folder::write_identity(&beside, embedder.identity())?;
    folder::write_count(&beside, folder::Count { exchanges: carried })?;
    drop(new);
    drop(old);
    let before = clear_sibling(&shard, "before")?;
    folder::rename(&shard, &before)?;
    folder::rename(&beside, &shard)?;
    remove(&before)?;
    Ok(carried)
}

/// Checks the embedder and the disk, and takes the folder's lock: all that must hold before the engine is called.
fn claim(settings: &Settings, identity: &Identity) -> Result<Lock, OpenError> {
    if identity.dimension != TEXT_DIMENSION {
        return Err(OpenError::Dimension { got: identity.dimension });
    }
    let lock = folder::take(&settings.folder)?;
    if let Ok(free) = folder::free_bytes(&settings.folder)
        && free < settings.min_free_bytes
    {
        let (free_mb, needed_mb) = (mb(free), mb(settings.min_free_bytes));
        return Err(OpenError::DiskFull { folder: settings.folder.clone(), free_mb, needed_mb });
    }
    Ok(lock)
}

/// Makes an empty shard: built beside, opened once to see that it can be, then renamed into place.
fn create(shard: &Path, identity: &Identity, search_threads: usize) -> Result<(), OpenError> {
    let beside = clear_sibling(shard, "new")?;
    drop(
        Engine::create(&beside, search_threads)
            .map_err(|source| OpenError::Engine { shard: beside.clone(), source })?,
    );
    folder::write_identity(&beside, identity)?;
    folder::write_count(&beside, folder::Count::default())?;
    drop(load(&beside, search_threads)?);
    folder::rename(&beside, shard)?;
    Ok(())
}

fn load(shard: &Path, search_threads: usize) -> Result<Engine, OpenError> {
    Engine::load(shard, search_threads).map_err(|source| OpenError::Engine { shard: shard.to_owned(), source })
}

/// A free name beside the shard; a half-made shard that an interrupted run left under it is removed, because it was
/// never in use.
fn clear_sibling(shard: &Path, suffix: &str) -> Result<PathBuf, OpenError> {
    let beside = shard.with_extension(suffix);
    if beside.exists() {
        remove(&beside)?;
    }
    Ok(beside)
}

fn remove(folder: &Path) -> Result<(), OpenError> {
    std::fs::remove_dir_all(folder)
        .map_err(|source| FolderError::NotWritable { path: folder.to_owned(), source })
        .map_err(OpenError::Folder)
}

fn check_identity(shard: &Path, current: &Identity) -> Result<(), OpenError> {
    match folder::identity(shard)? {
        Some(stored) if stored == *current => Ok(()),
        stored => Err(OpenError::OtherEmbedder {
            shard: shard.to_owned(),
            stored: stored.map_or_else(|| "that nobody wrote down".into(), |identity| describe(&identity)),
            current: describe(current),
        }),
    }
}

fn describe(identity: &Identity) -> String {
    let weights: String = identity.weights.chars().take(8).collect();
    format!("{} (weights {weights}, preprocessing {})", identity.model, identity.preprocessing)
}

/// Embeds exchanges in batches and checks what came out.
fn points(embedder: &dyn EmbedText, exchanges: Vec<Exchange>) -> Result<Vec<Point>, MemoryError> {
    let mut points = Vec::with_capacity(exchanges.len());
    for batch in exchanges.chunks(BATCH) {
        let lines: Vec<String> = batch.iter().map(Exchange::line).collect();
        let vectors = embedder.stored(&lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        if vectors.len() != batch.len() {
            let why = format!("{} texts gave {} vectors", batch.len(), vectors.len());
            return Err(MemoryError::Embed(EmbedError::Run { why }));
        }
        for (exchange, vector) in batch.iter().zip(vectors) {
            points.push(Point::new(exchange.clone(), vector)?);
        }
    }
    Ok(points)
}

fn open_error(shard: &Path) -> impl Fn(MemoryError) -> OpenError {
    let shard = shard.to_owned();
    move |error| match error {
        MemoryError::Embed(error) => OpenError::Embed(error),
        other => OpenError::Engine { shard: shard.clone(), source: EngineError(other.to_string()) },
    }
}

fn mb(bytes: u64) -> u64 {
    bytes / 1_000_000
}
