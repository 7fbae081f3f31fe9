//! Pictures put into words beside the conversation, and servers that see none.

use std::time::Duration;

use reachy_remembers::think::brain::{Brain, BrainError, DatedPicture, Delta, Finish, PictureKind, PictureRequest};
use reachy_remembers::think::http::HttpBrain;
use reachy_remembers::think::words::{PICTURE_DAY, PICTURE_MEMORY, PICTURE_NOW};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{KEY, ask, brain_at, end, now, raw, request, said, user, words};
use crate::scripted_server::{STREAM, Script, ScriptedServer, Step, response, send, stream};

fn pictures(kind: PictureKind, notes: &[&str]) -> PictureRequest {
    let pictures = notes.iter().map(|note| DatedPicture { jpeg: b"\xff\xd8 jpeg".to_vec(), note: (*note).into() });
    PictureRequest { kind, pictures: pictures.collect(), question: "What did you see?".into(), now: now() }
}

async fn describe(brain: &HttpBrain, request: &PictureRequest) -> (Result<Finish, BrainError>, Vec<Delta>) {
    let (sender, mut receiver) = mpsc::channel(4);
    let collect = async {
        let mut deltas = Vec::new();
        while let Some(delta) = receiver.recv().await {
            deltas.push(delta);
        }
        deltas
    };
    tokio::join!(brain.describe(request, sender), collect)
}

fn seen(text: &str) -> Script {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 600, "completion_tokens": 4}});
    stream(&[words(text), end("stop"), usage])
}

#[tokio::test]
async fn each_kind_of_picture_has_its_own_words_and_no_tools() {
    for (kind, system) in
        [(PictureKind::Now, PICTURE_NOW), (PictureKind::Memory, PICTURE_MEMORY), (PictureKind::Day, PICTURE_DAY)]
    {
        let server = ScriptedServer::start(vec![seen("I see a cup.")]).await;
        let brain = brain_at(&server.url);
        let (result, deltas) = describe(&brain, &pictures(kind, &["Today at 18:00, ahead. Anna was there."])).await;
        assert!(result.is_ok_and(|finish| finish.usage.is_some()));
        assert_eq!(deltas, vec![Delta::Text("I see a cup.".into())]);
        let body = server.requests()[0].json();
        assert_eq!(body["messages"][0]["content"], system.trim_end());
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(2), "nothing of the conversation");
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
        let content = &body["messages"][1]["content"];
        assert_eq!(content[0]["text"], "Today at 18:00, ahead. Anna was there.");
        assert_eq!(content[1]["image_url"]["url"], "data:image/jpeg;base64,/9gganBlZw==");
    }
}

#[tokio::test]
async fn the_conversations_prefix_is_the_same_bytes_before_and_after_a_side_request() {
    let server = ScriptedServer::start(vec![
        stream(&[words("Hello."), end("stop")]),
        seen("I saw a cup."),
        stream(&[words("Yes."), end("stop")]),
    ])
    .await;
    let brain = brain_at(&server.url);
    ask(&brain, &request(vec![user("Hello.")])).await.0.unwrap();
    describe(&brain, &pictures(PictureKind::Memory, &["Yesterday."])).await.0.unwrap();
    ask(&brain, &request(vec![user("Hello."), said("Hello."), user("Really?")])).await.0.unwrap();
    let requests = server.requests();
    let front = |body: &str| body.split_once("Anna: Hello.").map(|(front, _)| front.to_owned()).unwrap();
    assert_eq!(front(&requests[0].body), front(&requests[2].body));
    assert!(front(&requests[0].body).contains("\"tools\""));
    assert!(!requests[2].body.contains("image_url") && !requests[2].body.contains("I saw a cup"));
}

#[tokio::test]
async fn a_server_that_refuses_a_picture_is_shown_no_other_until_it_was_away() {
    let no = |status: &str, body: &str| response(status, "application/json", body);
    for scripts in [
        vec![no("400 Bad Request", r#"{"error":{"message":"invalid message content"}}"#)],
        vec![no("500 Internal Server Error", r#"{"error":{"message":"image input is not supported"}}"#)],
        vec![
            no("500 Internal Server Error", "<html>oops</html>"),
            no("500 Internal Server Error", "<html>oops</html>"),
        ],
        vec![stream(&[words("I don't see any image. Could you send it?"), end("stop")])],
        vec![stream(&[
            words("A lovely room."),
            end("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 150, "completion_tokens": 4}}),
        ])],
    ] {
        let asked = scripts.len();
        let server = ScriptedServer::start(scripts).await;
        let brain = brain_at(&server.url);
        assert!(brain.sees_pictures());
        let (result, deltas) = describe(&brain, &pictures(PictureKind::Now, &["Now, ahead."])).await;
        let error = result.unwrap_err();
        assert!(matches!(error, BrainError::Blind { .. }) && deltas.is_empty(), "{error:?} {deltas:?}");
        assert!(!brain.sees_pictures() && !error.to_string().contains(KEY));
        let (result, _) = describe(&brain, &pictures(PictureKind::Now, &["Now, ahead."])).await;
        assert!(matches!(result, Err(BrainError::Blind { .. })));
        assert_eq!(server.requests().len(), asked, "it is not asked again");
    }
}

#[tokio::test]
async fn a_broken_transfer_says_nothing_about_the_models_eyes() {
    let broken = || vec![send(STREAM)];
    let server = ScriptedServer::start(vec![broken(), broken(), seen("A cup.")]).await;
    let brain = brain_at(&server.url);
    let (result, _) = describe(&brain, &pictures(PictureKind::Now, &["Now."])).await;
    assert!(matches!(result, Err(BrainError::Unusable { .. })), "{result:?}");
    assert!(brain.sees_pictures());
    assert_eq!(describe(&brain, &pictures(PictureKind::Now, &["Now."])).await.1, [Delta::Text("A cup.".into())]);
}

#[tokio::test]
async fn once_the_model_was_seen_to_see_its_words_come_as_they_are_made() {
    let events = [words("I see "), words("a cup.")];
    let slow = vec![send(format!("{STREAM}{}", raw(&events))), Step::Hold];
    let server = ScriptedServer::start(vec![seen("A cup."), slow]).await;
    let brain = brain_at(&server.url);
    let asked = pictures(PictureKind::Now, &["Now."]);
    describe(&brain, &asked).await.0.unwrap();
    let (sender, mut receiver) = mpsc::channel(4);
    let first = async {
        let first = receiver.recv().await;
        drop(receiver);
        first
    };
    let (result, first) = tokio::join!(brain.describe(&asked, sender), first);
    assert_eq!(first, Some(Delta::Text("I see ".into())));
    assert!(matches!(result, Err(BrainError::Interrupted)), "{result:?}");
    assert!(server.hung_up_within(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn a_held_back_answer_can_be_interrupted_too() {
    let slow = vec![send(format!("{STREAM}{}", raw(&[words("I see ")]))), Step::Hold];
    let server = ScriptedServer::start(vec![slow]).await;
    let brain = brain_at(&server.url);
    let (sender, receiver) = mpsc::channel(4);
    let asked = pictures(PictureKind::Now, &["Now."]);
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(80)).await;
        drop(receiver);
    };
    let (result, ()) = tokio::join!(brain.describe(&asked, sender), interrupt);
    assert!(matches!(result, Err(BrainError::Interrupted)), "{result:?}");
    assert!(server.hung_up_within(Duration::from_secs(1)).await);
    assert!(brain.sees_pictures());
}

#[tokio::test]
async fn the_probe_tells_a_model_without_eyes_before_any_picture_is_sent() {
    let models = response("200 OK", "application/json", r#"{"data":[{"id":"gemma-4-e2b"}]}"#);
    let props = response("200 OK", "application/json", &json!({"modalities": {"vision": false}}).to_string());
    let server = ScriptedServer::start(vec![models, props]).await;
    let brain = brain_at(&server.url);
    brain.probe().await.unwrap();
    assert!(!brain.sees_pictures());
    let (result, _) = describe(&brain, &pictures(PictureKind::Now, &["Now."])).await;
    assert!(matches!(result, Err(BrainError::Blind { .. })));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn options_that_were_refused_for_a_picture_are_left_out_of_the_conversation_too() {
    let refused =
        response("400 Bad Request", "application/json", r#"{"error":{"message":"unknown field reasoning_effort"}}"#);
    let server = ScriptedServer::start(vec![refused, seen("A cup."), stream(&[words("Hello."), end("stop")])]).await;
    let brain = brain_at(&server.url);
    assert!(describe(&brain, &pictures(PictureKind::Now, &["Now."])).await.0.is_ok());
    ask(&brain, &request(vec![user("Hello.")])).await.0.unwrap();
    let bodies: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    assert!(bodies[1].get("reasoning_effort").is_none() && bodies[2].get("reasoning_effort").is_none());
}
