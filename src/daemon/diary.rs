//! What happens, told as it happens: to the log of the service, or to a transcript.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::listen::Heard;
use crate::think::conversation::{Moved, TurnReport};
use crate::think::turn::Step;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A sentence that the owner must read.
    Note {
        what: String,
    },
    /// Ready to listen; this long after the process began.
    Ready {
        after: Duration,
    },
    /// An earlier process had not stored these yet; they are in the memory now.
    TakenUp(Moved),
    /// Somebody spoke, `seconds` long; it was understood `after` the end of it was noticed.
    Heard {
        heard: Heard,
        seconds: f64,
        after: Duration,
    },
    /// There was sound, and no words that count.
    NotHeard {
        why: String,
    },
    /// Somebody spoke over the robot, and it fell silent.
    Interrupted,
    /// Somebody whom the robot knows was greeted.
    Greeted {
        name: String,
        line: String,
    },
    /// A stranger was asked for their name.
    AskedName {
        line: String,
    },
    /// A stranger said who they are.
    Met {
        name: String,
        line: String,
    },
    /// What is visible changed.
    Saw {
        sentence: String,
        at: Timestamp,
        /// No detector was there: the simulated camera's annotations said what is visible.
        stand_in: bool,
        stored: Result<(), String>,
    },
    Step(Step),
    TurnEnded {
        report: TurnReport,
        took: Duration,
        at: Timestamp,
    },
    Trouble {
        what: String,
    },
    /// The safe end; what was in the window is in the memory.
    Ended(Moved),
}

/// Told every [`Event`]; must not block for long.
pub type Diary = Arc<dyn Fn(&Event) + Send + Sync>;

/// Writes events to the log; words only where the owner allowed it.
#[must_use]
pub fn log(words: bool) -> Diary {
    Arc::new(move |event| match event {
        Event::Note { what } => tracing::warn!("{what}"),
        Event::Ready { after } => tracing::info!(seconds = after.as_secs_f32(), "ready"),
        Event::TakenUp(moved) if moved.stored > 0 => {
            tracing::info!(exchanges = moved.stored, "stored what the last run had not stored yet");
        }
        Event::TakenUp(moved) => not_stored(moved),
        Event::Heard { heard, seconds, .. } => {
            let text = shown(words, &heard.text);
            tracing::info!(seconds, confidence = heard.confidence, ms = heard.transcribed_in_ms, text, "heard");
        }
        Event::NotHeard { why } => tracing::debug!(why, "not heard"),
        Event::Interrupted => tracing::info!("somebody spoke over the robot; it fell silent"),
        Event::Greeted { line, .. } => tracing::info!(text = shown(words, line), "greeted somebody"),
        Event::AskedName { .. } => tracing::info!("asked a stranger for their name"),
        Event::Met { line, .. } => tracing::info!(text = shown(words, line), "met somebody"),
        Event::Saw { sentence, stored: Ok(()), .. } => tracing::info!(text = shown(words, sentence), "saw"),
        Event::Saw { stored: Err(why), .. } => tracing::error!("what was seen could not be stored: {why}"),
        Event::Step(step) => log_step(words, step),
        Event::TurnEnded { report, took, .. } => {
            tracing::info!(ms = took.as_millis(), stored = report.moved.stored, "turn ended");
            not_stored(&report.moved);
        }
        Event::Trouble { what } => tracing::warn!("{what}"),
        Event::Ended(moved) => {
            tracing::info!(exchanges = moved.stored, "the conversation is stored; good-bye");
            not_stored(moved);
        }
    })
}

fn log_step(words: bool, step: &Step) {
    match step {
        Step::Asked { brain } => tracing::debug!(brain, "asked"),
        Step::Called { tool } => tracing::info!(tool = tool.name(), "tool"),
        Step::Answered { tool, took, .. } => {
            tracing::info!(tool = tool.name(), ms = took.as_secs_f64() * 1000.0, "answered");
        }
        Step::Saying { sentence, after } => {
            tracing::info!(ms = after.as_millis(), text = shown(words, sentence), "saying");
        }
        Step::Trouble { what } => tracing::warn!("{what}"),
    }
}

fn not_stored(moved: &Moved) {
    if let Some(why) = &moved.kept_because {
        tracing::error!("exchanges could not be stored and are kept for the next try: {why}");
    }
}

/// The words where they may be logged, else only how many there are.
fn shown(words: bool, text: &str) -> String {
    if words { text.to_owned() } else { format!("({} words)", text.split_whitespace().count()) }
}
