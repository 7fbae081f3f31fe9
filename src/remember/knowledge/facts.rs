//! The file of facts: what the robot was taught, and the questions that each fact answers.
//!
//! A person edits it, so every fault is a sentence with its line and the fact's key.

use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;
use uuid::Uuid;

use crate::config::file::{line_of, read_text};
use crate::remember::exchange::identity;

/// The facts that come with the program.
pub const SHIPPED: &str = include_str!("../../../shards/knowledge.toml");
/// What errors call [`SHIPPED`].
const SHIPPED_NAME: &str = "the facts that come with the program";

/// The most facts of one file. Not measured; a snapshot of at most 1 MB holds about 100.
pub const MOST_FACTS: usize = 1_000;
/// Questions of one fact: fewer find too little, more make the file hard to keep.
const QUESTIONS: std::ops::RangeInclusive<usize> = 3..=12;
/// Characters of a fact: what is spoken in about fifteen seconds.
const LONGEST_TEXT: usize = 280;
/// Characters of a question.
const LONGEST_QUESTION: usize = 160;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its short name in the file; empty where a server's collection gave none.
    pub key: String,
    /// What the robot says.
    pub text: String,
    /// What it answers.
    pub questions: Vec<String>,
}

impl Fact {
    /// Its identity in the shard: it stays when the words change.
    #[must_use]
    pub fn id(&self) -> Uuid {
        identity(Sha256::new_with_prefix(b"fact\0").chain_update(self.key.as_bytes()))
    }
}

/// A checked file of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// In the order of the file.
    pub facts: Vec<Fact>,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// Why a file of facts cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    #[error("{file} {why}")]
    Unreadable { file: String, why: String },
    #[error("{file}:{line}: {why}")]
    Refused { file: String, line: usize, why: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    fact: Vec<Spanned<WrittenFact>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFact {
    key: Spanned<String>,
    text: Spanned<String>,
    questions: Spanned<Vec<Spanned<String>>>,
}

/// A place in the file, in bytes, and what is wrong there.
type Fault = (usize, String);

impl Facts {
    /// The facts in the file `path`; those that come with the program where it is empty.
    ///
    /// # Errors
    /// [`FactsError`].
    pub fn load(path: &Path) -> Result<Self, FactsError> {
        if path.as_os_str().is_empty() {
            return Self::parse(SHIPPED, SHIPPED_NAME);
        }
        let file = path.display().to_string();
        let text = read_text(path).map_err(|fault| match fault.line {
            Some(line) => FactsError::Refused { file: file.clone(), line, why: fault.why },
            None => FactsError::Unreadable { file: file.clone(), why: fault.why },
        })?;
        Self::parse(&text, &file)
    }

    /// Reads and checks facts; `file` is what errors name.
    ///
    /// # Errors
    /// [`FactsError::Refused`] with the line.
    pub fn parse(text: &str, file: &str) -> Result<Self, FactsError> {
        let refused = |(at, why): Fault| FactsError::Refused { file: file.to_owned(), line: line_of(text, at), why };
        let written: Written = toml::from_str(text)
            .map_err(|error| refused((error.span().map_or(0, |span| span.start), error.message().to_owned())))?;
        if written.fact.is_empty() || written.fact.len() > MOST_FACTS {
            let why = format!("there must be 1 to {MOST_FACTS} facts, and there are {}", written.fact.len());
            return Err(refused((0, why)));
        }
        let mut facts: Vec<Fact> = Vec::with_capacity(written.fact.len());
        let mut asked: Vec<(String, String)> = Vec::new();
        for fact in written.fact {
            let fact = checked(fact.into_inner(), &mut asked, &facts).map_err(refused)?;
            facts.push(fact);
        }
        Ok(Self { facts, sha256: hexadecimal(&Sha256::digest(text.as_bytes())) })
    }

    /// All their questions together.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.facts.iter().map(|fact| fact.questions.len()).sum()
    }
}

/// `asked` are the questions so far, in small letters, with the facts that they belong to.
fn checked(written: WrittenFact, asked: &mut Vec<(String, String)>, before: &[Fact]) -> Result<Fact, Fault> {
    let at = written.key.span().start;
    let key = written.key.into_inner();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if key.is_empty() || key.len() > 60 || !key.chars().all(plain) {
        return Err((at, format!("the key {key:?} must be small letters, digits and `-`, at most 60")));
    }
    if before.iter().any(|fact| fact.key == key) {
        return Err((at, format!("the key `{key}` is there twice")));
    }
    let text = line(&key, "text", LONGEST_TEXT, &written.text)?;
    let at = written.questions.span().start;
    let written = written.questions.into_inner();
    if !QUESTIONS.contains(&written.len()) {
        let (least, most) = (QUESTIONS.start(), QUESTIONS.end());
        return Err((at, format!("the fact `{key}` must have {least} to {most} questions, and has {}", written.len())));
    }
    let mut questions = Vec::with_capacity(written.len());
    for question in written {
        let at = question.span().start;
        let question = line(&key, "question", LONGEST_QUESTION, &question)?;
        let small = question.to_lowercase();
        if let Some((_, other)) = asked.iter().find(|(known, _)| *known == small) {
            return Err((at, format!("the question “{question}” of `{key}` is one of `{other}` already")));
        }
        asked.push((small, key.clone()));
        questions.push(question);
    }
    Ok(Fact { key, text, questions })
}

/// One line of words, not too long.
fn line(key: &str, what: &str, most: usize, written: &Spanned<String>) -> Result<String, Fault> {
    let (at, words) = (written.span().start, written.get_ref().trim());
    let length = words.chars().count();
    if length > most || words.chars().any(char::is_control) || !words.chars().any(char::is_alphanumeric) {
        return Err((at, format!("a {what} of `{key}` must be one line of words, at most {most} characters")));
    }
    Ok(words.to_owned())
}

/// Bytes as small hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[[fact]]
key = "tea"
text = "Tea is in the left cupboard."
questions = ["Where is the tea?", "Do we have tea?", "Which cupboard is for tea?"]
"#;

    fn refused(text: &str) -> (usize, String) {
        match Facts::parse(text, "facts.toml") {
            Err(FactsError::Refused { file, line, why }) if file == "facts.toml" => (line, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_facts_that_ship_are_sound() {
        let facts = Facts::load(Path::new("")).unwrap();
        assert!(facts.facts.len() >= 60, "{}", facts.facts.len());
        assert_eq!(facts.sha256.len(), 64);
    }

    #[test]
    fn each_fault_is_told_with_its_line_and_its_fact() {
        for (find, put, line, words) in [
            ("key = \"tea\"", "key = \"Tea!\"", 3, "small letters"),
            ("text = \"Tea is in the left cupboard.\"", "text = \" \"", 4, "a text of `tea`"),
            (", \"Do we have tea?\"", "", 5, "3 to 12 questions, and has 2"),
            ("Do we have tea?", "where is the TEA?", 5, "one of `tea` already"),
            ("Do we have tea?", "?!", 5, "a question of `tea`"),
            ("text =", "words =", 4, "words"),
            ("[[fact]]", "[[facts]]", 2, "facts"),
        ] {
            let (at, why) = refused(&GOOD.replacen(find, put, 1));
            assert!(at == line && why.contains(words), "{put}: line {at}: {why}");
        }
        let (line, why) = refused(&format!("{GOOD}{GOOD}"));
        assert!(line == 8 && why.contains("twice"), "{line}: {why}");
        assert!(refused("fact = []").1.contains("1 to 1000 facts"));
    }

    #[test]
    fn a_fact_keeps_its_identity_when_its_words_change() {
        let fact = Facts::parse(GOOD, "").unwrap().facts.remove(0);
        let other = Fact { text: "Tea is in the right cupboard.".into(), ..fact.clone() };
        assert_eq!(fact.id(), other.id());
        assert_ne!(fact.id(), Fact { key: "coffee".into(), ..fact }.id());
    }
}
