//! Six hours of conversation with a laptop that fails at every third turn, in one of the ways that real servers have.
//!
//! The conversation, its window, journal and shard, and the brain over HTTP are real; the server is scripted, the
//! embedder is the stand-in of hashed words, and the robot's own brain says a fixed sentence. Time is compressed: a
//! scripted clock moves on between turns, and the limits are small. It runs in a process of its own, so that its memory
//! use is its own.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use reachy_remembers::act::{Motion, Spoken};
use reachy_remembers::clock::Clock;
use reachy_remembers::config::ThinkConfig;
use reachy_remembers::remember::journal::Journal;
use reachy_remembers::remember::{Exchange, Memory, Query, Recalled, TimeRange};
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Request};
use reachy_remembers::think::brains::Brains;
use reachy_remembers::think::conversation::{Conversation, Said};
use reachy_remembers::think::http::{HttpBrain, Limits};
use reachy_remembers::think::tools::About;
use reachy_remembers::think::turn::{Speak, Step as TurnStep};
use reachy_remembers::think::window;
use reachy_remembers::think::words::SYSTEM;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::remembering;
use crate::scripted_server::{CHUNKED, Recorded, STREAM, Script, ScriptedServer, Step, event, response, send, stream};

const TURNS: usize = 600;
/// Between two turns: 600 of them are six hours.
const PAUSE: SignedDuration = SignedDuration::from_secs(36);
/// Every so many turns the server fails, and every so many somebody asks for a memory.
const FAILS_EVERY: usize = 3;
const RECALLS_EVERY: usize = 7;
/// What the process may grow by between turn 200 and turn 600, in megabytes. 400 exchanges take 2 MB in the shard, and
/// its log and segments are mapped in steps of some megabytes; a leak of one request a turn would be 40 MB.
const MAY_GROW_MB: f64 = 32.0;
const SEED: u64 = 0x5eed_0fa1_1b0a_7001;
/// Set in the process that does the work.
const INSIDE: &str = "REACHY_TEST_ENDURING";

/// The ways to fail, as they were met with real servers.
const FAILURES: [&str; 14] = [
    "status 500",
    "hangs up at once",
    "loading",
    "gateway",
    "no headers",
    "stalls in the answer",
    "ends without saying so",
    "breaks in a chunk",
    "a web page",
    "malformed call",
    "66 calls",
    "leaked call",
    "nothing at all",
    "too long",
];

/// xorshift64*: the same failures in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn words(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(index: usize, arguments: &str) -> Value {
    let function = json!({"name": "remember", "arguments": arguments});
    json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": index, "id": format!("c{index}"), "type": "function", "function": function}
    ]}, "finish_reason": null}]})
}

fn head_and(events: &[Value]) -> String {
    let body: String = events.iter().map(|data| event(&data.to_string())).collect();
    format!("{STREAM}{body}")
}

fn failing(how: &str) -> Script {
    match how {
        "status 500" => response("500 Internal Server Error", "text/html", "<html>Failed to parse</html>"),
        "hangs up at once" => Vec::new(),
        "loading" => {
            response("503 Service Unavailable", "application/json", r#"{"error":{"message":"Loading model"}}"#)
        }
        "gateway" => response("502 Bad Gateway", "text/plain", "no"),
        "no headers" => vec![Step::Hold],
        "stalls in the answer" => vec![send(head_and(&[words("I know that. It is")])), Step::Hold],
        "ends without saying so" => vec![send(head_and(&[words("I know that. It is")]))],
        "breaks in a chunk" => vec![send(CHUNKED), send("40\r\ndata: {\"cho")],
        "a web page" => response("200 OK", "text/html", "<html><title>Log in</title></html>"),
        "malformed call" => stream(&[call(0, "{\"query\": \"the gar"), end("tool_calls")]),
        "66 calls" => {
            let calls = (0..66).map(|index| call(index, "{\"query\": \"garden\"}"));
            stream(&calls.chain([end("tool_calls")]).collect::<Vec<_>>())
        }
        "leaked call" => {
            stream(&[words("<|tool_call>call:remember{query:<|\"|>garden<|\"|>}<tool_call|>"), end("stop")])
        }
        "nothing at all" => stream(&[end("stop")]),
        _ => response(
            "400 Bad Request",
            "application/json",
            r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        ),
    }
}

/// What the server does in the turn that runs now.
#[derive(Default)]
struct Now {
    turn: usize,
    failure: Option<&'static str>,
    /// Requests of this turn so far.
    asked: usize,
}

fn answer(now: &Mutex<Now>, request: &Recorded) -> Script {
    if request.line.starts_with("GET") {
        return response("200 OK", "application/json", r#"{"data":[{"id":"gemma-4-e2b"}]}"#);
    }
    let mut now = now.lock().unwrap();
    now.asked += 1;
    // A conversation that is too long is so once; the others fail as long as the turn lasts.
    if let Some(how) = now.failure.filter(|how| *how != "too long" || now.asked == 1) {
        return failing(how);
    }
    let body = request.json();
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    let asks = last.is_some_and(|message| message["role"] == "user");
    if now.turn.is_multiple_of(RECALLS_EVERY) && asks && body["tool_choice"] == "auto" {
        return stream(&[call(0, "{\"query\": \"the garden\", \"about\": \"said\"}"), end("tool_calls")]);
    }
    let usage = json!({"choices": [], "usage": {"prompt_tokens": request.body.len() / 4, "completion_tokens": 12}});
    stream(&[words(&format!("All right, that was number {}. ", now.turn)), words("I keep it."), end("stop"), usage])
}

/// The robot's own brain, for turns in which the laptop is away.
struct Own;

impl Brain for Own {
    fn name(&self) -> String {
        "own".into()
    }

    fn generate<'a>(
        &'a self,
        _: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            deltas.send(Delta::Text("I keep it myself.".into())).await.map_err(|_| BrainError::Interrupted)?;
            Ok(Finish::default())
        }
        .boxed()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        async { Ok(()) }.boxed()
    }
}

#[derive(Default)]
struct Voice(Vec<String>);

impl Speak for Voice {
    fn speak(&mut self, sentence: String) -> BoxFuture<'_, ()> {
        self.0.push(sentence);
        std::future::ready(()).boxed()
    }

    fn finished(&mut self) -> BoxFuture<'_, Spoken> {
        std::future::ready(Spoken { sentences: self.0.clone(), interrupted: false, mute: None }).boxed()
    }
}

/// Resident memory of this process, in megabytes; `None` where there is no `/proc`.
fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1.024 / 1e3)
}

fn laptop(url: &str) -> HttpBrain {
    let limits = Limits {
        connect: Duration::from_millis(300),
        first_token_warm: Duration::from_millis(120),
        first_token_cold: Duration::from_millis(120),
        next_token: Duration::from_millis(80),
        turn: Duration::from_millis(800),
    };
    let config = ThinkConfig { url: url.into(), ..ThinkConfig::default() };
    HttpBrain::new(&config, None).unwrap().with_limits(limits).unwrap()
}

fn conversation(url: &str, memory: &Memory, journal: Journal, clock: &Clock) -> (Conversation, watch::Sender<bool>) {
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let hands = crate::conversing::hands(Ok(memory.clone()), robot, motion, clock.clone());
    let brains = Brains::new(Some(Arc::new(laptop(url))), Some(Arc::new(Own)), Duration::from_millis(5));
    let (end, ending) = watch::channel(false);
    let limits = window::Limits { tokens: 1000, exchanges: 20 };
    (Conversation::new(hands, brains, SYSTEM.into(), limits, Some(journal), ending), end)
}

/// Every exchange is in the memory once, at its own second, with its own words.
async fn all_are_there_once(memory: &Memory, wanted: &[Exchange]) {
    assert_eq!(memory.stats().await.unwrap().exchanges, wanted.len(), "lost or stored twice");
    for exchange in wanted {
        let from = exchange.said_at;
        let query = Query {
            direction: None,
            text: exchange.heard.clone(),
            about: About::Said,
            when: Some(TimeRange { from, to: from + SignedDuration::from_secs(1) }),
            just_said: Vec::new(),
            now: remembering::at(2_000_000_000),
        };
        let Recalled::Found { memories } = memory.recall(query).await.unwrap() else { panic!("{exchange:?} is gone") };
        assert_eq!(memories.len(), 1, "{memories:?}");
        assert_eq!(&memories[0].exchange, exchange);
    }
}

async fn six_hours() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    let now = Arc::new(Mutex::new(Now::default()));
    let for_server = Arc::clone(&now);
    let server = ScriptedServer::answering(move |request| answer(&for_server, request)).await;
    let clock = Clock::scripted(remembering::at(1_800_000_000), TimeZone::UTC);
    let (journal, _) = Journal::open(folder.path()).unwrap();
    let (mut conversation, _end) = conversation(&server.url, &memory, journal, &clock);
    let (mut dice, mut wanted, mut early) = (Dice(SEED), Vec::new(), None);
    let (laptop_answers, failures_met) = (AtomicUsize::new(0), Mutex::new(std::collections::BTreeSet::new()));
    for turn in 0..TURNS {
        clock.advance(PAUSE);
        let failure = (turn % FAILS_EVERY == 2).then(|| FAILURES[dice.below(FAILURES.len())]);
        failures_met.lock().unwrap().extend(failure);
        *now.lock().unwrap() = Now { turn, failure, asked: 0 };
        let (row, beans) = (dice.below(90), dice.below(900));
        let text = if turn.is_multiple_of(RECALLS_EVERY) {
            format!("Question number {turn}: how many beans has row {row} of the garden?")
        } else {
            format!("Note number {turn}: row {row} of the garden has {beans} beans.")
        };
        let said = Said { text: text.clone(), speaker: Some("Anna".into()), at: clock.now() };
        let (mut voice, asked_laptop) = (Voice::default(), AtomicBool::new(false));
        let witness = |step: TurnStep| {
            if matches!(step, TurnStep::Asked { brain } if brain.starts_with("http")) {
                asked_laptop.store(true, Ordering::Relaxed);
            }
        };
        let report = conversation.turn(said, &mut voice, &witness).await;
        assert!(!voice.0.is_empty(), "turn {turn} ended in silence ({failure:?})");
        assert!(!voice.0.iter().any(|sentence| sentence.contains("<|") || sentence.contains("call:")), "{:?}", voice.0);
        assert_eq!((report.exchange.heard.as_str(), report.moved.kept_because.as_deref()), (text.as_str(), None));
        laptop_answers.fetch_add(usize::from(asked_laptop.into_inner() && failure.is_none()), Ordering::Relaxed);
        if !report.from_memory {
            wanted.push(report.exchange);
        } else if !text.contains('?') {
            // Of an answer out of memory only what was told is kept.
            wanted.push(Exchange { said: String::new(), ..report.exchange });
        }
        if turn == TURNS / 3 {
            early = resident_mb();
        }
    }
    let late = resident_mb();
    conversation.close().await;
    all_are_there_once(&memory, &wanted).await;
    println!(
        "{TURNS} turns, {} stored, {} answered by the laptop, {} ways to fail, {early:?} MB early, {late:?} MB late",
        wanted.len(),
        laptop_answers.load(Ordering::Relaxed),
        failures_met.lock().unwrap().len(),
    );
    assert_eq!(failures_met.lock().unwrap().len(), FAILURES.len(), "every way to fail was met");
    assert!(laptop_answers.into_inner() > TURNS / 3, "the laptop came back after its failures");
    assert!(wanted.len() < TURNS - TURNS / RECALLS_EVERY / 3, "what was read out of memory is not stored");
    if let (Some(early), Some(late)) = (early, late) {
        assert!(late - early < MAY_GROW_MB, "{early:.1} MB at turn {}, {late:.1} MB at the end", TURNS / 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_hours_with_a_failing_laptop_lose_nothing_and_never_end_a_turn_in_silence() {
    if std::env::var_os(INSIDE).is_some() {
        return six_hours().await;
    }
    let inside = tokio::task::spawn_blocking(|| {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "enduring::six_hours_with_a_failing_laptop_lose_nothing_and_never_end_a_turn_in_silence",
                "--nocapture",
            ])
            .env(INSIDE, "1")
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let told = String::from_utf8_lossy(&inside.stdout);
    println!("{told}");
    assert!(inside.status.success(), "{told}\n{}", String::from_utf8_lossy(&inside.stderr));
    assert!(told.contains("1 passed"), "{told}");
}
