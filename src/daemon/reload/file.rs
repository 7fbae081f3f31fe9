//! When an edited file is finished.
//!
//! Editors write in place, or beside the file and rename over it, or remove it first. All of them change the file's
//! inode, length or times, and then leave it alone: a file counts as edited when it looks different from before and
//! then the same twice. A watch on the inode itself would lose the file at the first rename.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one writing of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds, of the content and of the inode: a copy may keep the first, not the second.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of the file at `path`; `None` while there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|about| Self {
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

/// A file under watch; pure.
#[derive(Debug)]
pub(super) struct Watched {
    /// As it was when it was last read.
    read: Option<Stamp>,
    /// As it was at the last look.
    seen: Option<Stamp>,
}

impl Watched {
    /// The file was read when it looked like `stamp`.
    pub(super) fn new(stamp: Option<Stamp>) -> Self {
        Self { read: stamp, seen: stamp }
    }

    /// Takes a look; true when the file is to be read again.
    pub(super) fn look(&mut self, stamp: Option<Stamp>) -> bool {
        let settled = self.seen == stamp;
        self.seen = stamp;
        let edited = settled && self.read != stamp;
        if edited {
            self.read = stamp;
        }
        edited
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stamp(inode: u64, length: u64) -> Option<Stamp> {
        Some(Stamp { device: 1, inode, length, modified: (0, 0), changed: (0, 0) })
    }

    #[test]
    fn an_edit_counts_once_and_only_when_it_is_finished() {
        let mut watched = Watched::new(stamp(1, 10));
        assert!(!watched.look(stamp(1, 10)));
        // Half of it is written.
        assert!(!watched.look(stamp(1, 5)));
        assert!(!watched.look(stamp(1, 12)));
        assert!(watched.look(stamp(1, 12)));
        assert!(!watched.look(stamp(1, 12)));
    }

    #[test]
    fn a_file_that_is_away_for_a_moment_is_not_an_edit() {
        let mut watched = Watched::new(stamp(1, 10));
        assert!(!watched.look(None));
        assert!(!watched.look(stamp(2, 10)));
        assert!(watched.look(stamp(2, 10)));
        // One that stays away is.
        assert!(!watched.look(None));
        assert!(watched.look(None));
        assert!(!watched.look(None));
    }

    #[test]
    fn every_way_to_write_a_file_changes_its_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "a = 1").unwrap();
        let first = Stamp::of(&path);
        let beside = folder.path().join("config.toml.new");
        fs::write(&beside, "a = 2").unwrap();
        fs::rename(&beside, &path).unwrap();
        let renamed = Stamp::of(&path);
        assert!(first.is_some() && renamed.is_some() && first != renamed);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, "a = 3").unwrap();
        assert_ne!(Stamp::of(&path), renamed);
    }
}
