//! Reads a safetensors file one tensor at a time.
//!
//! Neither a memory map nor a whole-file buffer: a map needs `unsafe` and turns a file that shrinks under it into a
//! crash of the whole service, and a buffer holds every weight twice for a moment (181 MB instead of 91 MB for
//! MiniLM). Read this way, the peak is the model plus its largest tensor.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use serde::Deserialize;

/// The longest header that is read, in bytes. MiniLM's is 11 kB; this leaves room without letting a broken file ask
/// for gigabytes.
const LONGEST_HEADER: u64 = 4 << 20;

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    /// First byte and the byte after the last, counted from the end of the header.
    data_offsets: [u64; 2],
}

/// Every floating-point tensor of the file, as 32-bit floats, except those whose name starts with one of `without`.
///
/// # Errors
/// A sentence that says what is wrong with the file.
pub(super) fn read(path: &Path, without: &[&str]) -> Result<HashMap<String, Tensor>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let (entries, body) = header(&file, size)?;
    let mut tensors = HashMap::with_capacity(entries.len());
    for (name, value) in entries {
        if name == "__metadata__" || without.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let entry: Entry =
            serde_json::from_value(value).map_err(|error| format!("the entry of {name} is malformed: {error}"))?;
        let dtype = match entry.dtype.as_str() {
            "F32" => DType::F32,
            "F16" => DType::F16,
            "BF16" => DType::BF16,
            // Position numbers and the like: no weights.
            _ => continue,
        };
        tensors.insert(name.clone(), tensor(&file, body, size, &entry, dtype).map_err(|why| format!("{name}: {why}"))?);
    }
    Ok(tensors)
}

/// The header's entries and the position at which the tensors begin.
fn header(file: &File, size: u64) -> Result<(serde_json::Map<String, serde_json::Value>, u64), String> {
    let mut length = [0; 8];
    file.read_exact_at(&mut length, 0).map_err(|_| "it is too short to be a safetensors file".to_owned())?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER || length + 8 > size {
        return Err(format!("its header claims {length} bytes, the file has {size}; it is no safetensors file"));
    }
    let mut header = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
    file.read_exact_at(&mut header, 8).map_err(|error| error.to_string())?;
    let entries = serde_json::from_slice(&header).map_err(|error| format!("its header is malformed: {error}"))?;
    Ok((entries, 8 + length))
}

fn tensor(file: &File, body: u64, size: u64, entry: &Entry, dtype: DType) -> Result<Tensor, String> {
    let [start, end] = entry.data_offsets;
    let numbers = entry.shape.iter().try_fold(1_usize, |product, length| product.checked_mul(*length));
    let expected = numbers.and_then(|numbers| numbers.checked_mul(dtype.size_in_bytes())).map(|bytes| bytes as u64);
    if end.checked_sub(start) != expected || body.checked_add(end).is_none_or(|end| end > size) {
        return Err("the file is cut short or its header is wrong".to_owned());
    }
    let mut bytes = vec![0; usize::try_from(end - start).map_err(|error| error.to_string())?];
    file.read_exact_at(&mut bytes, body + start).map_err(|error| error.to_string())?;
    Tensor::from_raw_buffer(&bytes, dtype, &entry.shape, &Device::Cpu)
        .and_then(|tensor| tensor.to_dtype(DType::F32))
        .map_err(|error| error.to_string())
}
