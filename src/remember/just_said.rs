//! What is still in the window, made comparable with a question: the vectors of its exchanges, embedded once each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use super::Exchange;
use super::embed::{EmbedError, EmbedText, cosine};

/// Vectors of the window's exchanges by [`Exchange::id`]. It holds no more than the window does.
#[derive(Default)]
pub struct JustSaid {
    vectors: Mutex<HashMap<Uuid, Vec<f32>>>,
}

impl JustSaid {
    /// Each exchange's cosine to `question` (both are unit vectors).
    pub fn scored(
        &self,
        exchanges: &[Exchange],
        question: &[f32],
        embedder: &dyn EmbedText,
    ) -> Result<Vec<(Exchange, f32)>, EmbedError> {
        let mut known = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: Vec<Uuid> = exchanges.iter().map(Exchange::id).collect();
        known.retain(|id, _| ids.contains(id));
        let new: Vec<(Uuid, String)> = exchanges
            .iter()
            .zip(&ids)
            .filter(|(_, id)| !known.contains_key(id))
            .map(|(exchange, id)| (*id, exchange.line()))
            .collect();
        if !new.is_empty() {
            let lines: Vec<&str> = new.iter().map(|(_, line)| line.as_str()).collect();
            known.extend(new.iter().map(|(id, _)| *id).zip(embedder.stored(&lines)?));
        }
        let scored = exchanges.iter().zip(&ids).filter_map(|(exchange, id)| {
            let vector = known.get(id)?;
            Some((exchange.clone(), cosine(vector, question)))
        });
        Ok(scored.collect())
    }
}
