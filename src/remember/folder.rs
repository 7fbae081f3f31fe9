//! The folder that holds the shards: its lock, its notes beside the shard, the disk's free space, and what happens to
//! a damaged shard.
//!
//! One process owns the folder at a time. The lock is taken before the engine is called at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::embed::Identity;

/// The name of the shard of exchanges and frames inside the folder.
pub const MEMORY: &str = "memory";
/// The name of the shard of people inside the folder.
pub const PEOPLE: &str = "people";
const LOCK: &str = "owner.lock";
const IDENTITY: &str = "embedder.json";
const IMAGE_IDENTITY: &str = "image_embedder.json";
/// The note with our own count.
pub const COUNT: &str = "count.json";

/// The lock on a folder, held for as long as this value lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why the folder could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("another reachy-remembers (process {owner}) is using the memory in {}", folder.display())]
    Owned { folder: PathBuf, owner: String },
    #[error("the memory's folder {} cannot be written: {source}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{} cannot be read: {source}", path.display())]
    NotReadable { path: PathBuf, source: io::Error },
}

/// Makes the folder if it is not there (readable by its owner alone) and takes its lock.
///
/// # Errors
/// [`FolderError::Owned`] when another process holds it, [`FolderError::NotWritable`] when it cannot be made.
pub fn take(folder: &Path) -> Result<Lock, FolderError> {
    let not_writable = |source| FolderError::NotWritable { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(not_writable)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(LOCK))
        .map_err(not_writable)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(not_writable)?;
            Ok(Lock { _file: file })
        }
        Err(fs::TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let read = file.rewind().and_then(|()| file.read_to_string(&mut owner));
            let owner =
                if read.is_ok() && !owner.trim().is_empty() { owner.trim().to_owned() } else { "unknown".into() };
            Err(FolderError::Owned { folder: folder.to_owned(), owner })
        }
        Err(fs::TryLockError::Error(source)) => Err(not_writable(source)),
    }
}

/// Bytes that an ordinary user may still write to the disk under `path`.
///
/// # Errors
/// The system's own error.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes that a folder takes on the disk: allocated blocks, not the apparent sizes of sparse files.
#[must_use]
pub fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let own = metadata.blocks() * 512;
    if !metadata.is_dir() {
        return own;
    }
    let children = fs::read_dir(path).into_iter().flatten().flatten();
    own + children.map(|child| allocated_bytes(&child.path())).sum::<u64>()
}

/// Which embedder a shard's vectors come from; `None` where no note says so.
///
/// # Errors
/// [`FolderError::NotReadable`] when the note is there and cannot be read.
pub fn identity(shard: &Path) -> Result<Option<Identity>, FolderError> {
    read_note(&shard.join(IDENTITY))
}

/// Writes down which embedder a shard's vectors come from.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn write_identity(shard: &Path, identity: &Identity) -> Result<(), FolderError> {
    write_note(&shard.join(IDENTITY), identity)
}

/// Which embedder a shard's picture vectors come from; `None` where it holds none yet.
///
/// # Errors
/// [`FolderError::NotReadable`] when the note is there and cannot be read.
pub fn image_identity(shard: &Path) -> Result<Option<Identity>, FolderError> {
    read_note(&shard.join(IMAGE_IDENTITY))
}

/// Writes down which embedder a shard's picture vectors come from.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn write_image_identity(shard: &Path, identity: &Identity) -> Result<(), FolderError> {
    write_note(&shard.join(IMAGE_IDENTITY), identity)
}

/// How many memories had been stored at the last flush: a count of our own, because the engine loads a shard with a
/// damaged log as if nothing were missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub exchanges: usize,
    #[serde(default)]
    pub frames: usize,
}

/// The count written beside the shard at the last flush.
///
/// # Errors
/// [`FolderError::NotReadable`].
pub fn count(shard: &Path) -> Result<Option<Count>, FolderError> {
    read_note(&shard.join(COUNT))
}

/// Writes the count.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn write_count(shard: &Path, count: Count) -> Result<(), FolderError> {
    write_note(&shard.join(COUNT), &count)
}

/// Moves a shard that cannot be opened out of the way, under a name that says when; nothing is deleted.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn set_aside(shard: &Path, now: Timestamp) -> Result<PathBuf, FolderError> {
    let name = shard.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut target = shard.with_file_name(format!("{name}.damaged-{stamp}"));
    let mut again = 1;
    while target.exists() {
        again += 1;
        target = shard.with_file_name(format!("{name}.damaged-{stamp}-{again}"));
    }
    rename(shard, &target)?;
    Ok(target)
}

/// Renames and makes the new name durable.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn rename(from: &Path, to: &Path) -> Result<(), FolderError> {
    let not_writable = |source| FolderError::NotWritable { path: from.to_owned(), source };
    fs::rename(from, to).map_err(not_writable)?;
    if let Some(parent) = to.parent() {
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(not_writable)?;
    }
    Ok(())
}

/// A note beside a shard; `None` where there is none.
pub(super) fn read_note<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, FolderError> {
    let not_readable = |source| FolderError::NotReadable { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| not_readable(io::Error::new(io::ErrorKind::InvalidData, error))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(not_readable(error)),
    }
}

/// Writes a note whole or not at all.
pub(super) fn write_note<T: Serialize>(path: &Path, note: &T) -> Result<(), FolderError> {
    let write = || -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        serde_json::to_writer(&mut file, note)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(parent)?.sync_all()
    };
    write().map_err(|source| FolderError::NotWritable { path: path.to_owned(), source })
}
