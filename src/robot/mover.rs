//! The pose of every moment: where the body looks, what it is doing, and a gesture on top.
//!
//! Pure: the time is given, in seconds since any start. One owner asks 50 times a second. A layer that is given a new
//! goal goes there from where it is and as fast as it is (a quintic with position, speed and acceleration at its
//! start), so the sum never jumps.

use super::gestures::{Sequence, breath};
use super::pose::{AHEAD, ASLEEP, AXES, OutOfRange, Pose};
use super::{Attention, Direction};

/// Head's turn for a look aside, in radians (45°): it shows another part of the room, where 20° do not.
pub const ASIDE: f64 = 0.785;
/// The body's share of it. Not measured: it looks less strained.
const ASIDE_BODY: f64 = 0.26;
/// How long a look aside takes, in seconds. Not measured; it peaks at 90° a second.
const LOOK_TAKES: f64 = 0.9;
/// How long a change of mood takes, in seconds. Not measured.
const MOOD_TAKES: f64 = 0.6;
/// How long a turn of the gaze takes, in seconds. Not measured.
const GAZE_TAKES: f64 = 0.5;
/// Farthest turn of the gaze aside from where the robot looks, in radians (20°): the picture still shows the same part of
/// the room. What is farther off stays aside of the middle.
const GAZE_ASIDE: f64 = 0.35;
/// Farthest up and down, in radians (7° and 12°): a gesture on top must still be within the legs' reach.
const GAZE_NODS: (f64, f64) = (-0.12, 0.21);
/// A gaze that is this near to what it follows stays where it is, in radians (4°), so that it does not tremble.
const GAZE_STILL: f64 = 0.07;
/// Pictures that were taken until this long after the gaze turned still show the old one, in seconds. Not measured.
const GAZE_SETTLES: f64 = 0.25;
/// How long it takes to wake up, or to lie down from ahead, in seconds. Two in the SDK; one and a half fit in our end.
const RISE_TAKES: f64 = 1.5;
/// How long the way ahead takes before lying down, in seconds. One in the SDK.
const AHEAD_TAKES: f64 = 0.7;

/// Half the camera's picture, as tangents across and down: 1920 / 2001.8 and 1080 / 2003.1, from the SDK's calibration
/// of the robot's camera, whose 1280×720 picture shows the sensor's full width.
const HALF_PICTURE: (f64, f64) = (0.959, 0.539);

/// How far the head would have to turn (to its left) and nod (down), in radians, so that the middle of `place` (left,
/// top, right, bottom in 0…1 of the picture) is in the middle of the picture. `None` for what is no place.
#[must_use]
pub fn toward(place: [f32; 4]) -> Option<(f64, f64)> {
    let [left, top, right, bottom] = place.map(f64::from);
    let (across, down) = (f64::midpoint(left, right), f64::midpoint(top, bottom));
    let inside = |part: f64| (0.0..=1.0).contains(&part);
    (inside(across) && inside(down)).then(|| {
        let (across, down) = (2.0 * across - 1.0, 2.0 * down - 1.0);
        (-(across * HALF_PICTURE.0).atan(), (down * HALF_PICTURE.1).atan())
    })
}

/// One layer on its way to a goal.
#[derive(Clone, Copy, Debug, Default)]
struct Glide {
    from: Pose,
    speed: Pose,
    bend: Pose,
    to: Pose,
    began: f64,
    takes: f64,
}

impl Glide {
    fn still(at: Pose) -> Self {
        Self { from: at, to: at, ..Self::default() }
    }

    /// Position, speed and acceleration at `now`.
    fn at(&self, now: f64) -> [Pose; 3] {
        let (t, whole) = (now - self.began, self.takes);
        if t >= whole {
            return [self.to, Pose::default(), Pose::default()];
        }
        let mut parts = [[0.0; AXES]; 3];
        let (from, speed, bend, to) = (self.from.axes(), self.speed.axes(), self.bend.axes(), self.to.axes());
        for axis in 0..AXES {
            let (way, v, a) = (to[axis] - from[axis], speed[axis], bend[axis]);
            // The quintic that ends at the goal with neither speed nor acceleration.
            let cubic = (20.0 * way - 12.0 * v * whole - 3.0 * a * whole.powi(2)) / (2.0 * whole.powi(3));
            let quartic = (-30.0 * way + 16.0 * v * whole + 3.0 * a * whole.powi(2)) / (2.0 * whole.powi(4));
            let quintic = (12.0 * way - 6.0 * v * whole - a * whole.powi(2)) / (2.0 * whole.powi(5));
            let t = t.max(0.0);
            parts[0][axis] = from[axis] + t * (v + t * (a / 2.0 + t * (cubic + t * (quartic + t * quintic))));
            parts[1][axis] = v + t * (a + t * (3.0 * cubic + t * (4.0 * quartic + t * 5.0 * quintic)));
            parts[2][axis] = a + t * (6.0 * cubic + t * (12.0 * quartic + t * 20.0 * quintic));
        }
        parts.map(Pose::of)
    }

    fn go(&mut self, to: Pose, takes: f64, now: f64) {
        let [from, speed, bend] = self.at(now);
        *self = Self { from, speed, bend, to, began: now, takes };
    }
}

/// All layers.
#[derive(Clone, Debug)]
pub struct Mover {
    /// Where the body looks; its `speed` and goal hold head, antennas and body.
    held: Glide,
    gaze: Glide,
    mood: Glide,
    /// Only `x` counts: how much it breathes, 0…1.
    breathes: Glide,
    gesture: Option<(Sequence, f64)>,
    looks: Direction,
    attention: Attention,
    asleep: bool,
}

impl Mover {
    /// A body that is found in `pose` and knows no better.
    #[must_use]
    pub fn found(pose: Pose) -> Self {
        Self {
            held: Glide::still(pose),
            gaze: Glide::default(),
            mood: Glide::default(),
            breathes: Glide::default(),
            gesture: None,
            looks: Direction::Ahead,
            attention: Attention::Idle,
            asleep: true,
        }
    }

    /// The pose of that moment.
    ///
    /// # Errors
    /// [`OutOfRange`] when the sum of what it does would leave the safe range.
    pub fn pose(&self, now: f64) -> Result<Pose, OutOfRange> {
        let pose = self.sum(now);
        pose.check().map(|()| pose)
    }

    fn sum(&self, now: f64) -> Pose {
        let breathes = self.breathes.at(now)[0].x;
        let breath = Pose::of(breath(now).axes().map(|axis| axis * breathes));
        let gesture = self.gesture.map_or_else(Pose::default, |(sequence, began)| sequence.at(now - began));
        self.held.at(now)[0] + self.gaze.at(now)[0] + self.mood.at(now)[0] + breath + gesture
    }

    /// Where the body would stand when everything is over: what a movement is judged by.
    #[must_use]
    pub fn goal(&self) -> Pose {
        self.held.to + self.gaze.to + self.mood.to
    }

    /// The same robot after its daemon came back: it is where it is found, and goes where it was to be.
    pub fn is_found(&mut self, pose: Pose, now: f64) {
        let goal = self.held.to;
        self.held = Glide::still(pose);
        (self.gaze, self.mood, self.breathes) = (Glide::default(), Glide::default(), Glide::default());
        self.gesture = None;
        if !self.asleep {
            self.held.go(goal, RISE_TAKES, now);
        }
        self.feel(now);
    }

    /// Where it looks, or is on its way to.
    #[must_use]
    pub fn looks(&self) -> Direction {
        self.looks
    }

    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Gets up, and says how long that takes, in seconds.
    pub fn wake(&mut self, now: f64) -> f64 {
        self.asleep = false;
        self.looks = Direction::Ahead;
        self.held.go(AHEAD, RISE_TAKES, now);
        self.feel(now);
        RISE_TAKES
    }

    /// Looks ahead before it lies down; how long that takes, in seconds. Nothing moves it any more but [`Self::wake`].
    pub fn settle(&mut self, now: f64) -> f64 {
        self.asleep = true;
        self.gesture = None;
        self.looks = Direction::Ahead;
        let is_low = self.held.to.z < AHEAD.z - 0.03;
        let takes = if is_low { 0.0 } else { AHEAD_TAKES };
        if !is_low {
            self.held.go(AHEAD, takes, now);
        }
        for layer in [&mut self.gaze, &mut self.mood, &mut self.breathes] {
            layer.go(Pose::default(), AHEAD_TAKES, now);
        }
        takes
    }

    /// Lies down; how long that takes, in seconds.
    pub fn lie_down(&mut self, now: f64) -> f64 {
        self.held.go(ASLEEP, RISE_TAKES, now);
        RISE_TAKES
    }

    /// Turns to look there; how long that takes, in seconds.
    pub fn look(&mut self, direction: Direction, now: f64) -> f64 {
        let side = match direction {
            Direction::Ahead => 0.0,
            Direction::Left => 1.0,
            Direction::Right => -1.0,
        };
        self.looks = direction;
        self.held.go(Pose { yaw: side * ASIDE, body: side * ASIDE_BODY, ..AHEAD }, LOOK_TAKES, now);
        if direction != Direction::Ahead {
            self.gaze.go(Pose::default(), LOOK_TAKES, now);
        }
        LOOK_TAKES
    }

    /// Begins a gesture; how long it takes, in seconds.
    pub fn gesture(&mut self, sequence: Sequence, now: f64) -> f64 {
        self.gesture = Some((sequence, now));
        sequence.seconds()
    }

    /// Drops a gesture, as when the sum would leave the safe range.
    pub fn drop_gesture(&mut self) {
        self.gesture = None;
    }

    /// What the conversation is doing now.
    pub fn attend(&mut self, attention: Attention, now: f64) {
        if attention != self.attention {
            self.attention = attention;
            self.feel(now);
        }
    }

    fn feel(&mut self, now: f64) {
        if self.asleep {
            return;
        }
        let (mood, breathes) = match self.attention {
            Attention::Idle => (Pose::default(), 1.0),
            // Listening: the head a little aside, antennas up.
            Attention::Transcribing => (Pose { roll: 0.09, right: 0.12, left: -0.12, ..Pose::default() }, 0.0),
            // Thinking: up and aside, one antenna back.
            Attention::Thinking => (Pose { pitch: -0.08, yaw: -0.10, right: -0.35, ..Pose::default() }, 0.0),
            Attention::Speaking => (Pose { pitch: -0.03, ..Pose::default() }, 0.3),
        };
        self.mood.go(mood, MOOD_TAKES, now);
        self.breathes.go(Pose { x: breathes, ..Pose::default() }, MOOD_TAKES, now);
    }

    /// Follows something that is so far off the middle of what the head sees now, to its left and down, in radians.
    /// Whether it moved: not where it is near enough, looks aside, or has only just turned.
    pub fn gaze(&mut self, (left, down): (f64, f64), now: f64) -> bool {
        let is_near = left.abs().max(down.abs()) < GAZE_STILL;
        let is_turning = now < self.gaze.began + self.gaze.takes + GAZE_SETTLES;
        if self.asleep || self.looks != Direction::Ahead || is_near || (is_turning && self.gaze.takes > 0.0) {
            return false;
        }
        let (yaw, pitch) = (self.gaze.to.yaw + left, self.gaze.to.pitch + down);
        let yaw = yaw.clamp(-GAZE_ASIDE, GAZE_ASIDE);
        let pitch = pitch.clamp(GAZE_NODS.0, GAZE_NODS.1);
        self.gaze.go(Pose { yaw, pitch, ..Pose::default() }, GAZE_TAKES, now);
        true
    }
}

#[cfg(test)]
mod tests;
