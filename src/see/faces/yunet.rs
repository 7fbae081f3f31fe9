//! Finding faces with YuNet, with five landmarks each.
//!
//! [`Yunet`] owns its network and is owned by the [`super::Watch`]; nothing is kept from one picture to the next, so
//! after a failure the next picture may be tried. [`decode`] reads the network's answer.
//!
//! The recipe is that of the published network: blue, green and red from 0 to 255, the picture in the top left, zeros
//! to the right and below up to a multiple of 32 pixels.

mod decode;

use std::path::Path;

use self::decode::Answer;
pub use self::decode::MOST_FACES;
use super::{FindFaces, Found};
use crate::models::FaceDetectorFacts;
use crate::see::Rgb;
use crate::see::infer::{Engine, InferError, Network, Tensor};
use crate::see::picture::MOST_PIXELS;

/// The network's sides are multiples of this.
const MULTIPLE: u32 = 32;

/// YuNet, loaded.
pub struct Yunet {
    name: String,
    network: Box<dyn Network>,
    facts: FaceDetectorFacts,
    input: String,
}

impl std::fmt::Debug for Yunet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yunet").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Yunet {
    /// Loads the network and runs it once, so that a wrong file shows itself now and the first picture is not slow.
    ///
    /// `model`: its name, as in "yunet-s-dynamic". Blocks for tenths of a second.
    ///
    /// # Errors
    /// [`InferError::Load`] when the file is no YuNet, or does not take pictures of the size that `facts` name.
    pub fn load(engine: &Engine, model: &str, facts: &FaceDetectorFacts, weights: &Path) -> Result<Self, InferError> {
        let network = engine.load(weights)?;
        let refuse = |why: String| InferError::Load { path: weights.display().to_string(), why };
        let [input] = network.inputs() else {
            let inputs = network.inputs().len();
            return Err(refuse(format!("a face detector has one input, and this has {inputs}")));
        };
        let input = input.clone();
        let name = format!("{model} ({})", engine.name());
        let mut yunet = Self { name, network, facts: facts.clone(), input };
        let grey = Rgb { width: MULTIPLE, height: MULTIPLE, pixels: vec![114; (MULTIPLE * MULTIPLE * 3) as usize] };
        yunet.find(&grey).map_err(|error| match error {
            InferError::Run { why, .. } => refuse(format!("it does not work as a face detector: {why}")),
            other => other,
        })?;
        Ok(yunet)
    }
}

impl FindFaces for Yunet {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// # Errors
    /// [`InferError::Input`] for a picture without pixels or with too many; [`InferError::Run`] when the engine fails.
    fn find(&mut self, picture: &Rgb) -> Result<Vec<Found>, InferError> {
        let (width, height) = (picture.width, picture.height);
        if !picture.is_whole() || u64::from(width) * u64::from(height) > MOST_PIXELS {
            let bytes = picture.pixels.len();
            let why = format!("a picture of {width} × {height} with {bytes} bytes is none, or is too large");
            return Err(InferError::Input { why });
        }
        let prepared = prepare(picture, &self.facts)?;
        let answer = self.network.run(&[(&self.input, &prepared.tensor)])?;
        let answer = Answer { outputs: &answer, columns: prepared.sides.0, rows: prepared.sides.1 };
        let name = &self.name;
        let found = answer.faces().map_err(|why| InferError::Run { name: name.clone(), why })?;
        let (across, down) = (prepared.fitted.0 as f32, prepared.fitted.1 as f32);
        Ok(found.into_iter().map(|face| face.divided(across, down)).collect())
    }
}

/// A picture as the network takes it.
struct Prepared {
    /// (1, 3, height, width).
    tensor: Tensor,
    /// Width and height of the whole tensor.
    sides: (usize, usize),
    /// Width and height of the picture in its top left.
    fitted: (u32, u32),
}

/// Shrinks a picture to the network's size, where it is larger, and lays it into the top left.
fn prepare(picture: &Rgb, facts: &FaceDetectorFacts) -> Result<Prepared, InferError> {
    let shrunk = if picture.width.max(picture.height) > facts.side {
        let (width, height) = picture.sides_within(facts.side);
        let scaled = picture.resized(width, height);
        Some(scaled.map_err(|fault| InferError::Input { why: fault.to_string() })?)
    } else {
        None
    };
    let fitted = shrunk.as_ref().unwrap_or(picture);
    let side = |side: u32| match facts.fixed {
        true => facts.side as usize,
        false => side.next_multiple_of(MULTIPLE) as usize,
    };
    let (columns, rows) = (side(fitted.width), side(fitted.height));
    let mut values = vec![0.0; 3 * columns * rows];
    for (channel, plane) in values.chunks_exact_mut(columns * rows).enumerate() {
        // The network wants blue first.
        let from = 2 - channel;
        let lines = fitted.pixels.chunks_exact(3 * fitted.width as usize);
        for (row, line) in plane.chunks_exact_mut(columns).zip(lines) {
            for (value, pixel) in row.iter_mut().zip(line.chunks_exact(3)) {
                *value = f32::from(pixel[from]);
            }
        }
    }
    let tensor = Tensor::new(vec![1, 3, rows, columns], values)?;
    Ok(Prepared { tensor, sides: (columns, rows), fitted: (fitted.width, fitted.height) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Rgb {
        Rgb { width, height, pixels: [10, 20, 30].repeat((width * height) as usize) }
    }

    #[test]
    fn a_small_picture_keeps_its_size_and_is_filled_up_with_zeros_to_a_multiple_of_32() {
        let prepared = prepare(&picture(100, 33), &FaceDetectorFacts { side: 640, fixed: false }).unwrap();
        assert_eq!(prepared.tensor.shape(), [1, 3, 64, 128]);
        assert_eq!((prepared.sides, prepared.fitted), ((128, 64), (100, 33)));
        let at = |channel: usize, x: usize, y: usize| prepared.tensor.values()[(channel * 64 + y) * 128 + x];
        assert_eq!([at(0, 99, 32), at(1, 0, 0), at(2, 5, 5)], [30.0, 20.0, 10.0], "blue first");
        assert_eq!([at(0, 100, 0), at(0, 0, 33)], [0.0, 0.0]);
    }

    #[test]
    fn a_camera_picture_is_halved_and_a_network_of_one_size_gets_its_square() {
        let dynamic = prepare(&picture(1280, 720), &FaceDetectorFacts { side: 640, fixed: false }).unwrap();
        assert_eq!((dynamic.tensor.shape(), dynamic.fitted), (&[1, 3, 384, 640][..], (640, 360)));
        let fixed = prepare(&picture(1280, 720), &FaceDetectorFacts { side: 320, fixed: true }).unwrap();
        assert_eq!((fixed.tensor.shape(), fixed.fitted), (&[1, 3, 320, 320][..], (320, 180)));
        let thread = prepare(&picture(5000, 1), &FaceDetectorFacts { side: 320, fixed: true }).unwrap();
        assert_eq!(thread.fitted, (320, 1));
    }
}
