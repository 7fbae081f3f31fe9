//! The `people/` shard in Qdrant Edge: one point a person, all shots as one multivector compared by MaxSim.
//!
//! Every call blocks. Shots are checked before they come here.

use std::path::Path;

use qdrant_edge::{
    Distance, EdgeConfig, EdgeConfigBuilder, EdgeShard, EdgeVectorParamsBuilder, IntegerIndexParamsBuilder,
    Memory as Placement, MultiVectorComparator, MultiVectorConfig, NamedQuery, Payload, PayloadOps,
    PayloadSchemaParams, PayloadSelector, PayloadSelectorInclude, PointId, PointStruct, QueryEnum, QueryRequestBuilder,
    Record, RetrieveRequestBuilder, ScoringQuery, ScrollRequestBuilder, SetPayloadOp, UpdateOperation, Vector,
    VectorInternal, VectorStructInternal, Vectors, WithPayloadInterface, WithVector,
};
use serde_json::{Value, json};

use super::super::beside::engine::{Making, Shard, everything, rebuild, upsert};
use super::super::engine::{EngineError, failed, guarded, index, json_path, log_options};
use super::super::folder::FolderError;
use super::payload::{Card, LAST_SEEN, MET, NAME, TAUGHT, name};
use super::{FACE_DIMENSION, Likeness, Person, PersonId};

/// The named vector of the shard.
const FACE: &str = "face";
/// People read at once.
const PAGE: usize = 256;

/// A person with all shots, each a unit vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    pub person: Person,
    /// From introductions.
    pub taught: Vec<Vec<f32>>,
    pub poses: Vec<Vec<f32>>,
}

impl Whole {
    fn card(&self) -> Card {
        let shots = self.taught.len() + self.poses.len();
        Card { person: Person { shots, ..self.person.clone() }, learned: self.poses.len() }
    }

    fn into_point(self) -> Result<PointStruct, EngineError> {
        let card = self.card();
        let rows: Vec<Vec<f32>> = self.taught.into_iter().chain(self.poses).collect();
        let face = Vector::new_multi(rows).map_err(failed)?;
        Ok(PointStruct::new(PointId::Uuid(card.person.id.0), Vectors::new_named([(FACE, face)]), card.payload()))
    }

    fn from_record(record: Record) -> Result<Self, EngineError> {
        let card = card(record.id, record.payload.as_ref())?;
        let mut taught = rows(record.vector)?;
        if taught.len() < card.learned {
            return Err(EngineError(format!("{} has fewer shots than were learned", card.person.name)));
        }
        let poses = taught.split_off(taught.len() - card.learned);
        Ok(Self { person: Person { shots: taught.len() + poses.len(), ..card.person }, taught, poses })
    }
}

/// An open shard. Dropping it flushes.
pub struct Engine {
    shard: Shard,
    search_threads: usize,
}

impl Engine {
    /// Makes an empty shard in the folder `path`, which must not exist.
    pub fn create(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| Ok(Self { shard: Shard::new(create(path, search_threads)?), search_threads }))
    }

    /// Opens the shard in `path`; only the holder of the folder's lock may.
    pub fn load(path: &Path, search_threads: usize) -> Result<Self, EngineError> {
        guarded(|| Ok(Self { shard: Shard::new(load(path, search_threads)?), search_threads }))
    }

    pub fn count(&self) -> Result<usize, EngineError> {
        everything(&self.shard)
    }

    pub fn flush(&self) -> Result<(), EngineError> {
        guarded(|| self.shard.flush().map_err(failed))
    }

    /// The people whose best shot is nearest to `face`, best first.
    pub fn nearest(&self, face: Vec<f32>, limit: usize) -> Result<Vec<Likeness>, EngineError> {
        guarded(|| {
            let query = NamedQuery { query: VectorInternal::Dense(face), using: Some(FACE.into()) };
            // Neither shots nor times: reading them costs more than comparing.
            let only_names = PayloadSelectorInclude { include: vec![json_path(NAME)?] };
            let request = QueryRequestBuilder::new(limit)
                .query(ScoringQuery::Vector(QueryEnum::Nearest(query)))
                .with_payload(WithPayloadInterface::Selector(PayloadSelector::Include(only_names)))
                .build();
            let found = self.shard.query(request).map_err(failed)?;
            let likenesses = found.into_iter().map(|point| {
                let payload = point.payload.as_ref().ok_or_else(no_name)?;
                Ok(Likeness { person: PersonId(uuid(point.id)?), name: name(payload)?, score: point.score })
            });
            likenesses.collect()
        })
    }

    /// Everybody, without their shots.
    pub fn cards(&self) -> Result<Vec<Card>, EngineError> {
        guarded(|| {
            let (mut cards, mut from) = (Vec::new(), None);
            loop {
                let mut request =
                    ScrollRequestBuilder::new().limit(PAGE).with_payload(WithPayloadInterface::Bool(true));
                if let Some(from) = from {
                    request = request.offset(from);
                }
                let (records, next) = self.shard.scroll(request.build()).map_err(failed)?;
                for record in records {
                    cards.push(card(record.id, record.payload.as_ref())?);
                }
                match next {
                    Some(next) => from = Some(next),
                    None => return Ok(cards),
                }
            }
        })
    }

    pub fn card(&self, id: PersonId) -> Result<Option<Card>, EngineError> {
        let record = self.record(id, false)?;
        record.map(|record| card(record.id, record.payload.as_ref())).transpose()
    }

    pub fn get(&self, id: PersonId) -> Result<Option<Whole>, EngineError> {
        self.record(id, true)?.map(Whole::from_record).transpose()
    }

    fn record(&self, id: PersonId, shots: bool) -> Result<Option<Record>, EngineError> {
        guarded(|| {
            let request = RetrieveRequestBuilder::new(vec![PointId::Uuid(id.0)])
                .with_payload(WithPayloadInterface::Bool(true))
                .with_vector(WithVector::Bool(shots))
                .build();
            Ok(self.shard.retrieve(request).map_err(failed)?.into_iter().next())
        })
    }

    /// Writes a person; one who is there already is replaced.
    pub fn put(&self, whole: Whole) -> Result<(), EngineError> {
        guarded(|| upsert(&self.shard, vec![whole.into_point()?]))
    }

    /// Writes when somebody was last seen, and nothing else of them.
    pub fn set_seen(&self, person: &Person) -> Result<(), EngineError> {
        guarded(|| {
            let Value::Object(payload) = json!({ LAST_SEEN: person.last_seen_at.as_second() }) else { return Ok(()) };
            let set = SetPayloadOp {
                payload: Payload(payload.into_iter().collect()),
                points: Some(vec![PointId::Uuid(person.id.0)]),
                filter: None,
                key: None,
            };
            self.shard.update(UpdateOperation::PayloadOperation(PayloadOps::SetPayload(set))).map_err(failed)
        })
    }

    /// Builds the shard in `place` anew with what `carry` makes of everybody. See [`rebuild`].
    pub fn rebuild<E: From<EngineError> + From<FolderError>>(
        &self,
        place: &Path,
        mut carry: impl FnMut(Whole) -> Option<Whole>,
        note: impl FnOnce(&Path, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = self.search_threads;
        let making = Making { create: &|path| create(path, threads), load: &|path| load(path, threads) };
        rebuild(
            &self.shard,
            place,
            &making,
            |point| {
                let carried = carry(Whole::from_record(point.record)?);
                Ok(carried.map(Whole::into_point).transpose()?)
            },
            |beside, new| note(beside, everything(new)?),
        )
    }
}

fn create(path: &Path, search_threads: usize) -> Result<EdgeShard, EngineError> {
    let shard = EdgeShard::new(path, config(search_threads)).map_err(failed)?;
    for field in [MET, TAUGHT, LAST_SEEN] {
        let time = IntegerIndexParamsBuilder::new().range(true).lookup(false).build();
        index(&shard, field, PayloadSchemaParams::Integer(time))?;
    }
    shard.flush().map_err(failed)?;
    Ok(shard)
}

fn load(path: &Path, search_threads: usize) -> Result<EdgeShard, EngineError> {
    EdgeShard::load(path, Some(config(search_threads))).map_err(failed)
}

fn config(search_threads: usize) -> EdgeConfig {
    let max_sim = MultiVectorConfig { comparator: MultiVectorComparator::MaxSim };
    let face = EdgeVectorParamsBuilder::new(FACE_DIMENSION, Distance::Cosine).multivector_config(max_sim).build();
    EdgeConfigBuilder::new()
        .vector(FACE, face)
        .payload_memory(Placement::Cold)
        .max_search_threads(search_threads)
        .wal_options(log_options())
        .build()
}

fn card(id: PointId, payload: Option<&Payload>) -> Result<Card, EngineError> {
    Card::read(uuid(id)?, payload.ok_or_else(no_name)?)
}

fn uuid(id: PointId) -> Result<uuid::Uuid, EngineError> {
    match id {
        PointId::Uuid(id) => Ok(id),
        PointId::NumId(number) => Err(EngineError(format!("point {number} is no person"))),
    }
}

fn no_name() -> EngineError {
    EngineError("a person came back without a name".into())
}

/// The rows of a point's multivector.
fn rows(vectors: Option<VectorStructInternal>) -> Result<Vec<Vec<f32>>, EngineError> {
    let face = match vectors {
        Some(VectorStructInternal::Named(mut named)) => named.remove(FACE),
        _ => None,
    };
    match face {
        Some(VectorInternal::MultiDense(rows)) => Ok(rows.into_multi_vectors()),
        _ => Err(EngineError("a person came back without their face".into())),
    }
}
