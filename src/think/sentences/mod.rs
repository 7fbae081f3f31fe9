//! Cuts a stream of text into sentences that a voice can speak, as soon as each is surely complete.
//!
//! [`Sentences`] holds the text of one answer. Where a sentence ends depends only on the text, never on how it was
//! split into deltas; every letter and digit that is not markup comes out, in order. [`clean`] takes markdown and
//! emoji away; tool calls and thoughts are taken out by [`super::leaks`]. Pure, and bounded by [`LONGEST_SENTENCE`].

mod boundary;
mod clean;

use super::leaks::{LeakFilter, Piece};

use boundary::Boundary;
pub use clean::clean;

/// The longest sentence, in characters; longer ones are cut at the last comma or space before it. About half a minute
/// of speech at 160 words a minute. Not measured.
pub const LONGEST_SENTENCE: usize = 400;

/// The splitter of one answer.
#[derive(Debug)]
pub struct Sentences {
    leaks: LeakFilter,
    /// Text that has not been spoken; its sentence is not surely complete.
    pending: Vec<char>,
    /// Whether `pending` begins a line, where `- ` is a bullet and `1.` a list's number.
    line_start: bool,
}

impl Default for Sentences {
    fn default() -> Self {
        Self::new()
    }
}

impl Sentences {
    #[must_use]
    pub fn new() -> Self {
        Self { leaks: LeakFilter::new(), pending: Vec::new(), line_start: true }
    }

    /// Takes the next piece of the answer and gives the sentences that are complete by now.
    #[must_use = "these sentences are given only once"]
    pub fn push(&mut self, delta: &str) -> Vec<String> {
        let pieces = self.leaks.push(delta);
        self.take(pieces);
        self.complete(false)
    }

    /// Gives what is left at the end of the answer. Where that is several sentences, they come as one text.
    #[must_use = "these words are given only once"]
    pub fn finish(&mut self) -> Option<String> {
        let pieces = self.leaks.finish();
        self.take(pieces);
        let mut rest = self.complete(true);
        let tail: Vec<char> = self.pending.drain(..).collect();
        rest.extend(clean(&tail, self.line_start));
        (!rest.is_empty()).then(|| rest.join(" "))
    }

    fn take(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.pending.extend(text.chars()),
                // The sentence goes on after the markup, but its words do not grow together.
                Piece::Call { .. } | Piece::HeldBack(_) => self.pending.push(' '),
            }
        }
    }

    fn complete(&mut self, ended: bool) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut from = 0;
        loop {
            let rest = self.pending.get(from..).unwrap_or_default();
            let end = match boundary::first(rest, self.line_start, LONGEST_SENTENCE) {
                Boundary::At(end) => end,
                Boundary::Unsure(end) if ended => end,
                Boundary::Unsure(_) | Boundary::None => break,
            };
            let (sentence, _) = rest.split_at(end);
            sentences.extend(clean(sentence, self.line_start));
            let last = sentence.iter().rev().find(|character| **character != ' ');
            self.line_start = match last {
                Some(last) => *last == '\n',
                None => self.line_start,
            };
            from += end;
        }
        self.pending.drain(..from);
        sentences
    }
}

#[cfg(test)]
mod tests;
