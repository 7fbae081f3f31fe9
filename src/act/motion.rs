//! Motion: gestures and gaze, one at a time, the newest first.
//!
//! One thread moves the body. Only one movement waits: a newer one takes its place, because a nod that comes a minute
//! late is worse than none, and the older asker is told ([`ActError::Superseded`]). If the thread dies, the handle
//! answers [`ActError::Gone`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::ActError;
use crate::robot::{Direction, Gesture, Robot};

/// What the body can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    Gesture(Gesture),
    Look(Direction),
}

/// The handle on the body's motion. Dropping it ends the thread after the movement that runs.
pub struct Motion {
    slot: Arc<Slot>,
    gestures: AtomicBool,
}

type Reply = oneshot::Sender<Result<(), ActError>>;

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Option<(Movement, Reply)>,
    closed: bool,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `next` wait; whoever waited before is told so.
    fn put(&self, next: (Movement, Reply)) -> Result<(), ActError> {
        let mut state = self.state();
        if state.closed {
            return Err(ActError::Gone { part: "motion" });
        }
        let before = state.waiting.replace(next);
        drop(state);
        self.changed.notify_all();
        answer(before, ActError::Superseded);
        Ok(())
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let before = state.waiting.take();
        drop(state);
        self.changed.notify_all();
        answer(before, ActError::Gone { part: "motion" });
    }
}

fn answer(before: Option<(Movement, Reply)>, why: ActError) {
    if let Some((_, reply)) = before {
        // Who asked may have given up.
        drop(reply.send(Err(why)));
    }
}

/// Closes the slot when the thread ends, in whatever way.
struct ClosesSlot(Arc<Slot>);

impl Drop for ClosesSlot {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Motion {
    /// Starts the thread. With `gestures` false every gesture is refused; looking still works.
    ///
    /// # Errors
    /// [`ActError::NotStarted`].
    pub fn start(robot: Arc<dyn Robot>, gestures: bool) -> Result<Self, ActError> {
        let slot = Arc::new(Slot::default());
        let guard = ClosesSlot(Arc::clone(&slot));
        std::thread::Builder::new()
            .name("motion".into())
            .spawn(move || move_all(robot.as_ref(), &guard.0))
            .map_err(|source| ActError::NotStarted { part: "motion", source })?;
        Ok(Self { slot, gestures: AtomicBool::new(gestures) })
    }

    /// Moves, and returns when the movement is over. Never waits for more than the movement that runs.
    ///
    /// # Errors
    /// [`ActError`]; only on `Ok` did the body move.
    pub async fn make(&self, movement: Movement) -> Result<(), ActError> {
        if matches!(movement, Movement::Gesture(_)) && !self.gestures.load(Ordering::Acquire) {
            return Err(ActError::GesturesOff);
        }
        let (reply, answer) = oneshot::channel();
        self.slot.put((movement, reply))?;
        answer.await.map_err(|_| ActError::Gone { part: "motion" })?
    }

    /// Whether gestures are made from now on; the movement that runs goes on to its end.
    pub fn allow_gestures(&self, allowed: bool) {
        self.gestures.store(allowed, Ordering::Release);
    }

    /// Forgets the movement that waits; the one that runs goes on to its end.
    pub fn stop(&self) {
        let before = self.slot.state().waiting.take();
        answer(before, ActError::Stopped);
    }
}

impl Drop for Motion {
    fn drop(&mut self) {
        self.slot.close();
    }
}

fn move_all(robot: &dyn Robot, slot: &Slot) {
    loop {
        let idle = |state: &mut State| state.waiting.is_none() && !state.closed;
        let mut state = slot.changed.wait_while(slot.state(), idle).unwrap_or_else(PoisonError::into_inner);
        let Some((movement, reply)) = state.waiting.take() else {
            return;
        };
        drop(state);
        let done = match movement {
            Movement::Gesture(gesture) => robot.gesture(gesture),
            Movement::Look(direction) => robot.look(direction),
        };
        if let Err(error) = &done {
            tracing::warn!(?movement, %error, "the body did not move");
        }
        // Who asked may have given up.
        drop(reply.send(done.map_err(ActError::from)));
    }
}
