//! The store: one owner of the shard, reached through a handle that may be cloned.
//!
//! [`Memory`] validates, embeds, writes and searches; every blocking call runs on tokio's blocking threads and writers
//! take turns. When `store` returns, the batch is on the disk itself. [`folder`] owns
//! the lock and what stands beside the shard, [`search`] answers questions, [`rebuild`] carries a shard over to other
//! models. When the shard cannot be opened it is set aside and an empty one
//! takes its place, and [`Opened::notes`] says so.

mod engine;
mod forget;
mod hybrid;
mod kept;
mod payload;
mod rebuild;
mod search;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Mutex;
use uuid::Uuid;

pub use engine::{IMAGE_DIMENSION, TEXT_DIMENSION};
pub use forget::Forgotten;
pub use rebuild::reembed;
pub use search::Searching;

pub use super::engine::EngineError;
pub use super::folder::{FolderError, Lock};

use super::embed::{EmbedError, EmbedText, Identity};
use super::just_said::JustSaid;
use super::recall::Scored;
use super::{Exchange, Frame, Query, Recalled, TimeRange, beside, folder};
use crate::robot::Direction;
use crate::see::{EmbedImage, told};
use engine::{Engine, Order, Point, Scope};

/// Texts embedded and written at once, which bounds memory while a large shard is embedded again.
const BATCH: usize = 64;

/// How a memory is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder of the shards.
    pub folder: PathBuf,
    /// From this cosine on an exchange counts as found.
    pub exchange_gate: f32,
    /// From this cosine on a frame's sentence counts as found, if it also beats the blank frame's.
    pub frame_gate: f32,
    /// Two pictures as alike as this (cosine) are one scene to a sample of a day.
    pub near_duplicate: f32,
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
        "the memory in {} was made with the {what} model {stored}, and {current} is in use; run `reachy-remembers memory \
         reembed` to carry it over, or name the first one in [models]",
        shard.display()
    )]
    OtherEmbedder { what: &'static str, shard: PathBuf, stored: String, current: String },
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
    pub frames: usize,
    /// Of the frames, how many of the newest hundred have no picture vector.
    pub without_picture_vector: usize,
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
    lock: Arc<Lock>,
    shard: PathBuf,
    embedder: Arc<dyn EmbedText>,
    settings: Settings,
    images: OnceLock<Arc<dyn EmbedImage>>,
    /// The vector of the blank frame's sentence, once it was needed.
    blank: OnceLock<Vec<f32>>,
    just_said: JustSaid,
    writing: Arc<Mutex<()>>,
    unflushed: AtomicBool,
}

impl Memory {
    /// Opens the memory in `settings.folder`, or makes an empty one. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]; what was stored is still on the disk then, in place or set aside.
    pub fn open(settings: Settings, embedder: Arc<dyn EmbedText>, now: Timestamp) -> Result<Opened, OpenError> {
        let lock = claim(&settings, embedder.identity())?;
        let shard = settings.folder.join(folder::MEMORY);
        let mut notes: Vec<String> = beside::recover(&shard)?.into_iter().collect();
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
        let stored = count(&engine).map_err(|source| OpenError::Engine { shard: shard.clone(), source })?;
        // Our own count is only a second opinion: where it cannot be read, that is said, and the shard is used.
        let expected = folder::count(&shard).unwrap_or_else(|error| {
            notes.push(format!("How much the memory should hold is not known: {error}"));
            None
        });
        let expected = expected.unwrap_or_default();
        notes.extend(missing("exchanges", expected.exchanges, stored.exchanges, &shard));
        notes.extend(missing("pictures", expected.frames, stored.frames, &shard));
        let inner = Inner {
            engine,
            lock: Arc::new(lock),
            shard,
            embedder,
            settings,
            images: OnceLock::new(),
            blank: OnceLock::new(),
            just_said: JustSaid::default(),
            writing: Arc::new(Mutex::new(())),
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
        let points = self.blocking(move |inner| points(inner.embedder.as_ref(), exchanges)).await?;
        let _turn = self.inner.writing.lock().await;
        self.blocking(move |inner| inner.write(points)).await
    }

    /// Lets frames be stored and searched with picture vectors too, from now on.
    ///
    /// # Errors
    /// [`OpenError::OtherEmbedder`] when the shard's pictures were embedded with another model; the memory then goes
    /// on without picture vectors. [`OpenError::Folder`] when the note beside the shard cannot be written.
    pub fn embed_pictures_with(&self, images: Arc<dyn EmbedImage>) -> Result<(), OpenError> {
        let shard = &self.inner.shard;
        match folder::image_identity(shard)? {
            Some(stored) if stored != *images.identity() => {
                return Err(OpenError::OtherEmbedder {
                    what: "picture",
                    shard: shard.clone(),
                    stored: describe(&stored),
                    current: describe(images.identity()),
                });
            }
            Some(_) => {}
            None => folder::write_image_identity(shard, images.identity())?,
        }
        // A second embedder is the same one, as its identity says.
        let _ = self.inner.images.set(images);
        Ok(())
    }

    /// Stores one frame; when it returns it is on the disk itself. Storing it again replaces it.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn store_frame(&self, frame: Frame) -> Result<(), MemoryError> {
        // Embedding takes long and needs no turn.
        let point = self.blocking(move |inner| inner.frame_point(&frame, None)).await?;
        let _turn = self.inner.writing.lock().await;
        self.blocking(move |inner| inner.write(vec![point])).await
    }

    /// Adds what was said about a frame, and embeds its words again. A frame that is not there any more is left be.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn caption(&self, frame: Uuid, caption: String) -> Result<(), MemoryError> {
        let _turn = self.inner.writing.lock().await;
        self.blocking(move |inner| {
            let Some((frame, image)) = inner.engine.get::<Frame>(frame)? else { return Ok(()) };
            let point = inner.frame_point(&Frame { caption: Some(caption), ..frame }, image)?;
            inner.write(vec![point])
        })
        .await
    }

    /// Says who is in a frame that was kept before they were recognised, and embeds its words again. A frame that is not
    /// there any more is left be.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn name_frame(&self, frame: Uuid, names: Vec<String>) -> Result<(), MemoryError> {
        let _turn = self.inner.writing.lock().await;
        self.blocking(move |inner| {
            let Some((frame, image)) = inner.engine.get::<Frame>(frame)? else { return Ok(()) };
            let sentence = told::sentence(&told::detected(&frame.detections), frame.looked, &names);
            let point = inner.frame_point(&Frame { names, sentence, ..frame }, image)?;
            inner.write(vec![point])
        })
        .await
    }

    /// The pictures of these frames, in their order; one that is not there any more is left out.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn pictures(&self, frames: Vec<Uuid>) -> Result<Vec<Frame>, MemoryError> {
        self.blocking(move |inner| {
            let whole = frames.into_iter().map(|id| inner.engine.get::<Frame>(id));
            Ok(whole.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|(frame, _)| frame).collect())
        })
        .await
    }

    /// The frames seen in `when`, oldest first, without their pictures; at most [`Memory::MOST_FRAMES`], the newest.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn frames(&self, when: Option<TimeRange>) -> Result<Vec<Frame>, MemoryError> {
        self.blocking(move |inner| {
            let mut frames =
                inner.engine.in_time::<Frame>(&Scope::during(when), Order::NewestFirst, Self::MOST_FRAMES)?;
            frames.reverse();
            Ok(frames)
        })
        .await
    }

    /// The newest frame taken with the head turned that way, without its picture.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn last_look(&self, looked: Direction) -> Result<Option<Frame>, MemoryError> {
        self.blocking(move |inner| {
            let scope = Scope { looked: Some(looked), ..Scope::default() };
            Ok(inner.engine.in_time::<Frame>(&scope, Order::NewestFirst, 1)?.pop())
        })
        .await
    }

    /// What was said in `when`, oldest first; at most [`Memory::MOST_FRAMES`], the newest.
    ///
    /// # Errors
    /// [`MemoryError::Engine`].
    pub async fn exchanges(&self, when: Option<TimeRange>) -> Result<Vec<Exchange>, MemoryError> {
        self.blocking(move |inner| {
            let mut said =
                inner.engine.in_time::<Exchange>(&Scope::during(when), Order::NewestFirst, Self::MOST_FRAMES)?;
            said.reverse();
            Ok(said)
        })
        .await
    }

    /// The most memories that one list holds; a busy day has some hundreds.
    pub const MOST_FRAMES: usize = 2000;

    /// Answers a question from the memory and from what was just said.
    ///
    /// # Errors
    /// [`MemoryError`] when it could not look; that nothing was found is [`Recalled::Nothing`].
    pub async fn recall(&self, query: Query) -> Result<Recalled, MemoryError> {
        self.blocking(move |inner| inner.recall(&query)).await
    }

    /// What a question's answer about what was said is chosen from, each with its scores, in no order and whatever the
    /// gate: for measuring.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub async fn candidates(&self, query: Query) -> Result<Vec<Scored>, MemoryError> {
        self.blocking(move |inner| inner.candidates(&query)).await
    }

    /// One search of the engine, on the caller's thread, for measuring; answers how many memories came back.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn search_once(&self, what: Searching, question: &str, limit: usize) -> Result<usize, MemoryError> {
        self.inner.search_once(what, question, limit)
    }

    /// The lock of the memory's folder, for what else this process keeps in it.
    #[must_use]
    pub fn lock(&self) -> Arc<Lock> {
        Arc::clone(&self.inner.lock)
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
    /// Writes a batch and flushes it.
    fn write(&self, points: Vec<Point>) -> Result<(), MemoryError> {
        self.require_space()?;
        self.unflushed.store(true, Ordering::Release);
        self.engine.upsert(points)?;
        self.flush()
    }

    /// `image`: the picture's vector, where it is known already.
    fn frame_point(&self, frame: &Frame, image: Option<Vec<f32>>) -> Result<Point, MemoryError> {
        let image = match (image, self.images.get()) {
            (None, Some(images)) => picture_vector(images.as_ref(), frame),
            (known, _) => known,
        };
        let text = one_vector(self.embedder.as_ref(), &frame.words())?;
        Ok(Point::new(frame, text, image)?)
    }

    fn flush(&self) -> Result<(), MemoryError> {
        if !self.unflushed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.engine.flush()?;
        folder::write_count(&self.shard, count(&self.engine)?)?;
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

    fn stats(&self) -> Result<Stats, MemoryError> {
        let end = |order| -> Result<Option<i64>, MemoryError> {
            let first = self.engine.in_time::<Exchange>(&Scope::default(), order, 1)?;
            Ok(first.first().map(|exchange| exchange.said_at.as_second()))
        };
        let newest: Vec<Uuid> =
            self.engine.in_time::<Frame>(&Scope::default(), Order::NewestFirst, 100)?.iter().map(Frame::id).collect();
        let count = count(&self.engine)?;
        Ok(Stats {
            folder: self.settings.folder.clone(),
            exchanges: count.exchanges,
            frames: count.frames,
            without_picture_vector: newest.len() - self.engine.images(&newest)?.len(),
            oldest: end(Order::OldestFirst)?,
            newest: end(Order::NewestFirst)?,
            disk_bytes: folder::allocated_bytes(&self.shard),
            free_bytes: folder::free_bytes(&self.settings.folder).ok(),
            text_model: self.embedder.identity().model.clone(),
            exchange_gate: self.settings.exchange_gate,
        })
    }
}

/// Holds a memory's folder without its shard: for a process that cannot open the shard and still writes the journal.
///
/// # Errors
/// [`FolderError`].
pub fn hold_folder(folder: &Path) -> Result<Lock, FolderError> {
    folder::take(folder)
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
    let beside = beside::new_place(shard)?;
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

fn check_identity(shard: &Path, current: &Identity) -> Result<(), OpenError> {
    match folder::identity(shard)? {
        Some(stored) if stored == *current => Ok(()),
        stored => Err(OpenError::OtherEmbedder {
            what: "text",
            shard: shard.to_owned(),
            stored: stored.map_or_else(|| "that nobody wrote down".into(), |identity| describe(&identity)),
            current: describe(current),
        }),
    }
}

pub(super) fn describe(identity: &Identity) -> String {
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
            points.push(Point::new(exchange, vector, None)?);
        }
    }
    Ok(points)
}

/// A sentence where fewer are there than were counted at the last flush.
fn missing(what: &str, expected: usize, stored: usize, shard: &Path) -> Option<String> {
    (stored < expected).then(|| {
        format!(
            "The memory should hold {expected} {what} and holds {stored}: {} are missing. A part of its log was damaged; \
             a copy of {} made now would help to look into it.",
            expected - stored,
            shard.display()
        )
    })
}

/// What the engine says it holds.
fn count(engine: &Engine) -> Result<folder::Count, EngineError> {
    Ok(folder::Count {
        exchanges: engine.count::<Exchange>(&Scope::default())?,
        frames: engine.count::<Frame>(&Scope::default())?,
    })
}

/// The vector of a frame's picture; a picture that cannot be embedded is stored without one, because its sentence
/// still finds it.
fn picture_vector(images: &dyn EmbedImage, frame: &Frame) -> Option<Vec<f32>> {
    let embed = || -> Result<Vec<f32>, String> {
        let picture = crate::see::picture::decode(&frame.jpeg).map_err(|error| error.to_string())?;
        images.picture(&picture).map_err(|error| error.to_string())
    };
    embed().map_err(|why| tracing::warn!(why, "a picture is stored without its vector")).ok()
}

/// The vector of one stored text.
fn one_vector(embedder: &dyn EmbedText, words: &str) -> Result<Vec<f32>, MemoryError> {
    let mut vectors = embedder.stored(&[words])?;
    vectors.pop().ok_or_else(|| EmbedError::Run { why: "one text gave no vector".into() }.into())
}

pub(super) fn mb(bytes: u64) -> u64 {
    bytes / 1_000_000
}
