//! Where Python is: the robot's environment, its libpython, its SDK, and the bridge library.
//!
//! The environment's own python is asked, because only it knows. Nothing is loaded here; anybody may ask.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::Settings;

/// A path to the bridge library that goes before every other.
pub const BRIDGE_VARIABLE: &str = "REACHY_BRIDGE";
/// The library's file.
const BRIDGE_FILE: &str = "libreachy_bridge.so";
/// The oldest Python that the bridge works with; it is built on that one's stable interface.
const OLDEST: (u32, u32) = (3, 11);
/// How long the environment's python may take to answer. A cold start from an SD card takes seconds.
const ANSWER: Duration = Duration::from_secs(20);

/// What the environment's python is asked: its version, its SDK's, its libpython, and where that may be.
const QUESTION: &str = "\
import sys, sysconfig
from importlib import metadata
get = lambda name: sysconfig.get_config_var(name) or ''
print('%d.%d' % sys.version_info[:2])
try:
    print(metadata.version('reachy-mini'))
except metadata.PackageNotFoundError:
    print('')
print(get('INSTSONAME'))
print(get('LIBDIR'))
print(get('LIBPL'))
print(get('MULTIARCH'))
print(sys.base_prefix)
print(sys.version.replace('\\n', ' '))";

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The environment's python.
    pub program: PathBuf,
    /// Its version, as in "3.11".
    pub version: String,
    /// The SDK's version.
    pub sdk: String,
    pub libpython: PathBuf,
    /// The very build that python is, as its library must be.
    pub build: String,
    pub bridge: PathBuf,
}

/// Why the body cannot be had; each sentence says what to do.
#[derive(Debug, Error)]
pub enum FindError {
    #[error(
        "there is no Python environment at {}; name the folder of the one with the robot's SDK as [robot] venv",
        path.display()
    )]
    NoEnvironment { path: PathBuf },
    #[error("{} does not work: {why}", path.display())]
    Broken { path: PathBuf, why: String },
    #[error("{} is Python {version}; the robot's SDK needs {}.{} or newer", path.display(), OLDEST.0, OLDEST.1)]
    TooOld { path: PathBuf, version: String },
    #[error(
        "the Python environment {} has no Reachy Mini SDK; install it there (pip install reachy-mini), or name the \
         environment that has it as [robot] venv",
        path.display()
    )]
    NoSdk { path: PathBuf },
    #[error(
        "the shared library of Python {version} ({name}) is not on this machine; install it (on Debian: sudo apt install \
         libpython{version})"
    )]
    NoLibpython { version: String, name: String },
    #[error(
        "the bridge library {BRIDGE_FILE} is missing; it belongs beside the program ({}), or where the variable \
         {BRIDGE_VARIABLE} says",
        folder.display()
    )]
    NoBridge { folder: PathBuf },
}

/// Finds everything. Blocks while python starts, for a second or more.
///
/// # Errors
/// [`FindError`] for the first thing that is not there.
pub fn find(settings: &Settings) -> Result<Found, FindError> {
    let venv = &settings.venv;
    let program = venv.join("bin/python");
    if !program.exists() {
        return Err(FindError::NoEnvironment { path: venv.clone() });
    }
    let broken = |why: String| FindError::Broken { path: program.clone(), why };
    let answer = ask(&program).map_err(broken)?;
    let mut lines = answer.lines();
    let mut next = || lines.next().unwrap_or_default().trim().to_owned();
    let (version, sdk, name) = (next(), next(), next());
    let folders: [String; 4] = [next(), next(), next(), next()];
    if !is_new_enough(&version).ok_or_else(|| broken(format!("it answered \"{version}\"")))? {
        return Err(FindError::TooOld { path: program, version });
    }
    if sdk.is_empty() {
        return Err(FindError::NoSdk { path: venv.clone() });
    }
    let libpython = libpython(&version, &name, &folders).ok_or(FindError::NoLibpython {
        name: if name.is_empty() { format!("libpython{version}.so") } else { name },
        version: version.clone(),
    })?;
    Ok(Found { program, version, sdk, libpython, build: next(), bridge: bridge()? })
}

fn is_new_enough(version: &str) -> Option<bool> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?) >= OLDEST)
}

/// The first place where the library really is. A python that was linked as a whole names only an archive (`.a`);
/// Debian's is one, and has the library in a package of its own.
fn libpython(version: &str, name: &str, [lib, config, multiarch, base]: &[String; 4]) -> Option<PathBuf> {
    let name = if name.contains(".so") { name.to_owned() } else { format!("libpython{version}.so.1.0") };
    let base = Path::new(base).join("lib");
    let folders =
        [PathBuf::from(lib), Path::new(lib).join(multiarch), base.clone(), base.join(multiarch), PathBuf::from(config)];
    folders.into_iter().map(|folder| folder.join(&name)).find(|path| path.is_absolute() && path.is_file())
}

/// The bridge library: where the variable says, beside the program, or in a `lib` folder beside or above it.
fn bridge() -> Result<PathBuf, FindError> {
    if let Some(path) = std::env::var_os(BRIDGE_VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() { Ok(path) } else { Err(FindError::NoBridge { folder: path }) };
    }
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    let places = ["", "lib", "../lib", "../lib/reachy-remembers"];
    let found = places.into_iter().map(|place| folder.join(place).join(BRIDGE_FILE)).find(|path| path.is_file());
    found.ok_or(FindError::NoBridge { folder })
}

/// Runs the environment's python, which is stopped when it does not answer.
fn ask(program: &Path) -> Result<String, String> {
    let mut python = Command::new(program)
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let began = Instant::now();
    // Its answer is a few lines, which fit the pipe.
    while python.try_wait().map_err(|error| error.to_string())?.is_none() {
        if began.elapsed() > ANSWER {
            let _ = python.kill();
            let _ = python.wait();
            return Err(format!("it did not answer within {} s", ANSWER.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = python.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(words.lines().last().unwrap_or("it failed without a word").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(venv: &Path) -> Settings {
        Settings { venv: venv.to_owned(), ..Settings::default() }
    }

    /// An environment whose python answers with this.
    fn environment(script: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let python = folder.path().join("bin/python");
        std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn sentence(script: &str) -> String {
        find(&settings(environment(script).path())).unwrap_err().to_string()
    }

    #[test]
    fn each_thing_that_is_missing_is_a_sentence_with_what_to_do() {
        let nothing = tempfile::tempdir().unwrap();
        let error = find(&settings(nothing.path())).unwrap_err().to_string();
        assert!(error.contains("[robot] venv") && error.contains(&nothing.path().display().to_string()), "{error}");

        let error = sentence("echo 'no module named encodings' >&2; exit 1");
        assert!(error.contains("bin/python") && error.contains("encodings"), "{error}");
        let error = sentence("echo something else");
        assert!(error.contains("something else"), "{error}");
        let error = sentence("printf '3.9\\n1.13.0\\n'");
        assert!(error.contains("Python 3.9") && error.contains("3.11"), "{error}");
        let error = sentence("printf '3.11\\n\\n'");
        assert!(error.contains("pip install reachy-mini"), "{error}");
        let error = sentence("printf '3.99\\n1.13.0\\nlibpython3.99.so.1.0\\n/nowhere\\n'");
        assert!(error.contains("libpython3.99") && error.contains("apt install"), "{error}");
    }

    #[test]
    fn the_library_is_found_where_each_kind_of_python_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let text = |path: &str| folder.path().join(path).display().to_string();
        let of = |lib: &str, base: &str| [text(lib), String::new(), "x86_64-linux-gnu".into(), text(base)];
        let debian = at("usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
        assert_eq!(libpython("3.11", "libpython3.11.a", &of("usr/lib", "usr")), Some(debian));
        let moved = at("moved/lib/libpython3.12.so.1.0");
        assert_eq!(libpython("3.12", "libpython3.12.so.1.0", &of("install/lib", "moved")), Some(moved));
        assert_eq!(libpython("3.13", "libpython3.13.so.1.0", &of("usr/lib", "moved")), None);
    }
}
