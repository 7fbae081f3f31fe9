//! Reading a small text file that a person edits, and saying which line is wrong.
//!
//! Used for `config.toml` and for scripted days. Owns nothing; every fault is a sentence with its line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that is read, in bytes. A config is about 10 KB and a day about 5 KB; a megabyte is somebody's
/// wrong path.
pub(crate) const MOST_BYTES: u64 = 1_000_000;

/// Why a text file was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextFault {
    /// The line that is wrong, counted from 1; `None` where the file as a whole is.
    pub(crate) line: Option<usize>,
    pub(crate) why: String,
}

impl TextFault {
    fn whole(why: impl Into<String>) -> Self {
        Self { line: None, why: why.into() }
    }
}

/// The text of `path`: UTF-8 without a byte-order mark, at most [`MOST_BYTES`].
pub(crate) fn read_text(path: &Path) -> Result<String, TextFault> {
    let cannot = |error: std::io::Error| TextFault::whole(format!("cannot be read: {error}"));
    let about = std::fs::metadata(path).map_err(cannot)?;
    if about.is_dir() {
        return Err(TextFault::whole("is a folder, where a file is needed"));
    }
    // A pipe or a device might never end, or never begin.
    if !about.is_file() {
        return Err(TextFault::whole("is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(TextFault::whole(format!(
            "is larger than {MOST_BYTES} bytes, which no file of this kind is; check the path"
        )));
    }
    decode(bytes)
}

fn decode(bytes: Vec<u8>) -> Result<String, TextFault> {
    if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
        return Err(TextFault {
            line: Some(1),
            why: "begins with a byte-order mark; save it as UTF-8 without one".into(),
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        TextFault { line: Some(line), why: format!("byte {} is not UTF-8; save the file as UTF-8", at + 1) }
    })
}

/// The line, counted from 1, on which the byte `offset` of `text` stands.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The name among `known` that is closest to `written`, if it is close enough to have been meant.
pub(crate) fn closest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lowered = written.to_lowercase();
    if lowered.is_empty() {
        return None;
    }
    known
        .into_iter()
        .map(|name| (edits(&lowered, &name.to_lowercase()), name))
        .filter(|(distance, name)| {
            let begins = name.len() > 2 && (lowered.starts_with(name) || name.starts_with(&lowered));
            *distance <= (name.chars().count() / 2).max(1) || begins
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein's distance in characters.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, here) in from.chars().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for ((there, above), diagonal) in to.iter().zip(row.iter().skip(1)).zip(&row) {
            left = (left + 1).min(above + 1).min(diagonal + usize::from(here != *there));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_byte_is_named_with_its_place() {
        let fault = decode(b"a = 1\nb = \"\xff\"\n".to_vec()).unwrap_err();
        assert_eq!(fault.line, Some(2));
        assert!(fault.why.contains("byte 12"), "{}", fault.why);
    }

    #[test]
    fn a_byte_order_mark_is_refused_on_line_one() {
        let fault = decode(b"\xEF\xBB\xBFa = 1".to_vec()).unwrap_err();
        assert_eq!(fault.line, Some(1));
        assert!(fault.why.contains("byte-order mark"), "{}", fault.why);
    }

    #[test]
    fn edits_are_counted_as_levenshtein_does() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }

    #[test]
    fn only_a_name_that_is_close_is_offered() {
        assert_eq!(closest("Speach_on", ["speech_off", "speech_on"]), Some("speech_on"));
        assert_eq!(closest("thinking", ["think", "act"]), Some("think"));
        assert_eq!(closest("colour", ["speech_on", "enabled"]), None);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
