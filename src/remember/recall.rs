//! What counts as an answer.
