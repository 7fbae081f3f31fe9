//! The people on disk: who was introduced is known again, nobody becomes somebody else, what is damaged is set aside.
//!
//! The faces are synthetic: a seeded direction for each person, and shots scattered around it. The engine is the real one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reachy_remembers::remember::embed::Identity;
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::people::{
    FACE_DIMENSION, Learned, MOST_SHOTS, OpenedPeople, PeopleError, PeopleOpenError, PeopleSettings,
};
use reachy_remembers::remember::{Memory, People};

use crate::remembering::{self, at};

pub const NOW: i64 = 1_900_000_000;

/// xorshift64*: the same faces in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn number(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
        bits as f32 / (1_u32 << 23) as f32 - 1.0
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..FACE_DIMENSION).map(|_| self.number()).collect()
    }
}

/// A shot of the person `who`: their direction, and as much of another one as `scatter` says.
pub fn shot(who: u64, number: u64, scatter: f32) -> Vec<f32> {
    let (face, other) = (Dice::new(who).vector(), Dice::new(who * 1000 + number + 7).vector());
    face.iter().zip(other).map(|(face, other)| face + scatter * other).collect()
}

pub fn shots(who: u64, count: u64) -> Vec<Vec<f32>> {
    (0..count).map(|number| shot(who, number, 0.5)).collect()
}

pub fn model(name: &str) -> Identity {
    Identity { model: name.into(), weights: "0123456789abcdef".into(), preprocessing: 1, dimension: FACE_DIMENSION }
}

pub fn settings(folder: &Path) -> PeopleSettings {
    PeopleSettings::new(folder.to_owned())
}

pub fn open(folder: &Path) -> People {
    let OpenedPeople { people, notes } = People::open(settings(folder), &model("synthetic"), at(NOW)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    people
}

pub async fn enrol(people: &People, name: &str, who: u64) -> reachy_remembers::remember::people::Person {
    people.enrol(name, shots(who, 5), at(NOW - 100), at(NOW)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_introduced_is_known_again_after_a_restart_and_a_stranger_is_like_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let anna = enrol(&people, "Anna", 1).await;
    enrol(&people, "Ben", 2).await;
    assert_eq!((anna.met_at, anna.taught_at, anna.last_seen_at, anna.shots), (at(NOW - 100), at(NOW), at(NOW), 5));
    drop(people);
    let people = open(folder.path());
    let likenesses = people.nearest(shot(1, 99, 0.5), 5).await.unwrap();
    assert_eq!((likenesses[0].person, likenesses[0].name.as_str()), (anna.id, "Anna"));
    assert!(likenesses[0].score > 0.7 && likenesses[1].score < 0.3, "{likenesses:?}");
    let stranger = people.nearest(shot(3, 0, 0.5), 1).await.unwrap();
    assert!(stranger[0].score < 0.35, "{stranger:?}");
    assert_eq!(people.get(anna.id).await.unwrap(), Some(anna.clone()));
    assert_eq!(people.find(" anna ").await.unwrap(), Some(anna));
    assert!(people.nearest(shot(1, 99, 0.5), 0).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_shot_counts_whatever_the_others_are_and_however_long_the_vector_is() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let profile: Vec<f32> = shot(9, 0, 0.0).iter().map(|number| number * 30.0).collect();
    people.enrol("Anna", vec![shot(1, 0, 0.0), profile.clone()], at(NOW), at(NOW)).await.unwrap();
    for face in [shot(1, 0, 0.0), profile] {
        let found = people.nearest(face, 1).await.unwrap();
        assert!((found[0].score - 1.0).abs() < 1e-3, "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_anna_is_anna_2_and_not_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let first = enrol(&people, "Anna", 1).await;
    let second = enrol(&people, "ANNA", 2).await;
    assert_eq!((second.name.as_str(), second.id == first.id), ("ANNA 2", false));
    assert!(matches!(people.rename(second.id, "anna").await, Err(PeopleError::NameTaken { .. })));
    let names: Vec<_> = people.list().await.unwrap().into_iter().map(|person| person.name).collect();
    assert_eq!(names, ["Anna", "ANNA 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pose_is_learned_into_somebody_when_another_is_nearer() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let (anna, ben) = (enrol(&people, "Anna", 1).await, enrol(&people, "Ben", 2).await);
    let before = people.nearest(shot(2, 50, 0.5), 2).await.unwrap();
    let Learned::NearerToAnother { other, own } = people.learn_pose(anna.id, shot(2, 50, 0.5)).await.unwrap() else {
        panic!("learned somebody else's face")
    };
    assert!(other.person == ben.id && other.score > own, "{other:?} {own}");
    assert_eq!(people.nearest(shot(2, 50, 0.5), 2).await.unwrap(), before);
    assert_eq!(people.get(anna.id).await.unwrap().unwrap().shots, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn learned_poses_are_capped_and_the_shots_of_the_introduction_stay() {
    let folder = tempfile::tempdir().unwrap();
    let people =
        People::open(PeopleSettings { most_poses: 2, ..settings(folder.path()) }, &model("synthetic"), at(NOW))
            .unwrap()
            .people;
    let anna = enrol(&people, "Anna", 1).await;
    assert!(
        matches!(people.learn_pose(anna.id, shot(1, 0, 0.5)).await.unwrap(), Learned::TooAlike { score } if score > 0.99)
    );
    let pose = |number| shot(1, number, 1.5);
    assert_eq!(people.learn_pose(anna.id, pose(60)).await.unwrap(), Learned::Stored { poses: 1 });
    assert_eq!(people.learn_pose(anna.id, pose(61)).await.unwrap(), Learned::Stored { poses: 2 });
    assert_eq!(people.learn_pose(anna.id, pose(62)).await.unwrap(), Learned::Full { poses: 2 });
    // Another introduction goes before the poses, and displaces none of them.
    let again = people.add_shots(anna.id, vec![shot(1, 70, 0.5)], at(NOW + 10)).await.unwrap();
    assert_eq!((again.shots, again.taught_at), (8, at(NOW + 10)));
    for face in [shot(1, 0, 0.5), shot(1, 70, 0.5), pose(60), pose(61)] {
        assert!(people.nearest(face, 1).await.unwrap()[0].score > 0.999);
    }
    assert_eq!(people.learn_pose(anna.id, pose(63)).await.unwrap(), Learned::Full { poses: 2 });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_face_is_never_stored_nor_compared() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let anna = enrol(&people, "Anna", 1).await;
    let mut no_number = shot(1, 1, 0.5);
    no_number[3] = f32::NAN;
    for bad in [Vec::new(), vec![0.0; FACE_DIMENSION], vec![1.0; 64], no_number] {
        let enrolled = people.enrol("Ben", vec![shot(2, 0, 0.5), bad.clone()], at(NOW), at(NOW)).await;
        assert!(matches!(enrolled, Err(PeopleError::Shot { .. })), "{enrolled:?}");
        assert!(matches!(people.nearest(bad.clone(), 1).await, Err(PeopleError::Shot { .. })));
        assert!(matches!(people.learn_pose(anna.id, bad.clone()).await, Err(PeopleError::Shot { .. })));
        assert!(matches!(people.add_shots(anna.id, vec![bad], at(NOW)).await, Err(PeopleError::Shot { .. })));
    }
    assert!(matches!(people.enrol("Ben", Vec::new(), at(NOW), at(NOW)).await, Err(PeopleError::Shot { .. })));
    assert!(matches!(people.enrol("  ", shots(2, 5), at(NOW), at(NOW)).await, Err(PeopleError::BadName { .. })));
    let many = shots(2, MOST_SHOTS as u64 + 1);
    assert!(matches!(people.enrol("Ben", many, at(NOW), at(NOW)).await, Err(PeopleError::TooManyShots { .. })));
    assert_eq!(people.list().await.unwrap(), [anna]);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_seen_is_told_at_once_and_written_at_most_once_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let anna = enrol(&people, "Anna", 1).await;
    let last_seen = async |people: &People| people.get(anna.id).await.unwrap().unwrap().last_seen_at;
    people.seen(anna.id, at(NOW + 30)).await.unwrap();
    people.seen(anna.id, at(NOW + 20)).await.unwrap();
    assert_eq!(last_seen(&people).await, at(NOW + 30));
    drop(people);
    let people = open(folder.path());
    assert_eq!(last_seen(&people).await, at(NOW), "thirty seconds were not worth a write");
    people.seen(anna.id, at(NOW + 61)).await.unwrap();
    people.seen(anna.id, at(NOW + 100)).await.unwrap();
    drop(people);
    let people = open(folder.path());
    assert_eq!(last_seen(&people).await, at(NOW + 61));
    people.seen(anna.id, at(NOW + 110)).await.unwrap();
    people.flush().await.unwrap();
    drop(people);
    let people = open(folder.path());
    assert_eq!(last_seen(&people).await, at(NOW + 110), "the end of a visit is written");
    people.forget(anna.id).await.unwrap();
    assert!(matches!(people.seen(anna.id, at(NOW + 500)).await, Err(PeopleError::Unknown)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_are_one_keep_all_shots_and_the_first_meeting() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let anna = people.enrol("Anna", shots(1, 30), at(500), at(1000)).await.unwrap();
    let annie = people.enrol("Annie", shots(2, 20), at(100), at(2000)).await.unwrap();
    people.learn_pose(annie.id, shot(2, 60, 1.5)).await.unwrap();
    people.seen(annie.id, at(2030)).await.unwrap();
    let merged = people.merge(anna.id, annie.id).await.unwrap();
    assert_eq!((merged.gone.as_str(), merged.left_out), ("Annie", 10));
    let person = &merged.person;
    assert_eq!((person.name.as_str(), person.shots), ("Anna", MOST_SHOTS + 1));
    assert_eq!((person.met_at, person.taught_at, person.last_seen_at), (at(100), at(2000), at(2030)));
    assert_eq!(people.list().await.unwrap(), std::slice::from_ref(&merged.person));
    for face in [shot(1, 29, 0.5), shot(2, 0, 0.5), shot(2, 60, 1.5)] {
        let found = people.nearest(face, 1).await.unwrap();
        assert!(found[0].person == anna.id && found[0].score > 0.999, "{found:?}");
    }
    drop(people);
    assert_eq!(open(folder.path()).list().await.unwrap(), [merged.person]);
}

/// Every file under a folder with its bytes, but the lock's, whose content is the process that holds it.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn another_face_model_is_refused_with_what_to_do_and_the_shard_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    enrol(&people, "Anna", 1).await;
    drop(people);
    let shard = folder.path().join("people");
    let before = contents(&shard);
    let Err(refused) = People::open(settings(folder.path()), &model("another"), at(NOW)) else { panic!("opened") };
    assert!(matches!(refused, PeopleOpenError::OtherFaceModel { .. }));
    let words = refused.to_string();
    for needed in ["synthetic", "another", "[models]", "introduce everybody anew"] {
        assert!(words.contains(needed), "{words}");
    }
    assert!(contents(&shard) == before, "the shard was changed");
    let as_it_is = People::open_as_they_are(settings(folder.path()), at(NOW)).unwrap().unwrap();
    assert_eq!(as_it_is.people.list().await.unwrap().len(), 1);
    let small = Identity { dimension: 64, ..model("synthetic") };
    let refused = People::open(settings(&folder.path().join("elsewhere")), &small, at(NOW)).err().unwrap();
    assert!(matches!(refused, PeopleOpenError::Dimension { got: 64 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_shard_is_set_aside_whole_and_everybody_is_a_stranger_then() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    enrol(&people, "Anna", 1).await;
    drop(people);
    fs::write(folder.path().join("people/edge_config.json"), b"{ this was a config").unwrap();
    let OpenedPeople { people, notes } = People::open(settings(folder.path()), &model("synthetic"), at(NOW)).unwrap();
    assert!(notes[0].contains("set aside") && notes[0].contains("introduced again"), "{notes:?}");
    assert!(people.nearest(shot(1, 0, 0.5), 3).await.unwrap().is_empty());
    enrol(&people, "Anna", 1).await;
    let aside = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with("people.damaged-20"))
        .expect("the damaged shard is still there");
    assert_eq!(fs::read(folder.path().join(aside).join("edge_config.json")).unwrap(), b"{ this was a config");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_who_are_missing_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    enrol(&people, "Anna", 1).await;
    drop(people);
    fs::write(folder.path().join("people/count.json"), br#"{"people":4}"#).unwrap();
    let opened = People::open(settings(folder.path()), &model("synthetic"), at(NOW)).unwrap();
    assert!(
        opened.notes[0].contains("should know 4") && opened.notes[0].contains("3 are missing"),
        "{:?}",
        opened.notes
    );
    drop(opened);
    fs::write(folder.path().join("people/count.json"), b"\xff").unwrap();
    let opened = People::open(settings(folder.path()), &model("synthetic"), at(NOW)).unwrap();
    assert!(opened.notes[0].contains("not known"), "{:?}", opened.notes);
    assert_eq!(opened.people.list().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_is_one_processs_and_its_lock_serves_both_shards() {
    let folder = tempfile::tempdir().unwrap();
    let memory: Memory = remembering::open(folder.path());
    let Err(refused) = People::open(settings(folder.path()), &model("synthetic"), at(NOW)) else { panic!("opened") };
    assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
    let shared = PeopleSettings { lock: Some(memory.lock()), ..settings(folder.path()) };
    let people = People::open(shared, &model("synthetic"), at(NOW)).unwrap().people;
    enrol(&people, "Anna", 1).await;
    drop(memory);
    // The people still hold it.
    assert!(Memory::open(remembering::settings(folder.path()), Arc::new(StandIn::new()), at(NOW)).is_err());
    drop(people);
    remembering::open(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nobody_is_stored_and_nobody_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let anna = enrol(&people, "Anna", 1).await;
    drop(people);
    let full = PeopleSettings { min_free_bytes: u64::MAX / 2, ..settings(folder.path()) };
    let Err(refused) = People::open(full, &model("synthetic"), at(NOW)) else { panic!("opened") };
    assert!(refused.to_string().contains("free some space"), "{refused}");
    assert_eq!(open(folder.path()).list().await.unwrap(), [anna]);
}

/// The parent starts itself again, which introduces people, kills it in mid-work, and counts.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_introduced_is_there_after_kill_9() {
    const FOLDER: &str = "REACHY_TEST_PEOPLE_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let people = open(Path::new(&folder));
        for who in 1..900 {
            let person = enrol(&people, &format!("Person{}", letters(who)), who).await;
            people.learn_pose(person.id, shot(who, 60, 1.5)).await.unwrap();
            println!("\nacknowledged {who}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "people::who_was_introduced_is_there_after_kill_9", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let acknowledged = |line: String| line.strip_prefix("acknowledged ").and_then(|number| number.parse::<u64>().ok());
    let mut last = lines.by_ref().filter_map(acknowledged).nth(12).expect("the writer writes");
    writer.kill().unwrap();
    writer.wait().unwrap();
    last = lines.filter_map(acknowledged).last().unwrap_or(last);
    let people = open(folder.path());
    assert!(people.list().await.unwrap().len() as u64 >= last);
    for who in 1..=last {
        let found = people.nearest(shot(who, 60, 1.5), 1).await.unwrap();
        assert_eq!(found[0].name, format!("Person{}", letters(who)));
        assert!(found[0].score > 0.999, "the pose of person {who} is gone: {found:?}");
    }
}

fn letters(number: u64) -> String {
    number.to_string().bytes().map(|digit| (b'a' + digit - b'0') as char).collect()
}

/// Prints the figure that [`reachy_remembers::remember::people::MOST_PEOPLE`] was chosen by.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement that needs a quiet machine; `make measure` runs it"]
async fn a_lookup_among_1000_people_of_20_shots_takes_under_20_ms() {
    let folder = tempfile::tempdir().unwrap();
    let people = open(folder.path());
    let began = Instant::now();
    for who in 1..=1000 {
        people.enrol("Person", shots(who, 20), at(NOW), at(NOW)).await.unwrap();
    }
    println!("1000 introductions: {:.1?}", began.elapsed());
    let refused = people.enrol("One more", shots(2000, 20), at(NOW), at(NOW)).await;
    assert!(matches!(refused, Err(PeopleError::TooMany { most: 1000 })));
    let mut took: Vec<Duration> = Vec::new();
    for who in 1..=200 {
        let face = shot(who * 5, 90, 0.5);
        let began = Instant::now();
        let found = people.nearest(face, 3).await.unwrap();
        took.push(began.elapsed());
        assert!(found[0].score > 0.7);
    }
    took.sort();
    println!("a lookup: {:.2?} median, {:.2?} at 99 of 100", took[100], took[198]);
    assert!(took[100] < Duration::from_millis(20), "{:?}", took[100]);
    let began = Instant::now();
    people.forget(people.list().await.unwrap()[0].id).await.unwrap();
    println!("forgetting one of them: {:.1?}", began.elapsed());
}
