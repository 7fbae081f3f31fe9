//! One frame: what the robot saw at one moment, worth keeping because something changed or somebody asked.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::exchange::identity;
use crate::robot::Direction;
use crate::see::Detection;

/// A picture with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    pub seen_at: Timestamp,
    /// Where the head looked.
    pub looked: Direction,
    /// What was visible, each label once, sorted.
    pub labels: Vec<String>,
    pub detections: Vec<Detection>,
    /// Names of the people in it, as far as known.
    pub names: Vec<String>,
    /// How many people were visible.
    pub people: u32,
    /// "I saw a person and a cup on my left."
    pub sentence: String,
    /// What was said about it when somebody asked the robot to look.
    pub caption: Option<String>,
    /// The encoded picture; empty where it was left out of an answer on purpose.
    #[serde(skip)]
    pub jpeg: Vec<u8>,
}

impl Frame {
    /// The identity in the shard: one frame for a moment and a direction.
    #[must_use]
    pub fn id(&self) -> Uuid {
        let mut hash = Sha256::new();
        hash.update(b"frame");
        hash.update(self.seen_at.as_millisecond().to_le_bytes());
        hash.update([self.looked as u8]);
        identity(hash)
    }

    /// What is embedded: the sentence, and what was said about the picture.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.caption {
            Some(caption) => format!("{} {caption}", self.sentence),
            None => self.sentence.clone(),
        }
    }
}
