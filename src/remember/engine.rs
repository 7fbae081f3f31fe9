//! What the three shards share of Qdrant Edge: its errors, its log's size, its indexes, and what a vector must be.
//!
//! The engine is named here and in the `engine` and `payload` files of each shard, and nowhere else. A panic inside the
//! engine becomes an error.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use qdrant_edge::{
    CreateIndex, EdgeShard, FieldIndexOperations, JsonPath, PayloadFieldSchema, PayloadSchemaParams, UpdateOperation,
    WalOptions,
};

/// Bytes of one segment of the engine's write-ahead log. The engine's own 32 MiB leave an empty shard at 184 MB
/// apparent; with 4 MiB it is 45 MB, 0.05 MB of them allocated (measured on 0.9.0).
const LOG_SEGMENT_BYTES: usize = 4 * 1024 * 1024;
/// What the engine said when it could not.
#[derive(Debug, thiserror::Error)]
#[error("the search engine failed: {0}")]
pub struct EngineError(pub String);

/// The options of a shard's write-ahead log.
pub fn log_options() -> WalOptions {
    WalOptions { segment_capacity: LOG_SEGMENT_BYTES, segment_queue_len: 0, retain_closed: NonZeroUsize::MIN }
}

/// Indexes a payload field.
pub fn index(shard: &EdgeShard, field: &str, schema: PayloadSchemaParams) -> Result<(), EngineError> {
    let index =
        CreateIndex { field_name: json_path(field)?, field_schema: Some(PayloadFieldSchema::FieldParams(schema)) };
    shard.update(UpdateOperation::FieldIndexOperation(FieldIndexOperations::CreateIndex(index))).map_err(failed)
}

/// Checks a vector: as many finite numbers as the contract says, not all zero.
pub fn check_vector(name: &str, dimension: usize, vector: &[f32]) -> Result<(), EngineError> {
    if vector.len() != dimension {
        return Err(EngineError(format!("a {name} vector has {} numbers instead of {dimension}", vector.len())));
    }
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(EngineError(format!("a {name} vector holds something that is not a number")));
    }
    if vector.iter().all(|number| *number == 0.0) {
        return Err(EngineError(format!("a {name} vector holds nothing but zeros")));
    }
    Ok(())
}

/// A payload field's name as the engine takes it.
pub fn json_path(field: &str) -> Result<JsonPath, EngineError> {
    field.parse().map_err(|()| EngineError(format!("`{field}` is no field name")))
}

/// The engine's error as ours.
pub fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError(error.to_string())
}

/// Turns a panic inside the engine into an error, so that one bad file does not take the process down.
pub fn guarded<T>(call: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(|words| (*words).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no reason given".into());
        Err(EngineError(format!("it panicked: {words}")))
    })
}
