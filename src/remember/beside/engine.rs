//! An open shard whose files another shard may take over while others hold it.
//!
//! Calls go on beside each other, and wait only while the files are exchanged, which takes as long as opening a shard:
//! 50 to 180 ms. After an exchange that could not be finished the shard is closed, and every call says so.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use qdrant_edge::{
    CountRequest, CountRequestBuilder, EdgeShard, OperationError, OperationResult, PointId, PointInsertOperations,
    PointOperations, PointStruct, PointStructPersisted, QueryRequest, Record, RetrieveRequest, ScoredPoint,
    ScrollRequest, ScrollRequestBuilder, UpdateOperation, WithPayloadInterface, WithVector,
};

use super::super::engine::{EngineError, failed, guarded};
use super::super::folder::FolderError;

/// The engine's own note in a shard's folder.
pub const CONFIG: &str = "edge_config.json";

const CLOSED: &str = "its files were exchanged and could not be opened again; restart the robot";

/// An open shard; `None` after an exchange that failed.
pub struct Shard {
    open: RwLock<Option<EdgeShard>>,
}

impl Shard {
    pub fn new(shard: EdgeShard) -> Self {
        Self { open: RwLock::new(Some(shard)) }
    }

    pub fn update(&self, operation: UpdateOperation) -> OperationResult<()> {
        self.with(|shard| shard.update(operation))
    }

    pub fn flush(&self) -> OperationResult<()> {
        self.with(EdgeShard::flush)
    }

    pub fn count(&self, request: CountRequest) -> OperationResult<usize> {
        self.with(|shard| shard.count(request))
    }

    pub fn query(&self, request: QueryRequest) -> OperationResult<Vec<ScoredPoint>> {
        self.with(|shard| shard.query(request))
    }

    pub fn scroll(&self, request: ScrollRequest) -> OperationResult<(Vec<Record>, Option<PointId>)> {
        self.with(|shard| shard.scroll(request))
    }

    pub fn retrieve(&self, request: RetrieveRequest) -> OperationResult<Vec<Record>> {
        self.with(|shard| shard.retrieve(request))
    }

    /// The shard itself, for one who is about to put it behind another handle.
    pub fn into_open(self) -> Result<EdgeShard, EngineError> {
        let open = self.open.into_inner().unwrap_or_else(PoisonError::into_inner);
        open.ok_or_else(|| EngineError(CLOSED.into()))
    }

    /// Closes the shard, runs `swap`, and opens what is in its place then, with `load`.
    ///
    /// # Errors
    /// What `swap` says, after the shard was opened again; or that it could not be.
    pub fn exchange(
        &self,
        swap: impl FnOnce() -> Result<(), FolderError>,
        load: impl FnOnce() -> Result<EdgeShard, EngineError>,
    ) -> Result<(), ExchangeError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        guarded(|| {
            drop(open.take());
            Ok(())
        })?;
        let swapped = swap();
        *open = Some(guarded(load)?);
        Ok(swapped?)
    }

    /// Any other call.
    pub fn with<T>(&self, call: impl FnOnce(&EdgeShard) -> OperationResult<T>) -> OperationResult<T> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        call(open.as_ref().ok_or_else(|| OperationError::service_error_light(CLOSED))?)
    }
}

/// Why a shard's files could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A point exactly as a shard holds it: every vector, and the payload.
pub struct Verbatim {
    pub record: Record,
}

impl Verbatim {
    /// The point as it is written into another shard. Vectors that are compared by cosine were normalised when they
    /// were stored, so they stay what they are.
    pub fn into_point(self) -> Result<PointStruct, EngineError> {
        let Record { id, payload, vector, .. } = self.record;
        let vector = vector.ok_or_else(|| EngineError("a point came back without its vectors".into()))?.into();
        Ok(PointStruct(PointStructPersisted { id, vector, payload }))
    }
}

/// One page of [`PAGE`] points, in the order of the shard, and where the next begins.
fn page(shard: &Shard, from: Option<PointId>) -> Result<(Vec<Record>, Option<PointId>), EngineError> {
    guarded(|| {
        let request = ScrollRequestBuilder::new()
            .limit(PAGE)
            .with_payload(WithPayloadInterface::Bool(true))
            .with_vector(WithVector::Bool(true));
        let request = match from {
            Some(from) => request.offset(from),
            None => request,
        };
        shard.scroll(request.build()).map_err(failed)
    })
}

/// Writes points; one whose identity is there already is replaced.
pub fn upsert(shard: &Shard, points: Vec<PointStruct>) -> Result<(), EngineError> {
    if points.is_empty() {
        return Ok(());
    }
    guarded(|| {
        let points = points.into_iter().map(Into::into).collect();
        let insert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(points));
        shard.update(UpdateOperation::PointOperation(insert)).map_err(failed)
    })
}

/// How a shard's files are made and opened.
pub struct Making<'a> {
    /// Makes an empty shard in a folder that is not there yet.
    pub create: &'a dyn Fn(&Path) -> Result<EdgeShard, EngineError>,
    pub load: &'a dyn Fn(&Path) -> Result<EdgeShard, EngineError>,
}

/// Points read at once while a shard is carried over; some carry pictures.
const PAGE: usize = 64;

/// Builds the open shard in `place` anew with what `carry` makes of each point (`None`: it is left out), checks that the
/// new one can be opened and is complete, lets `note` write what stands beside it, and puts it in the old one's place.
/// Only the shard's one writer may call this; readers go on with the old one until the new one takes over.
///
/// # Errors
/// What the engine, the folder, `carry` or `note` say; the shard is then as it was before, but for the case that
/// [`super::swap`] describes.
pub fn rebuild<E: From<EngineError> + From<FolderError>>(
    shard: &Shard,
    place: &Path,
    making: &Making<'_>,
    mut carry: impl FnMut(Verbatim) -> Result<Option<PointStruct>, E>,
    note: impl FnOnce(&Path, &Shard) -> Result<(), E>,
) -> Result<(), E> {
    let beside = super::new_place(place)?;
    let new = Shard::new(guarded(|| (making.create)(&beside))?);
    let mut carried = HashSet::new();
    let mut from = None;
    loop {
        let (records, next) = page(shard, from)?;
        let mut kept = Vec::with_capacity(records.len());
        for record in records {
            if let Some(point) = carry(Verbatim { record })? {
                carried.insert(point.0.id);
                kept.push(point);
            }
        }
        upsert(&new, kept)?;
        match next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    guarded(|| new.flush().map_err(failed))?;
    drop(new);
    // Opened once more as the next start will open it, before the old one goes.
    let new = Shard::new(guarded(|| (making.load)(&beside))?);
    let there = everything(&new)?;
    if there != carried.len() {
        let why = format!("{there} of {} points were carried over, so the old shard stays in place", carried.len());
        return Err(EngineError(why).into());
    }
    super::copy_notes(place, &beside)?;
    note(&beside, &new)?;
    drop(new);
    match shard.exchange(|| super::swap(place, &beside), || (making.load)(place)) {
        Ok(()) => Ok(()),
        Err(ExchangeError::Folder(error)) => Err(error.into()),
        Err(ExchangeError::Engine(error)) => Err(error.into()),
    }
}

/// How many points a shard holds, exact.
pub fn everything(shard: &Shard) -> Result<usize, EngineError> {
    guarded(|| shard.count(CountRequestBuilder::new().exact(true).build()).map_err(failed))
}
