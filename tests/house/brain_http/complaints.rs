//! What servers complain about, and a laptop that goes and comes back.

use std::time::{Duration, Instant};

use reachy_remembers::think::brain::{Brain, BrainError, Delta};
use serde_json::{Value, json};

use super::{KEY, ask, brain_at, end, raw, request, said, served, user, words};
use crate::scripted_server::{CHUNKED, STREAM, ScriptedServer, Step, chunk, event, response, send, stream, wait};

#[tokio::test]
async fn a_conversation_beyond_the_context_is_told_apart() {
    let body = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#;
    let outcome = served(vec![response("400 Bad Request", "application/json", body)]).await;
    assert!(matches!(outcome.error(), BrainError::TooLong { .. }), "{:?}", outcome.error());
    let inside = vec![send(format!("{STREAM}{}", event(r#"{"error":{"message":"Input is too long: 5000 >= 4096"}}"#)))];
    let outcome = served(vec![inside]).await;
    assert!(matches!(outcome.error(), BrainError::TooLong { .. }), "{:?}", outcome.error());
    assert_eq!(outcome.server.requests().len(), 1);
}

#[tokio::test]
async fn an_error_event_with_a_plain_string_is_understood() {
    let failed = |words: &str| vec![send(format!("{STREAM}event: response.error\ndata: {words}\n\n"))];
    let outcome = served(vec![failed("kaboom"), failed("kaboom")]).await;
    assert!(
        matches!(outcome.error(), BrainError::Unusable { why, .. } if why.contains("kaboom")),
        "{:?}",
        outcome.error()
    );
    let outcome = served(vec![failed("the prompt is too long")]).await;
    assert!(matches!(outcome.error(), BrainError::TooLong { .. }), "{:?}", outcome.error());
    let after_words = vec![send(format!("{STREAM}{}event: error\ndata: kaboom\n\n", raw(&[words("They are")])))];
    let outcome = served(vec![after_words]).await;
    assert!(outcome.finish().cut_short && outcome.text() == "They are");
}

#[tokio::test]
async fn options_that_a_server_refuses_are_left_out_once_and_for_all() {
    let refused = response(
        "400 Bad Request",
        "application/json",
        r#"{"error":{"message":"unrecognized field: reasoning_effort"}}"#,
    );
    let server = ScriptedServer::start(vec![
        refused,
        stream(&[words("Hello."), end("stop")]),
        stream(&[words("Again."), end("stop")]),
    ])
    .await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    assert_eq!(ask(&brain, &asked).await.1, vec![Delta::Text("Hello.".into())]);
    ask(&brain, &asked).await.0.unwrap();
    let bodies: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies[0].get("reasoning_effort").is_some());
    for body in &bodies[1..] {
        assert!(body.get("reasoning_effort").is_none() && body.get("chat_template_kwargs").is_none());
        assert!(body.get("max_tokens").is_some());
    }
}

#[tokio::test]
async fn a_server_that_refuses_for_ever_is_not_asked_for_ever() {
    let refused = || response("400 Bad Request", "application/json", r#"{"error":"bad field reasoning_effort"}"#);
    let outcome = served((0..9).map(|_| refused()).collect()).await;
    assert!(matches!(outcome.error(), BrainError::Unusable { .. }), "{:?}", outcome.error());
    assert_eq!(outcome.server.requests().len(), 2);
}

#[tokio::test]
async fn a_loading_model_is_waking_and_the_next_turn_gets_the_cold_limit() {
    let loading =
        response("503 Service Unavailable", "application/json", r#"{"error":{"message":"Loading model","code":503}}"#);
    let late = vec![wait(450), send(format!("{STREAM}{}", raw(&[words("Awake."), end("stop")])))];
    let server = ScriptedServer::start(vec![stream(&[words("Hi."), end("stop")]), loading, late]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    ask(&brain, &asked).await.0.unwrap();
    let error = ask(&brain, &asked).await.0.unwrap_err();
    assert!(matches!(error, BrainError::Waking { .. }), "{error:?}");
    assert_eq!(ask(&brain, &asked).await.1, vec![Delta::Text("Awake.".into())]);
}

#[tokio::test]
async fn a_wrong_key_or_model_is_said_once_and_the_key_is_never_shown() {
    let wrong_key = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    for (status, body, hint) in [
        ("401 Unauthorized", wrong_key.as_str(), "key_file"),
        ("403 Forbidden", "<html>no</html>", "key_file"),
        ("404 Not Found", r#"{"error":{"message":"model \"gemma-4-e2b\" not found"}}"#, "`model`"),
    ] {
        let outcome = served(vec![response(status, "application/json", body)]).await;
        let sentence = outcome.error().to_string();
        assert!(matches!(outcome.error(), BrainError::Misconfigured { .. }) && sentence.contains(hint), "{sentence}");
        assert!(!sentence.contains(KEY) && !format!("{:?}", outcome.error()).contains(KEY), "{sentence}");
        assert_eq!(outcome.server.requests().len(), 1, "not tried again");
    }
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_conversation_elsewhere() {
    let other = ScriptedServer::start(vec![stream(&[words("Mine now."), end("stop")])]).await;
    let redirect =
        vec![send(format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url))];
    let outcome = served(vec![redirect]).await;
    assert!(matches!(outcome.error(), BrainError::Misconfigured { .. }), "{:?}", outcome.error());
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_laptop_that_is_gone_is_away_and_is_found_again() {
    let server = ScriptedServer::start(vec![stream(&[words("Back."), end("stop")])]).await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", nobody.local_addr().unwrap());
    drop(nobody);
    let (result, deltas) = ask(&brain_at(&url), &request(vec![user("Hello.")])).await;
    assert!(matches!(result, Err(BrainError::Away { .. })) && deltas.is_empty(), "{result:?}");
    let reachable = brain_at(&url).reachable().await;
    assert!(matches!(reachable, Err(BrainError::Away { .. })), "{reachable:?}");
    assert_eq!(ask(&brain_at(&server.url), &request(vec![user("Hello.")])).await.1, vec![Delta::Text("Back.".into())]);
}

#[tokio::test]
async fn a_connection_is_never_reused_so_a_laptop_that_slept_cannot_hold_a_turn_up() {
    // The server keeps its side open after a whole answer, as one does that then falls asleep.
    let whole = |text: &str| {
        vec![
            send(CHUNKED),
            chunk(&raw(&[words(text), end("stop")])),
            chunk(&event("[DONE]")),
            send("0\r\n\r\n"),
            Step::Hold,
        ]
    };
    let server = ScriptedServer::start(vec![whole("One."), whole("Two.")]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    assert_eq!(ask(&brain, &asked).await.1, vec![Delta::Text("One.".into())]);
    assert_eq!(ask(&brain, &asked).await.1, vec![Delta::Text("Two.".into())]);
}

#[tokio::test]
async fn reachable_asks_for_the_models_and_nothing_else() {
    let models = response("200 OK", "application/json", r#"{"data":[{"id":"gemma-4-e2b"}]}"#);
    let wrong = response("401 Unauthorized", "text/plain", "no");
    let loading = response("503 Service Unavailable", "application/json", r#"{"error":"Loading model"}"#);
    let server = ScriptedServer::start(vec![models, wrong, loading, response("404 Not Found", "text/plain", "")]).await;
    let brain = brain_at(&server.url);
    assert!(brain.reachable().await.is_ok());
    assert!(matches!(brain.reachable().await, Err(BrainError::Misconfigured { .. })));
    assert!(matches!(brain.reachable().await, Err(BrainError::Waking { .. })));
    assert!(brain.reachable().await.is_ok(), "a server without a list may still chat");
    assert!(server.requests().iter().all(|request| request.line == "GET /v1/models"));
}

#[tokio::test]
async fn a_server_that_ignores_tools_is_found_by_the_probe() {
    let models = response("200 OK", "application/json", r#"{"data":[{"id":"gemma-4-e2b"},{"id":"other"}]}"#);
    let props = response(
        "200 OK",
        "application/json",
        r#"{"default_generation_settings":{"n_ctx":4096},"chat_template_caps":{"supports_tools":false},"modalities":{"vision":true}}"#,
    );
    let server =
        ScriptedServer::start(vec![models.clone(), props, models, response("404 Not Found", "text/html", "<html>")])
            .await;
    let brain = brain_at(&server.url);
    let probe = brain.probe().await.unwrap();
    assert_eq!(probe.models, vec!["gemma-4-e2b", "other"]);
    assert_eq!((probe.model_listed, probe.context_tokens), (Some(true), Some(4096)));
    assert_eq!((probe.supports_tools, probe.takes_pictures), (Some(false), Some(true)));
    assert_eq!(server.requests()[1].line, "GET /props");
    let silent = brain.probe().await.unwrap();
    assert_eq!((silent.context_tokens, silent.supports_tools), (None, None));
}

#[tokio::test]
async fn a_server_that_cuts_the_conversations_front_is_noticed_by_its_count() {
    let counted = |tokens: u32| {
        stream(&[
            words("Hm."),
            end("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}),
        ])
    };
    let server = ScriptedServer::start(vec![counted(900), counted(700)]).await;
    let brain = brain_at(&server.url);
    ask(&brain, &request(vec![user("Hello.")])).await.0.unwrap();
    assert_eq!(brain.server_cut_at(), None);
    ask(&brain, &request(vec![user("Hello."), said("Hm."), user("And now?")])).await.0.unwrap();
    assert_eq!(brain.server_cut_at(), Some(900));
}

#[tokio::test]
async fn a_name_that_nobody_has_is_an_absent_laptop_within_the_connect_limit() {
    let began = Instant::now();
    let (result, _) = ask(&brain_at("http://no-such-laptop.invalid:8080/v1"), &request(vec![user("Hello.")])).await;
    assert!(matches!(result, Err(BrainError::Away { .. })), "{result:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_server_is_reached_by_its_name() {
    let server = ScriptedServer::start(vec![stream(&[words("Hello."), end("stop")])]).await;
    let by_name = brain_at(&server.url.replace("127.0.0.1", "localhost"));
    assert_eq!(ask(&by_name, &request(vec![user("Hello.")])).await.1, vec![Delta::Text("Hello.".into())]);
}
