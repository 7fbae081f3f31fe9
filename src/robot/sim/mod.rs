//! The simulated robot: plays a scripted day from files and writes down what it was made to do.
//!
//! One thread calls [`Robot::hear`]; any thread may call the rest. Nothing here has a thread of its own, so nothing
//! can die; a recording that cannot be read is an error of `hear`.
//!
//! Time. With a scripted clock the day takes no longer than the program needs: `hear` moves the clock by the length
//! of every chunk, `play` by the length of the sound, and an event's time is jumped to. With [`Sim::paced`] both take
//! as long as they would in a room.
//!
//! Manners. The people of the script wait for the robot: while [`Attention`] is anything but idle, the quiet of the
//! room stands still and no event begins. Somebody who is speaking goes on speaking. That also makes two runs of
//! one day alike, whatever the machine's speed. They also wait to be looked at: when what the camera shows has changed
//! and a seeing thread is there ([`Robot::pause`]), nothing else happens until it had [`UNSEEN`] pictures of it.

mod journal;
mod microphone;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

pub use journal::{Deed, Doing, Journal, MOST_DEEDS};
use microphone::{Microphone, Next, open_recording};

use super::day::{Day, DayError, Event, Fault, View};
use super::{Attention, Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};
use crate::clock::Clock;

/// The longest that one `hear` waits for the robot's turn to end.
const WAIT: Duration = Duration::from_millis(100);
/// Pictures of a new view before the script goes on: at 200 ms apart five seconds, which is what a steady scene needs
/// to be found, confirmed and to stay.
const UNSEEN: u32 = 25;
/// Time does not run farther ahead of a seeing thread than this, in milliseconds: a face that is not looked at for two
/// seconds is another one, and a slow machine must not make it so.
const AHEAD_MS: i64 = 400;
/// A seeing thread that does not come back within this is waited for no longer.
const GONE: Duration = Duration::from_secs(2);
/// How long a pause takes where nothing is paced: long enough to let the other threads work.
const UNPACED_PAUSE: Duration = Duration::from_millis(4);
/// How often a sound that is played looks whether it should stop.
const STEP_MS: u64 = 20;
/// How long a gesture takes at the pace of a room, in milliseconds. Not measured. Without pacing it takes no time, so
/// that a gesture made beside speech does not move the clock under it.
const GESTURE_MS: u64 = 800;
/// The largest picture file, in bytes; a 1280×720 JPEG has about 200 KB.
const LARGEST_PICTURE: u64 = 10_000_000;

/// The simulated robot.
pub struct Sim {
    name: String,
    clock: Clock,
    paced: bool,
    /// Whether there is no script at all: a room that stays quiet for ever.
    silent: bool,
    script: Mutex<Script>,
    body: Mutex<Body>,
    changed: Condvar,
}

/// What is still to come. Only `hear` uses it.
struct Script {
    events: VecDeque<Event>,
    ends_at: Option<Timestamp>,
    microphone: Microphone,
    over: bool,
}

/// Everything else.
#[derive(Default)]
struct Body {
    attention: Attention,
    looks: Direction,
    ahead: Option<View>,
    left: Option<View>,
    right: Option<View>,
    /// Each fault and when it is mended.
    faults: Vec<(Fault, Timestamp)>,
    resting: bool,
    /// Whether a seeing thread takes pictures.
    watched: bool,
    /// When it paused last.
    watched_at: Timestamp,
    /// Pictures that the seeing thread still has to take of the newest view.
    unseen: u32,
    journal: Journal,
}

impl Sim {
    /// A robot that plays part `part` of `day` (counted from 0). A scripted `clock` is moved to where the part begins;
    /// [`Day::clock`] makes one. What the parts before have shown and broken still holds.
    ///
    /// # Errors
    /// [`DayError`] when there is no such part or a file that the day names is missing.
    pub fn new(day: &Day, part: usize, clock: Clock) -> Result<Self, DayError> {
        day.check_files()?;
        let part = day.part(part)?;
        clock.set(part.starts);
        let mut body = Body::default();
        for event in part.before {
            body.show(event);
            body.break_for(event, event.at);
        }
        let script = Script {
            events: part.events.iter().cloned().collect(),
            ends_at: part.ends.map(|(at, _)| at),
            microphone: Microphone::new(u32::try_from(part.number).unwrap_or(0)),
            over: false,
        };
        let name = format!("the simulated robot, playing \"{}\", part {}", day.title, part.number + 1);
        Ok(Self::with(name, clock, script, body, false))
    }

    /// A robot in a room where nothing happens: quiet at the pace of real time, nothing to see, and never an end.
    #[must_use]
    pub fn silent_room(clock: Clock) -> Self {
        let script = Script { events: VecDeque::new(), ends_at: None, microphone: Microphone::new(0), over: false };
        let name = "the simulated robot in a silent room".into();
        Self::with(name, clock, script, Body::default(), true).paced(true)
    }

    fn with(name: String, clock: Clock, script: Script, body: Body, silent: bool) -> Self {
        let (script, body) = (Mutex::new(script), Mutex::new(body));
        Self { name, clock, paced: false, silent, script, body, changed: Condvar::new() }
    }

    /// Whether hearing and playing take as long as in a room. A day does not by default, a silent room does.
    #[must_use]
    pub fn paced(mut self, paced: bool) -> Self {
        self.paced = paced;
        self
    }

    /// The time that this robot lives in.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What it did so far.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.body().journal.clone()
    }

    /// A thread that panicked while it held the lock has left nothing half-done here: every change is one assignment.
    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the robot's turn is over, at most [`WAIT`]; whether it is.
    fn is_idle(&self) -> bool {
        let busy = |body: &mut Body| body.attention != Attention::Idle && !body.resting;
        let waited = self.changed.wait_timeout_while(self.body(), WAIT, busy);
        let (body, _) = waited.unwrap_or_else(PoisonError::into_inner);
        body.attention == Attention::Idle
    }

    /// Waits until the newest view was looked at, at most [`WAIT`]; whether it was.
    fn is_seen(&self) -> bool {
        let unseen = |body: &mut Body| body.unseen > 0 && !body.resting;
        let waited = self.changed.wait_timeout_while(self.body(), WAIT, unseen);
        let (body, _) = waited.unwrap_or_else(PoisonError::into_inner);
        body.unseen == 0
    }

    /// Lets `millis` of the room's time pass.
    fn pass(&self, millis: u64) {
        if self.paced {
            let until = Instant::now() + Duration::from_millis(millis);
            let mut body = self.body();
            // Only an end cuts the wait short.
            while !body.resting {
                let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                    break;
                };
                body = self.changed.wait_timeout(body, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        self.clock.advance(SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)));
        self.let_it_look();
    }

    /// Waits for a seeing thread that has fallen behind.
    fn let_it_look(&self) {
        let now = self.clock.now();
        let behind = |body: &mut Body| {
            let ahead = now.duration_since(body.watched_at).as_millis();
            body.watched && !body.resting && ahead > i128::from(AHEAD_MS)
        };
        let waited = self.changed.wait_timeout_while(self.body(), GONE, behind);
        let (mut body, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
        if timed_out.timed_out() {
            body.watched = false;
        }
    }

    /// The next chunk of what is queued.
    fn give(&self, script: &mut Script) -> MicrophoneRead {
        let at = self.clock.now();
        let deaf = self.body().is_broken(Fault::MicrophoneSilent, at);
        match script.microphone.chunk(deaf) {
            Some(sound) => {
                self.pass(sound.millis());
                MicrophoneRead::Sound { sound, at }
            }
            None => MicrophoneRead::Nothing,
        }
    }

    /// Lets the next event happen, or ends the part.
    fn go_on(&self, script: &mut Script) -> Result<MicrophoneRead, RobotError> {
        let Some(event) = script.events.pop_front() else {
            if let Some(at) = script.ends_at {
                self.clock.set(at);
            }
            if !script.over {
                script.over = true;
                self.body().journal.add(self.clock.now(), Doing::Ends);
            }
            return Ok(MicrophoneRead::Ended);
        };
        self.clock.set(event.at);
        let now = self.clock.now();
        if self.body().is_new_to_a_watcher(&event) {
            let rest = Event { ahead: None, left: None, right: None, ..event.clone() };
            script.events.push_front(rest);
            let mut body = self.body();
            body.show(&event);
            body.unseen = UNSEEN;
            return Ok(MicrophoneRead::Nothing);
        }
        let sound = event.speech.as_ref().map(|speech| open_recording(&speech.file)).transpose()?;
        {
            let mut body = self.body();
            body.show(&event);
            body.break_for(&event, now);
            if let Some(broken) = event.fault {
                body.journal.add(now, Doing::Breaks { fault: broken.fault, for_s: broken.for_s });
            }
            if let Some(speech) = event.speech {
                body.journal.add(now, Doing::Visitor { says: speech.says });
            }
        }
        if let Some(sound) = sound {
            script.microphone.record(sound);
        }
        if let Some(seconds) = event.pause_s {
            script.microphone.quiet(seconds.saturating_mul(1_000));
        }
        Ok(self.give(script))
    }

    /// The error of a part that does not work now, written down.
    fn fails(&self, part: &'static str, why: &str, gone: bool) -> RobotError {
        self.body().journal.add(self.clock.now(), Doing::Fails { part, why: why.to_owned() });
        if gone {
            RobotError::Missing { part, why: why.to_owned() }
        } else {
            RobotError::Failed { part, why: why.to_owned() }
        }
    }

    fn is_broken(&self, fault: Fault) -> bool {
        self.body().is_broken(fault, self.clock.now())
    }

    fn needs_motors(&self) -> Result<(), RobotError> {
        if self.is_broken(Fault::MotorsOff) {
            Err(self.fails("motors", "they are switched off, so nothing moved; switch them on", false))
        } else {
            Ok(())
        }
    }

    /// Turns the head without writing it down.
    fn turn(&self, direction: Direction) {
        self.body().looks = direction;
    }
}

impl Body {
    fn show(&mut self, event: &Event) {
        for (view, new) in
            [(&mut self.ahead, &event.ahead), (&mut self.left, &event.left), (&mut self.right, &event.right)]
        {
            if new.is_some() {
                view.clone_from(new);
            }
        }
    }

    fn is_new_to_a_watcher(&self, event: &Event) -> bool {
        self.watched && [&event.ahead, &event.left, &event.right].into_iter().any(Option::is_some)
    }

    fn break_for(&mut self, event: &Event, from: Timestamp) {
        if let Some(broken) = event.fault {
            self.faults.retain(|(fault, _)| *fault != broken.fault);
            // A time beyond jiff's range would be the year 9999: as good as never mended.
            let mended = from.checked_add(SignedDuration::from_secs(i64::from(broken.for_s)));
            self.faults.push((broken.fault, mended.unwrap_or(Timestamp::MAX)));
        }
    }

    fn is_broken(&self, fault: Fault, now: Timestamp) -> bool {
        self.faults.iter().any(|(broken, mended)| *broken == fault && now < *mended)
    }

    fn view(&self) -> Option<&View> {
        match self.looks {
            Direction::Ahead => self.ahead.as_ref(),
            Direction::Left => self.left.as_ref(),
            Direction::Right => self.right.as_ref(),
        }
    }
}

fn read_picture(path: PathBuf) -> Result<Vec<u8>, DayError> {
    let unreadable = |why: String| DayError::Unreadable { path: path.clone(), why };
    let cannot = |error: std::io::Error| unreadable(format!("cannot be read: {error}"));
    let size = std::fs::metadata(&path).map_err(cannot)?.len();
    if size > LARGEST_PICTURE {
        return Err(unreadable(format!("has {size} bytes; a picture has at most {LARGEST_PICTURE}")));
    }
    std::fs::read(&path).map_err(cannot)
}

impl Robot for Sim {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        if self.body().resting {
            return Ok(MicrophoneRead::Ended);
        }
        let mut script = self.script();
        if self.silent {
            if script.microphone.next() == Next::Nothing {
                script.microphone.quiet(microphone::CHUNK_MS);
            }
            return Ok(self.give(&mut script));
        }
        match script.microphone.next() {
            Next::Speech => Ok(self.give(&mut script)),
            _ if !self.is_idle() || !self.is_seen() => Ok(MicrophoneRead::Nothing),
            Next::Quiet => Ok(self.give(&mut script)),
            Next::Nothing => self.go_on(&mut script),
        }
    }

    /// Only a seeing thread pauses. Time passes for it while the newest view is still to be looked at; otherwise the
    /// script alone moves the time.
    fn pause(&self, pause: Duration) {
        {
            let mut body = self.body();
            body.watched = true;
            if body.unseen > 0 {
                body.unseen -= 1;
                self.clock.advance(SignedDuration::try_from(pause).unwrap_or_default());
            }
            body.watched_at = self.clock.now();
        }
        self.changed.notify_all();
        std::thread::sleep(if self.paced { pause } else { UNPACED_PAUSE });
    }

    /// A dark camera is an error, not an empty picture: nobody may conclude that nothing is there. So is a direction of
    /// which the script says nothing.
    fn picture(&self) -> Result<Picture, RobotError> {
        if self.is_broken(Fault::CameraGone) {
            return Err(self.fails("camera", "it is unplugged; plug it in again", true));
        }
        if self.is_broken(Fault::CameraDark) {
            let why = "its picture is black, so nothing can be seen; is something in front of it?";
            return Err(self.fails("camera", why, false));
        }
        let (view, looked) = {
            let body = self.body();
            (body.view().cloned(), body.looks)
        };
        let Some(view) = view else {
            let why = "nobody says what this simulated camera would show there (a scripted day can, with `sees`)";
            return Err(self.fails("camera", why, self.silent));
        };
        let encoded = view.picture.map(read_picture).transpose()?.unwrap_or_default();
        let at = self.clock.now();
        let sees = view.sees.as_ref().map(|sees| sees.iter().map(|seen| seen.label.clone()).collect());
        self.body().journal.add(at, Doing::TakesPicture { looked, sees });
        Ok(Picture { encoded, annotations: view.sees, faces: view.faces, at, looked })
    }

    fn play(&self, sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError> {
        if self.is_broken(Fault::SpeakerGone) {
            return Err(self.fails("speaker", "it is unplugged; plug it in again", true));
        }
        let (began, length) = (self.clock.now(), sound.millis());
        let mut played = 0;
        while played < length && !stop() && !self.body().resting {
            let step = STEP_MS.min(length - played);
            self.pass(step);
            played += step;
        }
        let stopped = played < length;
        self.body().journal.add(began, Doing::Plays { millis: played, stopped });
        Ok(())
    }

    fn say(&self, sentence: &str) {
        self.body().journal.add(self.clock.now(), Doing::Says { sentence: sentence.to_owned() });
    }

    fn gesture(&self, gesture: Gesture) -> Result<(), RobotError> {
        self.needs_motors()?;
        self.body().journal.add(self.clock.now(), Doing::Gestures { gesture });
        match gesture {
            Gesture::LookLeft => self.turn(Direction::Left),
            Gesture::LookRight => self.turn(Direction::Right),
            Gesture::LookAhead => self.turn(Direction::Ahead),
            _ => {}
        }
        if self.paced {
            self.pass(GESTURE_MS);
        }
        Ok(())
    }

    fn look(&self, direction: Direction) -> Result<(), RobotError> {
        self.needs_motors()?;
        self.turn(direction);
        self.body().journal.add(self.clock.now(), Doing::Looks { direction });
        Ok(())
    }

    fn attend(&self, attention: Attention) {
        self.body().attention = attention;
        self.changed.notify_all();
    }

    fn rest(&self) {
        let now = self.clock.now();
        let mut body = self.body();
        if !body.resting {
            body.resting = true;
            body.looks = Direction::Ahead;
            body.journal.add(now, Doing::Rests);
        }
        drop(body);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
