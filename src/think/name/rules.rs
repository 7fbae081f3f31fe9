//! The word lists of the reader, read once from the files beside it.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::clauses::Word;

const PHRASES: &str = include_str!("phrases.toml");
const NOT_NAMES: &str = include_str!("not_names.toml");
const NAMES: &str = include_str!("names.toml");

/// What stands around a name in a script without spaces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Frame {
    pub before: Vec<String>,
    pub after: Vec<String>,
    /// The most letters of a name between them.
    pub letters: usize,
}

/// `phrases.toml` as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    strong: Vec<String>,
    weak: Vec<String>,
    listed: Vec<String>,
    after: Vec<String>,
    before_the_name: Vec<String>,
    openers: Vec<String>,
    asides: Vec<String>,
    tails: Vec<String>,
    returns: Vec<String>,
    joins: Vec<String>,
    continues: Vec<String>,
    denials: Vec<String>,
    wrong_name: Vec<String>,
    frame: Vec<Frame>,
}

/// How much is to be asked of the word behind an introduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// "My name is": written like a name.
    Strong,
    /// "I'm": written like a name, and ending there or going on harmlessly.
    Weak,
    /// "It's": a name that the reader knows.
    Listed,
}

/// Phrases, each as its words, the longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Phrases(Vec<Vec<String>>);

impl Phrases {
    fn of(phrases: &[String]) -> Self {
        let mut split: Vec<Vec<String>> =
            phrases.iter().map(|phrase| phrase.split(' ').map(str::to_owned).collect()).collect();
        split.sort_by_key(|words| std::cmp::Reverse(words.len()));
        Self(split)
    }

    /// How many words the longest phrase covers with which `words` begin.
    pub(super) fn begins(&self, words: &[Word]) -> Option<usize> {
        self.0.iter().find(|phrase| starts_with(words, phrase)).map(Vec::len)
    }

    /// The same for the end of `words`.
    pub(super) fn ends(&self, words: &[Word]) -> Option<usize> {
        let fits = |phrase: &&Vec<String>| {
            words.len().checked_sub(phrase.len()).is_some_and(|from| starts_with(&words[from..], phrase))
        };
        self.0.iter().find(fits).map(Vec::len)
    }

    /// Whether one phrase is all of `words`.
    pub(super) fn is(&self, words: &[Word]) -> bool {
        self.0.iter().any(|phrase| phrase.len() == words.len() && starts_with(words, phrase))
    }
}

fn starts_with(words: &[Word], phrase: &[String]) -> bool {
    words.len() >= phrase.len() && words.iter().zip(phrase).all(|(word, other)| word.low == *other)
}

/// Every list, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The longest first, whatever its trust.
    introductions: Vec<(Vec<String>, Trust)>,
    pub after: Phrases,
    pub before_the_name: Phrases,
    pub openers: Phrases,
    pub asides: Phrases,
    pub tails: Phrases,
    pub returns: Phrases,
    pub joins: Phrases,
    pub continues: Phrases,
    pub denials: Phrases,
    pub wrong_name: Phrases,
    pub frames: Vec<Frame>,
    not_names: HashSet<String>,
    names: HashSet<String>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| match read() {
    Ok(rules) => rules,
    // A test shows that the files inside the program can be read; without them no name is ever read.
    Err(error) => {
        tracing::error!(%error, "the lists of the reader of names are malformed");
        Rules::default()
    }
});

/// The lists.
pub(super) fn rules() -> &'static Rules {
    &RULES
}

fn read() -> Result<Rules, toml::de::Error> {
    let written: Written = toml::from_str(PHRASES)?;
    let mut introductions: Vec<(Vec<String>, Trust)> = Vec::new();
    for (phrases, trust) in
        [(&written.strong, Trust::Strong), (&written.weak, Trust::Weak), (&written.listed, Trust::Listed)]
    {
        introductions.extend(Phrases::of(phrases).0.into_iter().map(|phrase| (phrase, trust)));
    }
    introductions.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
    Ok(Rules {
        introductions,
        after: Phrases::of(&written.after),
        before_the_name: Phrases::of(&written.before_the_name),
        openers: Phrases::of(&written.openers),
        asides: Phrases::of(&written.asides),
        tails: Phrases::of(&written.tails),
        returns: Phrases::of(&written.returns),
        joins: Phrases::of(&written.joins),
        continues: Phrases::of(&written.continues),
        denials: Phrases::of(&written.denials),
        wrong_name: Phrases::of(&written.wrong_name),
        frames: written.frame,
        not_names: words(NOT_NAMES)?,
        names: words(NAMES)?,
    })
}

fn words(file: &str) -> Result<HashSet<String>, toml::de::Error> {
    let lists: BTreeMap<String, String> = toml::from_str(file)?;
    Ok(lists.values().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect())
}

impl Rules {
    /// The introduction with which `words` begin: how many words it has, and what it is worth.
    pub(super) fn introduction(&self, words: &[Word]) -> Option<(usize, Trust)> {
        let found = self.introductions.iter().find(|(phrase, _)| starts_with(words, phrase));
        found.map(|(phrase, trust)| (phrase.len(), *trust))
    }

    /// Whether `word`, in lower case, is a common first name.
    pub(super) fn is_known_name(&self, word: &str) -> bool {
        self.names.contains(word)
    }

    /// Whether `word`, in lower case, is known to be no name.
    pub(super) fn is_no_name(&self, word: &str) -> bool {
        self.not_names.contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_inside_the_program_can_be_read() {
        let rules = read().expect("the files are well formed");
        assert!(rules.introductions.len() > 100 && rules.names.len() > 500 && rules.not_names.len() > 500);
        assert!(rules.frames.iter().all(|frame| frame.letters > 0));
    }

    #[test]
    fn the_longest_introduction_is_the_one_that_counts() {
        let words = super::super::clauses::clauses("Ich bin der Peter").remove(0).words;
        assert_eq!(rules().introduction(&words), Some((3, Trust::Listed)));
    }
}
