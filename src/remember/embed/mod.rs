//! Words to vectors.
//!
//! [`EmbedText`] is what the memory and the offline brain ask; [`bert`] answers with real weights, [`stand_in`] without
//! any, for tests of other parts. Calls block for some milliseconds and are made from a blocking thread. An embedder
//! holds no state besides its weights: a failed call leaves it usable.

pub mod bert;
pub mod stand_in;
mod weights;

pub use bert::{BertEmbedder, BertFiles, Pooling};

/// Turns words into unit vectors of one length.
///
/// A question and a stored text may be embedded differently (some models prefix one of them), so there are two calls.
pub trait EmbedText: Send + Sync {
    /// Which model, weights and preprocessing the vectors come from; vectors of different identities never meet.
    fn identity(&self) -> &Identity;

    /// The vector of a question.
    ///
    /// # Errors
    /// [`EmbedError`] when the text is empty or the model fails.
    fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError>;

    /// The vectors of texts that are stored, in their order.
    ///
    /// # Errors
    /// [`EmbedError`] when a text is empty or the model fails.
    fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Where vectors come from; written beside every shard.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The model's name in the manifest.
    pub model: String,
    /// SHA-256 of the weight file, in hexadecimal.
    pub weights: String,
    /// Counts up when the preprocessing, pooling or prefix changes.
    pub preprocessing: u32,
    /// Numbers in a vector.
    pub dimension: usize,
}

/// Why words could not be turned into a vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The files do not make a working model: fetch or verify them.
    #[error("the embedding model could not be loaded from {path}: {why}")]
    Load { path: String, why: String },
    /// The model failed on this text.
    #[error("the embedding model failed: {why}")]
    Run { why: String },
    /// The text itself cannot have a vector; the caller should not have asked.
    #[error("this has no vector: {why}")]
    Refused { why: String },
}

/// How alike two unit vectors of one length are: their cosine, −1…1.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Sets the number of threads that the embedders' matrix products may use, once, before the first of them runs.
///
/// They run on rayon's global pool, which nothing else in this process uses; after its first use this does nothing.
pub fn limit_threads(threads: u32) {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads as usize).thread_name(|index| format!("embed-{index}"));
    if let Err(error) = pool.build_global() {
        tracing::debug!(%error, "the embedders' threads were set before");
    }
}
