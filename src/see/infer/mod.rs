//! Running a network from an ONNX file, by one of two engines behind one trait.
//!
//! [`Engine::start`] decides once which engine runs: ONNX Runtime, where its shared library is found and fit, or rten,
//! which is part of the program. [`Engine::in_use`] says which and why, for the log, health and `doctor`. Whoever loads
//! a network owns it, runs it on a thread of its own, and loads it again after a failure; the engine itself holds no
//! state that can break. The library, once loaded, stays until the process ends: a process has at most one.

mod library;
mod onnx_runtime;
mod pure;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten::ThreadPool;

pub use crate::config::Backend;
use onnx_runtime::Runtime;

/// The environment variable that names an ONNX Runtime library; the usual one of programs that load it.
const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";
/// The most numbers in one tensor, 400 MB: no network of this project has a tenth of it.
const MOST_NUMBERS: usize = 100_000_000;

/// Why a network could not be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// No file, or no network in it: fetch it again.
    #[error(
        "the network {path} could not be loaded: {why}; `reachy-remembers models verify` tells whether the file is whole"
    )]
    Load { path: String, why: String },
    /// Load it again, or go on without it.
    #[error("the network {name} failed: {why}")]
    Run { name: String, why: String },
    /// A tensor whose numbers do not fill its shape, or a picture that is none: a fault of the caller.
    #[error("what was to be looked at cannot be: {why}")]
    Input { why: String },
    /// The library that the config asks for cannot be used.
    #[error(
        "ONNX Runtime cannot be used: {why}; fetch it with `reachy-remembers models fetch`, or set `backend` under \
         [see] to \"auto\" or \"rten\""
    )]
    Library { why: String },
}

/// Numbers and their shape, the last dimension running fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Tensor {
    /// # Errors
    /// [`InferError::Input`] when `values` do not fill `shape`.
    pub fn new(shape: Vec<usize>, values: Vec<f32>) -> Result<Self, InferError> {
        let wanted = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        if wanted != Some(values.len()) || values.len() > MOST_NUMBERS {
            let why = format!("{} numbers do not make a tensor of shape {shape:?}", values.len());
            return Err(InferError::Input { why });
        }
        Ok(Self { shape, values })
    }

    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// A loaded network. Blocks while it runs; one owner.
pub trait Network: Send {
    /// Names of the inputs, in the file's order.
    fn inputs(&self) -> &[String];

    /// Names of the outputs, in the file's order.
    fn outputs(&self) -> &[String];

    /// Every output by its name.
    ///
    /// # Errors
    /// [`InferError::Run`] when an input is missing, has another shape than the network's, or the engine fails.
    fn run(&mut self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>, InferError>;
}

/// Where the ONNX Runtime library is looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// What the config names; where it names one, no other is looked at.
    pub configured: Option<PathBuf>,
    /// What `ORT_DYLIB_PATH` names.
    pub environment: Option<PathBuf>,
    /// What `models fetch` brought.
    pub models: Option<PathBuf>,
    /// Folders of the system.
    pub system: Vec<PathBuf>,
}

impl Places {
    /// The places of this process. `configured`: `[see] onnx_runtime`, empty for none; `models`: the models folder's.
    #[must_use]
    pub fn of_this_process(configured: &Path, models: Option<PathBuf>) -> Self {
        let named = |path: PathBuf| (!path.as_os_str().is_empty()).then_some(path);
        Self {
            configured: named(configured.to_owned()),
            environment: std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from).and_then(named),
            models,
            system: library::system_folders(),
        }
    }

    /// The libraries that are there to be tried, in order.
    fn candidates(&self) -> Vec<PathBuf> {
        if let Some(configured) = &self.configured {
            return vec![configured.clone()];
        }
        let named = self.environment.iter().chain(&self.models).cloned();
        named.chain(self.system.iter().flat_map(|folder| library::inside(folder))).collect()
    }
}

/// The engine that runs the networks. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    kind: Kind,
    threads: usize,
    in_use: String,
}

#[derive(Clone)]
enum Kind {
    OnnxRuntime(Runtime),
    Rten(Arc<ThreadPool>),
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("in_use", &self.in_use).field("threads", &self.threads).finish()
    }
}

impl Engine {
    /// Chooses the engine. `threads`: what one run may use, at least 1. Blocks for tenths of a second, when the
    /// library is loaded for the first time.
    ///
    /// # Errors
    /// [`InferError::Library`] when ONNX Runtime is demanded and cannot be had. `Auto` and `Rten` never fail.
    pub fn start(backend: Backend, places: &Places, threads: usize) -> Result<Self, InferError> {
        let threads = threads.max(1);
        let rten = |why: &str| {
            let in_use = format!("rten, {why}");
            Self { kind: Kind::Rten(Arc::new(ThreadPool::with_num_threads(threads))), threads, in_use }
        };
        if backend == Backend::Rten {
            return Ok(rten("as [see] backend says"));
        }
        match find(places) {
            Ok((runtime, passed_over)) => {
                let in_use = match passed_over.is_empty() {
                    true => runtime.in_use(),
                    false => format!("{}, passed over: {passed_over}", runtime.in_use()),
                };
                Ok(Self { kind: Kind::OnnxRuntime(runtime), threads, in_use })
            }
            Err(why) if backend == Backend::OnnxRuntime => Err(InferError::Library { why }),
            Err(why) => Ok(rten(&format!("which takes 2 to 5 times the time of ONNX Runtime, because {why}"))),
        }
    }

    /// Which engine: `onnxruntime` or `rten`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::OnnxRuntime(_) => "onnxruntime",
            Kind::Rten(_) => "rten",
        }
    }

    /// Which engine and why, in one line for the log, health and `doctor`.
    #[must_use]
    pub fn in_use(&self) -> &str {
        &self.in_use
    }

    /// Loads a network. Blocks for tenths of a second.
    ///
    /// # Errors
    /// [`InferError::Load`].
    pub fn load(&self, path: &Path) -> Result<Box<dyn Network>, InferError> {
        let shown = path.display().to_string();
        let loaded = guarded(|| match &self.kind {
            Kind::OnnxRuntime(runtime) => runtime.load(path, self.threads).map(|it| Box::new(it) as Box<dyn Network>),
            Kind::Rten(pool) => pure::load(path, Arc::clone(pool)).map(|it| Box::new(it) as Box<dyn Network>),
        });
        // An empty file is a valid, empty network in one engine.
        let loaded = loaded.and_then(|network| match network.outputs() {
            [] => Err("there is no network in it".to_owned()),
            _ => Ok(network),
        });
        loaded.map_err(|why| InferError::Load { path: shown, why })
    }
}

/// The first library that can be loaded and what is wrong with those before it; or what is wrong with all.
fn find(places: &Places) -> Result<(Runtime, String), String> {
    let mut refused = Vec::new();
    for path in places.candidates() {
        match Runtime::open(&path) {
            Ok(runtime) => return Ok((runtime, refused.join("; "))),
            Err(why) => refused.push(format!("{} {why}", path.display())),
        }
    }
    if refused.is_empty() {
        return Err("no library of it was found".into());
    }
    Err(refused.join("; "))
}

/// Runs code of an engine; a panic in it becomes words, because a damaged file must not end the service.
fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(format!("it broke down ({})", said(&*panic))))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

#[cfg(test)]
mod tests;
