//! The `knowledge/` shard in Qdrant Edge: one multivector a fact, compared by its nearest question (MaxSim).
//!
//! Every call blocks. The robot writes only while it builds a shard out of its file of facts.

use std::path::Path;

use qdrant_edge::{
    Condition, CountRequestBuilder, Distance, EdgeConfig, EdgeConfigBuilder, EdgeShard, EdgeVectorParamsBuilder,
    Filter, HasIdCondition, Memory as Placement, MultiVectorComparator, MultiVectorConfig, NamedQuery, PointId,
    PointInsertOperations, PointOperations, PointStruct, QueryEnum, QueryRequestBuilder, Record, ScoringQuery,
    ScrollRequestBuilder, UpdateOperation, Vector, VectorInternal, VectorStructInternal, Vectors, WithPayloadInterface,
    WithVector,
};
use uuid::Uuid;

use super::super::engine::{EngineError, check_vector, failed, guarded, log_options};
use super::facts::Fact;
use super::payload;
use crate::remember::KnownFact;
use crate::remember::store::TEXT_DIMENSION;

/// The named vector.
const TEXT: &str = "text";
/// Facts read at once while walking the shard.
const PAGE: usize = 64;

/// A fact with the vectors of its questions, in their order.
pub type Whole = (Fact, Vec<Vec<f32>>);

/// An open shard. Dropping it flushes.
pub struct Engine {
    shard: EdgeShard,
}

impl Engine {
    /// Makes an empty shard in the folder `path`, which must not exist.
    pub fn create(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| Ok(Self { shard: EdgeShard::new(path, config(search_threads)).map_err(failed)? }))
    }

    /// Opens the shard in `path`. One whose vectors have another size, distance or comparison is refused.
    ///
    /// Must be called only by the holder of the folder's lock, and never while another handle on the same folder is
    /// open: the engine damages the shard of the other.
    pub fn load(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| Ok(Self { shard: EdgeShard::load(path, Some(config(search_threads))).map_err(failed)? }))
    }

    /// What a snapshot brings unpacked into the folder `into`. The file must have been checked: the engine passes over
    /// some of what [`super::check`] refuses.
    pub fn unpack(snapshot: &Path, into: &Path) -> Result<(), EngineError> {
        guarded(|| EdgeShard::unpack_snapshot(snapshot, into).map_err(failed))
    }

    /// Writes facts with the vectors of their questions.
    pub fn insert(&self, facts: &[Whole]) -> Result<(), EngineError> {
        for (fact, rows) in facts {
            rows.iter().try_for_each(|row| check_vector(TEXT, TEXT_DIMENSION, row))?;
            let rows = Vector::new_multi(rows.clone()).map_err(failed)?;
            let point =
                PointStruct::new(PointId::Uuid(fact.id()), Vectors::new_named([(TEXT, rows)]), payload::write(fact));
            // One at a time: the engine stores the points of one call in any order.
            guarded(|| {
                let insert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(vec![point.into()]));
                self.shard.update(UpdateOperation::PointOperation(insert)).map_err(failed)
            })?;
        }
        Ok(())
    }

    /// Puts everything written so far on the disk itself.
    pub fn flush(&self) -> Result<(), EngineError> {
        guarded(|| self.shard.flush().map_err(failed))
    }

    /// Number of facts, exact.
    pub fn count(&self) -> Result<usize, EngineError> {
        guarded(|| self.shard.count(CountRequestBuilder::new().exact(true).build()).map_err(failed))
    }

    /// The facts of which one question is nearest to `question` by cosine, best first; with `among`, only of those.
    pub fn nearest(
        &self,
        question: Vec<f32>,
        limit: usize,
        among: Option<&[Uuid]>,
    ) -> Result<Vec<KnownFact>, EngineError> {
        check_vector(TEXT, TEXT_DIMENSION, &question)?;
        guarded(|| {
            let query = NamedQuery { query: VectorInternal::Dense(question), using: Some(TEXT.into()) };
            let mut request = QueryRequestBuilder::new(limit)
                .query(ScoringQuery::Vector(QueryEnum::Nearest(query)))
                .with_payload(WithPayloadInterface::Bool(true));
            if let Some(among) = among {
                let ids: HasIdCondition = among.iter().copied().map(PointId::Uuid).collect();
                request = request.filter(Filter { must: Some(vec![Condition::HasId(ids)]), ..Filter::default() });
            }
            let request = request.build();
            let points = self.shard.query(request).map_err(failed)?;
            let known = points.into_iter().map(|point| {
                let payload = point.payload.ok_or_else(|| EngineError("a fact came back without its words".into()))?;
                Ok(KnownFact { id: uuid(point.id), text: payload::read(&payload)?.text, score: point.score })
            });
            known.collect()
        })
    }

    /// Every fact without its vectors, in the order of the shard; an error when there are more than `most`.
    pub fn facts(&self, most: usize) -> Result<Vec<(Uuid, Fact)>, EngineError> {
        self.walk(most, WithVector::Bool(false), |record| {
            Ok((uuid(record.id), payload::read(&record.payload.unwrap_or_default())?))
        })
    }

    /// Every fact with the vectors of its questions, in the order of the shard; an error when there are more than
    /// `most`.
    pub fn all(&self, most: usize) -> Result<Vec<Whole>, EngineError> {
        self.walk(most, WithVector::Bool(true), |record| {
            Ok((payload::read(&record.payload.unwrap_or_default())?, rows(record.vector)?))
        })
    }

    fn walk<T>(
        &self,
        most: usize,
        vectors: WithVector,
        read: impl Fn(Record) -> Result<T, EngineError>,
    ) -> Result<Vec<T>, EngineError> {
        guarded(|| {
            let (mut all, mut from) = (Vec::new(), None);
            loop {
                let mut request = ScrollRequestBuilder::new()
                    .limit(PAGE)
                    .with_payload(WithPayloadInterface::Bool(true))
                    .with_vector(vectors.clone());
                if let Some(from) = from {
                    request = request.offset(from);
                }
                let (records, next) = self.shard.scroll(request.build()).map_err(failed)?;
                for record in records {
                    all.push(read(record)?);
                }
                if all.len() > most {
                    return Err(EngineError(format!("it holds more than {most} facts")));
                }
                match next {
                    Some(next) => from = Some(next),
                    None => return Ok(all),
                }
            }
        })
    }
}

fn config(search_threads: usize) -> EdgeConfig {
    let nearest = MultiVectorConfig { comparator: MultiVectorComparator::MaxSim };
    let text = EdgeVectorParamsBuilder::new(TEXT_DIMENSION, Distance::Cosine).multivector_config(nearest).build();
    EdgeConfigBuilder::new()
        .vector(TEXT, text)
        .payload_memory(Placement::Cold)
        .max_search_threads(search_threads)
        .wal_options(log_options())
        .build()
}

fn uuid(id: PointId) -> Uuid {
    match id {
        PointId::Uuid(id) => id,
        PointId::NumId(number) => Uuid::from_u64_pair(0, number),
    }
}

/// The rows of a fact's multivector.
fn rows(vectors: Option<VectorStructInternal>) -> Result<Vec<Vec<f32>>, EngineError> {
    let missing = || EngineError(format!("it holds a fact without its vectors `{TEXT}`"));
    let Some(VectorStructInternal::Named(mut named)) = vectors else { return Err(missing()) };
    match named.remove(TEXT) {
        Some(VectorInternal::MultiDense(rows)) if rows.dim == TEXT_DIMENSION => {
            Ok(rows.flattened_vectors.chunks_exact(rows.dim).map(<[f32]>::to_vec).collect())
        }
        _ => Err(missing()),
    }
}
