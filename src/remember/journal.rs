//! The window's exchanges on disk until they are in the shard: one JSON line each, synced before the next turn.
//!
//! The language model's window lives in memory, so a process that is killed would lose what was said last. The journal
//! holds exactly what the window holds and the shard does not. It is read once at start, stored, and emptied; since an
//! exchange has one identity, reading it twice stores nothing twice. A torn last line is what a crash in mid-write
//! leaves: it was never acknowledged and is left out. Lines that cannot be read are set aside, not dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Exchange;

const FILE: &str = "window.jsonl";

/// The journal could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("the journal of the conversation in {} failed: {source}", path.display())]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// What a journal held when it was opened.
#[derive(Debug, Default, PartialEq)]
pub struct Left {
    /// Exchanges that an earlier process did not store, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Where lines that could not be read were put.
    pub unreadable: Option<PathBuf>,
}

/// The open journal. One owner, the conversation.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal in the memory's folder and reads what an earlier process left in it.
    ///
    /// # Errors
    /// [`JournalError`] when the file cannot be read or written.
    pub fn open(folder: &Path) -> Result<(Self, Left), JournalError> {
        let path = folder.join(FILE);
        let fail = |source| JournalError { path: path.clone(), source };
        let (left, torn) = match fs::read(&path) {
            Ok(bytes) => (read(&path, &bytes).map_err(fail)?, !bytes.is_empty() && !bytes.ends_with(b"\n")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Left::default(), false),
            Err(error) => return Err(fail(error)),
        };
        let mut file = open_for_append(&path).map_err(fail)?;
        if torn {
            // So that the next exchange does not become a part of the torn line.
            file.write_all(b"\n").map_err(fail)?;
        }
        Ok((Self { path, file }, left))
    }

    /// Adds one exchange; when it returns, it is on the disk itself.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn add(&mut self, exchange: &Exchange) -> Result<(), JournalError> {
        let write = |file: &mut File| -> io::Result<()> {
            let mut line = serde_json::to_vec(exchange)?;
            line.push(b'\n');
            let before = file.metadata()?.len();
            file.write_all(&line).and_then(|()| file.sync_data()).inspect_err(|_| {
                // A half-written line would swallow the next one. Where even this fails, the next start sets it aside.
                let _ = file.set_len(before);
            })
        };
        write(&mut self.file).map_err(|source| JournalError { path: self.path.clone(), source })
    }

    /// Replaces everything by `exchanges`, whole or not at all: called after a batch has reached the shard.
    ///
    /// # Errors
    /// [`JournalError`]; the old journal is then still there, which stores nothing twice.
    pub fn replace<'a>(&mut self, exchanges: impl IntoIterator<Item = &'a Exchange>) -> Result<(), JournalError> {
        let path = self.path.clone();
        let fail = |source| JournalError { path, source };
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&folder)?;
            for exchange in exchanges {
                serde_json::to_writer(&mut file, exchange)?;
                file.write_all(b"\n")?;
            }
            file.as_file().sync_all()?;
            // From here on the old file is gone, so the new one must be the one that is written to.
            self.file = file.persist(&self.path).map_err(|error| error.error)?;
            File::open(&folder)?.sync_all()
        };
        write().map_err(fail)
    }
}

/// What the journal of a running process holds, for a command that only looks. Lines that cannot be read are left out.
#[must_use]
pub fn peek(folder: &Path) -> Vec<Exchange> {
    let bytes = fs::read(folder.join(FILE)).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn open_for_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn read(path: &Path, bytes: &[u8]) -> io::Result<Left> {
    let mut left = Left::default();
    let mut unreadable: Vec<&[u8]> = Vec::new();
    let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let torn_end = lines.peek().is_none();
        match serde_json::from_slice::<Exchange>(line) {
            Ok(exchange) => left.exchanges.push(exchange),
            Err(_) if line.is_empty() || torn_end => {}
            Err(_) => unreadable.push(line),
        }
    }
    if !unreadable.is_empty() {
        let aside = path.with_extension(format!("unreadable-{}", jiff::Timestamp::now().as_millisecond()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(&unreadable.join(&b'\n'))?;
        file.sync_all()?;
        left.unreadable = Some(aside);
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn exchange(second: i64) -> Exchange {
        Exchange {
            heard: format!("Words of second {second}."),
            said: "All right.".into(),
            speaker: None,
            said_at: Timestamp::from_second(second).unwrap(),
        }
    }

    #[test]
    fn what_was_added_is_there_after_the_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left, Left::default());
        journal.add(&exchange(1)).unwrap();
        journal.add(&exchange(2)).unwrap();
        drop(journal);
        let (_, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.exchanges, [exchange(1), exchange(2)]);
    }

    #[test]
    fn after_a_batch_reached_the_shard_only_the_rest_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        for second in 1..=3 {
            journal.add(&exchange(second)).unwrap();
        }
        journal.replace([&exchange(3)]).unwrap();
        journal.add(&exchange(4)).unwrap();
        let (_, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.exchanges, [exchange(3), exchange(4)]);
    }

    #[test]
    fn a_torn_last_line_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.add(&exchange(1)).unwrap();
        journal.file.write_all(b"{\"heard\":\"half a sen").unwrap();
        let (mut journal, left) = Journal::open(folder.path()).unwrap();
        assert_eq!((left.exchanges, left.unreadable), (vec![exchange(1)], None));
        journal.add(&exchange(2)).unwrap();
        let (_, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.exchanges, [exchange(1), exchange(2)]);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_set_aside_and_the_rest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        journal.add(&exchange(1)).unwrap();
        journal.file.write_all(b"\x00\x00 damage\n").unwrap();
        journal.add(&exchange(2)).unwrap();
        let (_, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.exchanges, [exchange(1), exchange(2)]);
        assert_eq!(fs::read(left.unreadable.unwrap()).unwrap(), b"\x00\x00 damage");
    }
}
