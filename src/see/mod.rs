//! Seeing: pictures → change gate → detector → scene → a frame worth remembering.
//!
//! [`picture`] decodes and checks what the camera gave, [`gate`] says cheaply whether anything changed, [`detect`]
//! finds objects, [`scene`] keeps a stable idea of what is visible. [`image`] turns a picture into a vector. The
//! daemon's seeing thread owns one [`eye::Eye`]; when it dies, the robot is blind and says so.

pub mod detect;
pub mod eye;
pub mod faces;
pub mod gate;
pub mod image;
pub mod infer;
pub mod picture;
pub mod scene;
pub mod sight;
pub mod told;

use serde::{Deserialize, Serialize};

/// A decoded picture: red, green and blue, a byte each, row by row from the top left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rgb {
    pub width: u32,
    pub height: u32,
    /// `width * height * 3` bytes.
    pub pixels: Vec<u8>,
}

/// One object that the detector found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// In the detector's vocabulary: "cup", "person".
    pub label: String,
    /// How sure, 0…1.
    pub score: f32,
    /// Left, top, right, bottom in 0…1 of the picture.
    pub place: [f32; 4],
}

/// Finds objects in a picture. Blocks; one owner.
pub trait Detect: Send {
    /// Which model finds them, and by which engine, as in "yolox-nano (onnxruntime)".
    fn name(&self) -> String;

    /// The objects, best first. Scores from about 0.1 on are given; the scene decides what counts.
    ///
    /// # Errors
    /// [`infer::InferError`] when the engine fails.
    fn detect(&mut self, picture: &Rgb) -> Result<Vec<Detection>, infer::InferError>;
}

/// Turns pictures, and words about pictures, into vectors of one space.
pub trait EmbedImage: Send + Sync {
    /// Which model, weights and preprocessing the vectors come from.
    fn identity(&self) -> &crate::remember::embed::Identity;

    /// The unit vector of a picture.
    ///
    /// # Errors
    /// [`crate::remember::embed::EmbedError`].
    fn picture(&self, picture: &Rgb) -> Result<Vec<f32>, crate::remember::embed::EmbedError>;

    /// The unit vector of words, comparable with pictures.
    ///
    /// # Errors
    /// [`crate::remember::embed::EmbedError`].
    fn words(&self, words: &str) -> Result<Vec<f32>, crate::remember::embed::EmbedError>;
}
