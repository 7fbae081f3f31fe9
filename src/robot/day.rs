//! A scripted day: what is said to the simulated robot, what it sees, and what breaks.
//!
//! A [`Day`] is read once and never changes; [`super::sim`] plays it. `demo/day.toml` shows the format and explains
//! it. Everything is checked when the file is read, with the line of what is wrong, so that a day that loads can be
//! played to its end as long as its files are there ([`Day::check_files`]).

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Annotation;
use crate::clock::Clock;
use crate::config::file::{line_of, read_text};

/// The most events of one day; a script of more is a mistake.
const MOST_EVENTS: usize = 2_000;
/// The longest pause, in seconds. All of it is played as sound, so hours of it would only burn the processor.
const LONGEST_PAUSE_S: u32 = 3_600;
/// The longest fault, in seconds: a day.
const LONGEST_FAULT_S: u32 = 86_400;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDay {
    title: String,
    time_zone: Spanned<String>,
    starts: Spanned<String>,
    #[serde(default)]
    event: Vec<Spanned<WrittenEvent>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    at: Spanned<String>,
    sound: Option<PathBuf>,
    says: Option<String>,
    picture: Option<PathBuf>,
    sees: Option<Vec<WrittenSight>>,
    sees_left: Option<Vec<WrittenSight>>,
    sees_right: Option<Vec<WrittenSight>>,
    fault: Option<Fault>,
    for_s: Option<u32>,
    pause_s: Option<u32>,
    restart: Option<Restart>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "what is in view must be names, as in \"cup\", or { label = \"cup\", place = [0.1, 0.2, 0.3, 0.4] }")]
enum WrittenSight {
    Label(String),
    Placed(Annotation),
}

impl WrittenSight {
    fn is_fair(&self) -> bool {
        match self {
            Self::Label(label) => !label.trim().is_empty(),
            Self::Placed(Annotation { label, place }) => {
                let inside = |place: &[f32; 4]| {
                    let [left, top, right, bottom] = *place;
                    place.iter().all(|edge| (0.0..=1.0).contains(edge)) && left < right && top < bottom
                };
                !label.trim().is_empty() && place.as_ref().is_none_or(inside)
            }
        }
    }
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
        let reader = Reader { text, path: origin, folder: origin.parent().unwrap_or(Path::new("")) };
        let written: WrittenDay = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            reader.refuse(offset, error.message().to_owned())
        })?;
        reader.day(written)
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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

/// Turns what is written into a [`Day`], knowing where each thing stands.
struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    folder: &'a Path,
}

impl Reader<'_> {
    fn refuse(&self, offset: usize, why: String) -> DayError {
        DayError::Refused { path: self.path.to_owned(), line: line_of(self.text, offset), why }
    }

    fn day(&self, written: WrittenDay) -> Result<Day, DayError> {
        let zone = TimeZone::get(written.time_zone.get_ref()).map_err(|_| {
            let why = format!("time_zone {:?} is no zone that this machine knows", written.time_zone.get_ref());
            self.refuse(written.time_zone.span().start, why)
        })?;
        let starts: DateTime = written.starts.get_ref().parse().map_err(|_| {
            let why = format!("starts must be a date and a time, as in \"2026-05-04T08:05\", and is {:?}", written.starts.get_ref());
            self.refuse(written.starts.span().start, why)
        })?;
        let instant = |civil: DateTime, offset: usize| {
            zone.to_timestamp(civil).map_err(|error| self.refuse(offset, format!("{civil} is no time here: {error}")))
        };
        if written.event.len() > MOST_EVENTS {
            return Err(self.refuse(0, format!("a day has at most {MOST_EVENTS} events")));
        }
        let mut last = starts;
        let mut events = Vec::with_capacity(written.event.len());
        for event in written.event {
            let (offset, at) = (event.span().start, event.get_ref().at.clone());
            let time = clock_time(at.get_ref()).ok_or_else(|| {
                let why = format!("at must be a time of day, as in \"08:05\" or \"08:05:30\", and is {:?}", at.get_ref());
                self.refuse(at.span().start, why)
            })?;
            let civil = starts.date().to_datetime(time);
            if civil < last {
                let why = format!("at goes backward: {} comes after {}", time, last.time());
                return Err(self.refuse(at.span().start, why));
            }
            last = civil;
            events.push(self.event(instant(civil, at.span().start)?, offset, event.into_inner())?);
        }
        let begins = instant(starts, written.starts.span().start)?;
        Ok(Day { title: written.title, zone, starts: begins, events, path: self.path.to_owned() })
    }

    fn event(&self, at: Timestamp, offset: usize, written: WrittenEvent) -> Result<Event, DayError> {
        let line = line_of(self.text, offset);
        let refuse = |why: &str| Err(self.refuse(offset, why.to_owned()));
        let speech = match (written.sound, written.says) {
            (Some(file), says) => {
                Some(Speech { file: self.folder.join(file), says: says.unwrap_or_default().trim().to_owned() })
            }
            (None, Some(_)) => return refuse("says needs a sound: the recording of these words"),
            (None, None) => None,
        };
        let fault = match (written.fault, written.for_s) {
            (Some(fault), Some(for_s)) if (1..=LONGEST_FAULT_S).contains(&for_s) => Some(Breakage { fault, for_s }),
            (Some(_), _) => return refuse("a fault needs for_s: how many seconds it lasts, 1 to 86400"),
            (None, Some(_)) => return refuse("for_s needs a fault"),
            (None, None) => None,
        };
        if written.pause_s.is_some_and(|pause| !(1..=LONGEST_PAUSE_S).contains(&pause)) {
            return refuse("pause_s must be 1 to 3600 seconds; for longer, give the next event a later time");
        }
        let sights = [&written.sees, &written.sees_left, &written.sees_right];
        if sights.into_iter().flatten().flatten().any(|sight| !sight.is_fair()) {
            return refuse("what is in view needs a name, and a place is left, top, right, bottom from 0 to 1");
        }
        let ahead = (written.picture.is_some() || written.sees.is_some()).then(|| View {
            picture: written.picture.map(|file| self.folder.join(file)),
            sees: written.sees.map(annotations),
        });
        let side = |sees: Option<Vec<WrittenSight>>| sees.map(|sees| View { picture: None, sees: Some(annotations(sees)) });
        let (left, right) = (side(written.sees_left), side(written.sees_right));
        let (pause_s, restart) = (written.pause_s, written.restart);
        let event = Event { at, line, speech, ahead, left, right, fault, pause_s, restart };
        let others = event.has_something();
        match (restart.is_some(), others) {
            (true, true) => refuse("a restart stands alone; give what comes before or after it its own event"),
            (false, false) => refuse(
                "nothing happens in this event: it needs one of sound, picture, sees, sees_left, sees_right, fault, \
                 pause_s, restart",
            ),
            _ => Ok(event),
        }
    }
}

impl Event {
    fn has_something(&self) -> bool {
        let views = self.ahead.is_some() || self.left.is_some() || self.right.is_some();
        self.speech.is_some() || views || self.fault.is_some() || self.pause_s.is_some()
    }
}

fn annotations(sees: Vec<WrittenSight>) -> Vec<Annotation> {
    let annotation = |sight| match sight {
        WrittenSight::Label(label) => Annotation { label, place: None },
        WrittenSight::Placed(annotation) => annotation,
    };
    sees.into_iter().map(annotation).collect()
}

/// HH:MM or HH:MM:SS, and nothing looser: "8:5" is more likely a slip than five past eight.
fn clock_time(text: &str) -> Option<Time> {
    let mut fields = text.split(':');
    let mut next = || {
        let field = fields.next()?;
        (field.len() == 2 && field.bytes().all(|byte| byte.is_ascii_digit())).then(|| field.parse::<i8>().ok())?
    };
    let (hour, minute) = (next()?, next()?);
    let second = if text.len() > 5 { next()? } else { 0 };
    if fields.next().is_some() { None } else { Time::new(hour, minute, second, 0).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n";

    fn day(events: &str) -> Result<Day, DayError> {
        Day::from_toml(&format!("{HEAD}{events}"), Path::new("house/day.toml"))
    }

    fn refused(events: &str) -> (usize, String) {
        match day(events).unwrap_err() {
            DayError::Refused { line, why, .. } => (line, why),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_demo_day_loads_in_two_parts() {
        let day = Day::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/day.toml")).unwrap();
        let parts = day.parts();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].ends.map(|(_, restart)| restart), Some(Restart::Kill));
        assert_eq!(parts[1].ends, None);
        let said = |part: &Part<'_>| part.events.iter().filter(|event| event.speech.is_some()).count();
        assert_eq!((said(&parts[0]), said(&parts[1])), (10, 6));
        assert_eq!(parts[1].starts, "2026-05-04T12:30:00Z".parse().unwrap());
    }

    #[test]
    fn times_are_told_in_the_days_own_zone() {
        let text = HEAD.replace("UTC", "Europe/Berlin") + "[[event]]\nat = \"08:05:30\"\npause_s = 3\n";
        let day = Day::from_toml(&text, Path::new("day.toml")).unwrap();
        assert_eq!(day.events[0].at, "2026-05-04T06:05:30Z".parse().unwrap());
    }

    #[test]
    fn files_are_looked_for_beside_the_script() {
        let day = day("[[event]]\nat = \"08:05\"\nsound = \"sounds/a.wav\"\nsays = \"Hello.\"\n").unwrap();
        assert_eq!(day.events[0].speech.as_ref().unwrap().file, Path::new("house/sounds/a.wav"));
        let missing = day.check_files().unwrap_err().to_string();
        assert!(missing.starts_with("house/day.toml:4: there is no file house/sounds/a.wav"), "{missing}");
    }

    #[test]
    fn a_time_that_goes_backward_is_refused_on_its_line() {
        let (line, why) = refused("[[event]]\nat = \"09:00\"\npause_s = 1\n[[event]]\nat = \"08:59\"\npause_s = 1\n");
        assert_eq!(line, 8);
        assert!(why.contains("backward"), "{why}");
        let (line, _) = refused("[[event]]\nat = \"07:59\"\npause_s = 1\n");
        assert_eq!(line, 5, "before the day starts");
    }

    #[test]
    fn what_is_wrong_in_an_event_is_refused_with_its_line() {
        let cases = [
            ("[[event]]\nat = \"8:05\"\npause_s = 1", 5, "time of day"),
            ("[[event]]\nat = \"24:00\"\npause_s = 1", 5, "time of day"),
            ("[[event]]\nat = \"08:05:\"\npause_s = 1", 5, "time of day"),
            ("[[event]]\nat = \"08:05\"", 4, "nothing happens"),
            ("[[event]]\nat = \"08:05\"\nsays = \"Hi\"", 4, "needs a sound"),
            ("[[event]]\nat = \"08:05\"\nfault = \"camera-dark\"", 4, "for_s"),
            ("[[event]]\nat = \"08:05\"\nfor_s = 3", 4, "needs a fault"),
            ("[[event]]\nat = \"08:05\"\npause_s = 100000", 4, "3600"),
            ("[[event]]\nat = \"08:05\"\nrestart = \"kill\"\npause_s = 1", 4, "stands alone"),
            ("[[event]]\nat = \"08:05\"\nsound = \"a.wav\"\nvolume = 3", 7, "volume"),
            ("[[event]]\nat = \"08:05\"\nfault = \"no-coffee\"\nfor_s = 1", 6, "microphone-silent"),
            ("[[event]]\nat = \"08:05\"\nsees = [3]", 6, "what is in view"),
            ("[[event]]\nat = \"08:05\"\nsees = [\"\"]", 4, "needs a name"),
            ("[[event]]\nat = \"08:05\"\nsees = [{ label = \"cup\", place = [0.9, 0.1, 0.2, 0.3] }]", 4, "a place is"),
        ];
        for (events, at, says) in cases {
            let (line, why) = refused(events);
            assert_eq!(line, at, "{events}: {why}");
            assert!(why.contains(says), "{events}: {why}");
        }
    }

    #[test]
    fn a_sight_may_have_a_place() {
        let day = day(
            "[[event]]\nat = \"08:05\"\nsees = [\"cup\", { label = \"person\", place = [0.1, 0.2, 0.5, 0.9] }]\n",
        )
        .unwrap();
        let sees = day.events[0].ahead.clone().unwrap().sees.unwrap();
        assert_eq!(sees[0], Annotation { label: "cup".into(), place: None });
        assert_eq!(sees[1].place, Some([0.1, 0.2, 0.5, 0.9]));
    }

    #[test]
    fn a_part_that_is_not_there_is_a_typed_error() {
        let day = day("").unwrap();
        assert_eq!(day.parts().len(), 1, "a day without events still is one part");
        assert!(matches!(day.clock(1), Err(DayError::NoSuchPart { part: 1, parts: 1 })));
    }
}
