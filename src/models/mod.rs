//! Every weight file: where it comes from, its hash, where it is kept, how it is loaded.
//!
//! `models/manifest.toml` names the models, [`manifest`] reads it. A [`Library`] knows the folder they are kept in:
//! [`Library::text`], [`Library::speech`], [`Library::voice_activity`], [`Library::detector`],
//! [`Library::face_detector`], [`Library::face`], [`Library::image`] and [`Library::runtime`] give what is in use (the
//! robot goes on without the last five), [`Library::fetch`] brings what is missing (mirror, then hub, then the Python
//! registry), [`Library::list`] and [`Library::verify`] tell what is there. Anybody may ask; a library holds no connection and no open file, only paths.
//!
//! Nothing is used or kept under its final name that does not have the manifest's size and SHA-256. When a fetch dies,
//! a `.part` file stays behind and the next fetch goes on from there; two fetches at once wait for each other.

mod download;
mod error;
mod faces;
mod fetch;
mod library;
pub mod manifest;
mod mirror;
mod part;
mod progress;
mod record;
mod registry;
mod sources;

pub use error::{ModelError, SourceError};
pub use faces::{Colours, FaceDetectorFacts, FaceDetectorModel, FaceFacts, FaceGates, FaceModel};
pub use fetch::{Failure, FetchReport, Fetched, Wanted};
pub use library::{
    DetectorModel, ImageModel, Library, Row, RuntimeLibrary, SpeechModel, State, TextModel, VoiceActivityModel,
};
pub use manifest::{ImageFacts, Manifest, Pooling, Role};
pub use progress::{Bars, Progress, Silent};
pub use sources::{Mirror, Sources, Token};
