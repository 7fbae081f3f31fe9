//! The offline reader: one name out of what somebody said, or none. Pure.
//!
//! An introduction ("I'm", "my name is") is read wherever a clause begins with it; a bare name only where nothing else
//! was said. Two names, a negation, a question, or a word that is no name end in none.

use super::clauses::{Clause, Word, clauses, is_joined};
use super::rules::{Rules, Trust, rules};

/// Letters of a reply that are looked at all; a longer one is no answer to "What is your name?". Not measured.
const LONGEST_REPLY: usize = 200;
/// Letters of one word of a name. Not measured: the longest common first name has 14.
const WORD_LETTERS: std::ops::RangeInclusive<usize> = 2..=20;
/// Words of a name: "Anna" or "Anna Maria".
const NAME_WORDS: usize = 2;
/// What common nouns, adjectives and deeds end with, where a bare word that is no known name ends so too.
const ENDINGS_OF_NOUNS: [&str; 16] = [
    "ing", "tion", "sion", "ness", "ment", "ship", "ful", "less", "able", "ible", "ous", "heit", "keit", "ung", "ción",
    "ção",
];

/// What a clause has to say about a name.
#[derive(Clone, Debug, PartialEq)]
enum Reading {
    Name(String),
    /// It introduces somebody, and not by one name: negated, two names, no name.
    Refused,
    /// It opens an introduction whose name stands in the next clause: "My name is … Anna."
    Open(Trust),
    /// Nothing but greetings, courtesies and the question given back.
    Empty,
    Other,
}

/// The name in the reply to "What is your name?".
pub(super) fn read(reply: &str) -> Option<String> {
    let rules = rules();
    let clauses = short(reply)?;
    match introduced(rules, &clauses) {
        Introduced::One(name) => Some(name),
        Introduced::Several | Introduced::Refused => None,
        Introduced::None => bare_reply(rules, &clauses),
    }
}

/// The name by which somebody introduces themselves in so many words; a bare name is no introduction.
pub(super) fn introduces(words: &str) -> Option<String> {
    match introduced(rules(), &short(words)?) {
        Introduced::One(name) => Some(name),
        _ => None,
    }
}

/// Whether somebody says that they are not `name`, or that a name is wrong.
pub(super) fn denies(words: &str, name: &str) -> bool {
    let rules = rules();
    let first = name.split_whitespace().next().unwrap_or(name).to_lowercase();
    clauses(words).iter().any(|clause| {
        let words = without_openers(rules, &clause.words);
        if rules.wrong_name.is(words) {
            return !clause.asks;
        }
        let after = rules.denials.begins(words).and_then(|length| words.get(length..));
        after.is_some_and(|after| after.iter().take(NAME_WORDS).any(|word| word.low == first)) || {
            // Scripts without spaces: 我不是安娜, 私はアンナじゃない.
            let joined: String = words.iter().map(|word| word.low.as_str()).collect();
            joined.chars().any(is_joined)
                && joined.contains(&first)
                && ["不是", "不叫", "じゃない", "ではない", "ではありません", "じゃありません", "아니"]
                    .iter()
                    .any(|no| joined.contains(no))
        }
    })
}

fn short(words: &str) -> Option<Vec<Clause>> {
    (words.chars().count() <= LONGEST_REPLY).then(|| clauses(words)).filter(|clauses| !clauses.is_empty())
}

/// What the introductions of a reply come to.
enum Introduced {
    One(String),
    Several,
    Refused,
    None,
}

fn introduced(rules: &Rules, clauses: &[Clause]) -> Introduced {
    let readings: Vec<Reading> = clauses.iter().map(|clause| introduction(rules, clause)).collect();
    let mut names: Vec<String> = Vec::new();
    let mut refused = false;
    for (place, reading) in readings.iter().enumerate() {
        match reading {
            Reading::Name(name) => names.push(name.clone()),
            Reading::Refused => refused = true,
            Reading::Open(trust) => {
                let rest = clauses.get(place + 1..).unwrap_or_default();
                let next = rest.iter().find(|clause| is_empty(rules, clause) != Some(true));
                match next.filter(|clause| !clause.asks).and_then(|clause| bare(rules, &clause.words, *trust)) {
                    Some(name) => names.push(name),
                    None => refused = true,
                }
            }
            Reading::Empty => {}
            // "My name is Anna, Bob …": a bare name beside an introduction is a second name, if it is another.
            Reading::Other => {
                let beside = clauses.get(place).and_then(|clause| bare(rules, &clause.words, Trust::Listed));
                names.extend(beside.filter(|_| readings.iter().any(|other| matches!(other, Reading::Name(_)))));
            }
        }
    }
    names.dedup();
    match (names.len(), refused) {
        (0, false) => Introduced::None,
        (0, true) => Introduced::Refused,
        (1, _) => names.pop().map_or(Introduced::None, Introduced::One),
        _ => Introduced::Several,
    }
}

/// What one clause says, if it introduces somebody.
fn introduction(rules: &Rules, clause: &Clause) -> Reading {
    if is_empty(rules, clause) == Some(true) {
        return Reading::Empty;
    }
    if let Some(name) = framed(rules, clause) {
        return if clause.asks { Reading::Refused } else { Reading::Name(name) };
    }
    let words = without_openers(rules, &clause.words);
    if let Some((length, trust)) = rules.introduction(words) {
        let mut rest = words.get(length..).unwrap_or_default();
        while let Some(length) = rules.before_the_name.begins(rest) {
            rest = rest.get(length..).unwrap_or_default();
        }
        return match rest {
            [] if clause.asks => Reading::Refused,
            [] => Reading::Open(trust),
            _ if clause.asks => Reading::Refused,
            _ => name_at(rules, rest, trust).map_or(Reading::Refused, Reading::Name),
        };
    }
    if let Some(length) = rules.after.ends(words) {
        let before = words.get(..words.len() - length).unwrap_or_default();
        return match whole_name(rules, before, Trust::Strong) {
            Some(name) if !clause.asks => Reading::Name(name),
            _ => Reading::Refused,
        };
    }
    Reading::Other
}

/// The name with which `words` begin, if what follows does not make it another's.
fn name_at(rules: &Rules, words: &[Word], trust: Trust) -> Option<String> {
    let length = words.iter().take(NAME_WORDS).take_while(|word| is_name(rules, word, trust)).count();
    let name = whole_name(rules, words.get(..length)?, trust)?;
    let rest = words.get(length..).unwrap_or_default();
    let harmless = match rest {
        [] => true,
        _ if rules.joins.begins(rest).is_some() => !rest.iter().skip(1).any(|word| is_name(rules, word, Trust::Weak)),
        _ if rules.tails.begins(rest).is_some() || rules.continues.begins(rest).is_some() => true,
        [next, ..] => trust == Trust::Strong && !is_name(rules, next, Trust::Strong),
    };
    harmless.then_some(name)
}

/// `words` as one name, if that is all they are.
fn whole_name(rules: &Rules, words: &[Word], trust: Trust) -> Option<String> {
    let fits = (1..=NAME_WORDS).contains(&words.len()) && words.iter().all(|word| is_name(rules, word, trust));
    let known = |word: &Word| rules.is_known_name(&word.low);
    // Of a second name the first is what is known.
    let listed = trust != Trust::Listed || words.first().is_some_and(known);
    (fits && listed).then(|| words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" "))
}

/// Whether a word is written like a name and is not known to be something else.
fn is_name(rules: &Rules, word: &Word, trust: Trust) -> bool {
    let parts: Vec<&str> = word.raw.split('-').collect();
    let letters = word.raw.chars().filter(|letter| letter.is_alphabetic()).count();
    let only_letters = word.raw.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '\''));
    let well_made = parts.iter().all(|part| part.chars().count() >= 2) && !word.low.ends_with("'s");
    let has_case = word.raw.chars().any(|letter| letter.is_uppercase() || letter.is_lowercase());
    let capital = word.raw.chars().next().is_some_and(char::is_uppercase);
    let known = rules.is_known_name(&word.low) || parts.iter().all(|part| rules.is_known_name(&part.to_lowercase()));
    let shouted = letters > 1 && !word.raw.chars().any(char::is_lowercase) && has_case;
    if !(WORD_LETTERS.contains(&letters) && only_letters && well_made) {
        return false;
    }
    if has_case {
        capital && (known || !shouted) && (known || !rules.is_no_name(&word.low))
    } else {
        // Without capital letters only the phrase itself says that it is a name.
        trust == Trust::Strong && !rules.is_no_name(&word.low)
    }
}

/// A reply that is nothing but a name, with courtesies around it.
fn bare_reply(rules: &Rules, clauses: &[Clause]) -> Option<String> {
    let mut rest = clauses.iter().filter(|clause| is_empty(rules, clause) != Some(true));
    let clause = rest.next()?;
    if rest.next().is_some() || clause.asks {
        return None;
    }
    bare(rules, &clause.words, Trust::Listed)
}

/// A clause that is nothing but a name.
fn bare(rules: &Rules, words: &[Word], trust: Trust) -> Option<String> {
    let mut words = without_openers(rules, words);
    while let Some(length) = rules.tails.ends(words).filter(|length| *length < words.len()) {
        words = words.get(..words.len() - length).unwrap_or_default();
    }
    if trust == Trust::Listed && words.len() == NAME_WORDS && !words.iter().any(|word| is_noun(rules, word)) {
        // A second word with a capital letter is written so because it is a name.
        return whole_name(rules, words, Trust::Weak);
    }
    whole_name(rules, words, trust)
}

fn is_noun(rules: &Rules, word: &Word) -> bool {
    !rules.is_known_name(&word.low) && ENDINGS_OF_NOUNS.iter().any(|ending| word.low.ends_with(ending))
}

/// Whether a clause is only openers, asides or the question given back; `None` for one without words.
fn is_empty(rules: &Rules, clause: &Clause) -> Option<bool> {
    let (first, words) = (clause.words.first()?, clause.words.as_slice());
    let only_openers = || {
        let rest = skip_openers(rules, words);
        rest.is_empty() || (rest.len() < words.len() && rules.asides.is(rest))
    };
    // "Ben." is a name although some language opens a sentence with it.
    let named = words.len() == 1 && rules.is_known_name(&first.low);
    Some(!named && (rules.asides.is(words) || only_openers() || (clause.asks && rules.returns.is(words))))
}

fn skip_openers<'a>(rules: &Rules, mut words: &'a [Word]) -> &'a [Word] {
    while let Some(length) = rules.openers.begins(words) {
        words = words.get(length..).unwrap_or_default();
    }
    words
}

/// Without greetings and fillers, unless nothing is left then.
fn without_openers<'a>(rules: &Rules, words: &'a [Word]) -> &'a [Word] {
    let rest = skip_openers(rules, words);
    if rest.is_empty() { words } else { rest }
}

/// A name between what stands around it in a script without spaces.
fn framed(rules: &Rules, clause: &Clause) -> Option<String> {
    let text: String = clause.words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ");
    if !text.chars().any(is_joined) {
        return None;
    }
    let mut best: Option<&str> = None;
    for frame in &rules.frames {
        for (before, after) in frame.before.iter().flat_map(|b| frame.after.iter().map(move |a| (b, a))) {
            let inside = text.strip_prefix(before.as_str()).and_then(|rest| rest.strip_suffix(after.as_str()));
            // The most that stands around leaves the least between.
            if let Some(inside) = inside.map(str::trim)
                && (1..=frame.letters).contains(&inside.chars().count())
                && best.is_none_or(|best| inside.len() < best.len())
            {
                best = Some(inside);
            }
        }
    }
    best.filter(|name| is_joined_name(rules, name)).map(str::to_owned)
}

/// Without capital letters a name is told from a noun only by the lists and by its ending.
fn is_joined_name(rules: &Rules, name: &str) -> bool {
    const ENDINGS: [char; 14] = ['人', '生', '师', '員', '员', '家', '的', '者', '了', '吗', '不', '没', '何', '誰'];
    const INSIDE: [&str; 12] = ["不", "没", "な", "ない", "です", "ます", "ません", "から", "안", "아니", "の", "は"];
    let katakana = name.chars().all(|letter| matches!(letter, '\u{30a0}'..='\u{30ff}'));
    name.chars().all(|letter| is_joined(letter) || letter == '・')
        && name.chars().count() >= 2
        && !rules.is_no_name(name)
        && (katakana || !name.ends_with(ENDINGS))
        && !INSIDE.iter().any(|no| name.contains(no))
}

/// Whether `name` occurs in `said`, letter by letter without case, as words of their own.
pub(super) fn occurs_in(name: &str, said: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('’', "'");
    let (name, said) = (plain(name.trim()), plain(said));
    if name.is_empty() {
        return false;
    }
    let joined = name.chars().any(is_joined);
    let part_of_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric());
    said.match_indices(&name).any(|(place, found)| {
        let before = said.get(..place).and_then(|text| text.chars().next_back());
        let after = said.get(place + found.len()..).and_then(|text| text.chars().next());
        joined || (!part_of_word(before) && !part_of_word(after))
    })
}
