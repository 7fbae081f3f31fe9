//! Opening the bridge library and calling it.
//!
//! The one place of the program with code that the compiler cannot check, because a library that is opened at run time
//! is: Python must be neither linked (the program would not start without it, or with another one than the robot's)
//! nor started in a process of its own (a picture is 2.7 MB, ten times a second).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::find::Found;
use super::interface::{Ask, CALL_SYMBOL, Call, Status, VERSION, VERSION_SYMBOL};

/// The opened library. It stays open until the process ends.
pub(super) struct Bridge {
    call: unsafe extern "C" fn(*mut Call),
}

/// What was answered: how it went, and how many bytes were (or would have been) written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub status: Status,
    pub bytes: usize,
}

impl Bridge {
    /// Opens libpython for everything that comes after it, then the bridge.
    ///
    /// # Errors
    /// A sentence: what could not be opened, that libpython is not the environment's, or that the bridge is of another
    /// version.
    pub(super) fn open(Found { libpython, build, bridge, .. }: &Found) -> Result<Self, String> {
        let open = |path: &Path| {
            // SAFETY: opening runs the library's own start. Both are what they are by name: Python's library of the
            // robot's environment and the one built with this program.
            let library = unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_GLOBAL) };
            library.map_err(|error| format!("{} cannot be loaded: {error}", path.display()))
        };
        let python = open(libpython)?;
        let is_no_python = |error| format!("{} is no Python: {error}", libpython.display());
        // SAFETY: Python's own function of this name, which may be called before anything else and gives a text that
        // lives as long as the library.
        let words = unsafe {
            let version = python.get::<extern "C" fn() -> *const c_char>(b"Py_GetVersion").map_err(is_no_python)?;
            CStr::from_ptr(version()).to_string_lossy().replace('\n', " ")
        };
        // Its modules would ask for what another build does not have.
        if words != *build {
            return Err(format!("{} is Python {words}, and the environment's is {build}", libpython.display()));
        }
        // Never closed: Python's threads run in it.
        std::mem::forget(python);
        let library = open(bridge)?;
        let missing = |error| format!("{} is not the bridge library: {error}", bridge.display());
        // SAFETY: the symbol is this function in every version of the library.
        let version = unsafe { library.get::<extern "C" fn() -> u32>(VERSION_SYMBOL) }.map_err(missing)?;
        let version = version();
        if version != VERSION {
            return Err(format!(
                "{} speaks version {version} of the interface, this program {VERSION}; install both from one build",
                bridge.display()
            ));
        }
        // SAFETY: of this version the symbol is this function.
        let call = unsafe { library.get::<unsafe extern "C" fn(*mut Call)>(CALL_SYMBOL) }.map_err(missing)?;
        let call = *call;
        std::mem::forget(library);
        Ok(Self { call })
    }

    /// Asks, with room for the answer. From one thread only, which is why this wants `&mut`.
    pub(super) fn ask(
        &mut self,
        ask: Ask,
        (numbers, bytes): (&[f64], &[u8]),
        (answer_numbers, answer_bytes): (&mut [f64], &mut [u8]),
    ) -> Answered {
        let mut call = Call {
            ask: ask as u32,
            status: Status::Failed as u32,
            numbers: numbers.as_ptr(),
            numbers_length: numbers.len(),
            bytes: bytes.as_ptr(),
            bytes_length: bytes.len(),
            answer_numbers: answer_numbers.as_mut_ptr(),
            answer_numbers_room: answer_numbers.len(),
            answer_numbers_length: 0,
            answer_bytes: answer_bytes.as_mut_ptr(),
            answer_bytes_room: answer_bytes.len(),
            answer_bytes_length: 0,
        };
        // SAFETY: every pointer comes from a slice that outlives the call, with its own length, and the library keeps
        // none of them.
        unsafe { (self.call)(&raw mut call) };
        Answered { status: Status::numbered(call.status), bytes: call.answer_bytes_length }
    }
}
