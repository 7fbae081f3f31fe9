//! The bridge's questions with types: what each takes and gives.
//!
//! Owned by the one thread that owns Python. Every question is short by what the bridge does; nothing here waits.

use serde_json::json;

use super::find::Found;
use super::interface::{Ask, Status, state};
use super::load::{Answered, Bridge};
use super::{Settings, State};
use crate::robot::pose::Pose;
use crate::robot::{RobotError, Sound, SoundDirection};

/// Room for a sentence, or for the microphone's next chunk: 10 ms of two channels are 2560 bytes.
const ROOM: usize = 64 << 10;
/// Room for a picture before the camera's size is known, in bytes: 1280×720.
const PICTURE_ROOM: usize = 1280 * 720 * 3;
/// The largest picture that is taken, in bytes: 12 megapixels, as the eye takes.
const PICTURE_MOST: usize = 12_600_000 * 3;
/// Microphone formats that are believed: samples a second, and channels.
const RATES: std::ops::RangeInclusive<f64> = 8_000.0..=192_000.0;
const CHANNELS: std::ops::RangeInclusive<f64> = 1.0..=16.0;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    Missing(String),
    Failed(String),
}

impl Trouble {
    pub(super) fn of(self, part: &'static str) -> RobotError {
        match self {
            Self::Missing(why) => RobotError::Missing { part, why },
            Self::Failed(why) => RobotError::Failed { part, why },
        }
    }

    pub(super) fn why(self) -> String {
        match self {
            Self::Missing(why) | Self::Failed(why) => why,
        }
    }
}

/// A picture's pixels as the SDK gives them: blue, green and red, a byte each, by rows.
pub(super) struct Pixels {
    pub width: usize,
    pub height: usize,
    pub bgr: Vec<u8>,
}

/// The opened bridge with a body in it.
pub(super) struct Link {
    bridge: Bridge,
    room: Vec<u8>,
    /// What the next picture needs.
    picture_room: usize,
    /// Memory for it, as it is asked for again until there is one.
    next_picture: Vec<u8>,
}

impl Link {
    /// Loads Python and the SDK, and begins to connect. Takes 3 to 8 s.
    pub(super) fn start(found: &Found, settings: &Settings) -> Result<Self, String> {
        let bridge = Bridge::open(found)?;
        let mut link = Self { bridge, room: vec![0; ROOM], picture_room: PICTURE_ROOM, next_picture: Vec::new() };
        let told = json!({
            "host": settings.host,
            "port": settings.port,
            "local": settings.is_local(),
            "volume": settings.volume,
        });
        let told = format!("{}\n{told}", found.program.display());
        link.ask(Ask::Start, &[], told.as_bytes()).map_err(Trouble::why)?;
        Ok(link)
    }

    fn ask_with(&mut self, ask: Ask, numbers: &[f64], bytes: &[u8], answer: &mut [f64]) -> Result<Answered, Trouble> {
        let answered = self.bridge.ask(ask, (numbers, bytes), (answer, &mut self.room));
        match answered.status {
            Status::Done | Status::Nothing => Ok(answered),
            Status::Missing => Err(Trouble::Missing(self.sentence(answered))),
            Status::Failed => Err(Trouble::Failed(self.sentence(answered))),
            Status::NoRoom => Err(Trouble::Failed("it gave more than was expected".into())),
        }
    }

    fn ask(&mut self, ask: Ask, numbers: &[f64], bytes: &[u8]) -> Result<Answered, Trouble> {
        self.ask_with(ask, numbers, bytes, &mut [])
    }

    fn sentence(&self, answered: Answered) -> String {
        String::from_utf8_lossy(self.room.get(..answered.bytes).unwrap_or_default()).into_owned()
    }

    pub(super) fn state(&mut self) -> Result<State, Trouble> {
        let mut numbers = [0.0; state::COUNT];
        let answered = self.ask_with(Ask::State, &[], &[], &mut numbers)?;
        let mut head = [0.0; 16];
        head.copy_from_slice(&numbers[state::HEAD..state::ANTENNAS]);
        let antennas = [numbers[state::ANTENNAS], numbers[state::ANTENNAS + 1]];
        Ok(State {
            connected: numbers[state::CONNECTED] > 0.5,
            connection: numbers[state::CONNECTION] as u64,
            motors_on: numbers[state::MOTORS] == 1.0,
            camera: numbers[state::CAMERA] > 0.5,
            audio: numbers[state::AUDIO] > 0.5,
            pose: Pose::read(&head, antennas, numbers[state::BODY]),
            why: self.sentence(answered),
        })
    }

    pub(super) fn target(&mut self, pose: &Pose) -> Result<(), Trouble> {
        let mut numbers = [0.0; 19];
        numbers[..16].copy_from_slice(&pose.head());
        numbers[16..].copy_from_slice(&[pose.right, pose.left, pose.body]);
        self.ask(Ask::Target, &numbers, &[]).map(drop)
    }

    pub(super) fn motors(&mut self, on: bool) -> Result<(), Trouble> {
        self.ask(Ask::Motors, &[f64::from(u8::from(on))], &[]).map(drop)
    }

    /// The next sound; waits at most 20 ms.
    pub(super) fn hear(&mut self) -> Result<Option<Sound>, Trouble> {
        let mut format = [0.0; 2];
        let answered = self.ask_with(Ask::Hear, &[], &[], &mut format)?;
        if answered.status == Status::Nothing {
            return Ok(None);
        }
        let [rate, channels] = format;
        if !RATES.contains(&rate) || !CHANNELS.contains(&channels) {
            return Err(Trouble::Failed(format!("it gives {rate} samples a second in {channels} channels")));
        }
        let bytes = self.room.get(..answered.bytes).unwrap_or_default();
        let (samples, _) = bytes.as_chunks::<4>();
        let samples = samples.iter().map(|sample| f32::from_ne_bytes(*sample)).collect();
        Ok(Some(Sound { samples, rate: rate as u32, channels: channels as u16 }))
    }

    /// Samples of one channel at 16 kHz, for the speaker.
    pub(super) fn play(&mut self, samples: &[f32]) -> Result<(), Trouble> {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_ne_bytes()).collect();
        self.ask(Ask::Play, &[], &bytes).map(drop)
    }

    pub(super) fn hush(&mut self) -> Result<(), Trouble> {
        self.ask(Ask::Hush, &[], &[]).map(drop)
    }

    /// The newest picture, where there is one since the last.
    pub(super) fn picture(&mut self) -> Result<Option<Pixels>, Trouble> {
        let (mut size, mut bgr) = ([0.0; 2], std::mem::take(&mut self.next_picture));
        bgr.resize(self.picture_room, 0);
        let answered = self.bridge.ask(Ask::Picture, (&[], &[]), (&mut size, &mut bgr));
        if answered.status == Status::Nothing {
            self.next_picture = bgr;
            return Ok(None);
        }
        bgr.truncate(answered.bytes);
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match answered.status {
            Status::Done => Ok(Some(Pixels { width: size[0] as usize, height: size[1] as usize, bgr })),
            Status::Nothing => Ok(None),
            Status::Missing => Err(Trouble::Missing(words(&bgr))),
            Status::Failed => Err(Trouble::Failed(words(&bgr))),
            Status::NoRoom if answered.bytes <= PICTURE_MOST => {
                self.picture_room = answered.bytes;
                Ok(None)
            }
            Status::NoRoom => Err(Trouble::Failed(format!("it gives a picture of {} MB", answered.bytes / 1_000_000))),
        }
    }

    pub(super) fn direction(&mut self) -> Result<Option<SoundDirection>, Trouble> {
        let mut numbers = [0.0; 2];
        let answered = self.ask_with(Ask::Direction, &[], &[], &mut numbers)?;
        let left = std::f64::consts::FRAC_PI_2 - numbers[0];
        let known = answered.status == Status::Done && left.is_finite();
        Ok(known.then_some(SoundDirection { left, speaks: numbers[1] > 0.5 }))
    }

    pub(super) fn volume(&mut self, percent: u8) -> Result<(), Trouble> {
        self.ask(Ask::Volume, &[f64::from(percent)], &[]).map(drop)
    }

    pub(super) fn renew(&mut self) -> Result<(), Trouble> {
        self.ask(Ask::Renew, &[], &[]).map(drop)
    }

    pub(super) fn close(&mut self) -> Result<(), Trouble> {
        self.ask(Ask::Close, &[], &[]).map(drop)
    }
}
