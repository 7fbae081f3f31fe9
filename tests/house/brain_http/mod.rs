//! The brain at a server, against what servers really do: one test a symptom. The scripts' words are here.

mod aside;
mod breaks;
mod calls;
mod complaints;
mod llama;
mod pictures;
mod real;
mod talk;
mod tools;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reachy_remembers::config::ThinkConfig;
use reachy_remembers::robot::Gesture;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message, Request};
use reachy_remembers::think::http::{HttpBrain, Limits};
use reachy_remembers::think::tools::{About, RememberArguments, Tool};
use reachy_remembers::think::words::SYSTEM;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

use crate::scripted_server::{Script, ScriptedServer, event};

pub(super) const KEY: &str = "sk-very-secret";

pub(super) fn limits() -> Limits {
    Limits {
        connect: Duration::from_millis(300),
        first_token_warm: Duration::from_millis(250),
        first_token_cold: Duration::from_millis(700),
        next_token: Duration::from_millis(200),
        turn: Duration::from_secs(3),
    }
}

pub(super) fn brain_at(url: &str) -> HttpBrain {
    let config = ThinkConfig { url: url.into(), ..ThinkConfig::default() };
    HttpBrain::new(&config, Some(KEY.into())).unwrap().in_zone(TimeZone::UTC).with_limits(limits()).unwrap()
}

pub(super) fn now() -> Timestamp {
    "2026-03-12T18:05:00Z".parse().unwrap()
}

pub(super) fn user(text: &str) -> Message {
    Message::User { text: text.into(), speaker: Some("Anna".into()), at: now() }
}

pub(super) fn said(text: &str) -> Message {
    Message::Assistant { text: text.into(), calls: Vec::new() }
}

pub(super) fn request(messages: Vec<Message>) -> Request {
    Request { system: SYSTEM.into(), messages, tools_allowed: true, now: now() }
}

/// What a generation came to.
pub(super) struct Outcome {
    pub(super) result: Result<Finish, BrainError>,
    pub(super) deltas: Vec<Delta>,
    pub(super) server: ScriptedServer,
}

impl Outcome {
    pub(super) fn text(&self) -> String {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None })
            .collect()
    }

    pub(super) fn calls(&self) -> Vec<Tool> {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::Call(call) = delta { Some(call.tool.clone()) } else { None })
            .collect()
    }

    pub(super) fn bad_calls(&self) -> Vec<String> {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::BadCall { why, .. } = delta { Some(why.clone()) } else { None })
            .collect()
    }

    #[track_caller]
    pub(super) fn finish(&self) -> &Finish {
        self.result.as_ref().unwrap()
    }

    #[track_caller]
    pub(super) fn error(&self) -> &BrainError {
        self.result.as_ref().unwrap_err()
    }
}

pub(super) async fn ask(brain: &HttpBrain, request: &Request) -> (Result<Finish, BrainError>, Vec<Delta>) {
    let (sender, mut receiver) = mpsc::channel(4);
    let collect = async {
        let mut deltas = Vec::new();
        while let Some(delta) = receiver.recv().await {
            deltas.push(delta);
        }
        deltas
    };
    tokio::join!(brain.generate(request, sender), collect)
}

pub(super) async fn served_with(scripts: Vec<Script>, request: Request) -> Outcome {
    let server = ScriptedServer::start(scripts).await;
    let brain = brain_at(&server.url);
    let (result, deltas) = ask(&brain, &request).await;
    Outcome { result, deltas, server }
}

pub(super) async fn served(scripts: Vec<Script>) -> Outcome {
    served_with(scripts, request(vec![user("Hello.")])).await
}

pub(super) fn words(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

pub(super) fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

pub(super) fn call(index: u64, id: &str, name: &str, arguments: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    ]}, "finish_reason": null}]})
}

pub(super) fn raw(events: &[Value]) -> String {
    events.iter().map(|data| event(&data.to_string())).collect()
}

pub(super) fn nod() -> Tool {
    Tool::Move { gesture: Gesture::Nod }
}

pub(super) fn about_keys() -> Tool {
    Tool::Remember(RememberArguments { query: "my keys".into(), about: About::Any, direction: None, when: None })
}
