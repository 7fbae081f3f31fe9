//! What becomes of a memory when a name changes or is forgotten. Pure functions; the stores, the conversation's window
//! and the journal all go by these.
//!
//! Forgotten without `everything`: the name leaves speakers, frames' names and sentences, and every word that is the name,
//! with or without regard to capitals, in what people and the robot said, becomes "somebody". A name that is also an
//! everyday word ("Will", "Rose") counts in other people's words only where it is written with a capital. A word that
//! merely contains the name ("Annabel", "Anna-Lena") is another word and stays. Where somebody else's name is spoken
//! the same ("Anna" and "Anna 2"), the bare name counts only in what was said by, or about a picture of, the one who is
//! forgotten: elsewhere it is the other's.
//!
//! Renamed: speakers, frames' names and sentences, and the name in the words of the person's own exchanges and pictures,
//! which is how a misheard "I am Hannah" is corrected. Other people's words stay as they were said.

use serde::{Deserialize, Serialize};

use super::names::{same, spoken_name};
use crate::remember::{Exchange, Frame};
use crate::see::told::{self, PERSON};

/// What stands where a name was forgotten.
const SOMEBODY: &str = "somebody";

/// Given names that are everyday English words, in small letters. Not complete: a name that is missing here takes the
/// word with it, a name that is here stays where it was written small.
const WORDS: [&str; 62] = [
    "amber",
    "angel",
    "april",
    "art",
    "august",
    "basil",
    "bill",
    "bob",
    "chase",
    "christian",
    "chuck",
    "cliff",
    "dale",
    "dawn",
    "dean",
    "destiny",
    "drew",
    "faith",
    "frank",
    "gene",
    "ginger",
    "grace",
    "grant",
    "guy",
    "hazel",
    "holly",
    "hope",
    "iris",
    "ivy",
    "jack",
    "jade",
    "joy",
    "june",
    "lance",
    "lily",
    "mark",
    "max",
    "may",
    "melody",
    "miles",
    "misty",
    "nick",
    "olive",
    "pat",
    "pearl",
    "penny",
    "peter",
    "ray",
    "reed",
    "rich",
    "rob",
    "robin",
    "rose",
    "ruby",
    "sandy",
    "sky",
    "sue",
    "summer",
    "sunny",
    "violet",
    "wade",
    "will",
];

/// What becomes of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    Forget {
        name: String,
        /// Their exchanges, and the frames that show them, go too.
        everything: bool,
        /// Somebody else has a name that is spoken the same.
        namesake: bool,
    },
    Rename {
        from: String,
        to: String,
    },
}

impl Change {
    /// What becomes of an exchange; `None`: it is removed.
    #[must_use]
    pub fn exchange(&self, exchange: &Exchange) -> Option<Exchange> {
        let own = exchange.speaker.as_deref().is_some_and(|speaker| same(speaker, self.name()));
        if own && self.removes() {
            return None;
        }
        let speaker = if own { self.new_name().map(str::to_owned) } else { exchange.speaker.clone() };
        let (heard, said) = (self.words(&exchange.heard, own), self.words(&exchange.said, own));
        Some(Exchange { heard, said, speaker, said_at: exchange.said_at })
    }

    /// What becomes of a frame; `None`: it is removed.
    #[must_use]
    pub fn frame(&self, frame: &Frame) -> Option<Frame> {
        let own = frame.names.iter().any(|name| same(name, self.name()));
        if own && self.removes() {
            return None;
        }
        let mut names: Vec<String> = Vec::with_capacity(frame.names.len());
        for name in &frame.names {
            let name = if same(name, self.name()) { self.new_name() } else { Some(name.as_str()) };
            // Two who are the same person now stand once.
            if let Some(name) = name.filter(|name| !names.iter().any(|known| same(known, name))) {
                names.push(name.to_owned());
            }
        }
        let caption = frame.caption.as_ref().map(|caption| self.words(caption, own));
        Some(Frame { sentence: self.sentence(frame, &names, own), names, caption, ..frame.clone() })
    }

    /// What becomes of words of nobody in particular, such as a line that was typed.
    #[must_use]
    pub fn line(&self, line: &str) -> String {
        self.words(line, false)
    }

    /// The name that it is about.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Forget { name, .. } | Self::Rename { from: name, .. } => name,
        }
    }

    fn new_name(&self) -> Option<&str> {
        match self {
            Self::Forget { .. } => None,
            Self::Rename { to, .. } => Some(to),
        }
    }

    fn removes(&self) -> bool {
        matches!(self, Self::Forget { everything: true, .. })
    }

    /// A frame's sentence is told anew from what was detected, where it was told so; else the name in it is replaced.
    fn sentence(&self, frame: &Frame, names: &[String], own: bool) -> String {
        let things = told::detected(&frame.detections);
        let people = things.iter().filter(|thing| thing.0 == PERSON).map(|thing| thing.1 as usize).sum::<usize>();
        let was_told_so = told::sentence(&things, frame.looked, &frame.names) == frame.sentence;
        if own && was_told_so && people >= frame.names.len() {
            return told::sentence(&things, frame.looked, names);
        }
        self.words(&frame.sentence, own)
    }

    /// `own`: words of the person, or about a picture of them.
    fn words(&self, text: &str, own: bool) -> String {
        let (name, spoken) = (self.name(), spoken_name(self.name()));
        match self {
            Self::Forget { namesake, .. } => {
                let bare = own || !namesake;
                let text =
                    if bare || name != spoken { replaced(text, name, *namesake, SOMEBODY) } else { text.to_owned() };
                if bare && name != spoken { replaced(&text, spoken, *namesake, SOMEBODY) } else { text }
            }
            Self::Rename { to, .. } if own => {
                let text = replaced(text, name, true, spoken_name(to));
                if name == spoken { text } else { replaced(&text, spoken, true, spoken_name(to)) }
            }
            Self::Rename { .. } => text.to_owned(),
        }
    }
}

/// The text with `new` wherever `name` stands in it as a word, with a capital where a sentence begins. With `numbered`,
/// the name with a number after it is somebody else's and stays.
fn replaced(text: &str, name: &str, numbered: bool, new: &str) -> String {
    let word_too = WORDS.contains(&name.to_lowercase().as_str());
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let counts =
            |found: &&str| (!word_too || first.is_uppercase()) && !(numbered && has_number(&rest[found.len()..]));
        match found(&done, rest, name).filter(counts) {
            Some(found) => {
                done.push_str(&if begins_a_sentence(&done) { capital(new) } else { new.to_owned() });
                rest = &rest[found.len()..];
            }
            None => {
                done.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    done
}

/// The name at the beginning of `rest`, as it is written there, if it stands there as a word of its own.
fn found<'a>(before: &str, rest: &'a str, name: &str) -> Option<&'a str> {
    let mut last = before.chars().rev();
    let touches = |near: Option<char>, beyond: Option<char>| match near {
        // A hyphen makes one name of two.
        Some('-') => beyond.is_some_and(char::is_alphanumeric),
        near => near.is_some_and(char::is_alphanumeric),
    };
    if touches(last.next(), last.next()) {
        return None;
    }
    let mut left = rest;
    for (index, word) in name.split(' ').enumerate() {
        if index > 0 {
            let trimmed = left.trim_start();
            if trimmed.len() == left.len() {
                return None;
            }
            left = trimmed;
        }
        left = without_word(left, word)?;
    }
    let mut next = left.chars();
    (!touches(next.next(), next.next())).then(|| &rest[..rest.len() - left.len()])
}

/// What follows `word` at the beginning of `text`, without regard to case.
fn without_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut letters = text.chars();
    for wanted in word.chars() {
        let letter = letters.next()?;
        if letter != wanted && !letter.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    Some(letters.as_str())
}

/// Whether the text goes on with a number as names have it: " 2".
fn has_number(text: &str) -> bool {
    let Some(after) = text.strip_prefix(' ') else { return false };
    let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let ends = !after[digits..].starts_with(char::is_alphanumeric);
    ends && after[..digits].parse::<u32>().is_ok_and(|number| number > 1)
}

fn begins_a_sentence(before: &str) -> bool {
    before.trim_end().chars().next_back().is_none_or(|last| ['.', '!', '?', ':', '…'].contains(&last))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::robot::Direction;
    use crate::see::Detection;

    fn forget(name: &str) -> Change {
        Change::Forget { name: name.into(), everything: false, namesake: false }
    }

    fn rename(from: &str, to: &str) -> Change {
        Change::Rename { from: from.into(), to: to.into() }
    }

    fn exchange(speaker: Option<&str>, heard: &str, said: &str) -> Exchange {
        Exchange {
            heard: heard.into(),
            said: said.into(),
            speaker: speaker.map(Into::into),
            said_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn frame(names: &[&str], people: usize, caption: Option<&str>) -> Frame {
        let detection = |label: &str| Detection { label: label.into(), score: 0.9, place: [0.1, 0.1, 0.2, 0.2] };
        let detections: Vec<_> = std::iter::repeat_n(PERSON, people).chain(["cup"]).map(detection).collect();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Frame {
            seen_at: Timestamp::UNIX_EPOCH,
            looked: Direction::Ahead,
            labels: vec!["cup".into(), PERSON.into()],
            sentence: told::sentence(&told::detected(&detections), Direction::Ahead, &names),
            detections,
            names,
            people: people as u32,
            caption: caption.map(Into::into),
            jpeg: vec![1],
        }
    }

    #[test]
    fn a_forgotten_name_becomes_somebody_wherever_it_is_a_word() {
        let change = forget("Anna");
        for (before, after) in [
            ("I am Anna.", "I am somebody."),
            ("Hello Anna!", "Hello somebody!"),
            ("ANNA, come here. anna?", "Somebody, come here. Somebody?"),
            ("Anna's key is here", "Somebody's key is here"),
            ("That is Annabel and Anna-Lena, not Hanna.", "That is Annabel and Anna-Lena, not Hanna."),
            ("I called Anna 2 times.", "I called somebody 2 times."),
            ("(Anna) - Anna", "(somebody) - somebody"),
            ("", ""),
        ] {
            assert_eq!(change.line(before), after);
        }
        assert_eq!(forget("Anna Maria").line("Anna  maria and Anna"), "Somebody and Anna");
        assert_eq!(forget("Özgür").line("Hallo ÖZGÜR, özgürlük"), "Hallo somebody, özgürlük");
    }

    #[test]
    fn forgetting_will_does_not_take_every_will_out_of_the_memory() {
        assert_eq!(forget("Will").line("I will ask Will, Bob and Rose"), "I will ask somebody, Bob and Rose");
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn forgetting_one_anna_leaves_the_other_hers() {
        let one = Change::Forget { name: "Anna".into(), everything: false, namesake: true };
        let two = Change::Forget { name: "Anna 2".into(), everything: false, namesake: true };
        let (by_one, by_two) =
            (exchange(Some("Anna"), "I am Anna.", "Hello."), exchange(Some("Anna 2"), "I am Anna.", "Hello."));
        let by_ben = exchange(Some("Ben"), "Where is Anna? And Anna 2?", "Away.");
        assert_eq!(one.exchange(&by_one).unwrap(), exchange(None, "I am somebody.", "Hello."));
        assert_eq!(one.exchange(&by_two).unwrap(), by_two);
        assert_eq!(one.exchange(&by_ben).unwrap(), by_ben);
        assert_eq!(two.exchange(&by_one).unwrap(), by_one);
        assert_eq!(two.exchange(&by_two).unwrap(), exchange(None, "I am somebody.", "Hello."));
        assert_eq!(two.exchange(&by_ben).unwrap().heard, "Where is Anna? And somebody?");
    }

    #[test]
    fn everything_takes_their_exchanges_and_pictures_and_leaves_those_of_others() {
        let change = Change::Forget { name: "Anna".into(), everything: true, namesake: false };
        assert_eq!(change.exchange(&exchange(Some("anna"), "The key is here.", "")), None);
        assert_eq!(change.frame(&frame(&["Ben", "Anna"], 2, None)), None);
        let mentioned = change.exchange(&exchange(Some("Ben"), "Anna has the key.", "All right.")).unwrap();
        assert_eq!(mentioned, exchange(Some("Ben"), "Somebody has the key.", "All right."));
        let captioned = change.frame(&frame(&["Ben"], 1, Some("Anna's cup."))).unwrap();
        assert_eq!(captioned.caption.as_deref(), Some("Somebody's cup."));
    }

    #[test]
    fn a_frames_sentence_is_told_anew_without_the_name() {
        let seen = forget("Anna").frame(&frame(&["Anna"], 2, Some("Anna waves."))).unwrap();
        assert_eq!((seen.sentence.as_str(), seen.names.len()), ("I saw two people and a cup.", 0));
        assert_eq!(seen.caption.as_deref(), Some("Somebody waves."));
        // The face was known and the detector found no person: the sentence is kept but for the name.
        let face_only = forget("Anna").frame(&frame(&["Anna"], 0, None)).unwrap();
        assert_eq!(face_only.sentence, "I saw somebody and a cup.");
    }

    #[test]
    fn a_misheard_name_is_corrected_in_the_persons_own_words_and_pictures_only() {
        let change = rename("Hannah", "Anna 2");
        let own = change.exchange(&exchange(Some("Hannah"), "I am Hannah.", "Hello Hannah!")).unwrap();
        assert_eq!(own, exchange(Some("Anna 2"), "I am Anna.", "Hello Anna!"));
        let other = exchange(Some("Ben"), "Hannah is my aunt.", "All right.");
        assert_eq!(change.exchange(&other).unwrap(), other);
        let seen = change.frame(&frame(&["Hannah"], 1, Some("Hannah waves."))).unwrap();
        assert_eq!((seen.names[0].as_str(), seen.sentence.as_str()), ("Anna 2", "I saw Anna 2 and a cup."));
        assert_eq!(seen.caption.as_deref(), Some("Anna waves."));
    }

    #[test]
    fn two_who_are_one_stand_once_in_a_frame() {
        let seen = rename("Annie", "Anna").frame(&frame(&["Anna", "Annie"], 2, None)).unwrap();
        assert_eq!(seen.names, ["Anna"]);
        assert_eq!(seen.sentence, "I saw Anna, another person and a cup.");
    }

    proptest! {
        #[test]
        fn once_forgotten_the_name_is_no_word_of_any_text(text in "[ Aan.,'é2-]{0,40}") {
            let change = forget("Ana");
            let after = change.line(&text);
            let words = after.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
            let mut lower = words.map(str::to_lowercase);
            prop_assert!(lower.all(|word| word.trim_matches('-') != "ana"), "{}", after);
            prop_assert_eq!(change.line(&after), after);
        }
    }
}
