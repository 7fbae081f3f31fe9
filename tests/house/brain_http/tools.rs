//! Servers without tools, and what a server counts.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reachy_remembers::remember::Recalled;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message, Request};
use reachy_remembers::think::routed::Routed;
use reachy_remembers::think::tools::{Tool, ToolCall, ToolResult};
use serde_json::json;
use tokio::sync::mpsc;

use super::{about_keys, ask, brain_at, end, request, said, user, words};
use crate::scripted_server::{Script, ScriptedServer, response, stream};

/// A router that always chooses the same tool, or none.
struct Router {
    tool: Option<Tool>,
    asked: Mutex<usize>,
}

impl Router {
    fn new(tool: Option<Tool>) -> Arc<Self> {
        Arc::new(Self { tool, asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

impl Brain for Router {
    fn name(&self) -> String {
        "router".into()
    }

    fn generate<'a>(
        &'a self,
        _: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            *self.asked.lock().unwrap() += 1;
            let delta = match self.tool.clone() {
                Some(tool) => Delta::Call(ToolCall { id: "r1".into(), tool }),
                None => Delta::Text("Words that nobody must hear.".into()),
            };
            deltas.send(delta).await.map_err(|_| BrainError::Interrupted)?;
            Ok(Finish::default())
        }
        .boxed()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        async { Ok(()) }.boxed()
    }
}

fn models() -> Script {
    response("200 OK", "application/json", r#"{"data":[{"id":"gemma-4-e2b"}]}"#)
}

fn props(supports_tools: bool) -> Script {
    let body = json!({
        "default_generation_settings": {"n_ctx": 4096},
        "chat_template_caps": {"supports_tools": supports_tools},
    });
    response("200 OK", "application/json", &body.to_string())
}

fn hello() -> Script {
    stream(&[words("Hello."), end("stop")])
}

async fn ask_routed(brain: &Routed, request: &Request) -> (Result<Finish, BrainError>, Vec<Delta>) {
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

fn recalled() -> Vec<Message> {
    let call = ToolCall { id: "r1".into(), tool: about_keys() };
    let result = ToolResult::Recalled(Recalled::Nothing { searched: 3, best: None });
    vec![
        user("Where are my keys?"),
        Message::Assistant { text: String::new(), calls: vec![call] },
        Message::Tool { call_id: "r1".into(), name: "remember".into(), result },
    ]
}

#[tokio::test]
async fn a_server_without_tools_words_what_the_robots_own_brain_looked_up() {
    let server = ScriptedServer::start(vec![models(), props(false), hello()]).await;
    let router = Router::new(Some(about_keys()));
    let brain = Routed::new(Arc::new(brain_at(&server.url)), Some(router.clone()));
    let (result, deltas) = ask_routed(&brain, &request(vec![user("Where are my keys?")])).await;
    assert!(result.is_ok() && deltas == [Delta::Call(ToolCall { id: "r1".into(), tool: about_keys() })]);
    let (result, deltas) = ask_routed(&brain, &request(recalled())).await;
    assert!(result.is_ok() && deltas == [Delta::Text("Hello.".into())], "{deltas:?}");
    assert_eq!(router.asked(), 1, "the tool has been run; the rest is words");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the server is asked once what it can do");
    let body = requests[2].json();
    assert!(body.get("tools").is_none(), "{body}");
    let told = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(told["role"], "user");
    assert!(told["content"].as_str().unwrap().contains("found nothing about this"), "{told}");
    assert!(brain.name().contains("router"));
}

#[tokio::test]
async fn small_talk_goes_to_the_server_and_the_routers_own_words_are_never_spoken() {
    let server = ScriptedServer::start(vec![models(), props(false), hello()]).await;
    let brain = Routed::new(Arc::new(brain_at(&server.url)), Some(Router::new(None)));
    let (_, deltas) = ask_routed(&brain, &request(vec![user("Good morning!")])).await;
    assert_eq!(deltas, [Delta::Text("Hello.".into())]);
}

#[tokio::test]
async fn a_server_with_tools_or_one_that_does_not_say_is_left_alone() {
    for second in [props(true), response("404 Not Found", "text/plain", "")] {
        let server = ScriptedServer::start(vec![models(), second, hello()]).await;
        let router = Router::new(Some(about_keys()));
        let brain = Routed::new(Arc::new(brain_at(&server.url)), Some(router.clone()));
        let (_, deltas) = ask_routed(&brain, &request(vec![user("Where are my keys?")])).await;
        assert_eq!(deltas, [Delta::Text("Hello.".into())]);
        assert_eq!(router.asked(), 0);
        assert!(server.requests()[2].json().get("tools").is_some());
    }
}

#[tokio::test]
async fn a_server_that_was_away_is_asked_anew_what_it_can_do() {
    let away = response("502 Bad Gateway", "text/plain", "");
    let server = ScriptedServer::start(vec![models(), props(false), away, models(), props(true), hello()]).await;
    let http = Arc::new(brain_at(&server.url));
    let brain = Routed::new(http.clone(), None);
    let (result, _) = ask_routed(&brain, &request(vec![user("Hello.")])).await;
    assert!(matches!(result, Err(BrainError::Away { .. })) && !http.lacks_tools());
    ask_routed(&brain, &request(vec![user("Hello.")])).await.0.unwrap();
    assert!(server.requests()[5].json().get("tools").is_some());
}

#[tokio::test]
async fn the_server_counts_the_same_request_that_it_would_be_asked() {
    let counted = response("200 OK", "application/json", r#"{"object":"response.input_tokens","input_tokens":731}"#);
    let server = ScriptedServer::start(vec![counted, hello()]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello."), said("Hello."), user("And now?")]);
    assert_eq!(brain.count(&asked).await, Some(731));
    ask(&brain, &asked).await.0.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].line, "POST /v1/chat/completions/input_tokens");
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn a_server_that_does_not_count_is_asked_for_it_once() {
    let server = ScriptedServer::start(vec![response("404 Not Found", "text/html", "<html>no</html>")]).await;
    let brain = brain_at(&server.url);
    let asked = request(vec![user("Hello.")]);
    assert_eq!((brain.count(&asked).await, brain.count(&asked).await), (None, None));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_context_is_the_servers_own_and_less_where_it_was_seen_cutting() {
    let counted = |tokens: u32| {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}});
        stream(&[words("Hm."), end("stop"), usage])
    };
    let server = ScriptedServer::start(vec![models(), props(true), counted(900), counted(700)]).await;
    let brain = brain_at(&server.url);
    assert_eq!(brain.prompt_room(), None);
    brain.learn().await;
    assert_eq!(brain.prompt_room(), Some(4096 - 300));
    ask(&brain, &request(vec![user("Hello.")])).await.0.unwrap();
    ask(&brain, &request(vec![user("Hello."), said("Hm."), user("And now?")])).await.0.unwrap();
    assert_eq!(brain.prompt_room(), Some(900));
}
