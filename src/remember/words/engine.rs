//! Words as the engine counts them: BM25's terms and weights, English (stemmed, without the commonest words).

use std::sync::OnceLock;

use qdrant_edge::bm25_embed::{EdgeBm25, EdgeBm25Config};
use qdrant_edge::external::ordered_float::NotNan;

use super::Bag;

/// Terms of an exchange that is neither long nor short. Measured over tests/questions/exchanges.toml: 6.1 on average;
/// what is said to a robot outside a file of questions is longer.
const USUAL_TERMS: f64 = 12.0;

/// The counter; `None` if the engine does not take these settings, which a test rules out: words then find nothing, and
/// likeness finds what it finds.
fn counter() -> Option<&'static EdgeBm25> {
    static COUNTER: OnceLock<Option<EdgeBm25>> = OnceLock::new();
    COUNTER
        .get_or_init(|| {
            let avg_len = NotNan::new(USUAL_TERMS).ok()?;
            EdgeBm25::new(EdgeBm25Config { avg_len, ..EdgeBm25Config::default() })
                .map_err(|error| tracing::error!(%error, "words are not counted"))
                .ok()
        })
        .as_ref()
}

/// The terms of a question, each once, sorted.
pub fn terms(text: &str) -> Vec<u32> {
    counter().map(|counter| counter.embed_query(text).indices).unwrap_or_default()
}

/// The terms of a stored text with their weights.
pub fn bag(text: &str) -> Bag {
    let Some(counter) = counter() else { return Bag::default() };
    let vector = counter.embed_document(text);
    Bag::new(vector.indices.into_iter().zip(vector.values).collect())
}
