//! `bench`: how long searches, whole recalls and samples of a day take over memories of several sizes, beside the Python
//! build of the same engine, which searches a copy of the same shard for the same vectors in the same run.
//!
//! Vectors of stored memories are random and seeded. The two take turns, each after a warm-up; every row has all calls of
//! all turns. A report is a list of named rows, so that others can be put beside them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::{CliError, Output, Setting, print_json, reaction, table};
use crate::config::Config;
use crate::daemon::parts;
use crate::remember::embed::{EmbedError, EmbedText, Identity};
use crate::remember::eval::percentile;
use crate::remember::store::{Searching, Settings};
use crate::remember::words::Asked;
use crate::remember::{Exchange, Frame, Memory, Query};
use crate::robot::Direction;
use crate::think::tools::About;

/// Candidates of one search, as a recall asks for them.
const LIMIT: usize = 20;
/// Different questions.
const QUESTIONS: usize = 100;
/// How often each engine has its turn.
const TURNS: usize = 3;
/// How often the robot is spoken to.
const REACTIONS: usize = 12;
/// Questions asked before the clock runs.
const WARM_UP: usize = 20;
/// Of so many memories one is a frame.
const FRAMES: usize = 10;
/// Bytes of a frame's picture; 640 × 480 at the robot's quality takes 30 to 60 thousand.
const PICTURE_BYTES: usize = 40_000;

#[derive(Debug, clap::Args)]
pub struct BenchArguments {
    /// How many memories, several with commas between.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 10_000])]
    memories: Vec<usize>,
    /// A Python that has `qdrant-edge-py`; without it, only this program is measured.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// The script that Python runs.
    #[arg(long, value_name = "FILE", default_value = "tests/bench/bench_python.py")]
    script: PathBuf,
    /// Where the report is written.
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    to: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// One thing that was timed.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    /// How many memories there were; `None` where that does not matter.
    pub memories: Option<usize>,
    /// Milliseconds.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// The lowest and the highest median of a turn: how much the machine itself varies.
    pub noise_ms: (f64, f64),
    pub python_p50_ms: Option<f64>,
    pub python_p99_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    optimised: bool,
    rows: Vec<Row>,
}

/// Random seeded vectors for stored texts; questions too, or from a real model.
struct Seeded {
    identity: Identity,
    questions: Option<Arc<dyn EmbedText>>,
}

impl EmbedText for Seeded {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.questions.as_ref().map_or_else(|| Ok(random(text)), |real| real.question(text))
    }

    fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| random(text)).collect())
    }
}

/// A unit vector that only the text decides.
fn random(text: &str) -> Vec<f32> {
    let mut state = text
        .bytes()
        .fold(0x9e37_79b9_7f4a_7c15_u64, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mut next = || {
        // xorshift64*, enough for directions.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut vector: Vec<f32> = (0..crate::remember::store::TEXT_DIMENSION).map(|_| next()).collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

const THINGS: [&str; 12] = [
    "key", "bicycle", "garden", "doctor", "train", "recipe", "meeting", "password", "birthday", "letter", "boiler",
    "tent",
];

fn exchange(place: usize) -> Exchange {
    let (one, other) = (THINGS[place % THINGS.len()], THINGS[place / THINGS.len() % THINGS.len()]);
    Exchange {
        heard: format!("The {one} for the {other} has the number {} and lies in box {}.", 1000 + place, place % 97),
        said: format!("All right, the {one} lies in box {}.", place % 97),
        speaker: None,
        said_at: second(place),
    }
}

fn frame(place: usize) -> Frame {
    Frame {
        seen_at: second(place),
        looked: Direction::Ahead,
        labels: vec![["cat", "cup", "chair", "book"][place / FRAMES % 4].into()],
        detections: Vec::new(),
        names: Vec::new(),
        people: 0,
        sentence: format!("I saw scene {place}."),
        caption: None,
        jpeg: (0..PICTURE_BYTES).map(|byte| (byte * 7919 + place) as u8).collect(),
    }
}

fn second(place: usize) -> Timestamp {
    let after = SignedDuration::from_mins(i64::try_from(place).unwrap_or(0));
    Timestamp::UNIX_EPOCH.saturating_add(after).unwrap_or_default()
}

fn question(number: usize) -> String {
    format!("Where is the {} with number {}?", THINGS[number % THINGS.len()], 1000 + number * 7)
}

pub async fn run(setting: &Setting, arguments: BenchArguments) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    let real = tokio::task::spawn_blocking(move || parts::load_text(&config)).await.map_err(CliError::could_not)?;
    let real = real.map(|text| text.embedder).map_err(|error| eprintln!("without embedding only: {error}")).ok();
    let mut rows = Vec::new();
    for count in &arguments.memories {
        rows.extend(measure(*count, real.clone(), &arguments).await?);
    }
    rows.extend(reacting(&setting.config).await);
    let report = Report { optimised: !cfg!(debug_assertions), rows };
    let json = serde_json::to_string_pretty(&report).map_err(CliError::could_not)?;
    std::fs::write(&arguments.to, json + "\n")
        .map_err(|error| CliError::CouldNot(format!("{}: {error}", arguments.to.display())))?;
    if arguments.output.json {
        print_json(&report)?;
    } else {
        print(&report);
        println!("written to {}", arguments.to.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The robot's own time between the end of speech and the request to the language model; nothing where it cannot hear.
async fn reacting(config: &Config) -> Vec<Row> {
    let reaction = match reaction::measure(config, REACTIONS).await {
        Ok(reaction) => reaction,
        Err(error) => {
            eprintln!("the time from the end of speech to the request was not measured: {error}");
            return Vec::new();
        }
    };
    let row = |name: &str, took: &[std::time::Duration]| {
        let took: Vec<f64> = took.iter().map(|one| one.as_secs_f64() * 1000.0).collect();
        let (p50_ms, p99_ms) = (percentile(&took, 0.5), percentile(&took, 0.99));
        let noise_ms = (percentile(&took, 0.0), percentile(&took, 1.0));
        let name = name.to_owned();
        Row { name, memories: None, p50_ms, p99_ms, noise_ms, python_p50_ms: None, python_p99_ms: None }
    };
    vec![
        row("end of speech to request, own time", &reaction.own),
        row("transcription of that speech", &reaction.transcriptions),
    ]
}

async fn measure(
    count: usize,
    real: Option<Arc<dyn EmbedText>>,
    arguments: &BenchArguments,
) -> Result<Vec<Row>, CliError> {
    let folder = tempfile::tempdir().map_err(CliError::could_not)?;
    let memory = open(folder.path(), None).await?;
    for batch in (0..count).filter(|place| place % FRAMES != 0).collect::<Vec<_>>().chunks(500) {
        memory.store(batch.iter().map(|place| exchange(*place)).collect()).await.map_err(CliError::could_not)?;
    }
    for place in (0..count).step_by(FRAMES) {
        memory.store_frame(frame(place)).await.map_err(CliError::could_not)?;
    }
    drop(memory);
    // Python has a copy: two handles on one shard damage it.
    let copy = tempfile::tempdir().map_err(CliError::could_not)?;
    let queries = copy.path().join("queries.json");
    std::fs::write(&queries, given().to_string()).map_err(CliError::could_not)?;
    let shard = copy.path().join("shard");
    copy_folder(&folder.path().join("memory"), &shard).map_err(CliError::could_not)?;
    let mut timed = Timed::default();
    for _ in 0..TURNS {
        let memory = open(folder.path(), None).await?;
        for (name, what) in [
            ("search: exchange, dense", Searching::Exchanges),
            ("search: exchange, hybrid", Searching::ExchangesAndWords),
            ("search: frame", Searching::Frames),
        ] {
            let memory = memory.clone();
            let took = tokio::task::spawn_blocking(move || {
                let one = |number| -> Result<f64, CliError> {
                    let asks = question(number);
                    let began = Instant::now();
                    memory.search_once(what, &asks, LIMIT).map_err(CliError::could_not)?;
                    Ok(began.elapsed().as_secs_f64() * 1000.0)
                };
                let first = (0..WARM_UP).map(one).collect::<Result<Vec<f64>, CliError>>()?;
                Ok::<_, CliError>((first, (0..QUESTIONS).map(one).collect::<Result<Vec<f64>, CliError>>()?))
            });
            let (first, took) = took.await.map_err(CliError::could_not)??;
            // What was read once is kept, so the first searches after a start are slower than all later ones.
            timed.add(&format!("{name}, just opened"), false, first);
            timed.add(name, false, took);
        }
        timed.add("remember, without embedding", false, recalls(&memory, About::Said, question).await?);
        timed.add("day sampling", false, recalls(&memory, About::Seen, |_| "What did you see today?".into()).await?);
        drop(memory);
        if let Some(real) = &real {
            let memory = open(folder.path(), Some(Arc::clone(real))).await?;
            timed.add("remember, with embedding", false, recalls(&memory, About::Said, question).await?);
        }
        if let Some(python) = &arguments.python {
            for (name, took) in in_python(python, &arguments.script, &shard, &queries)? {
                timed.add(&name, true, took);
            }
        }
    }
    Ok(timed.rows(count))
}

async fn open(folder: &Path, questions: Option<Arc<dyn EmbedText>>) -> Result<Memory, CliError> {
    let settings = Settings {
        folder: folder.to_owned(),
        exchange_gate: 0.0,
        frame_gate: 0.0,
        near_duplicate: 0.97,
        limit: 5,
        min_free_bytes: 0,
        search_threads: 1,
    };
    let dimension = crate::remember::store::TEXT_DIMENSION;
    let identity = Identity { model: "random".into(), weights: "none".into(), preprocessing: 1, dimension };
    let embedder = Arc::new(Seeded { identity, questions });
    let opened = tokio::task::spawn_blocking(move || Memory::open(settings, embedder, Timestamp::UNIX_EPOCH));
    Ok(opened.await.map_err(CliError::could_not)?.map_err(CliError::could_not)?.memory)
}

async fn recalls(memory: &Memory, about: About, asks: impl Fn(usize) -> String) -> Result<Vec<f64>, CliError> {
    let mut took = Vec::with_capacity(QUESTIONS);
    for number in (0..WARM_UP).chain(0..QUESTIONS) {
        let now = Timestamp::now();
        let query = Query { text: asks(number), about, when: None, direction: None, just_said: Vec::new(), now };
        let began = Instant::now();
        memory.recall(query).await.map_err(CliError::could_not)?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(took.split_off(WARM_UP))
}

/// What Python searches for.
fn given() -> Value {
    let one = |number| {
        let asks = question(number);
        serde_json::json!({ "vector": random(&asks), "terms": Asked::of(&asks).terms() })
    };
    serde_json::json!({ "queries": (0..QUESTIONS).map(one).collect::<Vec<_>>(), "limit": LIMIT })
}

fn in_python(
    python: &Path,
    script: &Path,
    shard: &Path,
    queries: &Path,
) -> Result<std::collections::BTreeMap<String, Vec<f64>>, CliError> {
    let failed = |why: String| CliError::CouldNot(format!("{} {}: {why}", python.display(), script.display()));
    let output = Command::new(python).arg(script).arg(shard).arg(queries).arg("1").output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Every call by name, in turns: ours and Python's.
#[derive(Default)]
struct Timed(Vec<(String, Vec<Vec<f64>>, Vec<f64>)>);

impl Timed {
    fn add(&mut self, name: &str, python: bool, took: Vec<f64>) {
        let place = self.0.iter().position(|(other, ..)| other == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), Vec::new(), Vec::new()));
            self.0.len() - 1
        });
        if let Some((_, ours, theirs)) = self.0.get_mut(place) {
            if python { theirs.extend(took) } else { ours.push(took) }
        }
    }

    fn rows(self, count: usize) -> Vec<Row> {
        let rows = self.0.into_iter().map(|(name, ours, theirs)| {
            let medians: Vec<f64> = ours.iter().map(|turn| percentile(turn, 0.5)).collect();
            let all = ours.concat();
            let python = |share| (!theirs.is_empty()).then(|| percentile(&theirs, share));
            Row {
                name,
                memories: Some(count),
                p50_ms: percentile(&all, 0.5),
                p99_ms: percentile(&all, 0.99),
                noise_ms: (percentile(&medians, 0.0), percentile(&medians, 1.0)),
                python_p50_ms: python(0.5),
                python_p99_ms: python(0.99),
            }
        });
        rows.collect()
    }
}

fn print(report: &Report) {
    let mut timed =
        table(&["", "memories", "p50", "p99", "medians of turns", "Python p50", "Python p99", "of Python's"]);
    for row in &report.rows {
        let ms = |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.3} ms"));
        let share =
            row.python_p50_ms.map_or_else(|| "–".into(), |python| format!("{:.0} %", row.p50_ms / python * 100.0));
        timed.add_row([
            row.name.clone(),
            row.memories.map_or_else(|| "–".into(), |count| count.to_string()),
            ms(Some(row.p50_ms)),
            ms(Some(row.p99_ms)),
            format!("{:.3}–{:.3}", row.noise_ms.0, row.noise_ms.1),
            ms(row.python_p50_ms),
            ms(row.python_p99_ms),
            share,
        ]);
    }
    println!("{timed}");
}
