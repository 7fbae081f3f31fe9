//! The memory: what was said, kept in a Qdrant Edge shard on the robot's own disk, and recalled by meaning and time.
//!
//! [`store`] is the only module of the project that names the engine; [`embed`] turns words into vectors, [`recall`]
//! decides what counts as an answer, [`exchange`] is what one memory is, [`journal`] keeps the window's exchanges safe
//! until they are in the shard. The handle [`Memory`] may be cloned freely; the shard behind it has one writer. A shard that cannot be opened is set aside or refused with a sentence, never
//! wiped.

pub(crate) mod beside;
pub mod calibrate;
pub mod embed;
mod engine;
pub mod eval;
pub mod exchange;
mod folder;
pub mod frame;
pub mod journal;
mod just_said;
pub mod knowledge;
mod naming;
pub mod people;
pub mod recall;
pub mod seen;
pub mod store;
pub mod stores;
pub mod words;

use jiff::Timestamp;
use uuid::Uuid;

pub use exchange::Exchange;
pub use frame::Frame;
pub use people::{People, PersonId};
pub use store::{Memory, MemoryError, OpenError, Settings, Stats};

use crate::robot::Direction;
use crate::think::tools::About;

/// A stretch of time with a beginning and an end, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl TimeRange {
    /// Whether `at` lies in the range.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at <= self.to
    }
}

/// A question to the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub text: String,
    pub about: About,
    /// Only what happened in this range.
    pub when: Option<TimeRange>,
    /// Only what was seen with the head turned this way.
    pub direction: Option<Direction>,
    /// The exchanges that are still in the window; they are searched too and labelled as just said.
    pub just_said: Vec<Exchange>,
    /// The moment of the question.
    pub now: Timestamp,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// As stored: both sides of an exchange in one line.
    pub text: String,
    /// What the other one said and what the robot answered, where the memory is an exchange.
    pub exchange: Exchange,
    /// Cosine to the question; `None` where the time alone chose it.
    pub score: Option<f32>,
    /// Still in the window: said a moment ago, not a memory.
    pub just_said: bool,
}

/// A frame that was found; its picture is asked for apart, by [`Memory::pictures`].
#[derive(Clone, Debug, PartialEq)]
pub struct SeenFrame {
    pub frame: Frame,
    /// Cosine of its sentence to the question; `None` where the time or the direction chose it.
    pub score: Option<f32>,
}

/// A fact that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownFact {
    pub id: Uuid,
    /// What the robot says.
    pub text: String,
    /// Cosine of the nearest of its questions to the one that was asked.
    pub score: f32,
}

/// Why frames answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowSeen {
    /// They show what was named.
    Named,
    /// The question named nothing: different scenes of its time, of so many frames.
    Sampled { of: usize },
    /// The question named only a direction: the last look that way.
    LastLook,
}

/// Somebody whom the robot knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub name: String,
    /// When the robot first saw them.
    pub met_at: Timestamp,
    /// When they were last seen before the present visit; `None` where the present one is the first.
    pub last_seen_at: Option<Timestamp>,
    /// They are in view now.
    pub is_here: bool,
    /// They are the one who asks.
    pub asks: bool,
    /// What they said, newest first.
    pub exchanges: Vec<Remembered>,
}

/// What happened while somebody was away.
#[derive(Clone, Debug, PartialEq)]
pub struct Away {
    /// Since when; `None` where nobody known asks, and the frames are today's.
    pub since: Option<Timestamp>,
    /// Different scenes of that time, newest first.
    pub frames: Vec<SeenFrame>,
    /// Who came, each with when they were first seen in it, oldest first.
    pub came: Vec<(String, Timestamp)>,
    /// How many frames there are of that time.
    pub of: usize,
}

/// What a search came to. That it could not be made is an error, [`MemoryError`], and never one of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Recalled {
    /// At least one memory passed the gate, best first.
    Found { memories: Vec<Remembered> },
    /// The question named nothing to look for; these are from the time that it asked about, oldest first.
    Sampled { memories: Vec<Remembered>, of: usize },
    /// Frames, newest first in a sample, else best first.
    Seen { frames: Vec<SeenFrame>, how: HowSeen },
    /// Somebody whom the robot knows: who they are, since when, and what they said lately.
    Person(Known),
    /// The robot looked, and never met them: by this name, or the one who asks.
    NeverMet { name: Option<String> },
    /// What happened while somebody was away.
    Away(Away),
    /// The robot was taught this; it was not said or seen by anybody here.
    Facts {
        /// At least one, best first.
        facts: Vec<KnownFact>,
        /// What the memory holds about the same question, where both were searched and neither answers it alone.
        besides: Option<Box<Recalled>>,
    },
    /// The memory was searched and holds no answer.
    Nothing {
        /// How many memories were searched (in the range that was asked for).
        searched: usize,
        /// Best score under the gate, if anything was compared.
        best: Option<f32>,
    },
}
