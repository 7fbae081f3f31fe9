//! A file on its way: written as `.part`, hashed, synced, and only then renamed.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio::sync::mpsc::Receiver;

use super::manifest::File;
use super::{ModelError, SourceError};

/// Read at once when a file is hashed or copied, in bytes.
const BLOCK: usize = 1 << 18;
/// Left free on the disk whatever is fetched, in bytes: the memory itself must go on. Not measured.
const KEEP_FREE: u64 = 64_000_000;

/// Where a file shall be, what it must be, and where it grows until it is that.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub file: String,
    pub path: PathBuf,
    pub part: PathBuf,
    /// The server's name for the version that the part was begun from.
    pub etag: PathBuf,
    pub size: u64,
    pub sha256: String,
}

/// What a writer has put in the part.
pub(super) struct Written {
    /// The part's length now.
    pub bytes: u64,
    pub sha256: String,
}

impl Target {
    pub fn new(folder: &Path, file: &File) -> Self {
        let beside = |ending: &str| folder.join(format!("{}.{ending}", file.name));
        Self {
            file: file.name.clone(),
            path: folder.join(&file.name),
            part: beside("part"),
            etag: beside("part.etag"),
            size: file.size,
            sha256: file.sha256.clone(),
        }
    }

    /// Bytes that an earlier try left.
    pub fn kept(&self) -> u64 {
        fs::metadata(&self.part).map_or(0, |metadata| metadata.len())
    }

    /// Throws the part away. A part that cannot be removed shows itself at the next write.
    pub fn discard(&self) {
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.etag);
    }

    /// A failure to write this file.
    pub fn disk(&self, error: io::Error) -> SourceError {
        SourceError::disk(&self.part, self.size, error)
    }

    /// Appends what comes through `chunks` after the first `start` bytes, and hashes all of it; synced when it returns.
    pub fn append<B: AsRef<[u8]>>(&self, start: u64, chunks: &mut Receiver<B>) -> Result<Written, SourceError> {
        let mut write = || -> io::Result<Written> {
            let mut options = OpenOptions::new();
            let mut part = options.read(true).write(true).create(true).truncate(false).open(&self.part)?;
            part.set_len(start)?;
            let mut hash = Sha256::new();
            let mut bytes = hash_into(&mut hash, &mut part)?;
            part.seek(SeekFrom::Start(bytes))?;
            while let Some(chunk) = chunks.blocking_recv() {
                hash.update(chunk.as_ref());
                part.write_all(chunk.as_ref())?;
                bytes += chunk.as_ref().len() as u64;
            }
            part.sync_all()?;
            Ok(Written { bytes, sha256: hexadecimal(hash) })
        };
        write().map_err(|error| self.disk(error))
    }

    /// Copies `source` into the part; synced when it returns.
    pub fn copy_from(&self, source: &mut impl Read) -> Result<Written, SourceError> {
        let mut copy = || -> io::Result<Written> {
            let mut part = fs::File::create(&self.part)?;
            let mut hash = Sha256::new();
            let mut block = vec![0; BLOCK];
            let mut bytes = 0;
            loop {
                let read = source.read(&mut block)?;
                if read == 0 {
                    break;
                }
                hash.update(&block[..read]);
                part.write_all(&block[..read])?;
                bytes += read as u64;
            }
            part.sync_all()?;
            Ok(Written { bytes, sha256: hexadecimal(hash) })
        };
        copy().map_err(|error| self.disk(error))
    }

    /// Gives the part its final name if it is what it must be, and throws it away otherwise.
    pub fn finish(&self, written: &Written) -> Result<(), SourceError> {
        if let Err(wrong) = self.judge(written) {
            self.discard();
            return Err(wrong);
        }
        let rename = || -> io::Result<()> {
            fs::rename(&self.part, &self.path)?;
            // The new name itself is on the disk only when the folder is.
            fs::File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
        };
        rename().map_err(|error| self.disk(error))?;
        self.discard();
        Ok(())
    }

    /// Takes over a file that lies elsewhere on the same disk, if it is what it must be.
    pub fn adopt(&self, made: &Path) -> Result<(), SourceError> {
        let written = hash_file(made).map_err(|source| ModelError::Unreadable { path: made.into(), source })?;
        self.judge(&written)?;
        let take = || -> io::Result<()> {
            fs::File::open(made)?.sync_all()?;
            fs::rename(made, &self.part)
        };
        take().map_err(|error| self.disk(error))?;
        self.finish(&written)
    }

    fn judge(&self, written: &Written) -> Result<(), SourceError> {
        if written.bytes != self.size {
            return Err(SourceError::Size { file: self.file.clone(), found: written.bytes, size: self.size });
        }
        if written.sha256 != self.sha256 {
            let (found, expected) = (written.sha256.clone(), self.sha256.clone());
            return Err(SourceError::Hash { file: self.file.clone(), found, expected });
        }
        Ok(())
    }
}

/// Refuses to begin what would not fit.
pub(super) fn check_room(folder: &Path, what: &str, needed: u64) -> Result<(), ModelError> {
    let free = free_bytes(folder).map_err(|source| ModelError::Folder { path: folder.into(), source })?;
    fits(folder, what, needed, free)
}

fn fits(folder: &Path, what: &str, needed: u64, free: u64) -> Result<(), ModelError> {
    let needed = needed + KEEP_FREE;
    if free < needed {
        return Err(ModelError::DiskFull { what: what.into(), folder: folder.into(), needed, free });
    }
    Ok(())
}

/// What an ordinary user may still write on the folder's disk.
pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Length and SHA-256 of a file.
pub(super) fn hash_file(path: &Path) -> io::Result<Written> {
    let mut hash = Sha256::new();
    let bytes = hash_into(&mut hash, &mut fs::File::open(path)?)?;
    Ok(Written { bytes, sha256: hexadecimal(hash) })
}

fn hash_into(hash: &mut Sha256, source: &mut impl Read) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let read = source.read(&mut block)?;
        if read == 0 {
            return Ok(bytes);
        }
        hash.update(&block[..read]);
        bytes += read as u64;
    }
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Part;
    use super::*;

    const HELLO_SHA256: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn hello(folder: &Path) -> Target {
        let sha256 = HELLO_SHA256.to_owned();
        Target::new(folder, &File { name: "hello.bin".into(), part: Part::Weights, size: 5, sha256 })
    }

    #[test]
    fn a_wrong_hash_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = hello(folder.path());
        let written = target.copy_from(&mut &b"jello"[..]).expect("a copy");
        assert!(matches!(target.finish(&written), Err(SourceError::Hash { .. })));
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    #[test]
    fn a_part_is_gone_on_with_and_hashed_as_a_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = hello(folder.path());
        fs::write(&target.part, b"helXX").expect("a part");
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        sender.try_send(&b"lo"[..]).expect("room");
        drop(sender);
        let written = target.append(3, &mut receiver).expect("an append");
        assert_eq!(written.sha256, HELLO_SHA256);
        target.finish(&written).expect("the right file");
        assert_eq!(fs::read(&target.path).expect("the file"), b"hello");
        assert!(!target.part.exists());
    }

    #[test]
    fn a_disk_that_fills_up_while_writing_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = hello(folder.path());
        std::os::unix::fs::symlink("/dev/full", &target.part).expect("a link");
        match target.copy_from(&mut &b"hello"[..]) {
            Err(SourceError::Local(ModelError::DiskFull { what, .. })) => {
                assert_eq!(what, "hello.bin.part")
            }
            other => panic!("expected a full disk, got {:?}", other.map(|written| written.bytes)),
        }
        assert!(!target.path.exists());
    }

    #[test]
    fn what_would_not_fit_is_not_begun() {
        let folder = Path::new("/models");
        assert!(fits(folder, "a model", 1_000, KEEP_FREE + 1_000).is_ok());
        let error = fits(folder, "a model", 90_000_000, KEEP_FREE).expect_err("no room").to_string();
        assert!(error.contains("154.0 MB are needed and 64.0 MB are free"), "{error}");
    }
}
