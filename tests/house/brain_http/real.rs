//! Against a real llama.cpp server, where one is named: the protocol only, never the quality of what it says.

use reachy_remembers::remember::Recalled;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message};
use reachy_remembers::think::tools::{ToolCall, ToolResult};

use super::{about_keys, ask, brain_at, request, user};

/// The variable that names a running server, as in `http://127.0.0.1:8080/v1`.
const SERVER: &str = "REACHY_TEST_SERVER";

#[tokio::test]
async fn a_real_server_is_probed_answers_and_says_when_it_is_too_much() {
    let Ok(url) = std::env::var(SERVER) else {
        println!("skipped: no server is named in {SERVER}");
        return;
    };
    let brain = brain_at(&url);
    brain.reachable().await.unwrap();
    let probe = brain.probe().await.unwrap();
    println!("{probe:?}");
    assert!(probe.context_tokens.is_some() && !probe.models.is_empty());
    let patient = reachy_remembers::think::http::Limits {
        first_token_cold: std::time::Duration::from_secs(90),
        first_token_warm: std::time::Duration::from_secs(90),
        next_token: std::time::Duration::from_secs(10),
        turn: std::time::Duration::from_secs(120),
        ..super::limits()
    };
    let brain = brain.with_limits(patient).unwrap();
    let (result, deltas) = ask(&brain, &request(vec![user("Say hello.")])).await;
    println!("{result:?}");
    // A very small model may write what its server cannot read; everything else is a fault of ours.
    let unreadable = matches!(&result, Err(BrainError::Unusable { why, .. }) if why.contains("format"));
    let counted = |finish: &Finish| finish.usage.is_some_and(|usage| usage.prompt_tokens > 100);
    assert!(unreadable || result.as_ref().is_ok_and(counted), "{result:?}");
    let marked = deltas.iter().any(|delta| matches!(delta, Delta::Text(text) if text.contains("<|")));
    assert!(unreadable == deltas.is_empty() && !marked, "{deltas:?}");
    // A second round: a call and its answer in the history, and words wanted.
    let called =
        Message::Assistant { text: String::new(), calls: vec![ToolCall { id: "c1".into(), tool: about_keys() }] };
    let nothing = ToolResult::Recalled(Recalled::Nothing { searched: 3, best: None });
    let answered = Message::Tool { call_id: "c1".into(), name: "remember".into(), result: nothing };
    let mut second = request(vec![user("Where are my keys?"), called, answered]);
    second.tools_allowed = false;
    let (result, deltas) = ask(&brain, &second).await;
    assert!(result.is_ok() && deltas.iter().all(|delta| matches!(delta, Delta::Text(_))), "{result:?}");
    let (result, _) = ask(&brain, &request(vec![user(&"word ".repeat(20_000))])).await;
    assert!(matches!(result, Err(BrainError::TooLong { .. })), "{result:?}");
}
