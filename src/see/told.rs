//! What was seen, in words: "I saw two people and a cup on my left."
//!
//! Pure functions; any thread may call them. The sentence of a stored frame always begins "I saw", the one of now
//! "I see": recall knows the first by its beginning.

use super::Detection;
use crate::robot::Direction;

/// What the detector calls a human being.
pub const PERSON: &str = "person";

/// Labels with how many there are of each, in the order in which they first come.
#[must_use]
pub fn counts<'a>(labels: impl IntoIterator<Item = &'a str>) -> Vec<(String, u32)> {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for label in labels {
        match counts.iter_mut().find(|(known, _)| known == label) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => counts.push((label.to_owned(), 1)),
        }
    }
    counts
}

/// [`counts`] of what was detected.
#[must_use]
pub fn detected(detections: &[Detection]) -> Vec<(String, u32)> {
    counts(detections.iter().map(|detection| detection.label.as_str()))
}

/// What is stored with a frame: "I saw Anna, somebody I do not know and a cup on my left." Names stand for as many
/// people.
#[must_use]
pub fn sentence(things: &[(String, u32)], looked: Direction, names: &[String]) -> String {
    told("I saw", things, looked, names)
}

/// What is visible now: "I see a person and a cup."
#[must_use]
pub fn now_sentence(things: &[(String, u32)], looked: Direction, names: &[String]) -> String {
    told("I see", things, looked, names)
}

fn told(start: &str, things: &[(String, u32)], looked: Direction, names: &[String]) -> String {
    let is_person = |thing: &&(String, u32)| thing.0 == PERSON;
    let people = things.iter().filter(is_person).fold(0_u32, |sum, (_, count)| sum.saturating_add(*count));
    let strangers = people.saturating_sub(u32::try_from(names.len()).unwrap_or(u32::MAX));
    let mut parts: Vec<String> = names.to_vec();
    match (strangers, names.is_empty()) {
        (0, _) => {}
        (count, true) => parts.push(counted(PERSON, count)),
        (1, false) => parts.push("somebody I do not know".into()),
        (count, false) => parts.push(format!("{} people I do not know", number(count))),
    }
    let others = things.iter().filter(|thing| !is_person(thing) && thing.1 > 0);
    parts.extend(others.map(|(label, count)| counted(label, *count)));
    let where_to = match looked {
        Direction::Ahead => "",
        Direction::Left => " on my left",
        Direction::Right => " on my right",
    };
    match parts.as_slice() {
        [] => format!("{start} nothing that I know{where_to}."),
        [one] => format!("{start} {one}{where_to}."),
        [first @ .., last] => format!("{start} {} and {last}{where_to}.", first.join(", ")),
    }
}

/// "a cup", "two people", "a pair of scissors", "12 books".
#[must_use]
pub fn counted(label: &str, count: u32) -> String {
    match (label, count) {
        ("scissors" | "skis", 1) => format!("a pair of {label}"),
        ("scissors" | "skis", _) => format!("{} pairs of {label}", number(count)),
        ("broccoli", _) => format!("some {label}"),
        ("tv", 1) => "a TV".into(),
        (_, 1) if label.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {label}"),
        (_, 1) => format!("a {label}"),
        _ => format!("{} {}", number(count), plural(label)),
    }
}

fn number(count: u32) -> String {
    const WORDS: [&str; 9] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let word = count.checked_sub(2).and_then(|index| WORDS.get(index as usize));
    word.map_or_else(|| count.to_string(), |word| (*word).into())
}

/// The plural of a label; of several words, the last one changes.
fn plural(label: &str) -> String {
    let (before, noun) = label.rfind(' ').map_or(("", label), |space| label.split_at(space + 1));
    let noun = match noun {
        "person" => "people".into(),
        "man" => "men".into(),
        "woman" => "women".into(),
        "child" => "children".into(),
        "mouse" => "mice".into(),
        "foot" => "feet".into(),
        "tooth" => "teeth".into(),
        "tv" => "TVs".into(),
        "sheep" | "fish" | "deer" | "glasses" => noun.into(),
        "tomato" | "potato" => format!("{noun}es"),
        "knife" | "wife" | "life" => format!("{}ves", noun.trim_end_matches("fe")),
        "leaf" | "shelf" | "loaf" | "half" | "scarf" => format!("{}ves", noun.trim_end_matches('f')),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => match noun.strip_suffix('y') {
            Some(stem) if !stem.is_empty() && !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
            _ => format!("{noun}s"),
        },
    };
    format!("{before}{noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(labels: &[&str], looked: Direction, names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        sentence(&counts(labels.iter().copied()), looked, &names)
    }

    #[test]
    fn what_was_seen_is_told_as_a_sentence() {
        use Direction::{Ahead, Left, Right};
        assert_eq!(saw(&[], Ahead, &[]), "I saw nothing that I know.");
        assert_eq!(saw(&["orange"], Ahead, &[]), "I saw an orange.");
        assert_eq!(saw(&["cup", "person"], Ahead, &[]), "I saw a person and a cup.");
        assert_eq!(saw(&["person", "cat", "person"], Left, &[]), "I saw two people and a cat on my left.");
        assert_eq!(
            saw(&["wine glass", "wine glass", "cat", "couch"], Right, &[]),
            "I saw two wine glasses, a cat and a couch on my right."
        );
        assert_eq!(now_sentence(&counts(["cup"]), Ahead, &[]), "I see a cup.");
    }

    #[test]
    fn names_stand_for_people() {
        use Direction::Ahead;
        assert_eq!(saw(&["person", "cup"], Ahead, &["Anna"]), "I saw Anna and a cup.");
        assert_eq!(saw(&["person", "person"], Ahead, &["Anna", "Ben"]), "I saw Anna and Ben.");
        assert_eq!(saw(&["person"; 3], Ahead, &["Anna", "Ben", "Clara"]), "I saw Anna, Ben and Clara.");
        assert_eq!(saw(&["person", "person"], Ahead, &["Anna"]), "I saw Anna and somebody I do not know.");
        assert_eq!(saw(&["person"; 4], Ahead, &["Anna", "Ben"]), "I saw Anna, Ben and two people I do not know.");
        assert_eq!(
            saw(&["person", "cup", "person"], Direction::Left, &["Anna"]),
            "I saw Anna, somebody I do not know and a cup on my left."
        );
        assert_eq!(saw(&[], Ahead, &["Anna"]), "I saw Anna.", "a face without its body");
        let names = ["Anna".to_owned()];
        assert_eq!(
            now_sentence(&counts(["person", "person", "cat"]), Ahead, &names),
            "I see Anna, somebody I do not know and a cat."
        );
    }

    #[test]
    fn plurals_are_those_that_people_use() {
        for (label, two) in [
            ("bus", "two buses"),
            ("bench", "two benches"),
            ("toothbrush", "two toothbrushes"),
            ("knife", "two knives"),
            ("mouse", "two mice"),
            ("sheep", "two sheep"),
            ("scissors", "two pairs of scissors"),
            ("tv", "two TVs"),
            ("teddy bear", "two teddy bears"),
            ("cell phone", "two cell phones"),
            ("baby", "two babies"),
            ("toy", "two toys"),
            ("shelf", "two shelves"),
        ] {
            assert_eq!(counted(label, 2), two);
        }
        assert_eq!(counted("skis", 1), "a pair of skis");
        assert_eq!(counted("broccoli", 3), "some broccoli");
        assert_eq!(counted("umbrella", 1), "an umbrella");
        assert_eq!(counted("book", 12), "12 books");
    }
}
