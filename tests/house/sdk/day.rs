//! One stretch of a day twice: on the simulated robot, and through the bridge with a stand-in for the SDK's media that
//! plays the same recordings. Real hearing, memory and the robot's own brain. What is decided must be the same.

use super::*;
use crate::weights;
use reachy_remembers::config::{Config, VoiceKind};
use reachy_remembers::daemon::{Event, live};
use reachy_remembers::robot::day::Day;
use reachy_remembers::robot::sim::Sim;
use reachy_remembers::think::turn::Step;
use std::sync::{Arc, Mutex};

/// Long enough that what is heard does not hang on the noise of the room, which differs between the two.
const SOUNDS: [&str; 6] = ["sister", "key", "library", "just_said", "where_key", "piano"];

/// What was heard, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Decided {
    heard: String,
    called: Vec<String>,
    said: Vec<String>,
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("demo/sounds/{name}.wav"))
}

fn config(memory: &Path) -> Config {
    let mut config = Config::default();
    config.robot.time_zone = "UTC".into();
    config.remember.folder = memory.to_owned();
    config.remember.min_free_mb = 10;
    config.models.folder = weights::folder();
    // Without pictures: a script's annotations have no counterpart in a camera.
    config.see.enabled = false;
    config.act.voice = VoiceKind::None;
    config
}

/// Lives, and writes down what was decided; `after` is called when the robot is ready and after every turn.
async fn decided(
    config: &Config,
    robot: Arc<dyn Robot>,
    clock: Clock,
    after: impl Fn() + Send + Sync + 'static,
) -> Vec<Decided> {
    let all = Arc::new(Mutex::new(Vec::<Decided>::new()));
    let written = Arc::clone(&all);
    let diary = Arc::new(move |event: &Event| {
        let mut all = written.lock().unwrap();
        match event {
            Event::Heard { heard, .. } => all.push(Decided { heard: heard.text.clone(), ..Decided::default() }),
            Event::NotHeard { why } => all.push(Decided { heard: format!("nothing: {why}"), ..Decided::default() }),
            Event::Step(Step::Called { tool }) => all.last_mut().unwrap().called.push(format!("{tool:?}")),
            Event::Step(Step::Saying { sentence, .. }) => all.last_mut().unwrap().said.push(sentence.clone()),
            _ => {}
        }
        if matches!(event, Event::Ready { .. } | Event::TurnEnded { .. } | Event::NotHeard { .. }) {
            after();
        }
    });
    live(config, robot, clock, diary).await.unwrap();
    let all = all.lock().unwrap();
    all.clone()
}

/// The real body until the last answer is given: then its microphone ends, as a day does.
struct UntilTheEnd {
    sdk: Sdk,
    over: Arc<std::sync::atomic::AtomicBool>,
}

impl Robot for UntilTheEnd {
    fn describe(&self) -> String {
        self.sdk.describe()
    }

    fn hear(&self) -> Result<reachy_remembers::robot::MicrophoneRead, reachy_remembers::robot::RobotError> {
        if self.over.load(std::sync::atomic::Ordering::Acquire) {
            return Ok(reachy_remembers::robot::MicrophoneRead::Ended);
        }
        self.sdk.hear()
    }

    fn picture(&self) -> Result<reachy_remembers::robot::Picture, reachy_remembers::robot::RobotError> {
        self.sdk.picture()
    }

    fn play(
        &self,
        sound: &reachy_remembers::robot::Sound,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), reachy_remembers::robot::RobotError> {
        self.sdk.play(sound, stop)
    }

    fn gesture(&self, gesture: Gesture) -> Result<(), reachy_remembers::robot::RobotError> {
        self.sdk.gesture(gesture)
    }

    fn look(&self, direction: Direction) -> Result<(), reachy_remembers::robot::RobotError> {
        self.sdk.look(direction)
    }

    fn attend(&self, attention: reachy_remembers::robot::Attention) {
        self.sdk.attend(attention);
    }

    fn rest(&self) {
        self.sdk.rest();
    }
}

#[test]
fn a_day_of_the_simulated_robot_and_the_same_day_through_the_bridge_decide_the_same() {
    const NAME: &str = "day::a_day_of_the_simulated_robot_and_the_same_day_through_the_bridge_decide_the_same";
    if venv().is_none() || !weights::all_are_here() {
        return;
    }
    let said = tempfile::tempdir().unwrap();
    let stub = project("stub").display().to_string();
    let folder = said.path().display().to_string();
    if !is_alone(NAME) {
        for (number, name) in SOUNDS.iter().enumerate() {
            std::fs::copy(recording(name), said.path().join(format!("{number}.wav"))).unwrap();
        }
    }
    alone(NAME, &[("REACHY_STUB", &folder), ("PYTHONPATH", &stub)], |venv| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let house = tempfile::tempdir().unwrap();
        let simulated = runtime.block_on(simulated(house.path()));
        let folder = PathBuf::from(std::env::var_os("REACHY_STUB").unwrap());
        let through = runtime.block_on(through_the_bridge(venv, house.path(), folder));
        for (simulated, through) in simulated.iter().zip(&through) {
            println!("{simulated:?}");
            assert_eq!(simulated, through);
        }
        assert_eq!((simulated.len(), through.len()), (SOUNDS.len(), SOUNDS.len()));
        let said = |number: usize| simulated[number].said.concat();
        assert!(
            said(3).contains("library") && said(4).contains("blue") && simulated[5].called.len() == 1,
            "{simulated:?}"
        );
    });
}

async fn simulated(house: &Path) -> Vec<Decided> {
    let mut script = String::from("title = \"a stretch\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n");
    for (number, name) in SOUNDS.iter().enumerate() {
        let file = recording(name).display().to_string();
        script += &format!("[[event]]\nat = \"08:{number:02}\"\nsound = {file:?}\nsays = \"as recorded\"\n");
    }
    std::fs::write(house.join("day.toml"), script).unwrap();
    let day = Day::load(&house.join("day.toml")).unwrap();
    let clock = day.clock(0).unwrap();
    let robot = Arc::new(Sim::new(&day, 0, clock.clone()).unwrap());
    decided(&config(&house.join("simulated")), robot, clock, || {}).await
}

async fn through_the_bridge(venv: &Path, house: &Path, folder: PathBuf) -> Vec<Decided> {
    let daemon = Daemon::start(venv);
    let sdk = daemon.body();
    let over = Arc::<std::sync::atomic::AtomicBool>::default();
    let robot = Arc::new(UntilTheEnd { sdk, over: Arc::clone(&over) });
    let next = std::sync::atomic::AtomicUsize::new(0);
    // The people wait for the robot: the next sentence comes when the last was answered.
    let after = move || {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        if number < SOUNDS.len() {
            std::fs::write(folder.join(format!("{number}.go")), "").unwrap();
        } else {
            over.store(true, std::sync::atomic::Ordering::Release);
        }
    };
    decided(&config(&house.join("bridge")), robot, Clock::system(), after).await
}
