//! The listening thread: the only one that reads the microphone, and the owner of the ear.
//!
//! It reads, finds utterances, and hands them on over a queue of one; while the robot speaks the ear is closed (the
//! robot does not answer itself), or, where barge-in is allowed, whoever speaks stops the answer. A full queue refuses
//! the new utterance and says so. When the microphone fails, the thread ends, the robot is deaf, and the health report
//! says why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::Event;
use super::diary::Diary;
use super::notify::Heartbeat;
use crate::clock::Clock;
use crate::health::Health;
use crate::listen::{Ear, Utterance};
use crate::robot::{Attention, MicrophoneRead, Robot};

/// After a failed read the microphone is tried again this much later.
const AFTER_A_FAILURE: Duration = Duration::from_millis(500);
/// The microphone is given up after so many failed reads in a row (ten seconds).
const FAILURES: u32 = 20;

/// Speech over the robot's own voice that stops it, in milliseconds: four frames of voice activity. With a read of the
/// microphone (at most a tenth of a second) and a slice of the voice's sound it is under 300 ms. Not measured on a robot.
const BARGE_IN_MS: u32 = 128;

/// The thread is heard of again within this. A read is a tenth of a second of sound; the rest is for a machine that is
/// busy with something else. Not measured.
const ALIVE: Duration = Duration::from_secs(30);

/// Stops the robot's answer, its voice and what it still wanted to do. Must not block.
pub type BargeIn = Arc<dyn Fn() + Send + Sync>;

/// What the thread shares with the conversation.
#[derive(Clone)]
pub struct Shared {
    pub robot: Arc<dyn Robot>,
    pub clock: Clock,
    pub health: Arc<Health>,
    pub diary: Diary,
    /// Whether the robot is speaking.
    pub speaking: Arc<AtomicBool>,
    /// Whether the process is ending.
    pub ending: Arc<AtomicBool>,
    /// Whether the microphone was given up.
    pub deaf: Arc<AtomicBool>,
    /// Whether somebody is speaking now.
    pub hears_speech: Arc<AtomicBool>,
    /// Who must stay alive.
    pub heartbeat: Heartbeat,
    /// What happens when somebody speaks over the robot; `None` where that is not allowed.
    pub barge_in: Option<BargeIn>,
}

/// An utterance, and when its end was noticed.
pub struct Noticed {
    pub utterance: Utterance,
    pub at: Instant,
}

/// Reads the microphone until it ends, fails for good, or the process ends.
pub fn listen(shared: &Shared, mut ear: Ear, utterances: &mpsc::Sender<Noticed>) {
    let (mut closed, mut failures, mut deaf, mut stopped) = (false, 0, false, false);
    shared.health.set("microphone", true, "listening");
    let pulse = shared.heartbeat.pulse("listening", ALIVE);
    while !shared.ending.load(Ordering::Acquire) && !utterances.is_closed() {
        pulse.beat(ALIVE);
        let speaking = shared.speaking.load(Ordering::Acquire);
        if speaking != closed && shared.barge_in.is_none() {
            closed = speaking;
            if speaking { ear.mute() } else { ear.unmute(shared.clock.now()) }
        }
        let heard = match shared.robot.hear() {
            Ok(MicrophoneRead::Sound { sound, at }) => ear.push(&sound, at),
            Ok(MicrophoneRead::Nothing) => ear.nothing(shared.clock.now()),
            Ok(MicrophoneRead::Ended) => {
                hand_on(shared, ear.end().unwrap_or_default(), utterances);
                return;
            }
            Err(error) => {
                failures += 1;
                shared.health.set("microphone", false, error.to_string());
                if failures >= FAILURES {
                    shared.deaf.store(true, Ordering::Release);
                    return;
                }
                std::thread::sleep(AFTER_A_FAILURE);
                continue;
            }
        };
        if failures > 0 {
            failures = 0;
            shared.health.set("microphone", true, "listening again");
        }
        shared.hears_speech.store(ear.voiced_ms() > 0, Ordering::Release);
        if let Some(stop) = &shared.barge_in {
            let over = speaking && ear.voiced_ms() >= BARGE_IN_MS;
            if over && !stopped {
                stop();
                (shared.diary)(&Event::Interrupted);
            }
            stopped = speaking && (stopped || over);
        }
        match heard {
            Ok(heard) => hand_on(shared, heard, utterances),
            Err(error) => (shared.diary)(&Event::Trouble { what: error.to_string() }),
        }
        let report = ear.report();
        if report.deaf != deaf {
            deaf = report.deaf;
            let what = if deaf {
                "the microphone gives only silence: is it switched off, or used by another program?"
            } else {
                "listening"
            };
            shared.health.set("microphone", !deaf, what);
        }
    }
}

fn hand_on(shared: &Shared, heard: Vec<Utterance>, utterances: &mpsc::Sender<Noticed>) {
    for utterance in heard {
        // Before the next read of the microphone, so that the body knows that a turn may be coming.
        shared.robot.attend(Attention::Transcribing);
        if utterances.try_send(Noticed { utterance, at: Instant::now() }).is_err() {
            (shared.diary)(&Event::NotHeard { why: "somebody spoke while the robot was still busy".into() });
        }
    }
}
