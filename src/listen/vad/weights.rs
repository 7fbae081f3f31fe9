//! The voice-activity model's weights, out of its ONNX file.
//!
//! Only the fields of the ONNX format (onnx.proto3, field numbers beside each) that hold named tensors are read. A
//! tensor that is missing, has another shape or holds something else than finite 32-bit floats is refused.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use prost::Message;
use thiserror::Error;

use super::{BINS, STATE, WINDOW};
use crate::listen::FRAME;

/// Why there is no voice-activity model, or no probability.
#[derive(Debug, Error)]
pub enum VadError {
    #[error("the voice-activity model {} cannot be read: {source}; `reachy-remembers models fetch` gets it", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: Box<VadError> },
    #[error("this is no ONNX file ({0}); `reachy-remembers models verify` checks it")]
    NoModel(prost::DecodeError),
    #[error("the voice-activity model has no tensor `{name}`; silero_vad_16k_op15.onnx is needed")]
    Missing { name: String },
    #[error("the tensor `{name}` has the shape {found:?}, not {wanted:?}; silero_vad_16k_op15.onnx is needed")]
    Shape { name: String, found: Vec<i64>, wanted: Vec<i64> },
    #[error(
        "the tensor `{name}` does not hold {wanted} finite 32-bit floats; `reachy-remembers models verify` checks the file"
    )]
    Content { name: String, wanted: usize },
    #[error("a frame has {FRAME} samples, not {found}")]
    FrameLength { found: usize },
    #[error("the voice-activity model gave no number; its stream starts anew")]
    NoNumber,
}

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<Tensor>,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(float, repeated, tag = "4")]
    float_data: Vec<f32>,
    #[prost(string, tag = "8")]
    name: String,
    /// Little-endian; used instead of `float_data`.
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

/// `TensorProto.DataType.FLOAT`.
const FLOAT: i32 = 1;

/// One convolution of width 3 and padding 1.
pub(super) struct Convolution {
    /// [outputs][inputs][3].
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub inputs: usize,
    pub stride: usize,
}

pub(super) struct Weights {
    /// [258][256]: 129 rows of cosines, 129 of sines.
    pub fourier: Vec<f32>,
    pub encoder: [Convolution; 4],
    /// [512][128], over the encoder's output.
    pub input: Vec<f32>,
    /// [512][128], over the hidden state.
    pub recurrent: Vec<f32>,
    /// [512]; the file's two biases are only ever added.
    pub bias: Vec<f32>,
    pub out: Vec<f32>,
    pub out_bias: f32,
}

/// Outputs, inputs and stride of the encoder's convolutions.
const ENCODER: [(usize, usize, usize); 4] = [(128, BINS, 1), (64, 128, 2), (64, 64, 2), (STATE, 64, 1)];

impl Weights {
    pub fn load(path: &Path) -> Result<Self, VadError> {
        let bytes = std::fs::read(path).map_err(|source| VadError::Unreadable { path: path.to_owned(), source })?;
        Self::decode(&bytes).map_err(|source| VadError::File { path: path.to_owned(), source: Box::new(source) })
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, VadError> {
        let model = Model::decode(bytes).map_err(VadError::NoModel)?;
        let tensors = model.graph.unwrap_or_default().initializer;
        let mut tensors: HashMap<String, Tensor> =
            tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        let mut take = |name: &str, shape: &[usize]| take(&mut tensors, name, shape);

        let fourier = take("model.stft.forward_basis_buffer", &[2 * BINS, 1, WINDOW])?;
        let mut convolution = |layer: usize| -> Result<Convolution, VadError> {
            let (outputs, inputs, stride) = ENCODER[layer];
            let name = format!("model.encoder.{layer}.reparam_conv");
            let weight = take(&format!("{name}.weight"), &[outputs, inputs, 3])?;
            let bias = take(&format!("{name}.bias"), &[outputs])?;
            Ok(Convolution { weight, bias, inputs, stride })
        };
        let encoder = [convolution(0)?, convolution(1)?, convolution(2)?, convolution(3)?];
        let input = take("model.decoder.rnn.weight_ih", &[4 * STATE, STATE])?;
        let recurrent = take("model.decoder.rnn.weight_hh", &[4 * STATE, STATE])?;
        let bias = take("model.decoder.rnn.bias_ih", &[4 * STATE])?;
        let second = take("model.decoder.rnn.bias_hh", &[4 * STATE])?;
        let bias = bias.iter().zip(&second).map(|(a, b)| a + b).collect();
        let out = take("model.decoder.decoder.2.weight", &[1, STATE, 1])?;
        let out_bias = take("model.decoder.decoder.2.bias", &[1])?[0];
        Ok(Self { fourier, encoder, input, recurrent, bias, out, out_bias })
    }
}

fn take(tensors: &mut HashMap<String, Tensor>, name: &str, shape: &[usize]) -> Result<Vec<f32>, VadError> {
    let tensor = tensors.remove(name).ok_or_else(|| VadError::Missing { name: name.to_owned() })?;
    let wanted: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
    if tensor.dims != wanted {
        return Err(VadError::Shape { name: name.to_owned(), found: tensor.dims, wanted });
    }
    let count = shape.iter().product();
    let values = if tensor.raw_data.is_empty() {
        tensor.float_data
    } else {
        let (words, rest) = tensor.raw_data.as_chunks::<4>();
        if rest.is_empty() { words.iter().map(|word| f32::from_le_bytes(*word)).collect() } else { Vec::new() }
    };
    if tensor.data_type != FLOAT || values.len() != count || !values.iter().all(|value| value.is_finite()) {
        return Err(VadError::Content { name: name.to_owned(), wanted: count });
    }
    Ok(values)
}

#[cfg(test)]
impl Weights {
    /// Weights of the right shapes that are all zero.
    pub fn zeros() -> Self {
        Self::decode(&tests::model(|_| ()).encode_to_vec()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, dims: &[i64]) -> Tensor {
        let count = dims.iter().product::<i64>() as usize;
        Tensor {
            dims: dims.to_vec(),
            data_type: FLOAT,
            name: name.into(),
            raw_data: vec![0; 4 * count],
            ..Tensor::default()
        }
    }

    /// A model of zeros, after `change`.
    pub(in crate::listen::vad) fn model(change: impl Fn(&mut Vec<Tensor>)) -> Model {
        let mut tensors = vec![
            tensor("model.stft.forward_basis_buffer", &[258, 1, 256]),
            tensor("model.decoder.rnn.weight_ih", &[512, 128]),
            tensor("model.decoder.rnn.weight_hh", &[512, 128]),
            tensor("model.decoder.rnn.bias_ih", &[512]),
            tensor("model.decoder.rnn.bias_hh", &[512]),
            tensor("model.decoder.decoder.2.weight", &[1, 128, 1]),
            tensor("model.decoder.decoder.2.bias", &[1]),
        ];
        for (layer, dims) in [[128, 129, 3], [64, 128, 3], [64, 64, 3], [128, 64, 3]].iter().enumerate() {
            tensors.push(tensor(&format!("model.encoder.{layer}.reparam_conv.weight"), dims));
            tensors.push(tensor(&format!("model.encoder.{layer}.reparam_conv.bias"), &dims[..1]));
        }
        change(&mut tensors);
        Model { graph: Some(Graph { initializer: tensors }) }
    }

    fn decoded(change: impl Fn(&mut Vec<Tensor>)) -> Result<Weights, VadError> {
        Weights::decode(&model(change).encode_to_vec())
    }

    #[test]
    fn a_model_of_the_right_shapes_is_taken() {
        assert!(decoded(|_| ()).is_ok());
    }

    #[test]
    fn every_missing_tensor_is_named() {
        let count = model(|_| ()).graph.unwrap().initializer.len();
        for gone in 0..count {
            let name = model(|_| ()).graph.unwrap().initializer[gone].name.clone();
            let error = decoded(|tensors| drop(tensors.remove(gone))).err().unwrap();
            assert!(matches!(error, VadError::Missing { name: missing } if missing == name));
        }
    }

    #[test]
    fn every_wrong_shape_is_refused() {
        let count = model(|_| ()).graph.unwrap().initializer.len();
        for wrong in 0..count {
            let error = decoded(|tensors| tensors[wrong].dims.push(1)).err().unwrap();
            assert!(matches!(error, VadError::Shape { .. }), "{error}");
        }
    }

    #[test]
    fn other_contents_than_finite_floats_are_refused() {
        let changes: [fn(&mut Tensor); 4] = [
            |tensor| tensor.data_type = 10,
            |tensor| tensor.raw_data.truncate(tensor.raw_data.len() - 1),
            |tensor| tensor.raw_data.truncate(8),
            |tensor| tensor.raw_data[..4].copy_from_slice(&f32::NAN.to_le_bytes()),
        ];
        for change in changes {
            let error = decoded(|tensors| change(&mut tensors[1])).err().unwrap();
            assert!(matches!(error, VadError::Content { .. }), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_model_is_refused() {
        assert!(Weights::decode(b"no model at all").is_err());
        assert!(matches!(Weights::decode(b""), Err(VadError::Missing { .. })));
        assert!(matches!(Weights::load(Path::new("/nowhere/vad.onnx")), Err(VadError::Unreadable { .. })));
    }
}
