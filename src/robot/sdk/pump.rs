//! The one thread that owns Python.
//!
//! It goes round about a hundred times a second: what was asked (silence before everything else), the pose of this
//! moment, the microphone, a picture where somebody waits for one, and ten times a second how the body is. No step
//! waits longer than the SDK's own 20 ms for sound. When the thread dies, those who wait are told that the body does
//! not answer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use super::State;
use super::link::{Link as Asked, Trouble};
use super::shared::{Link, Shared, Shot};
use crate::clock::Clock;
use crate::robot::SoundDirection;
use crate::robot::mover::Mover;

/// Poses go out this often: the daemon's own loop takes fifty a second.
const TARGET_EVERY: Duration = Duration::from_millis(20);
/// The body's state is read this often.
const STATE_EVERY: Duration = Duration::from_millis(100);
/// A sound that came faster than this was waiting: there may be more. A live one comes every 10 ms.
const WAITED: Duration = Duration::from_millis(3);
/// Most chunks that are taken in one round, so that a backlog does not hold up the rest.
const CHUNKS: u32 = 16;
/// A connected microphone that gives nothing for so long is connected anew; then again no sooner than the second.
const DEAF: Duration = Duration::from_secs(5);
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// A face that was followed so lately goes before the direction of a voice, in seconds. Not measured.
const FACE_COUNTS: f64 = 3.0;

pub(super) type Reply<T> = SyncSender<Result<T, Trouble>>;

/// What can be asked of the body.
pub(super) enum Order {
    Play {
        samples: Vec<f32>,
        reply: Reply<()>,
    },
    Hush {
        reply: Reply<()>,
    },
    Motors {
        on: bool,
        reply: Reply<()>,
    },
    Volume {
        percent: u8,
        reply: Reply<()>,
    },
    Direction {
        reply: Reply<Option<SoundDirection>>,
    },
    /// Look where the voice came from.
    TurnToVoice,
    Close {
        reply: Reply<()>,
    },
}

/// The thread's own state.
pub(super) struct Pump {
    link: Asked,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    clock: Clock,
    target_due: Instant,
    state_due: Instant,
    /// Which connection the motors were switched on for.
    connection: u64,
    /// Whether poses are sent: connected, motors on, and found where it is.
    moving: bool,
    renewed: Option<Instant>,
    closed: bool,
}

impl Pump {
    pub(super) fn new(link: Asked, shared: Arc<Shared>, orders: Receiver<Order>, clock: Clock) -> Self {
        let now = Instant::now();
        Self {
            link,
            shared,
            orders,
            clock,
            target_due: now,
            state_due: now,
            connection: 0,
            moving: false,
            renewed: None,
            closed: false,
        }
    }

    /// Goes round until the body is closed or nobody can ask any more.
    pub(super) fn run(mut self) {
        while !self.closed {
            let has_sound = self.round();
            if has_sound {
                match self.orders.try_recv() {
                    Ok(order) => self.take(order),
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => break,
                }
            } else {
                match self.orders.recv_timeout(TARGET_EVERY / 2) {
                    Ok(order) => self.take(order),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        if !self.closed {
            drop(self.link.close());
        }
        self.shared.body().link = Link::Lost("the body is at rest".into());
        self.shared.tell();
    }

    /// One round; whether there is a microphone to wait for.
    fn round(&mut self) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            self.take(order);
        }
        let now = Instant::now();
        if now >= self.state_due {
            self.state_due = now + STATE_EVERY;
            self.look_after();
        }
        if now >= self.target_due {
            self.target_due = now + TARGET_EVERY;
            self.move_on();
        }
        self.see();
        self.hear()
    }

    fn take(&mut self, order: Order) {
        // Whoever asked may have given up waiting.
        match order {
            Order::Play { samples, reply } => drop(reply.try_send(self.link.play(&samples))),
            Order::Hush { reply } => drop(reply.try_send(self.link.hush())),
            Order::Motors { on, reply } => drop(reply.try_send(self.link.motors(on))),
            Order::Volume { percent, reply } => drop(reply.try_send(self.link.volume(percent))),
            Order::Direction { reply } => drop(reply.try_send(self.link.direction())),
            Order::TurnToVoice => self.turn_to_voice(),
            Order::Close { reply } => {
                self.closed = true;
                drop(reply.try_send(self.link.close()));
            }
        }
    }

    /// Reads how the body is, and switches its motors on for each new connection.
    fn look_after(&mut self) {
        let state = match self.link.state() {
            Ok(state) => state,
            Err(trouble) => State { why: trouble.why(), ..State::default() },
        };
        let is_new = state.connected && state.connection != self.connection;
        let now = self.shared.seconds();
        let mut body = self.shared.body();
        let is_asleep = body.mover.as_ref().is_some_and(Mover::is_asleep);
        if is_new || !state.connected || !state.motors_on {
            self.moving = false;
            body.moves = false;
        } else if !self.moving {
            // It is where it is found: somebody else, or gravity, may have moved it.
            let found = state.pose.nearest_safe();
            let mover = body.mover.get_or_insert_with(|| {
                let mut mover = Mover::found(found);
                mover.wake(now);
                mover
            });
            mover.is_found(found, now);
            self.moving = true;
        }
        body.link = if state.connected { Link::Connected } else { Link::Lost(state.why.clone()) };
        body.beat = Instant::now();
        let is_deaf = state.connected && state.audio && body.heard.elapsed() > DEAF;
        body.state = state;
        drop(body);
        self.shared.tell();
        if is_new {
            self.connection = self.shared.body().state.connection;
            self.shared.body().heard = Instant::now();
            if !is_asleep {
                drop(self.link.motors(true));
            }
        }
        if is_deaf && self.renewed.is_none_or(|renewed| renewed.elapsed() > RENEW_EVERY) {
            self.renewed = Some(Instant::now());
            drop(self.link.renew());
        }
    }

    /// Sends the pose of this moment.
    fn move_on(&mut self) {
        if !self.moving {
            return;
        }
        let now = self.shared.seconds();
        let mut body = self.shared.body();
        let Some(mover) = &mut body.mover else { return };
        let pose = match mover.pose(now) {
            Ok(pose) => pose,
            Err(error) => {
                mover.drop_gesture();
                body.refused = Some(error.to_string());
                return;
            }
        };
        drop(body);
        let sent = self.link.target(&pose);
        let mut body = self.shared.body();
        match sent {
            Ok(()) => {
                body.sent = Some(pose);
                body.moves = true;
            }
            Err(trouble) => {
                // The motion's time goes on without the body: it is found anew where it stands, or it would jump.
                self.moving = false;
                body.moves = false;
                body.refused = Some(trouble.why());
            }
        }
    }

    /// Takes what the microphone gave; whether there is one that makes this thread wait.
    fn hear(&mut self) -> bool {
        if !self.shared.body().state.audio {
            return false;
        }
        for _ in 0..CHUNKS {
            let asked = Instant::now();
            let Ok(Some(sound)) = self.link.hear() else { return asked.elapsed() > WAITED };
            let live = asked.elapsed() > WAITED;
            let mut body = self.shared.body();
            body.heard = Instant::now();
            body.sound.push(sound, live, self.clock.now());
            drop(body);
            self.shared.tell();
            if live {
                break;
            }
        }
        true
    }

    fn see(&mut self) {
        let body = self.shared.body();
        if !body.wanted {
            return;
        }
        let looked = body.mover.as_ref().map(Mover::looks).unwrap_or_default();
        drop(body);
        let pixels = match self.link.picture() {
            Ok(None) => return,
            Ok(Some(pixels)) => Ok(pixels),
            Err(trouble) => Err(trouble),
        };
        let mut body = self.shared.body();
        body.wanted = false;
        let number = body.shot.as_ref().map_or(1, |shot| shot.number + 1);
        body.shot = Some(Shot { number, pixels, looked, at: self.clock.now() });
        drop(body);
        self.shared.tell();
    }

    fn turn_to_voice(&mut self) {
        let now = self.shared.seconds();
        if now - self.shared.body().gazed < FACE_COUNTS {
            return;
        }
        if let Ok(Some(direction)) = self.link.direction()
            && let Some(mover) = &mut self.shared.body().mover
        {
            mover.gaze((direction.left, 0.0), now);
        }
    }
}
