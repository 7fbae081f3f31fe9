use std::path::{Path, PathBuf};

use super::*;
use crate::remember::embed::stand_in::StandIn;
use crate::remember::embed::{BertEmbedder, BertFiles, Identity, Pooling};
use crate::remember::{Exchange, Recalled, Remembered};
use crate::robot::{Direction, Gesture};
use crate::think::tools::About;

/// Monday, 2026-11-30, 09:30 in Berlin.
fn now() -> Timestamp {
    "2026-11-30T08:30:00Z".parse().expect("a time")
}

fn zone() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("the zone")
}

fn minilm() -> Option<Arc<dyn EmbedText>> {
    let folder = std::env::var_os("REACHY_MODELS_FOLDER")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("models/cache"), PathBuf::from)
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
    let identity =
        Identity { model: "all-minilm-l6-v2".into(), weights: "not hashed".into(), preprocessing: 1, dimension: 384 };
    Some(Arc::new(BertEmbedder::load(&files, Pooling::Mean, "", true, 256, identity).expect("loads")))
}

fn stand_in() -> OfflineBrain {
    OfflineBrain::new(Arc::new(StandIn::new()), zone()).expect("learns its examples")
}

fn user(text: &str, speaker: Option<&str>) -> Message {
    Message::User { text: text.into(), speaker: speaker.map(Into::into), at: now() }
}

fn request(messages: Vec<Message>) -> Request {
    Request { system: String::new(), messages, tools_allowed: true, now: now() }
}

/// The one delta that the brain gives.
fn delta(brain: &OfflineBrain, request: &Request) -> Delta {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (sender, mut receiver) = mpsc::channel(4);
        brain.generate(request, sender).await.expect("an answer");
        let delta = receiver.recv().await.expect("a delta");
        assert_eq!(receiver.recv().await, None, "one delta a round");
        delta
    })
}

fn spoken(brain: &OfflineBrain, request: &Request) -> String {
    match delta(brain, request) {
        Delta::Text(text) => text,
        other => panic!("words, not {other:?}"),
    }
}

/// Each example in turn is taken out and asked; with the rules and without.
#[test]
fn rules_are_worth_more_than_the_nearest_example_alone() {
    let Some(embedder) = minilm() else { return };
    let brain = OfflineBrain::new(embedder, zone()).expect("learns its examples");
    let examples: BTreeMap<String, Vec<String>> = toml::from_str(EXAMPLES).expect("examples");
    let texts: Vec<&String> = examples.values().flatten().collect();
    let (mut with, mut alone) = (0, 0);
    for (place, text) in texts.iter().enumerate() {
        let sentence = Sentence::that_asks(text);
        let own = &brain.inner.vectors[place];
        let others = || (0..texts.len()).filter(|other| *other != place);
        let cosines: Vec<f32> =
            others().map(|other| brain.inner.vectors[other].iter().zip(own).map(|(a, b)| a * b).sum()).collect();
        let kinds: Vec<Kind> = others().map(|other| brain.inner.kinds[other]).collect();
        let likeness = Likeness::of(&cosines, &kinds);
        let past_time = when::find_in(text, &brain.inner.here(now())).is_some();
        let right = |choice: Choice| {
            matches!(
                (brain.inner.kinds[place], choice),
                (Kind::Camera, Choice::Camera(_)) | (Kind::Move, Choice::Move(_)) | (Kind::None, Choice::Words)
            ) || (matches!(choice, Choice::Remember(_))
                && !matches!(brain.inner.kinds[place], Kind::Camera | Kind::Move | Kind::None))
        };
        let choice = choose::choose(&sentence, &likeness, past_time);
        with += usize::from(right(choice));
        alone += usize::from(right(choose::nearest_alone(&sentence, &likeness)));
        if !right(choice) {
            eprintln!("left out: {:?} | {text} | {choice:?}", brain.inner.kinds[place]);
        }
    }
    eprintln!("left out in turn: {with} of {} with the rules, {alone} without", texts.len());
    assert!(with * 100 >= texts.len() * 90 && with > alone);
}

#[test]
fn a_statement_never_comes_to_a_tool_whatever_it_is_about() {
    let brain = stand_in();
    for heard in [
        "My sister Anna is coming on Sunday.",
        "the key of the bicycle is in the blue box",
        "I saw a fox yesterday.",
        "Paul told me about a film",
        "Remember that the bins go out on Tuesday.",
        "Do not forget that I see the dentist at nine.",
        "Good morning, Reachy. I looked for you.",
        "I am happy today.",
        "3.5 kilos of apples are in the kitchen",
    ] {
        assert_eq!(brain.tool_for(heard, now()).expect("a choice"), None, "{heard}");
    }
}

#[test]
fn gestures_and_directions_are_read_from_the_words() {
    let brain = stand_in();
    for (heard, gesture) in [
        ("Nod, please.", Gesture::Nod),
        ("shake your head", Gesture::Shake),
        ("hey reachy can you dance", Gesture::Dance),
        ("Show me that you are happy.", Gesture::Happy),
        ("Look to your left", Gesture::LookLeft),
        ("Turn your head right now to the left!", Gesture::LookLeft),
        ("look straight ahead", Gesture::LookAhead),
        ("Say no with your head", Gesture::Shake),
    ] {
        assert_eq!(brain.tool_for(heard, now()).expect("a choice"), Some(Tool::Move { gesture }), "{heard}");
    }
    for heard in ["Are you happy?", "Why are you sad?", "Do you like dancing?"] {
        let tool = brain.tool_for(heard, now()).expect("a choice");
        assert!(!matches!(tool, Some(Tool::Move { .. })), "{heard}: {tool:?}");
    }
}

#[test]
fn a_look_goes_where_the_words_point() {
    let Some(embedder) = minilm() else { return };
    let brain = OfflineBrain::new(embedder, zone()).expect("learns its examples");
    for (heard, direction) in [
        ("What do you see on your left?", Direction::Left),
        ("Look to the right and tell me what is there", Direction::Right),
        ("What do you see right now?", Direction::Ahead),
    ] {
        assert_eq!(brain.tool_for(heard, now()).expect("a choice"), Some(Tool::Camera { direction }), "{heard}");
    }
}

#[test]
fn a_question_about_the_past_carries_its_words_and_its_time() {
    let Some(embedder) = minilm() else { return };
    let brain = OfflineBrain::new(embedder, zone()).expect("learns its examples");
    let asked = request(vec![user("Hello Reachy! what did we talk about this morning", None)]);
    let Delta::Call(call) = delta(&brain, &asked) else { panic!("a call") };
    assert_eq!(
        call.tool,
        Tool::Remember(RememberArguments {
            query: "what did we talk about this morning".into(),
            about: About::Said,
            direction: None,
            when: Some("this morning".into()),
        })
    );
}

#[test]
fn without_tools_the_answer_is_words() {
    let brain = stand_in();
    let mut asked = request(vec![user("Nod your head.", None)]);
    asked.tools_allowed = false;
    assert_eq!(spoken(&brain, &asked), "I cannot look that up just now.");
    let nothing = request(vec![]);
    assert!(!spoken(&brain, &nothing).is_empty());
}

#[test]
fn small_talk_is_answered_by_the_time_of_day_and_by_name() {
    let brain = stand_in();
    let answer = |heard: &str, hour: &str| {
        let mut asked = request(vec![user(heard, Some("Anna"))]);
        asked.now = format!("2026-11-30T{hour}:05:00+01:00").parse().expect("a time");
        spoken(&brain, &asked)
    };
    assert_eq!(answer("Hello!", "08"), "Good morning, Anna!");
    assert_eq!(answer("hi reachy", "20"), "Good evening, Anna!");
    assert!(answer("Good morning, it is nice to see you.", "08").starts_with("Good morning, Anna"));
    assert!(answer("Hello again, I am back home.", "20").starts_with("Good evening, Anna"));
    assert!(["Goodbye, Anna!", "See you soon, Anna!"].contains(&answer("See you later.", "20").as_str()));
    assert_eq!(answer("Thank you.", "08"), "You are welcome.");
    assert_eq!(answer("What time is it?", "08"), "It is 08:05.");
    assert_eq!(answer("what day is it today", "08"), "Today is Monday, 30 November 2026.");
    assert_eq!(answer("My sister is coming on Sunday.", "08"), "All right, I will remember that.");
    assert!(answer("How much is twelve times nine?", "08").contains("Without the laptop"));
}

#[test]
fn answers_take_turns_and_repeat_for_the_same_request() {
    let brain = stand_in();
    let told = user("The bins go out on Tuesday.", None);
    let first = request(vec![told.clone()]);
    let second = request(vec![told.clone(), Message::Assistant { text: "Yes.".into(), calls: vec![] }, told]);
    assert_eq!(spoken(&brain, &first), spoken(&brain, &first));
    assert_ne!(spoken(&brain, &first), spoken(&brain, &second));
}

#[test]
fn what_the_tool_found_is_told_in_the_second_round() {
    let brain = stand_in();
    let call = ToolCall {
        id: "offline-1".into(),
        tool: Tool::Remember(RememberArguments {
            query: "what did we talk about this morning".into(),
            about: About::Said,
            direction: None,
            when: Some("this morning".into()),
        }),
    };
    let memory = |heard: &str, at: &str| Remembered {
        text: heard.into(),
        exchange: Exchange {
            heard: heard.into(),
            said: "All right.".into(),
            speaker: None,
            said_at: at.parse().expect("a time"),
        },
        score: None,
        just_said: false,
    };
    let result = ToolResult::Recalled(Recalled::Sampled {
        memories: vec![
            memory("The key is in the blue box", "2026-11-30T07:06:00Z"),
            memory("My sister is coming on Sunday.", "2026-11-30T07:10:00Z"),
        ],
        of: 2,
    });
    let asked = request(vec![
        user("what did we talk about this morning", None),
        Message::Assistant { text: String::new(), calls: vec![call] },
        Message::Tool { call_id: "offline-1".into(), name: "remember".into(), result },
    ]);
    assert_eq!(
        spoken(&brain, &asked),
        "This morning we talked about several things. At 08:06 you told me: “The key is in the blue box.” \
         At 08:10 you told me: “My sister is coming on Sunday.”"
    );
}

#[test]
fn a_failing_text_model_is_told_and_nothing_is_guessed() {
    struct Broken(StandIn, std::sync::atomic::AtomicBool);
    impl EmbedText for Broken {
        fn identity(&self) -> &Identity {
            self.0.identity()
        }
        fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
            self.0.question(text)
        }
        fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
            if self.1.load(std::sync::atomic::Ordering::Acquire) {
                return Err(EmbedError::Run { why: "the weights are gone".into() });
            }
            self.0.stored(texts)
        }
    }
    let broken = Arc::new(Broken(StandIn::new(), false.into()));
    let brain = OfflineBrain::new(Arc::clone(&broken) as Arc<dyn EmbedText>, zone()).expect("learns its examples");
    broken.1.store(true, std::sync::atomic::Ordering::Release);
    let said = spoken(&brain, &request(vec![user("Where is the key?", None)]));
    assert!(said.contains("the weights are gone"), "{said}");
}

#[test]
fn a_listener_who_went_away_is_an_interruption() {
    let brain = stand_in();
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let asked = request(vec![user("Hello", None)]);
    assert!(matches!(runtime.block_on(brain.generate(&asked, sender)), Err(BrainError::Interrupted)));
}

#[test]
fn odd_input_is_answered_and_harms_nothing() {
    let brain = stand_in();
    let long = "what ".repeat(10_000);
    for heard in ["", "   ", "?!", "…", "hello hello hello", "你好", "'", &long] {
        match delta(&brain, &request(vec![user(heard, None)])) {
            Delta::Text(text) => assert!(!text.is_empty(), "{heard}"),
            Delta::Call(call) => assert!(
                matches!(call.tool, Tool::Remember(RememberArguments { query, .. }) if query.len() <= MOST_LETTERS)
            ),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn questions_about_people_and_a_time_away_come_to_the_right_part_of_the_memory() {
    let Some(embedder) = minilm() else { return };
    let brain = OfflineBrain::new(embedder, zone()).expect("learns its examples");
    for (heard, about, when) in [
        ("Who am I?", &[About::Me][..], None),
        ("Do you know me?", &[About::Me], None),
        ("When did we meet?", &[About::Me], None),
        ("When did you last see me?", &[About::Me], None),
        ("When did you last see Bob?", &[About::Seen], None),
        ("Did you see Anna today?", &[About::Seen], Some("today")),
        ("Who did you see today?", &[About::Seen], Some("today")),
        ("What happened while I was gone?", &[About::Any, About::Seen], Some("while I was gone")),
        ("what happened while i was away", &[About::Any, About::Seen], Some("while i was away")),
    ] {
        match brain.tool_for(heard, now()).expect("a choice") {
            Some(Tool::Remember(asked)) => {
                assert!(about.contains(&asked.about), "{heard}: {:?}", asked.about);
                assert_eq!(asked.when.as_deref(), when, "{heard}");
            }
            other => panic!("{heard}: {other:?}"),
        }
    }
}
