//! `checked.json` beside a model's files: what was hashed, when it last changed, where it came from.
//!
//! It saves hashing 90 MB at every start, and can be thrown away: what it does not know is hashed again.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

const NAME: &str = "checked.json";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    files: BTreeMap<String, Checked>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Checked {
    size: u64,
    /// When the file last changed, in nanoseconds since the unix epoch.
    changed: i64,
    sha256: String,
    /// Empty for a file that somebody put there.
    #[serde(default)]
    from: String,
}

impl Record {
    /// An absent or unreadable record knows nothing.
    pub fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(NAME)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.persist(folder.join(NAME))?;
        Ok(())
    }

    /// The hash of a file that has not changed since it was computed.
    pub fn hash_of(&self, file: &str, now: &Metadata) -> Option<&str> {
        let checked = self.files.get(file)?;
        (checked.size == now.len() && checked.changed == changed(now)).then_some(checked.sha256.as_str())
    }

    pub fn from(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(|checked| checked.from.as_str()).filter(|from| !from.is_empty())
    }

    /// `from`: where the file came from, `None` to leave that as it is.
    pub fn note(&mut self, file: &str, now: &Metadata, sha256: &str, from: Option<&str>) {
        let from = from.or_else(|| self.from(file)).unwrap_or_default().to_owned();
        let checked = Checked { size: now.len(), changed: changed(now), sha256: sha256.to_owned(), from };
        self.files.insert(file.to_owned(), checked);
    }
}

fn changed(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_is_not_known_any_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.bin");
        fs::write(&path, b"one").expect("a file");
        let mut record = Record::default();
        record.note("a.bin", &fs::metadata(&path).expect("metadata"), "abc", Some("a mirror"));
        record.write(folder.path()).expect("a record");

        let record = Record::read(folder.path());
        assert_eq!(record.hash_of("a.bin", &fs::metadata(&path).expect("metadata")), Some("abc"));
        assert_eq!(record.from("a.bin"), Some("a mirror"));
        let file = fs::File::options().write(true).open(&path).expect("the file");
        file.set_modified(std::time::UNIX_EPOCH).expect("a new time");
        assert_eq!(record.hash_of("a.bin", &fs::metadata(&path).expect("metadata")), None);
    }

    #[test]
    fn a_record_that_cannot_be_read_knows_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(NAME), b"{ half a rec").expect("a file");
        assert_eq!(Record::read(folder.path()), Record::default());
    }
}
