//! The conversation: what moves from the window into the memory and when, and what a turn does when a brain fails.
//!
//! The brains are scripted stand-ins, the embedder is the stand-in of hashed words; shard, journal, body and tools are
//! real.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::tz::TimeZone;
use reachy_remembers::act::{Motion, Spoken};
use reachy_remembers::clock::Clock;
use reachy_remembers::remember::journal::Journal;
use reachy_remembers::remember::{Memory, Recalled};
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::see::eye::{Eye, EyeSettings};
use reachy_remembers::see::sight::Sight;
use reachy_remembers::think::brain::{Brain, BrainError, Delta, Finish, Message, Request};
use reachy_remembers::think::brains::Brains;
use reachy_remembers::think::conversation::{Conversation, Said, TurnReport};
use reachy_remembers::think::hands::Hands;
use reachy_remembers::think::lines;
use reachy_remembers::think::tools::{About, RememberArguments, Tool, ToolCall, ToolResult};
use reachy_remembers::think::turn::{Speak, Step};
use reachy_remembers::think::window::Limits;
use tokio::sync::{mpsc, watch};

use crate::remembering;

/// What a scripted brain does next.
pub enum Act {
    Say(&'static str),
    Call(Tool),
    Fail(BrainError),
    SayThenFail(&'static str, BrainError),
}

/// A stand-in for a language model: does what its script says and keeps what it was asked.
pub struct Scripted {
    name: &'static str,
    acts: Mutex<VecDeque<Act>>,
    asked: Mutex<Vec<Request>>,
    reachable: std::sync::atomic::AtomicBool,
}

impl Scripted {
    pub fn new(name: &'static str, acts: impl IntoIterator<Item = Act>) -> Arc<Self> {
        Arc::new(Self {
            name,
            acts: Mutex::new(acts.into_iter().collect()),
            asked: Mutex::default(),
            reachable: false.into(),
        })
    }

    pub fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Brain for Scripted {
    fn name(&self) -> String {
        self.name.into()
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            let number = {
                let mut asked = self.asked.lock().unwrap();
                asked.push(request.clone());
                asked.len()
            };
            let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Say("All right."));
            let text = |words: &str| Delta::Text(words.to_owned());
            match act {
                Act::Say(words) => deltas.send(text(words)).await.unwrap(),
                Act::Call(tool) => {
                    deltas.send(Delta::Call(ToolCall { id: format!("call-{number}"), tool })).await.unwrap()
                }
                Act::Fail(error) => return Err(error),
                Act::SayThenFail(words, error) => {
                    deltas.send(text(words)).await.unwrap();
                    return Err(error);
                }
            }
            Ok(Finish::default())
        }
        .boxed()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        let there = self.reachable.load(std::sync::atomic::Ordering::Relaxed);
        std::future::ready(if there { Ok(()) } else { Err(away()) }).boxed()
    }
}

fn away() -> BrainError {
    BrainError::Away { url: "http://laptop".into(), why: "no route".into() }
}

fn search(query: &str) -> Act {
    let arguments = RememberArguments { query: query.into(), about: About::Said, direction: None, when: None };
    Act::Call(Tool::Remember(arguments))
}

/// A voice that says everything, or stops after some sentences.
#[derive(Default)]
pub struct Voice {
    pub handed: Vec<String>,
    interrupted_after: Option<usize>,
}

impl Speak for Voice {
    fn speak(&mut self, sentence: String) -> BoxFuture<'_, ()> {
        self.handed.push(sentence);
        std::future::ready(()).boxed()
    }

    fn finished(&mut self) -> BoxFuture<'_, Spoken> {
        let said = self.interrupted_after.unwrap_or(self.handed.len()).min(self.handed.len());
        let sentences = self.handed[..said].to_vec();
        std::future::ready(Spoken { sentences, interrupted: said < self.handed.len(), mute: None }).boxed()
    }
}

struct Room {
    conversation: Conversation,
    memory: Memory,
    seconds: i64,
    steps: Arc<Mutex<Vec<Step>>>,
    heard: Vec<String>,
    _end: watch::Sender<bool>,
}

pub fn hands(memory: Result<Memory, String>, robot: Arc<Sim>, motion: Arc<Motion>, clock: Clock) -> Hands {
    let eye = Eye::new(None, &EyeSettings { frozen_after_s: None, ..EyeSettings::default() }).unwrap();
    Hands {
        memory,
        knowledge: Err("nobody taught me anything".into()),
        robot,
        motion,
        sight: Ok(Sight::new(eye)),
        company: Err("this room has no faces".into()),
        head_turned: Arc::default(),
        clock,
    }
}

impl Room {
    async fn new(folder: &Path, laptop: Option<Arc<Scripted>>, own: Arc<Scripted>, tokens: u32) -> Self {
        let memory = remembering::open(folder);
        let clock = Clock::scripted(remembering::at(1_900_000_000), TimeZone::UTC);
        let robot = Arc::new(Sim::silent_room(clock.clone()));
        let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
        let hands = hands(Ok(memory.clone()), robot, motion, clock);
        let laptop = laptop.map(|laptop| laptop as Arc<dyn Brain>);
        let brains = Brains::new(laptop, Some(own as Arc<dyn Brain>), Duration::from_millis(20));
        let (journal, left) = Journal::open(folder).unwrap();
        let (end, ending) = watch::channel(false);
        let limits = Limits { tokens, exchanges: 40 };
        let mut conversation = Conversation::new(hands, brains, "system".into(), limits, Some(journal), ending);
        conversation.take_up(left).await;
        Self { conversation, memory, seconds: 0, steps: Arc::default(), heard: Vec::new(), _end: end }
    }

    async fn say(&mut self, words: &str) -> TurnReport {
        self.say_to(words, &mut Voice::default()).await
    }

    async fn say_to(&mut self, words: &str, voice: &mut Voice) -> TurnReport {
        self.seconds += 1;
        let said = Said { text: words.into(), speaker: None, at: remembering::at(1_800_000_000 + self.seconds) };
        let steps = Arc::clone(&self.steps);
        let report = self.conversation.turn(said, voice, &move |step| steps.lock().unwrap().push(step)).await;
        self.heard = voice.handed.clone();
        report
    }

    async fn stored(&self) -> usize {
        self.memory.stats().await.unwrap().exchanges
    }

    fn recalled(&self) -> Recalled {
        let steps = self.steps.lock().unwrap();
        let recalled = steps.iter().rev().find_map(|step| match step {
            Step::Answered { result: ToolResult::Recalled(recalled), .. } => Some(recalled.clone()),
            _ => None,
        });
        recalled.expect("something was recalled")
    }
}

const KEY: &str = "The key of the bicycle is in the blue box.";
const WHERE: &str = "Where is the key of the bicycle?";

#[tokio::test(flavor = "multi_thread")]
async fn a_fact_is_just_said_while_in_the_window_and_a_memory_after_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", [Act::Say("All right."), search(WHERE), Act::Say("You just said so.")]);
    let mut room = Room::new(folder.path(), None, own.clone(), 100).await;
    room.say(KEY).await;
    room.say(WHERE).await;
    let Recalled::Found { memories } = room.recalled() else { panic!("{:?}", room.recalled()) };
    assert!(memories[0].just_said && memories[0].exchange.heard == KEY);
    for number in 0..6 {
        room.say(&format!("Some other words about the weather of day {number}.")).await;
    }
    assert!(room.stored().await > 0, "the oldest half moved");
    own.acts.lock().unwrap().extend([search(WHERE), Act::Say("In the blue box.")]);
    let report = room.say(WHERE).await;
    let Recalled::Found { memories } = room.recalled() else { panic!("{:?}", room.recalled()) };
    assert!(!memories[0].just_said && memories[0].exchange.heard == KEY);
    assert!(report.from_memory);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_asks_to_be_remembered_is_kept_although_the_brain_searched_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", [search("bins"), Act::Say("All right.")]);
    let mut room = Room::new(folder.path(), None, own, 1000).await;
    room.say("Remember that the bins go out on Tuesday.").await;
    room.conversation.close().await;
    assert_eq!(room.stored().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_is_not_understood_is_told_to_the_brain_and_not_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (query, about, when) = ("apples".into(), About::Said, Some("when the moon was blue".into()));
    let call = Tool::Remember(RememberArguments { query, about, direction: None, when });
    let own = Scripted::new("own", [Act::Call(call), Act::Say("I searched everything.")]);
    let mut room = Room::new(folder.path(), None, own.clone(), 1000).await;
    room.say("What did I say about apples when the moon was blue?").await;
    let asked = own.asked();
    let Some(Message::Tool { result: ToolResult::Refused { why }, .. }) = asked[1].messages.last() else {
        panic!("{:?}", asked[1].messages)
    };
    assert!(why.contains("moon"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_too_long_is_answered_although_nothing_can_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    let too_long = || Act::Fail(BrainError::TooLong { why: "exceed_context_size_error".into() });
    let laptop = Scripted::new("laptop", [Act::Say("One."), Act::Say("Two."), too_long(), Act::Say("Three.")]);
    let mut room = Room::new(folder.path(), None, Scripted::new("own", []), 10_000).await;
    let clock = Clock::scripted(remembering::at(1_900_000_000), TimeZone::UTC);
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let hands = hands(Err("the disk is full".into()), robot, motion, clock);
    let (_end, ending) = watch::channel(false);
    let brains = Brains::new(Some(laptop.clone() as Arc<dyn Brain>), None, Duration::from_secs(1));
    let limits = Limits { tokens: 10_000, exchanges: 40 };
    room.conversation = Conversation::new(hands, brains, "system".into(), limits, None, ending);
    for words in ["First.", "Second.", "Third."] {
        room.say(words).await;
    }
    assert_eq!(room.heard, ["Three."]);
    assert_eq!(room.conversation.window().kept().len(), 3, "nothing left the window");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_recall_turns_store_nothing_back() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", []);
    let mut room = Room::new(folder.path(), None, own.clone(), 60).await;
    for number in 0..8 {
        room.say(&format!("Fact number {number} is about apples.")).await;
    }
    let mut room = Room { memory: room.memory.clone(), ..room };
    let before = room.stored().await + room.conversation.window().just_said().len();
    for _ in 0..50 {
        own.acts.lock().unwrap().extend([search("apples"), Act::Say("You told me about apples, many times.")]);
        room.say("What did I tell you about apples?").await;
    }
    room.conversation.close().await;
    assert_eq!(room.stored().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_last_is_in_the_memory_after_the_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut room = Room::new(folder.path(), None, Scripted::new("own", []), 10_000).await;
    room.say(KEY).await;
    room.say("And the pump is under the stairs.").await;
    assert_eq!(room.stored().await, 0, "everything is still in the window");
    drop(room);
    let room = Room::new(folder.path(), None, Scripted::new("own", []), 10_000).await;
    assert_eq!(room.stored().await, 2);
    drop(room);
    let room = Room::new(folder.path(), None, Scripted::new("own", []), 10_000).await;
    assert_eq!(room.stored().await, 2, "the journal was emptied and nothing is stored twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_is_not_there_keeps_everything_said_and_the_brain_is_told_that_it_could_not_look() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", []);
    let clock = Clock::scripted(remembering::at(1_900_000_000), TimeZone::UTC);
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let hands = hands(Err("the disk is gone".into()), robot, motion, clock);
    let brains = Brains::new(None, Some(own.clone() as Arc<dyn Brain>), Duration::from_secs(1));
    let (journal, _) = Journal::open(folder.path()).unwrap();
    let (_end, ending) = watch::channel(false);
    let limits = Limits { tokens: 40, exchanges: 40 };
    let mut conversation = Conversation::new(hands, brains, "system".into(), limits, Some(journal), ending);
    let mut reports = Vec::new();
    for number in 0..5 {
        let text = format!("Sentence {number} that must not be lost.");
        let said = Said { text, speaker: None, at: remembering::at(number) };
        reports.push(conversation.turn(said, &mut Voice::default(), &|_| {}).await);
    }
    assert_eq!(reports[4].moved.kept_because.as_deref(), Some("the disk is gone"));
    assert_eq!(conversation.window().kept().len(), 5);
    own.acts.lock().unwrap().extend([search("sentence"), Act::Say("I cannot look.")]);
    let said = Said { text: "What did I say?".into(), speaker: None, at: remembering::at(9) };
    conversation.turn(said, &mut Voice::default(), &|_| {}).await;
    let asked = own.asked();
    let Some(Message::Tool { result: ToolResult::CouldNotLook { why }, .. }) = asked.last().unwrap().messages.last()
    else {
        panic!("{:?}", asked.last())
    };
    assert!(why.contains("the disk is gone"));
    drop(conversation);
    let room = Room::new(folder.path(), None, own, 10_000).await;
    assert_eq!(room.stored().await, 5, "the next start, with a memory, stores what the journal kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_two_tool_rounds_the_brain_must_answer_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", [search("tea"), search("coffee"), search("milk")]);
    let mut room = Room::new(folder.path(), None, own.clone(), 1000).await;
    room.say("What do I drink?").await;
    let allowed: Vec<bool> = own.asked().iter().map(|request| request.tools_allowed).collect();
    assert_eq!(allowed, [true, true, false]);
    assert_eq!(room.heard, [lines::NO_ANSWER], "a turn never ends in silence");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_again_is_refused_instead_of_run() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", [search("tea"), search("tea"), Act::Say("I found nothing about tea.")]);
    let mut room = Room::new(folder.path(), None, own.clone(), 1000).await;
    room.say("What do I drink?").await;
    let last = own.asked().last().unwrap().messages.last().cloned();
    assert!(matches!(last, Some(Message::Tool { result: ToolResult::Refused { .. }, .. })), "{last:?}");
    assert_eq!(room.heard, ["I found nothing about tea."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptop_that_goes_away_and_comes_back_is_said_once_each_way() {
    let folder = tempfile::tempdir().unwrap();
    let laptop = Scripted::new("laptop", [Act::Say("Hello."), Act::Fail(away()), Act::Say("Here again.")]);
    let own = Scripted::new("own", [Act::Say("My own words."), Act::Say("Still my own.")]);
    let mut room = Room::new(folder.path(), Some(laptop.clone()), own.clone(), 1000).await;
    room.say("Hello.").await;
    assert_eq!(room.heard, ["Hello."]);
    let report = room.say("How are you?").await;
    assert_eq!(room.heard, [lines::LAPTOP_AWAY, "My own words."]);
    assert_eq!(report.exchange.said, "My own words.", "the announcement is no part of the answer");
    room.say("And now?").await;
    assert_eq!(room.heard, ["Still my own."]);
    laptop.reachable.store(true, std::sync::atomic::Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(200)).await;
    room.say("Are you back?").await;
    assert_eq!(room.heard, [lines::LAPTOP_BACK, "Here again."]);
    let heard: Vec<_> = laptop.asked().last().unwrap().messages.iter().filter_map(user_text).collect();
    assert_eq!(
        heard,
        ["Hello.", "How are you?", "And now?", "Are you back?"],
        "it goes on from the robot's own history"
    );
}

fn user_text(message: &Message) -> Option<String> {
    match message {
        Message::User { text, .. } => Some(text.clone()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_too_long_for_the_server_moves_its_oldest_half_and_is_asked_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let too_long = || Act::Fail(BrainError::TooLong { why: "exceed_context_size_error".into() });
    let laptop = Scripted::new("laptop", [Act::Say("One."), Act::Say("Two."), too_long(), Act::Say("Three.")]);
    let mut room = Room::new(folder.path(), Some(laptop.clone()), Scripted::new("own", []), 10_000).await;
    for words in ["First.", "Second.", "Third."] {
        room.say(words).await;
    }
    assert_eq!((room.heard.as_slice(), room.stored().await), (["Three.".to_owned()].as_slice(), 1));
    let heard: Vec<_> = laptop.asked()[3].messages.iter().filter_map(user_text).collect();
    assert_eq!(heard, ["Second.", "Third."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_keeps_what_was_said_and_is_not_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let laptop = Scripted::new("laptop", [Act::SayThenFail("The first half. And th", away())]);
    let own = Scripted::new("own", []);
    let mut room = Room::new(folder.path(), Some(laptop), own.clone(), 1000).await;
    let report = room.say("Tell me a story.").await;
    assert_eq!(room.heard.first().map(String::as_str), Some("The first half."));
    assert_eq!(room.heard.last().map(String::as_str), Some(lines::BROKE_OFF));
    assert!(report.exchange.said.starts_with("The first half.") && !report.exchange.said.contains(lines::BROKE_OFF));
    assert!(own.asked().is_empty(), "nothing is replayed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_holds_only_what_was_spoken_before_somebody_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let own = Scripted::new("own", [Act::Say("One is said. Two is cut. Three is never begun.")]);
    let mut room = Room::new(folder.path(), None, own, 1000).await;
    let mut voice = Voice { interrupted_after: Some(1), ..Voice::default() };
    let report = room.say_to("Count.", &mut voice).await;
    assert!(report.interrupted);
    assert_eq!(report.exchange.said, "One is said.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_said_as_it_is_and_the_own_brain_answers() {
    let folder = tempfile::tempdir().unwrap();
    let sentence = "The laptop refuses my key.";
    let laptop = Scripted::new("laptop", [Act::Fail(BrainError::Misconfigured { sentence: sentence.into() })]);
    let own = Scripted::new("own", [Act::Say("My own words."), Act::Say("Again.")]);
    let mut room = Room::new(folder.path(), Some(laptop.clone()), own, 1000).await;
    room.say("Hello.").await;
    assert_eq!(room.heard, [sentence, "My own words."]);
    room.say("Hello?").await;
    assert_eq!(room.heard, ["Again."]);
    assert_eq!(laptop.asked().len(), 1, "it is not asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_brain_the_person_is_told_and_their_words_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut room = Room::new(folder.path(), None, Scripted::new("own", []), 1000).await;
    let clock = Clock::scripted(remembering::at(1_900_000_000), TimeZone::UTC);
    let robot = Arc::new(Sim::silent_room(clock.clone()));
    let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
    let hands = hands(Ok(room.memory.clone()), robot, motion, clock);
    let (_end, ending) = watch::channel(false);
    let limits = Limits { tokens: 1000, exchanges: 40 };
    let brains = Brains::new(None, None, Duration::from_secs(1));
    room.conversation = Conversation::new(hands, brains, "system".into(), limits, None, ending);
    let report = room.say(KEY).await;
    assert_eq!(room.heard, [lines::NO_BRAIN]);
    assert_eq!((report.exchange.heard.as_str(), report.exchange.said.as_str()), (KEY, ""));
    room.conversation.close().await;
    assert_eq!(room.stored().await, 1);
}
