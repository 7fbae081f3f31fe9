//! Writing a snapshot: the shard's files as one tar file, the same bytes for the same facts and text model.
//!
//! The log is left out, holes stay holes, names are sorted, and times, owners and modes are the same in every file. The
//! engine (0.9.0) makes two things up at random: the name of a segment's folder, which is replaced by one that is
//! derived from the facts, and the order of keys in its JSON files, which are written again in order. [`LABEL`] tells
//! the text model, because the engine's files do not.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tar::{EntryType, GnuExtSparseHeader, Header};

use super::facts::Facts;
use crate::remember::embed::Identity;
use crate::remember::exchange::identity;

/// The file that names the text model, in a snapshot as beside every shard.
pub const LABEL: &str = "embedder.json";
const SEGMENTS: &str = "segments";
const CONFIG: &str = "edge_config.json";
/// Holes are looked for in blocks of this many bytes: the page of the engine's memory maps.
const BLOCK: usize = 4_096;
/// A tar file's own block.
const TAR_BLOCK: u64 = 512;
/// Stretches of data in a sparse header, and in each that goes on from it.
const IN_HEADER: usize = 4;

/// Where the vectors of a snapshot come from, and how many facts it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    #[serde(flatten)]
    pub identity: Identity,
    pub facts: usize,
    /// SHA-256 of the file that the facts were written in; `None` for a server's.
    pub facts_sha256: Option<String>,
}

/// Writes the closed shard in the folder `shard` to `out`. Blocks.
///
/// # Errors
/// The system's, and [`io::ErrorKind::InvalidData`] for a file that a snapshot cannot hold.
pub fn write(shard: &Path, label: &Label, facts: &Facts, out: &mut impl Write) -> io::Result<()> {
    let mut files = BTreeMap::new();
    files.insert(CONFIG.to_owned(), shard.join(CONFIG));
    for (number, segment) in files_in(&shard.join(SEGMENTS))?.into_iter().enumerate() {
        let name = identity(Sha256::new_with_prefix(&facts.sha256).chain_update([u8::try_from(number).unwrap_or(255)]));
        collect(&segment, &format!("{SEGMENTS}/{name}"), &mut files)?;
    }
    let label = serde_json::to_vec(label)?;
    write_header(&mut header(EntryType::Regular, LABEL, label.len() as u64)?, out)?;
    write_data(&mut label.as_slice(), label.len() as u64, out)?;
    for (name, path) in files {
        if name.ends_with(".json") {
            write_json(&name, &path, out)?;
            continue;
        }
        write_file(&name, &mut File::open(path)?, out)?;
    }
    out.write_all(&[0; 2 * TAR_BLOCK as usize])
}

fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Every file under `path` by its name in the snapshot.
fn collect(path: &Path, name: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.insert(name.to_owned(), path.to_owned());
        return Ok(());
    }
    for inside in files_in(path)? {
        let last = inside.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        collect(&inside, &format!("{name}/{last}"), files)?;
    }
    Ok(())
}

/// A header with nothing in it that changes from one writing to the next.
fn header(kind: EntryType, name: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path(name)?;
    header.set_mode(0o600);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    Ok(header)
}

fn write_header(header: &mut Header, out: &mut impl Write) -> io::Result<()> {
    header.set_cksum();
    out.write_all(header.as_bytes())
}

/// A JSON file with its keys in order.
fn write_json(name: &str, path: &Path, out: &mut impl Write) -> io::Result<()> {
    let bytes = serde_json::to_vec(&sorted(serde_json::from_slice(&fs::read(path)?)?))?;
    write_header(&mut header(EntryType::Regular, name, bytes.len() as u64)?, out)?;
    write_data(&mut bytes.as_slice(), bytes.len() as u64, out)
}

/// A stretch of a file that is not only zeros: where it begins, and its bytes.
type Stretch = (u64, u64);

fn write_file(name: &str, file: &mut File, out: &mut impl Write) -> io::Result<()> {
    let (mut stretches, size) = stretches(file)?;
    let data: u64 = stretches.iter().map(|(_, length)| length).sum();
    if data == size {
        write_header(&mut header(EntryType::Regular, name, size)?, out)?;
        file.rewind()?;
        return write_data(file, size, out);
    }
    // An empty stretch at the end says how long the file is.
    stretches.push((size, 0));
    let mut first = header(EntryType::GNUSparse, name, data)?;
    let gnu = first.as_gnu_mut().ok_or(io::ErrorKind::InvalidData)?;
    gnu.set_real_size(size);
    gnu.set_is_extended(stretches.len() > IN_HEADER);
    for (place, (offset, length)) in gnu.sparse.iter_mut().zip(&stretches) {
        place.set_offset(*offset);
        place.set_length(*length);
    }
    write_header(&mut first, out)?;
    let mut rest = stretches.get(IN_HEADER..).unwrap_or_default();
    while !rest.is_empty() {
        let mut more = GnuExtSparseHeader::new();
        let (now, later) = rest.split_at(rest.len().min(more.sparse.len()));
        for (place, (offset, length)) in more.sparse.iter_mut().zip(now) {
            place.set_offset(*offset);
            place.set_length(*length);
        }
        more.set_is_extended(!later.is_empty());
        out.write_all(more.as_bytes())?;
        rest = later;
    }
    for (offset, length) in stretches {
        file.seek(SeekFrom::Start(offset))?;
        write_data(file, length, out)?;
    }
    Ok(())
}

/// The stretches of a file that hold data, and its size. Decided by the bytes and not by what the file system calls a
/// hole, which differs from one disk to the next.
fn stretches(file: &mut File) -> io::Result<(Vec<Stretch>, u64)> {
    file.rewind()?;
    let mut reader = io::BufReader::with_capacity(64 * BLOCK, file);
    let (mut stretches, mut at): (Vec<Stretch>, u64) = (Vec::new(), 0);
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        let read = reader.by_ref().take(BLOCK as u64).read_to_end(&mut block)? as u64;
        if read == 0 {
            return Ok((stretches, at));
        }
        if block.iter().any(|byte| *byte != 0) {
            match stretches.last_mut() {
                Some((offset, length)) if *offset + *length == at => *length += read,
                _ => stretches.push((at, read)),
            }
        }
        at += read;
    }
}

/// `size` bytes, filled up to a whole block.
fn write_data(from: &mut impl Read, size: u64, out: &mut impl Write) -> io::Result<()> {
    if io::copy(&mut from.take(size), out)? != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let fill = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
    out.write_all(&vec![0; usize::try_from(fill).unwrap_or(0)])
}

/// The same value with the keys of every object in order, as the engine and its servers give them in any.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}
