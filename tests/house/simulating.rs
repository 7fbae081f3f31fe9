//! The demo's own day, played to its end with the recordings that belong to it.

use std::path::Path;

use reachy_remembers::robot::day::Day;
use reachy_remembers::robot::sim::{Doing, Journal, Sim};
use reachy_remembers::robot::{Attention, MicrophoneRead, Robot};

/// A whole part, heard by a robot that thinks for a moment after everything that is said and answers nothing.
fn play(day: &Day, part: usize) -> Journal {
    let sim = Sim::new(day, part, day.clock(part).unwrap()).unwrap();
    loop {
        match sim.hear().unwrap() {
            MicrophoneRead::Sound { sound, at } => {
                assert!((1..=100).contains(&sound.millis()));
                assert!(at <= sim.clock().now());
            }
            MicrophoneRead::Nothing => {
                sim.attend(Attention::Thinking);
                sim.attend(Attention::Idle);
            }
            MicrophoneRead::Ended => return sim.journal(),
        }
    }
}

#[test]
fn the_demo_day_plays_to_its_end_and_twice_alike() {
    let day = Day::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/day.toml")).unwrap();
    if let Err(missing) = day.check_files() {
        eprintln!("skipped: {missing} (demo/record.py makes the recordings)");
        return;
    }
    for part in 0..day.parts().len() {
        let journal = play(&day, part);
        let said: Vec<&str> = journal
            .deeds
            .iter()
            .filter_map(|deed| match &deed.what {
                Doing::Visitor { says } => Some(says.as_str()),
                _ => None,
            })
            .collect();
        let scripted: Vec<&str> = day
            .part(part)
            .unwrap()
            .events
            .iter()
            .filter_map(|event| event.speech.as_ref())
            .map(|speech| speech.says.as_str())
            .collect();
        assert_eq!(said, scripted);
        assert_eq!(journal, play(&day, part));
    }
}
