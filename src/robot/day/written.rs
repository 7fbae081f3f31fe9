//! The format of a day's file, and how it becomes a [`Day`]. Pure: nothing here opens a file.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use serde::Deserialize;
use toml::Spanned;

use super::{Breakage, Day, DayError, Event, Fault, Restart, Speech, View};
use crate::config::file::line_of;
use crate::robot::{Annotation, FaceMark};
use crate::see::faces::MOST_FACES;
use crate::see::told::PERSON;

/// The most events of one day; a script of more is a mistake.
const MOST_EVENTS: usize = 2_000;
/// The longest pause, in seconds. All of it is played as sound, so hours of it would only burn the processor.
const LONGEST_PAUSE_S: u32 = 3_600;
/// The longest fault, in seconds: a day.
const LONGEST_FAULT_S: u32 = 86_400;

/// The day in `text`; `origin` is the file that errors name and whose folder relative paths start at.
pub(super) fn read(text: &str, origin: &Path) -> Result<Day, DayError> {
    let reader = Reader { text, path: origin, folder: origin.parent().unwrap_or(Path::new("")) };
    let written: WrittenDay = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        reader.refuse(offset, error.message().to_owned())
    })?;
    reader.day(written)
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
    faces: Option<Vec<WrittenFace>>,
    sees_left: Option<Vec<WrittenSight>>,
    sees_right: Option<Vec<WrittenSight>>,
    fault: Option<Fault>,
    for_s: Option<u32>,
    pause_s: Option<u32>,
    restart: Option<Restart>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "what is in view must be names, as in \"cup\", or { label = \"cup\", place = [0.1, 0.2, 0.3, 0.4] }"
)]
enum WrittenSight {
    Label(String),
    Placed(Annotation),
}

impl WrittenSight {
    fn is_fair(&self) -> bool {
        match self {
            Self::Label(label) => !label.trim().is_empty(),
            Self::Placed(Annotation { label, place }) => {
                !label.trim().is_empty() && place.as_ref().is_none_or(is_inside)
            }
        }
    }
}

fn is_inside(place: &[f32; 4]) -> bool {
    let [left, top, right, bottom] = *place;
    place.iter().all(|edge| (0.0..=1.0).contains(edge)) && left < right && top < bottom
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a face must be whose it is, as in \"anna\", or { of = \"anna\", place = [0.4, 0.2, 0.5, 0.4], angle = 0.0 }"
)]
enum WrittenFace {
    Of(String),
    Marked(FaceMark),
}

impl WrittenFace {
    fn mark(self) -> FaceMark {
        match self {
            Self::Of(of) => FaceMark { of, place: None, angle: 0.0, poor: false },
            Self::Marked(mark) => mark,
        }
    }
}

/// The faces of an event; what is wrong with them is said.
fn marks(faces: Option<Vec<WrittenFace>>) -> Result<Option<Vec<FaceMark>>, &'static str> {
    let Some(faces) = faces else { return Ok(None) };
    let marks: Vec<FaceMark> = faces.into_iter().map(WrittenFace::mark).collect();
    if marks.len() > MOST_FACES {
        return Err("at most 16 faces are in view");
    }
    let is_fair = |mark: &FaceMark| {
        !mark.of.trim().is_empty() && mark.place.as_ref().is_none_or(is_inside) && (-90.0..=90.0).contains(&mark.angle)
    };
    if !marks.iter().all(is_fair) {
        return Err(
            "a face needs whose it is, a place is left, top, right, bottom from 0 to 1, and an angle is -90 to 90",
        );
    }
    Ok(Some(marks))
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
            let why = format!(
                "starts must be a date and a time, as in \"2026-05-04T08:05\", and is {:?}",
                written.starts.get_ref()
            );
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
            let (offset, at) = (event.span().start, event.get_ref().at.span().start);
            let civil = starts.date().to_datetime(self.time(&event.get_ref().at)?);
            if civil < last {
                let why = format!("at goes backward: {} comes after {}", civil.time(), last.time());
                return Err(self.refuse(at, why));
            }
            last = civil;
            events.push(self.event(instant(civil, at)?, offset, event.into_inner())?);
        }
        let begins = instant(starts, written.starts.span().start)?;
        Ok(Day { title: written.title, zone, starts: begins, events, path: self.path.to_owned() })
    }

    fn time(&self, at: &Spanned<String>) -> Result<Time, DayError> {
        clock_time(at.get_ref()).ok_or_else(|| {
            let why = format!("at must be a time of day, as in \"08:05\" or \"08:05:30\", and is {:?}", at.get_ref());
            self.refuse(at.span().start, why)
        })
    }

    fn event(&self, at: Timestamp, offset: usize, mut written: WrittenEvent) -> Result<Event, DayError> {
        let refuse = |why: &str| self.refuse(offset, why.to_owned());
        let speech = self.speech(&mut written).map_err(refuse)?;
        let fault = breakage(&written).map_err(refuse)?;
        if written.pause_s.is_some_and(|pause| !(1..=LONGEST_PAUSE_S).contains(&pause)) {
            return Err(refuse("pause_s must be 1 to 3600 seconds; for longer, give the next event a later time"));
        }
        let sights = [&written.sees, &written.sees_left, &written.sees_right];
        if sights.into_iter().flatten().flatten().any(|sight| !sight.is_fair()) {
            return Err(refuse("what is in view needs a name, and a place is left, top, right, bottom from 0 to 1"));
        }
        let faces = marks(written.faces).map_err(refuse)?;
        let event = Event {
            at,
            line: line_of(self.text, offset),
            speech,
            ahead: self.ahead(written.picture, written.sees, faces),
            left: written.sees_left.map(side),
            right: written.sees_right.map(side),
            fault,
            pause_s: written.pause_s,
            restart: written.restart,
        };
        match (event.restart.is_some(), event.has_something()) {
            (true, true) => Err(refuse("a restart stands alone; give what comes before or after it its own event")),
            (false, false) => Err(refuse(
                "nothing happens in this event: it needs one of sound, picture, sees, faces, sees_left, sees_right, \
                 fault, pause_s, restart",
            )),
            _ => Ok(event),
        }
    }

    fn speech(&self, written: &mut WrittenEvent) -> Result<Option<Speech>, &'static str> {
        match (written.sound.take(), written.says.take()) {
            (Some(file), says) => {
                let says = says.unwrap_or_default().trim().to_owned();
                Ok(Some(Speech { file: self.folder.join(file), says }))
            }
            (None, Some(_)) => Err("says needs a sound: the recording of these words"),
            (None, None) => Ok(None),
        }
    }

    fn ahead(
        &self,
        picture: Option<PathBuf>,
        sees: Option<Vec<WrittenSight>>,
        faces: Option<Vec<FaceMark>>,
    ) -> Option<View> {
        if picture.is_none() && sees.is_none() && faces.is_none() {
            return None;
        }
        let person = |mark: &FaceMark| Annotation { label: PERSON.to_owned(), place: mark.place };
        let people = || faces.as_ref().map(|faces| faces.iter().map(person).collect());
        let sees = sees.map(annotations).or_else(people);
        Some(View { picture: picture.map(|file| self.folder.join(file)), sees, faces })
    }
}

fn breakage(written: &WrittenEvent) -> Result<Option<Breakage>, &'static str> {
    match (written.fault, written.for_s) {
        (Some(fault), Some(for_s)) if (1..=LONGEST_FAULT_S).contains(&for_s) => Ok(Some(Breakage { fault, for_s })),
        (Some(_), _) => Err("a fault needs for_s: how many seconds it lasts, 1 to 86400"),
        (None, Some(_)) => Err("for_s needs a fault"),
        (None, None) => Ok(None),
    }
}

fn side(sees: Vec<WrittenSight>) -> View {
    View { picture: None, sees: Some(annotations(sees)), faces: None }
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
