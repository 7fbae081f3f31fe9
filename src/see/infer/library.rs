//! The ONNX Runtime library as a file: where one may lie, and whether it is fit to be loaded.
//!
//! Loading a library runs its code, and a library that is cut short takes the process down with a bus error before any
//! code could say so. So everything that can be read off the file is checked first: that it is a whole library for this
//! machine, that it is ONNX Runtime, and of which version. The format is the System V ABI's ELF-64.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The oldest ONNX Runtime whose interface the program speaks: 1.22.
const OLDEST_MINOR: u32 = 22;
/// What every ONNX Runtime exports.
const ENTRY: &[u8] = b"OrtGetApiBase";
/// ONNX Runtime marks its symbols with its version: `VERS_1.32.0`.
const VERSION_MARK: &[u8] = b"VERS_";
/// The most that is read of a table of names, in bytes; ONNX Runtime's has 30 kB.
const MOST_NAMES: u64 = 16_000_000;
/// More segments no library has.
const MOST_SEGMENTS: u16 = 128;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const TAG_NAMES: u64 = 5;
const TAG_NAMES_SIZE: u64 = 10;

/// Folders in which a system keeps libraries.
pub(super) fn system_folders() -> Vec<PathBuf> {
    let of_machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    ["/usr/local/lib", &of_machine, "/usr/lib64", "/usr/lib"].map(PathBuf::from).into()
}

/// The ONNX Runtime libraries in a folder: the plain name first, then those with a version, the highest first.
pub(super) fn inside(folder: &Path) -> Vec<PathBuf> {
    let (prefix, ending) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let plain = folder.join(format!("{prefix}onnxruntime{ending}"));
    if plain.exists() {
        return vec![plain];
    }
    let versioned = format!("{prefix}onnxruntime{ending}.");
    let mut found: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(&versioned)?.split('.').map_while(|part| part.parse().ok()).collect();
            Some((version, entry.path()))
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The library's version, if it names one; or why it must not be loaded. Reads some kilobytes.
pub(super) fn check(path: &Path) -> Result<Option<String>, String> {
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    if !about.is_file() {
        return Err("is no file".into());
    }
    // Other systems' libraries have other formats; there the loader's own word has to do.
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let mut elf = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let names = names(&mut elf, about.len())?;
    let mut names = names.split(|byte| *byte == 0);
    if !names.clone().any(|name| name == ENTRY) {
        return Err("is a library, but not ONNX Runtime".into());
    }
    let version = names.find_map(|name| name.strip_prefix(VERSION_MARK)).map(String::from_utf8_lossy);
    match version {
        Some(version) if !is_new_enough(&version) => {
            Err(format!("is ONNX Runtime {version}, and 1.{OLDEST_MINOR} or newer is needed"))
        }
        version => Ok(version.map(std::borrow::Cow::into_owned)),
    }
}

/// Whether this is version 1.22 or newer. A new major version has another interface.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(1)), Some(Ok(minor))) if minor >= OLDEST_MINOR)
}

/// The table of the library's dynamic names, after checking that the file is whole and for this machine.
fn names(elf: &mut File, size: u64) -> Result<Vec<u8>, String> {
    let header = read(elf, 0, HEADER, size).map_err(|_| "is no shared library".to_owned())?;
    // The magic number, 64 bit, little-endian; type 3 is a shared object.
    if !header.starts_with(b"\x7fELF\x02\x01") || u16_at(&header, 16) != 3 {
        return Err("is no shared library".into());
    }
    let machine = u16_at(&header, 18);
    if machine != this_machine() {
        return Err(format!("is for another kind of processor ({machine} instead of {})", this_machine()));
    }
    let (first, count) = (u64_at(&header, 32), u16_at(&header, 56));
    if usize::from(u16_at(&header, 54)) != SEGMENT || count > MOST_SEGMENTS {
        return Err("has a header that cannot be right".into());
    }
    let table = read(elf, first, SEGMENT * usize::from(count), size)?;
    let segments: Vec<Segment> = table.chunks_exact(SEGMENT).map(Segment::parse).collect();
    for segment in &segments {
        if segment.kind == LOADED && segment.offset.checked_add(segment.bytes).is_none_or(|end| end > size) {
            return Err(CUT.into());
        }
    }
    let dynamic = segments.iter().find(|segment| segment.kind == DYNAMIC).ok_or("has no table of names")?;
    let length = usize::try_from(dynamic.bytes.min(MOST_NAMES)).unwrap_or(0);
    let dynamic = read(elf, dynamic.offset, length, size)?;
    let tag = |wanted| dynamic.chunks_exact(16).find(|entry| u64_at(entry, 0) == wanted).map(|entry| u64_at(entry, 8));
    let (Some(address), Some(length)) = (tag(TAG_NAMES), tag(TAG_NAMES_SIZE)) else {
        return Err("has no table of names".into());
    };
    let home = segments.iter().find(|segment| segment.kind == LOADED && segment.holds(address));
    let home = home.ok_or("has a table of names that lies nowhere")?;
    if length > MOST_NAMES {
        return Err("has a table of names that is too long".into());
    }
    read(elf, home.offset + (address - home.address), usize::try_from(length).unwrap_or(0), size)
}

const CUT: &str = "is cut short; fetch it again";

/// A part of the file that is laid into memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    /// In the file.
    bytes: u64,
}

impl Segment {
    fn parse(entry: &[u8]) -> Self {
        let kind = u32::from(u16_at(entry, 0)) | u32::from(u16_at(entry, 2)) << 16;
        Self { kind, offset: u64_at(entry, 8), address: u64_at(entry, 16), bytes: u64_at(entry, 32) }
    }

    fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|inside| inside < self.bytes)
    }
}

fn read(elf: &mut File, from: u64, length: usize, size: u64) -> Result<Vec<u8>, String> {
    if from.checked_add(length as u64).is_none_or(|end| end > size) {
        return Err(CUT.into());
    }
    let mut bytes = vec![0; length];
    let come = elf.seek(SeekFrom::Start(from)).and_then(|_| elf.read_exact(&mut bytes));
    come.map(|()| bytes).map_err(|error| format!("cannot be read: {error}"))
}

/// The number at a place; 0 past the end, which no check lets through.
fn u16_at(bytes: &[u8], place: usize) -> u16 {
    bytes.get(place..place + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u64_at(bytes: &[u8], place: usize) -> u64 {
    bytes.get(place..place + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// This processor's number in the format; 0, which nothing has, where the program was built for another one.
fn this_machine() -> u16 {
    match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        _ => 0,
    }
}
