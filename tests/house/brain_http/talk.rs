//! What goes out, and a good answer: how it arrives and what its packets may look like.

use reachy_remembers::remember::{Exchange, Recalled, Remembered};
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Message, Usage};
use reachy_remembers::think::tools::{ToolCall, ToolResult};
use reachy_remembers::think::words::ANSWER_NOW;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

use super::{KEY, about_keys, ask, brain_at, call, end, raw, request, said, served, served_with, user, words};
use crate::scripted_server::{STREAM, Script, ScriptedServer, Step, event, response, send, stream, wait};

#[tokio::test]
async fn a_plain_answer_arrives_as_it_streams_with_its_counts() {
    let outcome = served(vec![stream(&[
        json!({"choices": [{"delta": {"role": "assistant", "content": null}}]}),
        words("Hello"),
        words(", Anna."),
        end("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 612, "completion_tokens": 5}}),
    ])])
    .await;
    assert_eq!(outcome.deltas, vec![Delta::Text("Hello".into()), Delta::Text(", Anna.".into())]);
    let finish = outcome.finish();
    assert_eq!(finish.usage, Some(Usage { prompt_tokens: 612, completion_tokens: 5 }));
    assert!(!finish.cut_short && finish.first_delta_after.is_some());
}

#[tokio::test]
async fn text_is_handed_on_before_the_stream_ends() {
    let server =
        ScriptedServer::start(vec![vec![send(format!("{STREAM}{}", raw(&[words("Hello.")]))), Step::Hold]]).await;
    let brain = brain_at(&server.url);
    let request = request(vec![user("Hello.")]);
    let (sender, mut receiver) = mpsc::channel(4);
    let first = async { tokio::time::timeout(Duration::from_millis(150), receiver.recv()).await };
    let (_, first) =
        tokio::join!(tokio::time::timeout(Duration::from_millis(160), brain.generate(&request, sender)), first);
    assert_eq!(first.unwrap(), Some(Delta::Text("Hello.".into())));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2}});
    let outcome = served(vec![response("200 OK", "application/json", &body.to_string())]).await;
    assert_eq!(outcome.text(), "Hello.");
    assert_eq!(outcome.finish().usage.map(|usage| usage.prompt_tokens), Some(9));
}

/// The whole body of a second round, byte for byte. To accept a change: `BLESS=1 cargo test --test house golden`.
#[tokio::test]
async fn the_golden_request_goes_out_byte_for_byte() {
    let memory = Remembered {
        text: "Anna said: \"My keys are in the blue bowl.\" I answered: \"I will remember.\"".into(),
        exchange: Exchange {
            heard: "My keys are in the blue bowl.".into(),
            said: "I will remember.".into(),
            speaker: Some("Anna".into()),
            said_at: "2026-03-11T18:05:00Z".parse().unwrap(),
        },
        score: Some(0.71),
        just_said: false,
    };
    let asked = request(vec![
        user("Good evening."),
        said("Good evening, Anna."),
        user("Where are my keys?"),
        Message::Assistant { text: String::new(), calls: vec![ToolCall { id: "c1".into(), tool: about_keys() }] },
        Message::Tool {
            call_id: "c1".into(),
            name: "remember".into(),
            result: ToolResult::Recalled(Recalled::Found { memories: vec![memory] }),
        },
    ]);
    let outcome = served_with(vec![stream(&[words("In the blue bowl."), end("stop")])], asked).await;
    outcome.finish();
    let sent = &outcome.server.requests()[0];
    assert_eq!(sent.line, "POST /v1/chat/completions");
    assert!(sent.headers.contains(&format!("authorization: bearer {KEY}")));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/house/golden/second_round.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &sent.body).unwrap();
    }
    assert_eq!(sent.body, std::fs::read_to_string(path).unwrap(), "see how to accept a change above this test");
}

#[tokio::test]
async fn every_option_that_a_server_needs_is_in_the_body() {
    let outcome = served(vec![stream(&[words("Hi."), end("stop")])]).await;
    let body = outcome.server.requests()[0].json();
    assert_eq!((&body["max_tokens"], &body["max_completion_tokens"]), (&json!(300), &json!(300)));
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("auto"), &json!(false)));
    assert_eq!(body["reasoning_effort"], "none");
    assert_eq!(body["chat_template_kwargs"]["enable_thinking"], false);
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn the_prefix_stays_the_same_from_turn_to_turn_so_that_the_servers_cache_holds() {
    let server =
        ScriptedServer::start(vec![stream(&[words("One."), end("stop")]), stream(&[words("Two."), end("stop")])]).await;
    let brain = brain_at(&server.url);
    ask(&brain, &request(vec![user("First?")])).await.0.unwrap();
    let mut later = request(vec![user("First?"), said("One."), user("Second?")]);
    later.now = "2026-03-13T09:00:00Z".parse().unwrap();
    later.tools_allowed = false;
    ask(&brain, &later).await.0.unwrap();
    let bodies: Vec<String> = server.requests().into_iter().map(|request| request.body).collect();
    let same = bodies[0].bytes().zip(bodies[1].bytes()).take_while(|(one, other)| one == other).count();
    let first_words = bodies[0].find("Anna: First?").unwrap();
    assert!(bodies[0].find("\"tools\"").unwrap() < bodies[0].find("\"messages\"").unwrap());
    assert!(same >= first_words + "Anna: First?".len(), "same up to byte {same}, the words begin at {first_words}");
}

#[tokio::test]
async fn a_forced_answer_keeps_the_tools_named_but_forbids_them() {
    let mut asked = request(vec![user("Keys?")]);
    asked.tools_allowed = false;
    let outcome = served_with(vec![stream(&[words("Gone."), end("stop")])], asked).await;
    let body = outcome.server.requests()[0].json();
    assert_eq!(body["tool_choice"], "none");
    assert!(body["tools"].is_array());
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.ends_with(ANSWER_NOW.trim()), "{last}");
}

#[tokio::test]
async fn a_malformed_call_in_the_history_never_goes_out() {
    let refused = Message::Tool {
        call_id: "x".into(),
        name: "remember".into(),
        result: ToolResult::Refused { why: "`remember` needs `query`.".into() },
    };
    let outcome = served_with(vec![stream(&[words("Hi."), end("stop")])], request(vec![user("Keys?"), refused])).await;
    for message in outcome.server.requests()[0].json()["messages"].as_array().unwrap() {
        for call in message["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
        }
    }
}

#[tokio::test]
async fn characters_and_events_split_over_packets_arrive_whole() {
    let text = format!("{STREAM}: ping\n\n{}{}", raw(&[words("Schön, 日本 👋."), end("stop")]), event("[DONE]"));
    let mut script: Script = Vec::new();
    for part in text.as_bytes().chunks(7) {
        script.push(Step::Send(part.to_vec()));
        script.push(wait(1));
    }
    let outcome = served(vec![script]).await;
    assert_eq!(outcome.text(), "Schön, 日本 👋.");
    assert!(!outcome.finish().cut_short);
}

#[tokio::test]
async fn a_call_split_over_deltas_is_one_call() {
    let outcome = served(vec![stream(&[
        call(0, "c7", "remember", json!("")),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"query\": \"my"}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": " keys\"}"}}]}}]}),
        end("tool_calls"),
    ])])
    .await;
    assert_eq!(outcome.deltas, vec![Delta::Call(ToolCall { id: "c7".into(), tool: about_keys() })]);
}

#[tokio::test]
async fn pings_are_no_progress() {
    let pings = vec![send(STREAM), Step::Repeat(b": ping\n\n".to_vec(), Duration::from_millis(20))];
    let began = Instant::now();
    let outcome = served(vec![pings]).await;
    assert!(matches!(outcome.error(), BrainError::TimedOut { .. }), "{:?}", outcome.error());
    assert!(began.elapsed() < Duration::from_millis(1500));
    assert!(outcome.server.hung_up_within(Duration::from_secs(1)).await, "the server still generates");
}
