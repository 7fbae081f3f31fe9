//! Making a snapshot out of a file of facts: every question is embedded, the shard is built in a folder of its own, and
//! what was written is read back before it counts.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::check::{self, Refused};
use super::engine::{Engine, Whole};
use super::facts::{Fact, Facts, hexadecimal};
use super::snapshot::{self, Label};
use crate::remember::embed::{EmbedError, EmbedText, Identity};
use crate::remember::engine::EngineError;

/// The largest snapshot that is made, in bytes: 62 facts of six questions come to about 0.7 MB.
pub const MOST_BUILT: u64 = 1_000_000;
/// Questions embedded at once.
const BATCH: usize = 32;

/// What was built.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Built {
    pub facts: usize,
    pub questions: usize,
    pub bytes: u64,
    /// Of the snapshot, in hexadecimal.
    pub sha256: String,
    pub identity: Identity,
}

/// Why no snapshot was made; a file that was there stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the questions could not be embedded: {0}")]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{} cannot be written: {source}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error(
        "the snapshot would have {bytes} bytes and may have {MOST_BUILT}: take out facts, or questions that say the same"
    )]
    TooLarge { bytes: u64 },
    #[error("what was written does not read back: {0}")]
    ReadBack(Refused),
}

/// Embeds `facts`, builds their shard, and writes the snapshot to `out`, whole or not at all. Blocks for seconds;
/// `progress` is told how many questions are done.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    facts: &Facts,
    embedder: &dyn EmbedText,
    out: &Path,
    progress: &mut dyn FnMut(usize),
) -> Result<Built, BuildError> {
    let not_writable = |source| BuildError::NotWritable { path: out.to_owned(), source };
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = embed(facts, embedder, progress)?;
    let label = Label {
        identity: embedder.identity().clone(),
        facts: facts.facts.len(),
        facts_sha256: Some(facts.sha256.clone()),
    };
    let work = tempfile::Builder::new().prefix(".building-").tempdir_in(parent).map_err(not_writable)?;
    let shard = work.path().join("shard");
    let engine = Engine::create(&shard, 1)?;
    engine.insert(&whole)?;
    engine.flush()?;
    // The files are only complete when the engine has let go of them.
    drop(engine);
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(not_writable)?;
    let mut writer = BufWriter::new(file.as_file_mut());
    snapshot::write(&shard, &label, facts, &mut writer).map_err(not_writable)?;
    let bytes = writer.into_inner().map_err(|error| not_writable(error.into_error())).and_then(|file| {
        file.sync_all().map_err(not_writable)?;
        file.metadata().map(|about| about.len()).map_err(not_writable)
    })?;
    if bytes > MOST_BUILT {
        return Err(BuildError::TooLarge { bytes });
    }
    check::check(file.path()).map_err(BuildError::ReadBack)?;
    let sha256 = sha256_of(file.path()).map_err(not_writable)?;
    file.persist(out).map_err(|error| not_writable(error.error))?;
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(not_writable)?;
    Ok(Built { facts: label.facts, questions: facts.questions(), bytes, sha256, identity: label.identity })
}

/// Every fact with the vectors of its questions.
fn embed(facts: &Facts, embedder: &dyn EmbedText, progress: &mut dyn FnMut(usize)) -> Result<Vec<Whole>, EmbedError> {
    let questions: Vec<&str> = facts.facts.iter().flat_map(|fact| fact.questions.iter().map(String::as_str)).collect();
    let mut vectors = Vec::with_capacity(questions.len());
    for batch in questions.chunks(BATCH) {
        let made = embedder.stored(batch)?;
        if made.len() != batch.len() {
            return Err(EmbedError::Run { why: format!("{} texts gave {} vectors", batch.len(), made.len()) });
        }
        vectors.extend(made);
        progress(vectors.len());
    }
    let mut vectors = vectors.into_iter();
    let whole = |fact: &Fact| (fact.clone(), vectors.by_ref().take(fact.questions.len()).collect());
    Ok(facts.facts.iter().map(whole).collect())
}

/// SHA-256 of a file, in hexadecimal.
pub(super) fn sha256_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}
