//! Reading every memory of the shard, and building the shard anew with some of them changed or left out.

use std::path::Path;

use qdrant_edge::{EdgeShard, Payload, ScrollRequestBuilder};
use serde_json::Value;

use super::super::super::beside::engine::{Making, rebuild};
use super::super::super::engine::{EngineError, failed, guarded};
use super::super::engine::{Engine, Point, without_pictures};
use super::super::folder::FolderError;
use super::super::payload::{KIND, Stored};
use crate::remember::{Exchange, Frame};

/// Memories read at once; without pictures they are some hundred bytes each.
const PAGE: usize = 256;

/// A memory of either kind.
pub enum Either {
    Said(Exchange),
    Seen(Box<Frame>),
}

/// What becomes of a memory in the new shard.
pub enum Becomes {
    /// Itself, with the vectors that it has.
    Same,
    Removed,
    Another(Point),
}

impl Engine {
    /// Shows every memory to `each`, frames without their pictures.
    pub fn all(&self, mut each: impl FnMut(Either)) -> Result<(), EngineError> {
        guarded(|| {
            let mut from = None;
            loop {
                let mut request = ScrollRequestBuilder::new().limit(PAGE).with_payload(without_pictures()?);
                if let Some(from) = from {
                    request = request.offset(from);
                }
                let (records, next) = self.shard.scroll(request.build()).map_err(failed)?;
                for record in records {
                    if let Some(memory) = record.payload.as_ref().map(either).transpose()?.flatten() {
                        each(memory);
                    }
                }
                match next {
                    Some(next) => from = Some(next),
                    None => return Ok(()),
                }
            }
        })
    }

    /// Builds the shard in `place` anew with what `carry` makes of each memory, whole; what is of no kind that is known
    /// here stays as it is. See [`rebuild`].
    pub fn rebuild<E: From<EngineError> + From<FolderError>>(
        &self,
        place: &Path,
        search_threads: usize,
        mut carry: impl FnMut(Either) -> Result<Becomes, E>,
    ) -> Result<(), E> {
        let create =
            |path: &Path| -> Result<EdgeShard, EngineError> { Engine::create(path, search_threads)?.shard.into_open() };
        let load =
            |path: &Path| -> Result<EdgeShard, EngineError> { Engine::load(path, search_threads)?.shard.into_open() };
        let making = Making { create: &create, load: &load };
        let rebuilt = rebuild(
            &self.shard,
            place,
            &making,
            |point| {
                let becomes = match point.record.payload.as_ref().map(either).transpose()?.flatten() {
                    Some(memory) => carry(memory)?,
                    None => Becomes::Same,
                };
                match becomes {
                    Becomes::Same => Ok(Some(point.into_point()?)),
                    Becomes::Removed => Ok(None),
                    Becomes::Another(point) => Ok(Some(point.0)),
                }
            },
            // How many of each kind there are is counted when the new shard is in its place.
            |_, _| Ok(()),
        );
        self.kept.drop_all();
        rebuilt
    }
}

fn either(payload: &Payload) -> Result<Option<Either>, EngineError> {
    match payload.0.get(KIND).and_then(Value::as_str) {
        Some(Exchange::KIND) => Ok(Some(Either::Said(Exchange::read(payload)?))),
        Some(Frame::KIND) => Ok(Some(Either::Seen(Box::new(Frame::read(payload)?)))),
        _ => Ok(None),
    }
}
