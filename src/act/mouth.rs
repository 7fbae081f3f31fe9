//! The mouth: speaks the sentences of a turn, one after the other, and knows which were really said.
//!
//! Two threads. One turns sentences into sound, the other plays it, so that the next sentence is ready when this one
//! ends. [`Mouth`] is only a sender; the threads end when it is dropped. If one dies, the handle answers
//! [`ActError::Gone`].
//!
//! A full queue makes [`Mouth::speak`] wait: no sentence of a reply is ever dropped but by [`Mouth::stop`].

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::{mpsc, oneshot};

use super::ActError;
use super::voice::{Voice, VoiceError};
use crate::robot::{Robot, Sound};

/// A turn of the conversation; later turns have greater numbers.
pub type TurnId = u64;

/// Sentences that may wait for the voice. A reply of 300 tokens has about 20.
const WAITING: usize = 64;
/// Sounds that may wait to be played, beside the one that is playing and the one that is being made.
const READY: usize = 1;

/// What became of a turn's sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The sentences that were said to their end, in order, as they were given. A sentence of a mute robot counts (it
    /// was answered in text), and so does one with nothing to say aloud. One that was cut short does not.
    pub sentences: Vec<String>,
    /// Whether at least one sentence was cut short or left out because of [`Mouth::stop`].
    pub interrupted: bool,
    /// Why at least one sentence was not heard: there is no voice, or it failed.
    pub mute: Option<String>,
}

/// The handle on the mouth.
pub struct Mouth {
    orders: mpsc::Sender<Order>,
    silence: Silence,
    /// One more than the newest turn that has spoken.
    begun: AtomicU64,
}

enum Order {
    Say { turn: TurnId, sentence: String },
    Finish { turn: TurnId, reply: oneshot::Sender<Spoken> },
}

/// An order whose sound is ready.
enum Ready {
    Say { turn: TurnId, sentence: String, sound: Result<Option<Sound>, VoiceError> },
    Finish { turn: TurnId, reply: oneshot::Sender<Spoken> },
}

/// Which turns must be silent: all that are less than the number.
#[derive(Clone, Default)]
struct Silence(Arc<AtomicU64>);

impl Silence {
    fn covers(&self, turn: TurnId) -> bool {
        turn < self.0.load(Ordering::Acquire)
    }

    fn below(&self, turn: TurnId) {
        self.0.fetch_max(turn, Ordering::AcqRel);
    }
}

impl Mouth {
    /// Starts the two threads.
    ///
    /// # Errors
    /// [`ActError::NotStarted`].
    pub fn start(robot: Arc<dyn Robot>, voice: Voice) -> Result<Self, ActError> {
        let (orders, incoming) = mpsc::channel(WAITING);
        let (ready, sounds) = sync_channel(READY);
        let silence = Silence::default();
        let (of_voice, of_player) = (silence.clone(), silence.clone());
        let not_started = |source| ActError::NotStarted { part: "mouth", source };
        std::thread::Builder::new()
            .name("voice".into())
            .spawn(move || synthesise_all(&voice, incoming, &ready, &of_voice))
            .map_err(not_started)?;
        std::thread::Builder::new()
            .name("mouth".into())
            .spawn(move || play_all(robot.as_ref(), &sounds, &of_player))
            .map_err(not_started)?;
        Ok(Self { orders, silence, begun: AtomicU64::new(0) })
    }

    /// Hands over the next sentence of `turn`; waits only while the queue is full. After [`Mouth::stop`] the turn's
    /// sentences are taken and not said.
    ///
    /// # Errors
    /// [`ActError::Gone`].
    pub async fn speak(&self, turn: TurnId, sentence: impl Into<String>) -> Result<(), ActError> {
        self.begun.fetch_max(turn.saturating_add(1), Ordering::AcqRel);
        let order = Order::Say { turn, sentence: sentence.into() };
        self.orders.send(order).await.map_err(|_| ActError::Gone { part: "mouth" })
    }

    /// Waits until all sentences of `turn` that were handed over have been said or left out. A turn that said nothing,
    /// or whose answer was fetched already, has nothing in it; so has one after which another turn has spoken.
    ///
    /// # Errors
    /// [`ActError::Gone`].
    pub async fn finished(&self, turn: TurnId) -> Result<Spoken, ActError> {
        let (reply, answer) = oneshot::channel();
        let gone = ActError::Gone { part: "mouth" };
        if self.orders.send(Order::Finish { turn, reply }).await.is_err() {
            return Err(gone);
        }
        answer.await.map_err(|_| gone)
    }

    /// Silence, now: the sentence that is playing is cut, and every turn that has spoken so far stays silent whatever
    /// it still hands over. Does not block.
    pub fn stop(&self) {
        self.silence.below(self.begun.load(Ordering::Acquire));
    }

    /// Like [`Mouth::stop`] for `turn` and every earlier one, whether or not it has spoken yet.
    pub fn stop_turn(&self, turn: TurnId) {
        self.silence.below(turn.saturating_add(1));
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        self.silence.below(TurnId::MAX);
    }
}

fn synthesise_all(voice: &Voice, mut orders: mpsc::Receiver<Order>, ready: &SyncSender<Ready>, silence: &Silence) {
    while let Some(order) = orders.blocking_recv() {
        let made = match order {
            Order::Finish { turn, reply } => Ready::Finish { turn, reply },
            Order::Say { turn, sentence } => {
                let stop = || silence.covers(turn);
                let sound = if stop() { Err(VoiceError::Stopped) } else { voice.speak(&sentence, &stop) };
                Ready::Say { turn, sentence, sound }
            }
        };
        if ready.send(made).is_err() {
            tracing::error!("the mouth has died; nothing more will be said");
            return;
        }
    }
}

fn play_all(robot: &dyn Robot, sounds: &Receiver<Ready>, silence: &Silence) {
    let mut current: Option<(TurnId, Spoken)> = None;
    while let Ok(ready) = sounds.recv() {
        match ready {
            Ready::Say { turn, sentence, sound } => {
                let spoken = match &mut current {
                    Some((at, spoken)) if *at == turn => spoken,
                    // Whoever does not ask what became of a turn is not told later.
                    other => &mut other.insert((turn, Spoken::default())).1,
                };
                utter(robot, spoken, sentence, sound, &|| silence.covers(turn));
            }
            Ready::Finish { turn, reply } => {
                let spoken = current.take_if(|(at, _)| *at == turn).map(|(_, spoken)| spoken).unwrap_or_default();
                if reply.send(spoken).is_err() {
                    tracing::debug!(turn, "nobody waits for the end of this turn any more");
                }
            }
        }
    }
}

/// Says one sentence and writes down what became of it.
fn utter(
    robot: &dyn Robot,
    spoken: &mut Spoken,
    sentence: String,
    sound: Result<Option<Sound>, VoiceError>,
    silenced: &dyn Fn() -> bool,
) {
    if silenced() || matches!(sound, Err(VoiceError::Stopped)) {
        spoken.interrupted = true;
        return;
    }
    robot.say(&sentence);
    let cut = Cell::new(false);
    let stop = || {
        cut.set(cut.get() || silenced());
        cut.get()
    };
    let failure = match sound {
        Ok(None) => None,
        Ok(Some(sound)) => robot.play(&sound, &stop).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = failure {
        tracing::warn!(%why, "a sentence was not heard");
        spoken.mute.get_or_insert(why);
    }
    if cut.get() {
        spoken.interrupted = true;
    } else {
        spoken.sentences.push(sentence);
    }
}
