//! The sparse vector of exchanges in the engine: written, added to older shards, and searched.

use std::collections::{HashMap, HashSet};

use qdrant_edge::{
    Condition, CountRequestBuilder, CreateVectorName, EdgeShard, HasVectorCondition, Modifier, PointVectorsPersisted,
    QueryBatchRequest, QueryRequest, QueryRequestBuilder, ScoredPoint, ScrollRequestBuilder, SparseVector,
    SparseVectorConfig, UpdateOperation, UpdateVectorsOp, VectorInternal, VectorNameConfig, VectorNameOperations,
    VectorOperations, VectorPersisted, VectorStructInternal, VectorStructPersisted, WithPayloadInterface, WithVector,
};

use uuid::Uuid;

use super::super::engine::{Engine, PAGE, Scope, Space, dense, filter, identity, nearest_to, read};
use super::super::payload::Stored;
use super::{Hit, Hybrid};
use crate::remember::Exchange;
use crate::remember::embed::cosine;
use crate::remember::engine::{EngineError, failed, guarded};
use crate::remember::words::{self, Asked, Bag, Weights};

/// The named sparse vector of an exchange's words.
pub const WORDS: &str = "words";

/// Gives the exchanges of an older shard their words. Interrupted, it goes on at the next opening.
pub fn count_words_of_older_exchanges(shard: &EdgeShard) -> Result<(), EngineError> {
    if !shard.config().sparse_vectors.contains_key(WORDS) {
        let config = VectorNameConfig::sparse(SparseVectorConfig { modifier: Some(Modifier::Idf), datatype: None });
        let create = CreateVectorName { vector_name: WORDS.into(), config };
        let create = VectorNameOperations::CreateVectorName(create);
        shard.update(UpdateOperation::VectorNameOperation(create)).map_err(failed)?;
    }
    let mut lacking = filter::<Exchange>(&Scope::default())?;
    lacking.must_not = Some(vec![Condition::HasVector(HasVectorCondition { has_vector: WORDS.into() })]);
    let (mut from, mut counted_words) = (None, 0);
    loop {
        let request = ScrollRequestBuilder::new()
            .limit(PAGE)
            .filter(lacking.clone())
            .with_payload(WithPayloadInterface::Bool(true));
        let request = match from {
            Some(from) => request.offset(from),
            None => request,
        };
        let (records, next) = shard.scroll(request.build()).map_err(failed)?;
        let mut points = Vec::with_capacity(records.len());
        for record in records {
            if let Some(counted) = counted(&read::<Exchange>(record.payload)?)? {
                let named = HashMap::from([(WORDS.into(), VectorPersisted::Sparse(counted))]);
                points.push(PointVectorsPersisted { id: record.id, vector: VectorStructPersisted::Named(named) });
            }
        }
        if !points.is_empty() {
            counted_words += points.len();
            let update = VectorOperations::UpdateVectors(UpdateVectorsOp { points, update_filter: None });
            shard.update(UpdateOperation::VectorOperation(update)).map_err(failed)?;
            tracing::info!(exchanges = counted_words, "an older memory's exchanges are made findable by their words");
        }
        match next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    if counted_words > 0 { shard.flush().map_err(failed) } else { Ok(()) }
}

impl Engine {
    /// The memories nearest to `vector` by cosine and those nearest to `asked` by BM25, at most `limit` of each, with
    /// what the question's terms weigh. One batch of searches.
    pub fn hybrid<S: Stored>(
        &self,
        vector: Vec<f32>,
        asked: &Asked,
        scope: &Scope,
        limit: usize,
    ) -> Result<Hybrid<S>, EngineError> {
        Space::Text.check(&vector)?;
        guarded(|| {
            let filter = filter::<S>(scope)?;
            let alike = QueryRequestBuilder::new(limit)
                .query(nearest_to(VectorInternal::Dense(vector.clone()), Space::Text.name()))
                .filter(filter.clone())
                .build();
            let mut searches = vec![alike];
            if !asked.terms().is_empty() {
                let request = QueryRequestBuilder::new(limit)
                    .query(nearest_to(by_terms(asked.terms())?, WORDS))
                    .filter(filter)
                    .with_vector(WithVector::Selector(vec![Space::Text.name().into()]));
                searches.push(request.build());
            }
            searches.extend(asked.terms().iter().map(|term| holder_of(*term)).collect::<Result<Vec<_>, _>>()?);
            let mut answers = self
                .shard
                .with(|shard| shard.query_batch(QueryBatchRequest { queries: searches }))
                .map_err(failed)?
                .into_iter();
            let alike = answers.next().unwrap_or_default();
            let worded = if asked.terms().is_empty() { Vec::new() } else { answers.next().unwrap_or_default() };
            let rarities: Vec<(u32, f32)> =
                asked.terms().iter().zip(answers).filter_map(|(term, holders)| rarity(*term, holders)).collect();
            let counted = CountRequestBuilder::new().filter(self::filter::<S>(&Scope::default())?).exact(false).build();
            let weights = Weights::new(asked, &rarities, self.shard.count(counted).map_err(failed)?);
            let mut found = Vec::with_capacity(alike.len() + worded.len());
            for point in alike {
                found.push((identity(point.id)?, point.score));
            }
            let by_likeness: HashSet<Uuid> = found.iter().map(|(id, _)| *id).collect();
            for point in worded {
                let id = identity(point.id)?;
                if !by_likeness.contains(&id) {
                    let text = dense(point.vector.as_ref(), Space::Text);
                    found.push((id, text.map_or(0.0, |text| cosine(text, &vector))));
                }
            }
            let (ids, cosines): (Vec<Uuid>, Vec<f32>) = found.into_iter().unzip();
            let known = self.known::<S>(&ids)?.into_iter().zip(cosines);
            let hits = known.filter_map(|(known, cosine)| Some(Hit { known: known?, cosine })).collect();
            Ok(Hybrid { hits, weights })
        })
    }
}

/// The sparse vector of a memory's words; `None` where it holds none that counts.
pub fn counted<S: Stored>(memory: &S) -> Result<Option<SparseVector>, EngineError> {
    let bag = memory.words().map(|text| words::bag(&text)).unwrap_or_default();
    let (terms, weights): (Vec<u32>, Vec<f32>) = bag.terms().iter().copied().unzip();
    if terms.is_empty() { Ok(None) } else { SparseVector::new(terms, weights).map(Some).map_err(failed) }
}

fn by_terms(terms: &[u32]) -> Result<VectorInternal, EngineError> {
    SparseVector::new(terms.to_vec(), vec![1.0; terms.len()]).map(VectorInternal::Sparse).map_err(failed)
}

/// A search for one memory that holds a term: its score over its own weight is the term's inverse document frequency.
fn holder_of(term: u32) -> Result<QueryRequest, EngineError> {
    let request = QueryRequestBuilder::new(1)
        .query(nearest_to(by_terms(&[term])?, WORDS))
        .with_payload(WithPayloadInterface::Bool(false))
        .with_vector(WithVector::Selector(vec![WORDS.into()]));
    Ok(request.build())
}

fn rarity(term: u32, holders: Vec<ScoredPoint>) -> Option<(u32, f32)> {
    let holder = holders.into_iter().next()?;
    let weight = bag(holder.vector.as_ref()).weight(term)?;
    (weight > 0.0).then(|| (term, holder.score / weight))
}

/// The words among a point's vectors.
pub fn bag(vectors: Option<&VectorStructInternal>) -> Bag {
    match vectors {
        Some(VectorStructInternal::Named(named)) => match named.get(WORDS) {
            Some(VectorInternal::Sparse(words)) => {
                Bag::new(words.indices.iter().copied().zip(words.values.iter().copied()).collect())
            }
            _ => Bag::default(),
        },
        _ => Bag::default(),
    }
}
