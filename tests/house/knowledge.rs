//! Facts on disk: the same snapshot for the same facts, restored at every start, and never lost to a bad one.
//!
//! The embedder is the stand-in (hashed words); the engine is the real one.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reachy_remembers::act::Motion;
use reachy_remembers::clock::Clock;
use reachy_remembers::health::Health;
use reachy_remembers::remember::Recalled;
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::embed::{EmbedError, EmbedText, Identity};
use reachy_remembers::remember::knowledge::build::{self, MOST_BUILT};
use reachy_remembers::remember::knowledge::facts::Facts;
use reachy_remembers::remember::knowledge::pull::PullSettings;
use reachy_remembers::remember::knowledge::verify::verify;
use reachy_remembers::remember::knowledge::{Knowledge, KnowledgeError, Settings, Started};
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::think::hands::{Hands, Moment};
use reachy_remembers::think::tools::{About, RememberArguments, Tool, ToolResult};

use crate::{conversing, remembering};

/// The stand-in's score for a question and itself is 1.
pub const GATE: f32 = 0.6;

pub const TEA: &str = r#"
[[fact]]
key = "tea"
text = "Tea is in the left cupboard."
questions = ["Where is the tea?", "Do we have tea?", "Which cupboard is for tea?"]

[[fact]]
key = "bins"
text = "The bins are emptied on Wednesday."
questions = ["When are the bins emptied?", "Which day is bin day?", "When does the rubbish go?"]
"#;

pub fn facts(text: &str) -> Facts {
    Facts::parse(text, "facts.toml").unwrap()
}

/// A snapshot of `text` in `folder`.
pub fn snapshot(folder: &Path, name: &str, text: &str, embedder: &dyn EmbedText) -> PathBuf {
    let path = folder.join(name);
    build::build(&facts(text), embedder, &path, &mut |_| {}).unwrap();
    path
}

pub fn settings(folder: &Path, snapshot: &Path) -> Settings {
    let facts = folder.join("facts.toml");
    if !facts.exists() {
        fs::create_dir_all(folder).unwrap();
        fs::write(&facts, TEA.replace("left cupboard", "facts file")).unwrap();
    }
    Settings {
        folder: folder.to_owned(),
        facts,
        snapshot: snapshot.to_owned(),
        gate: GATE,
        limit: 2,
        min_free_bytes: 0,
        search_threads: 1,
        pull: None::<PullSettings>,
    }
}

pub async fn start(settings: Settings) -> (Started, Arc<Health>) {
    start_with(settings, Arc::new(StandIn::new())).await
}

pub async fn start_with(settings: Settings, embedder: Arc<dyn EmbedText>) -> (Started, Arc<Health>) {
    let health = Arc::new(Health::default());
    (Knowledge::start(settings, embedder, Arc::clone(&health)).await, health)
}

/// What is told of the tea, as soon as anything is.
pub async fn tea(knowledge: &Knowledge) -> String {
    let began = Instant::now();
    loop {
        match knowledge.recall("Where is the tea?").await {
            Ok(answer) => return answer.facts.first().map(|fact| fact.text.clone()).unwrap_or_default(),
            Err(KnowledgeError::NotThere { .. }) if began.elapsed() < Duration::from_secs(20) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn health_of(health: &Health) -> (bool, String) {
    let part = health.parts().into_iter().find(|part| part.part == "knowledge").expect("knowledge has a health");
    (part.works, part.what)
}

/// The stand-in under another name.
pub struct Renamed {
    inner: StandIn,
    identity: Identity,
}

impl Renamed {
    pub fn new() -> Self {
        let inner = StandIn::new();
        let identity = Identity { model: "another-model".into(), ..inner.identity().clone() };
        Self { inner, identity }
    }
}

impl EmbedText for Renamed {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.inner.question(text)
    }

    fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.inner.stored(texts)
    }
}

#[test]
fn two_builds_of_the_same_facts_are_the_same_bytes_and_another_fact_makes_others() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shipped = Facts::load(Path::new("")).unwrap();
    let build = |folder: &Path| {
        let built = build::build(&shipped, &StandIn::new(), &folder.join("a"), &mut |_| {}).unwrap();
        assert!(built.bytes <= MOST_BUILT, "{} bytes", built.bytes);
        println!("{} facts, {} questions, {} bytes", built.facts, built.questions, built.bytes);
        (fs::read(folder.join("a")).unwrap(), built)
    };
    let ((one, built), (two, again)) = (build(first.path()), build(second.path()));
    let names = |bytes: &[u8]| -> Vec<(String, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let whole = entries.map(|mut entry| {
            let mut body = Vec::new();
            entry.read_to_end(&mut body).unwrap();
            (entry.path().unwrap().display().to_string(), body)
        });
        whole.collect()
    };
    for ((name, a), (other, b)) in names(&one).into_iter().zip(names(&two)) {
        let at = a.iter().zip(&b).position(|(a, b)| a != b);
        assert!(name == other && a == b, "{name} and {other} differ at {at:?} of {} and {}", a.len(), b.len());
    }
    assert!(one == two, "their headers differ");
    assert_eq!(built, again);
    assert_eq!(built.sha256.len(), 64);
    let mode = fs::metadata(first.path().join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "the owner's alone");
    let tea = fs::read(snapshot(first.path(), "tea", TEA, &StandIn::new())).unwrap();
    let other = fs::read(snapshot(first.path(), "other", &TEA.replace("left", "right"), &StandIn::new())).unwrap();
    assert_ne!(tea, other);
}

#[test]
fn every_stored_question_of_a_snapshot_finds_its_own_fact() {
    let folder = tempfile::tempdir().unwrap();
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let verified = verify(&path, &StandIn::new()).unwrap();
    assert_eq!((verified.facts, verified.questions), (2, 6));
    assert!(verified.wrong.is_empty(), "{:?}", verified.wrong);
    assert_eq!(verified.identity, *StandIn::new().identity());
}

#[test]
fn a_snapshot_over_a_megabyte_is_not_made_and_the_one_before_stays() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let before = fs::read(&path).unwrap();
    let mut many = String::new();
    for number in 0..250 {
        let questions = ["one", "two", "three"].map(|word| format!("\"Question {word} of {number}?\"")).join(", ");
        write!(many, "[[fact]]\nkey = \"f{number}\"\ntext = \"Fact {number}.\"\nquestions = [{questions}]\n").unwrap();
    }
    let refused = build::build(&facts(&many), &StandIn::new(), &path, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("take out facts"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing half-made is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_restored_and_searchable_within_a_second_of_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shipped");
    let shipped = Facts::load(Path::new("")).unwrap();
    build::build(&shipped, &StandIn::new(), &path, &mut |_| {}).unwrap();
    let began = Instant::now();
    let (Started { knowledge, notes }, health) = start(settings(&folder.path().join("shards"), &path)).await;
    let restored = began.elapsed();
    let answer = knowledge.recall("Where is your memory?").await.unwrap();
    println!("restored after {restored:?}, first answer after {:?}", began.elapsed());
    assert!(notes.is_empty(), "{notes:?}");
    assert!(answer.facts[0].text.contains("shards"), "{answer:?}");
    assert_eq!(answer.searched, shipped.facts.len());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(health_of(&health).0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_snapshot_the_facts_are_embedded_once_and_kept_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let (Started { knowledge, notes }, _) = start(settings(&shards, Path::new(""))).await;
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(tea(&knowledge).await, "Tea is in the facts file.");
    drop(knowledge);
    let built = fs::metadata(shards.join("knowledge.built")).unwrap().modified().unwrap();
    // The next start has them at once, from the shard or from the snapshot that was built.
    fs::remove_dir_all(shards.join("knowledge")).unwrap();
    let (Started { knowledge, .. }, health) = start(settings(&shards, Path::new(""))).await;
    assert!(knowledge.label().is_some(), "{:?}", health_of(&health));
    assert_eq!(fs::metadata(shards.join("knowledge.built")).unwrap().modified().unwrap(), built);
    drop(knowledge);
    // An edit of the facts arrives at the start after it.
    fs::write(shards.join("facts.toml"), TEA.replace("left", "upper")).unwrap();
    let (Started { knowledge, .. }, _) = start(settings(&shards, Path::new(""))).await;
    let began = Instant::now();
    while tea(&knowledge).await != "Tea is in the upper cupboard." {
        assert!(began.elapsed() < Duration::from_secs(20), "the new facts never came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_or_truncated_snapshot_keeps_the_last_good_one_and_the_memory_opens_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let good = fs::read(&path).unwrap();
    drop(start(settings(&shards, &path)).await);
    let mut corrupt = good.clone();
    for at in (600..good.len()).step_by(1_000) {
        corrupt[at] ^= 0x55;
    }
    let bad =
        [good[..good.len() / 2].to_vec(), good[..good.len() - 512].to_vec(), corrupt, b"nonsense".to_vec(), vec![]];
    for bytes in bad {
        fs::write(&path, &bytes).unwrap();
        let (Started { knowledge, notes }, health) = start(settings(&shards, &path)).await;
        assert_eq!(tea(&knowledge).await, "Tea is in the left cupboard.", "{notes:?}");
        assert!(notes[0].contains("were not taken") && notes[0].contains("last good"), "{notes:?}");
        let (works, what) = health_of(&health);
        assert!(!works && what.contains("were not taken"), "{what}");
        // The memory in the same folder knows nothing of it.
        let memory = remembering::open(&shards);
        assert_eq!(memory.stats().await.unwrap().exchanges, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_another_text_model_the_facts_are_embedded_again_instead_of_taking_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    drop(start(settings(&shards, &path)).await);
    let (Started { knowledge, notes }, _) = start_with(settings(&shards, &path), Arc::new(Renamed::new())).await;
    assert!(notes[0].contains("stand-in") && notes[0].contains("another-model"), "{notes:?}");
    assert_eq!(tea(&knowledge).await, "Tea is in the facts file.");
    assert_eq!(knowledge.label().unwrap().identity.model, "another-model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_snapshot_leaves_the_last_good_one_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    drop(start(settings(&shards, &path)).await);
    // Whoever edits the facts file does not reach a robot whose snapshot is broken: what was good stays.
    fs::write(shards.join("facts.toml"), TEA).unwrap();
    snapshot(folder.path(), "tea", &TEA.replace("left", "foreign"), &Renamed::new());
    let (Started { knowledge, notes }, _) = start(settings(&shards, &path)).await;
    assert!(notes[0].contains("another-model"), "{notes:?}");
    assert_eq!(tea(&knowledge).await, "Tea is in the left cupboard.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_between_the_two_renames_of_a_swap_costs_no_facts() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    drop(start(settings(&shards, &path)).await);
    fs::rename(shards.join("knowledge"), shards.join("knowledge.before")).unwrap();
    fs::create_dir(shards.join("knowledge.new")).unwrap();
    fs::write(&path, b"nonsense").unwrap();
    let (Started { knowledge, .. }, _) = start(settings(&shards, &path)).await;
    assert_eq!(tea(&knowledge).await, "Tea is in the left cupboard.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robot_with_no_facts_at_all_says_that_it_cannot_look_and_not_that_it_found_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("facts.toml"), "[[fact]]\nkey = 3\n").unwrap();
    let (Started { knowledge, notes }, health) = start(settings(folder.path(), Path::new(""))).await;
    assert!(notes[0].contains("facts.toml:2"), "{notes:?}");
    let refused = knowledge.recall("Where is the tea?").await.unwrap_err();
    assert!(matches!(refused, KnowledgeError::NotThere { .. }), "{refused}");
    assert!(!health_of(&health).0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_enter_a_restored_shard() {
    let folder = tempfile::tempdir().unwrap();
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let shards = folder.path().join("shards");
    drop(start(settings(&shards, &path)).await);
    let mode = fs::metadata(shards.join("knowledge")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// What the `remember` tool answers to a question about this part of the memory.
async fn remembered(hands: &Hands, query: &str, about: About, when: Option<&str>) -> ToolResult {
    let when = when.map(str::to_owned);
    let tool = Tool::Remember(RememberArguments { query: query.into(), about, direction: None, when });
    let moment = Moment { now: remembering::at(2_000), speaker: None, just_said: Vec::new(), shows_pictures: false };
    hands.run(&tool, &moment).await.result
}

#[tokio::test(flavor = "multi_thread")]
async fn taught_asks_the_facts_alone_and_any_asks_both_each_by_its_own_gate() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let memory = remembering::open(&shards);
    memory.store(vec![remembering::exchange("The key of the bicycle is in the blue box.", 1_000)]).await.unwrap();
    let (Started { knowledge, .. }, _) = start(settings(&shards, &path)).await;
    let clock = Clock::system_in(jiff::tz::TimeZone::UTC);
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let bare = conversing::hands(Ok(memory.clone()), robot, motion, clock);
    let hands = Hands { knowledge: Ok(knowledge), ..bare.clone() };
    let is_fact = |result: &ToolResult| matches!(result, ToolResult::Recalled(Recalled::Facts { besides: None, .. }));

    let bins = remembered(&hands, "When are the bins emptied?", About::Taught, None).await;
    assert!(is_fact(&bins), "{bins:?}");
    let bins = remembered(&hands, "When are the bins emptied?", About::Any, None).await;
    assert!(is_fact(&bins), "{bins:?}");
    let key = remembered(&hands, "Where is the key of the bicycle?", About::Any, None).await;
    assert!(matches!(key, ToolResult::Recalled(Recalled::Found { .. })), "{key:?}");
    // What was said is not what was taught, and facts have no time.
    let key = remembered(&hands, "Where is the key of the bicycle?", About::Taught, None).await;
    assert!(matches!(key, ToolResult::Recalled(Recalled::Nothing { searched: 2, .. })), "{key:?}");
    let bins = remembered(&hands, "When are the bins emptied?", About::Any, Some("yesterday")).await;
    assert!(matches!(bins, ToolResult::Recalled(Recalled::Nothing { .. })), "{bins:?}");
    // A robot without facts cannot look, and its memory answers all the same.
    let taught = remembered(&bare, "When are the bins emptied?", About::Taught, None).await;
    assert!(matches!(taught, ToolResult::CouldNotLook { .. }), "{taught:?}");
    let key = remembered(&bare, "Where is the key of the bicycle?", About::Any, None).await;
    assert!(matches!(key, ToolResult::Recalled(Recalled::Found { .. })), "{key:?}");
    // A robot without a memory knows its facts all the same.
    let forgetful = Hands { memory: Err("the disk is full".into()), ..hands };
    let bins = remembered(&forgetful, "When are the bins emptied?", About::Any, None).await;
    assert!(is_fact(&bins), "{bins:?}");
    let key = remembered(&forgetful, "Where is the key of the bicycle?", About::Any, None).await;
    assert!(matches!(&key, ToolResult::CouldNotLook { why } if why.contains("full")), "{key:?}");
}
