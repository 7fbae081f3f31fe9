//! The `memory/` shard in Qdrant Edge: exchanges and frames.
//!
//! Exchanges have a sparse vector besides, their words as BM25 counts them. A shard that was made before there was one
//! gets it when it is opened: the words are in the payloads, and nothing is embedded again.
//!
//! Every call blocks. Points are validated before the engine sees them, because it accepts vectors of zeros and of
//! not-a-numbers and panics on a payload that is no object.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::{
    AnyVariants, Condition, CountRequestBuilder, Direction as Sorting, Distance, EdgeConfig, EdgeConfigBuilder,
    EdgeShard, EdgeSparseVectorParamsBuilder, EdgeVectorParamsBuilder, FieldCondition, Filter,
    IntegerIndexParamsBuilder, KeywordIndexParamsBuilder, Match, MatchAny, MatchValue, Memory as Placement, Modifier,
    NamedQuery, OrderBy, OrderByInterface, Payload, PayloadSchemaParams, PayloadSelector, PayloadSelectorExclude,
    PointId, PointInsertOperations, PointOperations, PointStruct, QueryEnum, QueryRequestBuilder, Range, Record,
    RetrieveRequestBuilder, ScoringQuery, ScrollRequestBuilder, UpdateOperation, ValueVariants, Vector, VectorInternal,
    VectorStructInternal, Vectors, WithPayloadInterface, WithVector,
};
use uuid::Uuid;

use super::super::beside::engine::Shard;
use super::super::engine::{EngineError, check_vector, failed, guarded, index, json_path, log_options};
use super::hybrid::{WORDS, bag, count_words_of_older_exchanges, counted};
use super::kept::{Kept, Known};
use super::payload::{JPEG, KIND, LABELS, LOOKED, Stored};
use crate::remember::{Exchange, Frame, TimeRange};
use crate::robot::Direction;

/// Numbers in a text vector; the contract of the shard.
pub const TEXT_DIMENSION: usize = 384;
/// Numbers in a picture's vector; the contract of the shard.
pub const IMAGE_DIMENSION: usize = 768;
/// Points read at once while walking the shard; frames carry their pictures.
pub(super) const PAGE: usize = 64;

/// A named vector of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Text,
    Image,
}

impl Space {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
        }
    }

    fn dimension(self) -> usize {
        match self {
            Self::Text => TEXT_DIMENSION,
            Self::Image => IMAGE_DIMENSION,
        }
    }

    pub(super) fn check(self, vector: &[f32]) -> Result<(), EngineError> {
        check_vector(self.name(), self.dimension(), vector)
    }
}

/// A memory with its checked vectors, ready to be written.
#[derive(Debug)]
pub struct Point(pub(super) PointStruct);

impl Point {
    /// Checks the vectors: `text` over its words, `image` over its picture where there is one.
    ///
    /// # Errors
    /// [`EngineError`] for a wrong length, a number that is not finite, or nothing but zeros.
    pub fn new<S: Stored>(memory: &S, text: Vec<f32>, image: Option<Vec<f32>>) -> Result<Self, EngineError> {
        Space::Text.check(&text)?;
        let mut vectors = vec![(Space::Text.name(), Vector::new_dense(text))];
        if let Some(image) = image {
            Space::Image.check(&image)?;
            vectors.push((Space::Image.name(), Vector::new_dense(image)));
        }
        if let Some(counted) = counted(memory)? {
            vectors.push((WORDS, counted.into()));
        }
        Ok(Self(PointStruct::new(PointId::Uuid(memory.id()), Vectors::new_named(vectors), memory.payload())))
    }
}

/// Which memories a call is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pub when: Option<TimeRange>,
    /// But not what happened in this range.
    pub but: Option<TimeRange>,
    /// Only frames that show one of these.
    pub labels: Vec<String>,
    /// Only frames taken with the head turned this way.
    pub looked: Option<Direction>,
}

impl Scope {
    /// Everything in `when`.
    pub fn during(when: Option<TimeRange>) -> Self {
        Self { when, ..Self::default() }
    }
}

/// The order of [`Engine::in_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

/// A memory with its picture's vector, where it has one.
pub type Whole<S> = (S, Option<Vec<f32>>);

/// A page of the shard.
pub struct Page<S> {
    pub memories: Vec<Whole<S>>,
    /// Where the next page begins.
    pub next: Option<PointId>,
}

/// An open shard. Dropping it flushes.
pub struct Engine {
    pub(super) shard: Shard,
    pub(super) kept: Kept,
}

impl Engine {
    fn over(shard: EdgeShard) -> Self {
        Self { shard: Shard::new(shard), kept: Kept::new() }
    }

    /// Makes an empty shard in the folder `path`, which must not exist, with its indexes.
    pub fn create(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| {
            let shard = EdgeShard::new(path, config(search_threads)).map_err(failed)?;
            make_indexes(&shard)?;
            shard.flush().map_err(failed)?;
            Ok(Self::over(shard))
        })
    }

    /// Opens the shard in `path`, replaying what its log holds beyond its segments.
    ///
    /// Must be called only by the holder of the folder's lock: the engine damages a shard that another handle has
    /// open merely by trying.
    pub fn load(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| {
            // Which vectors there are is the shard's own: an older one lacks the words.
            let shard = EdgeShard::load(path, Some(settings(search_threads).build())).map_err(failed)?;
            check_contract(&shard)?;
            count_words_of_older_exchanges(&shard)?;
            Ok(Self::over(shard))
        })
    }

    /// Writes points; a point whose id is there already is replaced. On an error some of them may have been written.
    pub fn upsert(&self, points: Vec<Point>) -> Result<(), EngineError> {
        if points.is_empty() {
            return Ok(());
        }
        let ids = points.iter().map(|point| identity(point.0.0.id)).collect::<Result<Vec<_>, _>>()?;
        let written = guarded(|| {
            let points = points.into_iter().map(|point| point.0.into()).collect();
            let insert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(points));
            self.shard.update(UpdateOperation::PointOperation(insert)).map_err(failed)
        });
        self.kept.drop_written(&ids);
        written
    }

    /// Puts everything written so far on the disk itself.
    pub fn flush(&self) -> Result<(), EngineError> {
        guarded(|| self.shard.flush().map_err(failed))
    }

    /// Number of memories in `scope`, exact.
    pub fn count<S: Stored>(&self, scope: &Scope) -> Result<usize, EngineError> {
        guarded(|| {
            let request = CountRequestBuilder::new().filter(filter::<S>(scope)?).exact(true).build();
            self.shard.count(request).map_err(failed)
        })
    }

    /// The memories nearest to `vector` by cosine, best first; frames without their pictures.
    pub fn nearest<S: Stored>(
        &self,
        vector: Vec<f32>,
        space: Space,
        scope: &Scope,
        limit: usize,
    ) -> Result<Vec<(S, f32)>, EngineError> {
        space.check(&vector)?;
        guarded(|| {
            let request = QueryRequestBuilder::new(limit)
                .query(nearest_to(VectorInternal::Dense(vector), space.name()))
                .filter(filter::<S>(scope)?)
                .build();
            let points = self.shard.query(request).map_err(failed)?;
            let ids = points.iter().map(|point| identity(point.id)).collect::<Result<Vec<_>, _>>()?;
            let known = self.known::<S>(&ids)?;
            Ok(known
                .into_iter()
                .zip(points)
                .filter_map(|(known, point)| Some((known?.memory.clone(), point.score)))
                .collect())
        })
    }

    /// These memories, frames without their pictures, each in its place; `None` for one that has gone since it was
    /// found.
    pub(super) fn known<S: Stored>(&self, ids: &[Uuid]) -> Result<Vec<Option<Arc<Known<S>>>>, EngineError> {
        let mut known: Vec<_> = ids.iter().map(|id| self.kept.get::<S>(*id)).collect();
        let lacking: Vec<Uuid> =
            ids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(id, _)| *id).collect();
        if lacking.is_empty() {
            return Ok(known);
        }
        let read = self.kept.keep(|| self.read_known::<S>(&lacking))?;
        for (id, known) in ids.iter().zip(&mut known) {
            if known.is_none() {
                *known = read.get(id).cloned();
            }
        }
        Ok(known)
    }

    fn read_known<S: Stored>(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, Known<S>)>, EngineError> {
        let request = RetrieveRequestBuilder::new(ids.iter().copied().map(PointId::Uuid).collect())
            .with_payload(without_pictures()?)
            .with_vector(WithVector::Selector(vec![WORDS.into()]))
            .build();
        let records = self.shard.retrieve(request).map_err(failed)?;
        let known = |record: Record| {
            let bag = bag(record.vector.as_ref());
            Ok((identity(record.id)?, Known { memory: read(record.payload)?, bag }))
        };
        records.into_iter().map(known).collect()
    }

    /// At most `limit` memories in the order of their time; frames without their pictures.
    pub fn in_time<S: Stored>(&self, scope: &Scope, order: Order, limit: usize) -> Result<Vec<S>, EngineError> {
        guarded(|| {
            let direction = match order {
                Order::OldestFirst => Sorting::Asc,
                Order::NewestFirst => Sorting::Desc,
            };
            let by = OrderBy { key: json_path(S::TIME)?, direction: Some(direction), start_from: None };
            let request = ScrollRequestBuilder::new()
                .limit(limit)
                .filter(filter::<S>(scope)?)
                .with_payload(WithPayloadInterface::Bool(false))
                .order_by(OrderByInterface::Struct(by))
                .build();
            let (records, _) = self.shard.scroll(request).map_err(failed)?;
            let ids = records.iter().map(|record| identity(record.id)).collect::<Result<Vec<_>, _>>()?;
            Ok(self.known::<S>(&ids)?.into_iter().flatten().map(|known| known.memory.clone()).collect())
        })
    }

    /// One page of all memories of a kind, whole, in the order of the shard.
    pub fn page<S: Stored>(&self, from: Option<PointId>) -> Result<Page<S>, EngineError> {
        guarded(|| {
            let mut request = ScrollRequestBuilder::new()
                .limit(PAGE)
                .filter(filter::<S>(&Scope::default())?)
                .with_payload(WithPayloadInterface::Bool(true))
                .with_vector(WithVector::Bool(true));
            if let Some(from) = from {
                request = request.offset(from);
            }
            let (records, next) = self.shard.scroll(request.build()).map_err(failed)?;
            let whole = records.into_iter().map(|record| Ok((read(record.payload)?, image(record.vector))));
            Ok(Page { memories: whole.collect::<Result<_, EngineError>>()?, next })
        })
    }

    /// The vectors of these frames' pictures; a frame that has none is not in the answer.
    pub fn images(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, Vec<f32>>, EngineError> {
        guarded(|| {
            let request = RetrieveRequestBuilder::new(ids.iter().copied().map(PointId::Uuid).collect())
                .with_payload(WithPayloadInterface::Bool(false))
                .with_vector(WithVector::Selector(vec![Space::Image.name().into()]))
                .build();
            let records = self.shard.retrieve(request).map_err(failed)?;
            let vectors = records.into_iter().filter_map(|record| match record.id {
                PointId::Uuid(id) => Some((id, image(record.vector)?)),
                PointId::NumId(_) => None,
            });
            Ok(vectors.collect())
        })
    }

    /// A memory by its identity, whole, with its picture's vector.
    pub fn get<S: Stored>(&self, id: Uuid) -> Result<Option<Whole<S>>, EngineError> {
        guarded(|| {
            let request = RetrieveRequestBuilder::new(vec![PointId::Uuid(id)])
                .with_payload(WithPayloadInterface::Bool(true))
                .with_vector(WithVector::Bool(true))
                .build();
            let record = self.shard.retrieve(request).map_err(failed)?.into_iter().next();
            record.map(|record| Ok((read(record.payload)?, image(record.vector)))).transpose()
        })
    }
}

fn make_indexes(shard: &EdgeShard) -> Result<(), EngineError> {
    let tenant = KeywordIndexParamsBuilder::new().is_tenant(true).build();
    index(shard, KIND, PayloadSchemaParams::Keyword(tenant))?;
    for field in [Exchange::TIME, Frame::TIME] {
        let time = IntegerIndexParamsBuilder::new().range(true).lookup(false).build();
        index(shard, field, PayloadSchemaParams::Integer(time))?;
    }
    for field in [LABELS, LOOKED] {
        index(shard, field, PayloadSchemaParams::Keyword(KeywordIndexParamsBuilder::new().build()))?;
    }
    Ok(())
}

/// How a shard is made.
fn config(search_threads: usize) -> EdgeConfig {
    settings(search_threads)
        .vector(Space::Text.name(), EdgeVectorParamsBuilder::new(TEXT_DIMENSION, Distance::Cosine).build())
        .vector(Space::Image.name(), EdgeVectorParamsBuilder::new(IMAGE_DIMENSION, Distance::Cosine).build())
        .sparse_vector(WORDS, EdgeSparseVectorParamsBuilder::new().modifier(Modifier::Idf).build())
        .build()
}

/// How a shard is opened.
fn settings(search_threads: usize) -> EdgeConfigBuilder {
    EdgeConfigBuilder::new()
        .payload_memory(Placement::Cold)
        .max_search_threads(search_threads)
        .wal_options(log_options())
}

/// Refuses a shard whose dense vectors are not the contract's.
fn check_contract(shard: &EdgeShard) -> Result<(), EngineError> {
    let config = shard.config();
    for space in [Space::Text, Space::Image] {
        let got = config.vectors.get(space.name()).map(|params| params.size);
        if got != Some(space.dimension()) {
            let got = got.map_or_else(|| "no numbers".into(), |got| format!("{got} numbers"));
            let why = format!("its {} vectors have {got} instead of {}", space.name(), space.dimension());
            return Err(EngineError(why));
        }
    }
    Ok(())
}

pub(super) fn dense(vectors: Option<&VectorStructInternal>, space: Space) -> Option<&[f32]> {
    match vectors? {
        VectorStructInternal::Named(named) => match named.get(space.name())? {
            VectorInternal::Dense(vector) => Some(vector),
            _ => None,
        },
        _ => None,
    }
}

/// A search for what is nearest in a named vector's space.
pub(super) fn nearest_to(query: VectorInternal, space: &str) -> ScoringQuery {
    ScoringQuery::Vector(QueryEnum::Nearest(NamedQuery { query, using: Some(space.into()) }))
}

pub(super) fn identity(id: PointId) -> Result<Uuid, EngineError> {
    match id {
        PointId::Uuid(id) => Ok(id),
        PointId::NumId(number) => Err(EngineError(format!("it holds a point that no memory has ({number})"))),
    }
}

pub(super) fn read<S: Stored>(payload: Option<Payload>) -> Result<S, EngineError> {
    S::read(&payload.ok_or_else(|| EngineError("a memory came back without its words".into()))?)
}

/// The picture's vector among a point's vectors.
fn image(vectors: Option<VectorStructInternal>) -> Option<Vec<f32>> {
    dense(vectors.as_ref(), Space::Image).map(<[f32]>::to_vec)
}

/// Everything but a frame's picture, which is a thousand times as large as the rest.
pub(super) fn without_pictures() -> Result<WithPayloadInterface, EngineError> {
    let exclude = PayloadSelectorExclude { exclude: vec![json_path(JPEG)?] };
    Ok(WithPayloadInterface::Selector(PayloadSelector::Exclude(exclude)))
}

pub(super) fn filter<S: Stored>(scope: &Scope) -> Result<Filter, EngineError> {
    let is = |field: &str, value: &str| -> Result<Condition, EngineError> {
        let value = Match::Value(MatchValue { value: ValueVariants::String(value.into()) });
        Ok(Condition::Field(FieldCondition::new_match(json_path(field)?, value)))
    };
    let mut all = vec![is(KIND, S::KIND)?];
    let within = |range: TimeRange| -> Result<Condition, EngineError> {
        let second = |at: Timestamp| Some(OrderedFloat(at.as_second() as f64));
        let seconds = Range { lt: None, gt: None, gte: second(range.from), lte: second(range.to) };
        Ok(Condition::Field(FieldCondition::new_range(json_path(S::TIME)?, seconds)))
    };
    if let Some(range) = scope.when {
        all.push(within(range)?);
    }
    if !scope.labels.is_empty() {
        let any = Match::Any(MatchAny { any: AnyVariants::Strings(scope.labels.iter().map(Into::into).collect()) });
        all.push(Condition::Field(FieldCondition::new_match(json_path(LABELS)?, any)));
    }
    if let Some(looked) = scope.looked {
        all.push(is(LOOKED, looked.name())?);
    }
    let none = scope.but.map(within).transpose()?.map(|condition| vec![condition]);
    Ok(Filter { must: Some(all), must_not: none, ..Filter::default() })
}

#[cfg(test)]
mod tests;
