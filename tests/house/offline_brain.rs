//! The offline brain as the rest of the program meets it, with the real MiniLM where it is there.
//!
//! The held-out questions are scored, never tuned on.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use reachy_remembers::remember::embed::{BertEmbedder, BertFiles, Identity, Pooling};
use reachy_remembers::think::offline::OfflineBrain;
use reachy_remembers::think::tools::{About, Tool};
use serde::Deserialize;

/// The least share of held-out questions that must come to the right tool.
const HELD: f64 = 0.90;

#[derive(Deserialize)]
struct Questions {
    question: Vec<Question>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
    tool: String,
    about: Option<String>,
    gesture: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn questions(name: &str) -> Vec<Question> {
    let text = std::fs::read_to_string(root().join("tests/questions").join(name)).expect("a committed file");
    toml::from_str::<Questions>(&text).expect("questions").question
}

fn brain() -> Option<&'static OfflineBrain> {
    static BRAIN: OnceLock<Option<OfflineBrain>> = OnceLock::new();
    let brain = BRAIN.get_or_init(|| {
        let folder = std::env::var_os("REACHY_MODELS_FOLDER")
            .map_or_else(|| root().join("models/cache"), PathBuf::from)
            .join("all-minilm-l6-v2");
        if !folder.join("model.safetensors").exists() {
            eprintln!("skipped: no MiniLM weights at {}", folder.display());
            return None;
        }
        let files = BertFiles {
            weights: folder.join("model.safetensors"),
            tokenizer: folder.join("tokenizer.json"),
            config: folder.join("config.json"),
        };
        let identity = Identity {
            model: "all-minilm-l6-v2".into(),
            weights: "not hashed".into(),
            preprocessing: 1,
            dimension: 384,
        };
        let embedder = BertEmbedder::load(&files, Pooling::Mean, "", true, 256, identity).expect("loads");
        let started = std::time::Instant::now();
        let brain = OfflineBrain::new(Arc::new(embedder), TimeZone::UTC).expect("learns its examples");
        eprintln!("examples embedded in {:.1} s", started.elapsed().as_secs_f64());
        Some(brain)
    });
    brain.as_ref()
}

/// 2026-11-26 15:30 UTC, a Thursday.
fn now() -> Timestamp {
    "2026-11-26T15:30:00Z".parse().expect("a time")
}

/// The tool, and what it is about, as the question files name them.
fn chosen(brain: &OfflineBrain, text: &str) -> (&'static str, String) {
    match brain.tool_for(text, now()).expect("the model works") {
        None => ("none", String::new()),
        Some(Tool::Camera { .. }) => ("camera", String::new()),
        Some(Tool::Move { gesture }) => ("move", gesture.name().to_owned()),
        Some(Tool::Remember(arguments)) => {
            let about = match arguments.about {
                About::Seen => "seen",
                About::Said => "said",
                About::Me => "me",
                About::Taught => "taught",
                About::Any => "any",
            };
            ("remember", about.to_owned())
        }
    }
}

/// Right tools, right tools with the right argument, questions; and the wrong ones, as sentences.
struct Score {
    table: String,
    right: usize,
    whole: usize,
    all: usize,
    wrong: Vec<String>,
    tool_for_none: usize,
}

fn score(brain: &OfflineBrain, questions: &[Question]) -> Score {
    let mut score = Score { table: String::new(), right: 0, whole: 0, all: 0, wrong: Vec::new(), tool_for_none: 0 };
    for tool in ["remember", "camera", "move", "none"] {
        let (mut right, mut whole, mut all) = (0, 0, 0);
        for question in questions.iter().filter(|question| question.tool == tool) {
            let (got, detail) = chosen(brain, &question.text);
            let wanted = question.about.as_ref().or(question.gesture.as_ref()).map_or("", String::as_str);
            all += 1;
            right += usize::from(got == tool);
            whole += usize::from(got == tool && detail == wanted);
            if got != tool || detail != wanted {
                score.wrong.push(format!("{tool} {wanted} | {} | {got} {detail}", question.text));
            }
            score.tool_for_none += usize::from(tool == "none" && got != "none");
        }
        score.table += &format!("  {tool:<9} {right:>3} of {all:>3}, with its argument {whole:>3}\n");
        score.right += right;
        score.whole += whole;
        score.all += all;
    }
    score.table +=
        &format!("  {:<9} {:>3} of {:>3}, with its argument {:>3}\n", "all", score.right, score.all, score.whole);
    score
}

#[test]
fn the_tuning_questions_come_to_the_right_tool() {
    let Some(brain) = brain() else { return };
    let score = score(brain, &questions("tools_tune.toml"));
    eprintln!("tuning questions:\n{}{}", score.table, score.wrong.join("\n"));
    assert!(score.right as f64 >= 0.95 * score.all as f64, "{} of {}", score.right, score.all);
}

/// Prints counts only: whoever reads single misses here begins to tune on them.
#[test]
fn held_out_questions_come_to_the_right_tool() {
    let Some(brain) = brain() else { return };
    let score = score(brain, &questions("tools_held.toml"));
    eprintln!("held-out questions:\n{}  {} misses", score.table, score.all - score.right);
    assert!(score.right as f64 >= HELD * score.all as f64, "{} of {}", score.right, score.all);
    assert!(score.tool_for_none <= 1, "{} needless tools", score.tool_for_none);
}

#[test]
fn no_question_is_asked_twice_and_none_is_an_example() {
    let plain = |text: &str| {
        let kept: String =
            text.to_lowercase().chars().filter(|letter| letter.is_alphanumeric() || *letter == ' ').collect();
        kept
    };
    let file = std::fs::read_to_string(root().join("src/think/offline/examples.toml")).expect("a committed file");
    let examples: std::collections::BTreeMap<String, Vec<String>> = toml::from_str(&file).expect("examples");
    let mut known: HashSet<String> = HashSet::new();
    for text in examples.values().flatten() {
        assert!(known.insert(plain(text)), "an example stands twice: {text}");
    }
    for name in ["tools_held.toml", "tools_tune.toml"] {
        for question in questions(name) {
            assert!(known.insert(plain(&question.text)), "{name}: {} is known already", question.text);
        }
    }
    assert!(questions("tools_held.toml").len() >= 86 && questions("tools_tune.toml").len() >= 60);
}
