//! What the mover must always hold, over long and busy stretches of time.

use super::*;
use crate::robot::Gesture;

const STEP: f64 = 0.002;

fn awake() -> Mover {
    let mut mover = Mover::found(ASLEEP);
    mover.wake(0.0);
    mover
}

fn largest(pose: Pose) -> f64 {
    pose.axes().into_iter().map(f64::abs).fold(0.0, f64::max)
}

#[test]
fn it_wakes_from_sleep_to_ahead_and_breathes() {
    let mover = awake();
    assert_eq!(mover.pose(0.0).unwrap(), ASLEEP);
    let up = mover.pose(3.0).unwrap();
    assert!(up.turned_from(&AHEAD) < 1e-9 && up.z.abs() <= 0.003, "{up:?}");
    let breaths: Vec<f64> = (0..500).map(|step| mover.pose(3.0 + f64::from(step) * 0.01).unwrap().z).collect();
    let (low, high) = breaths.iter().fold((0.0f64, 0.0f64), |(low, high), z| (low.min(*z), high.max(*z)));
    assert!(low < -0.0025 && high > 0.0025, "{low} {high}");
}

#[test]
fn a_look_ends_at_45_degrees_and_the_way_back_ahead() {
    let mut mover = awake();
    mover.look(Direction::Left, 3.0);
    let left = mover.pose(5.0).unwrap();
    assert!((left.yaw.to_degrees() - 45.0).abs() < 0.1 && left.body > 0.2, "{left:?}");
    assert_eq!(mover.looks(), Direction::Left);
    mover.look(Direction::Ahead, 5.0);
    assert!(mover.pose(6.0).unwrap().yaw.abs() < 1e-9);
}

#[test]
fn whatever_comes_in_whatever_order_it_never_jumps_and_never_leaves_the_safe_range() {
    let mut mover = awake();
    let mut seed = 7_u32;
    let mut random = |below: u32| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed % below
    };
    let mut before = mover.pose(0.0).unwrap();
    for step in 1..60_000 {
        let now = f64::from(step) * STEP;
        // Whole sentences of motion, cut by others at any time; a gesture runs to its end.
        if random(60) == 0 {
            match random(5) {
                0 => drop(mover.look([Direction::Ahead, Direction::Left, Direction::Right][random(3) as usize], now)),
                1 => mover.attend(
                    [Attention::Idle, Attention::Transcribing, Attention::Thinking, Attention::Speaking]
                        [random(4) as usize],
                    now,
                ),
                2 => drop(mover.gaze((f64::from(random(100)) / 50.0 - 1.0, f64::from(random(100)) / 100.0 - 0.5), now)),
                _ if mover.gesture.is_none_or(|(sequence, began)| now - began > sequence.seconds()) => {
                    if let Some(sequence) = Gesture::ALL[random(11) as usize].sequence() {
                        mover.gesture(sequence, now);
                    }
                }
                _ => {}
            }
        }
        let pose = mover.pose(now).unwrap_or_else(|error| panic!("{error} at {now} s"));
        assert!(largest(pose - before) < 0.04, "it jumped at {now} s: {before:?} → {pose:?}");
        before = pose;
    }
}

#[test]
fn it_lies_down_from_anywhere_and_then_nothing_moves_it() {
    for looks in [Direction::Ahead, Direction::Right] {
        let mut mover = awake();
        mover.look(looks, 2.0);
        let mut now = 4.0;
        now += mover.settle(now);
        now += mover.lie_down(now);
        assert!(now < 4.0 + 2.5, "the end has ten seconds for everything");
        mover.attend(Attention::Thinking, now);
        assert!(!mover.gaze((0.3, 0.0), now));
        assert!(largest(mover.pose(now + 1.0).unwrap() - ASLEEP) < 1e-9);
    }
}

#[test]
fn what_is_found_elsewhere_after_a_restart_glides_back_to_where_it_was_to_be() {
    let mut mover = awake();
    mover.look(Direction::Left, 3.0);
    mover.is_found(ASLEEP, 10.0);
    assert!(largest(mover.pose(10.0).unwrap() - ASLEEP) < 1e-9);
    assert!((mover.pose(12.0).unwrap().yaw - ASIDE).abs() < 1e-6);
}

#[test]
fn a_face_on_the_left_of_the_picture_turns_the_head_to_the_left() {
    let (left, down) = toward([0.1, 0.1, 0.3, 0.3]).unwrap();
    assert!(left > 0.4 && down < -0.2, "{left} {down}");
    assert_eq!(toward([0.4, 0.4, 0.6, 0.6]).map(|(left, down)| left.abs() + down.abs() < 1e-6), Some(true));
    // The picture's edge is half the camera's field of view away: 87.6° across.
    let (edge, _) = toward([1.0, 0.5, 1.0, 0.5]).unwrap();
    assert!((edge.to_degrees() + 43.8).abs() < 0.2, "{edge}");
    for nowhere in [[f32::NAN; 4], [1.5, 0.0, 1.9, 0.5], [-3.0, 0.0, 0.0, 0.5]] {
        assert_eq!(toward(nowhere), None);
    }
}

#[test]
fn the_gaze_follows_a_face_until_it_is_in_the_middle_and_then_rests() {
    let mut mover = awake();
    // The face stands 15° to the left of straight ahead.
    let face = 15f64.to_radians();
    let mut moves = 0;
    for step in 0..50 {
        let now = 3.0 + f64::from(step) * 0.2;
        let yaw = mover.gaze.at(now)[0].yaw;
        moves += u32::from(mover.gaze((face - yaw, 0.0), now));
    }
    let at_last = mover.pose(15.0).unwrap().yaw;
    assert!((at_last - face).abs() < GAZE_STILL, "{at_last}");
    assert!(moves <= 2, "it turned {moves} times for a face that stood still");
    // What is farther off than the picture may move stays aside of the middle.
    assert!(mover.gaze((1.0, 1.0), 20.0));
    let far = mover.pose(22.0).unwrap();
    assert!((far.yaw - GAZE_ASIDE).abs() < 1e-9 && (far.pitch - GAZE_NODS.1).abs() < 0.01, "{far:?}");
}
