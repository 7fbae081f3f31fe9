//! Days are written into a temporary folder with recordings of a plain tone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::robot::day::DayError;

const HEAD: &str = "title = \"t\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n";

fn write_tone(path: &Path, rate: u32, channels: u16, millis: u32) {
    let spec =
        hound::WavSpec { channels, sample_rate: rate, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    for i in 0..rate * millis / 1_000 {
        for _ in 0..channels {
            writer.write_sample(((i as f32 * 0.1).sin() * 8_000.0) as i16).unwrap();
        }
    }
    writer.finalize().unwrap();
}

/// A day of these events, beside `a.wav` (22.05 kHz mono, 800 ms) and `b.wav` (48 kHz stereo, 500 ms).
fn day(events: &str) -> (tempfile::TempDir, Day) {
    let folder = tempfile::tempdir().unwrap();
    write_tone(&folder.path().join("a.wav"), 22_050, 1, 800);
    write_tone(&folder.path().join("b.wav"), 48_000, 2, 500);
    let path = folder.path().join("day.toml");
    std::fs::write(&path, format!("{HEAD}{events}")).unwrap();
    let day = Day::load(&path).unwrap();
    (folder, day)
}

fn sim(day: &Day, part: usize) -> Sim {
    Sim::new(day, part, day.clock(part).unwrap()).unwrap()
}

fn loud(sound: &Sound) -> bool {
    sound.samples.iter().any(|sample| sample.abs() > 0.01)
}

/// Everything until the end, for a robot that never answers.
fn hear_all(sim: &Sim) -> Vec<(Sound, Timestamp)> {
    let mut heard = Vec::new();
    loop {
        match sim.hear().unwrap() {
            MicrophoneRead::Sound { sound, at } => heard.push((sound, at)),
            // An event without sound, such as something that comes into view.
            MicrophoneRead::Nothing => {}
            MicrophoneRead::Ended => return heard,
        }
    }
}

/// Plays the day as a robot would: after each utterance's first quiet chunk it answers with a sentence and a sound.
fn converse(sim: &Sim) {
    let mut spoke = false;
    loop {
        match sim.hear().unwrap() {
            MicrophoneRead::Sound { sound, .. } if loud(&sound) => spoke = true,
            MicrophoneRead::Sound { .. } if spoke => {
                spoke = false;
                sim.attend(Attention::Thinking);
                sim.gesture(Gesture::Nod).unwrap();
                sim.say("I heard you.");
                sim.play(&Sound { samples: vec![0.1; 16_000], rate: 16_000, channels: 1 }, &|| false).unwrap();
                sim.attend(Attention::Idle);
            }
            MicrophoneRead::Sound { .. } => {}
            MicrophoneRead::Nothing => panic!("every event of this day has a sound"),
            MicrophoneRead::Ended => return,
        }
    }
}

const TALK: &str = r#"
[[event]]
at = "08:05"
sound = "a.wav"
says = "Hello."
[[event]]
at = "08:10"
sound = "b.wav"
says = "Where is the key?"
"#;

#[test]
fn time_moves_with_every_chunk_and_jumps_to_every_event() {
    let (_folder, day) = day(TALK);
    let sim = sim(&day, 0);
    let heard = hear_all(&sim);
    assert_eq!(heard[0].1, "2026-05-04T08:05:00Z".parse().unwrap());
    for pair in heard.windows(2) {
        let end = pair[0].1 + SignedDuration::from_millis(pair[0].0.millis() as i64);
        assert!(pair[1].1 >= end, "a chunk began before the one before had ended");
    }
    let second = heard.iter().find(|(sound, _)| sound.channels == 2).unwrap();
    assert_eq!(second.1, "2026-05-04T08:10:00Z".parse().unwrap());
    let lengths: u64 = heard.iter().map(|(sound, _)| sound.millis()).sum();
    // Two recordings, each with 300 ms before and 1500 ms after; chunk lengths are rounded down to milliseconds.
    assert!((4_800..=4_900).contains(&lengths), "{lengths}");
    assert!(heard.iter().all(|(sound, _)| (1..=100).contains(&sound.millis())));
}

#[test]
fn two_runs_of_a_day_are_written_down_alike() {
    let (_folder, day) = day(TALK);
    let run = || {
        let sim = sim(&day, 0);
        converse(&sim);
        sim.journal()
    };
    let first = run();
    assert_eq!(first.sentences().len(), 2);
    assert_eq!(first.deeds.last().map(|deed| &deed.what), Some(&Doing::Ends));
    assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&run()).unwrap());
}

#[test]
fn the_next_person_waits_until_the_robot_has_finished() {
    let (_folder, day) = day(TALK);
    let sim = Arc::new(sim(&day, 0));
    // Up to the quiet after the first sentence.
    let mut spoke = false;
    while let MicrophoneRead::Sound { sound, .. } = sim.hear().unwrap() {
        if spoke && !loud(&sound) {
            break;
        }
        spoke |= loud(&sound);
    }
    sim.attend(Attention::Thinking);
    let frozen = sim.clock().now();
    let before = Instant::now();
    assert_eq!(sim.hear().unwrap(), MicrophoneRead::Nothing);
    assert!((80..1_000).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
    assert_eq!(sim.clock().now(), frozen, "the room's time stands still");
    let waker = Arc::clone(&sim);
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        waker.attend(Attention::Idle);
    });
    assert!(matches!(sim.hear().unwrap(), MicrophoneRead::Sound { .. }), "woken by the turn's end");
    thread.join().unwrap();
}

#[test]
fn speech_goes_on_while_the_robot_is_busy() {
    let (_folder, day) = day(TALK);
    let sim = sim(&day, 0);
    while let MicrophoneRead::Sound { sound, .. } = sim.hear().unwrap() {
        if loud(&sound) {
            break;
        }
    }
    sim.attend(Attention::Speaking);
    assert!(matches!(sim.hear().unwrap(), MicrophoneRead::Sound { sound, .. } if loud(&sound)));
}

#[test]
fn a_missing_recording_is_refused_before_the_day_begins() {
    let (folder, day) = day(TALK);
    std::fs::remove_file(folder.path().join("b.wav")).unwrap();
    let error = Sim::new(&day, 0, day.clock(0).unwrap()).err().unwrap();
    assert!(matches!(&error, DayError::Refused { line: 9, .. }), "{error}");
    std::fs::write(folder.path().join("b.wav"), b"no sound").unwrap();
    let sim = sim(&day, 0);
    let failed = std::iter::repeat_with(|| sim.hear()).find_map(Result::err).unwrap();
    assert!(failed.to_string().contains("b.wav"), "{failed}");
}

#[test]
fn a_part_begins_where_the_restart_was_and_still_sees_what_was_shown() {
    let (_folder, day) = day(r#"
[[event]]
at = "08:05"
sees = ["cup"]
[[event]]
at = "08:06"
fault = "motors-off"
for_s = 3600
[[event]]
at = "08:30"
restart = "stop"
[[event]]
at = "10:00"
sees_left = ["door"]
"#);
    let first = sim(&day, 0);
    assert!(hear_all(&first).is_empty());
    assert_eq!(first.clock().now(), "2026-05-04T08:30:00Z".parse().unwrap());
    let second = sim(&day, 1);
    assert_eq!(second.clock().now(), "2026-05-04T08:30:00Z".parse().unwrap());
    assert_eq!(second.picture().unwrap().annotations.unwrap()[0].label, "cup");
    assert!(second.look(Direction::Left).is_err(), "the motors are off until 09:06");
    hear_all(&second);
    second.look(Direction::Left).unwrap();
    assert_eq!(second.picture().unwrap().annotations.unwrap()[0].label, "door");
}

#[test]
fn nothing_is_ever_seen_that_the_script_does_not_show() {
    let (_folder, day) = day("[[event]]\nat = \"08:05\"\nsees = []\n");
    let sim = sim(&day, 0);
    assert!(matches!(sim.picture(), Err(RobotError::Failed { part: "camera", .. })), "not shown yet");
    hear_all(&sim);
    assert_eq!(sim.picture().unwrap().annotations, Some(Vec::new()), "shown, and empty");
    sim.look(Direction::Right).unwrap();
    assert!(sim.picture().is_err(), "nobody says what is to the right");
    let room = Sim::silent_room(Clock::system());
    assert!(matches!(room.picture(), Err(RobotError::Missing { part: "camera", .. })));
}

#[test]
fn a_dark_or_missing_camera_is_an_error_until_it_is_mended() {
    for (fault, gone) in [("camera-dark", false), ("camera-gone", true)] {
        let (_folder, day) = day(&format!(
            "[[event]]\nat = \"08:05\"\nsees = [\"cup\"]\nfault = \"{fault}\"\nfor_s = 60\n[[event]]\nat = \"08:05\"\n\
             pause_s = 61\n"
        ));
        let sim = sim(&day, 0);
        sim.hear().unwrap();
        match sim.picture().unwrap_err() {
            RobotError::Missing { part: "camera", .. } => assert!(gone),
            RobotError::Failed { part: "camera", .. } => assert!(!gone),
            other => panic!("{other}"),
        }
        hear_all(&sim);
        assert!(sim.picture().is_ok(), "{fault} is over");
    }
}

#[test]
fn a_silent_microphone_gives_zeros_even_when_somebody_speaks() {
    let (_folder, day) =
        day("[[event]]\nat = \"08:05\"\nfault = \"microphone-silent\"\nfor_s = 60\n[[event]]\nat = \"08:05\"\n\
         sound = \"a.wav\"\n[[event]]\nat = \"08:10\"\nsound = \"a.wav\"\n");
    let heard = hear_all(&sim(&day, 0));
    let after: Timestamp = "2026-05-04T08:06:00Z".parse().unwrap();
    let (deaf, well): (Vec<_>, Vec<_>) = heard.into_iter().partition(|(_, at)| *at < after);
    assert!(!deaf.is_empty() && deaf.iter().all(|(sound, _)| sound.samples.iter().all(|sample| *sample == 0.0)));
    assert!(well.iter().any(|(sound, _)| loud(sound)));
}

#[test]
fn a_missing_speaker_is_an_error_and_takes_no_time() {
    let (_folder, day) = day("[[event]]\nat = \"08:05\"\nfault = \"speaker-gone\"\nfor_s = 60\n");
    let sim = sim(&day, 0);
    sim.hear().unwrap();
    let before = sim.clock().now();
    let sound = Sound { samples: vec![0.0; 16_000], rate: 16_000, channels: 1 };
    assert!(matches!(sim.play(&sound, &|| false), Err(RobotError::Missing { part: "speaker", .. })));
    assert_eq!(sim.clock().now(), before);
}

#[test]
fn playing_takes_the_sounds_length_and_stops_when_told() {
    let (_folder, day) = day("");
    let sim = sim(&day, 0);
    let sound = Sound { samples: vec![0.0; 32_000], rate: 16_000, channels: 1 };
    let before = sim.clock().now();
    sim.play(&sound, &|| false).unwrap();
    assert_eq!(sim.clock().now().duration_since(before).as_millis(), 2_000);
    let asked = AtomicU32::new(0);
    sim.play(&sound, &|| asked.fetch_add(1, Ordering::Relaxed) >= 10).unwrap();
    assert_eq!(sim.clock().now().duration_since(before).as_millis(), 2_200);
    let plays: Vec<Doing> = sim.journal().deeds.into_iter().map(|deed| deed.what).collect();
    assert_eq!(plays, [Doing::Plays { millis: 2_000, stopped: false }, Doing::Plays { millis: 200, stopped: true }]);
}

#[test]
fn a_paced_sound_takes_as_long_as_in_a_room() {
    let (_folder, day) = day("");
    let sim = sim(&day, 0).paced(true);
    let before = Instant::now();
    sim.play(&Sound { samples: vec![0.0; 4_800], rate: 16_000, channels: 1 }, &|| false).unwrap();
    assert!((290..1_500).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
}

#[test]
fn a_silent_room_goes_on_at_the_pace_of_time_until_rest() {
    let room = Arc::new(Sim::silent_room(Clock::system()));
    let before = Instant::now();
    for _ in 0..3 {
        let MicrophoneRead::Sound { sound, .. } = room.hear().unwrap() else { panic!("quiet is sound, too") };
        assert!(!loud(&sound) && sound.samples.iter().any(|sample| *sample != 0.0));
    }
    assert!(before.elapsed() >= Duration::from_millis(180), "{:?}", before.elapsed());
    room.rest();
    assert_eq!(room.hear().unwrap(), MicrophoneRead::Ended);
}
