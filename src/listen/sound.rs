//! Sound files and sample rates: WAV → [`Sound`], and any [`Sound`] → 16 kHz, one channel.
//!
//! Anybody may ask; nothing here keeps state but a [`Converter`], which belongs to one stream of sound. A sound that
//! is empty, broken or absurd is refused with a [`SoundError`]; no sample is clipped, invented or passed over.

use std::borrow::Cow;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavReader};
use rubato::{Resampler, SincFixedIn, SincInterpolationParameters, SincInterpolationType, WindowFunction};
use thiserror::Error;

use super::RATE;
use crate::robot::Sound;

/// Lowest and highest rate that is believed, in samples a second. Telephones give 8000, studio cards 192 000.
pub const RATES: std::ops::RangeInclusive<u32> = 8_000..=192_000;
/// Most channels that are believed; the robot's microphone array gives at most six.
pub const MOST_CHANNELS: u16 = 16;
/// Longest sound that is taken at once, in seconds. A reply or a recorded sentence is under one minute.
pub const LONGEST_S: u32 = 600;
/// Most samples (of all channels) that are taken at once, 256 MB of memory: ten minutes of 48 kHz stereo fit.
pub const MOST_SAMPLES: usize = 64 << 20;
/// Largest believable sample. Float files pass ±1 by a little; ten times that is no sound.
pub const LOUDEST: f32 = 10.0;

/// Half the filter's length in samples of the lower rate. Not measured; 64 keeps speech flat to 7.4 kHz.
const FILTER_REACH: usize = 64;
/// The filter's edge as a part of the lower rate's half. Not measured.
const FILTER_EDGE: f32 = 0.95;

/// Why a sound was refused.
#[derive(Debug, Error)]
pub enum SoundError {
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: Box<SoundError> },
    #[error("the sound is empty: it holds no sample")]
    Empty,
    #[error("this is no WAV file that can be played ({why}); save it as PCM or 32-bit float WAV")]
    Corrupt { why: String },
    #[error("the WAV file ends too early: its header promises {promised} samples, {found} are there")]
    Truncated { promised: u64, found: u64 },
    #[error("a sound with {channels} channels cannot be used; 1 to {MOST_CHANNELS} can")]
    Channels { channels: u16 },
    #[error("a rate of {rate} samples a second cannot be used; {} to {} can", RATES.start(), RATES.end())]
    Rate { rate: u32 },
    #[error("{samples} samples do not divide into {channels} channels")]
    Ragged { samples: usize, channels: u16 },
    #[error("the sound is too long ({seconds} s); at most {LONGEST_S} s and {MOST_SAMPLES} samples are taken at once")]
    TooLong { seconds: u64 },
    #[error("sample {index} is {value}, which is no sound; samples lie in −1…1")]
    NoSound { index: usize, value: f32 },
    #[error("the converter was made for {rate} Hz and {channels} channels, and was given another format")]
    OtherFormat { rate: u32, channels: u16 },
    #[error("the sound could not be brought to {RATE} Hz: {why}")]
    Conversion { why: String },
}

/// Reads a WAV file.
///
/// # Errors
/// [`SoundError::Unreadable`] when the file is not there, else [`SoundError::File`] around what is wrong in it.
pub fn read_wav(path: &Path) -> Result<Sound, SoundError> {
    let bytes = std::fs::read(path).map_err(|source| SoundError::Unreadable { path: path.to_owned(), source })?;
    decode_wav(&bytes).map_err(|source| SoundError::File { path: path.to_owned(), source: Box::new(source) })
}

/// Decodes the bytes of a WAV file: 8, 16, 24 or 32-bit integers or 32-bit floats, any number of channels up to
/// [`MOST_CHANNELS`], any rate in [`RATES`].
///
/// A header that was written before the length was known (programs that write to a pipe do that) is read to the
/// end of the bytes.
///
/// # Errors
/// [`SoundError`] for everything that is no such file.
pub fn decode_wav(bytes: &[u8]) -> Result<Sound, SoundError> {
    let bytes = with_known_length(bytes);
    let mut reader = WavReader::new(Cursor::new(bytes.as_ref())).map_err(|error| corrupt(&error))?;
    let spec = reader.spec();
    check_format(spec.sample_rate, spec.channels)?;
    let promised = u64::from(reader.len());
    check_length(promised, spec.sample_rate, spec.channels)?;
    if promised == 0 {
        return Err(SoundError::Empty);
    }
    let samples: Vec<f32> = match spec.sample_format {
        SampleFormat::Float => collect(reader.samples::<f32>(), promised, |sample| sample)?,
        SampleFormat::Int => {
            let full = 2_f64.powi(i32::from(spec.bits_per_sample) - 1);
            collect(reader.samples::<i32>(), promised, |sample| (f64::from(sample) / full) as f32)?
        }
    };
    let sound = Sound { samples, rate: spec.sample_rate, channels: spec.channels };
    check(&sound)?;
    Ok(sound)
}

fn corrupt(error: &hound::Error) -> SoundError {
    SoundError::Corrupt { why: error.to_string() }
}

fn collect<S>(
    samples: impl Iterator<Item = hound::Result<S>>,
    promised: u64,
    scale: impl Fn(S) -> f32,
) -> Result<Vec<f32>, SoundError> {
    let mut taken = Vec::new();
    for sample in samples {
        match sample {
            Ok(sample) => taken.push(scale(sample)),
            Err(hound::Error::IoError(_)) => {
                return Err(SoundError::Truncated { promised, found: taken.len() as u64 });
            }
            Err(error) => return Err(corrupt(&error)),
        }
    }
    Ok(taken)
}

/// The lengths that programs write into a header when they do not know the length yet.
const UNKNOWN_LENGTHS: [u32; 4] = [0xFFFF_FFFF, 0x7FFF_FFFF, 0x7FFF_F000, 0x7FFF_FFDA];

/// The same file with the true length of its `data` chunk, where the header holds a placeholder.
fn with_known_length(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(data) = data_chunk(bytes) else { return Cow::Borrowed(bytes) };
    let Some(length) = bytes.get(data + 4..data + 8).and_then(|field| field.try_into().ok()).map(u32::from_le_bytes)
    else {
        return Cow::Borrowed(bytes);
    };
    // espeak-ng writes 0x7FFFF000 less its header's 36 bytes when it writes to a pipe.
    let unknown = UNKNOWN_LENGTHS.contains(&length) || (0x7FFF_EF00..0x7FFF_F000).contains(&length);
    let block = block_size(bytes);
    let Ok(there) = u32::try_from(bytes.len() - data - 8) else { return Cow::Borrowed(bytes) };
    if !unknown || length <= there || block == 0 {
        return Cow::Borrowed(bytes);
    }
    let mut mended = bytes.to_vec();
    mended[data + 4..data + 8].copy_from_slice(&(there - there % block).to_le_bytes());
    Cow::Owned(mended)
}

/// Where the `data` chunk begins.
fn data_chunk(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        let name = bytes.get(at..at + 4)?;
        if name == b"data" {
            return Some(at);
        }
        let length = u32::from_le_bytes(bytes.get(at + 4..at + 8)?.try_into().ok()?) as usize;
        at = at.checked_add(8)?.checked_add(length)?.checked_add(length % 2)?;
    }
}

/// Bytes of one sample of every channel, where the `fmt ` chunk comes first; otherwise 0.
fn block_size(bytes: &[u8]) -> u32 {
    match (bytes.get(12..16), bytes.get(32..34)) {
        (Some(b"fmt "), Some(field)) => u32::from(u16::from_le_bytes([field[0], field[1]])),
        _ => 0,
    }
}

/// Whether a sound is one: see [`SoundError`] for what is refused. An empty one passes here, because a microphone
/// may give nothing for a moment.
///
/// # Errors
/// [`SoundError`], naming what is wrong.
pub fn check(sound: &Sound) -> Result<(), SoundError> {
    check_format(sound.rate, sound.channels)?;
    check_length(sound.samples.len() as u64, sound.rate, sound.channels)?;
    if !sound.samples.len().is_multiple_of(usize::from(sound.channels)) {
        return Err(SoundError::Ragged { samples: sound.samples.len(), channels: sound.channels });
    }
    match sound.samples.iter().enumerate().find(|(_, sample)| sample.is_nan() || sample.abs() > LOUDEST) {
        Some((index, &value)) => Err(SoundError::NoSound { index, value }),
        None => Ok(()),
    }
}

fn check_format(rate: u32, channels: u16) -> Result<(), SoundError> {
    if channels == 0 || channels > MOST_CHANNELS {
        return Err(SoundError::Channels { channels });
    }
    if !RATES.contains(&rate) {
        return Err(SoundError::Rate { rate });
    }
    Ok(())
}

fn check_length(samples: u64, rate: u32, channels: u16) -> Result<(), SoundError> {
    let seconds = samples / u64::from(channels) / u64::from(rate);
    if seconds > u64::from(LONGEST_S) || samples > MOST_SAMPLES as u64 {
        return Err(SoundError::TooLong { seconds });
    }
    Ok(())
}

/// A whole sound at 16 kHz in one channel (the mean of all).
///
/// # Errors
/// [`SoundError::Empty`] without a sample, or what [`check`] refuses.
pub fn to_16k_mono(sound: &Sound) -> Result<Vec<f32>, SoundError> {
    if sound.samples.is_empty() {
        return Err(SoundError::Empty);
    }
    let mut converter = Converter::new(sound.rate, sound.channels)?;
    let mut samples = converter.push(sound)?;
    samples.extend(converter.flush()?);
    Ok(samples)
}

/// Brings one stream of sound to 16 kHz in one channel, chunk by chunk.
///
/// The result does not depend on how the stream was cut into chunks, and starts when the stream starts. It holds
/// back at most 20 ms of sound and the filter's reach (4 ms).
pub struct Converter {
    rate: u32,
    channels: u16,
    /// `None` where the stream has 16 kHz already.
    filter: Option<Filter>,
}

struct Filter {
    resampler: SincFixedIn<f32>,
    /// Samples that wait for a full block.
    waiting: Vec<f32>,
    block: usize,
    scratch: Vec<Vec<f32>>,
    taken: u64,
    given: u64,
}

impl Converter {
    /// A converter for sound of `rate` samples a second in `channels` interleaved channels.
    ///
    /// # Errors
    /// [`SoundError::Rate`], [`SoundError::Channels`].
    pub fn new(rate: u32, channels: u16) -> Result<Self, SoundError> {
        check_format(rate, channels)?;
        let filter = if rate == RATE { None } else { Some(Filter::new(rate)?) };
        Ok(Self { rate, channels, filter })
    }

    /// Whether this converter was made for that sound's rate and channels.
    #[must_use]
    pub fn fits(&self, sound: &Sound) -> bool {
        self.rate == sound.rate && self.channels == sound.channels
    }

    /// Takes the next sound of the stream (of any length, also none) and gives what is ready at 16 kHz.
    ///
    /// # Errors
    /// [`SoundError::OtherFormat`], or what [`check`] refuses; the stream may go on after it.
    pub fn push(&mut self, sound: &Sound) -> Result<Vec<f32>, SoundError> {
        if !self.fits(sound) {
            return Err(SoundError::OtherFormat { rate: self.rate, channels: self.channels });
        }
        check(sound)?;
        let mono = mix(&sound.samples, self.channels);
        match &mut self.filter {
            None => Ok(mono),
            Some(filter) => filter.push(&mono, self.rate),
        }
    }

    /// Ends the stream: gives what was held back, and is ready for a new stream of the same format.
    ///
    /// # Errors
    /// [`SoundError::Conversion`].
    pub fn flush(&mut self) -> Result<Vec<f32>, SoundError> {
        match &mut self.filter {
            None => Ok(Vec::new()),
            Some(filter) => filter.flush(self.rate),
        }
    }

    /// Sound that was taken and not yet given back, in milliseconds.
    #[must_use]
    pub fn held_millis(&self) -> f64 {
        self.filter.as_ref().map_or(0.0, |filter| {
            let taken = filter.taken as f64 / f64::from(self.rate);
            (taken - filter.given as f64 / f64::from(RATE)).max(0.0) * 1000.0
        })
    }

    /// Forgets the stream so far.
    pub fn reset(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
    }
}

/// The mean of the channels.
fn mix(samples: &[f32], channels: u16) -> Vec<f32> {
    match channels {
        1 => samples.to_vec(),
        _ => {
            let part = 1.0 / f32::from(channels);
            samples.chunks_exact(usize::from(channels)).map(|frame| frame.iter().sum::<f32>() * part).collect()
        }
    }
}

impl Filter {
    fn new(rate: u32) -> Result<Self, SoundError> {
        let ratio = f64::from(RATE) / f64::from(rate);
        // rubato counts the filter's length at the input's rate, so it grows with that rate.
        let reach = (FILTER_REACH as f64 / ratio.min(1.0)).ceil() as usize;
        let parameters = SincInterpolationParameters {
            sinc_len: (2 * reach).next_multiple_of(8),
            f_cutoff: FILTER_EDGE,
            oversampling_factor: 128,
            interpolation: SincInterpolationType::Linear,
            window: WindowFunction::BlackmanHarris2,
        };
        let block = (rate / 50) as usize;
        let resampler = SincFixedIn::new(ratio, 1.0, parameters, block, 1)
            .map_err(|error| SoundError::Conversion { why: error.to_string() })?;
        let scratch = resampler.output_buffer_allocate(true);
        Ok(Self { resampler, waiting: Vec::with_capacity(block), block, scratch, taken: 0, given: 0 })
    }

    fn push(&mut self, mono: &[f32], rate: u32) -> Result<Vec<f32>, SoundError> {
        self.taken += mono.len() as u64;
        let mut ready = Vec::with_capacity(mono.len() * RATE as usize / rate as usize + self.scratch[0].len());
        let mut rest = mono;
        while !rest.is_empty() {
            let part = rest.len().min(self.block - self.waiting.len());
            self.waiting.extend_from_slice(&rest[..part]);
            rest = &rest[part..];
            if self.waiting.len() == self.block {
                self.run(&mut ready)?;
            }
        }
        Ok(ready)
    }

    fn flush(&mut self, rate: u32) -> Result<Vec<f32>, SoundError> {
        let due = (self.taken * u64::from(RATE) + u64::from(rate) / 2) / u64::from(rate);
        let mut ready = Vec::new();
        while self.given < due {
            let before = self.given;
            self.waiting.resize(self.block, 0.0);
            self.run(&mut ready)?;
            if self.given > due {
                ready.truncate(ready.len() - (self.given - due) as usize);
            }
            if self.given == before {
                return Err(SoundError::Conversion { why: "the filter gave nothing".into() });
            }
        }
        self.reset();
        Ok(ready)
    }

    /// Filters one full block.
    fn run(&mut self, ready: &mut Vec<f32>) -> Result<(), SoundError> {
        let (_, made) = self
            .resampler
            .process_into_buffer(&[&self.waiting], &mut self.scratch, None)
            .map_err(|error| SoundError::Conversion { why: error.to_string() })?;
        self.waiting.clear();
        // The first sample made lies one output step into the sound (62 µs), so there is no delay to take off,
        // whatever rubato 0.16 says in `output_delay`.
        self.given += made as u64;
        ready.extend_from_slice(&self.scratch[0][..made]);
        Ok(())
    }

    fn reset(&mut self) {
        self.resampler.reset();
        self.waiting.clear();
        self.taken = 0;
        self.given = 0;
    }
}

#[cfg(test)]
mod tests;
