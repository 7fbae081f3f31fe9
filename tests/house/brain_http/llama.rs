//! Against llama.cpp's own HTTP server with its reader for Gemma 4: the protocol, never the quality of what is said.
//!
//! The server is a Python wheel that `make test-llama` puts under `target/`. Elsewhere these tests are skipped: on two
//! busy cores they took 90 s, most of it for reading the tools' descriptions with each new server.
//! The model is far too small to make a call of its own, so the chat template makes one where a test's words ask for it;
//! from there on everything is the server's own: its reader finds the call, and its stream brings it.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reachy_remembers::act::Motion;
use reachy_remembers::clock::Clock;
use reachy_remembers::config::ThinkConfig;
use reachy_remembers::remember::journal::Journal;
use reachy_remembers::robot::Gesture;
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message, Request};
use reachy_remembers::think::brains::Brains;
use reachy_remembers::think::conversation::{Conversation, Said};
use reachy_remembers::think::http::{HttpBrain, Limits};
use reachy_remembers::think::tools::{Tool, ToolResult};
use reachy_remembers::think::turn::Step;
use reachy_remembers::think::{window, words};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{KEY, ask, nod, request, user};
use crate::conversing::{self, Voice};
use crate::remembering;

/// What the template answers with a call.
const CALL: &str = "Please begin with a call.";
/// Loading took 0.4 s on two idle cores and is slower on busy ones.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Names the Python that has the server, as `tests/llama/prepare.sh` makes it.
const PYTHON: &str = "REACHY_TEST_LLAMA";

fn python() -> Option<PathBuf> {
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        println!("skipped: {PYTHON} names no Python with a server; `make test-llama` does");
    }
    python
}

/// A running server; it ends with the test.
struct Llama {
    child: Child,
    url: String,
    port: u16,
    arguments: Vec<String>,
    /// One server at a time, over all processes: two would take each other's cores and break the time limits.
    _alone: File,
}

impl Llama {
    fn start(arguments: &[&str]) -> Option<Self> {
        let python = python()?;
        let alone = File::create(std::env::temp_dir().join("reachy-test-llama.lock")).unwrap();
        alone.lock().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let child = spawn(&python, port, &arguments);
        Some(Self { child, url: format!("http://127.0.0.1:{port}/v1"), port, arguments, _alone: alone })
    }

    async fn ready(arguments: &[&str], key: Option<&str>, answer_tokens: u32) -> Option<(Self, HttpBrain)> {
        let server = Self::start(arguments)?;
        let brain = server.brain(key, answer_tokens);
        server.wait(&brain).await;
        Some((server, brain))
    }

    async fn wait(&self, brain: &HttpBrain) {
        let began = Instant::now();
        while let Err(error) = brain.reachable().await {
            assert!(began.elapsed() < STARTS_WITHIN, "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn brain(&self, key: Option<&str>, answer_tokens: u32) -> HttpBrain {
        let limits = Limits {
            connect: Duration::from_secs(2),
            first_token_warm: Duration::from_secs(90),
            first_token_cold: Duration::from_secs(90),
            next_token: Duration::from_secs(30),
            turn: Duration::from_secs(120),
        };
        let config = ThinkConfig { url: self.url.clone(), answer_tokens, ..ThinkConfig::default() };
        HttpBrain::new(&config, key.map(str::to_owned)).unwrap().with_limits(limits).unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.child = spawn(&python().unwrap(), self.port, &self.arguments);
    }

    async fn is_busy(&self) -> bool {
        let address = self.url.replace("/v1", "/slots");
        let slots: Value = reqwest::get(address).await.unwrap().json().await.unwrap();
        slots[0]["is_processing"].as_bool().unwrap()
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(python: &PathBuf, port: u16, arguments: &[String]) -> Child {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/llama/serve.py");
    Command::new(python)
        .arg(script)
        .arg(port.to_string())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Short, so that a slow machine reads it quickly.
fn short(text: &str, tools_allowed: bool) -> Request {
    Request { system: "You are Reachy, a robot.".into(), tools_allowed, ..request(vec![user(text)]) }
}

/// Asks until the first piece of the answer is there; the generation goes on as long as the receiver lives.
async fn until_first_text(
    brain: &HttpBrain,
    request: &Request,
    then: impl AsyncFnOnce(mpsc::Receiver<Delta>),
) -> Result<Finish, BrainError> {
    let (sender, mut receiver) = mpsc::channel(1000);
    let first = async {
        let delta = receiver.recv().await;
        assert!(matches!(delta, Some(Delta::Text(_))), "{delta:?}");
        then(receiver).await;
    };
    tokio::join!(brain.generate(request, sender), first).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_llama_cpp_reads_is_run_and_its_answer_told_in_words() {
    let Some((_server, brain)) = Llama::ready(&[], None, 24).await else { return };
    let mut asked = request(vec![user(CALL)]);
    let (result, deltas) = ask(&brain, &asked).await;
    let call = match deltas.iter().find(|delta| matches!(delta, Delta::Call(_))) {
        Some(Delta::Call(call)) => call.clone(),
        _ => panic!("{result:?} {deltas:?}"),
    };
    assert_eq!(call.tool, nod());
    let usage = result.unwrap().usage.unwrap();
    assert!(usage.prompt_tokens > 100 && usage.completion_tokens <= 24, "{usage:?}");
    let (id, name) = (call.id.clone(), call.tool.name().to_owned());
    asked.messages.push(Message::Assistant { text: String::new(), calls: vec![call] });
    let result = ToolResult::Moved { gesture: Gesture::Nod };
    asked.messages.push(Message::Tool { call_id: id, name, result });
    asked.tools_allowed = false;
    let (result, deltas) = ask(&brain, &asked).await;
    assert!(deltas.iter().all(|delta| matches!(delta, Delta::Text(_))), "{deltas:?}");
    // So small a model may say nothing that can be spoken; everything else is a fault of ours.
    assert!(matches!(result, Ok(_) | Err(BrainError::Unusable { .. })), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_counted_beforehand_as_it_is_counted_afterwards() {
    let Some((_server, brain)) = Llama::ready(&[], None, 8).await else { return };
    let probe = brain.probe().await.unwrap();
    assert_eq!(
        (probe.context_tokens, probe.supports_tools, probe.takes_pictures),
        (Some(4096), Some(true), Some(false))
    );
    assert!(!brain.lacks_tools() && !brain.sees_pictures());
    assert_eq!(brain.prompt_room(), Some(4096 - 8));
    let asked = request(vec![user(CALL)]);
    let counted = brain.count(&asked).await;
    let (result, _) = ask(&brain, &asked).await;
    assert_eq!(counted, result.unwrap().usage.map(|usage| usage.prompt_tokens));
    println!("system prompt, tools and one short question: {counted:?} tokens of SmolLM2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_answer_frees_the_servers_slot_within_a_second() {
    let Some((server, brain)) = Llama::ready(&[], None, 2000).await else { return };
    let asked = short("Count from one to a thousand, in words.", false);
    let mut freed = None;
    let result = until_first_text(&brain, &asked, async |receiver| {
        assert!(server.is_busy().await, "it must be interrupted while it still speaks");
        drop(receiver);
        let began = Instant::now();
        while server.is_busy().await {
            assert!(began.elapsed() < Duration::from_secs(20), "the slot is never freed");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        freed = Some(began.elapsed());
    })
    .await;
    assert!(matches!(result, Err(BrainError::Interrupted)), "{result:?}");
    println!("the slot was free after {freed:?}");
    assert!(freed.is_some_and(|after| after < Duration::from_secs(1)), "{freed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_beyond_the_servers_context_is_too_long() {
    let Some((_server, brain)) = Llama::ready(&[], None, 8).await else { return };
    let (result, deltas) = ask(&brain, &short(&"word ".repeat(20_000), true)).await;
    assert!(matches!(result, Err(BrainError::TooLong { .. })) && deltas.is_empty(), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_a_fault_of_the_configuration_and_the_right_one_is_none() {
    let Some((server, brain)) = Llama::ready(&["--key", KEY], Some(KEY), 8).await else { return };
    assert!(ask(&brain, &short(CALL, true)).await.0.is_ok());
    for wrong in [Some("sk-wrong"), None] {
        let (result, _) = ask(&server.brain(wrong, 8), &short(CALL, true)).await;
        let Err(BrainError::Misconfigured { sentence }) = result else { panic!("{result:?}") };
        assert!(sentence.contains("key_file") && !sentence.contains("sk-wrong"), "{sentence}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_its_model_is_waking_and_not_away() {
    let Some(server) = Llama::start(&[]) else { return };
    let brain = server.brain(None, 8);
    let (began, mut woke) = (Instant::now(), false);
    loop {
        match ask(&brain, &short(CALL, true)).await.0 {
            Ok(_) => break,
            Err(BrainError::Waking { .. }) => woke = true,
            Err(BrainError::Away { .. }) => assert!(!woke, "once it listens it is not away"),
            Err(other) => panic!("{other:?}"),
        }
        assert!(began.elapsed() < STARTS_WITHIN);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(woke, "it answered 503 while it loaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_in_mid_answer_leaves_what_was_said_and_is_found_again() {
    let Some((mut server, brain)) = Llama::ready(&[], None, 2000).await else { return };
    let asked = short("Count from one to a thousand, in words.", false);
    let result = until_first_text(&brain, &asked, async |mut receiver| {
        server.kill();
        while receiver.recv().await.is_some() {}
    })
    .await;
    assert!(result.as_ref().is_ok_and(|finish| finish.cut_short), "{result:?}");
    let (result, _) = ask(&brain, &short(CALL, true)).await;
    assert!(matches!(result, Err(BrainError::Away { .. })), "{result:?}");
    server.restart();
    server.wait(&brain).await;
    let result = until_first_text(&brain, &asked, async |receiver| drop(receiver)).await;
    assert!(matches!(result, Err(BrainError::Interrupted)), "it speaks again: {result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sleeps_when_idle_wakes_for_the_next_turn() {
    let Some((_server, brain)) = Llama::ready(&["--sleep", "1"], None, 8).await else { return };
    assert!(ask(&brain, &short(CALL, true)).await.0.is_ok());
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let (result, deltas) = ask(&brain, &short(CALL, true)).await;
    assert!(result.is_ok() && deltas.iter().any(|delta| matches!(delta, Delta::Call(_))), "{result:?} {deltas:?}");
}

/// The robot's own conversation, with its journal and memory, until the server's context is full and beyond.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_fills_the_servers_context_moves_its_oldest_half_and_goes_on() {
    let Some((_server, brain)) = Llama::ready(&[], None, 8).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    let clock = Clock::scripted(remembering::at(1_900_000_000), jiff::tz::TimeZone::UTC);
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let hands = conversing::hands(Ok(memory.clone()), robot, motion, clock);
    let brains = Brains::new(Some(Arc::new(brain)), None, Duration::from_secs(1));
    let (journal, _) = Journal::open(folder.path()).unwrap();
    let (_end, ending) = watch::channel(false);
    // Far more than the server takes, so that only its refusal moves anything.
    let limits = window::Limits { tokens: 100_000, exchanges: 100 };
    let mut conversation = Conversation::new(hands, brains, words::SYSTEM.to_owned(), limits, Some(journal), ending);
    let steps: Arc<Mutex<Vec<Step>>> = Arc::default();
    let mut moved = 0;
    for turn in 0..14_i64 {
        let words =
            if turn == 1 { CALL.to_owned() } else { format!("Story {turn}: {}", "the cat sat down ".repeat(80)) };
        let said = Said { text: words, speaker: None, at: remembering::at(1_800_000_000 + turn) };
        let mut voice = Voice::default();
        let kept = Arc::clone(&steps);
        let report = conversation.turn(said, &mut voice, &move |step| kept.lock().unwrap().push(step)).await;
        assert!(!voice.handed.is_empty(), "turn {turn} was silent");
        assert_eq!(report.moved.kept_because, None);
        let stored = memory.stats().await.unwrap().exchanges;
        assert_eq!(stored + conversation.window().kept().len(), usize::try_from(turn).unwrap() + 1, "turn {turn}");
        moved = stored;
    }
    println!("{moved} of 14 exchanges moved");
    let steps = steps.lock().unwrap();
    let nodded = steps.iter().any(|step| matches!(step, Step::Called { tool } if *tool == nod()));
    let full = steps.iter().any(|step| matches!(step, Step::Trouble { what } if what.contains("longer than")));
    assert!(nodded && full && moved > 0, "{moved} moved; {steps:?}");
    assert!(steps.iter().all(|step| !matches!(step, Step::Called { tool: Tool::Camera { .. } })));
}
