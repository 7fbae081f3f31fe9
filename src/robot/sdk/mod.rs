//! A Reachy Mini through its official Python SDK.
//!
//! | who | owns | when it dies |
//! | --- | --- | --- |
//! | the `python` thread ([`pump`]) | the interpreter, by way of the bridge library ([`load`]) | the body does not answer; health says so |
//! | the SDK's and the bridge's own Python threads | the connection, which they watch and make anew | as above |
//! | [`Sdk`] | a sender of orders and what is shared ([`shared`]) | – |
//!
//! Any thread may hear, see, speak and move at once; none waits longer than its own part takes. Starting never fails:
//! without Python, SDK or daemon there is a body that says what is missing, and one that comes later is found.
//!
//! What the robot is made to do comes from [`super::mover`], fifty poses a second, so a movement never stands in a
//! queue. Sound goes in and out by the SDK's own player, whose output the robot's chip takes out of what it hears.

pub mod find;
#[path = "bridge/src/interface.rs"]
#[allow(dead_code, reason = "the library's side of it")]
mod interface;
mod link;
mod load;
mod pump;
mod shared;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::mover::{self, Mover};
use super::pose::Pose;
use super::{Attention, Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound, SoundDirection};
use crate::clock::Clock;
use crate::config::RobotConfig;
use crate::listen::sound::to_16k_mono;
use find::find;
use link::{Link as Asked, Trouble};
use pump::{Order, Pump, Reply};
use shared::{Body, Link, Shared};

/// Orders that may wait for the thread that owns Python, which takes all of them a hundred times a second.
const ORDERS: usize = 16;
/// How long an order may take. The longest are silence and a state after a new connection, tenths of a second.
const ANSWER: Duration = Duration::from_secs(2);
/// The longest that one `hear` waits.
const HEAR: Duration = Duration::from_millis(100);
/// How long a picture is waited for: ten frames of the camera's ten a second.
const PICTURE: Duration = Duration::from_secs(1);
/// The speaker is given slices of this length, in milliseconds, this far ahead. Not measured: a third of a second of
/// Python doing something else is bridged.
const SLICE_MS: u64 = 100;
const AHEAD_MS: u64 = 350;
/// From the SDK's player to the ear, in milliseconds: its sink buffers 50, its mixer about as much.
const PLAYER_MS: u64 = 100;
/// How often a sound that plays looks whether it should stop.
const STOP_EVERY: Duration = Duration::from_millis(10);
/// Motors that were switched on are reported so within a second, once a second.
const MOTORS: Duration = Duration::from_millis(2_500);
/// The body follows its poses closely; a real one settles within tenths of a second. Not measured.
const REACHES: Duration = Duration::from_millis(1_000);
/// Within this of its pose, in radians (8°), the head is where it was to be: gravity pulls at it. Not measured.
const REACHED: f64 = 0.14;
/// After a turn the head stands still this much later: the camera's picture is up to a tenth of a second old.
const STANDS: Duration = Duration::from_millis(200);
/// A thread that has done nothing for so long hangs. Connecting happens beside it.
const HANGS: Duration = Duration::from_secs(5);

/// Whether a body of this process uses Python, of which there is one.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Where the robot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The Python environment with the robot's SDK.
    pub venv: PathBuf,
    /// The machine on which the robot's own daemon runs.
    pub host: String,
    pub port: u16,
    /// The speaker's volume, 0 to 100; `None` leaves it.
    pub volume: Option<u8>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&RobotConfig::default())
    }
}

impl From<&RobotConfig> for Settings {
    fn from(config: &RobotConfig) -> Self {
        let RobotConfig { venv, host, port, volume, .. } = config;
        Self { venv: venv.clone(), host: host.clone(), port: *port, volume: *volume }
    }
}

impl Settings {
    /// Whether the daemon is on this machine: then camera and microphone are read directly.
    #[must_use]
    pub fn is_local(&self) -> bool {
        ["localhost", "127.0.0.1", "::1"].contains(&self.host.as_str())
    }
}

/// How the body is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Whether the robot's own daemon answers.
    pub connected: bool,
    /// Counts the connections that were made.
    pub connection: u64,
    pub motors_on: bool,
    pub camera: bool,
    /// Whether there are microphone and speaker.
    pub audio: bool,
    /// Where the body really is.
    pub pose: Pose,
    /// Why it is not connected.
    pub why: String,
}

/// The body.
pub struct Sdk {
    shared: Arc<Shared>,
    orders: SyncSender<Order>,
    at: String,
}

impl Sdk {
    /// A body that is being looked for from now on.
    #[must_use]
    pub fn start(settings: Settings, clock: Clock) -> Self {
        let (orders, incoming) = sync_channel(ORDERS);
        let shared = Arc::new(Shared::new());
        let at = format!("{}:{}", settings.host, settings.port);
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("python".into()).spawn(move || own(&settings, &shared, incoming, clock))
        };
        if let Err(error) = thread {
            shared.body().link = Link::Missing(format!("its thread could not be started: {error}"));
        }
        Self { shared, orders, at }
    }

    /// How the body is now.
    #[must_use]
    pub fn now(&self) -> State {
        self.shared.body().state.clone()
    }

    /// The pose that the body was last told to take.
    #[must_use]
    pub fn sent(&self) -> Option<Pose> {
        self.shared.body().sent
    }

    /// Waits until the body is connected and its motors are on, at most `most`.
    ///
    /// # Errors
    /// The sentence that says why not; at once where it never will be.
    pub fn ready(&self, most: Duration) -> Result<(), String> {
        let is_ready = |body: &mut Body| match &body.link {
            Link::Missing(why) => Some(Err(why.clone())),
            Link::Connected if body.sent.is_some() => Some(Ok(())),
            _ => None,
        };
        self.shared
            .wait(most, is_ready)
            .unwrap_or_else(|| Err(self.state().err().unwrap_or_else(|| "not ready".into())))
    }

    /// Sends an order and waits for its answer.
    fn ask<T>(&self, part: &'static str, order: impl FnOnce(Reply<T>) -> Order) -> Result<T, RobotError> {
        let failed = |why: &str| RobotError::Failed { part, why: why.into() };
        self.check_there(part)?;
        let (reply, answer) = sync_channel(1);
        self.orders.try_send(order(reply)).map_err(|error| match error {
            TrySendError::Full(_) => failed("the body is too busy to answer"),
            TrySendError::Disconnected(_) => failed("the body has stopped; restart the robot's service"),
        })?;
        match answer.recv_timeout(ANSWER) {
            Ok(answer) => answer.map_err(|trouble| trouble.of(part)),
            Err(RecvTimeoutError::Timeout) => Err(failed("the robot's SDK does not answer")),
            Err(RecvTimeoutError::Disconnected) => Err(failed("the body has stopped; restart the robot's service")),
        }
    }

    fn check_there(&self, part: &'static str) -> Result<(), RobotError> {
        match &self.shared.body().link {
            Link::Missing(why) => Err(RobotError::Missing { part, why: why.clone() }),
            Link::Starting => Err(RobotError::Failed { part, why: "the robot's SDK is still starting".into() }),
            Link::Lost(_) | Link::Connected => Ok(()),
        }
    }

    /// Whether the body can move now; switches the motors on where they are off.
    fn check_motion(&self) -> Result<(), RobotError> {
        self.check_there("motion")?;
        let part = "motion";
        let failed = |why: String| RobotError::Failed { part, why };
        let lost = |body: &mut Body| match &body.link {
            Link::Lost(why) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = lost(&mut self.shared.body()) {
            return Err(failed(format!("the robot at {} is not connected: {why}", self.at)));
        }
        if !self.shared.body().state.motors_on {
            self.ask("motors", |reply| Order::Motors { on: true, reply })?;
            let on = self.shared.wait(MOTORS, |body| body.state.motors_on.then_some(()));
            on.ok_or_else(|| RobotError::Failed {
                part: "motors",
                why: "they are off and could not be switched on, so nothing moved; look at the robot's own page".into(),
            })?;
        }
        // After a loss the SDK takes up to two seconds to take poses again, though its state comes.
        let moves = |body: &mut Body| body.moves.then_some(());
        self.shared.wait(MOTORS, moves).ok_or_else(|| {
            let why = self.shared.body().refused.take();
            failed(why.unwrap_or_else(|| "the robot does not say where its head is".into()))
        })
    }

    /// Begins a movement, waits for its end, and judges whether the body came along.
    fn moves(&self, begin: impl FnOnce(&mut Mover, f64) -> f64) -> Result<(), RobotError> {
        self.check_motion()?;
        let takes = {
            let now = self.shared.seconds();
            let mut body = self.shared.body();
            body.refused = None;
            body.mover.as_mut().map_or(0.0, |mover| begin(mover, now))
        };
        self.watch(Duration::from_secs_f64(takes))
    }

    fn watch(&self, takes: Duration) -> Result<(), RobotError> {
        let failed = |why: String| Err(RobotError::Failed { part: "motion", why });
        let began = Instant::now();
        let broken = |body: &mut Body| match &body.link {
            Link::Lost(why) => Some(format!("the connection to the robot was lost on the way: {why}")),
            _ if body.ended => Some("the body is at rest".into()),
            _ if !body.state.motors_on => Some("the motors were switched off on the way".into()),
            _ => body.refused.take(),
        };
        if let Some(why) = self.shared.wait(takes, broken) {
            return failed(why);
        }
        let apart = |body: &Body| body.sent.map_or(f64::INFINITY, |sent| body.state.pose.turned_from(&sent));
        let is_there = |body: &mut Body| (apart(body) <= REACHED).then_some(());
        if self.shared.wait(REACHES, is_there).is_some() {
            tracing::debug!(took = ?began.elapsed(), "moved");
            return Ok(());
        }
        let apart = apart(&self.shared.body()).to_degrees();
        failed(format!(
            "the head is {apart:.0}° from where it was to be: does another program move it, or is something in its way?"
        ))
    }

    /// Lays the head down and lets go of the motors, where it can. Never longer than three seconds.
    fn lie_down(&self) -> Result<(), RobotError> {
        for step in [Mover::settle, Mover::lie_down] {
            let takes = {
                let now = self.shared.seconds();
                let mut body = self.shared.body();
                if body.link != Link::Connected || !body.state.motors_on {
                    return Err(RobotError::Failed {
                        part: "motion",
                        why: "not connected, or its motors are off; it stays as it is".into(),
                    });
                }
                body.mover.as_mut().map_or(0.0, |mover| step(mover, now))
            };
            std::thread::sleep(Duration::from_secs_f64(takes));
        }
        // The last poses are on their way.
        std::thread::sleep(STANDS);
        self.ask("motors", |reply| Order::Motors { on: false, reply })
    }

    fn hush(&self) -> Result<(), RobotError> {
        self.ask("speaker", |reply| Order::Hush { reply })
    }

    /// What there is when nothing is wrong.
    fn parts(&self, body: &Body) -> String {
        let has = |there: bool, what: &str| if there { what.to_owned() } else { format!("no {what}") };
        let State { camera, audio, motors_on, .. } = &body.state;
        let motors = if *motors_on { "motors on" } else { "motors off" };
        let (camera, audio) = (has(*camera, "camera"), has(*audio, "microphone and speaker"));
        format!("Reachy Mini at {} ({}); {camera}, {audio}, {motors}", self.at, body.versions)
    }
}

/// The thread that owns Python.
fn own(settings: &Settings, shared: &Arc<Shared>, orders: Receiver<Order>, clock: Clock) {
    let missing = |why: String| {
        shared.body().link = Link::Missing(why);
        shared.tell();
    };
    if IN_USE.swap(true, Ordering::AcqRel) {
        return missing("another body of this process uses Python already".into());
    }
    let started = find(settings).map_err(|error| error.to_string()).and_then(|found| {
        let link = Asked::start(&found, settings)?;
        Ok((link, format!("SDK {}, Python {}", found.sdk, found.version)))
    });
    match started {
        Ok((link, versions)) => {
            shared.body().versions = versions;
            Pump::new(link, Arc::clone(shared), orders, clock).run();
        }
        Err(why) => missing(why),
    }
    IN_USE.store(false, Ordering::Release);
}

impl Robot for Sdk {
    fn describe(&self) -> String {
        format!("Reachy Mini at {}", self.at)
    }

    /// Nothing while the body is not connected yet, or no more: it may come. An error where it never will.
    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        let next = |body: &mut Body| match &body.link {
            _ if body.ended => Some(Ok(MicrophoneRead::Ended)),
            Link::Missing(why) => Some(Err(RobotError::Missing { part: "microphone", why: why.clone() })),
            _ => body.sound.pop().map(|(sound, at)| Ok(MicrophoneRead::Sound { sound, at })),
        };
        self.shared.wait(HEAR, next).unwrap_or(Ok(MicrophoneRead::Nothing))
    }

    fn picture(&self) -> Result<Picture, RobotError> {
        self.check_there("camera")?;
        let before = {
            let mut body = self.shared.body();
            body.wanted = true;
            body.shot.as_ref().map_or(0, |shot| shot.number)
        };
        let shot = self.shared.wait(PICTURE, |body| match &body.shot {
            Some(shot) if shot.number > before => Some(match &shot.pixels {
                Ok(pixels) => Ok((as_ppm(pixels.width, pixels.height, &pixels.bgr), shot.looked, shot.at)),
                Err(trouble) => Err(trouble.clone()),
            }),
            _ => None,
        });
        let shot = shot.unwrap_or_else(|| {
            let why = format!("it has given no picture for {} s", PICTURE.as_secs());
            Err(Trouble::Failed(why))
        });
        let (encoded, looked, at) = shot.map_err(|trouble| trouble.of("camera"))?;
        Ok(Picture { encoded, annotations: None, faces: None, at, looked })
    }

    fn play(&self, sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError> {
        let part = "speaker";
        let failed = |why: String| RobotError::Failed { part, why };
        self.check_there(part)?;
        let samples = to_16k_mono(sound).map_err(|error| failed(error.to_string()))?;
        let per_slice = usize::try_from(SLICE_MS * u64::from(crate::listen::RATE) / 1_000).unwrap_or(1);
        let length = Duration::from_millis(samples.len() as u64 * 1_000 / u64::from(crate::listen::RATE));
        let (mut slices, mut given) = (samples.chunks(per_slice), Duration::ZERO);
        let began = Instant::now();
        while began.elapsed() < length + Duration::from_millis(PLAYER_MS) {
            if stop() || self.shared.body().ended {
                return self.hush();
            }
            if given < began.elapsed() + Duration::from_millis(AHEAD_MS)
                && let Some(slice) = slices.next()
            {
                let samples = slice.to_vec();
                self.ask(part, |reply| Order::Play { samples, reply })?;
                given += Duration::from_millis(SLICE_MS);
            } else {
                std::thread::sleep(STOP_EVERY);
            }
        }
        Ok(())
    }

    fn gesture(&self, gesture: Gesture) -> Result<(), RobotError> {
        match (gesture, gesture.sequence()) {
            (Gesture::LookLeft, _) => self.look(Direction::Left),
            (Gesture::LookRight, _) => self.look(Direction::Right),
            (_, Some(sequence)) => self.moves(|mover, now| mover.gesture(sequence, now)),
            (_, None) => self.look(Direction::Ahead),
        }
    }

    fn look(&self, direction: Direction) -> Result<(), RobotError> {
        self.moves(|mover, now| mover.look(direction, now))?;
        std::thread::sleep(STANDS);
        Ok(())
    }

    fn attend(&self, attention: Attention) {
        let now = self.shared.seconds();
        if let Some(mover) = &mut self.shared.body().mover {
            mover.attend(attention, now);
        }
        if attention == Attention::Transcribing {
            // A full queue means that a turn of the head is the least of its troubles.
            drop(self.orders.try_send(Order::TurnToVoice));
        }
    }

    fn gaze(&self, place: [f32; 4]) {
        let now = self.shared.seconds();
        let mut body = self.shared.body();
        if let Some(way) = mover::toward(place) {
            body.gazed = now;
            if let Some(mover) = &mut body.mover {
                mover.gaze(way, now);
            }
        }
    }

    fn sound_direction(&self) -> Option<SoundDirection> {
        self.ask("microphone", |reply| Order::Direction { reply }).ok().flatten()
    }

    fn set_volume(&self, percent: u8) -> Result<(), RobotError> {
        if percent > 100 {
            return Err(RobotError::Failed { part: "volume", why: format!("{percent} is more than 100") });
        }
        self.ask("volume", |reply| Order::Volume { percent, reply })
    }

    fn wake(&self) -> Result<(), RobotError> {
        self.moves(Mover::wake)
    }

    fn sleep(&self) -> Result<(), RobotError> {
        self.check_motion()?;
        self.lie_down()
    }

    fn state(&self) -> Result<String, String> {
        let body = self.shared.body();
        match &body.link {
            Link::Starting => Err("the robot's SDK is starting".into()),
            Link::Missing(why) => Err(format!("there is no body, only a silent room: {why}")),
            Link::Lost(why) => {
                Err(format!("not connected to the robot's own daemon at {} ({why}); it is tried again", self.at))
            }
            Link::Connected if body.beat.elapsed() > HANGS => {
                Err("the robot's SDK does not answer any more; restart the robot's service".into())
            }
            Link::Connected if body.state.audio && body.heard.elapsed() > HANGS => {
                Err(format!("{}; the microphone gives nothing", self.parts(&body)))
            }
            Link::Connected => Ok(self.parts(&body)),
        }
    }

    fn rest(&self) {
        if self.shared.body().ended {
            return;
        }
        let is_connected = self.shared.body().link == Link::Connected;
        if is_connected && let Err(error) = self.lie_down() {
            tracing::warn!(%error, "the head did not go to rest");
        }
        self.shared.body().ended = true;
        self.shared.tell();
        if let Err(error) = self.ask("body", |reply| Order::Close { reply }) {
            tracing::debug!(%error, "the body was not closed");
        }
    }
}

/// Pixels of blue, green and red as a PPM file (Netpbm's P6): a copy, where a JPEG would have to be made and taken
/// apart again.
fn as_ppm(width: usize, height: usize, bgr: &[u8]) -> Vec<u8> {
    let header = format!("P6\n{width} {height}\n255\n");
    let mut ppm = Vec::with_capacity(header.len() + bgr.len());
    ppm.extend_from_slice(header.as_bytes());
    let (pixels, _) = bgr.as_chunks::<3>();
    ppm.extend(pixels.iter().flat_map(|[blue, green, red]| [*red, *green, *blue]));
    ppm
}

#[cfg(test)]
mod tests;
