//! Running a network from an ONNX file.

/// Why a network could not be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    #[error("the network {path} could not be loaded: {why}")]
    Load { path: String, why: String },
    #[error("the network {name} failed: {why}")]
    Run { name: String, why: String },
}
