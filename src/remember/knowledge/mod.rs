//! Knowledge: facts that the robot was taught, in a shard of their own that is replaced as a whole and never written by
//! the robot.
//!
//! [`Knowledge`] is the handle: it may be cloned, and searches go on while a new snapshot is made ready; only the swap
//! itself, some tens of milliseconds, lets them wait. At every start the newest good snapshot is restored ([`restore`]):
//! the one that was pulled from a server ([`pull`]), the file that the config names, or the one that was built here out
//! of the facts ([`build`]). One that is damaged, cut short or of another text model leaves the last good one in place,
//! and is named in the notes and in the robot's health. Where there is none at all, the facts are embedded in the
//! background. When all of that fails the robot has no facts, says so when it is asked, and everything else works.
//!
//! [`facts`] reads the file of facts, [`snapshot`] writes a snapshot, [`check`] reads one before it is unpacked,
//! [`rivals`] are questions that no fact answers, and [`questions`] where the gate comes from.

pub mod build;
pub mod check;
mod engine;
pub mod facts;
mod keep;
mod payload;
pub mod pull;
pub mod questions;
pub mod restore;
mod rivals;
pub mod snapshot;
pub mod verify;
mod worded;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::engine::EngineError;
use crate::config::Config;
use crate::health::Health;
use crate::remember::embed::{EmbedError, EmbedText};
use crate::remember::folder::{self, FolderError};
use crate::remember::words::Asked;
use crate::remember::{KnownFact, Recalled};
use engine::Engine;
use facts::{Facts, MOST_FACTS};
use pull::PullSettings;
use restore::{Prepared, RestoreError, Workshop, remove};
use rivals::Rivals;
use snapshot::Label;
use worded::{Near, Worded};

/// The shard in use, inside the memory's folder.
const SHARD: &str = "knowledge";
/// The one that is made ready to take its place.
const NEW: &str = "knowledge.new";
/// The one before it, while the two change places.
const BEFORE: &str = "knowledge.before";
/// The snapshot that was built here out of the facts.
const BUILT: &str = "knowledge.built";
/// The part's name in the robot's health.
const PART: &str = "knowledge";

/// How knowledge is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory's folder, whose lock this process must hold.
    pub folder: PathBuf,
    /// File of facts; empty: the ones that come with the program.
    pub facts: PathBuf,
    /// Snapshot that goes before the facts; empty: none.
    pub snapshot: PathBuf,
    /// From this cosine on a fact's question counts as found.
    pub gate: f32,
    /// Facts told at most.
    pub limit: usize,
    /// Nothing is unpacked or opened with less than this free on the disk, in bytes.
    pub min_free_bytes: u64,
    /// Threads that one search may use.
    pub search_threads: usize,
    /// The server that is asked for snapshots, where there is one.
    pub pull: Option<PullSettings>,
}

/// Facts that are compared by both, from each search. Not measured.
const CANDIDATES: usize = 20;
/// Facts told at most: a question has one answer, and a second one is worth a look at the most. Not measured.
const LIMIT: usize = 2;
/// How far under the best (cosine) a second fact may be. Not measured.
const NEARLY_AS_NEAR: f32 = 0.05;

impl Settings {
    /// What the config says; `gate` is the text model's own, for where the config names none.
    ///
    /// # Errors
    /// [`KnowledgeError::Key`] when the server's key cannot be read.
    pub fn from_config(config: &Config, gate: f32) -> Result<Self, KnowledgeError> {
        let knowledge = &config.knowledge;
        Ok(Self {
            folder: config.remember.folder.clone(),
            facts: knowledge.facts.clone(),
            snapshot: knowledge.snapshot.clone(),
            gate: knowledge.fact_gate.unwrap_or(gate),
            limit: LIMIT,
            min_free_bytes: config.remember.min_free_mb * 1_000_000,
            search_threads: config.limits.search_threads as usize,
            pull: PullSettings::from_config(knowledge)?,
        })
    }
}

/// Why there is no answer. "Nothing found" is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// Ask again later; the sentence says why.
    #[error("what the robot was taught is not there: {why}")]
    NotThere { why: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("the server's key in {} cannot be read: {why}", path.display())]
    Key { path: PathBuf, why: String },
    /// Give up: the process is ending.
    #[error("the knowledge is closed")]
    Closed,
}

/// What a search for facts came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Those that passed the gate, best first.
    pub facts: Vec<KnownFact>,
    /// How many were searched.
    pub searched: usize,
    /// Best score under the gate, where none passed.
    pub best: Option<f32>,
}

impl Answer {
    /// As an answer of its own.
    #[must_use]
    pub fn recalled(self) -> Recalled {
        if self.facts.is_empty() {
            return Recalled::Nothing { searched: self.searched, best: self.best };
        }
        Recalled::Facts { facts: self.facts, besides: None }
    }
}

/// A handle on the facts. Clones share one shard.
#[derive(Clone)]
pub struct Knowledge {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    embedder: Arc<dyn EmbedText>,
    rivals: Rivals,
    shard: RwLock<Shard>,
    /// One change at a time; searches do not wait for it.
    changing: Mutex<()>,
    health: Arc<Health>,
}

/// The shard in use, or why there is none.
enum Shard {
    Open(Box<Open>),
    None { why: String },
}

struct Open {
    engine: Engine,
    label: Label,
    worded: Worded,
}

impl Open {
    fn new(engine: Engine, label: Label) -> Result<Self, EngineError> {
        let facts = engine.facts(MOST_FACTS)?;
        let worded = Worded::new(facts.iter().map(|(id, fact)| (*id, fact)));
        Ok(Self { engine, label, worded })
    }

    /// The facts nearest to a question by likeness and those nearest by their words, in the order of both together.
    fn nearest(&self, question: &str, vector: Vec<f32>) -> Result<Vec<Near>, EngineError> {
        let asked = Asked::of(question);
        let weights = self.worded.weights(&asked);
        let mut found = self.engine.nearest(vector.clone(), CANDIDATES, None)?;
        let mut worded = self.worded.best(&asked, &weights, CANDIDATES);
        worded.retain(|id| !found.iter().any(|fact| fact.id == *id));
        if !worded.is_empty() {
            found.extend(self.engine.nearest(vector, worded.len(), Some(&worded))?);
        }
        let near = found.into_iter().map(|fact| {
            let words = self.worded.compare(fact.id, &asked, &weights);
            Near { fact, words }
        });
        Ok(worded::in_order(near.collect()))
    }
}

/// Started knowledge, and what its owner must be told about it.
pub struct Started {
    pub knowledge: Knowledge,
    /// Sentences about snapshots that were not taken; empty when all is well.
    pub notes: Vec<String>,
}

impl Knowledge {
    /// Restores the newest good snapshot, and keeps it up to date in the background from then on: facts are embedded
    /// where there was no snapshot, files are looked at for changes, the server is asked. Never fails; where there are
    /// no facts yet, a question is answered with [`KnowledgeError::NotThere`].
    ///
    /// The caller holds the lock of the memory's folder.
    pub async fn start(settings: Settings, embedder: Arc<dyn EmbedText>, health: Arc<Health>) -> Started {
        let why = "the facts are being read".to_owned();
        let shard = RwLock::new(Shard::None { why });
        let inner =
            Arc::new(Inner { settings, embedder, rivals: Rivals::default(), shard, changing: Mutex::new(()), health });
        let knowledge = Self { inner };
        let restoring = knowledge.clone();
        let restored = tokio::task::spawn_blocking(move || restoring.inner.restore()).await;
        let (notes, kept) = restored
            .unwrap_or_else(|_| (vec!["The facts could not be read: it broke off.".into()], keep::Kept::default()));
        tokio::spawn(keep::keep(Arc::downgrade(&knowledge.inner), kept));
        Started { knowledge, notes }
    }

    /// The facts that answer a question.
    ///
    /// # Errors
    /// [`KnowledgeError`] when it could not look.
    pub async fn recall(&self, question: &str) -> Result<Answer, KnowledgeError> {
        let (inner, question) = (Arc::clone(&self.inner), question.to_owned());
        let looking = move || {
            let vector = inner.embedder.question(&question)?;
            inner.recall(&question, vector)
        };
        tokio::task::spawn_blocking(looking).await.map_err(|_| KnowledgeError::Closed)?
    }

    /// From this cosine on a fact's question counts as found.
    #[must_use]
    pub fn gate(&self) -> f32 {
        self.inner.settings.gate
    }

    /// How many facts there are, and the text model that they were embedded with; `None` while there are none.
    #[must_use]
    pub fn label(&self) -> Option<Label> {
        match &*self.inner.shard.read().unwrap_or_else(PoisonError::into_inner) {
            Shard::Open(open) => Some(open.label.clone()),
            Shard::None { .. } => None,
        }
    }
}

impl Inner {
    fn recall(&self, question: &str, vector: Vec<f32>) -> Result<Answer, KnowledgeError> {
        let rival = self.rivals.nearest(&vector, self.embedder.as_ref())?;
        let shard = self.shard.read().unwrap_or_else(PoisonError::into_inner);
        let open = match &*shard {
            Shard::Open(open) => open,
            Shard::None { why } => return Err(KnowledgeError::NotThere { why: why.clone() }),
        };
        let mut answer = judged(open.nearest(question, vector)?, self.settings.gate, rival, open.label.facts);
        answer.facts.truncate(self.settings.limit.max(1));
        Ok(answer)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.settings.folder.join(name)
    }

    fn workshop(&self) -> Workshop<'_> {
        Workshop {
            embedder: self.embedder.as_ref(),
            search_threads: self.settings.search_threads,
            min_free_bytes: self.settings.min_free_bytes,
        }
    }

    fn facts(&self) -> Result<Facts, facts::FactsError> {
        Facts::load(&self.settings.facts)
    }

    /// Takes a snapshot into use. Blocks.
    fn install(&self, snapshot: &Path) -> Result<Label, RestoreError> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = self.workshop().prepare(snapshot, &self.path(NEW))?;
        self.swap(prepared)
    }

    /// Puts a shard that was made ready in the place of the one in use. Searches wait meanwhile.
    fn swap(&self, prepared: Prepared) -> Result<Label, RestoreError> {
        let (live, before) = (self.path(SHARD), self.path(BEFORE));
        remove(&before)?;
        let mut shard = self.shard.write().unwrap_or_else(PoisonError::into_inner);
        // The engine lets go of the old folder before anything is called by its name.
        *shard = Shard::None { why: "new facts are being taken over".into() };
        let there = live.exists();
        if there {
            folder::rename(&live, &before)?;
        }
        let opened = folder::rename(&prepared.folder, &live)
            .map_err(RestoreError::from)
            .and_then(|()| Ok(Engine::load(&live, self.settings.search_threads)?))
            .and_then(|engine| Ok(Open::new(engine, prepared.label.clone())?));
        match opened {
            Ok(open) => {
                *shard = Shard::Open(Box::new(open));
                remove(&before)?;
                Ok(prepared.label)
            }
            Err(error) => {
                *shard = Shard::None { why: error.to_string() };
                remove(&live)?;
                if there {
                    folder::rename(&before, &live)?;
                    self.open_live(&mut shard)?;
                }
                Err(error)
            }
        }
    }

    /// Opens the shard that an earlier start left, if it is of the text model in use and holds what it should.
    fn open_live(&self, shard: &mut Shard) -> Result<Option<Label>, RestoreError> {
        let live = self.path(SHARD);
        let Some(label) = restore::label(&live) else { return Ok(None) };
        let workshop = self.workshop();
        workshop.same_embedder(&label.identity)?;
        workshop.room(&self.settings.folder, 0)?;
        let engine = Engine::load(&live, self.settings.search_threads)?;
        let found = engine.count()?;
        if found != label.facts {
            return Err(RestoreError::Count { expected: label.facts, found });
        }
        *shard = Shard::Open(Box::new(Open::new(engine, label.clone())?));
        Ok(Some(label))
    }

    fn set_none(&self, why: String) {
        let mut shard = self.shard.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*shard, Shard::None { .. }) {
            *shard = Shard::None { why };
        }
    }
}

/// Which of the facts count: those from `gate` on that also beat `rival`, in the order of likeness and words. A second
/// one is told only where it is nearly as near as the nearest. Whether there is an answer, likeness alone decides.
fn judged(near: Vec<Near>, gate: f32, rival: f32, searched: usize) -> Answer {
    let best = near.iter().map(|near| near.fact.score).reduce(f32::max);
    let counts = |near: &Near| near.fact.score >= gate && near.fact.score > rival;
    let told = near.into_iter().filter(counts).enumerate();
    let nearly = |near: &Near| best.is_some_and(|best| best - near.fact.score <= NEARLY_AS_NEAR);
    let facts: Vec<KnownFact> =
        told.filter(|(place, near)| *place == 0 || nearly(near)).map(|(_, near)| near.fact).collect();
    let best = best.filter(|_| facts.is_empty());
    Answer { facts, searched, best }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::remember::words::Match;

    fn fact(score: f32) -> KnownFact {
        KnownFact { id: Uuid::nil(), text: "My memory is on my own disk.".into(), score }
    }

    fn near(score: f32) -> Near {
        Near { fact: fact(score), words: Match::default() }
    }

    #[test]
    fn a_fact_counts_from_its_gate_on_and_over_every_rival() {
        assert_eq!(judged(vec![near(0.7)], 0.5, 0.6, 9), Answer { facts: vec![fact(0.7)], searched: 9, best: None });
        assert_eq!(judged(vec![near(0.7)], 0.8, 0.1, 9).facts, []);
        let beaten = judged(vec![near(0.7)], 0.5, 0.9, 9);
        assert_eq!((beaten.facts, beaten.best), (vec![], Some(0.7)), "“Who am I?” is not “Who are you?”");
    }

    #[test]
    fn a_second_fact_is_told_only_when_it_is_nearly_as_near() {
        assert_eq!(judged(vec![near(0.9), near(0.88)], 0.5, 0.1, 9).facts.len(), 2);
        assert_eq!(judged(vec![near(0.9), near(0.7)], 0.5, 0.1, 9).facts.len(), 1);
    }
}
