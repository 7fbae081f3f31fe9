//! Tool calls in every shape, and those that leak into the text.

use reachy_remembers::robot::{Direction, Gesture};
use reachy_remembers::think::brain::{Delta, Message};
use reachy_remembers::think::tools::{Tool, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::{about_keys, call, end, nod, request, served, served_with, user, words};
use crate::scripted_server::stream;

#[tokio::test]
async fn two_calls_with_the_same_index_and_id_are_two_calls() {
    let outcome = served(vec![stream(&[
        call(0, "c", "move", json!("{\"gesture\":\"nod\"}")),
        call(0, "c", "camera", json!("{\"direction\":\"left\"}")),
        end("tool_calls"),
    ])])
    .await;
    assert_eq!(outcome.calls(), vec![nod(), Tool::Camera { direction: Direction::Left }]);
    let ids: Vec<&str> = outcome
        .deltas
        .iter()
        .filter_map(|delta| if let Delta::Call(call) = delta { Some(call.id.as_str()) } else { None })
        .collect();
    assert_ne!(ids[0], ids[1], "their answers could not be told apart");
}

#[tokio::test]
async fn arguments_as_an_object_or_empty_are_understood() {
    let outcome = served(vec![stream(&[
        call(0, "a", "remember", json!({"query": "my keys"})),
        call(1, "b", "camera", json!("")),
        end("tool_calls"),
    ])])
    .await;
    assert_eq!(outcome.calls(), vec![about_keys(), Tool::Camera { direction: Direction::Ahead }]);
}

#[tokio::test]
async fn wrong_keys_bad_values_and_unknown_tools_come_back_as_sentences() {
    let outcome = served(vec![stream(&[
        call(0, "a", "remember", json!("{\"question\": \"my keys\"}")),
        call(1, "b", "move", json!("{\"gesture\": \"fly\"}")),
        call(2, "c", "get_weather", json!("{}")),
        end("tool_calls"),
    ])])
    .await;
    assert_eq!(outcome.calls(), vec![]);
    let why = outcome.bad_calls();
    assert!(why[0].contains("`query`") && why[1].contains("nod, shake") && why[2].contains("get_weather"), "{why:?}");
}

#[tokio::test]
async fn a_call_cut_off_by_the_length_limit_is_not_run() {
    let outcome = served(vec![stream(&[call(0, "a", "remember", json!("{\"query\": \"my ke")), end("length")])]).await;
    assert_eq!(outcome.calls(), vec![]);
    assert!(outcome.bad_calls()[0].contains("cut off"), "{:?}", outcome.bad_calls());
}

#[tokio::test]
async fn truncated_arguments_with_an_ordinary_end_are_not_run_either() {
    let outcome =
        served(vec![stream(&[call(0, "a", "remember", json!("{\"query\": \"my ke")), end("tool_calls")])]).await;
    assert_eq!(outcome.calls(), vec![]);
    assert!(outcome.bad_calls()[0].contains("complete JSON"), "{:?}", outcome.bad_calls());
}

#[tokio::test]
async fn whatever_the_finish_reason_says_the_calls_are_trusted() {
    for reason in ["stop", "", "eos_token", "tool_calls", "something new"] {
        let outcome = served(vec![stream(&[call(0, "a", "move", json!("{\"gesture\":\"nod\"}")), end(reason)])]).await;
        assert_eq!(outcome.calls(), vec![nod()], "{reason}");
        assert!(!outcome.finish().cut_short, "{reason}");
    }
}

#[tokio::test]
async fn of_sixty_six_calls_only_the_first_runs() {
    let mut events: Vec<Value> =
        (0..66).map(|number| call(number, &format!("c{number}"), "move", json!("{\"gesture\":\"nod\"}"))).collect();
    events.push(end("tool_calls"));
    let outcome = served(vec![stream(&events)]).await;
    assert_eq!(outcome.calls(), vec![nod()]);
    assert_eq!(outcome.bad_calls().len(), 1);
    assert!(outcome.bad_calls()[0].contains("66 calls"), "{:?}", outcome.bad_calls());
}

#[tokio::test]
async fn an_id_that_the_conversation_already_knows_gets_another_one() {
    let before = Message::Assistant { text: String::new(), calls: vec![ToolCall { id: "c1".into(), tool: nod() }] };
    let done = Message::Tool {
        call_id: "c1".into(),
        name: "move".into(),
        result: ToolResult::Moved { gesture: Gesture::Nod },
    };
    let asked = request(vec![user("Nod twice."), before, done]);
    let outcome =
        served_with(vec![stream(&[call(0, "c1", "move", json!({"gesture": "nod"})), end("tool_calls")])], asked).await;
    let Some(Delta::Call(call)) = outcome.deltas.first() else { panic!("{:?}", outcome.deltas) };
    assert_ne!(call.id, "c1");
}

#[tokio::test]
async fn a_tool_call_that_arrives_as_plain_text_is_run_and_never_spoken() {
    let text = "<|tool_call>call:remember{query:<|\"|>my keys<|\"|>}<tool_call|>";
    let events: Vec<Value> =
        text.chars().collect::<Vec<_>>().chunks(3).map(|part| words(&part.iter().collect::<String>())).collect();
    let outcome = served(vec![stream(&[events, vec![end("stop")]].concat())]).await;
    assert_eq!(outcome.text(), "");
    assert_eq!(outcome.calls(), vec![about_keys()]);
}

#[tokio::test]
async fn a_call_in_mid_text_leaves_the_text_and_an_unknown_one_only_vanishes() {
    let outcome = served(vec![stream(&[
        words("I nod. ca"),
        words("ll:move({\"gesture\": \"nod\"})"),
        words(" <|channel>thought\nhm<channel|>Done. <tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>"),
        end("stop"),
    ])])
    .await;
    assert_eq!(outcome.text(), "I nod.  Done. ");
    assert_eq!(outcome.calls(), vec![nod()]);
}

#[tokio::test]
async fn ordinary_words_are_not_held_back() {
    let outcome = served(vec![stream(&[words("I call"), words(" it a day: 3 < 4"), words("."), end("stop")])]).await;
    assert_eq!(outcome.deltas.len(), 3);
    assert_eq!(outcome.text(), "I call it a day: 3 < 4.");
}

#[tokio::test]
async fn a_forced_answer_that_is_a_call_is_asked_for_again_without_tools() {
    let mut asked = request(vec![user("Keys?")]);
    asked.tools_allowed = false;
    let scripts = vec![
        stream(&[call(0, "a", "move", json!({"gesture": "nod"})), end("tool_calls")]),
        stream(&[words("I do not know."), end("stop")]),
    ];
    let outcome = served_with(scripts, asked).await;
    assert_eq!(outcome.deltas, vec![Delta::Text("I do not know.".into())]);
    assert!(outcome.server.requests()[1].json().get("tools").is_none());
}
