//! Pictures put into words: a side request without tools and without the conversation.
//!
//! No server takes pictures in a tool's answer reliably, and with tools named several go blind; so pictures go in a
//! user message of their own request, and the conversation's prefix stays as it was. Servers also differ in how they
//! fail to see: some refuse, some leave the picture out without a word. [`Sight`] holds what was learned; the first
//! answer is held back until it shows that the picture was looked at.

use std::sync::atomic::{AtomicU8, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::think::brain::{BrainError, Delta, Finish, MOST_PICTURES, PictureKind, PictureRequest, Request};
use crate::think::told::told_now;
use crate::think::words::{PICTURE_DAY, PICTURE_MEMORY, PICTURE_NOW};

use super::answer::{Attempt, Pace};
use super::body::{Shape, add_options};
use super::{HttpBrain, MOST_ATTEMPTS};

/// The largest JPEG that is sent, in bytes. A picture of the robot's camera takes 0.1 to 0.5 MB; four of these stay
/// below what llama-server reads of one request. Not measured.
const LARGEST_JPEG: usize = 2 * 1024 * 1024;

/// Deltas of a held-back answer that may wait; they are taken at once.
const HELD: usize = 16;

/// A count of fewer tokens than one for so many bytes of our words has no room for a picture: English takes 4 to 5
/// bytes a token, and the smallest picture of any known model 64 tokens more.
const BYTES_A_TOKEN: f64 = 3.5;

/// Whether the server's model sees, as far as known.
#[derive(Debug, Default)]
pub(super) struct Sight(AtomicU8);

const UNKNOWN: u8 = 0;
const SEES: u8 = 1;
const BLIND: u8 = 2;

impl Sight {
    pub fn is_blind(&self) -> bool {
        self.0.load(Ordering::Acquire) == BLIND
    }

    fn is_proven(&self) -> bool {
        self.0.load(Ordering::Acquire) == SEES
    }

    /// What the server says of itself; only that it does not see is taken on trust.
    pub fn was_told(&self, takes_pictures: Option<bool>) {
        match takes_pictures {
            Some(false) => self.0.store(BLIND, Ordering::Release),
            // Another model may have been loaded since.
            Some(true) if self.is_blind() => self.forget(),
            Some(true) | None => {}
        }
    }

    pub fn forget(&self) {
        self.0.store(UNKNOWN, Ordering::Release);
    }

    fn found(&self, sees: bool) {
        self.0.store(if sees { SEES } else { BLIND }, Ordering::Release);
    }
}

impl HttpBrain {
    /// Asks for words to pictures; once without refused options, and once more after an unusable answer.
    pub(super) async fn look_at(
        &self,
        request: &PictureRequest,
        deltas: mpsc::Sender<Delta>,
    ) -> Result<Finish, BrainError> {
        if self.sight.is_blind() {
            return Err(self.blind("it said so, or took no picture before".into()));
        }
        check(request).map_err(|why| self.server().unusable(why))?;
        let mut pace = Pace::new(self.limits.turn);
        let (mut again, mut last_why) = (false, String::new());
        for _ in 0..MOST_ATTEMPTS {
            let left_out = self.left_out.load(Ordering::Acquire);
            let shape = Shape {
                model: &self.model,
                answer_tokens: self.answer_tokens,
                left_out,
                with_tools: false,
                in_words: false,
                again,
                zone: &self.zone,
            };
            let body = body(request, &shape).to_string();
            match self.one_look(request, body, &deltas, &mut pace).await {
                Ok(Attempt::Done(finish)) => {
                    self.set_warm(true);
                    return Ok(finish);
                }
                Ok(Attempt::WithoutOptions(mask, why)) if mask & !left_out != 0 => {
                    self.left_out.fetch_or(mask, Ordering::AcqRel);
                    last_why = why;
                }
                Ok(Attempt::WithoutOptions(_, why)) | Err(BrainError::Unusable { why, .. }) => {
                    return Err(self.refused(why));
                }
                Ok(Attempt::Again(why)) if again || says_blind(&why) => return Err(self.refused(why)),
                Ok(Attempt::Again(why)) => {
                    tracing::warn!(%why, "the server's answer to a picture was unusable");
                    (again, last_why) = (true, why);
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.refused(last_why))
    }

    /// One attempt. Until it is known that the model sees, its words are held back to the end.
    async fn one_look(
        &self,
        request: &PictureRequest,
        body: String,
        deltas: &mpsc::Sender<Delta>,
        pace: &mut Pace,
    ) -> Result<Attempt, BrainError> {
        let asked = Request { system: String::new(), messages: Vec::new(), tools_allowed: false, now: request.now };
        if self.sight.is_proven() {
            return self.attempt(&asked, body, deltas, pace).await;
        }
        let (sender, mut receiver) = mpsc::channel(HELD);
        let attempt = async move {
            let outcome = self.attempt(&asked, body, &sender, pace).await;
            drop(sender);
            outcome
        };
        let collect = async {
            let mut held = String::new();
            while let Some(delta) = receiver.recv().await {
                if let Delta::Text(text) = delta {
                    held.push_str(&text);
                }
            }
            held
        };
        let (outcome, held) = tokio::select! {
            () = deltas.closed() => return Err(BrainError::Interrupted),
            both = async { tokio::join!(attempt, collect) } => both,
        };
        let finish = match outcome? {
            Attempt::Done(finish) => finish,
            other => return Ok(other),
        };
        if let Some(why) = ignored(request, &finish, &held, &self.zone) {
            return Err(self.found_blind(why));
        }
        if !finish.cut_short {
            self.sight.found(true);
        }
        deltas.send(Delta::Text(held)).await.map_err(|_| BrainError::Interrupted)?;
        Ok(Attempt::Done(finish))
    }

    /// A picture that came to nothing. A server that refused the first one is taken for blind; a transfer that broke
    /// says nothing about its eyes.
    fn refused(&self, why: String) -> BrainError {
        if says_blind(&why) || (!self.sight.is_proven() && is_refusal(&why)) {
            return self.found_blind(why);
        }
        self.server().unusable(why)
    }

    fn found_blind(&self, why: String) -> BrainError {
        self.sight.found(false);
        tracing::warn!(%why, "the server's model sees no pictures; it is shown none until it was away");
        self.blind(why)
    }

    fn blind(&self, why: String) -> BrainError {
        BrainError::Blind { who: format!("the model {} at {}", self.model, self.url), why }
    }
}

/// Whether a request can be sent as it is; else what is wrong with it.
fn check(request: &PictureRequest) -> Result<(), String> {
    let count = request.pictures.len();
    if !(1..=MOST_PICTURES).contains(&count) {
        return Err(format!("{count} pictures were to be sent, where 1 to {MOST_PICTURES} can be"));
    }
    match request.pictures.iter().find(|picture| picture.jpeg.len() > LARGEST_JPEG) {
        Some(large) => Err(format!("a picture has {} bytes, more than the {LARGEST_JPEG} allowed", large.jpeg.len())),
        None => Ok(()),
    }
}

fn words(kind: PictureKind) -> &'static str {
    match kind {
        PictureKind::Now => PICTURE_NOW,
        PictureKind::Memory => PICTURE_MEMORY,
        PictureKind::Day => PICTURE_DAY,
    }
    .trim_end()
}

/// What is asked, and the moment it is asked at; it stands after the pictures.
fn question(question: &str, now: Timestamp, zone: &TimeZone) -> String {
    format!("{}\n({})", question.trim(), told_now(now, zone))
}

fn body(request: &PictureRequest, shape: &Shape<'_>) -> Value {
    let mut content = Vec::new();
    for picture in &request.pictures {
        content.push(json!({ "type": "text", "text": picture.note.trim() }));
        let url = format!("data:image/jpeg;base64,{}", STANDARD.encode(&picture.jpeg));
        content.push(json!({ "type": "image_url", "image_url": { "url": url } }));
    }
    content.push(json!({ "type": "text", "text": question(&request.question, request.now, shape.zone) }));
    let mut body = Map::new();
    body.insert("model".into(), json!(shape.model));
    body.insert(
        "messages".into(),
        json!([
            { "role": "system", "content": words(request.kind) },
            { "role": "user", "content": content },
        ]),
    );
    add_options(&mut body, shape);
    Value::Object(body)
}

/// Why a first answer shows that the picture was not looked at.
fn ignored(request: &PictureRequest, finish: &Finish, said: &str, zone: &TimeZone) -> Option<String> {
    let notes: usize = request.pictures.iter().map(|picture| picture.note.trim().len()).sum();
    let bytes = words(request.kind).len() + notes + question(&request.question, request.now, zone).len();
    let counted = finish.usage.map(|usage| f64::from(usage.prompt_tokens)).filter(|tokens| *tokens > 0.0);
    if let Some(tokens) = counted
        && tokens * BYTES_A_TOKEN < bytes as f64
    {
        return Some(format!("the server counted {tokens} tokens, which only the words take"));
    }
    denies(said).then(|| "the model says that no picture came".into())
}

/// Whether an answer says that there was nothing to look at.
fn denies(said: &str) -> bool {
    const DENIALS: [&str; 11] = [
        "text-based",
        "text based",
        "language model",
        "no image",
        "no picture",
        "any image",
        "any picture",
        "cannot see images",
        "can't see images",
        "view images",
        "see the image",
    ];
    let lower = said.to_lowercase().replace('\u{2019}', "'");
    DENIALS.iter().any(|denial| lower.contains(denial))
}

/// Whether a complaint is about pictures as such.
fn says_blind(why: &str) -> bool {
    const COMPLAINTS: [&str; 6] = ["image", "vision", "multimodal", "multi-modal", "mmproj", "content type"];
    let lower = why.to_lowercase();
    COMPLAINTS.iter().any(|complaint| lower.contains(complaint))
}

fn is_refusal(why: &str) -> bool {
    why.starts_with(super::faults::STATUS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::think::brain::{DatedPicture, Usage};

    fn request(notes: &[&str]) -> PictureRequest {
        let pictures = notes.iter().map(|note| DatedPicture { jpeg: vec![1, 2, 3], note: (*note).into() }).collect();
        let question = "What did you see?".into();
        PictureRequest { kind: PictureKind::Day, pictures, question, now: Timestamp::UNIX_EPOCH }
    }

    fn finish(prompt_tokens: u32) -> Finish {
        Finish { usage: Some(Usage { prompt_tokens, completion_tokens: 9 }), ..Finish::default() }
    }

    #[test]
    fn pictures_go_in_a_user_message_each_after_its_note_and_no_tool_is_named() {
        let zone = TimeZone::UTC;
        let shape = Shape {
            model: "m",
            answer_tokens: 9,
            left_out: 0,
            with_tools: false,
            in_words: false,
            again: false,
            zone: &zone,
        };
        let sent = body(&request(&["Today at 9.", "Today at 8."]), &shape);
        assert!(sent.get("tools").is_none() && sent.get("tool_choice").is_none());
        assert_eq!(sent["messages"][0]["content"], PICTURE_DAY.trim_end());
        let content = sent["messages"][1]["content"].as_array().unwrap();
        let kinds: Vec<_> = content.iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image_url", "text", "image_url", "text"]);
        assert_eq!(content[0]["text"], "Today at 9.");
        assert_eq!(content[1]["image_url"]["url"], "data:image/jpeg;base64,AQID");
        assert_eq!(content[4]["text"], "What did you see?\n(It is Thursday, 1 January 1970, 00:00.)");
    }

    #[test]
    fn a_count_that_has_room_for_the_words_only_shows_a_server_that_left_the_picture_out() {
        let zone = TimeZone::UTC;
        let one = request(&["Today at 9."]);
        let bytes = PICTURE_DAY.len() as u32;
        assert!(ignored(&one, &finish(bytes / 5), "A desk.", &zone).is_some());
        assert!(ignored(&one, &finish(bytes / 4 + 280), "A desk.", &zone).is_none());
        assert!(ignored(&one, &Finish::default(), "A desk.", &zone).is_none(), "no count is no proof");
        assert!(ignored(&one, &Finish::default(), "I don\u{2019}t see any image here.", &zone).is_some());
    }

    #[test]
    fn a_request_without_pictures_or_with_too_many_is_refused() {
        assert!(check(&request(&[])).is_err());
        assert!(check(&request(&["a"; 4])).is_ok());
        assert!(check(&request(&["a"; 5])).is_err());
        let mut large = request(&["a"]);
        large.pictures[0].jpeg = vec![0; LARGEST_JPEG + 1];
        assert!(check(&large).is_err_and(|why| why.contains("bytes")));
    }

    #[test]
    fn a_server_that_says_that_it_is_blind_is_believed_until_it_says_otherwise() {
        let sight = Sight::default();
        sight.was_told(Some(true));
        assert!(!sight.is_blind() && !sight.is_proven());
        sight.was_told(Some(false));
        assert!(sight.is_blind());
        sight.was_told(None);
        assert!(sight.is_blind());
        sight.was_told(Some(true));
        assert!(!sight.is_blind());
    }
}
