//! Exchanges and frames as the shard's points: the contract that another program, or a later version, reads.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use qdrant_edge::Payload;
use quick_cache::sync::Cache;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::engine::EngineError;
use super::kept::{Kept, Known};
use crate::remember::{Exchange, Frame};

/// The payload key of the tenant.
pub const KIND: &str = "kind";
/// The payload key of a frame's picture, base64 of a JPEG file.
pub const JPEG: &str = "jpeg";
/// The payload key of a frame's labels.
pub const LABELS: &str = "labels";
/// The payload key of where the head looked.
pub const LOOKED: &str = "looked";

/// What can be a point of `memory/`.
pub trait Stored: Clone + Sized {
    /// The value of [`KIND`].
    const KIND: &'static str;
    /// The payload key of its time, unix seconds.
    const TIME: &'static str;

    fn id(&self) -> Uuid;
    /// What is also found word by word; `None` for what is found by likeness alone.
    fn words(&self) -> Option<String>;
    fn payload(&self) -> Value;
    /// Reads what [`Stored::payload`] wrote; a frame's picture may be left out.
    fn read(payload: &Payload) -> Result<Self, EngineError>;
    /// Where copies of its kind are kept.
    fn kept(kept: &Kept) -> &Cache<Uuid, Arc<Known<Self>>>;
}

impl Stored for Exchange {
    const KIND: &'static str = "exchange";
    const TIME: &'static str = "said_at";

    fn id(&self) -> Uuid {
        Exchange::id(self)
    }

    /// Both sides and the speaker's name, without the words that stand for nobody's name and for the robot's.
    fn words(&self) -> Option<String> {
        Some(format!("{} {} {}", self.speaker.as_deref().unwrap_or_default(), self.heard, self.said))
    }

    fn payload(&self) -> Value {
        json!({
            KIND: Self::KIND,
            "text": self.line(),
            "speaker": self.speaker,
            Self::TIME: self.said_at.as_second(),
            "heard": self.heard,
            "said": self.said,
        })
    }

    /// A payload without the two sides apart keeps its one line as what was heard.
    fn read(payload: &Payload) -> Result<Self, EngineError> {
        let heard = words(payload, "heard").or_else(|| words(payload, "text"));
        Ok(Self {
            heard: heard.ok_or_else(|| EngineError("an exchange came back without its words".into()))?,
            said: words(payload, "said").unwrap_or_default(),
            speaker: words(payload, "speaker"),
            said_at: time(payload, Self::TIME)?,
        })
    }

    fn kept(kept: &Kept) -> &Cache<Uuid, Arc<Known<Self>>> {
        &kept.exchanges
    }
}

impl Stored for Frame {
    const KIND: &'static str = "frame";
    const TIME: &'static str = "seen_at";

    fn id(&self) -> Uuid {
        Frame::id(self)
    }

    fn words(&self) -> Option<String> {
        None
    }

    fn payload(&self) -> Value {
        json!({
            KIND: Self::KIND,
            JPEG: STANDARD.encode(&self.jpeg),
            "sentence": self.sentence,
            LABELS: self.labels,
            "detections": self.detections,
            "names": self.names,
            "people": self.people,
            LOOKED: self.looked,
            "caption": self.caption,
            Self::TIME: self.seen_at.as_second(),
            "seen_at_ms": self.seen_at.as_millisecond(),
        })
    }

    fn read(payload: &Payload) -> Result<Self, EngineError> {
        let part = |key: &str| payload.0.get(key).cloned().unwrap_or(Value::Null);
        let broken = |what: &str| EngineError(format!("a frame came back without its {what}"));
        let jpeg = words(payload, JPEG).unwrap_or_default();
        let exact = part("seen_at_ms").as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok());
        Ok(Self {
            seen_at: exact.map_or_else(|| time(payload, Self::TIME), Ok)?,
            looked: serde_json::from_value(part(LOOKED)).map_err(|_| broken("direction"))?,
            labels: serde_json::from_value(part(LABELS)).map_err(|_| broken("labels"))?,
            detections: serde_json::from_value(part("detections")).unwrap_or_default(),
            names: serde_json::from_value(part("names")).unwrap_or_default(),
            people: serde_json::from_value(part("people")).unwrap_or_default(),
            sentence: words(payload, "sentence").ok_or_else(|| broken("sentence"))?,
            caption: words(payload, "caption"),
            jpeg: STANDARD.decode(jpeg).map_err(|_| broken("picture"))?,
        })
    }

    fn kept(kept: &Kept) -> &Cache<Uuid, Arc<Known<Self>>> {
        &kept.frames
    }
}

fn words(payload: &Payload, key: &str) -> Option<String> {
    payload.0.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn time(payload: &Payload, key: &str) -> Result<Timestamp, EngineError> {
    let second = payload.0.get(key).and_then(Value::as_i64);
    let second = second.ok_or_else(|| EngineError(format!("a memory has no time ({key})")))?;
    Timestamp::from_second(second).map_err(|error| EngineError(format!("a memory has an impossible time: {error}")))
}
