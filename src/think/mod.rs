//! Thinking: one turn at a time, from what was heard to what is said.
//!
//! [`window`] is the model's context and its eviction rule, [`turn`] runs one turn (rounds, tool calls, the forced
//! answer in words), [`brain`] is the language model behind one trait: [`http`] asks a server in the house,
//! [`offline`] answers without one. [`tools`] are the three tools and their arguments, [`words`] what a model reads,
//! [`told`] times and tool results in a person's words. [`leaks`] takes tool calls out of text, [`sentences`] cuts a
//! stream of text into speakable sentences, [`when`] turns a person's words for a time into a range. Everything but
//! `http` decides without a clock, a socket or a file of its own.

pub mod brain;
pub mod http;
pub mod leaks;
pub mod offline;
pub mod sentences;
pub mod told;
pub mod tools;
pub mod turn;
pub mod when;
pub mod window;
pub mod words;
