//! Names and numbers are found by their words where likeness alone would miss them, through the real engine; the embedder
//! is the stand-in unless a test says otherwise.

use std::sync::Arc;

use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::store::Opened;
use reachy_remembers::remember::{Memory, Query, Recalled, Settings, TimeRange};

use crate::remembering::{at, exchange, question, settings};

/// A memory whose gate nothing passes by likeness.
fn by_words_only(folder: &std::path::Path) -> Memory {
    let settings = Settings { exchange_gate: 0.99, ..settings(folder) };
    let Opened { memory, notes } = Memory::open(settings, Arc::new(StandIn::new()), at(0)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    memory
}

async fn told() -> (tempfile::TempDir, Memory) {
    let folder = tempfile::tempdir().unwrap();
    let memory = by_words_only(folder.path());
    let said = [
        "The meeting was moved to room 4127.",
        "The eye clinic is in room 212.",
        "Doctor Zelenka looks at my eyes in November.",
        "My tea has honey in it.",
        "We bought a red tent for Norway.",
    ];
    memory.store(said.iter().zip(100..).map(|(text, second)| exchange(text, second)).collect()).await.unwrap();
    (folder, memory)
}

fn heard(recalled: &Recalled) -> Vec<&str> {
    match recalled {
        Recalled::Found { memories } => memories.iter().map(|memory| memory.exchange.heard.as_str()).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn room_4127_and_doctor_zelenka_are_found_by_their_words() {
    let (_folder, memory) = told().await;
    for (asks, finds) in [
        ("What happens in room 4127?", "The meeting was moved to room 4127."),
        ("What about Zelenka?", "Doctor Zelenka looks at my eyes in November."),
    ] {
        let recalled = memory.recall(question(asks)).await.unwrap();
        assert_eq!(heard(&recalled), [finds], "{asks}");
        let Recalled::Found { memories } = &recalled else { panic!("{recalled:?}") };
        assert!(memories[0].score.unwrap() < 0.99, "the score that is shown is the cosine");
    }
    for asks in ["What happens in room 5011?", "What does Ingrid say?", "Can you help me with it?"] {
        let recalled = memory.recall(question(asks)).await.unwrap();
        assert!(matches!(recalled, Recalled::Nothing { searched: 5, best: Some(_) }), "{asks}: {recalled:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_keep_to_the_time_that_was_asked_about() {
    let (_folder, memory) = told().await;
    let early = Some(TimeRange { from: at(0), to: at(99) });
    let recalled = memory.recall(Query { when: early, ..question("What happens in room 4127?") }).await.unwrap();
    assert_eq!(recalled, Recalled::Nothing { searched: 0, best: None });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_said_is_found_by_its_words_too() {
    let (_folder, memory) = told().await;
    let just_said = vec![exchange("The locker at the pool is number 58.", 900), exchange("It rains.", 901)];
    let recalled = memory.recall(Query { just_said, ..question("Which locker is number 58?") }).await.unwrap();
    assert_eq!(heard(&recalled), ["The locker at the pool is number 58."]);
    let Recalled::Found { memories } = &recalled else { panic!("{recalled:?}") };
    assert!(memories[0].just_said);
}
