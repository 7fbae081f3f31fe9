//! One exchange: what somebody said and what the robot answered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The name that stands before the words of somebody whose name is not known.
pub const UNNAMED: &str = "Somebody";
/// The name that stands before the robot's own words.
pub const ROBOT: &str = "Reachy";

/// Both sides of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// What was heard.
    pub heard: String,
    /// What the robot really said; empty when it was interrupted before the first sentence.
    pub said: String,
    /// Who spoke, when known.
    pub speaker: Option<String>,
    /// When the person began to speak.
    pub said_at: Timestamp,
}

impl Exchange {
    /// Both sides in one line with the speaker's name: what is stored, embedded and shown.
    #[must_use]
    pub fn line(&self) -> String {
        let speaker = self.speaker.as_deref().unwrap_or(UNNAMED);
        let mut line = format!("{speaker}: {}", one_line(&self.heard));
        if !self.said.trim().is_empty() {
            line.push_str(&format!(" {ROBOT}: {}", one_line(&self.said)));
        }
        line
    }

    /// The identity of this exchange in the shard: the same exchange written twice is one point, so a batch that
    /// failed half-way, or a journal that is read again after a crash, stores nothing twice.
    ///
    /// The first 16 bytes of SHA-256 over time and words, marked as a version 8 UUID (RFC 9562: custom).
    #[must_use]
    pub fn id(&self) -> Uuid {
        let mut hash = Sha256::new();
        hash.update(self.said_at.as_second().to_le_bytes());
        for part in [&self.heard, &self.said] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        identity(hash)
    }
}

/// The identity that a hash over a memory's content gives.
pub(super) fn identity(hash: Sha256) -> Uuid {
    let digest = hash.finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The words with every run of white space as one space.
fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange() -> Exchange {
        Exchange {
            heard: "The key is\n in the blue box.".into(),
            said: "All right.".into(),
            speaker: None,
            said_at: Timestamp::from_second(1_790_000_000).unwrap(),
        }
    }

    #[test]
    fn both_sides_stand_in_one_line_with_the_speakers_name() {
        assert_eq!(exchange().line(), "Somebody: The key is in the blue box. Reachy: All right.");
        let named = Exchange { speaker: Some("Anna".into()), said: String::new(), ..exchange() };
        assert_eq!(named.line(), "Anna: The key is in the blue box.");
    }

    #[test]
    fn the_same_exchange_has_the_same_id_and_another_time_another() {
        assert_eq!(exchange().id(), exchange().id());
        let later = Exchange { said_at: Timestamp::from_second(1_790_000_001).unwrap(), ..exchange() };
        assert_ne!(exchange().id(), later.id());
        let moved_boundary =
            Exchange { heard: "The key is\n in the blue box.A".into(), said: "ll right.".into(), ..exchange() };
        assert_ne!(exchange().id(), moved_boundary.id());
    }
}
