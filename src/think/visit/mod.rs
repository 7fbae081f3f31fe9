//! Visits: whom to greet, whom to ask for a name, whose words are whose.
//!
//! [`Visits`] is a pure state machine: [`Event`]s go in (faces, words, what became of them), [`Command`]s come out, and
//! no clock, camera or memory is touched. One owner feeds it; when it is dropped or the service starts again, visits
//! begin anew from what the memory of people says.
//!
//! What it decides by:
//! - **Who a face is** ([`track`]): three of the last five usable embeddings at or over the gate, with the same nearest
//!   person and nobody else nearly as near; a stranger is three in a row under the lower gate over two seconds; between
//!   the two it waits. An identity belongs to a face that is followed without a break and is decided anew after one; a
//!   single embedding that is like somebody else takes it back at once.
//! - **A visit** ends when the person was out of view for [`Settings::visit_ends_after`]. Greeted by name once a visit,
//!   never in the middle of a turn.
//! - **A stranger is asked** once a visit, after the answer to what they said, and only where theirs is the one face in
//!   view from their words on: with a second face, known or not, nobody can tell who spoke and who answers. The next
//!   utterance within [`REPLY_WITHIN`] is the reply, if that face is still alone there.
//! - **Whose words**: those of the one face in view, if it is decided and was alone there all along the utterance. With
//!   two faces they are nobody's: a moving mouth is not measured, so there is never only one who can have spoken. A
//!   portrait on the wall is a face, too: where one is in view all words are nobody's.
//! - **The head** turned away on purpose freezes all of it: no time passes, nobody leaves, nothing is decided. What is
//!   said meanwhile is nobody's, and a name counts again after one more look that fits.

mod guests;
mod handle;
mod question;
mod track;
mod view;

use std::sync::Arc;

/// Who a person is in the memory of people.
pub use crate::remember::people::PersonId;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use guests::Guests;
use question::Question;
use view::View;

/// The vector of one face, of unit length, as the face model made it.
pub type Shot = Arc<[f32]>;

/// How long after the question an utterance is its reply. Not measured.
pub const REPLY_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How long after the answer a stranger may still be asked, where it took so long to see that they are one. Not
/// measured.
pub const ASK_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// A turn that was never said to be over is over then: a whole turn may take 45 s, and its voice about as long.
pub const LONGEST_TURN: SignedDuration = SignedDuration::from_secs(120);
/// A name that is being read, or a person who is being enrolled, is given up after that: as a turn.
pub const LONGEST_READING: SignedDuration = SignedDuration::from_secs(120);
/// [`Command::SeenNow`] comes at most so often a person: few writes on an SD card.
pub const SEEN_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// [`Command::LearnPose`] comes at most so often a person. Not measured.
pub const LEARN_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// A face may come into view so long after its owner began to speak, for the words to be theirs: faces are looked for
/// one to three times a second.
pub const COMES_INTO_VIEW_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// What a face's likeness must come to; from the face model's manifest entry, on its own scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gates {
    /// At or over it a face is that person.
    pub greet: f32,
    /// Under it a face is nobody known.
    pub ask: f32,
    /// The second person must be so much less like.
    pub margin: f32,
}

/// What the machine is told once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub gates: Gates,
    /// `[people] visit_ends_after_min`: a visit ends when the person was out of view for so long.
    pub visit_ends_after: SignedDuration,
}

/// The settings cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BadSettings {
    /// Change the face model's entry in the manifest, or `[people]`.
    #[error(
        "the face gates do not fit together (greet {greet}, ask {ask}, margin {margin}): greet must be over ask and \
         the margin not negative"
    )]
    Gates { greet: f32, ask: f32, margin: f32 },
    /// Change `[people] visit_ends_after_min`.
    #[error("a visit cannot end after {seconds} seconds; set visit_ends_after_min in [people] to at least 1")]
    VisitEnd { seconds: i64 },
}

/// How the head was held while faces were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Straight ahead and still.
    Steady,
    /// Turned away on purpose, for a look.
    Turned,
    /// On the move, for a gesture.
    Moving,
}

/// The person in the memory who is most like a face.
#[derive(Clone, Debug, PartialEq)]
pub struct Likeness {
    pub person: PersonId,
    pub name: String,
    /// Cosine to the nearest of their shots.
    pub score: f32,
    /// When the memory of people last noted them; taken up when their visit begins.
    pub last_seen_at: Option<Timestamp>,
}

/// One face in one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// Stays the same while the face is followed without a break.
    pub track: u32,
    /// Left, top, width, height, as parts of the picture.
    pub place: [f32; 4],
    /// Wide, sharp and frontal enough, and not cut by the picture's edge.
    pub usable: bool,
    /// Whether this picture's face was embedded; `shot`, `nearest` and `second` count only then.
    pub embedded: bool,
    pub shot: Option<Shot>,
    /// `None` while nobody is enrolled.
    pub nearest: Option<Likeness>,
    /// The best score of any other person.
    pub second: Option<f32>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Faces were looked for; `faces` may be empty.
    Faces {
        at: Timestamp,
        faces: Vec<Sighting>,
        head: Head,
    },
    /// Somebody said something, from `from` to `at`; a turn begins, or a reply to the name question is read.
    Heard {
        from: Timestamp,
        at: Timestamp,
        words: String,
    },
    /// The robot's turn is over, spoken to its end.
    Answered {
        at: Timestamp,
    },
    /// What [`Command::ReadName`] came to.
    NameRead {
        at: Timestamp,
        name: Option<String>,
    },
    /// What [`Command::Enrol`] came to: the person, under the name that the memory gave them.
    Enrolled {
        at: Timestamp,
        person: PersonId,
        name: String,
    },
    EnrolFailed {
        at: Timestamp,
    },
    /// The person is in the memory no more. Two people made one are a `Forgotten` of the first.
    Forgotten {
        person: PersonId,
    },
    Renamed {
        person: PersonId,
        name: String,
    },
    /// Time passes; once in a few seconds is enough.
    Tick {
        at: Timestamp,
    },
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    pub person: PersonId,
    pub name: String,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Greet {
        person: PersonId,
        name: String,
    },
    /// Ask the face that is followed as `track` for its name.
    AskName {
        track: u32,
    },
    /// This utterance is the reply to the name question: read the name in it and tell [`Event::NameRead`].
    ReadName {
        words: String,
    },
    /// Store a new person, even if somebody has the name already; tell [`Event::Enrolled`] or [`Event::EnrolFailed`].
    Enrol {
        name: String,
        shots: Vec<Shot>,
        met_at: Timestamp,
    },
    /// Store one more shot of somebody who is in view.
    LearnPose {
        person: PersonId,
        shot: Shot,
    },
    /// Note when the person was last seen.
    SeenNow {
        person: PersonId,
        at: Timestamp,
    },
    /// Who says the words that [`Event::Heard`] brought; nobody where it is not certain.
    WordsAre {
        speaker: Option<Speaker>,
    },
    /// The words without a speaker that began between `since` and `until`, both included, are theirs.
    WordsBecome {
        person: PersonId,
        name: String,
        since: Timestamp,
        until: Timestamp,
    },
}

/// A face in the newest picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    pub track: u32,
    pub place: [f32; 4],
    /// Who it is, where that is decided.
    pub speaker: Option<Speaker>,
}

/// The state machine.
#[derive(Clone, Debug)]
pub struct Visits {
    settings: Settings,
    view: View,
    guests: Guests,
    question: Question,
    /// Since when a turn runs, by the clock that never stands still.
    in_turn: Option<SignedDuration>,
    /// When the last turn was over, by the same clock.
    answered: Option<SignedDuration>,
}

impl Visits {
    /// # Errors
    /// [`BadSettings`].
    pub fn new(settings: Settings) -> Result<Self, BadSettings> {
        let Gates { greet, ask, margin } = settings.gates;
        if !(greet.is_finite() && ask.is_finite() && margin.is_finite() && greet > ask && margin >= 0.0) {
            return Err(BadSettings::Gates { greet, ask, margin });
        }
        if settings.visit_ends_after < SignedDuration::from_secs(1) {
            return Err(BadSettings::VisitEnd { seconds: settings.visit_ends_after.as_secs() });
        }
        Ok(Self {
            settings,
            view: View::default(),
            guests: Guests::default(),
            question: Question::None,
            in_turn: None,
            answered: None,
        })
    }

    /// The faces of the newest picture, for its note; none while the head is turned or moves, because that picture's
    /// faces are not decided.
    #[must_use]
    pub fn present(&self) -> Vec<Present> {
        let faces = self.view.in_newest();
        faces.map(|track| Present { track: track.id, place: track.place, speaker: self.named(track.known()) }).collect()
    }

    /// Whose words would be heard now.
    #[must_use]
    pub fn speaker_now(&self) -> Option<Speaker> {
        let alone = self.view.alone()?;
        if self.view.head == Head::Turned { None } else { self.named(self.view.track(alone.track)?.known()) }
    }

    /// Whether the one face in view is certainly nobody's who is known.
    #[must_use]
    pub fn stranger_speaks(&self) -> bool {
        let track = self.view.alone().and_then(|alone| self.view.track(alone.track));
        self.view.head == Head::Steady
            && track.is_some_and(|track| track.who == track::Who::Stranger && track.is_certain())
    }

    /// When `person` was last seen before the present visit; `None` for somebody who is not here, or was never seen
    /// before.
    #[must_use]
    pub fn away_since(&self, person: PersonId) -> Option<Timestamp> {
        self.guests.of(person)?.before
    }

    /// The guest of that name, whose visit is not over.
    #[must_use]
    pub fn called(&self, name: &str) -> Option<PersonId> {
        self.guests.called(name)
    }

    /// How many faces, visits and strangers are kept: never more than [`MOST_KEPT`].
    #[must_use]
    pub fn kept(&self) -> usize {
        self.view.tracks.len() + self.guests.kept()
    }

    fn named(&self, person: Option<PersonId>) -> Option<Speaker> {
        let guest = self.guests.of(person?).filter(|guest| !guest.denied)?;
        Some(Speaker { person: guest.person, name: guest.name.clone() })
    }
}

/// What [`Visits::kept`] never exceeds.
pub const MOST_KEPT: usize = view::MOST_TRACKS + guests::MOST;
