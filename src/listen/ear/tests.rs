//! With a model of zeros, whose probability is 0.5 for every frame: at the default gate everything is speech. What
//! the real model hears is tested with real weights in `tests/house/hearing.rs`.

use super::*;
use crate::listen::vad::tests::model_of_zeros;

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000 + millis).unwrap()
}

fn ear() -> Ear {
    Ear::new(model_of_zeros(), &ListenConfig::default()).unwrap()
}

fn sound(millis: usize, value: f32) -> Sound {
    Sound { samples: vec![value; millis * 16], rate: 16_000, channels: 1 }
}

#[test]
fn reads_become_an_utterance_with_its_times() {
    let mut ear = ear();
    for n in 0..20 {
        assert!(ear.push(&sound(100, 0.1), time(n * 100)).unwrap().is_empty());
    }
    let ended = ear.end().unwrap();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].started_at, time(0));
    assert!(ended[0].samples.len().abs_diff(32_000) < FRAME);
    assert_eq!(ear.report().utterances, 1);
    assert_eq!(ear.held(), 0);
}

#[test]
fn a_microphone_that_falls_silent_altogether_ends_the_utterance() {
    let mut ear = ear();
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    assert!(ear.nothing(time(1500)).unwrap().is_empty(), "only half a second");
    assert_eq!(ear.nothing(time(1600)).unwrap().len(), 1);
    assert!(ear.nothing(time(9000)).unwrap().is_empty());
}

#[test]
fn a_gap_in_the_reads_separates_utterances() {
    let mut ear = ear();
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    assert!(ear.push(&sound(1000, 0.1), time(1000 + GAP_MS)).unwrap().is_empty(), "jitter is no gap");
    assert_eq!(ear.push(&sound(1000, 0.1), time(60_000)).unwrap().len(), 1);
    assert_eq!(ear.end().unwrap()[0].started_at, time(60_000));
}

#[test]
fn while_muted_nothing_is_heard_and_the_echo_is_ignored() {
    let mut ear = ear();
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    ear.mute();
    assert!(ear.report().muted && ear.held() == 0);
    for n in 10..20 {
        assert!(ear.push(&sound(100, 0.1), time(n * 100)).unwrap().is_empty());
    }
    assert_eq!(ear.held(), 0, "the half that was heard before is forgotten");
    ear.unmute(time(2000));
    for n in 20..40 {
        ear.push(&sound(100, 0.1), time(n * 100)).unwrap();
    }
    let ended = ear.end().unwrap();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].started_at, time(2300), "300 ms of echo");
}

#[test]
fn the_echo_may_end_in_the_middle_of_a_read() {
    let mut ear = ear();
    ear.mute();
    ear.unmute(time(50));
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    assert_eq!(ear.end().unwrap()[0].started_at, time(350));
}

#[test]
fn a_minute_of_zeros_is_deaf_and_one_sample_of_sound_is_not() {
    let mut ear = ear();
    for n in 0..599 {
        ear.push(&sound(100, 0.0), time(n * 100)).unwrap();
    }
    assert!(!ear.report().deaf);
    ear.push(&sound(100, 0.0), time(59_900)).unwrap();
    let report = ear.report();
    assert!(report.deaf);
    assert_eq!(report.zeros_since, Some(time(0)));
    assert!((report.seconds - 60.0).abs() < 1e-6);
    let mut last = sound(100, 0.0);
    last.samples[799] = 1e-4;
    ear.push(&last, time(60_000)).unwrap();
    assert!(!ear.report().deaf);
    assert_eq!(ear.report().zeros_since, Some(time(60_050)));
}

#[test]
fn a_bad_read_is_an_error_and_the_next_one_is_heard() {
    let mut ear = ear();
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    for bad in [sound(100, f32::NAN), Sound { rate: 0, ..sound(100, 0.1) }, Sound { channels: 0, ..sound(100, 0.1) }] {
        assert!(matches!(ear.push(&bad, time(1000)), Err(EarError::Sound(_))));
        assert_eq!(ear.held(), 0);
    }
    ear.push(&sound(1000, 0.1), time(2000)).unwrap();
    assert_eq!(ear.end().unwrap().len(), 1);
}

#[test]
fn reads_of_no_and_of_one_sample_are_no_error() {
    let mut ear = ear();
    ear.push(&Sound { samples: vec![], rate: 48_000, channels: 2 }, time(0)).unwrap();
    ear.push(&Sound { samples: vec![0.1, 0.1], rate: 48_000, channels: 2 }, time(0)).unwrap();
    assert!(ear.end().unwrap().is_empty());
}

#[test]
fn the_format_may_change_between_reads() {
    let mut ear = ear();
    ear.push(&sound(1000, 0.1), time(0)).unwrap();
    let other = Sound { samples: vec![0.1; 96_000], rate: 48_000, channels: 2 };
    assert_eq!(ear.push(&other, time(1000)).unwrap().len(), 1);
    assert_eq!(ear.end().unwrap().len(), 1);
}

#[test]
fn times_follow_the_reads_and_not_the_drift_of_the_microphone() {
    // The microphone gives 100.5 ms for every 100 ms of the robot's clock; 0.4 is under the gate, so it is quiet.
    let config = ListenConfig { speech_on: 0.6, ..ListenConfig::default() };
    let mut ear = Ear::new(model_of_zeros(), &config).unwrap();
    let read = Sound { samples: vec![0.1; 1608], rate: 16_000, channels: 1 };
    for n in 0..600 {
        ear.push(&read, time(n * 100)).unwrap();
    }
    let behind = time(60_000).duration_since(ear.waiting_from);
    assert!(behind.as_millis().abs() < 200, "{behind:?}");
}

#[test]
fn speech_that_never_ends_holds_one_utterance_at_most() {
    let mut ear = ear();
    let mut cut = 0;
    let read = sound(2000, 0.1);
    for n in 0..60 {
        cut += ear.push(&read, time(n * 2000)).unwrap().len();
        assert!(ear.held() <= 15 * RATE as usize + FRAME);
    }
    assert_eq!(cut, 8, "two minutes in pieces of fifteen seconds, each a frame short of it");
}
