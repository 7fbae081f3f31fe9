//! Reading a snapshot before anything of it touches the disk.
//!
//! A snapshot is a tar file from somewhere else. Every entry is walked here, and those inside a segment's own tar too;
//! what could lead out of the folder, fill the disk or is no plain file is refused, and nothing of it is unpacked.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use super::snapshot::{LABEL, Label};

/// The largest snapshot, in bytes. Ours are under 1 MB; a server's brings its segments as it holds them.
pub const MOST_BYTES: u64 = 64_000_000;
/// What its files may come to together, holes included, in bytes. An empty shard of the engine's own settings comes to
/// 184 MB (measured), nearly all of it holes.
const MOST_APPARENT: u64 = 512_000_000;
/// Files and folders. A segment has some dozens.
const MOST_ENTRIES: usize = 4_096;
/// Folders in folders. The deepest that the engine makes is six.
const DEEPEST: usize = 10;
/// Bytes of a path.
const LONGEST_PATH: usize = 400;
/// Bytes of the label.
const LONGEST_LABEL: u64 = 10_000;
/// A tar file ends with two blocks of zeros.
const END: u64 = 1_024;

/// What a sound snapshot brings.
#[derive(Debug, PartialEq)]
pub struct Checked {
    pub label: Option<Label>,
    pub entries: usize,
    /// Bytes of its files, holes included.
    pub apparent: u64,
}

/// Why a file is not taken for a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it is compressed; the engine reads plain tar files")]
    Compressed,
    #[error("it is larger than a snapshot may be ({what}: {bytes} bytes, {most} allowed)")]
    TooLarge { what: &'static str, bytes: u64, most: u64 },
    #[error("it is damaged or cut short: {0}")]
    Damaged(String),
    #[error("it holds {entry:?}, {why}")]
    Unsafe { entry: String, why: &'static str },
}

/// Checks the file at `path` from its first byte to its last.
///
/// # Errors
/// [`Refused`].
pub fn check(path: &Path) -> Result<Checked, Refused> {
    let mut file = File::open(path).map_err(Refused::Unreadable)?;
    let about = file.metadata().map_err(Refused::Unreadable)?;
    if !about.is_file() {
        return Err(Refused::Unreadable(io::Error::other("it is not a regular file")));
    }
    at_most("the file", about.len(), MOST_BYTES)?;
    check_ends(&mut file, about.len())?;
    let mut walk = Walk { seen: HashSet::new(), files: HashSet::new(), entries: 0, apparent: 0, label: None };
    walk.archive(&mut BufReader::new(file), Path::new(""), Nesting::Whole)?;
    if walk.entries == 0 {
        return Err(Refused::Damaged("it is empty".into()));
    }
    Ok(Checked { label: walk.label, entries: walk.entries, apparent: walk.apparent })
}

/// The beginning is no compressed file's, and the end is a tar file's.
fn check_ends(file: &mut File, length: u64) -> Result<(), Refused> {
    let mut head = [0_u8; 4];
    let read = file.read(&mut head).map_err(Refused::Unreadable)?;
    // The first bytes of gzip, zstd, xz and bzip2.
    let compressed: [&[u8]; 4] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X'], b"BZh"];
    if compressed.iter().any(|magic| head[..read].starts_with(magic)) {
        return Err(Refused::Compressed);
    }
    let cut = || Refused::Damaged("its end is missing".into());
    let mut end = vec![0_u8; END as usize];
    file.seek(SeekFrom::Start(length.checked_sub(END).ok_or_else(cut)?)).map_err(Refused::Unreadable)?;
    file.read_exact(&mut end).map_err(Refused::Unreadable)?;
    if end.iter().any(|byte| *byte != 0) {
        return Err(cut());
    }
    file.rewind().map_err(Refused::Unreadable)
}

fn at_most(what: &'static str, bytes: u64, most: u64) -> Result<(), Refused> {
    if bytes > most { Err(Refused::TooLarge { what, bytes, most }) } else { Ok(()) }
}

/// Which archive is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Whole,
    /// The tar file of one segment, as servers pack them.
    Segment,
}

struct Walk {
    seen: HashSet<PathBuf>,
    /// Those of `seen` that are files.
    files: HashSet<PathBuf>,
    entries: usize,
    apparent: u64,
    label: Option<Label>,
}

impl Walk {
    fn archive(&mut self, reader: &mut dyn Read, within: &Path, nesting: Nesting) -> Result<(), Refused> {
        let damaged = |error: io::Error| Refused::Damaged(error.to_string());
        let mut archive = Archive::new(reader);
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            self.entries += 1;
            at_most("entries", self.entries as u64, MOST_ENTRIES as u64)?;
            let path = safe_path(&entry)?;
            let whole = within.join(&path);
            self.once(&entry, &whole)?;
            if entry.header().entry_type() == EntryType::Directory {
                continue;
            }
            self.apparent = self.apparent.saturating_add(entry.size());
            at_most("its files together", self.apparent, MOST_APPARENT)?;
            if nesting == Nesting::Whole && is_segment_tar(&path) {
                // What the engine unpacks in its place.
                self.archive(&mut entry, &whole.with_extension(""), Nesting::Segment)?;
                continue;
            }
            if nesting == Nesting::Whole && path == Path::new(LABEL) {
                at_most("its label", entry.size(), LONGEST_LABEL)?;
                let label = serde_json::from_reader(&mut entry);
                self.label = Some(label.map_err(|error| Refused::Damaged(format!("its label: {error}")))?);
            }
            // To its last byte, so that a file which is shorter than it claims is found out here.
            io::copy(&mut entry, &mut io::sink()).map_err(damaged)?;
        }
        Ok(())
    }

    /// Refuses a path that is there already, or that lies inside a file.
    fn once<R: Read>(&mut self, entry: &Entry<'_, R>, path: &Path) -> Result<(), Refused> {
        let is_folder = entry.header().entry_type() == EntryType::Directory;
        let unsafe_entry = |why| Refused::Unsafe { entry: path.display().to_string(), why };
        // Some packers name a folder again before each of its files.
        let again = !self.seen.insert(path.to_owned());
        if again && (!is_folder || self.files.contains(path)) {
            return Err(unsafe_entry("which is there twice"));
        }
        if path.ancestors().skip(1).any(|folder| self.files.contains(folder)) {
            return Err(unsafe_entry("which lies inside a file"));
        }
        if !is_folder {
            self.files.insert(path.to_owned());
        }
        Ok(())
    }
}

/// The path of an entry that is a plain file or folder and stays inside.
fn safe_path<R: Read>(entry: &Entry<'_, R>) -> Result<PathBuf, Refused> {
    let raw = entry.path_bytes();
    let refuse = |why| Err(Refused::Unsafe { entry: String::from_utf8_lossy(&raw).chars().take(100).collect(), why });
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Directory | EntryType::GNUSparse => {}
        EntryType::Symlink | EntryType::Link => return refuse("which is a link"),
        EntryType::Char | EntryType::Block | EntryType::Fifo => return refuse("which is a device"),
        _ => return refuse("which is neither a file nor a folder"),
    }
    let Ok(text) = std::str::from_utf8(&raw) else { return refuse("whose name is not UTF-8") };
    if text.len() > LONGEST_PATH || text.chars().any(char::is_control) {
        return refuse("whose name is too long or holds control characters");
    }
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return refuse("which leads out of the folder");
            }
        }
    }
    if path.components().count() > DEEPEST {
        return refuse("which lies too deep");
    }
    Ok(path)
}

fn is_segment_tar(path: &Path) -> bool {
    path.parent() == Some(Path::new("segments")) && path.extension().is_some_and(|ending| ending == "tar")
}
