//! Faces: found in a picture, laid straight, turned into numbers, and followed from picture to picture.
//!
//! [`super::eye::Eye`] owns the one [`Watch`], which asks [`FindFaces`] and [`EmbedFace`] when they are due and gives a
//! [`Face`] for each face of a picture. Whose face it is, is decided elsewhere. Nothing here can die: what fails is an
//! error of that picture, and the next one is looked at again.

pub mod align;
pub mod quality;
mod sface;
pub mod stand_in;
pub mod track;
mod watch;
mod yunet;

pub use quality::Quality;
pub use sface::Sface;
pub use watch::{FaceReport, Glimpse, Watch};
pub use yunet::{MOST_FACES, Yunet};

use super::Rgb;
use super::infer::InferError;
use crate::remember::embed::Identity;

/// Numbers in a face's vector.
pub const DIMENSION: usize = 128;
/// Side of the square that a face is laid straight in, in pixels. From the face model's training.
pub const CROP_SIDE: u32 = 112;

/// A face in one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Face {
    /// Left, top, right, bottom in 0…1 of the picture; may exceed it where the picture's edge cuts the face.
    pub place: [f32; 4],
    /// Right eye, left eye, nose, right and left corner of the mouth (the person's own right and left), in 0…1 of the
    /// picture; may exceed it likewise.
    pub landmarks: [[f32; 2]; 5],
    /// How sure the detector is that it is a face, 0…1. It says nothing about how well the face can be recognised: see
    /// [`Face::quality`].
    pub score: f32,
    /// The same number while this face is followed without a break; never reused while the process lives, which has one
    /// eye. A new one where it may be another face.
    pub track: u32,
    pub quality: Quality,
    /// [`DIMENSION`] numbers of length 1; `None` where the face was not embedded in this picture: too poor
    /// ([`Quality::usable`]), embedded less than a second ago, or without a face model.
    pub vector: Option<Vec<f32>>,
}

/// A face as a detector gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// As [`Face::place`].
    pub place: [f32; 4],
    /// As [`Face::landmarks`].
    pub landmarks: [[f32; 2]; 5],
    /// As [`Face::score`].
    pub score: f32,
}

/// Finds faces in a picture. Blocks; one owner.
pub trait FindFaces: Send {
    /// Which model finds them, and by which engine, as in "yunet-s-dynamic (onnxruntime)".
    fn name(&self) -> String;

    /// The faces, best first.
    ///
    /// # Errors
    /// [`InferError`] when the engine fails or the picture is none.
    fn find(&mut self, picture: &Rgb) -> Result<Vec<Found>, InferError>;
}

/// Turns a face into numbers. Blocks; one owner.
pub trait EmbedFace: Send {
    /// Which model, weights and preprocessing the vectors come from; vectors of different identities never meet.
    fn identity(&self) -> &Identity;

    /// The unit vector of a face that was laid straight, [`CROP_SIDE`] pixels wide and high.
    ///
    /// # Errors
    /// [`InferError`] when the engine fails or the crop has another size.
    fn embed(&mut self, crop: &Rgb) -> Result<Vec<f32>, InferError>;
}
