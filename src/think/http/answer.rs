//! One attempt: sends a body, reads the stream against its deadlines, and hands on what it means.

use std::time::Duration;

use eventsource_stream::Event;
use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::think::brain::{BrainError, Delta, Finish, Message, Request};
use crate::think::leaks::{LeakFilter, Piece};
use crate::think::tools::ToolCall;

use super::HttpBrain;
use super::events::{body_text, events};
use super::faults::{Fault, Server};
use super::gather::{Gather, RawCall, Step};

/// The most calls of one answer that count as meant. Two at once do happen; a model that writes more has lost its
/// way, and only its first call runs.
const MOST_CALLS: usize = 4;

/// The longest answer kept, in bytes; the configured 300 tokens take about 1.5 KB.
const LONGEST_ANSWER: usize = 64 * 1024;

/// After the server gave its reason for the end, the counts of tokens come at once or not at all. Not measured.
const TAIL: Duration = Duration::from_secs(1);

/// What an attempt came to, when it is not an error.
pub(super) enum Attempt {
    Done(Finish),
    /// Nothing was said; ask again without these options.
    WithoutOptions(u8, String),
    /// Nothing was said; ask once more.
    Again(String),
}

/// What is left of a turn's time. Only waiting for the server uses it up.
pub(super) struct Pace {
    left: Duration,
    whole: Duration,
}

/// How a wait ended.
enum Waited<T> {
    Came(T),
    /// The limit of this wait was over.
    Quiet,
    /// The turn's time was over.
    TurnOver,
    Interrupted,
}

impl Pace {
    pub fn new(turn: Duration) -> Self {
        Self { left: turn, whole: turn }
    }

    /// Waits for `future` until `until`, the end of the turn's time, or the receiver's end.
    async fn wait<T>(
        &mut self,
        until: Instant,
        deltas: &mpsc::Sender<Delta>,
        future: impl Future<Output = T>,
    ) -> Waited<T> {
        let began = Instant::now();
        let limit = until.saturating_duration_since(began);
        let turn_is_first = self.left <= limit;
        let outcome = tokio::select! {
            biased;
            () = deltas.closed() => Waited::Interrupted,
            came = timeout(limit.min(self.left), future) => match came {
                Ok(came) => Waited::Came(came),
                Err(_) if turn_is_first => Waited::TurnOver,
                Err(_) => Waited::Quiet,
            },
        };
        self.left = self.left.saturating_sub(began.elapsed());
        outcome
    }
}

/// How a stream ended.
enum End {
    /// The server said so.
    Said,
    /// It closed without saying so.
    Closed,
    Broken(String),
    /// No token came for too long.
    Stalled {
        limit: Duration,
    },
    TurnOver,
    /// The answer became longer than [`LONGEST_ANSWER`].
    Endless,
    Fault(String),
}

/// What was handed on so far.
struct Spoken<'a> {
    deltas: &'a mpsc::Sender<Delta>,
    leaks: LeakFilter,
    leaked: Vec<RawCall>,
    /// Whether words that can be spoken, or calls, went out.
    any: bool,
    bytes: usize,
    started: Instant,
    first_after: Option<Duration>,
}

impl Spoken<'_> {
    async fn send(&mut self, delta: Delta) -> Result<(), BrainError> {
        self.any = true;
        self.first_after.get_or_insert_with(|| self.started.elapsed());
        self.deltas.send(delta).await.map_err(|_| BrainError::Interrupted)
    }

    async fn pieces(&mut self, pieces: Vec<Piece>) -> Result<(), BrainError> {
        for piece in pieces {
            match piece {
                // Blank lines before the first word are what a template left behind.
                Piece::Text(text) if !self.any && text.trim().is_empty() => {}
                Piece::Text(text) => {
                    self.bytes += text.len();
                    let text = if self.any { text } else { text.trim_start().to_owned() };
                    self.send(Delta::Text(text)).await?;
                }
                Piece::Call { name, arguments } => self.leaked.push(RawCall::new(name, arguments)),
                Piece::HeldBack(markup) => {
                    tracing::debug!(bytes = markup.len(), "markup in the answer was held back");
                }
            }
        }
        Ok(())
    }
}

impl HttpBrain {
    pub(super) fn server(&self) -> Server<'_> {
        Server { url: &self.url, model: &self.model, key: self.key.as_deref() }
    }

    fn fault(&self, fault: Fault) -> Result<Attempt, BrainError> {
        match fault {
            Fault::Options(mask, why) => Ok(Attempt::WithoutOptions(mask, why)),
            Fault::Again(why) => Ok(Attempt::Again(why)),
            Fault::Final(error) => Err(error),
        }
    }

    /// Asks once. An error or [`Attempt::Again`] means that nothing was handed on.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        body: String,
        deltas: &mpsc::Sender<Delta>,
        pace: &mut Pace,
    ) -> Result<Attempt, BrainError> {
        let started = Instant::now();
        let first_limit = self.first_token_limit();
        let until = started + first_limit;
        let sending = self
            .client
            .post(format!("{}/chat/completions", self.url))
            .header(CONTENT_TYPE, "application/json")
            .header(reqwest::header::ACCEPT, "text/event-stream")
            .body(body)
            .send();
        let response = match pace.wait(until, deltas, sending).await {
            Waited::Came(Ok(response)) => response,
            Waited::Came(Err(error)) => return self.fault(self.server().transport(&error)),
            Waited::Quiet => return Err(timed_out(first_limit, "the server did not begin to answer")),
            Waited::TurnOver => return Err(timed_out(pace.whole, "the server did not begin to answer")),
            Waited::Interrupted => return Err(BrainError::Interrupted),
        };
        let status = response.status().as_u16();
        let kind = content_type(&response);
        if status != 200 || kind.contains("html") {
            let Some(text) = self.whole_body(response, until, deltas, pace).await? else {
                return Err(timed_out(first_limit, "the server's answer did not come to its end"));
            };
            if status != 200 {
                return self.fault(self.server().status(status, &text));
            }
            let words = self.server().excerpt(&text);
            return Err(self.server().unusable(format!("a web page came instead of an answer ({words}); check `url`")));
        }
        let mut spoken = Spoken {
            deltas,
            leaks: LeakFilter::new(),
            leaked: Vec::new(),
            any: false,
            bytes: 0,
            started,
            first_after: None,
        };
        let mut gather = Gather::default();
        let end = if kind.contains("application/json") {
            match self.whole_body(response, until, deltas, pace).await? {
                Some(text) => self.read_whole(&text, &mut gather, &mut spoken).await?,
                None => End::Stalled { limit: first_limit },
            }
        } else {
            self.read_stream(response, (until, first_limit), &mut gather, &mut spoken, pace).await?
        };
        self.conclude(request, end, gather, spoken, pace).await
    }

    /// The body as text; `None` when it did not come in time.
    async fn whole_body(
        &self,
        response: Response,
        until: Instant,
        deltas: &mpsc::Sender<Delta>,
        pace: &mut Pace,
    ) -> Result<Option<String>, BrainError> {
        match pace.wait(until, deltas, body_text(response)).await {
            Waited::Came(text) => Ok(Some(text)),
            Waited::Quiet | Waited::TurnOver => Ok(None),
            Waited::Interrupted => Err(BrainError::Interrupted),
        }
    }

    /// A server that does not stream answers with one completion.
    async fn read_whole(&self, text: &str, gather: &mut Gather, spoken: &mut Spoken<'_>) -> Result<End, BrainError> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(End::Fault(text.to_owned())) };
        let step = gather.take(&value);
        if let Some(fault) = step.fault {
            return Ok(End::Fault(fault));
        }
        let pieces = spoken.leaks.push(&step.text);
        spoken.pieces(pieces).await?;
        Ok(End::Said)
    }

    async fn read_stream(
        &self,
        response: Response,
        (mut until, first_limit): (Instant, Duration),
        gather: &mut Gather,
        spoken: &mut Spoken<'_>,
        pace: &mut Pace,
    ) -> Result<End, BrainError> {
        let mut events = events(response);
        let mut limit = first_limit;
        let mut begun = false;
        loop {
            let event = match pace.wait(until, spoken.deltas, events.next()).await {
                Waited::Came(Some(Ok(event))) => event,
                Waited::Came(None) => return Ok(if gather.finish_reason.is_some() { End::Said } else { End::Closed }),
                Waited::Interrupted => return Err(BrainError::Interrupted),
                // Once the reason for the end is known, the rest of the stream may be lost.
                _ if gather.finish_reason.is_some() => return Ok(End::Said),
                Waited::Came(Some(Err(broken))) => return Ok(End::Broken(broken.0)),
                Waited::Quiet => return Ok(End::Stalled { limit }),
                Waited::TurnOver => return Ok(End::TurnOver),
            };
            if event.data.trim() == "[DONE]" {
                return Ok(End::Said);
            }
            let step = read_event(&event, gather);
            if let Some(fault) = step.fault {
                return Ok(End::Fault(fault));
            }
            let pieces = spoken.leaks.push(&step.text);
            spoken.pieces(pieces).await?;
            if spoken.bytes > LONGEST_ANSWER {
                return Ok(End::Endless);
            }
            begun |= step.means_something;
            if gather.finish_reason.is_some() {
                limit = TAIL.min(self.limits.next_token);
                until = Instant::now() + limit;
            } else if begun && (step.means_something || step.thought) {
                limit = self.limits.next_token;
                until = Instant::now() + limit;
            }
        }
    }

    /// Hands on what the end of the stream settles: text that was held back, and the calls.
    async fn conclude(
        &self,
        request: &Request,
        end: End,
        mut gather: Gather,
        mut spoken: Spoken<'_>,
        pace: &Pace,
    ) -> Result<Attempt, BrainError> {
        let said = matches!(end, End::Said);
        let rest = spoken.leaks.finish();
        spoken.pieces(rest).await?;
        let (usage, thoughts, called) =
            (gather.usage, gather.thoughts, gather.has_calls() || !spoken.leaked.is_empty());
        // A stream that broke off may have broken off inside a call; and words were asked for where tools are not.
        if said && request.tools_allowed {
            let cut = gather.finish_reason.take().is_some_and(|reason| reason == "length" || reason == "max_tokens");
            let (mut calls, more) = gather.calls();
            calls.append(&mut spoken.leaked);
            self.hand_on_calls(request, calls, more, cut, &mut spoken).await?;
        }
        if spoken.any {
            return Ok(Attempt::Done(Finish { usage, cut_short: !said, first_delta_after: spoken.first_after }));
        }
        match end {
            End::Said if called && !request.tools_allowed => {
                Ok(Attempt::Again("it called a tool where words were asked for".into()))
            }
            End::Said if thoughts => Ok(Attempt::Again("it thought and said nothing".into())),
            End::Said => Ok(Attempt::Again("the answer was empty".into())),
            End::Closed => Ok(Attempt::Again("the answer ended before it began".into())),
            End::Broken(why) => Ok(Attempt::Again(format!("the answer broke off: {why}"))),
            End::Endless => Ok(Attempt::Again("the answer had no end and no words".into())),
            End::Stalled { limit } => Err(timed_out(limit, "no word of the answer came")),
            End::TurnOver => Err(timed_out(pace.whole, "no word of the answer came")),
            End::Fault(text) => self.fault(self.server().stream(&text)),
        }
    }

    async fn hand_on_calls(
        &self,
        request: &Request,
        calls: Vec<RawCall>,
        more: usize,
        cut: bool,
        spoken: &mut Spoken<'_>,
    ) -> Result<(), BrainError> {
        let count = calls.len() + more;
        let kept = if count > MOST_CALLS { 1 } else { count };
        let last = calls.len().saturating_sub(1);
        let mut ids: Vec<String> = known_ids(request);
        for (at, call) in calls.into_iter().enumerate() {
            let id = fresh_id(&call.id, &ids);
            ids.push(id.clone());
            let (name, arguments) = (call.name.clone(), call.arguments());
            if at >= kept {
                let why =
                    format!("You asked for {count} calls at once; only the first one was run. Ask for one at a time.");
                return spoken.send(Delta::BadCall { id, name, arguments, why }).await;
            }
            let parsed = if cut && at == last && !call.is_whole() {
                Err("Your call was cut off before its end; call again, with fewer words.".to_owned())
            } else {
                ToolCall::parse(&id, &name, &arguments).map_err(|invalid| invalid.0)
            };
            let delta = match parsed {
                Ok(call) => Delta::Call(call),
                Err(why) => Delta::BadCall { id, name, arguments, why },
            };
            spoken.send(delta).await?;
        }
        Ok(())
    }
}

fn timed_out(limit: Duration, phase: &'static str) -> BrainError {
    BrainError::TimedOut { limit, phase }
}

fn content_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_lowercase()
}

/// An event is JSON, or the plain words of a fault.
fn read_event(event: &Event, gather: &mut Gather) -> Step {
    let fault = |words: &str| Step { fault: Some(words.to_owned()), ..Step::default() };
    if event.event.contains("error") {
        return fault(&event.data);
    }
    match serde_json::from_str::<Value>(&event.data) {
        Ok(value) => gather.take(&value),
        Err(_) if event.data.trim().is_empty() => Step::default(),
        Err(_) => fault(&event.data),
    }
}

/// The ids of the calls that the conversation already holds.
fn known_ids(request: &Request) -> Vec<String> {
    let calls = request.messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        Message::Tool { call_id, .. } => vec![call_id.clone()],
        Message::User { .. } => Vec::new(),
    });
    calls.collect()
}

/// The server's own id where it is the first with that id; answers must find their calls.
fn fresh_id(id: &str, taken: &[String]) -> String {
    let base: String = if id.is_empty() { "call".into() } else { id.chars().take(64).collect() };
    if !id.is_empty() && !taken.contains(&base) {
        return base;
    }
    let mut number = taken.len() + 1;
    loop {
        let candidate = format!("{base}-{number}");
        if !taken.contains(&candidate) {
            return candidate;
        }
        number += 1;
    }
}
