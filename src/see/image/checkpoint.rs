//! The checkpoint's file: its header is held, its numbers are read when asked for.
//!
//! A tower is one block of memory, made once, so that letting it go gives the memory back to the system at once (many
//! small blocks would stay with the allocator). The table of 256,000 token vectors is never loaded: a question needs
//! 64 of its rows, and they are read by their place in the file. The file stays open, so a file that is replaced while
//! the robot runs cannot mix two models.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use rayon::prelude::*;
use serde::Deserialize;

/// The longest header that is read, in bytes. That of SigLIP 2 base is about 50 kB; this leaves room without letting a
/// broken file ask for gigabytes.
const LONGEST_HEADER: u64 = 4 << 20;

/// Numbers that are read from the file at once: a megabyte as 32-bit floats. Not measured.
const READ_AT_ONCE: usize = 1 << 18;

/// Numbers that one thread widens at a time; large against the cost of handing them out. Not measured.
const WIDEN_AT_ONCE: usize = 1 << 16;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    /// First byte and the byte after the last, counted from the end of the header.
    data_offsets: [u64; 2],
}

/// Where a tensor lies.
struct Place {
    dtype: DType,
    shape: Vec<usize>,
    /// First byte in the file.
    start: u64,
}

/// An open safetensors file.
pub(super) struct Checkpoint {
    file: File,
    places: HashMap<String, Place>,
}

impl Checkpoint {
    /// Reads the header and checks that the file holds every floating-point tensor that it names.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let size = file.metadata().map_err(|error| error.to_string())?.len();
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 0).map_err(|_| "it is too short to be a safetensors file".to_owned())?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER || length + 8 > size {
            return Err(format!("its header claims {length} bytes, the file has {size}; it is no safetensors file"));
        }
        let mut header = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
        file.read_exact_at(&mut header, 8).map_err(|error| error.to_string())?;
        let entries: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&header).map_err(|error| format!("its header is malformed: {error}"))?;
        let mut places = HashMap::with_capacity(entries.len());
        for (name, value) in entries {
            if name == "__metadata__" {
                continue;
            }
            let entry: Entry =
                serde_json::from_value(value).map_err(|error| format!("the entry of {name} is malformed: {error}"))?;
            if let Some(place) = place(entry, 8 + length, size).map_err(|why| format!("{name}: {why}"))? {
                places.insert(name, place);
            }
        }
        Ok(Self { file, places })
    }

    /// Rows of the matrix `name`, which must be `width` wide.
    ///
    /// # Errors
    /// A sentence, when there is no such matrix.
    pub fn rows(&self, name: &str, width: usize) -> Result<usize, String> {
        let place = self.places.get(name).ok_or_else(|| format!("it has no tensor {name}"))?;
        match place.shape[..] {
            [rows, found] if found == width => Ok(rows),
            _ => Err(format!("{name} has the shape {:?}, expected are rows of {width}", place.shape)),
        }
    }

    /// The numbers of some rows of a matrix, row after row in the order asked for, read from the file now.
    ///
    /// # Errors
    /// A sentence, when a row is not there or the file cannot be read.
    pub fn picked_rows(&self, name: &str, rows: &[u32], width: usize) -> Result<Vec<f32>, String> {
        let count = self.rows(name, width)?;
        let place = &self.places[name];
        let mut picked = Vec::with_capacity(rows.len() * width);
        for row in rows {
            let row = *row as usize;
            if row >= count {
                return Err(format!("row {row} of {name} was asked for, it has {count}"));
            }
            self.read(place, row * width, width, |number| picked.push(number))?;
        }
        Ok(picked)
    }

    fn place(&self, name: &str, shape: &[usize]) -> Result<&Place, String> {
        let place = self.places.get(name).ok_or_else(|| format!("it has no tensor {name}"))?;
        if place.shape != shape {
            return Err(format!("{name} has the shape {:?}, expected is {shape:?}", place.shape));
        }
        Ok(place)
    }

    /// Hands on `count` numbers from the one at `first` on, as 32-bit floats.
    fn read(&self, place: &Place, first: usize, count: usize, mut take: impl FnMut(f32)) -> Result<(), String> {
        let size = place.dtype.size_in_bytes();
        let mut bytes = vec![0; count.min(READ_AT_ONCE) * size];
        let mut done = 0;
        while done < count {
            let now = (count - done).min(READ_AT_ONCE);
            let bytes = &mut bytes[..now * size];
            let start = place.start + ((first + done) * size) as u64;
            self.file.read_exact_at(bytes, start).map_err(|error| format!("it cannot be read: {error}"))?;
            match place.dtype {
                DType::F32 => {
                    for number in bytes.chunks_exact(4) {
                        take(f32::from_le_bytes([number[0], number[1], number[2], number[3]]));
                    }
                }
                DType::BF16 => {
                    for number in bytes.chunks_exact(2) {
                        take(widened(u16::from_le_bytes([number[0], number[1]])));
                    }
                }
                // Half floats are rare and small in number; candle knows them.
                _ => {
                    let numbers = Tensor::from_raw_buffer(bytes, place.dtype, &[now], &Device::Cpu)
                        .and_then(|tensor| tensor.to_dtype(DType::F32)?.to_vec1::<f32>())
                        .map_err(|error| error.to_string())?;
                    numbers.into_iter().for_each(&mut take);
                }
            }
            done += now;
        }
        Ok(())
    }
}

/// `None` for tensors that are no weights, such as position numbers.
fn place(entry: Entry, body: u64, size: u64) -> Result<Option<Place>, String> {
    let dtype = match entry.dtype.as_str() {
        "F32" => DType::F32,
        "F16" => DType::F16,
        "BF16" => DType::BF16,
        _ => return Ok(None),
    };
    let [start, end] = entry.data_offsets;
    let numbers = entry.shape.iter().try_fold(1_usize, |product, length| product.checked_mul(*length));
    let expected = numbers.and_then(|numbers| numbers.checked_mul(dtype.size_in_bytes())).map(|bytes| bytes as u64);
    if end.checked_sub(start) != expected || body.checked_add(end).is_none_or(|end| end > size) {
        return Err("the file is cut short or its header is wrong".to_owned());
    }
    Ok(Some(Place { dtype, shape: entry.shape, start: body + start }))
}

/// How a tower's matrices are held between pictures. The arithmetic is in 32-bit floats either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtRest {
    /// 4 bytes a number: exactly the checkpoint's.
    F32,
    /// 2 bytes a number: 8 bits of precision. Each matrix is widened when its turn comes.
    Bf16,
}

/// The matrices of a tower, one after the other.
pub(super) enum Numbers {
    F32(Vec<f32>),
    Bf16(Vec<u16>),
}

/// One matrix among [`Numbers`]: `out` rows of `into` numbers.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub start: usize,
    pub out: usize,
    pub into: usize,
}

impl Matrix {
    /// Some of its rows.
    pub fn slice(self, first: usize, rows: usize) -> Self {
        Self { start: self.start + first * self.into, out: rows, into: self.into }
    }
}

impl Numbers {
    /// A matrix, ready to be multiplied: `(out, into)`.
    ///
    /// # Errors
    /// candle's, when the numbers do not fit the matrix.
    pub fn tensor(&self, matrix: Matrix) -> candle_core::Result<Tensor> {
        let range = matrix.start..matrix.start + matrix.out * matrix.into;
        let numbers = match self {
            Self::F32(numbers) => numbers[range].to_vec(),
            Self::Bf16(numbers) => {
                let mut wide = vec![0.0; range.len()];
                let narrow = numbers[range].par_chunks(WIDEN_AT_ONCE);
                wide.par_chunks_mut(WIDEN_AT_ONCE).zip(narrow).for_each(|(wide, narrow)| {
                    for (wide, narrow) in wide.iter_mut().zip(narrow) {
                        *wide = widened(*narrow);
                    }
                });
                wide
            }
        };
        Tensor::from_vec(numbers, (matrix.out, matrix.into), &Device::Cpu)
    }
}

/// Takes a tower's tensors out of a checkpoint; or, when measuring, checks only that they are there.
pub(super) struct Shelf<'a> {
    checkpoint: &'a Checkpoint,
    /// `None` while measuring.
    numbers: Option<Numbers>,
    used: usize,
}

impl<'a> Shelf<'a> {
    /// A shelf that reads nothing.
    pub fn measuring(checkpoint: &'a Checkpoint) -> Self {
        Self { checkpoint, numbers: None, used: 0 }
    }

    /// A shelf with room for `room` numbers of matrices.
    pub fn with_room(checkpoint: &'a Checkpoint, room: usize, at_rest: AtRest) -> Self {
        let numbers = match at_rest {
            AtRest::F32 => Numbers::F32(Vec::with_capacity(room)),
            AtRest::Bf16 => Numbers::Bf16(Vec::with_capacity(room)),
        };
        Self { checkpoint, numbers: Some(numbers), used: 0 }
    }

    /// Numbers of all matrices so far.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The matrices; `None` when it only measured.
    pub fn into_numbers(self) -> Option<Numbers> {
        self.numbers
    }

    /// The tensor `name` of this shape as a matrix whose rows are its first axis.
    ///
    /// # Errors
    /// A sentence, when it is not there or has another shape.
    pub fn matrix(&mut self, name: &str, shape: &[usize]) -> Result<Matrix, String> {
        let place = self.checkpoint.place(name, shape)?;
        let count: usize = shape.iter().product();
        match &mut self.numbers {
            None => {}
            Some(Numbers::F32(numbers)) => self.checkpoint.read(place, 0, count, |number| numbers.push(number))?,
            Some(Numbers::Bf16(numbers)) => {
                self.checkpoint.read(place, 0, count, |number| numbers.push(narrowed(number)))?;
            }
        }
        let out = shape.first().copied().unwrap_or(1);
        let matrix = Matrix { start: self.used, out, into: count / out.max(1) };
        self.used += count;
        Ok(matrix)
    }

    /// A small tensor, held in 32-bit floats always: biases, norms and positions are a hundredth of a tower.
    ///
    /// # Errors
    /// As [`Shelf::matrix`].
    pub fn small(&self, name: &str, shape: &[usize]) -> Result<Tensor, String> {
        let place = self.checkpoint.place(name, shape)?;
        let count = shape.iter().product();
        let mut numbers = Vec::with_capacity(count);
        if self.numbers.is_none() {
            numbers.resize(count, 0.0);
        } else {
            self.checkpoint.read(place, 0, count, |number| numbers.push(number))?;
        }
        Tensor::from_vec(numbers, shape, &Device::Cpu).map_err(|error| error.to_string())
    }
}

/// A bfloat16 as a 32-bit float: its upper half.
fn widened(number: u16) -> f32 {
    f32::from_bits(u32::from(number) << 16)
}

/// The nearest bfloat16, ties to even.
fn narrowed(number: f32) -> u16 {
    let bits = number.to_bits();
    if number.is_nan() {
        // Rounding could turn a NaN into infinity; a set bit of the upper half keeps it one.
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests;
