//! The models of faces: what the manifest says of them, and which are in use.

use std::path::PathBuf;

use serde::Deserialize;

use super::ModelError;
use super::library::{Library, unsound};
use super::manifest::{Part, Role, check_gate};
use crate::remember::embed::Identity;

/// The network's sides are multiples of this, in pixels.
const MULTIPLE: u32 = 32;
/// No picture that is looked at is larger, in pixels.
const LARGEST_SIDE: u32 = 1280;
/// More numbers than any face model gives.
const LARGEST_DIMENSION: usize = 4096;

/// How a network that finds faces is used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceDetectorFacts {
    /// The longer side that pictures are shrunk to where they are larger, in pixels.
    pub side: u32,
    /// Whether the network takes only squares of that side.
    pub fixed: bool,
}

/// How a face model is used: what it wants of a face laid straight, 112 × 112 pixels, and what its likenesses mean.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceFacts {
    /// Numbers in a vector.
    pub dimension: usize,
    /// The order of its colours.
    pub colours: Colours,
    /// Each colour, 0 to 255, less `mean`, times `scale`.
    pub scale: f32,
    pub mean: f32,
    /// Counts up when any of this, or how a face is laid straight, changes.
    pub preprocessing: u32,
    pub gates: FaceGates,
}

/// The order of a network's colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Colours {
    Rgb,
    Bgr,
}

/// From which likeness (cosine) on a face is somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceGates {
    /// At or over this it is that person, who may be greeted by name.
    pub greet: f32,
    /// Under this it is nobody that is known, who may be asked; between the two one waits.
    pub ask: f32,
    /// The nearest person must be nearer than the next one by so much.
    pub margin: f32,
}

/// The model that finds faces.
#[derive(Clone, Debug)]
pub struct FaceDetectorModel {
    pub name: String,
    /// YuNet as ONNX.
    pub weights: PathBuf,
    pub facts: FaceDetectorFacts,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The face model in use.
#[derive(Clone, Debug)]
pub struct FaceModel {
    pub name: String,
    /// SFace, or a network that is used alike, as ONNX.
    pub weights: PathBuf,
    /// How it is used, with the gates of its likenesses.
    pub facts: FaceFacts,
    /// To be written beside every shard.
    pub identity: Identity,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

impl FaceDetectorFacts {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.side == 0 || !self.side.is_multiple_of(MULTIPLE) || self.side > LARGEST_SIDE {
            return Err(format!("side must be a multiple of {MULTIPLE} up to {LARGEST_SIDE}"));
        }
        Ok(())
    }
}

impl FaceFacts {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=LARGEST_DIMENSION).contains(&self.dimension) {
            return Err(format!("dimension must be from 1 to {LARGEST_DIMENSION}"));
        }
        if !(self.mean.is_finite() && self.scale.is_finite() && self.scale > 0.0) {
            return Err("mean and scale must be numbers, scale over 0".into());
        }
        let FaceGates { greet, ask, margin } = self.gates;
        [greet, ask, margin].into_iter().try_for_each(check_gate)?;
        if ask > greet {
            return Err("the gate to ask is not over the gate to greet: nobody is known and asked at once".into());
        }
        Ok(())
    }
}

impl Library {
    /// The model that finds faces; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when none can be used: the robot goes on without.
    pub fn face_detector(&self) -> Result<FaceDetectorModel, ModelError> {
        let (model, in_use) = self.choose(Role::FaceDetector)?;
        let facts = model.face_detector.clone().ok_or_else(|| unsound(model))?;
        let weights = self.path(model, Part::Weights)?;
        Ok(FaceDetectorModel { name: model.name.clone(), weights, facts, in_use })
    }

    /// The model that tells faces apart; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when none can be used: the robot goes on without.
    pub fn face(&self) -> Result<FaceModel, ModelError> {
        let (model, in_use) = self.choose(Role::Face)?;
        let facts = model.face.clone().ok_or_else(|| unsound(model))?;
        let file = model.file(Part::Weights).ok_or_else(|| unsound(model))?;
        let identity = Identity {
            model: model.name.clone(),
            weights: file.sha256.clone(),
            preprocessing: facts.preprocessing,
            dimension: facts.dimension,
        };
        let weights = self.path(model, Part::Weights)?;
        Ok(FaceModel { name: model.name.clone(), weights, facts, identity, in_use })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> FaceFacts {
        let gates = FaceGates { greet: 0.35, ask: 0.25, margin: 0.05 };
        FaceFacts { dimension: 128, colours: Colours::Rgb, scale: 1.0, mean: 0.0, preprocessing: 1, gates }
    }

    #[test]
    fn gates_that_would_greet_and_ask_at_once_and_numbers_that_are_none_are_refused() {
        assert_eq!(facts().check(), Ok(()));
        let mut wrong = facts();
        wrong.gates.ask = 0.4;
        assert!(wrong.check().unwrap_err().contains("at once"));
        wrong.gates.ask = f32::NAN;
        assert!(wrong.check().is_err());
        assert!(FaceFacts { dimension: 0, ..facts() }.check().is_err());
        assert!(FaceFacts { scale: 0.0, ..facts() }.check().is_err());
    }

    #[test]
    fn a_side_that_the_network_cannot_have_is_refused() {
        assert_eq!(FaceDetectorFacts { side: 640, fixed: false }.check(), Ok(()));
        for side in [0, 100, 1312] {
            assert!(FaceDetectorFacts { side, fixed: true }.check().is_err(), "{side}");
        }
    }
}
