//! What passes between the program and the bridge library: one function, numbers and bytes.
//!
//! Both sides compile this file. The program lends memory for the answer and the library never keeps a pointer, so
//! neither frees what the other allocated. Anything that changes here changes [`VERSION`], and a library of another
//! version is refused before anything is asked of it.

/// Of this file's contents.
pub const VERSION: u32 = 1;
/// The library's function `extern "C" fn() -> u32`, which answers [`VERSION`].
pub const VERSION_SYMBOL: &[u8] = b"reachy_bridge_version";
/// The library's function `unsafe extern "C" fn(*mut Call)`.
pub const CALL_SYMBOL: &[u8] = b"reachy_bridge_call";

/// What is asked. Numbers and bytes go in and come out as each line says.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Starts Python and begins to connect. In: the settings, JSON. Out: the SDK's version. Takes seconds, once.
    Start = 1,
    /// How it is. Out: the [`state`] numbers, and why it is not connected.
    State = 2,
    /// Where head, antennas and body should be. In: the head's 4×4 matrix by rows (m), right and left antenna (rad),
    /// the body's yaw (rad).
    Target = 3,
    /// In: 1 switches the motors on, 0 off.
    Motors = 4,
    /// The next sound, waited for at most 20 ms. Out: samples a second and channels; interleaved 32-bit floats.
    Hear = 5,
    /// In: samples for the speaker, 32-bit floats, one channel of 16 kHz.
    Play = 6,
    /// Silence: forgets what waits to be played.
    Hush = 7,
    /// The newest picture. Out: width and height; blue, green and red, a byte each.
    Picture = 8,
    /// Where a voice came from. Out: the angle (rad, 0 left, π/2 ahead, π right), 1 where somebody speaks now.
    Direction = 9,
    /// In: the speaker's volume, 0 to 100.
    Volume = 10,
    /// Connects anew, though nothing seems to be wrong: a part of the body has gone silent.
    Renew = 11,
    /// The end: lets go of camera, microphone and connection.
    Close = 12,
}

impl Ask {
    /// The question of that number.
    #[must_use]
    pub fn numbered(number: u32) -> Option<Self> {
        const ALL: [Ask; 12] = [
            Ask::Start,
            Ask::State,
            Ask::Target,
            Ask::Motors,
            Ask::Hear,
            Ask::Play,
            Ask::Hush,
            Ask::Picture,
            Ask::Direction,
            Ask::Volume,
            Ask::Renew,
            Ask::Close,
        ];
        ALL.into_iter().find(|ask| *ask as u32 == number)
    }
}

/// What came of it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Done = 0,
    /// There is nothing now; ask again.
    Nothing = 1,
    /// The body has no such part. The answer's bytes say why.
    Missing = 2,
    /// It failed this time. The answer's bytes say why.
    Failed = 3,
    /// The answer has no room; its lengths say how much is needed. What was to be answered is lost.
    NoRoom = 4,
}

impl Status {
    /// The status of that number; anything unknown has failed.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        const ALL: [Status; 5] = [Status::Done, Status::Nothing, Status::Missing, Status::Failed, Status::NoRoom];
        ALL.into_iter().find(|status| *status as u32 == number).unwrap_or(Self::Failed)
    }
}

/// Where the numbers of [`Ask::State`] stand.
pub mod state {
    /// 1 where the robot's daemon answers.
    pub const CONNECTED: usize = 0;
    /// Counts the connections that were made.
    pub const CONNECTION: usize = 1;
    /// 1 on, 0 off, 2 yielding, −1 unknown.
    pub const MOTORS: usize = 2;
    /// 1 where there is a camera.
    pub const CAMERA: usize = 3;
    /// 1 where there are microphone and speaker.
    pub const AUDIO: usize = 4;
    /// The head's 4×4 matrix by rows.
    pub const HEAD: usize = 5;
    /// Right and left antenna.
    pub const ANTENNAS: usize = 21;
    /// The body's yaw.
    pub const BODY: usize = 23;
    /// How many numbers there are.
    pub const COUNT: usize = 24;
}

/// One question with room for its answer.
#[repr(C)]
pub struct Call {
    /// An [`Ask`].
    pub ask: u32,
    /// A [`Status`], set by the library.
    pub status: u32,
    pub numbers: *const f64,
    pub numbers_length: usize,
    pub bytes: *const u8,
    pub bytes_length: usize,
    pub answer_numbers: *mut f64,
    pub answer_numbers_room: usize,
    pub answer_numbers_length: usize,
    pub answer_bytes: *mut u8,
    pub answer_bytes_room: usize,
    pub answer_bytes_length: usize,
}
