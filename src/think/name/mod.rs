//! Reading a person's name: out of the reply to "What is your name?", and out of a question about somebody.
//!
//! [`read`] is the offline reader, several languages' phrasings in files beside it; [`name_request`] and
//! [`parse_reply`] are the same for a language model, whose word counts only if it was really said. All of it is pure
//! and may be called by anybody. In doubt there is no name: a wrong one outlives the mistake.

mod clauses;
mod reader;
mod rules;
mod whom;

pub use whom::{Whom, about_whom};

/// How a model is told to read the name; the system prompt of a side request.
pub const NAME_WORDS: &str = include_str!("../words/name.md");

/// The longest name that is taken, in letters. Not measured; a first name of two words fits.
pub const LONGEST_NAME: usize = 40;

/// A side request to the language model, without tools and history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRequest {
    /// Its system prompt.
    pub system: &'static str,
    /// Its one user message.
    pub user: String,
}

/// The name in the reply to "What is your name?"; `None` when in doubt.
///
/// One word that is written like a name, or two. English, German, French, Spanish, Italian, Dutch, Portuguese, Polish,
/// Russian, Chinese, Japanese, Korean and phrases of a dozen more.
#[must_use]
pub fn read(reply: &str) -> Option<String> {
    reader::read(reply).filter(|name| fits(name))
}

/// The name by which somebody introduces themselves in so many words ("I'm Bob"); a bare name is no introduction.
#[must_use]
pub fn introduces(words: &str) -> Option<String> {
    reader::introduces(words).filter(|name| fits(name))
}

/// Whether somebody says that they are not `name`: "I'm not Anna", "That's not my name".
#[must_use]
pub fn denies(words: &str, name: &str) -> bool {
    reader::denies(words, name)
}

/// Whether `name` was said in `words`: letter by letter, without case, as words of their own.
#[must_use]
pub fn was_said(name: &str, words: &str) -> bool {
    reader::occurs_in(name, words)
}

/// Whether two names call the same person: the same, or one with a second name ("Anna", "Anna Maria").
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    let first = |name: &str| name.split_whitespace().next().unwrap_or_default().to_lowercase();
    !first(a).is_empty() && first(a) == first(b)
}

/// What the model is asked about `reply`.
#[must_use]
pub fn name_request(reply: &str) -> NameRequest {
    let said = reply.split_whitespace().collect::<Vec<_>>().join(" ");
    NameRequest { system: NAME_WORDS, user: format!("The robot: What is your name?\nThe answer: {said}") }
}

/// The name in the model's answer to [`name_request`]; `None` for "none", for more than a name, and for a word that
/// was not `said`, or was said in order to deny it.
#[must_use]
pub fn parse_reply(model: &str, said: &str) -> Option<String> {
    const AROUND: [char; 14] = ['"', '\'', '“', '”', '‘', '’', '`', '*', '.', '!', ':', ',', '。', ' '];
    let line = model.lines().map(str::trim).find(|line| !line.is_empty())?;
    let name = line.trim_matches(AROUND);
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_name = (1..=2).contains(&words.len())
        && fits(name)
        && name.chars().all(|letter| letter.is_alphabetic() || matches!(letter, ' ' | '-' | '\'' | '’' | '・'))
        && !words.iter().any(|word| rules::rules().is_no_name(&word.to_lowercase()) && !known(word));
    if !is_name || !was_said(name, said) || denies(said, name) {
        return None;
    }
    Some(words.iter().map(|word| capitalised(word)).collect::<Vec<_>>().join(" "))
}

fn known(word: &str) -> bool {
    rules::rules().is_known_name(&word.to_lowercase())
}

fn fits(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count())
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
