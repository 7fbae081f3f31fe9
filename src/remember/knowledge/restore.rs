//! From a snapshot to a shard that may be used: copied, checked, unpacked beside, loaded, counted, and its vectors
//! compared with what the text model in use gives.
//!
//! Nothing here touches the shard that is in use.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::build::sha256_of;
use super::check::{self, MOST_BYTES, Refused};
use super::engine::{Engine, Whole};
use super::facts::{Fact, MOST_FACTS};
use super::snapshot::{LABEL, Label};
use crate::remember::embed::{EmbedError, EmbedText, Identity, cosine};
use crate::remember::engine::EngineError;
use crate::remember::folder::{self, FolderError};

/// Questions that are embedded again to see whether a snapshot without a label is of the text model in use.
const PROBES: usize = 3;
/// From this cosine on two vectors of one question are the same model's. The same weights gave 0.9999 and more on
/// another machine; two models that agree so far on three questions have not been seen.
const SAME_MODEL: f32 = 0.99;
/// A snapshot needs so many times its size on the disk while it is restored: the copy, what it brings, and the
/// engine's new log.
const ROOM: u64 = 3;

/// Why a snapshot was not taken; what was in use stays in use.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{} cannot be used: {source}", path.display())]
    Disk { path: PathBuf, source: io::Error },
    #[error("the disk has {free_mb} MB free and it needs {needed_mb}")]
    DiskFull { free_mb: u64, needed_mb: u64 },
    #[error("it was made with the text model {stored}, and {current} is in use")]
    OtherEmbedder { stored: String, current: String },
    #[error("its vectors are not those of the text model {current} (“{question}” gives {likeness:.2} instead of 1)")]
    OtherVectors { question: String, likeness: f32, current: String },
    #[error("it should hold {expected} facts and holds {found}")]
    Count { expected: usize, found: usize },
    #[error("its fact “{text}” has {questions} questions and {vectors} vectors")]
    Uneven { text: String, questions: usize, vectors: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// A shard that was made ready, closed.
#[derive(Debug)]
pub struct Prepared {
    pub folder: PathBuf,
    pub label: Label,
    /// Of the snapshot, in hexadecimal.
    pub sha256: String,
}

/// How shards are made ready.
pub struct Workshop<'a> {
    pub embedder: &'a dyn EmbedText,
    pub search_threads: usize,
    pub min_free_bytes: u64,
}

impl Workshop<'_> {
    /// Makes the shard of `snapshot` ready in the folder `beside`; what stood there is removed. Blocks.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing is left in `beside` then.
    pub fn prepare(&self, snapshot: &Path, beside: &Path) -> Result<Prepared, RestoreError> {
        remove(beside)?;
        let prepared = self.prepare_in(snapshot, beside);
        if prepared.is_err() {
            remove(beside)?;
        }
        prepared
    }

    fn prepare_in(&self, snapshot: &Path, beside: &Path) -> Result<Prepared, RestoreError> {
        let parent = beside.parent().unwrap_or(Path::new("."));
        // What is checked must be what is unpacked, whoever writes to the original meanwhile.
        let copy = copied(snapshot, parent, |bytes| self.room(parent, bytes))?;
        let checked = check::check(copy.path())?;
        if let Some(label) = &checked.label {
            self.same_embedder(&label.identity)?;
        }
        let sha256 = sha256_of(copy.path()).map_err(disk(copy.path()))?;
        Engine::unpack(copy.path(), beside)?;
        drop(copy);
        // The log of another machine is of no use: what counts is in the segments.
        remove(&beside.join("wal"))?;
        owners_alone(beside).map_err(disk(beside))?;
        let engine = Engine::load(beside, self.search_threads)?;
        let label = self.judge(&engine, checked.label)?;
        drop(engine);
        let note = serde_json::to_vec(&label).map_err(|error| disk(beside)(error.into()))?;
        fs::write(beside.join(LABEL), note).map_err(disk(beside))?;
        Ok(Prepared { folder: beside.to_owned(), label, sha256 })
    }

    /// Whether a loaded shard is what it says it is, and of the text model in use.
    fn judge(&self, engine: &Engine, label: Option<Label>) -> Result<Label, RestoreError> {
        let all = engine.all(MOST_FACTS)?;
        let expected = label.as_ref().map_or_else(|| all.len().max(1), |label| label.facts);
        if all.len() != expected {
            return Err(RestoreError::Count { expected, found: all.len() });
        }
        if let Some((fact, rows)) = all.iter().find(|(fact, rows)| fact.questions.len() != rows.len()) {
            let (text, questions) = (fact.text.clone(), fact.questions.len());
            return Err(RestoreError::Uneven { text, questions, vectors: rows.len() });
        }
        match label {
            Some(label) => Ok(label),
            None => {
                self.probe(&all)?;
                let identity = self.embedder.identity().clone();
                Ok(Label { identity, facts: all.len(), facts_sha256: None })
            }
        }
    }

    /// Embeds the first question of the first, a middle and the last fact again.
    fn probe(&self, all: &[Whole]) -> Result<(), RestoreError> {
        for place in (0..PROBES).map(|probe| probe * (all.len() - 1) / (PROBES - 1)) {
            let Some((Fact { questions, .. }, rows)) = all.get(place) else { continue };
            let (Some(question), Some(row)) = (questions.first(), rows.first()) else { continue };
            let made = self.embedder.stored(&[question])?;
            let likeness = made.first().map_or(0.0, |made| cosine(made, row));
            if likeness < SAME_MODEL {
                let (question, current) = (question.clone(), self.embedder.identity().model.clone());
                return Err(RestoreError::OtherVectors { question, likeness, current });
            }
        }
        Ok(())
    }

    pub fn same_embedder(&self, stored: &Identity) -> Result<(), RestoreError> {
        let current = self.embedder.identity();
        if stored == current {
            return Ok(());
        }
        Err(RestoreError::OtherEmbedder { stored: described(stored), current: described(current) })
    }

    /// A full disk would end the process inside the engine, so it is not called then.
    pub fn room(&self, folder: &Path, bytes: u64) -> Result<(), RestoreError> {
        let needed = self.min_free_bytes.saturating_add(bytes.saturating_mul(ROOM));
        match folder::free_bytes(folder) {
            Ok(free) if free < needed => {
                Err(RestoreError::DiskFull { free_mb: free / 1_000_000, needed_mb: needed.div_ceil(1_000_000) })
            }
            _ => Ok(()),
        }
    }
}

/// A copy of the snapshot in `folder`, which goes when it is dropped; never more than a snapshot may have.
fn copied(
    snapshot: &Path,
    folder: &Path,
    room: impl Fn(u64) -> Result<(), RestoreError>,
) -> Result<tempfile::NamedTempFile, RestoreError> {
    let about = fs::metadata(snapshot).map_err(Refused::Unreadable)?;
    // A pipe or a device might never end.
    if !about.is_file() {
        return Err(Refused::Unreadable(io::Error::other("it is not a regular file")).into());
    }
    if about.len() > MOST_BYTES {
        return Err(Refused::TooLarge { what: "the file", bytes: about.len(), most: MOST_BYTES }.into());
    }
    room(about.len())?;
    let mut copy = tempfile::NamedTempFile::new_in(folder).map_err(disk(folder))?;
    let mut source = File::open(snapshot).map_err(Refused::Unreadable)?.take(MOST_BYTES + 1);
    io::copy(&mut source, &mut copy).map_err(disk(copy.path()))?;
    Ok(copy)
}

/// Whatever modes a snapshot brings, its files are the owner's alone.
fn owners_alone(path: &Path) -> io::Result<()> {
    let folder = fs::symlink_metadata(path)?.is_dir();
    fs::set_permissions(path, Permissions::from_mode(if folder { 0o700 } else { 0o600 }))?;
    if folder {
        for entry in fs::read_dir(path)? {
            owners_alone(&entry?.path())?;
        }
    }
    Ok(())
}

/// Removes a folder that is not in use; one that is not there is no error.
pub fn remove(folder: &Path) -> Result<(), RestoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk(folder)(error)),
        _ => Ok(()),
    }
}

pub fn disk(path: &Path) -> impl Fn(io::Error) -> RestoreError + use<> {
    let path = path.to_owned();
    move |source| RestoreError::Disk { path: path.clone(), source }
}

/// The label beside a shard; `None` where there is none that can be read.
pub fn label(shard: &Path) -> Option<Label> {
    serde_json::from_slice(&fs::read(shard.join(LABEL)).ok()?).ok()
}

fn described(identity: &Identity) -> String {
    let weights: String = identity.weights.chars().take(8).collect();
    format!("{} (weights {weights})", identity.model)
}
