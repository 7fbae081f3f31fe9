//! The running service: its actors, their channels, and its safe end.
//!
//! | actor | owns | reached by | when it is full, or dies |
//! | --- | --- | --- | --- |
//! | [`listening`] (thread) | the ear | gives utterances, queue of one | a new utterance is refused and said so; the robot is deaf |
//! | [`seeing`] (thread) | nothing; it shares the eye with the `camera` tool | nobody | the robot is blind between looks |
//! | Whisper (thread) | the speech model | queue of one | refused; the robot is deaf |
//! | the conversation (this task) | window and journal | one utterance at a time | the process ends; the journal keeps what was said |
//! | the mouth (threads) | the voice | queue of sentences | the turn waits; the robot answers in text |
//! | the memory (blocking threads) | the shard | calls | a failed store keeps the window |
//! | the control socket (task) | nothing | one line each way | commands are told that nobody answers |
//!
//! On SIGTERM or Ctrl-C the window is stored, the shard flushed, the microphone closed and the head put to rest, within
//! ten seconds.

mod body;
pub mod diary;
mod listening;
pub mod notify;
pub mod parts;
pub mod reload;
mod seeing;
mod talk;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::act::{Mouth, Voice};
use crate::clock::Clock;
use crate::config::Config;
use crate::control::{self, Desk};
use crate::health::Health;
use crate::listen::whisper::Whisper;
use crate::remember::Memory;
use crate::robot::{Direction, Robot};
use crate::see::sight::Sight;
use crate::think::conversation::Conversation;
pub use diary::{Diary, Event};
use listening::{BargeIn, Noticed};
use notify::{Heartbeat, Manager, Tell, keep_told};
use parts::{Acquaintances, Hearing, Mind, PartError};
use reload::{LiveVoice, Part, Reloader, keep_up, laptop_part};
use seeing::Seeing;
use talk::{Incoming, Talk};

/// The safe end may take this long; the service manager kills what takes ten seconds.
const SAFE_END: Duration = Duration::from_secs(8);

/// The service: runs until it is told to stop, or until the simulated robot's day is over. Edits of `file`, where
/// `config` came from, are taken over.
///
/// # Errors
/// [`PartError`] for what the owner must correct before it can start.
pub async fn run(config: &Config, file: Option<PathBuf>) -> Result<(), PartError> {
    // First of all: unwatched, this signal would end the process.
    let hang_up = signal(SignalKind::hangup()).map_err(PartError::Signals)?;
    let manager = Manager::of_this_process().unwrap_or_else(|error| {
        tracing::warn!("{error}; nobody is told how the robot is");
        Manager::nobody()
    });
    let (robot, clock) = parts::robot(config, 0)?;
    let reloader = Reloader::new(config.clone(), file);
    let diary = reloader.diary();
    live_for(config, robot, clock, diary, Owner { manager, reloader, hang_up: Some(hang_up) }).await
}

/// Lives in `robot` until its microphone ends or the process is told to stop.
///
/// # Errors
/// As [`run`].
pub async fn live(config: &Config, robot: Arc<dyn Robot>, clock: Clock, diary: Diary) -> Result<(), PartError> {
    let reloader = Reloader::new(config.clone(), None);
    live_for(config, robot, clock, diary, Owner { manager: Manager::nobody(), reloader, hang_up: None }).await
}

/// Who started the robot: told how it is, and able to change its configuration.
struct Owner {
    manager: Manager,
    reloader: Reloader,
    /// Asks to read the configuration again; `None` where it never changes.
    hang_up: Option<Signal>,
}

async fn live_for(
    config: &Config,
    robot: Arc<dyn Robot>,
    clock: Clock,
    diary: Diary,
    owner: Owner,
) -> Result<(), PartError> {
    let Owner { manager, mut reloader, hang_up } = owner;
    let began = Instant::now();
    let (health, heartbeat) = (Arc::new(Health::default()), Heartbeat::default());
    health.set("robot", true, robot.describe());
    tokio::spawn(keep_told(manager.clone(), heartbeat.clone(), Arc::clone(&health)));
    let (end, ending) = watch::channel(false);
    let Mind { mut conversation, seat, own, memory, acquaintances, folder: _folder, sight, head_turned, left, notes } =
        parts::mind(config, Arc::clone(&robot), clock.clone(), &health, ending.clone()).await?;
    for what in notes {
        diary(&Event::Note { what });
    }
    diary(&Event::TakenUp(conversation.take_up(left).await));

    let folder = config.remember.folder.clone();
    let (window, rewords) = mpsc::channel(1);
    let Acquaintances { people, company } = acquaintances;
    let desk = Desk {
        memory: memory.clone(),
        folder,
        clock: clock.clone(),
        health: Arc::clone(&health),
        people: people.clone(),
        window: Some(window),
    };
    // The folder is ours even where its shard could not be opened.
    open_socket(config, desk, &diary);
    body::watch(Arc::clone(&robot), Arc::clone(&health));
    if let Ok(memory) = memory.clone() {
        keep_flushed(memory, config.remember.flush_every_s, Arc::clone(&diary));
    }
    let (mouth, voice) = mouth(config, Arc::clone(&robot), &health).await?;
    let mouth = Arc::new(mouth);
    reloader.register(voice.part(Arc::clone(&health)));
    reloader.register(laptop_part(seat, own, clock.zone().clone(), Arc::clone(&health)));
    reloader.register(gestures_part(&conversation));
    let shared = listening::Shared {
        robot: Arc::clone(&robot),
        clock: clock.clone(),
        health: Arc::clone(&health),
        diary: Arc::clone(&diary),
        speaking: Arc::default(),
        ending: Arc::default(),
        deaf: Arc::default(),
        hears_speech: Arc::default(),
        heartbeat,
        barge_in: config.listen.barge_in.then(|| barge_in(&mouth, &conversation)),
    };
    let company = company.ok();
    let (give, courtesies) = mpsc::channel(talk::COURTESIES);
    if let Ok(sight) = sight {
        if let Ok(memory) = &memory {
            keep_in_view(&sight, memory).await;
        }
        let (shared, company, runtime) = (shared.clone(), company.clone(), Handle::current());
        see(Seeing { shared, sight, memory, head_turned, company, courtesies: give, runtime });
    }
    let (utterances, whisper) = hearing(config, &shared).await;
    end_on_signals(end, Arc::clone(&mouth), whisper.clone(), Arc::clone(&shared.ending))?;
    let running = reloader.running();
    if let Some(hang_up) = hang_up {
        tokio::spawn(keep_up(reloader, hang_up, manager.clone(), |_| ()));
    }
    diary(&Event::Ready { after: began.elapsed() });
    manager.tell(&[Tell::Ready, Tell::Status(notify::status(&health.parts()))]);

    let mut talk = Talk { shared: &shared, mouth: &mouth, conversation: &mut conversation, company, running, turn: 0 };
    talk.until_the_end(Incoming { utterances, whisper, courtesies, rewords, ending }).await;

    manager.tell(&[Tell::Stopping]);
    shared.ending.store(true, Ordering::Release);
    mouth.stop();
    match tokio::time::timeout(SAFE_END, conversation.close()).await {
        Ok(moved) => diary(&Event::Ended(moved)),
        Err(_) => diary(&Event::Trouble {
            what: "storing the conversation took too long; the journal keeps it for the next start".into(),
        }),
    }
    if let Ok(Some(people)) = people
        && let Err(error) = people.flush().await
    {
        diary(&Event::Trouble { what: format!("when somebody was seen last was not noted: {error}") });
    }
    robot.rest();
    Ok(())
}

fn open_socket(config: &Config, desk: Desk, diary: &Diary) {
    match control::bind(&config.remember.folder) {
        Ok(listener) => drop(tokio::spawn(control::serve(listener, desk))),
        Err(error) => diary(&Event::Note { what: format!("Commands cannot reach this service: {error}") }),
    }
}

/// Flushes what a failed flush left behind, every few seconds.
fn keep_flushed(memory: Memory, every_s: u32, diary: Diary) {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(u64::from(every_s.max(1))));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = memory.flush().await {
                diary(&Event::Trouble { what: format!("the memory could not be flushed: {error}") });
            }
        }
    });
}

/// The mouth, and the voice that it speaks with now.
async fn mouth(config: &Config, robot: Arc<dyn Robot>, health: &Health) -> Result<(Mouth, LiveVoice), PartError> {
    let act = config.act.clone();
    let report = tokio::task::spawn_blocking(move || Voice::find(&act)).await.map_err(|_| PartError::Died)?;
    match report.muteness() {
        None => health.set("voice", true, format!("espeak-ng, {}", config.act.voice_name)),
        Some(why) => health.set("voice", false, why.to_string()),
    }
    let voice = LiveVoice::new(report.voice());
    Ok((Mouth::start(robot, voice.voice())?, voice))
}

/// Gestures, switched on and off at once.
fn gestures_part(conversation: &Conversation) -> Part {
    let motion = conversation.motion();
    Part::new(
        |old, new| old.act.gestures != new.act.gestures,
        move |new| {
            let (motion, allowed) = (Arc::clone(&motion), new.act.gestures);
            Ok(Box::new(move || motion.allow_gestures(allowed)))
        },
    )
}

/// Falls silent, drops the answer that is being made, and forgets the movement that waits.
fn barge_in(mouth: &Arc<Mouth>, conversation: &Conversation) -> BargeIn {
    let (mouth, interrupt, motion) = (Arc::clone(mouth), conversation.interrupt(), conversation.motion());
    Arc::new(move || {
        mouth.stop();
        interrupt.stop();
        motion.stop();
    })
}

/// What was visible when the last process ended is not new to this one.
async fn keep_in_view(sight: &Sight, memory: &Memory) {
    for direction in [Direction::Ahead, Direction::Left, Direction::Right] {
        if let Ok(Some(last)) = memory.last_look(direction).await {
            sight.is_known(direction, &last.detections);
        }
    }
}

/// Starts to see.
fn see(seeing: Seeing) {
    let health = Arc::clone(&seeing.shared.health);
    let thread = std::thread::Builder::new().name("see".into()).spawn(move || seeing.until_the_end());
    if let Err(error) = thread {
        health.set("seeing", false, format!("the seeing thread could not be started: {error}"));
    }
}

/// Starts to listen, where that is wanted and possible.
async fn hearing(
    config: &Config,
    shared: &listening::Shared,
) -> (Option<mpsc::Receiver<Noticed>>, Option<Arc<Whisper>>) {
    if !config.listen.enabled {
        shared.health.set("hearing", true, "switched off in [listen]");
        return (None, None);
    }
    let wanted = config.clone();
    let loaded = tokio::task::spawn_blocking(move || parts::load_hearing(&wanted)).await;
    let Hearing { ear, whisper, speech, voice_activity } = match loaded.unwrap_or(Err(PartError::Died)) {
        Ok(hearing) => hearing,
        Err(error) => {
            shared.health.set("hearing", false, error.to_string());
            (shared.diary)(&Event::Note { what: format!("The robot is deaf: {error}") });
            return (None, None);
        }
    };
    shared.health.set("hearing", true, format!("{}; {}", speech.in_use, voice_activity.in_use));
    let (give, take) = mpsc::channel(1);
    let thread = {
        let shared = shared.clone();
        std::thread::Builder::new().name("listen".into()).spawn(move || listening::listen(&shared, ear, &give))
    };
    if let Err(error) = thread {
        shared.health.set("hearing", false, format!("the listening thread could not be started: {error}"));
        return (None, None);
    }
    (Some(take), Some(Arc::new(whisper)))
}

/// SIGTERM and Ctrl-C begin the safe end: the running answer stops, then everything is stored.
fn end_on_signals(
    end: watch::Sender<bool>,
    mouth: Arc<Mouth>,
    whisper: Option<Arc<Whisper>>,
    ending: Arc<AtomicBool>,
) -> Result<(), PartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(PartError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(PartError::Signals)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            // The day is over and nobody listens any more.
            () = end.closed() => return,
        }
        ending.store(true, Ordering::Release);
        end.send_replace(true);
        mouth.stop();
        if let Some(whisper) = whisper {
            whisper.abort();
        }
    });
    Ok(())
}
