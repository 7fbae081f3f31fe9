use proptest::prelude::*;

use super::*;

fn endpointer() -> Endpointer {
    Endpointer::new(&ListenConfig::default()).unwrap()
}

fn time(frame: usize) -> Timestamp {
    Timestamp::from_millisecond(1_000_000 + frame as i64 * 32).unwrap()
}

/// Pushes one frame for each probability; every sample is its own number in the stream.
fn play(endpointer: &mut Endpointer, probabilities: &[f32]) -> Vec<Event> {
    let mut events = Vec::new();
    for (n, &probability) in probabilities.iter().enumerate() {
        let frame: Vec<f32> = (0..FRAME).map(|sample| (n * FRAME + sample) as f32).collect();
        events.extend(endpointer.push(&frame, probability, time(n)));
    }
    events
}

fn frames(parts: &[(usize, f32)]) -> Vec<f32> {
    parts.iter().flat_map(|&(count, probability)| std::iter::repeat_n(probability, count)).collect()
}

fn utterances(events: &[Event]) -> Vec<&Utterance> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Ended(utterance) | Event::Cut(utterance) => Some(utterance),
            Event::Began { .. } | Event::Dropped => None,
        })
        .collect()
}

#[test]
fn speech_between_silences_is_one_utterance() {
    let events = play(&mut endpointer(), &frames(&[(30, 0.0), (40, 0.9), (19, 0.1)]));
    assert_eq!(events[0], Event::Began { at: time(30) });
    let [utterance] = utterances(&events)[..] else { panic!("{} events", events.len()) };
    assert_eq!(utterance.started_at, time(30));
    assert_eq!(utterance.ended_at, time(70));
    assert_eq!(utterance.samples[0], (30 * FRAME - 4800) as f32, "300 ms of pre-roll");
    assert_eq!(utterance.samples.last(), Some(&((70 * FRAME + 3072 - 1) as f32)), "192 ms of tail");
    assert_eq!(events.len(), 2);
}

#[test]
fn the_table_of_probabilities_and_what_they_become() {
    type Case = (&'static str, &'static [(usize, f32)], usize);
    let cases: [Case; 10] = [
        ("silence", &[(200, 0.1)], 0),
        ("never over the first gate", &[(200, 0.49)], 0),
        ("a click of one frame", &[(10, 0.0), (1, 0.99), (40, 0.0)], 0),
        ("six frames are under 200 ms", &[(10, 0.0), (6, 0.9), (40, 0.0)], 0),
        ("seven frames are over 200 ms", &[(10, 0.0), (7, 0.9), (40, 0.0)], 1),
        ("a sag to 0.4 goes on", &[(10, 0.0), (5, 0.9), (30, 0.4), (5, 0.9), (40, 0.0)], 1),
        ("a pause of 576 ms goes on", &[(10, 0.9), (18, 0.0), (10, 0.9), (40, 0.0)], 1),
        ("a pause of 608 ms ends it", &[(10, 0.9), (19, 0.0), (10, 0.9), (40, 0.0)], 2),
        ("two clicks in one second", &[(2, 0.9), (10, 0.0), (2, 0.9), (40, 0.0)], 0),
        ("no end yet", &[(10, 0.9), (18, 0.0)], 0),
    ];
    for (name, parts, wanted) in cases {
        let events = play(&mut endpointer(), &frames(parts));
        assert_eq!(utterances(&events).len(), wanted, "{name}");
    }
}

#[test]
fn too_short_speech_is_told_and_its_sound_is_the_next_pre_roll() {
    let events = play(&mut endpointer(), &frames(&[(3, 0.9), (19, 0.0), (10, 0.9), (19, 0.0)]));
    assert_eq!(events[0], Event::Dropped);
    assert_eq!(utterances(&events)[0].samples[0], (22 * FRAME - 4800) as f32);
}

#[test]
fn longer_speech_is_cut_and_goes_on_without_a_gap() {
    let events = play(&mut endpointer(), &frames(&[(20, 0.0), (1000, 0.9), (19, 0.0)]));
    let all = utterances(&events);
    assert_eq!(all.len(), 3, "32 s are three utterances of at most 15 s");
    assert!(all.iter().all(|utterance| utterance.samples.len() <= 15 * RATE as usize));
    for pair in all.windows(2) {
        assert_eq!(pair[0].samples.last().unwrap() + 1.0, pair[1].samples[0]);
        assert_eq!(pair[0].ended_at, pair[1].started_at);
    }
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Began { .. })).count(), 1);
}

#[test]
fn a_short_rest_after_a_cut_is_not_lost_and_silence_after_it_is_no_utterance() {
    for rest in [0, 1, 3] {
        let events = play(&mut endpointer(), &frames(&[(468 + rest, 0.9), (30, 0.0)]));
        let all = utterances(&events);
        assert_eq!(all.len(), if rest == 0 { 1 } else { 2 }, "{rest} frames after the cut");
        let voiced = ((468 + rest) * FRAME - 1) as f32;
        assert!(all.iter().any(|utterance| utterance.samples.contains(&voiced)), "{rest} frames after the cut");
    }
}

#[test]
fn the_end_of_the_stream_ends_the_utterance() {
    let mut endpointer = endpointer();
    play(&mut endpointer, &frames(&[(10, 0.9)]));
    assert!(endpointer.speaking());
    assert!(matches!(endpointer.finish(), Some(Event::Ended(utterance)) if utterance.samples.len() == 10 * FRAME));
    assert!(endpointer.finish().is_none());
    assert_eq!(endpointer.held(), 0);
}

#[test]
fn after_a_reset_nothing_is_left() {
    let mut endpointer = endpointer();
    play(&mut endpointer, &frames(&[(10, 0.0), (10, 0.9)]));
    endpointer.reset();
    assert_eq!(endpointer.held(), 0);
    assert!(endpointer.finish().is_none());
}

#[test]
fn an_hour_of_talk_that_never_pauses_holds_one_utterance_at_most() {
    let mut endpointer = endpointer();
    let frame = [0.1; FRAME];
    let mut taken = 0;
    for n in 0..112_500 {
        if let Some(Event::Cut(utterance)) = endpointer.push(&frame, 0.9, time(n)) {
            taken += utterance.samples.len();
        }
        assert!(endpointer.held() <= 15 * RATE as usize);
    }
    assert!(taken + endpointer.held() == 112_500 * FRAME);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |change: fn(&mut ListenConfig)| {
        let mut config = ListenConfig::default();
        change(&mut config);
        Endpointer::new(&config).err().unwrap()
    };
    assert!(matches!(refused(|c| c.speech_off = 0.5), EndpointError::Probabilities { .. }));
    assert!(matches!(refused(|c| c.speech_on = f32::NAN), EndpointError::Probabilities { .. }));
    assert!(matches!(refused(|c| c.speech_on = 1.5), EndpointError::Probabilities { .. }));
    assert!(matches!(refused(|c| c.max_utterance_s = 0), EndpointError::Longest { .. }));
    assert!(matches!(refused(|c| c.max_utterance_s = 31), EndpointError::Longest { .. }));
    assert!(matches!(refused(|c| c.end_silence_ms = 0), EndpointError::Zero { .. }));
    assert!(matches!(refused(|c| c.pre_roll_ms = 20_000), EndpointError::TooLong { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the probabilities: samples come in order, none twice, none missing inside an utterance; every frame
    /// of speech that was long enough is in one; and what is held is bounded.
    #[test]
    fn no_sample_is_lost_or_doubled_inside_speech(
        runs in prop::collection::vec((1_usize..60, prop::sample::select(vec![0.0_f32, 0.2, 0.4, 0.6, 0.95])), 1..40),
    ) {
        let config = ListenConfig { max_utterance_s: 3, ..ListenConfig::default() };
        let mut endpointer = Endpointer::new(&config).unwrap();
        let probabilities = frames(&runs);
        let mut events = play(&mut endpointer, &probabilities);
        prop_assert!(endpointer.held() <= 3 * RATE as usize + 4800);
        events.extend(endpointer.finish());
        let mut last = -1.0;
        for utterance in utterances(&events) {
            prop_assert!(utterance.samples.len() <= 3 * RATE as usize);
            prop_assert!(utterance.samples[0] > last, "a sample is in two utterances");
            for pair in utterance.samples.windows(2) {
                prop_assert_eq!(pair[0] + 1.0, pair[1]);
            }
            prop_assert!(utterance.started_at < utterance.ended_at);
            last = *utterance.samples.last().unwrap();
        }
        let heard: Vec<std::ops::RangeInclusive<f32>> = utterances(&events)
            .iter()
            .map(|utterance| utterance.samples[0]..=*utterance.samples.last().unwrap())
            .collect();
        for run in loud_runs(&probabilities).into_iter().filter(|run| run.len() >= 7) {
            for frame in run {
                let sample = (frame * FRAME) as f32;
                prop_assert!(heard.iter().any(|range| range.contains(&sample)), "frame {} is lost", frame);
            }
        }
    }
}

/// Stretches of frames at or over 0.5.
fn loud_runs(probabilities: &[f32]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (n, _) in probabilities.iter().enumerate().filter(|(_, probability)| **probability >= 0.5) {
        match runs.last_mut() {
            Some(run) if run.end == n => run.end = n + 1,
            _ => runs.push(n..n + 1),
        }
    }
    runs
}
