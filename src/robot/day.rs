//! A scripted day: what is said to the simulated robot, what it sees, and what breaks.
//!
//! A [`Day`] is read once and never changes; [`super::sim`] plays it. `demo/day.toml` shows the format and explains
//! it. Everything is checked when the file is read, with the line of what is wrong, so that a day that loads can be
//! played to its end as long as its files are there ([`Day::check_files`]).
//!
//! Faces. An event may say whose faces are ahead from then on: `faces = ["anna"]`, or
//! `faces = [{ of = "anna", place = [0.4, 0.2, 0.5, 0.4], angle = 70.0, poor = false }]` ([`FaceMark`] has what each
//! means). `faces = []` marks that nobody is there. Without `sees` as many people are seen as there are faces. A day
//! that marks faces is looked at by a stand-in from its beginning to its end, whatever face models are there.

mod written;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Annotation, FaceMark};
use crate::clock::Clock;
use crate::config::file::read_text;

/// Why a day cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum DayError {
    /// The file, or one that the day names, cannot be used.
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// Something in the script is not allowed; `line` counts from 1.
    #[error("{}:{line}: {why}", path.display())]
    Refused { path: PathBuf, line: usize, why: String },
    /// There are fewer parts than that.
    #[error("this day has {parts} parts, counted from 0; there is no part {part}")]
    NoSuchPart { part: usize, parts: usize },
}

/// A whole day.
#[derive(Clone, Debug)]
pub struct Day {
    /// What the day is called.
    pub title: String,
    /// The zone in which the script's times are told.
    pub zone: TimeZone,
    /// When the first part begins.
    pub starts: Timestamp,
    /// In order; times never go backward.
    pub events: Vec<Event>,
    path: PathBuf,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happens (or as soon after as the robot's turn has ended).
    pub at: Timestamp,
    /// Its line in the script, counted from 1.
    pub line: usize,
    /// Somebody speaks.
    pub speech: Option<Speech>,
    /// What is in view ahead from then on.
    pub ahead: Option<View>,
    /// What is in view when the head is turned to its left.
    pub left: Option<View>,
    /// What is in view when the head is turned to its right.
    pub right: Option<View>,
    /// Something is broken for a while.
    pub fault: Option<Breakage>,
    /// Seconds of a quiet room.
    pub pause_s: Option<u32>,
    /// The program ends here and is started again.
    pub restart: Option<Restart>,
}

/// A recording and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// WAV file, resolved against the script's folder.
    pub file: PathBuf,
    /// What is said in it; empty for a noise.
    pub says: String,
}

/// What the camera shows in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// JPEG or PNG file, resolved against the script's folder.
    pub picture: Option<PathBuf>,
    /// What the script says is in view; `None` where it does not say.
    pub sees: Option<Vec<Annotation>>,
    /// The faces that the script marks; `None` where it marks none.
    pub faces: Option<Vec<FaceMark>>,
}

/// A fault and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakage {
    pub fault: Fault,
    /// Seconds from the event on.
    pub for_s: u32,
}

/// What may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The microphone gives only zeros.
    MicrophoneSilent,
    /// The camera gives pictures in which nothing can be seen.
    CameraDark,
    /// The camera is unplugged.
    CameraGone,
    /// Nothing moves.
    MotorsOff,
    /// The speaker is unplugged.
    SpeakerGone,
}

/// How the program ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// As if the plug was pulled.
    Kill,
    /// In good order.
    Stop,
}

/// What happens between two starts of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    /// Counted from 0.
    pub number: usize,
    /// When it begins: when the day does, or at the restart before it.
    pub starts: Timestamp,
    /// Without the restart that ends it.
    pub events: &'a [Event],
    /// Events of the parts before, whose views and faults still hold.
    pub before: &'a [Event],
    /// The restart that ends it and when; `None` for the last part.
    pub ends: Option<(Timestamp, Restart)>,
}

impl Day {
    /// Reads the script at `path`. The files that it names are not opened yet.
    ///
    /// # Errors
    /// [`DayError`] with the line of what is wrong.
    pub fn load(path: &Path) -> Result<Self, DayError> {
        let text = read_text(path).map_err(|fault| match fault.line {
            Some(line) => DayError::Refused { path: path.to_owned(), line, why: fault.why },
            None => DayError::Unreadable { path: path.to_owned(), why: fault.why },
        })?;
        Self::from_toml(&text, path)
    }

    /// The day in `text`; `origin` is the file that errors name and whose folder relative paths start at.
    ///
    /// # Errors
    /// [`DayError::Refused`] with the line of what is wrong.
    pub fn from_toml(text: &str, origin: &Path) -> Result<Self, DayError> {
        written::read(text, origin)
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the script marks faces: then a stand-in takes the place of the face models for the whole day.
    #[must_use]
    pub fn marks_faces(&self) -> bool {
        let views = self.events.iter().filter_map(|event| event.ahead.as_ref());
        views.into_iter().any(|view| view.faces.is_some())
    }

    /// The parts between restarts, in order; at least one.
    #[must_use]
    pub fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let (mut from, mut starts) = (0, self.starts);
        for (index, event) in self.events.iter().enumerate() {
            if let Some(restart) = event.restart {
                parts.push(self.cut(parts.len(), starts, from, index, Some((event.at, restart))));
                (from, starts) = (index + 1, event.at);
            }
        }
        parts.push(self.cut(parts.len(), starts, from, self.events.len(), None));
        parts
    }

    fn cut(
        &self,
        number: usize,
        starts: Timestamp,
        from: usize,
        to: usize,
        ends: Option<(Timestamp, Restart)>,
    ) -> Part<'_> {
        let events = self.events.get(from..to).unwrap_or(&[]);
        let before = self.events.get(..from).unwrap_or(&[]);
        Part { number, starts, events, before, ends }
    }

    /// Part `number`, counted from 0.
    ///
    /// # Errors
    /// [`DayError::NoSuchPart`].
    pub fn part(&self, number: usize) -> Result<Part<'_>, DayError> {
        let parts = self.parts();
        parts.get(number).copied().ok_or(DayError::NoSuchPart { part: number, parts: parts.len() })
    }

    /// A scripted clock that stands at the beginning of part `number`, in the script's time zone.
    ///
    /// # Errors
    /// [`DayError::NoSuchPart`].
    pub fn clock(&self, number: usize) -> Result<Clock, DayError> {
        Ok(Clock::scripted(self.part(number)?.starts, self.zone.clone()))
    }

    /// Whether every file that the day names is there.
    ///
    /// # Errors
    /// [`DayError::Refused`] with the line of the first event whose file is missing.
    pub fn check_files(&self) -> Result<(), DayError> {
        for event in &self.events {
            let sound = event.speech.as_ref().map(|speech| &speech.file);
            let picture = event.ahead.as_ref().and_then(|view| view.picture.as_ref());
            for file in sound.into_iter().chain(picture) {
                if !file.is_file() {
                    return Err(DayError::Refused {
                        path: self.path.clone(),
                        line: event.line,
                        why: format!("there is no file {}", file.display()),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
