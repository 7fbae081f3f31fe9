//! A picture as the network was trained on: shrunk or grown to fit, in the top left of a grey square.

use super::SIDE;
use crate::see::Rgb;
use crate::see::infer::{InferError, Tensor};

/// The grey around the picture, from the network's training.
const GREY: f32 = 114.0;

/// The square as (1, 3, 416, 416), blue, green, red, 0 to 255; and how many of its pixels are one of the picture's.
pub(super) fn square(picture: &Rgb) -> Result<(Tensor, f64), InferError> {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let side = SIDE as f64;
    let scale = (side / width as f64).min(side / height as f64);
    // A picture may be so long and thin that its short side would vanish.
    let fitted = |size: usize| ((size as f64 * scale) as usize).clamp(1, SIDE);
    let (columns, rows) = (steps(width, fitted(width)), steps(height, fitted(height)));

    let mut values = vec![GREY; 3 * SIDE * SIDE];
    for (channel, plane) in values.chunks_exact_mut(SIDE * SIDE).enumerate() {
        // The network wants blue first.
        let from = 2 - channel;
        let at = |x: usize, y: usize| picture.pixels.get((y * width + x) * 3 + from).copied().map_or(0.0, f32::from);
        for (line, row) in plane.chunks_exact_mut(SIDE).zip(&rows) {
            for (value, column) in line.iter_mut().zip(&columns) {
                let top = mix(at(column.first, row.first), at(column.second, row.first), column.share);
                let bottom = mix(at(column.first, row.second), at(column.second, row.second), column.share);
                // Whole numbers, as in a picture.
                *value = mix(top, bottom, row.share).round();
            }
        }
    }
    Ok((Tensor::new(vec![1, 3, SIDE, SIDE], values)?, scale))
}

/// Where a pixel of the square comes from along one side: between two pixels of the picture.
struct Step {
    first: usize,
    second: usize,
    /// How much of the second, 0…1.
    share: f32,
}

/// Bilinear resizing with pixel centres at the half, without smoothing before: what the network was trained with.
fn steps(from: usize, to: usize) -> Vec<Step> {
    let ratio = from as f64 / to as f64;
    let last = from - 1;
    let step = |place: usize| {
        let centre = ((place as f64 + 0.5) * ratio - 0.5).clamp(0.0, last as f64);
        let first = centre as usize;
        Step { first, second: (first + 1).min(last), share: (centre - first as f64) as f32 }
    };
    (0..to).map(step).collect()
}

fn mix(one: f32, other: f32, share: f32) -> f32 {
    one + (other - one) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, pixel: [u8; 3]) -> Rgb {
        Rgb { width, height, pixels: pixel.repeat((width * height) as usize) }
    }

    fn at(square: &Tensor, channel: usize, x: usize, y: usize) -> f32 {
        square.values()[(channel * SIDE + y) * SIDE + x]
    }

    #[test]
    fn a_wide_picture_lies_at_the_top_with_grey_below_and_blue_comes_first() {
        let (square, scale) = square(&picture(832, 416, [10, 20, 30])).unwrap();
        assert_eq!(square.shape(), [1, 3, 416, 416]);
        assert!((scale - 0.5).abs() < 1e-9);
        assert_eq!([at(&square, 0, 0, 0), at(&square, 1, 0, 0), at(&square, 2, 0, 0)], [30.0, 20.0, 10.0]);
        assert_eq!(at(&square, 0, 415, 207), 30.0);
        assert_eq!(at(&square, 0, 0, 208), 114.0);
    }

    #[test]
    fn one_pixel_fills_the_square_and_a_thread_keeps_one_pixel() {
        let (whole, _) = square(&picture(1, 1, [1, 2, 3])).unwrap();
        assert_eq!(at(&whole, 2, 415, 415), 1.0);
        let (thread, _) = square(&picture(5000, 1, [1, 2, 3])).unwrap();
        assert_eq!([at(&thread, 2, 415, 0), at(&thread, 2, 415, 1)], [1.0, 114.0]);
    }

    #[test]
    fn growing_mixes_the_neighbours_by_their_distance() {
        let two = Rgb { width: 2, height: 1, pixels: vec![0, 0, 0, 208, 208, 208] };
        let (square, _) = square(&two).unwrap();
        // Pixel centres at 103.5 and 311.5: before the first nothing changes, then one step a pixel.
        assert_eq!([at(&square, 0, 0, 0), at(&square, 0, 103, 0), at(&square, 0, 208, 0)], [0.0, 0.0, 105.0]);
        assert_eq!(at(&square, 0, 415, 0), 208.0);
    }
}
