//! Which brain answers: the laptop's while it is there, the robot's own otherwise; each change is said once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::brain::{Brain, BrainError};
use super::lines;

/// The brains of one conversation.
pub struct Brains {
    laptop: Option<Arc<dyn Brain>>,
    own: Option<Arc<dyn Brain>>,
    retry_after: Duration,
    presence: Arc<Mutex<Presence>>,
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
        Self { laptop, own, retry_after, presence: Arc::new(Mutex::new(Presence::Here)) }
    }

    /// The brain that should answer now.
    #[must_use]
    pub fn choose(&self) -> Choice {
        let mut presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        match (&self.laptop, *presence) {
            (Some(laptop), Presence::Here) => {
                Choice { brain: Some(Arc::clone(laptop)), is_laptop: true, announcement: None }
            }
            (Some(laptop), Presence::Back) => {
                *presence = Presence::Here;
                let announcement = Some(lines::LAPTOP_BACK.to_owned());
                Choice { brain: Some(Arc::clone(laptop)), is_laptop: true, announcement }
            }
            (None, _) | (_, Presence::Away | Presence::Misconfigured) => {
                Choice { brain: self.own.clone(), is_laptop: false, announcement: None }
            }
        }
    }

    /// The laptop, for a small question beside a turn; `None` where it was away when it was asked last.
    #[must_use]
    pub fn beside(&self) -> Option<Arc<dyn Brain>> {
        let presence = *self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        self.laptop.clone().filter(|_| matches!(presence, Presence::Here | Presence::Back))
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
        *self.presence.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }

    /// Asks the laptop again until it answers, beside everything else.
    fn watch(&self) {
        let Some(laptop) = self.laptop.clone() else { return };
        let (presence, pause) = (Arc::clone(&self.presence), self.retry_after);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                // Only the conversation holds the state besides this task; without it there is nobody to tell.
                if Arc::strong_count(&presence) == 1 {
                    return;
                }
                if laptop.reachable().await.is_ok() {
                    *presence.lock().unwrap_or_else(PoisonError::into_inner) = Presence::Back;
                    return;
                }
            }
        });
    }
}
