//! Python: started once, with the robot's environment, and asked through one object of `body.py`.
//!
//! Every call attaches to the interpreter for its own length only. Python's threads run in between.

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyLookupError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::Answer;
use crate::interface::{Ask, Status, state};

/// The Python side.
const BODY: &str = include_str!("body.py");

/// The one object that is asked.
static THE_BODY: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Why there is no answer.
enum Failure {
    Nothing,
    NoRoom,
    /// What the caller gave makes no sense.
    Wrong(&'static str),
    Python(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

/// Answers one question.
pub(crate) fn answer(ask: Ask, numbers: &[f64], bytes: &[u8], answer: &mut Answer<'_>) -> Status {
    let outcome = if ask == Ask::Start { start(bytes, answer) } else { with_body(ask, numbers, bytes, answer) };
    match outcome {
        Ok(()) => Status::Done,
        Err(Failure::Nothing) => Status::Nothing,
        Err(Failure::NoRoom) => Status::NoRoom,
        Err(Failure::Wrong(why)) => {
            answer.sentence(why);
            Status::Failed
        }
        Err(Failure::Python(error)) => Python::attach(|py| {
            // The Python side tells a part that is not there by this kind of exception.
            let missing = error.is_instance_of::<PyLookupError>(py);
            answer.sentence(&in_words(py, &error));
            if missing { Status::Missing } else { Status::Failed }
        }),
    }
}

fn the_body() -> MutexGuard<'static, Option<Py<PyAny>>> {
    THE_BODY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exception's own words, with its kind where it is not one that our Python side words itself.
fn in_words(py: Python<'_>, error: &PyErr) -> String {
    let words = error.value(py).str().map(|words| words.to_string()).unwrap_or_default();
    let is_ours = error.is_instance_of::<PyRuntimeError>(py) || error.is_instance_of::<PyLookupError>(py);
    match error.get_type(py).name() {
        Ok(kind) if !is_ours || words.is_empty() => format!("{kind}: {words}"),
        _ => words,
    }
}

/// Starts the interpreter where none runs, and makes the body.
fn start(settings: &[u8], answer: &mut Answer<'_>) -> Result<(), Failure> {
    let settings = std::str::from_utf8(settings).map_err(|_| Failure::Wrong("the settings are no text"))?;
    // The first line is Python's own program, the rest what the body is told.
    let (program, settings) = settings.split_once('\n').ok_or(Failure::Wrong("the settings are not whole"))?;
    initialise(program);
    let (body, version) = keeping_signals(|| {
        Python::attach(|py| -> PyResult<_> {
            // Taken before anything else can: importing it makes Ctrl-C Python's.
            py.import("signal")?;
            let source = CString::new(BODY).map_err(|_| PyRuntimeError::new_err("body.py holds a zero byte"))?;
            let module = PyModule::from_code(py, &source, c"body.py", c"reachy_body")?;
            let body = module.getattr("Body")?.call1((settings,))?;
            let version: String = module.getattr("SDK_VERSION")?.extract()?;
            Ok((body.unbind(), version))
        })
    })?;
    let before = the_body().replace(body);
    if let Some(before) = before {
        Python::attach(|py| before.call_method0(py, "close").map(drop))?;
    }
    answer.sentence(&version);
    Ok(())
}

fn initialise(program: &str) {
    // SAFETY: called from the one thread that uses the library; the name ends with a zero and Python copies it.
    // After the start this thread gives the interpreter free, as every call attaches for itself.
    unsafe {
        if pyo3::ffi::Py_IsInitialized() != 0 {
            return;
        }
        let name: Vec<libc::wchar_t> = program.chars().map(|c| c as libc::wchar_t).chain([0]).collect();
        #[expect(deprecated, reason = "what takes its place is not in the stable interface")]
        pyo3::ffi::Py_SetProgramName(name.as_ptr());
        // 0: leave the signals alone.
        pyo3::ffi::Py_InitializeEx(0);
        pyo3::ffi::PyEval_SaveThread();
    }
}

/// Puts back what Ctrl-C and the stop signal did before `call`: Python's modules take Ctrl-C when they are loaded.
fn keeping_signals<T>(call: impl FnOnce() -> T) -> T {
    const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];
    // SAFETY: both calls only read and write the structure that is given; all zeros is a valid one.
    let before = SIGNALS.map(|signal| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0).then_some(action)
    });
    let result = call();
    for (signal, before) in SIGNALS.into_iter().zip(before) {
        // SAFETY: as above; the action is the one that was there.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0;
            if let Some(before) = before
                && known
                && is_pythons(signal, &now, &before)
            {
                libc::sigaction(signal, &raw const before, std::ptr::null_mut());
            }
        }
    }
    result
}

/// Whether an action was set by Python: the program's own handlers, which may have come meanwhile, carry flags.
fn is_pythons(signal: libc::c_int, now: &libc::sigaction, before: &libc::sigaction) -> bool {
    signal == libc::SIGINT && now.sa_sigaction != before.sa_sigaction && now.sa_flags & libc::SA_SIGINFO == 0
}

/// Asks the body.
fn with_body(ask: Ask, numbers: &[f64], bytes: &[u8], answer: &mut Answer<'_>) -> Result<(), Failure> {
    let guard = the_body();
    let Some(body) = guard.as_ref() else { return Err(Failure::Wrong("the body was not started")) };
    Python::attach(|py| {
        let body = body.bind(py);
        match ask {
            Ask::Start => Err(Failure::Wrong("the body was started already")),
            Ask::State => give_state(body, answer),
            Ask::Target => told(body.call_method1("target", (PyList::new(py, numbers)?,))),
            Ask::Motors => told(body.call_method1("motors", (first(numbers)? != 0.0,))),
            Ask::Hear => give_sound(body, answer),
            Ask::Play => told(body.call_method1("play", (PyBytes::new(py, bytes),))),
            Ask::Hush => told(body.call_method0("hush")),
            Ask::Picture => give_picture(body, answer),
            Ask::Direction => {
                let (angle, speaks): (f64, bool) = given(body.call_method0("direction"))?.extract()?;
                answer.numbers(&[angle, f64::from(u8::from(speaks))]).then_some(()).ok_or(Failure::NoRoom)
            }
            Ask::Volume => told(body.call_method1("volume", (first(numbers)?,))),
            Ask::Renew => told(body.call_method0("renew")),
            Ask::Close => told(body.call_method0("close")),
        }
    })
}

fn first(numbers: &[f64]) -> Result<f64, Failure> {
    numbers.first().copied().ok_or(Failure::Wrong("a number is missing"))
}

fn told(outcome: PyResult<Bound<'_, PyAny>>) -> Result<(), Failure> {
    outcome?;
    Ok(())
}

/// What Python gave, where it gave anything.
fn given(outcome: PyResult<Bound<'_, PyAny>>) -> Result<Bound<'_, PyAny>, Failure> {
    let value = outcome?;
    if value.is_none() { Err(Failure::Nothing) } else { Ok(value) }
}

fn give_state(body: &Bound<'_, PyAny>, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let given = body.call_method0("state")?;
    let pair = given.cast::<PyTuple>().map_err(PyErr::from)?;
    let numbers: Vec<f64> = pair.get_item(0)?.extract()?;
    let why: String = pair.get_item(1)?.extract()?;
    if numbers.len() != state::COUNT {
        return Err(Failure::Wrong("the state is not whole"));
    }
    answer.sentence(&why);
    answer.numbers(&numbers).then_some(()).ok_or(Failure::NoRoom)
}

/// Interleaved samples of a float array (samples × channels).
fn give_sound(body: &Bound<'_, PyAny>, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let sound = given(body.call_method0("hear"))?;
    let (samples, rate): (Bound<'_, PyAny>, f64) = sound.extract()?;
    let buffer = PyBuffer::<f32>::get(&samples)?;
    let channels = match buffer.shape() {
        [_] => 1,
        [_, channels] => *channels,
        _ => return Err(Failure::Wrong("the microphone's sound has no known shape")),
    };
    let values = buffer.to_vec(samples.py())?;
    let room = answer.room(values.len() * 4).ok_or(Failure::NoRoom)?;
    for (room, value) in room.chunks_exact_mut(4).zip(&values) {
        room.copy_from_slice(&value.to_ne_bytes());
    }
    answer.numbers(&[rate, channels as f64]).then_some(()).ok_or(Failure::NoRoom)
}

fn give_picture(body: &Bound<'_, PyAny>, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let picture = given(body.call_method0("picture"))?;
    let buffer = PyBuffer::<u8>::get(&picture)?;
    let &[height, width, 3] = buffer.shape() else {
        return Err(Failure::Wrong("the camera's picture is not rows of blue, green and red"));
    };
    let room = answer.room(height * width * 3).ok_or(Failure::NoRoom)?;
    buffer.copy_to_slice(picture.py(), room)?;
    answer.numbers(&[width as f64, height as f64]).then_some(()).ok_or(Failure::NoRoom)
}
