//! Where head, antennas and body are, and how far they may go.
//!
//! Pure. The frame is the robot's own: x ahead, y to its left, z up, at the head's rest; angles in radians.

use std::fmt;
use std::ops::{Add, Sub};

use thiserror::Error;

/// A pose of the whole body, or a difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    /// Metres ahead.
    pub x: f64,
    /// Metres to the left.
    pub y: f64,
    /// Metres up.
    pub z: f64,
    /// Tilt to the right shoulder.
    pub roll: f64,
    /// Down.
    pub pitch: f64,
    /// To the left.
    pub yaw: f64,
    /// Right antenna: 0 straight up, less is back and down.
    pub right: f64,
    /// Left antenna: 0 straight up, more is back and down.
    pub left: f64,
    /// The body's turn to the left.
    pub body: f64,
}

/// How many numbers a [`Pose`] has.
pub const AXES: usize = 9;

/// Head ahead, antennas a little apart: upright they tremble (from the SDK's own rest).
pub const AHEAD: Pose = Pose { right: -0.1745, left: 0.1745, ..ZERO };

/// The head in its shell, antennas down: what the motors can let go of. Translation and angles of the SDK's own sleep.
pub const ASLEEP: Pose = Pose { x: -0.021, z: -0.044, pitch: 0.425_8, right: -3.05, left: 3.05, ..ZERO };

const ZERO: Pose = Pose { x: 0.0, y: 0.0, z: 0.0, roll: 0.0, pitch: 0.0, yaw: 0.0, right: 0.0, left: 0.0, body: 0.0 };

/// What each axis may reach, in the order of [`Pose::axes`]: its name, from, to, and whether it is an angle. Within
/// all of them at once the SDK's kinematics finds every leg within its motor's range where our gestures go (a test
/// against the SDK shows it); the mechanics alone would allow the head 40° of tilt, the body 160° and the head 65°
/// from the body.
const LIMITS: [(&str, f64, f64, bool); AXES] = [
    ("the head's way ahead", -0.025, 0.02, false),
    ("the head's way aside", -0.02, 0.02, false),
    ("the head's height", -0.052, 0.025, false),
    ("the head's tilt", -0.45, 0.45, true),
    ("the head's nod", -0.5, 0.55, true),
    ("the head's turn", -2.0, 2.0, true),
    ("the right antenna", -3.1, 3.1, true),
    ("the left antenna", -3.1, 3.1, true),
    ("the body's turn", -2.6, 2.6, true),
];

/// Most turn of the head against the body, in radians (62°): the SDK stops at 65°.
const MOST_TWIST: f64 = 1.08;

/// A pose that the body must not take.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub struct OutOfRange {
    what: &'static str,
    value: f64,
    least: f64,
    most: f64,
    angle: bool,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, unit) = if self.angle { (1f64.to_degrees(), "°") } else { (1_000.0, " mm") };
        let [value, least, most] = [self.value, self.least, self.most].map(|value| value * factor);
        write!(f, "{} would be {value:.0}{unit}; {least:.0} to {most:.0}{unit} are safe", self.what)
    }
}

impl Pose {
    /// All numbers, in the order of the fields.
    #[must_use]
    pub fn axes(&self) -> [f64; AXES] {
        [self.x, self.y, self.z, self.roll, self.pitch, self.yaw, self.right, self.left, self.body]
    }

    /// The pose of those [`Pose::axes`].
    #[must_use]
    pub fn of(axes: [f64; AXES]) -> Self {
        let [x, y, z, roll, pitch, yaw, right, left, body] = axes;
        Self { x, y, z, roll, pitch, yaw, right, left, body }
    }

    /// # Errors
    /// [`OutOfRange`] where an axis leaves its safe range, or is no number.
    pub fn check(&self) -> Result<(), OutOfRange> {
        for (value, (what, least, most, angle)) in self.axes().into_iter().zip(LIMITS) {
            if !(least..=most).contains(&value) {
                return Err(OutOfRange { what, value, least, most, angle });
            }
        }
        let (value, most) = (self.yaw - self.body, MOST_TWIST);
        if value.abs() <= most {
            Ok(())
        } else {
            Err(OutOfRange { what: "the head's turn against the body", value, least: -most, most, angle: true })
        }
    }

    /// The nearest pose that is safe: where to start from when the body is found elsewhere, as after somebody moved it
    /// by hand.
    #[must_use]
    pub fn nearest_safe(&self) -> Self {
        let mut axes = self.axes();
        for (value, (_, least, most, _)) in axes.iter_mut().zip(LIMITS) {
            *value = if value.is_finite() { value.clamp(least, most) } else { 0.0 };
        }
        let safe = Self::of(axes);
        Self { yaw: safe.body + (safe.yaw - safe.body).clamp(-MOST_TWIST, MOST_TWIST), ..safe }
    }

    /// The head as a 4×4 matrix by rows: first tilted, then nodded, then turned, all about the robot's own axes, as the
    /// SDK's `create_head_pose` does.
    #[must_use]
    pub fn head(&self) -> [f64; 16] {
        let [(sr, cr), (sp, cp), (sy, cy)] = [self.roll, self.pitch, self.yaw].map(f64::sin_cos);
        [
            cy * cp,
            cy * sp * sr - sy * cr,
            cy * sp * cr + sy * sr,
            self.x,
            sy * cp,
            sy * sp * sr + cy * cr,
            sy * sp * cr - cy * sr,
            self.y,
            -sp,
            cp * sr,
            cp * cr,
            self.z,
            0.0,
            0.0,
            0.0,
            1.0,
        ]
    }

    /// The pose of a head's matrix (by rows), right and left antenna, and the body.
    #[must_use]
    pub fn read(head: &[f64; 16], antennas: [f64; 2], body: f64) -> Self {
        let [m00, _, _, x, m10, _, _, y, m20, m21, m22, z, ..] = *head;
        Self {
            x,
            y,
            z,
            roll: m21.atan2(m22),
            pitch: (-m20).clamp(-1.0, 1.0).asin(),
            yaw: m10.atan2(m00),
            right: antennas[0],
            left: antennas[1],
            body,
        }
    }

    /// The largest difference of any of the head's angles, in radians.
    #[must_use]
    pub fn turned_from(&self, other: &Self) -> f64 {
        let apart = *self - *other;
        [apart.roll, apart.pitch, apart.yaw].into_iter().map(f64::abs).fold(0.0, f64::max)
    }
}

impl Add for Pose {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (mut sum, other) = (self.axes(), other.axes());
        sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        Self::of(sum)
    }
}

impl Sub for Pose {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let (mut difference, other) = (self.axes(), other.axes());
        difference.iter_mut().zip(other).for_each(|(difference, other)| *difference -= other);
        Self::of(difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pose_comes_back_from_its_matrix() {
        let pose =
            Pose { x: 0.01, y: -0.02, z: 0.005, roll: 0.2, pitch: -0.3, yaw: 0.9, right: -1.0, left: 0.5, body: 0.4 };
        let back = Pose::read(&pose.head(), [pose.right, pose.left], pose.body);
        for (there, here) in pose.axes().into_iter().zip(back.axes()) {
            assert!((there - here).abs() < 1e-12, "{pose:?} {back:?}");
        }
    }

    #[test]
    fn turned_left_is_turned_to_the_robots_left_and_nodded_is_down() {
        let left = Pose { yaw: 0.5, ..Pose::default() }.head();
        // Where the nose points: the first column.
        assert!(left[4] > 0.4, "y is to the left");
        let down = Pose { pitch: 0.5, ..Pose::default() }.head();
        assert!(down[8] < -0.4, "z is up");
    }

    #[test]
    fn a_body_that_was_moved_by_hand_starts_from_the_nearest_safe_pose() {
        for found in [
            Pose { z: -0.09, pitch: 0.9, yaw: 2.9, right: -3.2, ..AHEAD },
            Pose { yaw: 1.9, body: -2.7, ..AHEAD },
            Pose { roll: f64::NAN, x: f64::INFINITY, ..AHEAD },
        ] {
            found.nearest_safe().check().unwrap();
        }
        assert_eq!(ASLEEP.nearest_safe(), ASLEEP);
    }

    #[test]
    fn a_pose_out_of_range_is_told_with_its_range() {
        AHEAD.check().unwrap();
        ASLEEP.check().unwrap();
        let error = Pose { pitch: 0.7, ..AHEAD }.check().unwrap_err().to_string();
        assert_eq!(error, "the head's nod would be 40°; -29 to 32° are safe");
        assert!(Pose { z: 0.1, ..AHEAD }.check().unwrap_err().to_string().contains("100 mm"));
        let twisted = Pose { yaw: 1.2, ..AHEAD };
        assert!(twisted.check().unwrap_err().to_string().contains("against the body"));
        Pose { body: 0.3, ..twisted }.check().unwrap();
        assert!(Pose { yaw: f64::NAN, ..AHEAD }.check().is_err(), "no number is no place");
    }
}
