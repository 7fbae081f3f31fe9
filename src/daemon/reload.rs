//! Taking over an edited `config.toml` while the robot lives.
//!
//! On SIGHUP, and whenever the file has changed, it is read again. What can change live is handed to the parts that it
//! concerns, all of it or nothing: a part that cannot take its new values (a voice that does not exist) refuses the
//! whole edit. What cannot is named, with the word "restart". A bad edit leaves everything as it is and is said with
//! its line. [`changes`] decides what is what, [`file`] when an editor has finished.
//!
//! The [`Reloader`] owns the running configuration; parts read it from [`Reloader::running`] or register as a [`Part`].
//! If its task dies, edits need a restart and nothing else changes.

pub mod changes;
mod file;
mod laptop;
mod voice;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::sync::watch;

use super::diary::{Diary, log};
use super::notify::{Manager, Tell};
use crate::config::{Config, ConfigError};
use changes::{Change, Changes, compare, taken_over};
use file::{Stamp, Watched};
pub use laptop::laptop_part;
pub use voice::LiveVoice;

/// The file is looked at this often. A look is one `stat`; an edit is taken over after two of them that agree.
const LOOK: Duration = Duration::from_secs(2);

/// Takes over what was prepared; cannot fail.
pub type Commit = Box<dyn FnOnce() + Send>;
/// Makes ready what a new config asks of a part, or says why it cannot be.
type Prepare = dyn Fn(&Config) -> Result<Commit, String> + Send + Sync;

/// A part of the robot that can take new values while it lives.
pub struct Part {
    concerns: fn(&Config, &Config) -> bool,
    prepare: Box<Prepare>,
}

impl Part {
    /// A part that is asked when `concerns` says that the second configuration differs from the first for it.
    /// `prepare` tries the new values, may block, changes nothing, and answers with what takes them over, or with why
    /// they are of no use.
    pub fn new(
        concerns: fn(&Config, &Config) -> bool,
        prepare: impl Fn(&Config) -> Result<Commit, String> + Send + Sync + 'static,
    ) -> Self {
        Self { concerns, prepare: Box::new(prepare) }
    }
}

/// What became of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file says what already holds.
    Unchanged,
    /// `live` holds now; `needs_restart` is what the file says and the running service does not do yet.
    Taken(Changes),
    /// The old configuration stays in force.
    Refused { why: String },
}

impl Outcome {
    /// What the log says.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Unchanged => "The configuration was read again; nothing in it is new.".into(),
            Self::Taken(changes) => format!("The configuration was read again. {changes}"),
            Self::Refused { why } => format!("The configuration stays as it was; the new one is of no use: {why}"),
        }
    }

    /// What the robot may say aloud; `None` where it had better say nothing.
    #[must_use]
    pub fn spoken(&self) -> Option<String> {
        match self {
            Self::Unchanged => None,
            Self::Taken(changes) if changes.needs_restart.is_empty() => Some("I have my new settings.".into()),
            Self::Taken(_) => Some("I have read my new settings. Some of them need a restart.".into()),
            Self::Refused { .. } => {
                Some("My new settings have a mistake, so I keep the old ones. My log says which line it is.".into())
            }
        }
    }
}

/// The running configuration, and what it takes to change it.
pub struct Reloader {
    file: Option<PathBuf>,
    running: watch::Sender<Arc<Config>>,
    parts: Vec<Part>,
    /// Since the start: an edit while models are still being loaded counts.
    watched: Watched,
    /// What the file says and only a restart would do; said once.
    waiting: Vec<Change>,
}

impl Reloader {
    /// `running` came from `file`; without one there is nothing to read again.
    #[must_use]
    pub fn new(running: Config, file: Option<PathBuf>) -> Self {
        let watched = Watched::new(file.as_deref().and_then(Stamp::of));
        Self { file, running: watch::Sender::new(Arc::new(running)), parts: Vec::new(), watched, waiting: Vec::new() }
    }

    /// The running configuration, now and later. Only the keys of [`changes::LIVE`] ever change.
    #[must_use]
    pub fn running(&self) -> watch::Receiver<Arc<Config>> {
        self.running.subscribe()
    }

    /// A log that follows `[privacy] log_words`.
    #[must_use]
    pub fn diary(&self) -> Diary {
        let (running, words, no_words) = (self.running(), log(true), log(false));
        Arc::new(move |event| {
            // Read and released at once: the log must never hold a reload up.
            let wanted = running.borrow().privacy.log_words;
            if wanted { words(event) } else { no_words(event) }
        })
    }

    /// From now on `part` is asked.
    pub fn register(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Reads the file again and takes over what can be. Blocks.
    pub fn reload(&mut self) -> Outcome {
        let Some(file) = &self.file else {
            return Outcome::Refused { why: "this service was started without a configuration file".into() };
        };
        match Config::load(Some(file)) {
            Ok(new) => self.take(&new),
            Err(error) => Outcome::Refused { why: error.to_string() },
        }
    }

    fn take(&mut self, new: &Config) -> Outcome {
        let running = Arc::clone(&self.running.borrow());
        match self.try_take(&running, new) {
            Ok(changes) => {
                let known = changes.needs_restart == self.waiting;
                self.waiting.clone_from(&changes.needs_restart);
                if changes.live.is_empty() && known { Outcome::Unchanged } else { Outcome::Taken(changes) }
            }
            Err(why) => Outcome::Refused { why },
        }
    }

    fn try_take(&self, running: &Config, new: &Config) -> Result<Changes, String> {
        let sentence = |error: ConfigError| error.to_string();
        let changes = compare(running, new).map_err(sentence)?;
        if changes.live.is_empty() {
            return Ok(changes);
        }
        let next = taken_over(running, new).map_err(sentence)?;
        let concerned = self.parts.iter().filter(|part| (part.concerns)(running, &next));
        let commits = concerned.map(|part| (part.prepare)(&next)).collect::<Result<Vec<_>, _>>()?;
        for commit in commits {
            commit();
        }
        self.running.send_replace(Arc::new(next));
        Ok(changes)
    }

    fn stamp(&self) -> Option<Stamp> {
        self.file.as_deref().and_then(Stamp::of)
    }

    /// Whether the file was edited since it was last read, and is finished.
    fn edited(&mut self) -> bool {
        let stamp = self.stamp();
        self.watched.look(stamp)
    }
}

/// Reads the file again on every `hang_up` and after every edit, until the task is dropped. The service manager is told
/// that it happens, the log what came of it, and `told` as well.
pub async fn keep_up(mut reloader: Reloader, mut hang_up: Signal, manager: Manager, told: impl Fn(&Outcome) + Send) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            signal = hang_up.recv() => match signal {
                Some(()) => true,
                None => return,
            },
            _ = ticks.tick() => false,
        };
        let edited = reloader.edited();
        if !asked && !edited {
            continue;
        }
        // Before it is read: what is written meanwhile is another edit.
        if asked {
            reloader.watched = Watched::new(reloader.stamp());
        }
        manager.tell(&[Tell::Reloading]);
        let done = tokio::task::spawn_blocking(move || {
            let outcome = reloader.reload();
            (reloader, outcome)
        });
        let outcome;
        (reloader, outcome) = match done.await {
            Ok(done) => done,
            Err(error) => {
                manager.tell(&[Tell::Ready]);
                tracing::error!(%error, "reading the configuration again failed; edits need a restart from now on");
                return;
            }
        };
        manager.tell(&[Tell::Ready]);
        report(&outcome, asked);
        told(&outcome);
    }
}

fn report(outcome: &Outcome, asked: bool) {
    match outcome {
        // A file that was only touched is no news.
        Outcome::Unchanged if !asked => {}
        Outcome::Refused { .. } => tracing::error!("{}", outcome.sentence()),
        Outcome::Unchanged | Outcome::Taken(_) => tracing::info!("{}", outcome.sentence()),
    }
}

#[cfg(test)]
mod tests;
