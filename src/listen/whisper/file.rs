//! Whether a model file is whole. whisper.cpp 1.8 loads one that was cut off without a word and then hears nonsense,
//! so the file's structure is walked through before: header, filters, words, tensors, and then exactly the end.
//!
//! The format is what `convert-pt-to-ggml.py` of whisper.cpp writes: little-endian 32-bit numbers, no alignment.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::WhisperError;

/// "ggml" as a little-endian number.
const MAGIC: [u8; 4] = *b"lmgg";
/// Numbers of the header after the magic; the format of the weights is the last.
const HEADER: usize = 11;
/// More words or longer names than any model has: then the file is damaged. Models have 51 864 words and more.
const MOST_WORDS: u32 = 1 << 20;
const LONGEST_NAME: u32 = 1 << 10;

/// Checks that the file at `path` is a whole model.
pub(super) fn check_whole(path: &Path) -> Result<(), WhisperError> {
    let unreadable = |source| WhisperError::Unreadable { path: path.to_owned(), source };
    let damaged = |why: &str| WhisperError::NoModel { path: path.to_owned(), why: why.to_owned() };
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let mut walk = Walk { file: BufReader::new(file), left: size };
    let mut magic = [0; 4];
    if walk.bytes(&mut magic).is_none() || magic != MAGIC {
        return Err(damaged("it does not begin as such a file does"));
    }
    match walk.body() {
        Some(()) => Ok(()),
        None => Err(damaged("it ends too early or holds what it should not")),
    }
}

struct Walk {
    file: BufReader<File>,
    left: u64,
}

impl Walk {
    fn body(&mut self) -> Option<()> {
        for _ in 0..HEADER {
            self.number()?;
        }
        let (mels, bins) = (self.number()?, self.number()?);
        self.skip(u64::from(mels).checked_mul(u64::from(bins))?.checked_mul(4)?)?;
        let words = self.number().filter(|words| *words <= MOST_WORDS)?;
        for _ in 0..words {
            let length = self.number().filter(|length| *length <= LONGEST_NAME)?;
            self.skip(u64::from(length))?;
        }
        let mut tensors = 0;
        while self.left > 0 {
            self.tensor()?;
            tensors += 1;
        }
        (tensors > 0).then_some(())
    }

    fn tensor(&mut self) -> Option<()> {
        let dimensions = self.number().filter(|dimensions| (1..=4).contains(dimensions))?;
        let name = self.number().filter(|length| *length <= LONGEST_NAME)?;
        let (block, bytes) = block(self.number()?)?;
        let mut elements = 1_u64;
        for _ in 0..dimensions {
            elements = elements.checked_mul(u64::from(self.number()?))?;
        }
        self.skip(u64::from(name))?;
        if !elements.is_multiple_of(block) {
            return None;
        }
        self.skip((elements / block).checked_mul(bytes)?)
    }

    fn number(&mut self) -> Option<u32> {
        let mut bytes = [0; 4];
        self.bytes(&mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.left = self.left.checked_sub(bytes.len() as u64)?;
        self.file.read_exact(bytes).ok()
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        self.file.seek_relative(i64::try_from(bytes).ok()?).ok()
    }
}

/// Elements and bytes of one block of a ggml type (`ggml.h`): f32, f16, the plain quantised types and the K types.
fn block(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 => (1, 4),
        1 => (1, 2),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |numbers: &[u32]| bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        put(&[0; HEADER]);
        put(&[2, 3]);
        put(&[0; 6]);
        put(&[1, 4, u32::from_le_bytes(*b"word")]);
        put(&[2, 4, 1, 4, 2, u32::from_le_bytes(*b"name")]);
        put(&[0; 4]);
        bytes
    }

    fn checked(bytes: &[u8]) -> Result<(), WhisperError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ggml.bin");
        std::fs::write(&path, bytes).unwrap();
        check_whole(&path)
    }

    #[test]
    fn a_whole_model_is_taken_and_one_that_was_cut_off_anywhere_is_not() {
        let model = model();
        assert!(checked(&model).is_ok());
        for length in 0..model.len() {
            assert!(matches!(checked(&model[..length]), Err(WhisperError::NoModel { .. })), "{length} bytes");
        }
        assert!(checked(&[model, vec![0]].concat()).is_err(), "a byte too many");
    }
}
