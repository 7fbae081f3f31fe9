//! Finding objects with YOLOX-nano: 80 everyday things, on a square of 416 pixels.
//!
//! [`Yolox`] owns its network and is owned by the daemon's seeing thread; nothing is kept from one picture to the next,
//! so after a failure the next picture may be tried. [`prepare`] lays the picture out as the network was trained,
//! [`decode`] reads its answer.
//!
//! The recipe is that of the published network (YOLOX 0.1.1 on; earlier weights wanted normalised colours): blue, green
//! and red from 0 to 255, unnormalised, in the top left of a grey square.

mod decode;
mod prepare;

use std::path::Path;

use super::infer::{Engine, InferError, Network, Tensor};
use super::{Detect, Detection, Rgb};

/// Side of the network's square, in pixels.
const SIDE: usize = 416;
/// The labels of COCO in the network's order, one a line.
const LABELS: &str = include_str!("coco.txt");
/// The largest picture that is looked at, in pixels: 12 megapixels as cameras count them (4056 × 3040 are 12.3 million).
pub const MOST_PIXELS: u64 = 12_500_000;

/// YOLOX-nano, loaded.
pub struct Yolox {
    name: String,
    network: Box<dyn Network>,
    labels: Vec<&'static str>,
    input: String,
    output: String,
}

impl std::fmt::Debug for Yolox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yolox").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Yolox {
    /// Loads the network and runs it once, so that a wrong file shows itself now and the first picture is not slow.
    ///
    /// `model`: its name, as in "yolox-nano". Blocks for a third of a second.
    ///
    /// # Errors
    /// [`InferError::Load`] when the file is no YOLOX for 80 objects on 416 × 416 pixels.
    pub fn load(engine: &Engine, model: &str, weights: &Path) -> Result<Self, InferError> {
        let network = engine.load(weights)?;
        let refuse = |why: String| InferError::Load { path: weights.display().to_string(), why };
        let ([input], [output]) = (network.inputs(), network.outputs()) else {
            let (inputs, outputs) = (network.inputs().len(), network.outputs().len());
            return Err(refuse(format!(
                "a detector has one input and one output, and this has {inputs} and {outputs}"
            )));
        };
        let (input, output) = (input.clone(), output.clone());
        let name = format!("{model} ({})", engine.name());
        let mut yolox = Self { name, network, labels: LABELS.lines().collect(), input, output };
        let grey = Rgb { width: 1, height: 1, pixels: vec![114; 3] };
        yolox.detect(&grey).map_err(|error| match error {
            InferError::Run { why, .. } => refuse(format!("it does not work as a detector: {why}")),
            other => other,
        })?;
        Ok(yolox)
    }

    fn run(&mut self, square: &Tensor) -> Result<Tensor, InferError> {
        let mut answer = self.network.run(&[(&self.input, square)])?;
        answer.remove(&self.output).ok_or_else(|| self.failed(format!("it gave no {}", self.output)))
    }

    fn failed(&self, why: String) -> InferError {
        InferError::Run { name: self.name.clone(), why }
    }
}

impl Detect for Yolox {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// # Errors
    /// [`InferError::Input`] for a picture without pixels, with more than [`MOST_PIXELS`], or whose bytes do not fill
    /// it; [`InferError::Run`] when the engine fails.
    fn detect(&mut self, picture: &Rgb) -> Result<Vec<Detection>, InferError> {
        check(picture)?;
        let (square, scale) = prepare::square(picture)?;
        let answer = self.run(&square)?;
        decode::detections(&answer, &self.labels, scale, picture).map_err(|why| self.failed(why))
    }
}

fn check(picture: &Rgb) -> Result<(), InferError> {
    let (width, height) = (picture.width, picture.height);
    let pixels = u64::from(width) * u64::from(height);
    let wrong = |why: String| Err(InferError::Input { why });
    if pixels == 0 || pixels > MOST_PIXELS {
        return wrong(format!("a picture has from 1 to {MOST_PIXELS} pixels, and this one is {width} × {height}"));
    }
    if picture.pixels.len() as u64 != 3 * pixels {
        let bytes = picture.pixels.len();
        return wrong(format!("a picture of {width} × {height} has {} bytes, and this one {bytes}", 3 * pixels));
    }
    Ok(())
}
