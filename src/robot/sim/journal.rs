//! What the simulated robot did, in order, for tests and for the demo.

use jiff::Timestamp;
use serde::Serialize;

use crate::robot::day::Fault;
use crate::robot::{Direction, Gesture};

/// The most deeds that are kept; a day of talk has some hundreds.
pub const MOST_DEEDS: usize = 10_000;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deed {
    /// When, in milliseconds since the unix epoch.
    pub at_ms: i64,
    #[serde(flatten)]
    pub what: Doing,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "did", rename_all = "snake_case")]
pub enum Doing {
    /// Somebody in the script begins to speak.
    Visitor {
        says: String,
    },
    /// The robot says this, or would if it were not mute.
    Says {
        sentence: String,
    },
    /// A sound came out of the speaker: how much of it, and whether it was stopped before its end.
    Plays {
        millis: u64,
        stopped: bool,
    },
    Gestures {
        gesture: Gesture,
    },
    Looks {
        direction: Direction,
    },
    /// A picture was taken; `sees` is what the script says is in it.
    TakesPicture {
        looked: Direction,
        sees: Option<Vec<String>>,
    },
    /// Something breaks for a while.
    Breaks {
        fault: Fault,
        for_s: u32,
    },
    /// Something was asked of a part that is broken or not there.
    Fails {
        part: &'static str,
        why: String,
    },
    /// The script's part is over.
    Ends,
    /// The body was put to rest.
    Rests,
}

/// The deeds so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Journal {
    pub deeds: Vec<Deed>,
    /// How many more there were after [`MOST_DEEDS`].
    pub left_out: u64,
}

impl Journal {
    pub(super) fn add(&mut self, at: Timestamp, what: Doing) {
        if self.deeds.len() < MOST_DEEDS {
            self.deeds.push(Deed { at_ms: at.as_millisecond(), what });
        } else {
            self.left_out += 1;
        }
    }

    /// The sentences that the robot said, in order.
    #[must_use]
    pub fn sentences(&self) -> Vec<&str> {
        let said = |deed: &'_ Deed| matches!(&deed.what, Doing::Says { .. });
        let words = |deed| match deed {
            &Deed { what: Doing::Says { ref sentence }, .. } => sentence.as_str(),
            _ => "",
        };
        self.deeds.iter().filter(|deed| said(deed)).map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_journal_counts_what_it_leaves_out() {
        let mut journal = Journal::default();
        for _ in 0..MOST_DEEDS + 3 {
            journal.add(Timestamp::UNIX_EPOCH, Doing::Rests);
        }
        assert_eq!((journal.deeds.len(), journal.left_out), (MOST_DEEDS, 3));
    }

    #[test]
    fn a_deed_is_one_flat_line_of_json() {
        let mut journal = Journal::default();
        journal.add(Timestamp::UNIX_EPOCH, Doing::Says { sentence: "Hi.".into() });
        assert_eq!(serde_json::to_string(&journal.deeds[0]).unwrap(), r#"{"at_ms":0,"did":"says","sentence":"Hi."}"#);
        assert_eq!(journal.sentences(), ["Hi."]);
    }
}
