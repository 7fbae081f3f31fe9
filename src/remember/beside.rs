//! A shard built beside another takes its place, whole or not at all.
//!
//! The new shard is built in `NAME.new`; only when it is complete does it replace the old one, in two renames with
//! `NAME.before` between them. A process that dies at any moment leaves either the old shard or the new one, and
//! [`recover`] finds out which, before anybody opens or makes a shard. Only the holder of the folder's lock may call
//! any of this.

pub mod engine;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::folder::{self, FolderError};

/// The new shard while it is built.
const NEW: &str = "new";
/// The old shard while the new one takes its place.
const BEFORE: &str = "before";

/// Where a new shard may be built; what an interrupted run left there is removed, because it was never in use.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn new_place(shard: &Path) -> Result<PathBuf, FolderError> {
    cleared(shard, NEW)
}

/// Repairs what a process that died in the middle left: between the two renames the old shard goes back into its place;
/// after them, what is left of the old one is removed, as is a new one that was never completed. Answers a sentence
/// where the rebuild has to be done again.
///
/// # Errors
/// [`FolderError::NotWritable`].
pub fn recover(shard: &Path) -> Result<Option<String>, FolderError> {
    let before = shard.with_extension(BEFORE);
    let mut note = None;
    if before.exists() && !shard.exists() {
        folder::rename(&before, shard)?;
        let name = shard.file_name().unwrap_or_default().to_string_lossy();
        note = Some(format!("Building the `{name}` shard anew was interrupted; it is as it was before."));
    }
    cleared(shard, BEFORE)?;
    cleared(shard, NEW)?;
    Ok(note)
}

/// Puts the new shard in the old one's place, and removes the old one. Neither may be open.
///
/// # Errors
/// [`FolderError::NotWritable`]; the old shard is then in its place again, or the new one is and something of the old
/// one is left beside it, which [`recover`] removes.
pub fn swap(shard: &Path, beside: &Path) -> Result<(), FolderError> {
    let before = cleared(shard, BEFORE)?;
    folder::rename(shard, &before)?;
    if let Err(error) = folder::rename(beside, shard) {
        // The caller goes on with the old one; where even this fails, the next opening does it.
        let _ = folder::rename(&before, shard);
        return Err(error);
    }
    remove(&before)
}

/// Copies the notes beside a shard (`NAME.json`, which we wrote) to another, but for the engine's own file and for the
/// count, which the new shard has of its own.
///
/// # Errors
/// [`FolderError::NotReadable`], [`FolderError::NotWritable`].
pub fn copy_notes(from: &Path, to: &Path) -> Result<(), FolderError> {
    let not_readable = |source| FolderError::NotReadable { path: from.to_owned(), source };
    for entry in fs::read_dir(from).map_err(not_readable)? {
        let path = entry.map_err(not_readable)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.ends_with(".json") || name == engine::CONFIG || name == folder::COUNT || !path.is_file() {
            continue;
        }
        let target = to.join(name);
        let copy = fs::copy(&path, &target).and_then(|_| File::open(&target)?.sync_all());
        copy.map_err(|source| FolderError::NotWritable { path: target, source })?;
    }
    Ok(())
}

fn cleared(shard: &Path, suffix: &str) -> Result<PathBuf, FolderError> {
    let beside = shard.with_extension(suffix);
    if beside.exists() {
        remove(&beside)?;
    }
    Ok(beside)
}

/// Removes a shard and makes that durable.
fn remove(shard: &Path) -> Result<(), FolderError> {
    let parent = shard.parent().unwrap_or(Path::new("."));
    fs::remove_dir_all(shard)
        .and_then(|()| File::open(parent)?.sync_all())
        .map_err(|source| FolderError::NotWritable { path: shard.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with shards that hold their own names.
    fn with(shards: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for shard in shards {
            fs::create_dir(folder.path().join(shard)).unwrap();
            fs::write(folder.path().join(shard).join("points"), shard).unwrap();
        }
        let shard = folder.path().join("people");
        (folder, shard)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn whenever_the_power_goes_one_whole_shard_is_left_and_nothing_beside_it() {
        for (left, holds, told) in [
            (vec!["people"], "people", false),
            (vec!["people", "people.new"], "people", false),
            (vec!["people.before", "people.new"], "people.before", true),
            (vec!["people", "people.before"], "people", false),
        ] {
            let (folder, shard) = with(&left);
            assert_eq!(recover(&shard).unwrap().is_some(), told, "{left:?}");
            assert_eq!(fs::read_to_string(shard.join("points")).unwrap(), holds);
            assert_eq!(names(folder.path()), ["people"], "{left:?}");
        }
        let (folder, shard) = with(&[]);
        assert_eq!(recover(&shard).unwrap(), None);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn after_a_swap_the_old_shard_is_gone() {
        let (folder, shard) = with(&["people", "people.new", "people.before"]);
        swap(&shard, &shard.with_extension("new")).unwrap();
        assert_eq!(fs::read_to_string(shard.join("points")).unwrap(), "people.new");
        assert_eq!(names(folder.path()), ["people"]);
    }

    #[test]
    fn a_swap_with_nothing_to_swap_in_leaves_the_old_shard_in_its_place() {
        let (folder, shard) = with(&["people"]);
        swap(&shard, &shard.with_extension("new")).unwrap_err();
        assert_eq!(names(folder.path()), ["people"]);
    }
}
