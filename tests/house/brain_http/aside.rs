//! Small questions beside the conversation.

use reachy_remembers::think::brain::{Brain, BrainError};
use serde_json::json;

use super::{brain_at, end, words};
use crate::scripted_server::{ScriptedServer, response, stream};

const SYSTEM: &str = "Answer with the name, or with none.\n";

#[tokio::test]
async fn a_question_aside_has_a_system_prompt_of_its_own_and_no_tools() {
    let server = ScriptedServer::start(vec![stream(&[words("An"), words("na"), end("stop")])]).await;
    let answer = brain_at(&server.url).aside(SYSTEM, "I am Anna.").await.unwrap();
    assert_eq!(answer, "Anna");
    let body = server.requests()[0].json();
    assert_eq!(
        body["messages"],
        json!([
            { "role": "system", "content": "Answer with the name, or with none." },
            { "role": "user", "content": "I am Anna." },
        ])
    );
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
}

#[tokio::test]
async fn an_option_that_the_server_refuses_is_left_out_and_the_question_asked_again() {
    let refusal = r#"{"error":{"message":"unknown field reasoning_effort","code":400}}"#;
    let server = ScriptedServer::start(vec![
        response("400 Bad Request", "application/json", refusal),
        stream(&[words("none"), end("stop")]),
    ])
    .await;
    assert_eq!(brain_at(&server.url).aside(SYSTEM, "Why?").await.unwrap(), "none");
    let requests = server.requests();
    assert!(requests[0].json().get("reasoning_effort").is_some());
    assert!(requests[1].json().get("reasoning_effort").is_none());
}

#[tokio::test]
async fn a_server_that_is_gone_or_says_nothing_is_an_error_and_no_answer() {
    let server = ScriptedServer::start(vec![stream(&[end("stop")]), stream(&[end("stop")])]).await;
    let silent = brain_at(&server.url).aside(SYSTEM, "I am Anna.").await;
    assert!(matches!(silent, Err(BrainError::Unusable { .. })), "{silent:?}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = brain_at(&format!("http://{free}/v1")).aside(SYSTEM, "I am Anna.").await;
    assert!(matches!(gone, Err(BrainError::Away { .. })), "{gone:?}");
}
