//! Asking a snapshot everything that it says it answers, in a folder that goes afterwards.

use std::path::Path;

use serde::Serialize;

use super::engine::Engine;
use super::facts::MOST_FACTS;
use super::restore::{RestoreError, Workshop, disk};
use crate::remember::embed::{EmbedText, Identity};

/// What a snapshot is.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    pub facts: usize,
    pub questions: usize,
    pub identity: Identity,
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Questions that find another fact than their own.
    pub wrong: Vec<Wrong>,
}

/// A stored question that does not find its own fact.
#[derive(Clone, Debug, Serialize)]
pub struct Wrong {
    pub question: String,
    pub belongs_to: String,
    pub finds: String,
}

/// Restores `snapshot` into a temporary folder and asks every stored question. Blocks for seconds.
///
/// # Errors
/// [`RestoreError`] when the robot would not take it.
pub fn verify(snapshot: &Path, embedder: &dyn EmbedText) -> Result<Verified, RestoreError> {
    let work = tempfile::tempdir().map_err(disk(&std::env::temp_dir()))?;
    let bytes = std::fs::metadata(snapshot).map_err(disk(snapshot))?.len();
    let workshop = Workshop { embedder, search_threads: 1, min_free_bytes: 0 };
    let prepared = workshop.prepare(snapshot, &work.path().join("shard"))?;
    let engine = Engine::load(&prepared.folder, 1)?;
    let (mut wrong, mut questions) = (Vec::new(), 0);
    for (fact, _) in engine.all(MOST_FACTS)? {
        for question in fact.questions {
            questions += 1;
            let found = engine.nearest(embedder.question(&question)?, 1, None)?;
            let finds = found.first().map_or_else(String::new, |found| found.text.clone());
            if finds != fact.text {
                wrong.push(Wrong { question, belongs_to: fact.text.clone(), finds });
            }
        }
    }
    let identity = prepared.label.identity;
    Ok(Verified { facts: prepared.label.facts, questions, identity, bytes, sha256: prepared.sha256, wrong })
}
