//! A face laid straight becomes numbers: SFace, or any network like it that the manifest describes.
//!
//! [`Sface`] owns its network and is owned by the [`super::Watch`]; nothing is kept from one face to the next, so after
//! a failure the next one may be tried.

use std::path::Path;

use super::{CROP_SIDE, EmbedFace};
use crate::models::{Colours, FaceFacts};
use crate::remember::embed::Identity;
use crate::see::Rgb;
use crate::see::infer::{Engine, InferError, Network, Tensor};

/// A face model, loaded.
pub struct Sface {
    name: String,
    identity: Identity,
    network: Box<dyn Network>,
    facts: FaceFacts,
    input: String,
    output: String,
}

impl std::fmt::Debug for Sface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sface").field("name", &self.name).field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Sface {
    /// Loads the network and runs it once, so that a wrong file shows itself now and the first face is not slow.
    ///
    /// `identity`: what its vectors are known by; `facts`: how it is used. Blocks for tenths of a second.
    ///
    /// # Errors
    /// [`InferError::Load`] when the file is no network that makes `facts.dimension` numbers of a face.
    pub fn load(engine: &Engine, identity: Identity, facts: &FaceFacts, weights: &Path) -> Result<Self, InferError> {
        let network = engine.load(weights)?;
        let refuse = |why: String| InferError::Load { path: weights.display().to_string(), why };
        let ([input], [output]) = (network.inputs(), network.outputs()) else {
            let (inputs, outputs) = (network.inputs().len(), network.outputs().len());
            return Err(refuse(format!(
                "a face model has one input and one output, and this has {inputs} and {outputs}"
            )));
        };
        let (input, output) = (input.clone(), output.clone());
        let name = format!("{} ({})", identity.model, engine.name());
        let mut sface = Self { name, identity, network, facts: facts.clone(), input, output };
        // A slope of grey: a picture of one colour has no vector in some networks.
        let pixels = (0..CROP_SIDE * CROP_SIDE).flat_map(|index| [(index % CROP_SIDE * 2) as u8; 3]).collect();
        sface.embed(&Rgb { width: CROP_SIDE, height: CROP_SIDE, pixels }).map_err(|error| match error {
            InferError::Run { why, .. } => refuse(format!("it does not work as a face model: {why}")),
            other => other,
        })?;
        Ok(sface)
    }

    /// Which model, and by which engine, as in "sface-2021dec (onnxruntime)".
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, why: String) -> InferError {
        InferError::Run { name: self.name.clone(), why }
    }
}

impl EmbedFace for Sface {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn embed(&mut self, crop: &Rgb) -> Result<Vec<f32>, InferError> {
        let tensor = tensor(crop, &self.facts)?;
        let mut answer = self.network.run(&[(&self.input, &tensor)])?;
        let answer = answer.remove(&self.output).ok_or_else(|| self.failed(format!("it gave no {}", self.output)))?;
        unit(answer.values(), self.facts.dimension).map_err(|why| self.failed(why))
    }
}

/// The face as (1, 3, 112, 112), its colours in the model's order and on its scale.
fn tensor(crop: &Rgb, facts: &FaceFacts) -> Result<Tensor, InferError> {
    if (crop.width, crop.height) != (CROP_SIDE, CROP_SIDE) || !crop.is_whole() {
        let (width, height) = (crop.width, crop.height);
        let why = format!("a face is {CROP_SIDE} pixels wide and high, and this is {width} × {height}");
        return Err(InferError::Input { why });
    }
    let order = match facts.colours {
        Colours::Rgb => [0, 1, 2],
        Colours::Bgr => [2, 1, 0],
    };
    let value = |pixel: &[u8], from: usize| (f32::from(pixel[from]) - facts.mean) * facts.scale;
    let plane = |from: usize| crop.pixels.chunks_exact(3).map(move |pixel| value(pixel, from));
    let values = order.into_iter().flat_map(plane).collect();
    Tensor::new(vec![1, 3, CROP_SIDE as usize, CROP_SIDE as usize], values)
}

/// The numbers, brought to length 1.
fn unit(numbers: &[f32], dimension: usize) -> Result<Vec<f32>, String> {
    if numbers.len() != dimension {
        return Err(format!("it gave {} numbers instead of {dimension}", numbers.len()));
    }
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::EPSILON {
        return Err(format!("a vector has the length {length}; the weights may be broken"));
    }
    Ok(numbers.iter().map(|number| number / length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::FaceGates;

    fn facts(colours: Colours, scale: f32, mean: f32) -> FaceFacts {
        let gates = FaceGates { greet: 0.35, ask: 0.25, margin: 0.05 };
        FaceFacts { dimension: 2, colours, scale, mean, preprocessing: 1, gates }
    }

    fn crop() -> Rgb {
        Rgb { width: 112, height: 112, pixels: [10, 20, 30].repeat(112 * 112) }
    }

    #[test]
    fn colours_come_in_the_models_order_and_on_its_scale() {
        let first = |facts: &FaceFacts| {
            let tensor = tensor(&crop(), facts).unwrap();
            [0, 1, 2].map(|channel| tensor.values()[channel * 112 * 112])
        };
        assert_eq!(first(&facts(Colours::Rgb, 1.0, 0.0)), [10.0, 20.0, 30.0]);
        assert_eq!(first(&facts(Colours::Bgr, 0.5, 20.0)), [5.0, 0.0, -5.0]);
    }

    #[test]
    fn a_picture_of_another_size_is_no_face() {
        let small = Rgb { width: 96, height: 112, pixels: vec![0; 96 * 112 * 3] };
        assert!(matches!(tensor(&small, &facts(Colours::Rgb, 1.0, 0.0)), Err(InferError::Input { .. })));
        let torn = Rgb { pixels: vec![0; 7], ..crop() };
        assert!(matches!(tensor(&torn, &facts(Colours::Rgb, 1.0, 0.0)), Err(InferError::Input { .. })));
    }

    #[test]
    fn only_a_whole_vector_of_numbers_is_handed_out() {
        assert_eq!(unit(&[3.0, 4.0], 2).unwrap(), [0.6, 0.8]);
        assert!(unit(&[3.0], 2).unwrap_err().contains("1 numbers instead of 2"));
        assert!(unit(&[0.0, 0.0], 2).is_err() && unit(&[f32::NAN, 1.0], 2).is_err());
        assert!(unit(&[f32::INFINITY, 1.0], 2).is_err());
    }
}
