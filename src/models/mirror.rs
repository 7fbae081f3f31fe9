//! Files out of a folder: a USB stick, a share in the house.

use std::fs;
use std::io;
use std::path::Path;

use super::part::{self, Target};
use super::{ModelError, SourceError};

/// Brings one file from `mirror`, which holds it as `<model>/<file>` or `<file>`. Blocks.
pub(super) fn copy(mirror: &Path, model: &str, target: &Target) -> Result<(), SourceError> {
    if !mirror.is_dir() {
        let why = format!("{} is no folder", mirror.display());
        return Err(SourceError::Unreachable { why });
    }
    for place in [mirror.join(model).join(&target.file), mirror.join(&target.file)] {
        let unreadable = |source| SourceError::Local(ModelError::Unreadable { path: place.clone(), source });
        let mut source = match fs::File::open(&place) {
            Ok(source) => source,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                continue;
            }
            Err(error) => return Err(unreadable(error)),
        };
        let found = source.metadata().map_err(unreadable)?.len();
        if found != target.size {
            return Err(SourceError::Size { file: target.file.clone(), found, size: target.size });
        }
        let folder = target.path.parent().unwrap_or(Path::new("."));
        part::check_room(folder, &target.file, target.size)?;
        let written = target.copy_from(&mut source)?;
        return target.finish(&written);
    }
    Err(SourceError::Missing { file: target.file.clone() })
}
