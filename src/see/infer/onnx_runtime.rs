//! Networks by ONNX Runtime, whose shared library is loaded when the program runs.
//!
//! The process keeps one library and one environment, because ONNX Runtime allows no second. Idle worker threads
//! sleep instead of spinning (measured on a desktop: 64 → 39 ms of processor for a detection with two threads).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::{Session, SessionInputValue};
use ort::value::TensorRef;

use super::{InferError, Network, Tensor, guarded, library};

/// The library of this process, once one was loaded.
static LOADED: Mutex<Option<Result<Runtime, Failed>>> = Mutex::new(None);

/// A loaded library. Cheap to clone.
#[derive(Clone)]
pub(super) struct Runtime {
    path: PathBuf,
    version: Option<String>,
    environment: Environment,
}

/// A library that was loaded and then refused to work; another one cannot be loaded beside it.
#[derive(Clone)]
struct Failed {
    path: PathBuf,
    why: String,
}

impl Runtime {
    /// Loads the library at `path`, or says what is wrong with it. A library that is loaded already is kept.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let version = library::check(path)?;
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*loaded {
            Some(Ok(runtime)) => return Ok(runtime.clone()),
            Some(Err(Failed { path, why })) => {
                return Err(format!("was not tried, because {} was loaded before and failed ({why})", path.display()));
            }
            None => {}
        }
        // Until this has returned, nothing is loaded, and another library may be tried.
        let builder = guarded(|| ort::init_from(path).map_err(|error| format!("cannot be loaded: {error}")))?;
        let environment = guarded(|| {
            let environment = builder.with_name("reachy").with_telemetry(false).build().map_err(in_words)?;
            environment.set_log_level(LogLevel::Fatal);
            Ok(environment)
        });
        let opened = match environment {
            Ok(environment) => Ok(Self { path: path.to_owned(), version, environment }),
            Err(why) => Err(Failed { path: path.to_owned(), why }),
        };
        loaded.insert(opened).clone().map_err(|failed| format!("does not start: {}", failed.why))
    }

    pub(super) fn in_use(&self) -> String {
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        format!("onnxruntime {version} ({})", self.path.display())
    }

    pub(super) fn load(&self, path: &Path, threads: usize) -> Result<OrtNetwork, String> {
        let session = self.session(path, threads)?;
        Ok(OrtNetwork {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            inputs: session.inputs().iter().map(|input| input.name().to_owned()).collect(),
            outputs: session.outputs().iter().map(|output| output.name().to_owned()).collect(),
            session,
        })
    }

    fn session(&self, path: &Path, threads: usize) -> Result<Session, String> {
        let builder = Session::builder(&self.environment).map_err(in_words)?;
        let builder = builder.with_intra_threads(threads).map_err(in_words)?;
        let builder = builder.with_inter_threads(1).map_err(in_words)?;
        let mut builder = builder.with_intra_op_spinning(false).map_err(in_words)?;
        builder.commit_from_file(path).map_err(in_words)
    }
}

/// The first line is enough for an owner; the rest is the library's own stack.
fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or("without a word").to_owned()
}

/// A network in ONNX Runtime.
pub(super) struct OrtNetwork {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    session: Session,
}

impl OrtNetwork {
    fn answer(&mut self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>, String> {
        let mut values: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let value = TensorRef::from_array_view((tensor.shape(), tensor.values())).map_err(in_words)?;
            values.push((Cow::Borrowed(*name), value.into()));
        }
        let answer = self.session.run(values).map_err(in_words)?;
        let mut outputs = BTreeMap::new();
        for (name, value) in answer.iter() {
            let (shape, values) = value.try_extract_tensor::<f32>().map_err(in_words)?;
            let shape = shape.iter().map(|size| usize::try_from(*size)).collect::<Result<_, _>>();
            let shape = shape.map_err(|_| format!("{name} has a shape below zero"))?;
            outputs.insert(name.to_owned(), Tensor::new(shape, values.to_vec()).map_err(in_words)?);
        }
        Ok(outputs)
    }
}

impl Network for OrtNetwork {
    fn inputs(&self) -> &[String] {
        &self.inputs
    }

    fn outputs(&self) -> &[String] {
        &self.outputs
    }

    fn run(&mut self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>, InferError> {
        guarded(|| self.answer(inputs)).map_err(|why| InferError::Run { name: self.name.clone(), why })
    }
}
