//! Voice activity: how likely each 32 ms of sound is speech. Silero VAD v5 at 16 kHz, in plain Rust.
//!
//! The listening thread owns one [`Vad`] for its stream; it keeps 64 samples of context and the LSTM's state, and
//! touches no file after loading. When it fails, the stream is deaf and the caller says so. A frame takes 0.31 ms of
//! one x86 core in a development build (`tests/house/hearing.rs` prints it); on the robot: not measured.
//!
//! The model, from the graph of its ONNX file: 64 samples of context and 512 new ones, 64 more by reflection, a
//! windowed Fourier transform as a convolution (258 rows of 256, step 128: four columns), its magnitude, four
//! convolutions with ReLU, one LSTM step, and a sigmoid over one weighted sum.

mod weights;

use std::path::Path;

pub use weights::VadError;
use weights::{Convolution, Weights};

use super::FRAME;

/// Samples of the frame before that the model sees again.
const CONTEXT: usize = 64;
/// Samples added at the end by reflection.
const REFLECTED: usize = 64;
/// Length and step of one Fourier window, in samples.
const WINDOW: usize = 256;
const STEP: usize = 128;
/// Columns that one frame gives: (64 + 512 + 64 − 256) / 128 + 1.
const COLUMNS: usize = 4;
/// Frequencies of one window: 256 / 2 + 1.
const BINS: usize = 129;
/// Width of the LSTM and of what goes into it.
const STATE: usize = 128;

/// The model and the state of one stream.
pub struct Vad {
    weights: Weights,
    context: [f32; CONTEXT],
    hidden: Vec<f32>,
    cell: Vec<f32>,
    /// Buffers of one step, kept so that a frame allocates nothing.
    patch: Vec<f32>,
    rows: [Vec<f32>; 2],
}

impl Vad {
    /// Reads the model from `silero_vad_16k_op15.onnx`.
    ///
    /// # Errors
    /// [`VadError`], naming the file and what in it is missing or has another shape.
    pub fn load(path: &Path) -> Result<Self, VadError> {
        Weights::load(path).map(Self::with)
    }

    /// The same from bytes in memory.
    ///
    /// # Errors
    /// As [`Vad::load`], without a file's name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VadError> {
        Weights::decode(bytes).map(Self::with)
    }

    fn with(weights: Weights) -> Self {
        Self {
            weights,
            context: [0.0; CONTEXT],
            hidden: vec![0.0; STATE],
            cell: vec![0.0; STATE],
            patch: Vec::with_capacity(BINS * 3),
            rows: [Vec::with_capacity(COLUMNS * BINS), Vec::with_capacity(COLUMNS * STATE)],
        }
    }

    /// Probability (0…1) that there is speech in `frame`, the stream's next [`FRAME`] samples at 16 kHz in −1…1.
    ///
    /// # Errors
    /// [`VadError::FrameLength`] for another number of samples; [`VadError::NoNumber`] when the result is no number,
    /// after which the stream starts anew.
    pub fn probability(&mut self, frame: &[f32]) -> Result<f32, VadError> {
        if frame.len() != FRAME {
            return Err(VadError::FrameLength { found: frame.len() });
        }
        self.spectrum(frame);
        for convolution in &self.weights.encoder {
            let [from, to] = &mut self.rows;
            convolve(convolution, from, to, &mut self.patch);
            self.rows.swap(0, 1);
        }
        self.step();
        let sum: f32 = self.hidden.iter().zip(&self.weights.out).map(|(hidden, weight)| hidden.max(0.0) * weight).sum();
        let probability = 1.0 / (1.0 + (-(sum + self.weights.out_bias)).exp());
        self.context.copy_from_slice(&frame[FRAME - CONTEXT..]);
        if probability.is_finite() {
            Ok(probability)
        } else {
            self.reset();
            Err(VadError::NoNumber)
        }
    }

    /// Forgets the stream so far.
    pub fn reset(&mut self) {
        self.context.fill(0.0);
        self.hidden.fill(0.0);
        self.cell.fill(0.0);
    }

    /// Magnitudes of the four columns, as rows[0]: column by column, 129 values each.
    fn spectrum(&mut self, frame: &[f32]) {
        let mut signal = [0.0; CONTEXT + FRAME + REFLECTED];
        signal[..CONTEXT].copy_from_slice(&self.context);
        signal[CONTEXT..CONTEXT + FRAME].copy_from_slice(frame);
        for (to, from) in signal[CONTEXT + FRAME..].iter_mut().zip(frame.iter().rev().skip(1)) {
            *to = *from;
        }
        let (real, imaginary) = self.weights.fourier.split_at(BINS * WINDOW);
        let magnitudes = &mut self.rows[0];
        magnitudes.clear();
        for column in signal.windows(WINDOW).step_by(STEP) {
            for (real, imaginary) in real.chunks_exact(WINDOW).zip(imaginary.chunks_exact(WINDOW)) {
                let (real, imaginary) = (dot(real, column), dot(imaginary, column));
                magnitudes.push((real * real + imaginary * imaginary).sqrt());
            }
        }
    }

    /// One LSTM step over rows[0], gates in the order input, forget, cell, output.
    fn step(&mut self) {
        let Weights { input, recurrent, bias, .. } = &self.weights;
        let [encoded, gates] = &mut self.rows;
        let hidden = &self.hidden;
        gates.clear();
        let rows = input.chunks_exact(STATE).zip(recurrent.chunks_exact(STATE)).zip(bias);
        gates.extend(rows.map(|((input, recurrent), bias)| dot(input, encoded) + dot(recurrent, hidden) + bias));
        let (first, second) = gates.split_at(2 * STATE);
        let gates = first.iter().zip(&first[STATE..]).zip(second.iter().zip(&second[STATE..]));
        for (((input, forget), (new, output)), (cell, hidden)) in gates.zip(self.cell.iter_mut().zip(&mut self.hidden))
        {
            *cell = sigmoid(*forget) * *cell + sigmoid(*input) * new.tanh();
            *hidden = sigmoid(*output) * cell.tanh();
        }
    }
}

/// A convolution of width 3 with one zero at each side, and ReLU. Both sides lie column by column.
fn convolve(convolution: &Convolution, from: &[f32], to: &mut Vec<f32>, patch: &mut Vec<f32>) {
    let inputs = convolution.inputs;
    let columns = from.len() / inputs;
    to.clear();
    for centre in (0..columns).step_by(convolution.stride) {
        // The weights lie as [output][input][3], so the patch lies as [input][3].
        patch.clear();
        for input in 0..inputs {
            for tap in 0..3 {
                let column = (centre + tap).checked_sub(1).filter(|column| *column < columns);
                patch.push(column.map_or(0.0, |column| from[column * inputs + input]));
            }
        }
        let rows = convolution.weight.chunks_exact(inputs * 3).zip(&convolution.bias);
        to.extend(rows.map(|(row, bias)| (dot(row, patch) + bias).max(0.0)));
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The scalar product, in eight independent sums so that it runs on the processor's vector unit.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        let (Ok(a), Ok(b)) = (<&[f32; 8]>::try_from(a), <&[f32; 8]>::try_from(b)) else { continue };
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A model whose probability is 0.5, whatever it hears.
    pub fn model_of_zeros() -> Vad {
        Vad::with(Weights::zeros())
    }

    #[test]
    fn the_scalar_product_is_right_at_every_length() {
        for length in 0..40 {
            let a: Vec<f32> = (0..length).map(|n| n as f32).collect();
            let b: Vec<f32> = (0..length).map(|n| 0.5 - n as f32).collect();
            let plain: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((dot(&a, &b) - plain).abs() <= 1e-3 * plain.abs(), "{length}");
        }
    }

    #[test]
    fn a_convolution_pads_with_zeros_and_steps() {
        let mut to = Vec::new();
        let mut one = Convolution { weight: vec![1.0, 10.0, 100.0], bias: vec![0.5], inputs: 1, stride: 1 };
        convolve(&one, &[1.0, 2.0, 3.0, 4.0], &mut to, &mut Vec::new());
        assert_eq!(to, [210.5, 321.5, 432.5, 43.5]);
        one.stride = 2;
        convolve(&one, &[1.0, 2.0, 3.0, 4.0], &mut to, &mut Vec::new());
        assert_eq!(to, [210.5, 432.5]);
        one.bias = vec![-1000.0];
        convolve(&one, &[1.0], &mut to, &mut Vec::new());
        assert_eq!(to, [0.0], "ReLU");
    }

    #[test]
    fn a_frame_of_another_length_is_refused() {
        let mut vad = Vad::with(Weights::zeros());
        assert!(matches!(vad.probability(&[0.0; 511]), Err(VadError::FrameLength { found: 511 })));
        assert_eq!(vad.probability(&[0.0; FRAME]).unwrap(), 0.5, "weights of zero say nothing");
    }

    #[test]
    fn a_result_that_is_no_number_is_an_error_and_not_silence() {
        let mut vad = Vad::with(Weights::zeros());
        vad.weights.out_bias = f32::NAN;
        assert!(matches!(vad.probability(&[0.0; FRAME]), Err(VadError::NoNumber)));
    }
}
