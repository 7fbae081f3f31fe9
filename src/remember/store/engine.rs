//! The `memory/` shard in Qdrant Edge: the only file of the project that names the engine.
//!
//! Every call blocks. Points are validated before the engine sees them, because it accepts vectors of zeros and of
//! not-a-numbers and panics on a payload that is no object. A panic inside the engine becomes an error here.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use jiff::Timestamp;
use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::{
    Condition, CountRequestBuilder, CreateIndex, Direction, Distance, EdgeConfig, EdgeConfigBuilder, EdgeShard,
    EdgeVectorParamsBuilder, FieldCondition, FieldIndexOperations, Filter, IntegerIndexParamsBuilder, JsonPath,
    KeywordIndexParamsBuilder, Match, MatchValue, Memory as Placement, NamedQuery, OrderBy, OrderByInterface, Payload,
    PayloadFieldSchema, PayloadSchemaParams, PointId, PointInsertOperations, PointOperations, PointStruct, QueryEnum,
    QueryRequestBuilder, Range, ScoringQuery, ScrollRequestBuilder, UpdateOperation, ValueVariants, VectorInternal,
    Vectors, WalOptions, WithPayloadInterface,
};
use serde_json::{Value, json};

use super::super::{Exchange, TimeRange};

/// Numbers in a text vector; the contract of the shard.
pub const TEXT_DIMENSION: usize = 384;
/// Numbers in a picture's vector; the contract of the shard.
pub const IMAGE_DIMENSION: usize = 768;
/// Bytes of one segment of the engine's write-ahead log. The engine's own 32 MiB leave an empty shard at 184 MB
/// apparent; with 4 MiB it is 45 MB, 0.05 MB of them allocated (measured on 0.9.0).
const LOG_SEGMENT_BYTES: usize = 4 * 1024 * 1024;
/// Exchanges read at once while walking the shard.
const PAGE: usize = 64;

const TEXT: &str = "text";
const IMAGE: &str = "image";
const KIND: &str = "kind";
const EXCHANGE: &str = "exchange";
const SAID_AT: &str = "said_at";

/// What the engine said when it could not.
#[derive(Debug, thiserror::Error)]
#[error("the search engine failed: {0}")]
pub struct EngineError(pub String);

/// The order of [`Engine::in_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

/// An exchange with the vector of its line, checked: [`TEXT_DIMENSION`] finite numbers, not all zero.
#[derive(Clone, Debug)]
pub struct Point {
    exchange: Exchange,
    text: Vec<f32>,
}

impl Point {
    /// Checks the vector.
    ///
    /// # Errors
    /// [`EngineError`] for a wrong length, a number that is not finite, or nothing but zeros.
    pub fn new(exchange: Exchange, text: Vec<f32>) -> Result<Self, EngineError> {
        check_vector(&text)?;
        Ok(Self { exchange, text })
    }
}

fn check_vector(vector: &[f32]) -> Result<(), EngineError> {
    if vector.len() != TEXT_DIMENSION {
        return Err(EngineError(format!("a text vector has {} numbers instead of {TEXT_DIMENSION}", vector.len())));
    }
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(EngineError("a text vector holds something that is not a number".into()));
    }
    if vector.iter().all(|number| *number == 0.0) {
        return Err(EngineError("a text vector holds nothing but zeros".into()));
    }
    Ok(())
}

/// An open shard. Dropping it flushes.
pub struct Engine {
    shard: EdgeShard,
}

impl Engine {
    /// Makes an empty shard in the folder `path`, which must not exist, with its indexes.
    pub fn create(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| {
            let shard = EdgeShard::new(path, config(search_threads)).map_err(failed)?;
            let engine = Self { shard };
            let tenant = KeywordIndexParamsBuilder::new().is_tenant(true).build();
            engine.index(KIND, PayloadSchemaParams::Keyword(tenant))?;
            for field in [SAID_AT, "seen_at"] {
                let time = IntegerIndexParamsBuilder::new().range(true).lookup(false).build();
                engine.index(field, PayloadSchemaParams::Integer(time))?;
            }
            engine.shard.flush().map_err(failed)?;
            Ok(engine)
        })
    }

    /// Opens the shard in `path`, replaying what its log holds beyond its segments.
    ///
    /// Must be called only by the holder of the folder's lock: the engine damages a shard that another handle has
    /// open merely by trying.
    pub fn load(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| {
            let shard = EdgeShard::load(path, Some(config(search_threads))).map_err(failed)?;
            Ok(Self { shard })
        })
    }

    fn index(&self, field: &str, schema: PayloadSchemaParams) -> Result<(), EngineError> {
        let index =
            CreateIndex { field_name: json_path(field)?, field_schema: Some(PayloadFieldSchema::FieldParams(schema)) };
        self.shard
            .update(UpdateOperation::FieldIndexOperation(FieldIndexOperations::CreateIndex(index)))
            .map_err(failed)
    }

    /// Writes points; a point whose id is there already is replaced. On an error some of them may have been written.
    pub fn upsert(&self, points: Vec<Point>) -> Result<(), EngineError> {
        guarded(|| {
            let points = points.into_iter().map(|point| point_struct(point).into()).collect();
            let insert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(points));
            self.shard.update(UpdateOperation::PointOperation(insert)).map_err(failed)
        })
    }

    /// Puts everything written so far on the disk itself.
    pub fn flush(&self) -> Result<(), EngineError> {
        guarded(|| self.shard.flush().map_err(failed))
    }

    /// Number of exchanges, exact, said in `when`.
    pub fn count(&self, when: Option<TimeRange>) -> Result<usize, EngineError> {
        guarded(|| {
            let request = CountRequestBuilder::new().filter(exchanges(when)?).exact(true).build();
            self.shard.count(request).map_err(failed)
        })
    }

    /// The exchanges nearest to `vector` by cosine, best first, said in `when`.
    pub fn nearest(
        &self,
        vector: Vec<f32>,
        when: Option<TimeRange>,
        limit: usize,
    ) -> Result<Vec<(Exchange, f32)>, EngineError> {
        check_vector(&vector)?;
        guarded(|| {
            let query = NamedQuery { query: VectorInternal::Dense(vector), using: Some(TEXT.into()) };
            let request = QueryRequestBuilder::new(limit)
                .query(ScoringQuery::Vector(QueryEnum::Nearest(query)))
                .filter(exchanges(when)?)
                .with_payload(WithPayloadInterface::Bool(true))
                .build();
            let points = self.shard.query(request).map_err(failed)?;
            points.into_iter().map(|point| Ok((exchange_of(point.payload)?, point.score))).collect()
        })
    }

    /// At most `limit` exchanges said in `when`, in the order of their time.
    pub fn in_time(&self, when: Option<TimeRange>, order: Order, limit: usize) -> Result<Vec<Exchange>, EngineError> {
        guarded(|| {
            let direction = match order {
                Order::OldestFirst => Direction::Asc,
                Order::NewestFirst => Direction::Desc,
            };
            let by = OrderBy { key: json_path(SAID_AT)?, direction: Some(direction), start_from: None };
            let request = ScrollRequestBuilder::new()
                .limit(limit)
                .filter(exchanges(when)?)
                .with_payload(WithPayloadInterface::Bool(true))
                .order_by(OrderByInterface::Struct(by))
                .build();
            let (records, _) = self.shard.scroll(request).map_err(failed)?;
            records.into_iter().map(|record| exchange_of(record.payload)).collect()
        })
    }

    /// One page of all exchanges, in the order of the shard, and where the next page begins.
    pub fn page(&self, from: Option<PointId>) -> Result<(Vec<Exchange>, Option<PointId>), EngineError> {
        guarded(|| {
            let mut request = ScrollRequestBuilder::new()
                .limit(PAGE)
                .filter(exchanges(None)?)
                .with_payload(WithPayloadInterface::Bool(true));
            if let Some(from) = from {
                request = request.offset(from);
            }
            let (records, next) = self.shard.scroll(request.build()).map_err(failed)?;
            let page = records.into_iter().map(|record| exchange_of(record.payload)).collect::<Result<_, _>>()?;
            Ok((page, next))
        })
    }
}

fn config(search_threads: usize) -> EdgeConfig {
    EdgeConfigBuilder::new()
        .vector(TEXT, EdgeVectorParamsBuilder::new(TEXT_DIMENSION, Distance::Cosine).build())
        .vector(IMAGE, EdgeVectorParamsBuilder::new(IMAGE_DIMENSION, Distance::Cosine).build())
        .payload_memory(Placement::Cold)
        .max_search_threads(search_threads)
        .wal_options(WalOptions {
            segment_capacity: LOG_SEGMENT_BYTES,
            segment_queue_len: 0,
            retain_closed: NonZeroUsize::MIN,
        })
        .build()
}

fn point_struct(point: Point) -> PointStruct {
    let id = PointId::Uuid(point.exchange.id());
    let payload = json!({
        KIND: EXCHANGE,
        "text": point.exchange.line(),
        "speaker": point.exchange.speaker,
        SAID_AT: point.exchange.said_at.as_second(),
        "heard": point.exchange.heard,
        "said": point.exchange.said,
    });
    PointStruct::new(id, Vectors::new_named([(TEXT, point.text)]), payload)
}

/// The exchange that a payload describes; a payload without the two sides apart keeps its one line as what was heard.
fn exchange_of(payload: Option<Payload>) -> Result<Exchange, EngineError> {
    let payload = payload.ok_or_else(|| EngineError("a memory came back without its words".into()))?.0;
    let words = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
    let second = payload
        .get(SAID_AT)
        .and_then(Value::as_i64)
        .ok_or_else(|| EngineError("a memory has no time (said_at)".into()))?;
    let said_at = Timestamp::from_second(second)
        .map_err(|error| EngineError(format!("a memory has an impossible time: {error}")))?;
    let heard = words("heard")
        .or_else(|| words("text"))
        .ok_or_else(|| EngineError("a memory came back without its words".into()))?;
    Ok(Exchange { heard, said: words("said").unwrap_or_default(), speaker: words("speaker"), said_at })
}

/// The filter on exchanges said in `when`.
fn exchanges(when: Option<TimeRange>) -> Result<Filter, EngineError> {
    let kind = Match::Value(MatchValue { value: ValueVariants::String(EXCHANGE.into()) });
    let mut filter = Filter::new_must(Condition::Field(FieldCondition::new_match(json_path(KIND)?, kind)));
    if let Some(range) = when {
        let seconds = Range {
            lt: None,
            gt: None,
            gte: Some(OrderedFloat(range.from.as_second() as f64)),
            lte: Some(OrderedFloat(range.to.as_second() as f64)),
        };
        let said = Condition::Field(FieldCondition::new_range(json_path(SAID_AT)?, seconds));
        filter = filter.merge(&Filter::new_must(said));
    }
    Ok(filter)
}

fn json_path(field: &str) -> Result<JsonPath, EngineError> {
    field.parse().map_err(|()| EngineError(format!("`{field}` is no field name")))
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError(error.to_string())
}

/// Turns a panic inside the engine into an error, so that one bad file does not take the process down.
fn guarded<T>(call: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(|words| (*words).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no reason given".into());
        Err(EngineError(format!("it panicked: {words}")))
    })
}
