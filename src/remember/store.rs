//! The shard.

/// stub
#[derive(Clone)]
pub struct Memory;
/// stub
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct MemoryError;
/// stub
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct OpenError;
