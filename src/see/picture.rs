//! What the camera gave: decoded under limits, scaled down, and checked before anybody looks at it.
//!
//! Pure but for one short memory: a [`FrozenWatch`] keeps the last picture, because a camera that hangs can only be
//! told from two pictures. [`super::eye::Eye`] owns it; any thread may call the rest. Nothing here can die: a picture
//! that cannot be used is a [`PictureFault`], it is never a memory, and the next picture is looked at as ever.
//!
//! What can be told of a torn JPEG: a file without its end marker, and one whose lower part was lost and came out as
//! one block over and over. What cannot: bytes lost in the middle that leave the rest shifted or wrongly coloured. A torn PNG
//! always shows, because its pieces carry checksums.

mod area;

use std::io::Cursor;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::Rgb;

/// Most pixels that are decoded: a 12-megapixel camera's 4608×2592 and 4056×3040 pass.
pub const MOST_PIXELS: u64 = 12_600_000;
/// Longest side that is decoded, in pixels.
pub const LONGEST_SIDE: u32 = 8192;
/// Shortest side that is decoded, in pixels: below it no detector finds anything.
pub const SHORTEST_SIDE: u32 = 16;
/// Most bytes that one picture's decoding may ask for: 12.6 megapixels at three bytes are 38 MB.
const MOST_MEMORY: u64 = 64 << 20;
/// Largest encoded picture that is looked at, in bytes; a 12-megapixel JPEG has 3 to 6 MB, a PNG more.
pub const LARGEST_ENCODED: usize = 40_000_000;
/// Longest side of everything after decoding, in pixels: the robot's own camera gives 1280×720.
pub const WORKING_SIDE: u32 = 1280;
/// Mean brightness (0…255) under which a picture shows nothing: the inside of the shell, or night. 16 is black in
/// video; not measured on the robot.
pub const DARK: f32 = 16.0;
/// A JPEG's lowest part is lost when at least this share of its rows is one block over and over. Not measured: a real
/// camera's rows have noise.
const TORN_SHARE: f32 = 0.125;
/// Bytes in a row of the largest block that a JPEG is made of: 16 pixels. A decoder that runs out of bytes repeats the
/// last block, or one flat colour.
const BLOCK: usize = 48;
/// Largest difference between a value and that of the block before that counts as the same.
const SAME: u8 = 2;
/// A lower part this dark or bright is a shadow or a lit table, where a camera clips; it is not taken for torn.
const CLIPPED: (u8, u8) = (8, 247);
/// A camera hangs when this many pictures in a row are the same, and as much time as the owner allows has passed.
pub const FROZEN_PICTURES: u32 = 5;
/// Largest JPEG that is kept, in bytes; a 1280×720 photograph at quality 80 has 100 to 250 KB.
pub const LARGEST_KEPT: usize = 400_000;
/// Quality and divisor of the size, tried in this order until a picture fits in [`LARGEST_KEPT`]. 80 is where more
/// bytes no longer show; not measured against recall.
const QUALITIES: [(u8, u32); 4] = [(80, 1), (60, 1), (60, 2), (40, 4)];

/// Why a picture is of no use. None of them is worth storing; each is counted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PictureFault {
    #[error("the camera gave an empty picture")]
    Empty,
    #[error("the camera gave a picture of {width}×{height} pixels, which is not a size that can be looked at")]
    Size { width: u32, height: u32 },
    #[error("the camera gave a picture of {megabytes} MB, which is too large to look at")]
    Large { megabytes: u64 },
    #[error("the camera's picture cannot be read: {why}")]
    Corrupt { why: String },
    #[error("the camera's picture is torn: its lower part is missing")]
    Torn,
    #[error("the camera sees nothing but dark (brightness {brightness} of 255): is it night, or is the head down?")]
    Dark { brightness: u8 },
    #[error("the camera hangs: it has given the same picture for {seconds} s")]
    Frozen { seconds: u64 },
}

/// Decodes a JPEG, PNG or PPM and scales it down to at most [`WORKING_SIDE`] on its longer side.
///
/// # Errors
/// [`PictureFault`]: empty, too small or too large, unreadable, or torn. Brightness and hanging are judged apart.
pub fn decode(encoded: &[u8]) -> Result<Rgb, PictureFault> {
    if encoded.is_empty() {
        return Err(PictureFault::Empty);
    }
    if encoded.len() > LARGEST_ENCODED {
        return Err(PictureFault::Large { megabytes: encoded.len() as u64 / 1_000_000 });
    }
    if let Some(plain) = encoded.strip_prefix(b"P6\n") {
        return plain_pixels(plain)?.scaled_to(WORKING_SIDE);
    }
    let mut reader = ImageReader::new(Cursor::new(encoded))
        .with_guessed_format()
        .map_err(|error| PictureFault::Corrupt { why: error.to_string() })?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let jpeg = reader.format() == Some(ImageFormat::Jpeg);
    let decoder = reader.into_decoder().map_err(fault)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    if decoder.total_bytes() > MOST_MEMORY {
        return Err(PictureFault::Large { megabytes: decoder.total_bytes() / 1_000_000 });
    }
    if jpeg && !has_its_end(encoded) {
        return Err(PictureFault::Torn);
    }
    let whole = DynamicImage::from_decoder(decoder).map_err(fault)?.into_rgb8();
    let whole = Rgb { width, height, pixels: whole.into_raw() };
    if jpeg && whole.is_torn() {
        return Err(PictureFault::Torn);
    }
    whole.scaled_to(WORKING_SIDE)
}

fn check_size(width: u32, height: u32) -> Result<(), PictureFault> {
    let sides = SHORTEST_SIDE..=LONGEST_SIDE;
    let pixels = u64::from(width) * u64::from(height);
    if !sides.contains(&width) || !sides.contains(&height) || pixels > MOST_PIXELS {
        return Err(PictureFault::Size { width, height });
    }
    Ok(())
}

/// What follows the first line of a PPM as a live camera's body writes it: "1280 720", "255", and the pixels.
fn plain_pixels(ppm: &[u8]) -> Result<Rgb, PictureFault> {
    let corrupt = || PictureFault::Corrupt { why: "its PPM header makes no sense".into() };
    let mut parts = ppm.splitn(3, |byte| *byte == b'\n');
    let (size, depth, pixels) = (parts.next(), parts.next(), parts.next());
    let size = size.and_then(|size| std::str::from_utf8(size).ok()?.split_once(' ')).ok_or_else(corrupt)?;
    let (Ok(width), Ok(height)) = (size.0.parse(), size.1.parse()) else { return Err(corrupt()) };
    let (Some(b"255"), Some(pixels)) = (depth, pixels) else { return Err(corrupt()) };
    check_size(width, height)?;
    let rgb = Rgb { width, height, pixels: pixels.to_vec() };
    if rgb.is_whole() { Ok(rgb) } else { Err(PictureFault::Torn) }
}

fn fault(error: ImageError) -> PictureFault {
    match error {
        ImageError::IoError(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => PictureFault::Torn,
        error => PictureFault::Corrupt { why: error.to_string() },
    }
}

/// Whether a JPEG ends with its end marker. Cameras pad their buffers with zeros behind it.
fn has_its_end(jpeg: &[u8]) -> bool {
    let end = jpeg.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    jpeg.get(..end).is_some_and(|file| file.ends_with(&[0xFF, 0xD9]))
}

impl Rgb {
    /// Whether the picture has the pixels that its size promises, and is not empty.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let (whole, rest) = (self.pixels.len() / 3, self.pixels.len() % 3);
        pixels > 0 && rest == 0 && whole as u64 == pixels
    }

    /// The same picture with at most `most` pixels on its longer side, by area average; itself where it fits.
    ///
    /// # Errors
    /// [`PictureFault::Size`] when the picture does not have the pixels that its size promises.
    pub fn scaled_to(self, most: u32) -> Result<Self, PictureFault> {
        let longer = self.width.max(self.height);
        if longer <= most && self.is_whole() {
            return Ok(self);
        }
        let (width, height) = self.sides_within(most);
        self.resized(width, height)
    }

    /// Width and height of the same picture with at most `most` pixels on its longer side.
    #[must_use]
    pub fn sides_within(&self, most: u32) -> (u32, u32) {
        let longer = self.width.max(self.height);
        if longer <= most {
            return (self.width, self.height);
        }
        let side = |side: u32| {
            let scaled = (u64::from(side) * u64::from(most) + u64::from(longer) / 2) / u64::from(longer.max(1));
            u32::try_from(scaled.max(1)).unwrap_or(most)
        };
        (side(self.width), side(self.height))
    }

    /// The picture at `width` × `height`, by area average.
    ///
    /// # Errors
    /// [`PictureFault::Size`] when either picture is empty or this one does not have the pixels that its size promises.
    pub fn resized(&self, width: u32, height: u32) -> Result<Self, PictureFault> {
        let wrong = || PictureFault::Size { width: self.width, height: self.height };
        if !self.is_whole() || width == 0 || height == 0 {
            return Err(wrong());
        }
        if !self.width.is_multiple_of(width) || !self.height.is_multiple_of(height) {
            return Ok(area::averaged(self, width, height));
        }
        let from = ImageRef::new(self.width, self.height, &self.pixels, PixelType::U8x3).map_err(|_| wrong())?;
        let mut to = Image::new(width, height, PixelType::U8x3);
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Box));
        Resizer::new().resize(&from, &mut to, &options).map_err(|_| wrong())?;
        Ok(Self { width, height, pixels: to.into_vec() })
    }

    /// The picture as a JPEG of at most [`LARGEST_KEPT`] bytes, at quality 80 where that fits. A picture so full of
    /// detail that it does not fit is kept at a lower quality, then smaller.
    ///
    /// # Errors
    /// [`PictureFault`] when it has no pixels, or fits in no way.
    pub fn to_jpeg(&self) -> Result<Vec<u8>, PictureFault> {
        let mut size = 0;
        for (quality, divisor) in QUALITIES {
            let smaller;
            let picture = if divisor == 1 {
                self
            } else {
                smaller = self.resized((self.width / divisor).max(1), (self.height / divisor).max(1))?;
                &smaller
            };
            let jpeg = picture.to_jpeg_at(quality)?;
            if jpeg.len() <= LARGEST_KEPT {
                return Ok(jpeg);
            }
            size = jpeg.len();
        }
        Err(PictureFault::Large { megabytes: (size as u64).div_ceil(1_000_000) })
    }

    /// The picture as a JPEG of that quality, 1…100, whatever its size.
    ///
    /// # Errors
    /// [`PictureFault`] when it has no pixels or cannot be written as a JPEG.
    pub fn to_jpeg_at(&self, quality: u8) -> Result<Vec<u8>, PictureFault> {
        if !self.is_whole() {
            return Err(PictureFault::Size { width: self.width, height: self.height });
        }
        let mut jpeg = Vec::new();
        JpegEncoder::new_with_quality(&mut jpeg, quality)
            .encode(&self.pixels, self.width, self.height, image::ExtendedColorType::Rgb8)
            .map_err(fault)?;
        Ok(jpeg)
    }

    /// Mean brightness, 0…255, by the weights of Rec. 601; every fourth pixel is looked at.
    #[must_use]
    pub fn brightness(&self) -> f32 {
        let (mut sum, mut count) = (0_u64, 0_u64);
        for pixel in self.pixels.chunks_exact(3).step_by(4) {
            sum += u64::from(pixel[0]) * 299 + u64::from(pixel[1]) * 587 + u64::from(pixel[2]) * 114;
            count += 1;
        }
        if count == 0 { 0.0 } else { (sum as f64 / (count * 1000) as f64) as f32 }
    }

    /// # Errors
    /// [`PictureFault::Dark`] when the picture is darker than [`DARK`].
    pub fn check_light(&self) -> Result<(), PictureFault> {
        let brightness = self.brightness();
        if brightness < DARK { Err(PictureFault::Dark { brightness: brightness as u8 }) } else { Ok(()) }
    }

    /// Whether the lowest rows are one block over and over, from left to right: what a decoder makes of lost bytes.
    fn is_torn(&self) -> bool {
        let row = (self.width as usize * 3).max(1);
        let is_repeated = |row: &&[u8]| {
            let is_clipped = row.iter().all(|value| *value < CLIPPED.0) || row.iter().all(|value| *value > CLIPPED.1);
            let (Some(before), Some(after)) = (row.get(..row.len().saturating_sub(BLOCK)), row.get(BLOCK..)) else {
                return false;
            };
            !is_clipped && before.iter().zip(after).all(|(before, after)| before.abs_diff(*after) <= SAME)
        };
        let repeated = self.pixels.chunks_exact(row).rev().take_while(is_repeated).count();
        repeated as f32 >= self.height as f32 * TORN_SHARE
    }
}

/// Tells a camera that hangs from a room in which nothing moves: a live picture always has noise.
#[derive(Debug)]
pub struct FrozenWatch {
    /// How long the same picture may come; `None` for a camera that repeats its files, such as the simulated one.
    after: Option<SignedDuration>,
    last: Option<Rgb>,
    since: Timestamp,
    pictures: u32,
}

impl FrozenWatch {
    /// A watch that finds a camera hanging after that time of one and the same picture; never with `None`.
    #[must_use]
    pub fn new(after: Option<SignedDuration>) -> Self {
        Self { after, last: None, since: Timestamp::UNIX_EPOCH, pictures: 0 }
    }

    /// Judges the next picture, taken at `now`. A live camera costs one comparison of a few pixels and a copy.
    ///
    /// # Errors
    /// [`PictureFault::Frozen`] from the [`FROZEN_PICTURES`]th same picture on, once the time has passed.
    pub fn judge(&mut self, picture: &Rgb, now: Timestamp) -> Result<(), PictureFault> {
        let Some(after) = self.after else { return Ok(()) };
        if self.last.as_ref() != Some(picture) {
            match &mut self.last {
                Some(last) => last.clone_from(picture),
                None => self.last = Some(picture.clone()),
            }
            self.since = now;
            self.pictures = 1;
            return Ok(());
        }
        self.pictures = self.pictures.saturating_add(1);
        let same = now.duration_since(self.since);
        if self.pictures >= FROZEN_PICTURES && same >= after {
            return Err(PictureFault::Frozen { seconds: u64::try_from(same.as_secs()).unwrap_or(0) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
