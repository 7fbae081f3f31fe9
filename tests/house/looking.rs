//! Looks on purpose: the head turns, the picture is kept, what is said about it becomes its caption, and none of it is in
//! the conversation. The brain is a scripted stand-in, annotations stand in for the detector; body, memory and turn are
//! real.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::tz::TimeZone;
use reachy_remembers::act::Motion;
use reachy_remembers::clock::Clock;
use reachy_remembers::remember::Memory;
use reachy_remembers::robot::day::Day;
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::robot::{Direction, Robot};
use reachy_remembers::think::brain::{Brain, Message};
use reachy_remembers::think::brains::Brains;
use reachy_remembers::think::conversation::{Conversation, Said};
use reachy_remembers::think::tools::{Tool, ToolResult};
use reachy_remembers::think::turn::Step;
use reachy_remembers::think::window::Limits;
use tokio::sync::watch;

use crate::conversing::{Act, Scripted, Voice, hands};
use crate::remembering;

struct Desk {
    conversation: Conversation,
    memory: Memory,
    brain: Arc<Scripted>,
    steps: Arc<Mutex<Vec<Step>>>,
    _end: watch::Sender<bool>,
}

impl Desk {
    fn new(folder: &Path, script: &str, acts: Vec<Act>) -> Self {
        let memory = remembering::open(folder);
        let head = "title = \"A desk\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n";
        let day = Day::from_toml(&format!("{head}{script}"), &folder.join("day.toml")).unwrap();
        let clock = Clock::scripted(day.starts, TimeZone::UTC);
        let robot = Arc::new(Sim::new(&day, 0, clock.clone()).unwrap());
        // The script's first events happen.
        for _ in 0..day.events.len() {
            robot.hear().unwrap();
        }
        let motion = Arc::new(Motion::start(robot.clone(), true).unwrap());
        let hands = hands(Ok(memory.clone()), robot, motion, clock);
        let brain = Scripted::new("own", acts);
        let brains = Brains::new(None, Some(brain.clone() as Arc<dyn Brain>), Duration::from_secs(1));
        let (end, ending) = watch::channel(false);
        let limits = Limits { tokens: 1000, exchanges: 40 };
        let conversation = Conversation::new(hands, brains, "system".into(), limits, None, ending);
        Self { conversation, memory, brain, steps: Arc::default(), _end: end }
    }

    async fn ask(&mut self, words: &str) {
        let said = Said { text: words.into(), speaker: None, at: "2026-05-04T08:00:30Z".parse().unwrap() };
        let steps = Arc::clone(&self.steps);
        let witness = move |step| steps.lock().unwrap().push(step);
        self.conversation.turn(said, &mut Voice::default(), &witness).await;
    }

    fn told(&self) -> ToolResult {
        let asked = self.brain.asked();
        match asked.last().and_then(|request| request.messages.last()) {
            Some(Message::Tool { result, .. }) => result.clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn camera(direction: Direction) -> Act {
    Act::Call(Tool::Camera { direction })
}

const CUP: &str = "[[event]]\nat = \"08:00\"\nsees = [\"cup\"]\nsees_left = [\"clock\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_look_is_kept_with_what_was_said_about_it_and_stays_out_of_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let acts = vec![camera(Direction::Ahead), Act::Say("There is a blue cup with a chip in its rim.")];
    let mut desk = Desk::new(folder.path(), CUP, acts);
    desk.ask("What do you see?").await;
    assert_eq!(desk.told(), ToolResult::Seen { sentence: "I see a cup.".into() });
    let stats = desk.memory.stats().await.unwrap();
    assert_eq!((stats.frames, stats.exchanges, desk.conversation.window().kept().len()), (1, 0, 0));
    let frame = desk.memory.frames(None).await.unwrap().remove(0);
    assert_eq!((frame.sentence.as_str(), frame.looked), ("I saw a cup.", Direction::Ahead));
    assert_eq!(frame.caption.as_deref(), Some("There is a blue cup with a chip in its rim."));
    desk.conversation.close().await;
    assert_eq!(desk.memory.stats().await.unwrap().exchanges, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_to_the_left_is_taken_there_and_the_head_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let acts = vec![camera(Direction::Left), Act::Say("A clock."), camera(Direction::Ahead), Act::Say("A cup.")];
    let mut desk = Desk::new(folder.path(), CUP, acts);
    desk.ask("What is on your left?").await;
    assert_eq!(desk.told(), ToolResult::Seen { sentence: "I see a clock on my left.".into() });
    desk.ask("And in front of you?").await;
    assert_eq!(desk.told(), ToolResult::Seen { sentence: "I see a cup.".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_turn_is_an_error_and_never_a_picture_of_the_wrong_side() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{CUP}[[event]]\nat = \"08:00\"\nfault = \"motors-off\"\nfor_s = 600\n");
    let acts = vec![camera(Direction::Left), Act::Say("I cannot look there.")];
    let mut desk = Desk::new(folder.path(), &script, acts);
    desk.ask("What is on your left?").await;
    let ToolResult::CouldNotSee { why } = desk.told() else { panic!("{:?}", desk.told()) };
    assert!(why.contains("motors"), "{why}");
    assert_eq!(desk.memory.stats().await.unwrap().frames, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dark_camera_is_told_as_not_seeing_and_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{CUP}[[event]]\nat = \"08:00\"\nfault = \"camera-dark\"\nfor_s = 600\n");
    let acts = vec![camera(Direction::Ahead), Act::Say("I cannot see.")];
    let mut desk = Desk::new(folder.path(), &script, acts);
    desk.ask("What do you see?").await;
    assert!(matches!(desk.told(), ToolResult::CouldNotSee { .. }));
    assert_eq!(desk.memory.stats().await.unwrap().frames, 0);
}
