//! Gestures as pose sequences: pure functions of time, each from rest to rest.
//!
//! A sequence says how far the body departs from where it is; whoever plays it adds that to the pose it holds. Between
//! two keys every axis follows the minimum-jerk curve (Flash and Hogan, 1985: 10τ³ − 15τ⁴ + 6τ⁵), so that speed and
//! acceleration are zero at each key and no motor is ever jerked. Angles and times were chosen by eye on paper and
//! are not measured on a robot; the SDK's kinematics confirms that they can be reached.

use super::Gesture;
use super::pose::{AXES, Pose};

/// One key: how long the way there takes, in seconds, and how far from the held pose it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    pub takes: f64,
    pub to: Pose,
}

/// A gesture's keys. The last one is no departure at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    keys: &'static [Key],
}

/// How far along a minimum-jerk way is after `part` of its time (0…1), 0…1.
#[must_use]
pub fn minimum_jerk(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part.powi(3) * (10.0 + part * (6.0 * part - 15.0))
}

impl Sequence {
    /// Its whole length, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.keys.iter().map(|key| key.takes).sum()
    }

    /// How far from the held pose the body is `seconds` after the start; nothing before and after it.
    #[must_use]
    pub fn at(&self, seconds: f64) -> Pose {
        let (mut from, mut left) = (Pose::default(), seconds.max(0.0));
        for key in self.keys {
            if left < key.takes {
                let part = minimum_jerk(left / key.takes);
                let (start, end) = (from.axes(), key.to.axes());
                let mut now = [0.0; AXES];
                for (now, (start, end)) in now.iter_mut().zip(start.into_iter().zip(end)) {
                    *now = start + (end - start) * part;
                }
                return Pose::of(now);
            }
            left -= key.takes;
            from = key.to;
        }
        Pose::default()
    }
}

impl Gesture {
    /// The sequence of this gesture; `None` for those that turn the head and leave it there.
    #[must_use]
    pub fn sequence(self) -> Option<Sequence> {
        let keys: &'static [Key] = match self {
            Self::Nod => &NOD,
            Self::Shake => &SHAKE,
            Self::Dance => &DANCE,
            Self::Happy => &HAPPY,
            Self::Sad => &SAD,
            Self::Curious => &CURIOUS,
            Self::Surprised => &SURPRISED,
            Self::Confused => &CONFUSED,
            Self::LookLeft | Self::LookRight | Self::LookAhead => return None,
        };
        Some(Sequence { keys })
    }
}

const HELD: Pose = Pose { x: 0.0, y: 0.0, z: 0.0, roll: 0.0, pitch: 0.0, yaw: 0.0, right: 0.0, left: 0.0, body: 0.0 };

const fn key(takes: f64, to: Pose) -> Key {
    Key { takes, to }
}

const NOD: [Key; 4] = [
    key(0.30, Pose { pitch: 0.22, ..HELD }),
    key(0.28, Pose { pitch: -0.05, ..HELD }),
    key(0.28, Pose { pitch: 0.18, ..HELD }),
    key(0.32, HELD),
];

const SHAKE: [Key; 4] = [
    key(0.30, Pose { yaw: 0.26, ..HELD }),
    key(0.42, Pose { yaw: -0.26, ..HELD }),
    key(0.40, Pose { yaw: 0.20, ..HELD }),
    key(0.32, HELD),
];

const DANCE: [Key; 8] = [
    key(0.45, Pose { y: 0.012, roll: -0.20, body: 0.20, right: -0.6, left: -0.2, ..HELD }),
    key(0.50, Pose { y: -0.012, roll: 0.20, body: -0.20, right: 0.2, left: 0.6, ..HELD }),
    key(0.50, Pose { y: 0.012, roll: -0.20, body: 0.20, right: -0.6, left: -0.2, ..HELD }),
    key(0.50, Pose { y: -0.012, roll: 0.20, body: -0.20, right: 0.2, left: 0.6, ..HELD }),
    key(0.40, Pose { z: -0.010, pitch: 0.15, right: -0.5, left: 0.5, ..HELD }),
    key(0.35, Pose { z: 0.010, pitch: -0.10, right: 0.3, left: -0.3, ..HELD }),
    key(0.40, Pose { z: -0.010, pitch: 0.15, right: -0.5, left: 0.5, ..HELD }),
    key(0.45, HELD),
];

const HAPPY: [Key; 6] = [
    key(0.30, Pose { z: 0.005, pitch: -0.14, right: 0.4, left: -0.4, ..HELD }),
    key(0.22, Pose { z: 0.005, pitch: -0.14, roll: 0.08, right: -0.3, left: 0.3, ..HELD }),
    key(0.22, Pose { z: 0.006, pitch: -0.14, roll: -0.08, right: 0.4, left: -0.4, ..HELD }),
    key(0.22, Pose { z: 0.005, pitch: -0.12, roll: 0.08, right: -0.3, left: 0.3, ..HELD }),
    key(0.22, Pose { z: 0.006, pitch: -0.10, right: 0.4, left: -0.4, ..HELD }),
    key(0.40, HELD),
];

const SAD: [Key; 4] = [
    key(1.10, Pose { z: -0.015, pitch: 0.28, right: -1.6, left: 1.6, ..HELD }),
    key(0.60, Pose { z: -0.015, pitch: 0.28, yaw: 0.10, right: -1.6, left: 1.6, ..HELD }),
    key(0.60, Pose { z: -0.015, pitch: 0.28, yaw: -0.10, right: -1.6, left: 1.6, ..HELD }),
    key(1.00, HELD),
];

const CURIOUS: [Key; 3] = [
    key(0.50, Pose { x: 0.010, roll: 0.22, pitch: 0.05, right: 0.3, left: 0.2, ..HELD }),
    key(0.60, Pose { x: 0.010, roll: 0.20, pitch: 0.05, right: 0.3, left: 0.2, ..HELD }),
    key(0.50, HELD),
];

const SURPRISED: [Key; 3] = [
    key(0.25, Pose { x: -0.010, z: 0.004, pitch: -0.15, right: 0.5, left: -0.5, ..HELD }),
    key(0.60, Pose { x: -0.009, z: 0.004, pitch: -0.14, right: 0.5, left: -0.5, ..HELD }),
    key(0.55, HELD),
];

const CONFUSED: [Key; 5] = [
    key(0.45, Pose { roll: -0.20, yaw: 0.10, right: -0.8, left: -0.1, ..HELD }),
    key(0.40, Pose { roll: -0.20, yaw: 0.10, right: -0.8, left: -0.1, ..HELD }),
    key(0.55, Pose { roll: 0.20, yaw: -0.10, right: 0.1, left: 0.8, ..HELD }),
    key(0.40, Pose { roll: 0.20, yaw: -0.10, right: 0.1, left: 0.8, ..HELD }),
    key(0.50, HELD),
];

/// Breathing while nothing happens, at `seconds`: up and down by 3 mm and 1.5° of the antennas, twelve times a minute.
#[must_use]
pub fn breath(seconds: f64) -> Pose {
    let wave = (seconds * std::f64::consts::TAU / 5.0).sin();
    Pose { z: 0.003 * wave, right: -0.026 * wave, left: 0.026 * wave, ..Pose::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::pose::AHEAD;

    const STEP: f64 = 0.001;
    /// Fastest turn of the head and of an antenna, in radians a second. From the SDK's own quickest moves: its wake-up
    /// tilts the head 20° in 0.2 s, which peaks at 3.3.
    const FASTEST: (f64, f64) = (3.3, 9.0);

    fn all() -> impl Iterator<Item = (Gesture, Sequence)> {
        Gesture::ALL.into_iter().filter_map(|gesture| gesture.sequence().map(|sequence| (gesture, sequence)))
    }

    fn samples(sequence: Sequence) -> Vec<Pose> {
        let count = (sequence.seconds() / STEP) as usize + 50;
        (0..count).map(|step| sequence.at(step as f64 * STEP)).collect()
    }

    #[test]
    fn every_gesture_but_the_looks_has_a_short_sequence() {
        assert_eq!(all().count(), 8);
        for (gesture, sequence) in all() {
            assert!((1.0..=4.0).contains(&sequence.seconds()), "{gesture:?} takes {} s", sequence.seconds());
        }
    }

    #[test]
    fn a_gesture_starts_and_ends_at_rest() {
        for (gesture, sequence) in all() {
            let poses = samples(sequence);
            for (place, pair) in [("start", &poses[..2]), ("end", &poses[poses.len() - 2..])] {
                let moved = (pair[1] - pair[0]).axes().into_iter().map(f64::abs).fold(0.0, f64::max);
                assert!(moved < 1e-5, "{gesture:?} moves at its {place}");
            }
            assert_eq!(sequence.at(0.0), Pose::default());
            let end = sequence.at(sequence.seconds()).axes();
            assert!(end.into_iter().all(|axis| axis.abs() < 1e-12), "{gesture:?} ends at {end:?}");
            assert_eq!(sequence.at(1e9), Pose::default());
        }
    }

    #[test]
    fn a_gesture_is_smooth_and_no_faster_than_the_motors() {
        for (gesture, sequence) in all() {
            let poses = samples(sequence);
            for three in poses.windows(3) {
                let first = (three[1] - three[0]).axes().map(|way| way / STEP);
                let second = (three[2] - three[1]).axes().map(|way| way / STEP);
                for (axis, (before, after)) in first.into_iter().zip(second).enumerate() {
                    let most = if axis < 3 {
                        0.2
                    } else if axis == 6 || axis == 7 {
                        FASTEST.1
                    } else {
                        FASTEST.0
                    };
                    assert!(after.abs() <= most, "{gesture:?}, axis {axis}: {after} a second");
                    // A jump would show as an acceleration of its size times a million.
                    assert!((after - before).abs() / STEP < 200.0, "{gesture:?}, axis {axis} jumps");
                }
            }
        }
    }

    #[test]
    fn a_gesture_stays_in_the_safe_range_from_wherever_it_starts() {
        for (gesture, sequence) in all() {
            for yaw in [-0.8, -0.35, 0.0, 0.35, 0.8] {
                let held = Pose { yaw, body: yaw / 3.0, ..AHEAD };
                for pose in samples(sequence) {
                    (held + pose + breath(1.25)).check().unwrap_or_else(|error| panic!("{gesture:?}: {error}"));
                }
            }
        }
    }

    #[test]
    fn minimum_jerk_goes_from_nothing_to_all_through_the_middle() {
        assert_eq!((minimum_jerk(-1.0), minimum_jerk(0.0), minimum_jerk(1.0), minimum_jerk(2.0)), (0.0, 0.0, 1.0, 1.0));
        assert!((minimum_jerk(0.5) - 0.5).abs() < 1e-12);
    }
}
