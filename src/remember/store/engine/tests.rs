use super::super::MemoryError;
use super::super::forget::Becomes;
use super::*;
use crate::remember::embed::EmbedText;
use crate::remember::embed::stand_in::StandIn;
use crate::remember::words::{self, Asked, Weights};

fn exchange(heard: &str, second: i64) -> Exchange {
    let said_at = Timestamp::from_second(second).unwrap();
    Exchange { heard: heard.into(), said: "All right.".into(), speaker: None, said_at }
}

fn vector(text: &str) -> Vec<f32> {
    StandIn::new().question(text).unwrap()
}

/// A shard as it was made before exchanges had the vector of their words.
fn without_words(path: &Path, exchanges: &[Exchange]) {
    let config = settings(1)
        .vector(Space::Text.name(), EdgeVectorParamsBuilder::new(TEXT_DIMENSION, Distance::Cosine).build())
        .vector(Space::Image.name(), EdgeVectorParamsBuilder::new(IMAGE_DIMENSION, Distance::Cosine).build())
        .build();
    let old = EdgeShard::new(path, config).unwrap();
    make_indexes(&old).unwrap();
    let old = Engine::over(old);
    let points = exchanges.iter().map(|exchange| {
        let vectors = Vectors::new_named([(Space::Text.name(), vector(&exchange.line()))]);
        Point(PointStruct::new(PointId::Uuid(exchange.id()), vectors, exchange.payload()))
    });
    old.upsert(points.collect()).unwrap();
    old.flush().unwrap();
}

/// Which of `exchanges` hold the words of `question` well enough.
fn found_by_words(engine: &Engine, question: &str) -> Vec<String> {
    let asked = Asked::of(question);
    let hybrid = engine.hybrid::<Exchange>(vector(question), &asked, &Scope::default(), 10).unwrap();
    let found = hybrid.hits.into_iter().filter(|hit| hybrid.weights.compare(&asked, &hit.known.bag).found);
    found.map(|hit| hit.known.memory.heard.clone()).collect()
}

#[test]
fn a_shard_made_before_words_were_counted_opens_and_is_found_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let mut exchanges: Vec<Exchange> =
        (0..150).map(|second| exchange(&format!("Tea number x{second}."), second)).collect();
    exchanges.push(exchange("The meeting was moved to room 4127.", 500));
    without_words(&path, &exchanges);
    for opening in ["upgraded", "opened again"] {
        let engine = Engine::load(&path, 1).unwrap();
        assert_eq!(engine.count::<Exchange>(&Scope::default()).unwrap(), 151, "{opening}");
        let found = found_by_words(&engine, "What happens in room 4127?");
        assert_eq!(found, ["The meeting was moved to room 4127."], "{opening}");
    }
}

#[test]
fn an_upgrade_that_was_interrupted_goes_on_at_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    without_words(&path, &[exchange("The meeting was moved to room 4127.", 1)]);
    let engine = Engine::load(&path, 1).unwrap();
    // Written as the older program did, into a shard that has the vector already.
    let late = exchange("The locker has number 58.", 2);
    let vectors = Vectors::new_named([(Space::Text.name(), vector(&late.line()))]);
    engine.upsert(vec![Point(PointStruct::new(PointId::Uuid(late.id()), vectors, late.payload()))]).unwrap();
    engine.flush().unwrap();
    assert!(found_by_words(&engine, "Where is locker 58?").is_empty());
    drop(engine);
    assert_eq!(found_by_words(&Engine::load(&path, 1).unwrap(), "Where is locker 58?"), [late.heard]);
}

#[test]
fn a_rare_term_weighs_what_the_engines_formula_says_and_an_unknown_one_a_little_more() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::create(&folder.path().join("memory"), 1).unwrap();
    let texts = ["Green tea with honey.", "Black tea with sugar.", "The locker has number 58."];
    let points = texts.iter().zip(0..).map(|(text, second)| {
        let exchange = exchange(text, second);
        Point::new(&exchange, vector(&exchange.line()), None).unwrap()
    });
    engine.upsert(points.collect()).unwrap();
    let asked = Asked::of("tea honey elephant");
    let weights = engine.hybrid::<Exchange>(vector("tea"), &asked, &Scope::default(), 5).unwrap().weights;
    let idf = |df: f32| ((3.0 - df + 0.5) / (df + 0.5) + 1.0_f32).ln();
    let found = |word: &str, df: f32| words::terms(word).into_iter().map(move |term| (term, idf(df)));
    let expected: Vec<(u32, f32)> =
        found("tea", 2.0).chain(found("honey", 1.0)).chain(found("elephant", 0.0)).collect();
    let expected = Weights::new(&asked, &expected, 3);
    let bag = words::bag("tea with honey");
    let (got, wanted) = (weights.compare(&asked, &bag), expected.compare(&asked, &bag));
    assert!((got.bm25 - wanted.bm25).abs() < 1e-3 && (got.share - wanted.share).abs() < 1e-3, "{got:?} {wanted:?}");
}

#[test]
fn a_shard_with_other_vectors_than_the_contracts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let config = settings(1).vector(Space::Text.name(), EdgeVectorParamsBuilder::new(8, Distance::Cosine).build());
    drop(EdgeShard::new(&path, config.build()).unwrap());
    let why = Engine::load(&path, 1).err().unwrap().to_string();
    assert!(why.contains("8 numbers instead of 384"), "{why}");
}

/// Who said what, as a search finds it.
fn speakers(engine: &Engine) -> Vec<Option<String>> {
    let found = engine.nearest::<Exchange>(vector("tea"), Space::Text, &Scope::default(), 5).unwrap();
    found.into_iter().map(|(exchange, _)| exchange.speaker).collect()
}

#[test]
fn what_was_read_is_read_again_after_it_was_written_and_after_the_shard_was_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let engine = Engine::create(&path, 1).unwrap();
    let tea = exchange("Green tea with honey.", 1);
    let point = |speaker: Option<&str>| {
        let said = Exchange { speaker: speaker.map(str::to_owned), ..tea.clone() };
        let Point(mut point) = Point::new(&said, vector("tea"), None).unwrap();
        point.0.id = PointId::Uuid(tea.id());
        Point(point)
    };
    engine.upsert(vec![point(None)]).unwrap();
    assert_eq!(speakers(&engine), [None]);
    engine.upsert(vec![point(Some("Emma"))]).unwrap();
    assert_eq!(speakers(&engine), [Some("Emma".to_owned())]);
    let carry = |_| Ok::<_, MemoryError>(Becomes::Another(point(None)));
    engine.rebuild(&path, 1, carry).unwrap();
    assert_eq!(speakers(&engine), [None]);
}

#[test]
fn more_is_found_than_is_kept_after_reading() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::create(&folder.path().join("memory"), 1).unwrap();
    let exchanges: Vec<Exchange> = (0..5000).map(|second| exchange(&format!("Tea {second}."), second)).collect();
    let points = exchanges.iter().map(|one| Point::new(one, vector(&one.heard), None).unwrap());
    engine.upsert(points.collect()).unwrap();
    for _ in 0..2 {
        let all = engine.in_time::<Exchange>(&Scope::default(), Order::OldestFirst, 5000).unwrap();
        assert_eq!(all, exchanges);
    }
}
