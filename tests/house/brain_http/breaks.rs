//! Answers that are empty, break off, stall, never end, or are interrupted.

use reachy_remembers::think::brain::{Brain, BrainError};
use reachy_remembers::think::http::Limits;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

use super::{ask, brain_at, call, end, limits, raw, request, served, user, words};
use crate::scripted_server::{CHUNKED, STREAM, ScriptedServer, Step, chunk, event, response, send, stream, wait};

#[tokio::test]
async fn an_answer_of_thoughts_only_is_asked_for_once_more_with_thinking_off() {
    let thought = json!({"choices": [{"delta": {"reasoning_content": "The user says hello."}}]});
    let outcome = served(vec![stream(&[thought.clone(), end("stop")]), stream(&[words("Hello."), end("stop")])]).await;
    assert_eq!(outcome.text(), "Hello.");
    let again = outcome.server.requests()[1].json();
    assert_eq!(again["chat_template_kwargs"]["enable_thinking"], false);
    assert_eq!(again["temperature"], 0.8, "the same question would get the same answer");
    let outcome = served(vec![stream(&[thought.clone(), end("stop")]), stream(&[thought, end("stop")])]).await;
    assert!(
        matches!(outcome.error(), BrainError::Unusable { why, .. } if why.contains("thought")),
        "{:?}",
        outcome.error()
    );
    assert_eq!((outcome.server.requests().len(), outcome.deltas.len()), (2, 0));
}

#[tokio::test]
async fn an_empty_200_is_asked_for_once_more_and_then_given_up() {
    let empty = vec![send(format!("{STREAM}{}", event("[DONE]")))];
    let outcome = served(vec![empty.clone(), empty, stream(&[words("Too late."), end("stop")])]).await;
    assert!(matches!(outcome.error(), BrainError::Unusable { .. }), "{:?}", outcome.error());
    assert_eq!(outcome.server.requests().len(), 2);
    let blank = stream(&[words("\n\n"), end("stop")]);
    let outcome = served(vec![blank, stream(&[words("\n\nHello."), end("stop")])]).await;
    assert_eq!(outcome.text(), "Hello.");
}

#[tokio::test]
async fn a_web_page_instead_of_an_answer_is_said_in_one_line() {
    let page = "<html><head><title>My router</title></head><body><h1>Log in</h1></body></html>";
    let outcome = served(vec![response("200 OK", "text/html; charset=utf-8", page)]).await;
    let sentence = outcome.error().to_string();
    assert!(matches!(outcome.error(), BrainError::Unusable { .. }) && sentence.contains("My router"), "{sentence}");
    assert!(!sentence.contains('<'), "{sentence}");
}

#[tokio::test]
async fn a_broken_status_line_is_no_crash_and_no_absence() {
    let broken = vec![send("HTP/9 zwei hundert\r\n\r\n")];
    let outcome = served(vec![broken.clone(), broken]).await;
    assert!(matches!(outcome.error(), BrainError::Unusable { .. }), "{:?}", outcome.error());
}

#[tokio::test]
async fn a_500_with_a_page_is_tried_once_more() {
    let page = response("500 Internal Server Error", "text/html", "<html>Failed to parse tool call</html>");
    let outcome = served(vec![page.clone(), stream(&[words("Hello."), end("stop")])]).await;
    assert_eq!(outcome.text(), "Hello.");
    let outcome = served(vec![page.clone(), page]).await;
    assert!(
        matches!(outcome.error(), BrainError::Unusable { why, .. } if why.contains("Failed to parse")),
        "{:?}",
        outcome.error()
    );
}

#[tokio::test]
async fn an_end_without_done_keeps_what_was_said_and_runs_no_call() {
    let events = [words("They are in "), call(0, "a", "move", json!({"gesture": "nod"}))];
    let outcome = served(vec![vec![send(format!("{STREAM}{}", raw(&events)))]]).await;
    assert_eq!(outcome.text(), "They are in ");
    assert_eq!(outcome.calls(), vec![]);
    assert!(outcome.finish().cut_short);
    assert_eq!(outcome.server.requests().len(), 1, "what was spoken must not be asked for again");
}

#[tokio::test]
async fn an_end_without_done_after_a_finish_reason_is_a_whole_answer() {
    let events = [words("In the bowl."), end("stop")];
    let outcome = served(vec![vec![send(format!("{STREAM}{}", raw(&events)))]]).await;
    assert!(!outcome.finish().cut_short);
}

#[tokio::test]
async fn a_connection_that_breaks_keeps_what_was_said() {
    let outcome =
        served(vec![vec![send(CHUNKED), chunk(&raw(&[words("They are")])), send("40\r\ndata: {\"cho")]]).await;
    assert_eq!(outcome.text(), "They are");
    assert!(outcome.finish().cut_short);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_first_word_is_tried_once_more() {
    let broken = vec![send(CHUNKED), send("40\r\ndata: {\"cho")];
    let outcome = served(vec![broken.clone(), stream(&[words("Hello."), end("stop")])]).await;
    assert_eq!(outcome.text(), "Hello.");
    let outcome = served(vec![broken.clone(), broken]).await;
    assert!(matches!(outcome.error(), BrainError::Unusable { .. }), "{:?}", outcome.error());
}

#[tokio::test]
async fn a_stall_in_mid_answer_keeps_what_was_said_and_stops_the_server() {
    let began = Instant::now();
    let outcome = served(vec![vec![send(format!("{STREAM}{}", raw(&[words("They are")]))), Step::Hold]]).await;
    assert_eq!(outcome.text(), "They are");
    assert!(outcome.finish().cut_short && began.elapsed() < Duration::from_secs(1));
    assert!(outcome.server.hung_up_within(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn a_stall_after_the_finish_reason_is_a_whole_answer() {
    let events = [words("In the bowl."), end("stop")];
    let outcome = served(vec![vec![send(format!("{STREAM}{}", raw(&events))), Step::Hold]]).await;
    assert!(!outcome.finish().cut_short);
}

#[tokio::test]
async fn headers_that_never_come_end_at_the_first_token_limit() {
    let began = Instant::now();
    let outcome = served(vec![vec![Step::Hold]]).await;
    assert!(
        matches!(outcome.error(), BrainError::TimedOut { limit, .. } if *limit == limits().first_token_cold),
        "{:?}",
        outcome.error()
    );
    assert!(began.elapsed() < Duration::from_millis(1500));
}

#[tokio::test]
async fn a_cold_model_gets_more_time_than_a_warm_one() {
    let late =
        |text: &str| vec![wait(450), send(format!("{STREAM}{}{}", raw(&[words(text), end("stop")]), event("[DONE]")))];
    let server = ScriptedServer::start(vec![late("Awake."), late("Too late.")]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    assert!(ask(&brain, &asked).await.0.is_ok(), "the first answer may take the cold limit");
    let error = ask(&brain, &asked).await.0.unwrap_err();
    assert!(matches!(error, BrainError::TimedOut { limit, .. } if limit == limits().first_token_warm), "{error:?}");
}

#[tokio::test]
async fn an_endless_generation_ends_with_the_turns_time() {
    let endless = vec![send(STREAM), Step::Repeat(raw(&[words("word ")]).into_bytes(), Duration::from_millis(10))];
    let server = ScriptedServer::start(vec![endless]).await;
    let brain = brain_at(&server.url).with_limits(Limits { turn: Duration::from_millis(500), ..limits() }).unwrap();
    let began = Instant::now();
    let (result, deltas) = ask(&brain, &request(vec![user("Hello.")])).await;
    assert!(result.unwrap().cut_short && deltas.len() > 5);
    assert!(began.elapsed() < Duration::from_millis(1500));
    assert!(server.hung_up_within(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn a_slow_voice_does_not_cost_the_rest_of_the_answer() {
    let events: Vec<Value> =
        (0..20).map(|number| words(&format!("Sentence {number}. "))).chain([end("stop")]).collect();
    let server = ScriptedServer::start(vec![stream(&events)]).await;
    let brain = brain_at(&server.url).with_limits(Limits { turn: Duration::from_millis(400), ..limits() }).unwrap();
    let asked = request(vec![user("Hello.")]);
    let (sender, mut receiver) = mpsc::channel(1);
    let slow = async {
        let mut count = 0;
        while receiver.recv().await.is_some() {
            count += 1;
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        count
    };
    let (result, count) = tokio::join!(brain.generate(&asked, sender), slow);
    assert_eq!((count, result.unwrap().cut_short), (20, false));
}

#[tokio::test]
async fn an_interruption_stops_the_server_at_once() {
    let endless = || vec![send(STREAM), Step::Repeat(raw(&[words("word ")]).into_bytes(), Duration::from_millis(10))];
    // The receiver goes away.
    let server = ScriptedServer::start(vec![endless()]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    let (sender, mut receiver) = mpsc::channel(4);
    let listen = async move {
        receiver.recv().await;
        drop(receiver);
    };
    let (result, ()) = tokio::join!(brain.generate(&asked, sender), listen);
    assert!(matches!(result, Err(BrainError::Interrupted)), "{result:?}");
    assert!(server.hung_up_within(Duration::from_millis(500)).await);
    // The future is dropped.
    let server = ScriptedServer::start(vec![endless()]).await;
    let brain = brain_at(&server.url);
    let (sender, _receiver) = mpsc::channel(1000);
    let _ = tokio::time::timeout(Duration::from_millis(100), brain.generate(&asked, sender)).await;
    assert!(server.hung_up_within(Duration::from_millis(500)).await);
}

#[tokio::test]
async fn an_interruption_is_noticed_while_the_server_is_silent() {
    let server = ScriptedServer::start(vec![vec![Step::Hold]]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    let (sender, receiver) = mpsc::channel(4);
    let began = Instant::now();
    let leave = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(receiver);
    };
    let (result, ()) = tokio::join!(brain.generate(&asked, sender), leave);
    assert!(
        matches!(result, Err(BrainError::Interrupted)) && began.elapsed() < Duration::from_millis(300),
        "{result:?}"
    );
}
