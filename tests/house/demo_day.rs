//! The demo as a newcomer sees it: a whole day on real hearing, the offline brain and the real shard, with a kill -9 at
//! noon.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::weights;

#[test]
fn a_day_with_reachy_is_heard_remembered_and_told_after_the_plug_was_pulled() {
    if !weights::all_are_here() {
        return;
    }
    let project = env!("CARGO_MANIFEST_DIR");
    let folder = tempfile::tempdir().unwrap();
    let script = std::fs::read_to_string(format!("{project}/demo/config.toml")).unwrap();
    let config = script
        .replace("\"day.toml\"", &format!("{:?}", format!("{project}/demo/day.toml")))
        .replace("\"../target/demo/shards\"", "\"memory\"")
        .replace("\"../models/cache\"", &format!("{:?}", weights::folder().display().to_string()));
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_reachy-remembers"))
        .arg("--config")
        .arg(folder.path().join("config.toml"))
        .arg("demo")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let transcript = String::from_utf8(output.stdout).unwrap();
    println!("{transcript}");
    assert!(output.status.success(), "{transcript}\n{}", String::from_utf8_lossy(&output.stderr));
    let (morning, evening) = transcript.split_once("kill -9").expect("the plug was pulled");

    assert!(morning.contains("the window is full"), "the oldest half moved into the memory");
    // Whom it does not know it asks, and after the plug was pulled it knows her still.
    let asked = morning.find("What is your name?").expect("a stranger is asked");
    let met = morning.find("Nice to meet you, Emma").expect("she is met");
    assert!(asked < met, "{morning}");
    assert!(evening.contains("Hello, Emma!") && !morning[..met].contains("Hello, Emma!"), "{evening}");
    assert!(answer_after(evening, "Do you know who I am?").contains("You are Emma."), "{evening}");
    let away = answer_after(evening, "What did you see while I was away?");
    assert!(away.contains("away since today at 11:0") && away.contains("a cat"), "{away}");

    // The pictures that were kept before she was recognised know her by now.
    assert!(away.contains("I saw Emma"), "{away}");

    let just_said = answer_after(morning, "Where am I going in the afternoon?");
    assert!(just_said.contains("just said") && just_said.contains("library"), "{just_said}");
    assert!(answer_after(morning, "nod your head").contains("move(nod)"), "{morning}");
    let seen = answer_after(morning, "What can you see right now?");
    assert!(seen.contains("camera(ahead)") && seen.contains("cup"), "{seen}");

    let about = answer_after(evening, "What did we talk about this morning?");
    assert!(about.contains("nothing named") && about.contains("Reachy  "), "{about}");
    let key = answer_after(evening, "Where did I put the key");
    assert!(key.contains("blue box") && !key.contains("just said"), "{key}");
    let sister = answer_after(evening, "When is my sister Anna coming");
    assert!(sister.contains("Sunday"), "{sister}");
    let piano = answer_after(evening, "about the piano");
    assert!(piano.contains("nothing found"), "a thing that nobody said is not made up: {piano}");
    assert!(began.elapsed() < Duration::from_secs(300), "the day took {:?}", began.elapsed());
}

/// What follows a heard sentence, up to the end of its turn.
fn answer_after<'a>(transcript: &'a str, heard: &str) -> &'a str {
    let from = transcript.find(heard).unwrap_or_else(|| panic!("“{heard}” was not heard in:\n{transcript}"));
    let rest = &transcript[from..];
    &rest[..rest.find(" turn ").unwrap_or(rest.len())]
}
