//! The brain at a server, against what servers really do: one test a symptom.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reachy_remembers::config::ThinkConfig;
use reachy_remembers::remember::{Exchange, Recalled, Remembered};
use reachy_remembers::robot::{Direction, Gesture};
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message, Request, Usage};
use reachy_remembers::think::http::{HttpBrain, Limits};
use reachy_remembers::think::tools::{About, RememberArguments, Tool, ToolCall, ToolResult};
use reachy_remembers::think::words::{ANSWER_NOW, SYSTEM};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::scripted_server::{
    CHUNKED, STREAM, Script, ScriptedServer, Step, chunk, event, response, send, stream, wait,
};

const KEY: &str = "sk-very-secret";

fn limits() -> Limits {
    Limits {
        connect: Duration::from_millis(300),
        first_token_warm: Duration::from_millis(250),
        first_token_cold: Duration::from_millis(700),
        next_token: Duration::from_millis(200),
        turn: Duration::from_secs(3),
    }
}

fn brain_at(url: &str) -> HttpBrain {
    let config = ThinkConfig { url: url.into(), ..ThinkConfig::default() };
    HttpBrain::new(&config, Some(KEY.into())).unwrap().in_zone(TimeZone::UTC).with_limits(limits()).unwrap()
}

fn now() -> Timestamp {
    "2026-03-12T18:05:00Z".parse().unwrap()
}

fn user(text: &str) -> Message {
    Message::User { text: text.into(), speaker: Some("Anna".into()), at: now() }
}

fn said(text: &str) -> Message {
    Message::Assistant { text: text.into(), calls: Vec::new() }
}

fn request(messages: Vec<Message>) -> Request {
    Request { system: SYSTEM.into(), messages, tools_allowed: true, now: now() }
}

/// What a generation came to.
struct Outcome {
    result: Result<Finish, BrainError>,
    deltas: Vec<Delta>,
    server: ScriptedServer,
}

impl Outcome {
    fn text(&self) -> String {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None })
            .collect()
    }

    fn calls(&self) -> Vec<Tool> {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::Call(call) = delta { Some(call.tool.clone()) } else { None })
            .collect()
    }

    fn bad_calls(&self) -> Vec<String> {
        self.deltas
            .iter()
            .filter_map(|delta| if let Delta::BadCall { why, .. } = delta { Some(why.clone()) } else { None })
            .collect()
    }

    #[track_caller]
    fn finish(&self) -> &Finish {
        self.result.as_ref().unwrap()
    }

    #[track_caller]
    fn error(&self) -> &BrainError {
        self.result.as_ref().unwrap_err()
    }
}

async fn ask(brain: &HttpBrain, request: &Request) -> (Result<Finish, BrainError>, Vec<Delta>) {
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

async fn served_with(scripts: Vec<Script>, request: Request) -> Outcome {
    let server = ScriptedServer::start(scripts).await;
    let brain = brain_at(&server.url);
    let (result, deltas) = ask(&brain, &request).await;
    Outcome { result, deltas, server }
}

async fn served(scripts: Vec<Script>) -> Outcome {
    served_with(scripts, request(vec![user("Hello.")])).await
}

fn words(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: u64, id: &str, name: &str, arguments: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    ]}, "finish_reason": null}]})
}

fn raw(events: &[Value]) -> String {
    events.iter().map(|data| event(&data.to_string())).collect()
}

fn nod() -> Tool {
    Tool::Move { gesture: Gesture::Nod }
}

fn about_keys() -> Tool {
    Tool::Remember(RememberArguments { query: "my keys".into(), about: About::Any, direction: None, when: None })
}

// ---------------------------------------------------------------- a good answer

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

// ---------------------------------------------------------------- what goes out

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

// ---------------------------------------------------------------- packets

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

// ---------------------------------------------------------------- calls

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

// ---------------------------------------------------------------- leaks

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

// ---------------------------------------------------------------- nothing usable

#[tokio::test]
async fn an_answer_of_thoughts_only_is_asked_for_once_more_with_thinking_off() {
    let thought = json!({"choices": [{"delta": {"reasoning_content": "The user says hello."}}]});
    let outcome = served(vec![stream(&[thought.clone(), end("stop")]), stream(&[words("Hello."), end("stop")])]).await;
    assert_eq!(outcome.text(), "Hello.");
    assert_eq!(outcome.server.requests()[1].json()["chat_template_kwargs"]["enable_thinking"], false);
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

// ---------------------------------------------------------------- broken off

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

// ---------------------------------------------------------------- complaints

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

// ---------------------------------------------------------------- gone, and back

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
