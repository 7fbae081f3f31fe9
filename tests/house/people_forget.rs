//! Forgetting somebody: in every place, on the disk itself, while the robot lives on, and whenever the power goes.
//!
//! Faces are synthetic, the text embedder is the stand-in of hashed words, the pictures are noise; the engine is the
//! real one. Names are such as stand in no other word.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use reachy_remembers::clock::Clock;
use reachy_remembers::control::{Desk, PersonCard, PersonChange, PersonReport, Request, Response, Reword};
use reachy_remembers::health::Health;
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::journal::{self, Journal};
use reachy_remembers::remember::people::{Change, PeopleSettings};
use reachy_remembers::remember::{Exchange, Frame, Memory, People, Recalled};
use reachy_remembers::robot::Direction;
use reachy_remembers::see::{Detection, told};
use tokio::sync::mpsc;

use crate::people::{self, NOW, shot, shots};
use crate::remembering::{self, at, question};

const NAME: &str = "Xanthippe";

fn said(speaker: Option<&str>, heard: &str, answer: &str, second: i64) -> Exchange {
    Exchange { heard: heard.into(), said: answer.into(), speaker: speaker.map(Into::into), said_at: at(second) }
}

/// Noise that stands for a picture.
fn picture(seed: u64) -> Vec<u8> {
    (0..3000_u64).map(|index| ((seed * 7919 + index * index * 31 + index) % 251) as u8).collect()
}

fn frame(names: &[&str], caption: Option<&str>, second: i64) -> Frame {
    let person = Detection { label: told::PERSON.into(), score: 0.9, place: [0.1, 0.1, 0.5, 0.9] };
    let detections = vec![person; names.len().max(1)];
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Frame {
        seen_at: at(second),
        looked: Direction::Ahead,
        labels: vec![told::PERSON.into()],
        sentence: told::sentence(&told::detected(&detections), Direction::Ahead, &names),
        people: detections.len() as u32,
        detections,
        names,
        caption: caption.map(Into::into),
        jpeg: picture(second as u64),
    }
}

struct House {
    memory: Memory,
    people: People,
    desk: Desk,
}

/// Opens memory and people in `folder`, with nobody's window.
fn open(folder: &Path) -> House {
    let memory = remembering::open(folder);
    let settings = PeopleSettings { lock: Some(memory.lock()), ..people::settings(folder) };
    let people = People::open(settings, &people::model("synthetic"), at(NOW)).unwrap().people;
    let desk = Desk {
        memory: Ok(memory.clone()),
        folder: folder.to_owned(),
        clock: Clock::scripted(at(NOW), TimeZone::UTC),
        health: Arc::new(Health::default()),
        people: Ok(Some(people.clone())),
        window: None,
    };
    House { memory, people, desk }
}

/// Xanthippe and Ben, what they said, and what was seen of them.
async fn live(house: &House) {
    people::enrol(&house.people, NAME, 1).await;
    people::enrol(&house.people, "Ben", 2).await;
    house.memory.store(conversation()).await.unwrap();
    for frame in [
        frame(&[NAME], None, 2001),
        frame(&["Ben", NAME], Some("Ben and Xanthippe wave."), 2002),
        frame(&["Ben"], Some("This is Xanthippe's cup."), 2003),
        frame(&[], None, 2004),
    ] {
        house.memory.store_frame(frame).await.unwrap();
    }
}

fn conversation() -> Vec<Exchange> {
    vec![
        said(Some(NAME), "The key of the bicycle is in the blue box.", "All right.", 1001),
        said(Some(NAME), "I am Xanthippe.", "Hello Xanthippe!", 1002),
        said(Some("Ben"), "Has XANTHIPPE's parcel come?", "Not yet.", 1003),
        said(None, "The soup has carrots.", "Good.", 1004),
    ]
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.clone(), without_holes(&fs::read(&path).unwrap())));
        }
    }
    found
}

/// The bytes of a file without the blocks of zeros, of which the engine's files have many megabytes.
fn without_holes(bytes: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let mut kept = Vec::new();
    for block in bytes.chunks(BLOCK) {
        if block == &[0; BLOCK][..block.len()] {
            kept.push(0);
        } else {
            kept.extend_from_slice(block);
        }
    }
    kept
}

/// The files under `folder` that hold one of these bytes, without regard to case.
fn holding(folder: &Path, needles: &[Vec<u8>]) -> BTreeSet<PathBuf> {
    let small = |bytes: &[u8]| bytes.to_ascii_lowercase();
    let needles: Vec<Vec<u8>> = needles.iter().map(|needle| small(needle)).collect();
    files(folder)
        .into_iter()
        .filter(|(_, bytes)| {
            let bytes = small(bytes);
            needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
        })
        .map(|(path, _)| path)
        .collect()
}

fn name_bytes(name: &str) -> Vec<Vec<u8>> {
    vec![name.as_bytes().to_vec()]
}

/// Three numbers of a shot as the shard's files hold them, and as its log does (CBOR: 0xfa before each, big-endian).
fn face_bytes(shot: &[f32]) -> Vec<Vec<u8>> {
    let length = shot.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let unit: Vec<f32> = shot[10..13].iter().map(|number| (f64::from(*number) / length) as f32).collect();
    let as_stored = unit.iter().flat_map(|number| number.to_le_bytes()).collect();
    let as_logged = unit.iter().flat_map(|number| [[0xfa].as_slice(), &number.to_be_bytes()].concat()).collect();
    vec![as_stored, as_logged]
}

/// A part of a picture as a payload holds it. Payloads are compressed in the segments, and as they are in the log.
fn picture_bytes(second: u64) -> Vec<Vec<u8>> {
    vec![STANDARD.encode(picture(second)).as_bytes()[300..420].to_vec()]
}

async fn forget(desk: &Desk, name: &str, everything: bool) -> PersonReport {
    let change = PersonChange::Forget { name: name.into(), everything };
    match desk.answer(Request::PersonChange { change }).await {
        Response::PersonReport(report) => report,
        other => panic!("{other:?}"),
    }
}

async fn would(desk: &Desk, change: PersonChange) -> PersonReport {
    match desk.answer(Request::PersonWould { change }).await {
        Response::PersonReport(report) => report,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_with_everything_no_file_holds_the_name_the_face_or_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    let needles = [name_bytes(NAME), face_bytes(&shot(1, 0, 0.5)), picture_bytes(2001), picture_bytes(2002)];
    for needle in &needles {
        assert!(!holding(folder.path(), needle).is_empty(), "there is nothing to be forgotten");
    }
    let change = PersonChange::Forget { name: NAME.to_uppercase(), everything: true };
    let promised = would(&house.desk, change).await;
    assert!(!holding(folder.path(), &needles[0]).is_empty(), "only asked, and changed");
    let report = forget(&house.desk, NAME, true).await;
    assert_eq!(promised, report);
    let memory = report.memory;
    assert_eq!((report.shots, memory.exchanges_removed, memory.frames_removed), (Some(5), 2, 2));
    assert_eq!((memory.exchanges_reworded, memory.frames_reworded), (1, 1));
    for needle in &needles {
        assert_eq!(holding(folder.path(), needle), BTreeSet::new());
    }
    // The others are all there, and so is what they are found by.
    assert!(!holding(folder.path(), &face_bytes(&shot(2, 0, 0.5))).is_empty());
    assert!(!holding(folder.path(), &picture_bytes(2003)).is_empty());
    assert_eq!(house.people.nearest(shot(1, 0, 0.5), 5).await.unwrap().len(), 1);
    let words: Vec<_> = house.memory.exchanges(None).await.unwrap().iter().map(Exchange::line).collect();
    assert_eq!(
        words,
        ["Ben: Has somebody's parcel come? Reachy: Not yet.", "Somebody: The soup has carrots. Reachy: Good."]
    );
    // And after the next start.
    drop(house);
    let house = open(folder.path());
    let stats = house.memory.stats().await.unwrap();
    assert_eq!((stats.exchanges, stats.frames, house.people.list().await.unwrap().len()), (2, 2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_without_everything_the_memories_stay_and_are_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    let memory = forget(&house.desk, NAME, false).await.memory;
    assert_eq!((memory.exchanges_unnamed, memory.exchanges_reworded, memory.exchanges_removed), (2, 1, 0));
    assert_eq!((memory.frames_unnamed, memory.frames_reworded, memory.frames_removed), (2, 1, 0));
    assert_eq!(holding(folder.path(), &name_bytes(NAME)), BTreeSet::new());
    let said = house.memory.exchanges(None).await.unwrap();
    assert_eq!(said[1].line(), "Somebody: I am somebody. Reachy: Hello somebody!");
    let seen = house.memory.frames(None).await.unwrap();
    assert_eq!((seen[0].sentence.as_str(), seen[0].names.len()), ("I saw a person.", 0));
    assert_eq!((seen[1].sentence.as_str(), seen[1].names[0].as_str()), ("I saw Ben and another person.", "Ben"));
    assert_eq!(seen[1].caption.as_deref(), Some("Ben and somebody wave."));
    assert_eq!(house.memory.pictures(vec![seen[0].id()]).await.unwrap()[0].jpeg, picture(2001));
    let found = house.memory.recall(question("Where is the key of the bicycle?")).await.unwrap();
    let Recalled::Found { memories } = found else { panic!("{found:?}") };
    assert_eq!(memories[0].exchange.speaker, None);
    let again = house.memory.would(Change::Forget { name: NAME.into(), everything: false, namesake: false }).await;
    assert!(again.unwrap().is_nothing());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captions_first_words_are_gone_too_although_they_were_replaced_before() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    let seen = frame(&["Ben"], Some("Perhaps Xanthippe's cup."), 2001);
    house.memory.store_frame(seen.clone()).await.unwrap();
    house.memory.caption(seen.id(), "A cup.".into()).await.unwrap();
    people::enrol(&house.people, NAME, 1).await;
    assert!(
        holding(folder.path(), &name_bytes(NAME)).iter().any(|path| path.starts_with(folder.path().join("memory")))
    );
    forget(&house.desk, NAME, false).await;
    assert_eq!(holding(folder.path(), &name_bytes(NAME)), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_and_the_typed_lines_lose_the_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    people::enrol(&house.people, NAME, 1).await;
    let (mut journal, _) = Journal::open(folder.path()).unwrap();
    for exchange in conversation() {
        journal.add(&exchange).unwrap();
    }
    drop(journal);
    // A torn last line was never acknowledged, and holds the name all the same.
    let mut file = fs::OpenOptions::new().append(true).open(folder.path().join("window.jsonl")).unwrap();
    file.write_all(b"{\"heard\":\"Xanthip").unwrap();
    fs::write(folder.path().join("typed-lines"), "#V2\nWhere is Xanthippe?\nHello\n").unwrap();
    let report = forget(&house.desk, NAME, false).await;
    assert_eq!((report.window, report.typed_lines), (3, 1));
    assert_eq!(holding(folder.path(), &name_bytes("Xanthip")), BTreeSet::new());
    let left: Vec<_> = journal::peek(folder.path()).iter().map(Exchange::line).collect();
    assert_eq!((left.len(), left[1].as_str()), (4, "Somebody: I am somebody. Reachy: Hello somebody!"));
    assert_eq!(fs::read_to_string(folder.path().join("typed-lines")).unwrap(), "#V2\nWhere is somebody?\nHello\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_conversation_changes_its_window_itself_and_what_it_stored_meanwhile_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut house = open(folder.path());
    live(&house).await;
    let (window, mut changes) = mpsc::channel::<Reword>(1);
    house.desk.window = Some(window);
    let memory = house.memory.clone();
    let conversation = tokio::spawn(async move {
        let mut asked = 0;
        while let Some(Reword { change, done }) = changes.recv().await {
            asked += 1;
            assert_eq!(change.name(), NAME);
            if asked == 2 {
                // Said while the shard was built anew, and left the window before it was asked again.
                memory.store(vec![said(Some(NAME), "One thing more.", "Yes?", 1900)]).await.unwrap();
            }
            done.send(Ok(usize::from(asked == 1))).unwrap();
        }
        asked
    });
    let report = forget(&house.desk, NAME, false).await;
    assert_eq!((report.window, report.memory.exchanges_unnamed), (1, 3));
    assert_eq!(holding(folder.path(), &name_bytes(NAME)), BTreeSet::new());
    drop(house);
    assert!(conversation.await.unwrap() >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_and_stores_go_on_while_somebody_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    let many =
        (0..300).map(|second| said(Some(NAME), &format!("Row {second} of the garden has beans."), "", 3000 + second));
    house.memory.store(many.collect()).await.unwrap();
    let memory = house.memory.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let busy = tokio::spawn(async move {
        let mut stored = 0_i64;
        loop {
            let found = memory.recall(question("soup carrots")).await.unwrap();
            assert!(matches!(found, Recalled::Found { .. }), "{found:?}");
            memory.store(vec![said(None, &format!("Meanwhile, number {stored}."), "", 5000 + stored)]).await.unwrap();
            stored += 1;
            if stopped.try_recv().is_ok() {
                return stored;
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let report = forget(&house.desk, NAME, true).await;
    assert_eq!(report.memory.exchanges_removed, 302);
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    let stored = busy.await.unwrap();
    assert!(stored > 1);
    assert_eq!(house.memory.stats().await.unwrap().exchanges as i64, 2 + stored);
    drop(house);
    assert_eq!(open(folder.path()).memory.stats().await.unwrap().exchanges as i64, 2 + stored);
}

/// The parent starts itself again, which forgets, kills it at another moment each time, and looks at what is left.
#[tokio::test(flavor = "multi_thread")]
async fn kill_9_while_somebody_is_forgotten_leaves_all_or_nothing_and_the_same_command_completes_it() {
    const FOLDER: &str = "REACHY_TEST_FORGET_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let house = open(Path::new(&folder));
        println!("\nbegins");
        forget(&house.desk, NAME, true).await;
        println!("\ndone");
        return;
    }
    let (mut old, mut new) = (0, 0);
    for wait in [0, 20, 45, 80, 120, 180, 260] {
        let folder = tempfile::tempdir().unwrap();
        let house = open(folder.path());
        live(&house).await;
        let many = (0..200).map(|second| said(Some("Ben"), &format!("Row {second} has beans."), "", 3000 + second));
        house.memory.store(many.collect()).await.unwrap();
        drop(house);
        let mut forgetting = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "people_forget::kill_9_while_somebody_is_forgotten_leaves_all_or_nothing_and_the_same_command_completes_it",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(forgetting.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.by_ref().any(|line| line == "begins"));
        std::thread::sleep(Duration::from_millis(wait));
        forgetting.kill().unwrap();
        forgetting.wait().unwrap();
        let memory = Memory::open(remembering::settings(folder.path()), Arc::new(StandIn::new()), at(NOW)).unwrap();
        let exchanges = memory.memory.stats().await.unwrap().exchanges;
        match exchanges {
            204 => old += 1,
            202 => new += 1,
            other => panic!("{other} exchanges after {wait} ms"),
        }
        drop(memory);
        let house = open(folder.path());
        let change = PersonChange::Forget { name: NAME.into(), everything: true };
        match house.desk.answer(Request::PersonChange { change }).await {
            Response::PersonReport(_) => {}
            other => panic!("{other:?}"),
        }
        for needle in [name_bytes(NAME), face_bytes(&shot(1, 0, 0.5)), picture_bytes(2001)] {
            assert_eq!(holding(folder.path(), &needle), BTreeSet::new(), "after {wait} ms");
        }
        assert_eq!(house.memory.stats().await.unwrap().exchanges, 202);
        assert_eq!(house.people.list().await.unwrap().len(), 1);
    }
    println!("{old} times the old shard was left, {new} times the new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_the_new_name_stands_everywhere_and_the_face_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    house.memory.store(vec![said(Some("Ben"), "Good night.", "Good night, Ben.", 1005)]).await.unwrap();
    let change = PersonChange::Rename { name: "ben".into(), to: " Zebulon ".into() };
    let Response::PersonReport(report) = house.desk.answer(Request::PersonChange { change }).await else { panic!() };
    assert_eq!((report.name.as_str(), report.new_name.as_deref()), ("Ben", Some("Zebulon")));
    assert_eq!((report.memory.exchanges_unnamed, report.memory.frames_unnamed), (2, 2));
    let last = house.memory.exchanges(None).await.unwrap().pop().unwrap();
    assert_eq!(last.line(), "Zebulon: Good night. Reachy: Good night, Zebulon.");
    let seen = &house.memory.frames(None).await.unwrap()[1];
    assert_eq!(seen.sentence, format!("I saw Zebulon and {NAME}."));
    assert_eq!(seen.caption.as_deref(), Some("Zebulon and Xanthippe wave."));
    let Response::Person(PersonCard { person, exchanges, frames, .. }) =
        house.desk.answer(Request::PersonShow { name: "ZEBULON".into() }).await
    else {
        panic!()
    };
    assert_eq!((person.shots, exchanges, frames), (5, Some(2), Some(2)));
    assert_eq!(holding(&folder.path().join("people"), &name_bytes("Ben")), BTreeSet::new());
    assert_eq!(house.people.nearest(shot(2, 0, 0.5), 1).await.unwrap()[0].name, "Zebulon");
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_everything_of_the_other_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    let change = PersonChange::Merge { keep: "Ben".into(), other: NAME.into() };
    let Response::PersonReport(report) = house.desk.answer(Request::PersonChange { change }).await else { panic!() };
    assert_eq!((report.shots, report.left_out), (Some(5), 0));
    let people = house.people.list().await.unwrap();
    assert_eq!((people.len(), people[0].name.as_str(), people[0].shots), (1, "Ben", 10));
    let said = house.memory.exchanges(None).await.unwrap();
    assert!(said[..3].iter().all(|exchange| exchange.speaker.as_deref() == Some("Ben")), "{said:?}");
    assert_eq!(house.memory.frames(None).await.unwrap()[1].names, ["Ben"]);
    assert_eq!(holding(&folder.path().join("people"), &name_bytes(NAME)), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_one_of_two_annas_leaves_the_other_hers() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    people::enrol(&house.people, "Anna", 1).await;
    people::enrol(&house.people, "Anna", 2).await;
    house
        .memory
        .store(vec![
            said(Some("Anna"), "I am Anna.", "Hello Anna.", 1),
            said(Some("Anna 2"), "I am Anna.", "Hello.", 2),
        ])
        .await
        .unwrap();
    forget(&house.desk, "Anna", false).await;
    let lines: Vec<_> = house.memory.exchanges(None).await.unwrap().iter().map(Exchange::line).collect();
    assert_eq!(lines, ["Somebody: I am somebody. Reachy: Hello somebody.", "Anna 2: I am Anna. Reachy: Hello."]);
    assert_eq!(house.people.list().await.unwrap()[0].name, "Anna 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_without_a_name_become_theirs_who_said_who_they_are_and_never_anothers() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    let (unnamed, bens) = (said(None, "The soup has carrots.", "Good.", 1), said(Some("Ben"), "I like tea.", "", 2));
    house.memory.store(vec![unnamed.clone(), bens.clone()]).await.unwrap();
    let gone = said(None, "Never stored.", "", 3);
    let ids = vec![unnamed.id(), bens.id(), gone.id()];
    assert_eq!(house.memory.name_speaker(ids.clone(), "Anna").await.unwrap(), 1);
    assert_eq!(house.memory.name_speaker(ids, "Clara").await.unwrap(), 0);
    let lines: Vec<_> = house.memory.exchanges(None).await.unwrap().iter().map(Exchange::line).collect();
    assert_eq!(lines, ["Anna: The soup has carrots. Reachy: Good.", "Ben: I like tea."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_is_said_with_the_names_near_to_it_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let house = open(folder.path());
    live(&house).await;
    for request in [
        Request::PersonShow { name: "Xantippe".into() },
        Request::PersonWould { change: PersonChange::Forget { name: "Xantippe".into(), everything: false } },
        Request::PersonChange { change: PersonChange::Rename { name: "Xantippe".into(), to: "Clara".into() } },
    ] {
        let Response::CouldNot { why } = house.desk.answer(request).await else { panic!() };
        assert!(why.contains("nobody called Xantippe is known; did you mean Xanthippe?"), "{why}");
    }
    let taken = PersonChange::Rename { name: "Ben".into(), to: "xanthippe".into() };
    let Response::CouldNot { why } = house.desk.answer(Request::PersonChange { change: taken }).await else { panic!() };
    assert!(why.contains("called Xanthippe already") && why.contains("people merge"), "{why}");
    let same = PersonChange::Merge { keep: "Ben".into(), other: "ben".into() };
    assert!(matches!(house.desk.answer(Request::PersonWould { change: same }).await, Response::CouldNot { .. }));
    assert_eq!(house.memory.exchanges(None).await.unwrap(), conversation());
}

/// The program with a config whose memory is `folder`, and nobody at the keyboard.
fn program(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let config = folder.join("config.toml");
    let models = crate::weights::folder();
    let text = format!(
        "[remember]\nfolder = \"shards\"\nmin_free_mb = 10\n[models]\nfolder = {:?}\n",
        models.display().to_string()
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_reachy-remembers"));
    command.arg("--config").arg(config).arg("people").args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_asks_before_it_forgets_and_says_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let nobody = program(folder.path(), &["list"]);
    assert_eq!((nobody.status.code(), text(&nobody.stdout).trim()), (Some(0), "Nobody was introduced yet."));
    let people = people::open(&shards);
    people::enrol(&people, NAME, 1).await;
    people.enrol("Ben", shots(2, 5), at(NOW), at(NOW)).await.unwrap();
    drop(people);
    let listed = program(folder.path(), &["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[1]["name"], &listed[1]["shots"]), (&"Ben".into(), &NAME.into(), &5.into()));
    let shown = program(folder.path(), &["show", "xanthipe"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(text(&shown.stderr).contains("did you mean Xanthippe?"), "{}", text(&shown.stderr));
    for arguments in [vec!["forget", NAME], vec!["forget", NAME, "--everything"], vec!["merge", "Ben", NAME]] {
        let refused = program(folder.path(), &arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("--yes"), "{}", text(&refused.stderr));
    }
    assert_eq!(program(folder.path(), &["forget"]).status.code(), Some(2));
    if !crate::weights::all_are_here() {
        return;
    }
    let shown = program(folder.path(), &["show", NAME, "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["exchanges"], &shown["person"]["shots"]), (&0.into(), &5.into()));
    let forgotten = program(folder.path(), &["forget", NAME, "--yes"]);
    let (out, err) = (text(&forgotten.stdout), text(&forgotten.stderr));
    assert_eq!(forgotten.status.code(), Some(0), "{err}");
    assert!(
        out.contains("will be forgotten")
            && out.contains("is forgotten")
            && out.contains("shots of the face: 5 were removed"),
        "{out}"
    );
    assert_eq!(holding(&shards, &name_bytes(NAME)), BTreeSet::new());
    assert_eq!(program(folder.path(), &["forget", NAME, "--yes"]).status.code(), Some(1));
}
