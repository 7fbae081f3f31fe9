//! Acting: the voice ([`voice`]) and what the body shows.

pub mod voice;
