//! A picture as the numbers that the picture tower takes.
//!
//! The whole picture is squeezed into a square of 224 by 224, bilinear with antialiasing as Pillow does it (without
//! antialiasing the vectors are measurably worse), and 0…255 becomes −1…1. The checkpoint's own
//! `preprocessor_config.json` must ask for exactly that.

use std::path::Path;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use serde::Deserialize;

use super::tower::{PATCH, PATCH_NUMBERS, PATCHES, SIDE};
use crate::see::Rgb;

/// Pillow's number for bilinear.
const BILINEAR: u32 = 2;

#[derive(Deserialize)]
struct Size {
    height: usize,
    width: usize,
}

/// What of `preprocessor_config.json` decides the numbers.
#[derive(Deserialize)]
struct Settings {
    size: Size,
    resample: u32,
    image_mean: [f64; 3],
    image_std: [f64; 3],
    rescale_factor: f64,
}

/// Whether the checkpoint wants its pictures as this module makes them.
///
/// # Errors
/// A sentence that says what it wants instead, or what is wrong with the file.
pub(super) fn check_settings(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let settings: Settings = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let Settings { size, resample, image_mean, image_std, rescale_factor } = settings;
    if (size.height, size.width) != (SIDE, SIDE) {
        return Err(format!("it wants pictures of {} by {}, made are {SIDE} by {SIDE}", size.width, size.height));
    }
    if resample != BILINEAR {
        return Err(format!("it wants the resampling {resample}, made is bilinear ({BILINEAR})"));
    }
    if image_mean != [0.5; 3] || image_std != [0.5; 3] || (rescale_factor * 255.0 - 1.0).abs() > 1e-6 {
        return Err("it wants other numbers than 0…255 brought to −1…1".to_owned());
    }
    Ok(())
}

/// The picture's square: `224 · 224 · 3` bytes, red, green and blue, row by row.
///
/// # Errors
/// A sentence, when the picture is empty or its bytes do not fit its size.
pub fn square(picture: &Rgb) -> Result<Vec<u8>, String> {
    let (width, height) = (picture.width, picture.height);
    let expected = (width as usize).checked_mul(height as usize).and_then(|area| area.checked_mul(3));
    if width == 0 || height == 0 || expected != Some(picture.pixels.len()) {
        return Err(format!("a picture of {width} by {height} cannot have {} bytes", picture.pixels.len()));
    }
    let source = ImageRef::new(width, height, &picture.pixels, PixelType::U8x3).map_err(|error| error.to_string())?;
    let mut square = Image::new(SIDE as u32, SIDE as u32, PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear)).use_alpha(false);
    Resizer::new().resize(&source, &mut square, &options).map_err(|error| error.to_string())?;
    Ok(square.into_vec())
}

/// The square cut into patches, row by row; a patch is its red rows, then its green, then its blue ones: the order of
/// the numbers in the checkpoint's patch matrix.
pub(super) fn patches(square: &[u8]) -> Vec<f32> {
    let mut patches = Vec::with_capacity(PATCHES * PATCH_NUMBERS);
    for top in (0..SIDE).step_by(PATCH) {
        for left in (0..SIDE).step_by(PATCH) {
            for colour in 0..3 {
                for y in top..top + PATCH {
                    let row = &square[(y * SIDE + left) * 3..(y * SIDE + left + PATCH) * 3];
                    patches.extend(row.chunks_exact(3).map(|pixel| f32::from(pixel[colour]) / 127.5 - 1.0));
                }
            }
        }
    }
    patches
}

#[cfg(test)]
mod tests;
