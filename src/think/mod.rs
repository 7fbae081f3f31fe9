//! Thinking: one turn at a time, from what was heard to what is said.
//!
//! [`conversation`] owns the window and runs the turns; [`window`] is the model's context and its eviction rule,
//! [`turn`] is one turn (rounds, tool calls, the forced answer in words), [`hands`] runs the tools. [`brain`] is the
//! language model behind one trait: [`http`] asks a server in the house, [`offline`] answers without one, and
//! [`brains`] chooses between them; [`routed`] chooses tools for a server that ignores them. [`tools`] are the three tools and their arguments, [`words`] what a model reads,
//! [`told`] times and tool results in a person's words, [`lines`] what is said when no brain can. [`leaks`] takes tool
//! calls out of text, [`sentences`] cuts a stream of text into speakable sentences, [`when`] turns a person's words for
//! a time into a range. [`visit`] decides about people (whom to greet, whom to ask for a name, whose words are whose),
//! [`name`] reads a name out of a reply.

pub mod brain;
pub mod brains;
pub mod company;
pub mod conversation;
pub mod hands;
pub mod http;
pub mod interrupt;
pub mod leaks;
pub mod lines;
pub mod name;
pub mod offline;
pub mod routed;
pub mod sentences;
pub mod told;
pub mod tools;
pub mod turn;
pub mod visit;
pub mod when;
pub mod window;
pub mod words;
