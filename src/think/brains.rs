//! Which brain answers: the laptop's while it is there, the robot's own otherwise; each change is said once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::brain::{Brain, BrainError};
use super::lines;

/// The brains of one conversation.
pub struct Brains {
    own: Option<Arc<dyn Brain>>,
    laptop: Arc<Mutex<Laptop>>,
}

/// The laptop's brain, and what is known of it.
struct Laptop {
    brain: Option<Arc<dyn Brain>>,
    presence: Presence,
    retry_after: Duration,
}

/// The laptop's place, which can be given to another one; of no effect once the [`Brains`] are gone.
#[derive(Clone)]
pub struct LaptopSeat {
    laptop: Weak<Mutex<Laptop>>,
}

impl LaptopSeat {
    /// From the next turn on `brain` is asked first; the turn that runs ends with the one it began with.
    pub fn give_to(&self, brain: Option<Arc<dyn Brain>>, retry_after: Duration) {
        if let Some(laptop) = self.laptop.upgrade() {
            *locked(&laptop) = Laptop { brain, presence: Presence::Here, retry_after };
        }
    }
}

fn locked(laptop: &Mutex<Laptop>) -> MutexGuard<'_, Laptop> {
    laptop.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of the laptop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    /// It did not answer; a task asks again every now and then.
    Away,
    /// It answers again, and nobody has been told yet.
    Back,
    /// Its configuration is wrong; it is not asked again in this run.
    Misconfigured,
}

/// The brain for a turn, with what the person must be told first.
pub struct Choice {
    pub brain: Option<Arc<dyn Brain>>,
    pub is_laptop: bool,
    pub announcement: Option<String>,
}

impl Brains {
    /// `laptop` is asked first; `own` stands in. While the laptop is away it is tried every `retry_after`.
    #[must_use]
    pub fn new(laptop: Option<Arc<dyn Brain>>, own: Option<Arc<dyn Brain>>, retry_after: Duration) -> Self {
        let laptop = Laptop { brain: laptop, presence: Presence::Here, retry_after };
        Self { own, laptop: Arc::new(Mutex::new(laptop)) }
    }

    /// The laptop's place.
    #[must_use]
    pub fn seat(&self) -> LaptopSeat {
        LaptopSeat { laptop: Arc::downgrade(&self.laptop) }
    }

    /// The brain that should answer now.
    #[must_use]
    pub fn choose(&self) -> Choice {
        let mut laptop = locked(&self.laptop);
        match (&laptop.brain, laptop.presence) {
            (Some(brain), Presence::Here) => {
                Choice { brain: Some(Arc::clone(brain)), is_laptop: true, announcement: None }
            }
            (Some(brain), Presence::Back) => {
                let brain = Some(Arc::clone(brain));
                laptop.presence = Presence::Here;
                Choice { brain, is_laptop: true, announcement: Some(lines::LAPTOP_BACK.to_owned()) }
            }
            (None, _) | (_, Presence::Away | Presence::Misconfigured) => {
                Choice { brain: self.own.clone(), is_laptop: false, announcement: None }
            }
        }
    }

    /// The laptop, for a small question beside a turn; `None` where it was away when it was asked last.
    #[must_use]
    pub fn beside(&self) -> Option<Arc<dyn Brain>> {
        let laptop = locked(&self.laptop);
        laptop.brain.clone().filter(|_| matches!(laptop.presence, Presence::Here | Presence::Back))
    }

    /// The laptop failed with `error` before it had said anything; answers who takes this turn over, and what the
    /// person is told. `None` where nobody should take it over.
    pub fn take_over(&self, error: &BrainError) -> Option<Choice> {
        let announcement = match error {
            BrainError::Away { .. } | BrainError::TimedOut { .. } => {
                self.change(Presence::Away);
                self.watch();
                lines::LAPTOP_AWAY.to_owned()
            }
            BrainError::Waking { .. } => lines::LAPTOP_WAKING.to_owned(),
            BrainError::Misconfigured { sentence } => {
                self.change(Presence::Misconfigured);
                sentence.clone()
            }
            BrainError::TooLong { .. }
            | BrainError::Unusable { .. }
            | BrainError::Blind { .. }
            | BrainError::Interrupted => return None,
        };
        Some(Choice { brain: self.own.clone(), is_laptop: false, announcement: Some(announcement) })
    }

    fn change(&self, to: Presence) {
        locked(&self.laptop).presence = to;
    }

    /// Asks the laptop again until it answers, beside everything else.
    fn watch(&self) {
        let (brain, pause) = {
            let laptop = locked(&self.laptop);
            (laptop.brain.clone(), laptop.retry_after)
        };
        let Some(brain) = brain else { return };
        let laptop = Arc::clone(&self.laptop);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                // Only the conversation holds the state besides this task; without it there is nobody to tell. Another
                // laptop may have taken the place.
                let is_still_there = || locked(&laptop).brain.as_ref().is_some_and(|now| Arc::ptr_eq(now, &brain));
                if Arc::strong_count(&laptop) == 1 || !is_still_there() {
                    return;
                }
                if brain.reachable().await.is_ok() {
                    if is_still_there() {
                        locked(&laptop).presence = Presence::Back;
                    }
                    return;
                }
            }
        });
    }
}
