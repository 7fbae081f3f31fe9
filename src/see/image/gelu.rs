//! GELU by the hyperbolic tangent, as SigLIP was trained with.
//!
//! candle's own runs on one thread and asks the C library for each tangent: a fifth of a picture's time. This one uses
//! `x / (1 + e^-2u)` with `u = √(2/π)·(x + 0.044715·x³)`, which is the same function, an exponential without branches
//! or calls, and every thread of the pool.

use candle_core::{CpuStorage, InplaceOp1, Layout, Result};
use rayon::prelude::*;

/// Numbers that one thread takes at a time; not measured.
const AT_ONCE: usize = 1 << 14;

/// `-2·√(2/π)·log₂e`: the exponent is counted in powers of two.
const LINEAR: f32 = -2.302_208_2;
/// The same times 0.044715.
const CUBIC: f32 = LINEAR * 0.044_715;

/// 1.5·2²³: a float of this size has no fraction, so adding it rounds, and its low bits are the whole number.
const ROUNDING: f32 = 12_582_912.0;

/// Applies the function in place to a contiguous tensor of 32-bit floats.
pub(super) struct Gelu;

impl InplaceOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu-in-place"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("gelu-in-place wants a contiguous tensor");
        };
        let CpuStorage::F32(numbers) = storage else {
            candle_core::bail!("gelu-in-place wants 32-bit floats");
        };
        numbers[start..end].par_chunks_mut(AT_ONCE).for_each(|numbers| {
            for number in numbers {
                *number = gelu(*number);
            }
        });
        Ok(())
    }
}

fn gelu(x: f32) -> f32 {
    x / (1.0 + power_of_two(x * (LINEAR + CUBIC * x * x)))
}

/// 2 to the `exponent`, to 2·10⁻⁷ of itself; a Taylor series of degree 6 on −½…½. Beyond ±126 it stays where it is:
/// there [`gelu`] is `x` or 0 to the last bit of a float.
fn power_of_two(exponent: f32) -> f32 {
    let exponent = exponent.clamp(-126.0, 126.0);
    let shifted = exponent + ROUNDING;
    let rest = exponent - (shifted - ROUNDING);
    let mut power = 1.540_353e-4;
    for coefficient in [1.333_355_8e-3, 9.618_129e-3, 5.550_411e-2, 2.402_265e-1, 6.931_472e-1, 1.0] {
        power = power * rest + coefficient;
    }
    let whole = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    power * f32::from_bits(whole.wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn agrees_with_the_formula_everywhere() {
        let mut worst = 0.0_f64;
        for step in -200_000..=200_000 {
            let x = step as f32 * 1e-4;
            let wide = f64::from(x);
            let expected =
                0.5 * wide * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044_715 * wide.powi(3))).tanh());
            worst = worst.max((f64::from(gelu(x)) - expected).abs() / wide.abs().max(1.0));
        }
        assert!(worst < 5e-7, "{worst}");
        assert_eq!(gelu(1e6), 1e6);
        assert!(gelu(-1e6).abs() < 1e-30);
    }

    #[test]
    fn what_is_no_number_stays_none() {
        assert!(gelu(f32::NAN).is_nan());
        assert!(!gelu(f32::INFINITY).is_finite());
    }

    #[test]
    fn a_tensor_is_changed_in_place_and_only_where_it_is_one_piece() {
        let tensor = Tensor::from_vec(vec![-1.0_f32, 0.0, 1.0, 2.0], (2, 2), &Device::Cpu).unwrap();
        assert!(tensor.t().unwrap().inplace_op1(&Gelu).is_err());
        tensor.inplace_op1(&Gelu).unwrap();
        let expected = [-0.158_808, 0.0, 0.841_192, 1.954_598];
        for (number, expected) in tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap().iter().zip(expected) {
            assert!((number - expected).abs() < 1e-5, "{number} {expected}");
        }
    }
}
