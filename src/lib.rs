//! A memory for a Reachy Mini desk robot, on the robot's own disk.
//!
//! The tree reads as the loop runs: [`listen`] turns sound into words, [`think`] holds one turn, [`remember`] owns
//! the memory, [`act`] speaks and moves; [`robot`] is the body, [`models`] the weight files. `ARCHITECTURE.md` has
//! the map, who owns which state, and what must always hold.

pub mod act;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod daemon;
pub mod health;
pub mod listen;
pub mod models;
pub mod remember;
pub mod robot;
pub mod see;
pub mod think;
