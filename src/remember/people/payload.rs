//! A person as a point's payload: the contract that another program, or a later version, reads.
//!
//! `name`, `met_at`, `taught_at` and `last_seen_at` (unix seconds), `shots` (rows of the `face` multivector), and
//! `learned`: how many of these rows, the last ones, are learned poses.

use jiff::Timestamp;
use qdrant_edge::Payload;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::engine::EngineError;
use super::{Person, PersonId};

pub const NAME: &str = "name";
pub const MET: &str = "met_at";
pub const TAUGHT: &str = "taught_at";
pub const LAST_SEEN: &str = "last_seen_at";
const SHOTS: &str = "shots";
const LEARNED: &str = "learned";

/// A person without the shots themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    pub person: Person,
    /// Of the person's shots, how many are learned poses.
    pub learned: usize,
}

impl Card {
    pub fn payload(&self) -> Value {
        let Person { name, met_at, taught_at, last_seen_at, shots, .. } = &self.person;
        json!({
            NAME: name,
            MET: met_at.as_second(),
            TAUGHT: taught_at.as_second(),
            LAST_SEEN: last_seen_at.as_second(),
            SHOTS: shots,
            LEARNED: self.learned,
        })
    }

    pub fn read(id: Uuid, payload: &Payload) -> Result<Self, EngineError> {
        let time = |key| {
            let second = payload.0.get(key).and_then(Value::as_i64);
            let broken = || EngineError(format!("a person came back without a time ({key})"));
            Timestamp::from_second(second.ok_or_else(broken)?).map_err(|_| broken())
        };
        let number = |key| payload.0.get(key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let person = Person {
            id: PersonId(id),
            name: name(payload)?,
            met_at: time(MET)?,
            taught_at: time(TAUGHT)?,
            last_seen_at: time(LAST_SEEN)?,
            shots: number(SHOTS).unwrap_or_default(),
        };
        Ok(Self { person, learned: number(LEARNED).unwrap_or_default() })
    }
}

/// The name alone.
pub fn name(payload: &Payload) -> Result<String, EngineError> {
    let name = payload.0.get(NAME).and_then(Value::as_str).map(str::to_owned);
    name.ok_or_else(|| EngineError("a person came back without a name".into()))
}
