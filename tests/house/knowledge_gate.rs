//! Which questions find a fact and which find none, with the real text model where it is there.

use std::path::Path;
use std::sync::Arc;

use reachy_remembers::config::{Config, ModelsConfig};
use reachy_remembers::daemon::parts::{self, Text};
use reachy_remembers::health::Health;
use reachy_remembers::remember::calibrate;
use reachy_remembers::remember::knowledge::build;
use reachy_remembers::remember::knowledge::facts::Facts;
use reachy_remembers::remember::knowledge::questions::{Found, Half, Questions, SHIPPED};
use reachy_remembers::remember::knowledge::verify::verify;
use reachy_remembers::remember::knowledge::{Knowledge, Settings};

use crate::weights;

/// The least share of questions that must find their own fact, and of others that must find none, where the stored
/// questions were chosen by them, and where they had no say.
const SHARES: [f64; 2] = [0.95, 0.85];

fn text() -> Option<Text> {
    if !weights::all_are_here() {
        return None;
    }
    let models = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    Some(parts::load_text(&Config { models, ..Config::default() }).unwrap())
}

/// Shares of answerable ones that find their own fact, and of others that find none.
fn shares(name: &str, half: &Half, found: &[Found], gate: f32) -> (f64, f64) {
    let (answerable, others) = half.counts();
    let (mut right, mut first, mut silent) = (0, 0, 0);
    for question in found {
        let (told, finds) = (question.told(gate), question.finds);
        let good = finds.map_or(told.is_empty(), |finds| told.contains(&finds));
        match finds {
            Some(finds) => {
                right += usize::from(good);
                first += usize::from(told.first() == Some(&finds));
            }
            None => silent += usize::from(good),
        }
        if !good {
            println!("  {} tells {} facts", question.asks, told.len());
        }
    }
    println!(
        "{name}: {right} of {answerable} find their fact ({first} first), {silent} of {others} others find none, gate {gate}"
    );
    (right as f64 / answerable as f64, silent as f64 / others as f64)
}

#[test]
fn questions_worded_unlike_any_stored_one_find_their_fact_and_others_find_none() {
    let Some(text) = text() else { return };
    let facts = Facts::load(Path::new("")).unwrap();
    let questions = Questions::parse(SHIPPED, &facts).unwrap();
    assert!(questions.held.counts().0 >= 60 && questions.tune.counts().1 + questions.held.counts().1 >= 60);
    let tune = questions.tune.ask(&facts, text.embedder.as_ref()).unwrap();
    let measured: Vec<_> = tune.iter().map(|found| found.measured(calibrate::Half::Tune)).collect();
    let best = calibrate::best(&calibrate::sweep(&measured)).unwrap();
    let gate = text.model.fact_gate;
    println!("{}: the tuning half gives {best:?}, shipped {gate}", text.model.name);
    assert!((best.gate - gate).abs() < 0.005, "{best:?}");
    let held = questions.held.ask(&facts, text.embedder.as_ref()).unwrap();
    let halves = [("tune", &questions.tune, &tune), ("held", &questions.held, &held)];
    for ((name, half, found), share) in halves.into_iter().zip(SHARES) {
        let (right, silent) = shares(name, half, found, gate);
        assert!(right >= share && silent >= share, "{name}: {right:.3} and {silent:.3}");
    }
}

#[test]
fn no_question_of_the_test_is_stored_with_a_fact() {
    let facts = Facts::load(Path::new("")).unwrap();
    for question in facts.facts.iter().flat_map(|fact| &fact.questions) {
        assert!(!SHIPPED.contains(&format!("\"{question}\"")), "{question}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_facts_that_ship_make_a_small_snapshot_that_answers_every_one_of_its_questions() {
    let Some(text) = text() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knowledge.snapshot");
    let facts = Facts::load(Path::new("")).unwrap();
    let began = std::time::Instant::now();
    let built = build::build(&facts, text.embedder.as_ref(), &path, &mut |_| {}).unwrap();
    println!("{built:?} in {:?}", began.elapsed());
    let verified = verify(&path, text.embedder.as_ref()).unwrap();
    assert!(verified.wrong.is_empty(), "{:?}", verified.wrong);
    let settings = Settings {
        folder: folder.path().join("shards"),
        facts: "".into(),
        snapshot: path,
        gate: text.model.fact_gate,
        limit: 2,
        min_free_bytes: 0,
        search_threads: 1,
        pull: None,
    };
    std::fs::create_dir(&settings.folder).unwrap();
    let began = std::time::Instant::now();
    let started = Knowledge::start(settings, Arc::clone(&text.embedder), Arc::new(Health::default())).await;
    let restored = began.elapsed();
    let found = started.knowledge.recall("Where are your memories kept?").await.unwrap();
    println!("restored after {restored:?}, first answer after {:?}", began.elapsed());
    assert!(found.facts[0].text.contains("folder called shards"), "{found:?}");
    let nothing = started.knowledge.recall("Who am I?").await.unwrap();
    assert!(nothing.facts.is_empty() && nothing.best.is_some(), "{nothing:?}");
}
