//! The body behind one trait: what the robot can hear, see, say and move.
//!
//! Every call blocks and is made from a thread of its own, never from a tokio worker. [`sim`] is the built-in
//! simulated robot, which plays a scripted day from files; [`sdk`] is a Reachy Mini through its own SDK. [`gestures`],
//! [`pose`] and [`mover`] are what its motion is made of. When a body fails, the daemon goes on with what is left: a
//! robot without a camera still talks.

pub mod day;
pub mod gestures;
pub mod mover;
pub mod pose;
pub mod sdk;
pub mod sim;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A stretch of sound as the body's microphone gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples in −1…1, channels interleaved.
    pub samples: Vec<f32>,
    /// Samples a second in each channel.
    pub rate: u32,
    /// Number of interleaved channels.
    pub channels: u16,
}

impl Sound {
    /// Length in milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        let frames = self.samples.len() as u64 / u64::from(self.channels.max(1));
        frames * 1000 / u64::from(self.rate.max(1))
    }
}

/// What the microphone gave next.
#[derive(Clone, Debug, PartialEq)]
pub enum MicrophoneRead {
    /// Sound whose first sample was taken at `at`.
    Sound { sound: Sound, at: Timestamp },
    /// Nothing yet; ask again.
    Nothing,
    /// There will be no more: the scripted day is over, or the body shuts down.
    Ended,
}

/// One thing that the simulated camera's annotations say is in a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotation {
    /// What it is, in the detector's vocabulary ("cup", "person").
    pub label: String,
    /// Left, top, right, bottom in 0…1 of the picture, where the script says.
    #[serde(default)]
    pub place: Option<[f32; 4]>,
}

/// A face that a script puts before the simulated camera. There are no pixels behind it: a stand-in makes the numbers of
/// a face out of the name, and says that it is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaceMark {
    /// Whose face it is: the same words, the same face. The robot never reads them.
    pub of: String,
    /// Left, top, right, bottom in 0…1 of the picture; without it the same name always has the same place.
    #[serde(default)]
    pub place: Option<[f32; 4]>,
    /// How far it is turned away, in degrees: 0 looks at the camera, −90 and 90 are profiles. From about 65° on nobody
    /// can be sure whose it is, from about 72° on it is like a stranger's.
    #[serde(default)]
    pub angle: f32,
    /// Whether it is seen too badly (blurred, as it were) to be recognised at all.
    #[serde(default)]
    pub poor: bool,
}

/// A picture from the camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The file where the body has one: JPEG, PNG, or PPM as a live camera's plain pixels; empty where the script gives
    /// annotations only.
    pub encoded: Vec<u8>,
    /// What the scripted day says is in it; `None` where nobody said (a real camera).
    pub annotations: Option<Vec<Annotation>>,
    /// The faces that the scripted day marks in it; `None` where it marks none (a real camera).
    pub faces: Option<Vec<FaceMark>>,
    /// When it was taken.
    pub at: Timestamp,
    /// Where the head looked.
    pub looked: Direction,
}

/// Where the head looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    #[default]
    Ahead,
    /// The robot's own left, which is the left of the picture.
    Left,
    Right,
}

impl Direction {
    /// As it is stored and written: "ahead", "left", "right".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// A movement that shows something. The names are what the `move` tool offers to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gesture {
    Nod,
    Shake,
    Dance,
    Happy,
    Sad,
    Curious,
    Surprised,
    Confused,
    LookLeft,
    LookRight,
    LookAhead,
}

impl Gesture {
    /// Every gesture, in the order in which the model reads them.
    pub const ALL: [Self; 11] = [
        Self::Nod,
        Self::Shake,
        Self::Dance,
        Self::Happy,
        Self::Sad,
        Self::Curious,
        Self::Surprised,
        Self::Confused,
        Self::LookLeft,
        Self::LookRight,
        Self::LookAhead,
    ];

    /// The name in the tool's arguments, as in `look_left`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nod => "nod",
            Self::Shake => "shake",
            Self::Dance => "dance",
            Self::Happy => "happy",
            Self::Sad => "sad",
            Self::Curious => "curious",
            Self::Surprised => "surprised",
            Self::Confused => "confused",
            Self::LookLeft => "look_left",
            Self::LookRight => "look_right",
            Self::LookAhead => "look_ahead",
        }
    }

    /// The gesture of that [`Gesture::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gesture| gesture.name() == name)
    }
}

/// What the conversation is doing; a body may show it, and the simulated one waits for [`Attention::Idle`] before
/// its script goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attention {
    #[default]
    Idle,
    /// An utterance has ended and is being transcribed.
    Transcribing,
    Thinking,
    Speaking,
}

/// Where a sound came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoundDirection {
    /// How far to the left of where the head looks, in radians; negative to the right. Two microphones in a row cannot
    /// tell before from behind: what is behind comes out mirrored.
    pub left: f64,
    /// Whether somebody is speaking now.
    pub speaks: bool,
}

/// Why the body could not do what it was asked to.
#[derive(Debug, Error)]
pub enum RobotError {
    /// This body has no such part; asking again is no use.
    #[error("this robot has no {part}: {why}")]
    Missing { part: &'static str, why: String },
    /// The part is there and failed this time.
    #[error("the {part} failed: {why}")]
    Failed { part: &'static str, why: String },
    /// The script of a simulated day cannot be played.
    #[error(transparent)]
    Day(#[from] day::DayError),
}

/// A body. All calls block; implementations are shared between threads.
pub trait Robot: Send + Sync {
    /// One line for people: which body this is.
    fn describe(&self) -> String;

    /// Waits for the next sound from the microphone, at most about a tenth of a second.
    ///
    /// # Errors
    /// [`RobotError::Missing`] without a microphone, [`RobotError::Failed`] when it stops working.
    fn hear(&self) -> Result<MicrophoneRead, RobotError>;

    /// A picture, now.
    ///
    /// # Errors
    /// [`RobotError`] when there is no camera or it gives no picture.
    fn picture(&self) -> Result<Picture, RobotError>;

    /// Plays `sound` and returns when it has been heard, or soon after `stop` answers true.
    ///
    /// # Errors
    /// [`RobotError`] when there is no speaker or it fails.
    fn play(&self, sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError>;

    /// Tells the body which words it is about to say (or would say, when it is mute).
    fn say(&self, _sentence: &str) {}

    /// Makes a gesture and returns when it is over.
    ///
    /// # Errors
    /// [`RobotError`] when the body did not move.
    fn gesture(&self, gesture: Gesture) -> Result<(), RobotError>;

    /// Turns the head and returns when it stands still.
    ///
    /// # Errors
    /// [`RobotError`] when the head did not turn.
    fn look(&self, direction: Direction) -> Result<(), RobotError>;

    /// Waits for `pause`, as time passes for this body: a scripted day need not wait for its own cameras.
    fn pause(&self, pause: std::time::Duration) {
        std::thread::sleep(pause);
    }

    /// What the conversation is doing now.
    fn attend(&self, _attention: Attention) {}

    /// Follows somebody with the head, as far as the picture goes on showing the same part of the room: `place` is
    /// left, top, right, bottom in 0…1 of the newest picture. Returns at once; a place that is none changes nothing.
    fn gaze(&self, _place: [f32; 4]) {}

    /// Where the last sound came from; `None` for a body that cannot tell.
    fn sound_direction(&self) -> Option<SoundDirection> {
        None
    }

    /// Sets how loud the speaker is, 0 to 100.
    ///
    /// # Errors
    /// [`RobotError`] when this cannot be set.
    fn set_volume(&self, _percent: u8) -> Result<(), RobotError> {
        Err(RobotError::Missing { part: "volume", why: "this body's cannot be set".into() })
    }

    /// Gets up, where it lies, and returns when it looks ahead.
    ///
    /// # Errors
    /// [`RobotError`] when the body did not move.
    fn wake(&self) -> Result<(), RobotError> {
        Ok(())
    }

    /// Lies down, and returns when it lies. It goes on hearing.
    ///
    /// # Errors
    /// [`RobotError`] when the body did not move.
    fn sleep(&self) -> Result<(), RobotError> {
        Ok(())
    }

    /// How the body is, for the health report: what works, or what does not and what to do.
    ///
    /// # Errors
    /// The sentence, where something does not work.
    fn state(&self) -> Result<String, String> {
        Ok(self.describe())
    }

    /// The end: the microphone closes, the head goes to rest. Never fails; logs instead.
    fn rest(&self);
}
