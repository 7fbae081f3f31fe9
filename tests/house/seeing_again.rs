//! Questions about what was seen: found, not there, or naming nothing. Real text model and real shard; the frames are
//! made by hand, without pictures.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Time, date};
use jiff::tz::TimeZone;
use reachy_remembers::config::{Config, ModelsConfig};
use reachy_remembers::daemon::parts;
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::embed::{EmbedError, Identity};
use reachy_remembers::remember::store::{Opened, reembed};
use reachy_remembers::remember::{Frame, HowSeen, Memory, Query, Recalled, Settings};
use reachy_remembers::robot::Direction;
use reachy_remembers::see::{EmbedImage, Rgb, told};
use reachy_remembers::think::tools::About;
use serde::Deserialize;

use crate::{remembering, weights};

#[derive(Deserialize)]
struct Questions {
    day: Vec<Sight>,
    looks: Vec<Sight>,
    found: Vec<Found>,
    found_by_words: Vec<Found>,
    absent: Vec<String>,
    nothing_named: Vec<String>,
}

#[derive(Deserialize)]
struct Sight {
    at: Time,
    sees: Vec<String>,
    looked: Option<Direction>,
    said: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    asks: String,
    shows: String,
}

fn moment(time: Time) -> Timestamp {
    date(2026, 5, 4).to_datetime(time).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

fn frame(seen_at: Timestamp, sees: &[&str], looked: Direction) -> Frame {
    let mut labels: Vec<String> = sees.iter().map(|label| (*label).to_owned()).collect();
    let people = labels.iter().filter(|label| *label == told::PERSON).count();
    let sentence = told::sentence(&told::counts(sees.iter().copied()), looked, &[]);
    labels.sort();
    labels.dedup();
    Frame {
        seen_at,
        looked,
        labels,
        detections: Vec::new(),
        names: Vec::new(),
        people: people.try_into().unwrap(),
        sentence,
        caption: None,
        jpeg: vec![0xff, 0xd8, 1, 2, 3],
    }
}

fn asks(text: &str, now: Timestamp) -> Query {
    Query { text: text.into(), about: About::Seen, when: None, direction: None, just_said: Vec::new(), now }
}

fn labels(recalled: &Recalled) -> Vec<Vec<String>> {
    match recalled {
        Recalled::Seen { frames, .. } => frames.iter().map(|seen| seen.frame.labels.clone()).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_is_found_what_was_not_is_not_and_what_names_nothing_reaches_the_day() {
    if !weights::all_are_here() {
        return;
    }
    let config =
        Config { models: ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() }, ..Config::default() };
    let text = tokio::task::spawn_blocking(move || parts::load_text(&config).map(|text| (config, text))).await.unwrap();
    let (config, text) = text.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings =
        Settings { folder: folder.path().to_owned(), min_free_bytes: 0, ..parts::memory_settings(&config, &text) };
    let memory = Memory::open(settings, text.embedder, Timestamp::now()).unwrap().memory;
    let questions = include_str!("../questions/frames.toml");
    let questions: Questions = toml::from_str(questions).unwrap();
    for sight in questions.day.iter().chain(&questions.looks) {
        let sees: Vec<&str> = sight.sees.iter().map(String::as_str).collect();
        let seen = frame(moment(sight.at), &sees, sight.looked.unwrap_or_default());
        memory.store_frame(seen.clone()).await.unwrap();
        if let Some(said) = &sight.said {
            memory.caption(seen.id(), said.clone()).await.unwrap();
        }
    }
    let now = moment(Time::constant(20, 0, 0, 0));
    let (mut found, mut wrong, mut sampled) = (0, Vec::new(), 0);
    for question in questions.found.iter().chain(&questions.found_by_words) {
        let recalled = memory.recall(asks(&question.asks, now)).await.unwrap();
        match labels(&recalled).first() {
            Some(shows) if shows.contains(&question.shows) => found += 1,
            _ => println!("missed: {} → {recalled:.2?}", question.asks),
        }
    }
    for question in &questions.absent {
        let recalled = memory.recall(asks(question, now)).await.unwrap();
        println!("absent: {question} → {recalled:.2?}");
        if !matches!(recalled, Recalled::Nothing { .. }) {
            wrong.push(format!("{question} → {:?}", labels(&recalled)));
        }
    }
    for question in &questions.nothing_named {
        match memory.recall(asks(question, now)).await.unwrap() {
            Recalled::Seen { frames, how: HowSeen::Sampled { of } } => {
                assert_eq!(of, questions.day.len() + questions.looks.len());
                assert!(frames.len() > 1 && frames.is_sorted_by_key(|seen| std::cmp::Reverse(seen.frame.seen_at)));
                sampled += 1;
            }
            other => println!("not sampled: {question} → {other:?}"),
        }
    }
    let asked = questions.found.len() + questions.found_by_words.len();
    let (absent, open) = (questions.absent.len(), questions.nothing_named.len());
    println!("found {found} of {asked}; {} of {absent} absent ones answered; sampled {sampled} of {open}", wrong.len());
    assert!(asked + absent + open >= 40);
    assert!(found * 100 >= asked * 95, "{found} of {asked}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(sampled, open);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_on_the_left_is_the_last_look_that_way() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    for (second, sees, looked) in
        [(100, "cup", Direction::Left), (200, "cat", Direction::Left), (300, "chair", Direction::Ahead)]
    {
        memory.store_frame(frame(remembering::at(second), &[sees], looked)).await.unwrap();
    }
    let query = Query { direction: Some(Direction::Left), ..asks("What was on your left?", remembering::at(900)) };
    let recalled = memory.recall(query).await.unwrap();
    assert_eq!(labels(&recalled), [["cat"]]);
    assert!(matches!(recalled, Recalled::Seen { how: HowSeen::LastLook, .. }));
    let right = Query { direction: Some(Direction::Right), ..asks("What was on your right?", remembering::at(900)) };
    assert!(matches!(memory.recall(right).await.unwrap(), Recalled::Nothing { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_this_very_turn_is_the_present_and_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    memory.store_frame(frame(remembering::at(500), &["cat"], Direction::Ahead)).await.unwrap();
    let recalled = memory.recall(asks("Did you see the cat?", remembering::at(500))).await.unwrap();
    assert!(matches!(recalled, Recalled::Nothing { .. }), "{recalled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_about_a_look_becomes_its_caption_and_is_found_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    let look = frame(remembering::at(100), &["book"], Direction::Ahead);
    memory.store_frame(look.clone()).await.unwrap();
    memory.caption(look.id(), "A yellow atlas of Portugal lies open.".into()).await.unwrap();
    let recalled = memory.recall(asks("yellow atlas Portugal", remembering::at(900))).await.unwrap();
    let Recalled::Seen { frames, .. } = &recalled else { panic!("{recalled:?}") };
    assert_eq!(frames[0].frame.caption.as_deref(), Some("A yellow atlas of Portugal lies open."));
    let whole = memory.pictures(vec![look.id()]).await.unwrap();
    assert_eq!(whole[0].jpeg, look.jpeg, "the picture survives its caption");
    assert_eq!(memory.stats().await.unwrap().frames, 1);
}

/// A stand-in for a picture model: the picture's colour as a direction.
struct ByColour(Identity);

impl ByColour {
    fn new() -> Arc<Self> {
        let identity =
            Identity { model: "stand-in-pictures".into(), weights: "none".into(), preprocessing: 1, dimension: 768 };
        Arc::new(Self(identity))
    }
}

impl EmbedImage for ByColour {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn picture(&self, picture: &Rgb) -> Result<Vec<f32>, EmbedError> {
        let mean = |channel: usize| {
            let values = picture.pixels.iter().skip(channel).step_by(3);
            values.map(|value| f32::from(*value)).sum::<f32>() / (picture.pixels.len() / 3) as f32
        };
        let mut vector = vec![0.0; 768];
        let colour = [mean(0), mean(1), mean(2)];
        let length = colour.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector[..3].copy_from_slice(&colour.map(|value| value / length));
        Ok(vector)
    }

    fn words(&self, _: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vector = vec![0.0; 768];
        vector[2] = 1.0;
        Ok(vector)
    }
}

fn coloured(second: i64, colour: [u8; 3]) -> Frame {
    // Uneven, as every real picture is: a flat one counts as torn.
    let uneven = |place: usize| colour.map(|value| value.saturating_sub((place * 7919 % 40) as u8));
    let picture = Rgb { width: 64, height: 64, pixels: (0..64 * 64).flat_map(uneven).collect() };
    Frame { jpeg: picture.to_jpeg().unwrap(), ..frame(remembering::at(second), &["couch"], Direction::Ahead) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_of_a_day_shows_different_scenes_where_the_newest_four_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    memory.embed_pictures_with(ByColour::new()).unwrap();
    for (second, colour) in [(100, [250, 10, 10]), (200, [10, 250, 10]), (300, [10, 10, 250])] {
        memory.store_frame(coloured(second, colour)).await.unwrap();
    }
    for second in 1000..1040 {
        memory.store_frame(coloured(second, [200, 200, 190])).await.unwrap();
    }
    let recalled = memory.recall(asks("What did you see today?", remembering::at(9000))).await.unwrap();
    let Recalled::Seen { frames, how: HowSeen::Sampled { of: 43 } } = recalled else { panic!("{recalled:?}") };
    let seconds: Vec<i64> = frames.iter().map(|seen| seen.frame.seen_at.as_second()).collect();
    assert_eq!(seconds, [1039, 300, 200, 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_kept_without_a_picture_model_get_their_vectors_later() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    memory.store_frame(coloured(100, [250, 10, 10])).await.unwrap();
    memory.store(vec![remembering::exchange("The key is in the box.", 50)]).await.unwrap();
    assert_eq!(memory.stats().await.unwrap().without_picture_vector, 1);
    drop(memory);
    let images = ByColour::new();
    let carried =
        reembed(&remembering::settings(folder.path()), &StandIn::new(), Some(images.as_ref()), |_, _| {}).unwrap();
    assert_eq!(carried, 2);
    let Opened { memory, notes } =
        Memory::open(remembering::settings(folder.path()), Arc::new(StandIn::new()), remembering::at(9000)).unwrap();
    assert!(notes.is_empty());
    let stats = memory.stats().await.unwrap();
    assert_eq!((stats.frames, stats.exchanges, stats.without_picture_vector), (1, 1, 0));
    memory.embed_pictures_with(images).unwrap();
    let other = Arc::new(ByColour(Identity { model: "another".into(), ..ByColour::new().identity().clone() }));
    let refused = memory.embed_pictures_with(other).unwrap_err().to_string();
    assert!(refused.contains("another") && refused.contains("reembed"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_samples_cost_does_not_grow_with_the_age_of_the_robot() {
    let folder = tempfile::tempdir().unwrap();
    let memory = remembering::open(folder.path());
    let mut took = HashMap::new();
    for upto in [25_i64, 200] {
        for second in memory.stats().await.unwrap().frames as i64..upto {
            let sees = ["cat", "cup", "dog", "chair"][second as usize % 4];
            memory.store_frame(frame(remembering::at(second * 60), &[sees], Direction::Ahead)).await.unwrap();
        }
        let mut best = f64::MAX;
        for _ in 0..10 {
            let began = std::time::Instant::now();
            memory.recall(asks("What did you see?", remembering::at(1_000_000))).await.unwrap();
            best = best.min(began.elapsed().as_secs_f64() * 1000.0);
        }
        took.insert(upto, best);
    }
    println!("sampling: {:.1} ms at 25 frames, {:.1} ms at 200", took[&25], took[&200]);
    // Not a timed test of the machine: eight times the frames must not cost eight times as much.
    assert!(took[&200] < took[&25] * 4.0 + 5.0, "{took:?}");
}
