//! The bridge: a small library that holds Python for the program, which links none itself.
//!
//! The program opens the libpython of the robot's environment, then this library, and calls it from one thread. A
//! call never panics across the border and never keeps what it was lent. Nothing here lives on but the interpreter
//! and the one body in it; when the thread that calls dies, they stay until the process ends.

pub mod interface;
mod python;

use std::panic::{AssertUnwindSafe, catch_unwind};

use interface::{Ask, Call, Status};

/// The answer under way: written into memory that the caller lent.
pub(crate) struct Answer<'a> {
    numbers: &'a mut [f64],
    numbers_length: usize,
    bytes: &'a mut [u8],
    bytes_length: usize,
}

impl Answer<'_> {
    /// Answers these numbers; whether there was room.
    pub(crate) fn numbers(&mut self, numbers: &[f64]) -> bool {
        self.numbers_length = numbers.len();
        let room = self.numbers.get_mut(..numbers.len());
        room.map(|room| room.copy_from_slice(numbers)).is_some()
    }

    /// Room for so many bytes, where the caller lent it.
    pub(crate) fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        self.bytes_length = length;
        self.bytes.get_mut(..length)
    }

    /// Answers this sentence, cut to the room there is.
    pub(crate) fn sentence(&mut self, sentence: &str) {
        let mut length = sentence.len().min(self.bytes.len());
        while !sentence.is_char_boundary(length) {
            length -= 1;
        }
        if let (Some(room), Some(text)) = (self.room(length), sentence.as_bytes().get(..length)) {
            room.copy_from_slice(text);
        }
    }
}

/// Of the interface that this library speaks.
#[unsafe(no_mangle)]
pub extern "C" fn reachy_bridge_version() -> u32 {
    interface::VERSION
}

/// Answers one question.
///
/// # Safety
/// `call` points to a [`Call`] whose pointers are valid for their lengths, for the time of the call, and shared with
/// nobody. A null pointer has length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reachy_bridge_call(call: *mut Call) {
    // SAFETY: promised by the caller.
    let Some(call) = (unsafe { call.as_mut() }) else { return };
    // SAFETY: promised by the caller for each pointer and its length.
    let (numbers, bytes, mut answer) = unsafe {
        let answer = Answer {
            numbers: lent_mut(call.answer_numbers, call.answer_numbers_room),
            numbers_length: 0,
            bytes: lent_mut(call.answer_bytes, call.answer_bytes_room),
            bytes_length: 0,
        };
        (lent(call.numbers, call.numbers_length), lent(call.bytes, call.bytes_length), answer)
    };
    let asked = Ask::numbered(call.ask);
    let answered = catch_unwind(AssertUnwindSafe(|| match asked {
        Some(ask) => python::answer(ask, numbers, bytes, &mut answer),
        None => {
            answer.sentence("the bridge library does not know this question");
            Status::Failed
        }
    }));
    let status = answered.unwrap_or_else(|_| {
        answer.sentence("the bridge library failed inside");
        Status::Failed
    });
    (call.answer_numbers_length, call.answer_bytes_length) = (answer.numbers_length, answer.bytes_length);
    call.status = status as u32;
}

/// # Safety
/// As [`reachy_bridge_call`].
unsafe fn lent<'a, T>(at: *const T, length: usize) -> &'a [T] {
    // SAFETY: promised by the caller.
    if at.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(at, length) } }
}

/// # Safety
/// As [`reachy_bridge_call`].
unsafe fn lent_mut<'a, T>(at: *mut T, length: usize) -> &'a mut [T] {
    // SAFETY: promised by the caller.
    if at.is_null() { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(at, length) } }
}
