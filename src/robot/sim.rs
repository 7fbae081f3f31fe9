//! The simulated robot.
