//! Whom a question is about: the one who asks, somebody by name, or everybody who was seen. Pure.
//!
//! English, as the offline brain is; the language model's own `about` decides elsewhere.

use super::clauses::{Word, clauses};
use super::rules::rules;

/// Whom a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// "Who am I?", "When did you last see me?"
    Me,
    /// Somebody whom the robot knows, by the name as it is known.
    Person(String),
    /// "Who did you see today?"
    Everybody,
    /// Somebody by a name that the robot does not know.
    Unknown(String),
}

/// What the question wants to know of somebody, so that a word with a capital letter in it is a person's name: "When
/// did you last see Bob?" names one, "What did Bob say about Paris?" asks for words and names a town too.
const OF_PEOPLE: [&str; 22] = [
    "do you know",
    "did you know",
    "have you met",
    "did you meet",
    "ever met",
    "ever meet",
    "did we meet",
    "last met",
    "did you see",
    "have you seen",
    "last see",
    "last saw",
    "you saw",
    "who is",
    "who's",
    "who was",
    "was here",
    "been here",
    "come by",
    "came by",
    "remember",
    "recognise",
];

/// Words of the one who asks, in a question that is about them.
const OF_ME: [&str; 27] = [
    "who am i",
    "who i am",
    "know me",
    "remember me",
    "recognise me",
    "recognize me",
    "see me",
    "seen me",
    "saw me",
    "met me",
    "meet me",
    "my name",
    "my face",
    "did we meet",
    "have we met",
    "we met",
    "we meet",
    "know each other",
    "who is talking",
    "who is speaking",
    "who's talking",
    "who's speaking",
    "i was here",
    "first meet",
    "we first met",
    "first saw me",
    "was i here",
];

/// Questions about whoever came.
const OF_EVERYBODY: [&str; 26] = [
    "who did you see",
    "whom did you see",
    "who have you seen",
    "who was here",
    "who came",
    "who has been here",
    "who's been here",
    "who else",
    "did you see anyone",
    "did you see anybody",
    "did you see someone",
    "did you see somebody",
    "have you seen anyone",
    "have you seen anybody",
    "was anyone here",
    "was anybody here",
    "was someone here",
    "was somebody here",
    "did anyone come",
    "did anybody come",
    "did someone come",
    "did somebody come",
    "who visited",
    "who do you know",
    "whom do you know",
    "who have you met",
];

/// Whom `question` is about; `None` for a question about things or about nobody in particular.
///
/// `known_names` are the people whom the robot knows; a name among them counts wherever it stands as a word of its own,
/// with or without a capital letter. A name that is not among them counts only in a question about a person, and
/// written like a name.
#[must_use]
pub fn about_whom(question: &str, known_names: &[String]) -> Option<Whom> {
    let words: Vec<Word> = clauses(question).into_iter().flat_map(|clause| clause.words).collect();
    let plain = format!(" {} ", words.iter().map(|word| bare(&word.low)).collect::<Vec<_>>().join(" "));
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| plain.contains(&format!(" {phrase} ")));
    if let Some(name) = longest_known(&plain, known_names) {
        return Some(Whom::Person(name));
    }
    if says(&OF_PEOPLE)
        && let Some(name) = unknown_name(&words)
    {
        return Some(Whom::Unknown(name));
    }
    if says(&OF_ME) {
        return Some(Whom::Me);
    }
    says(&OF_EVERYBODY).then_some(Whom::Everybody)
}

/// The known name that stands in the question; of "Anna" and "Anna Maria" the longer.
fn longest_known(plain: &str, known: &[String]) -> Option<String> {
    let stands = |name: &&String| {
        let low = name.to_lowercase().replace('’', "'");
        // "will" and "rose" are names only where they stand as names do, which lower case cannot show.
        !low.trim().is_empty() && plain.contains(&format!(" {} ", low.trim()))
    };
    known.iter().filter(stands).max_by_key(|name| name.chars().count()).cloned()
}

/// A word with a capital letter that opens no sentence and is no ordinary word.
fn unknown_name(words: &[Word]) -> Option<String> {
    let rules = rules();
    let is_name = |word: &&Word| {
        let low = bare(&word.low);
        let capital = word.raw.chars().next().is_some_and(char::is_uppercase) && word.raw.chars().count() > 1;
        let letters = word.raw.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '\''));
        let own = matches!(low, "i'm" | "i've" | "i'd" | "i'll");
        capital && letters && !own && (rules.is_known_name(low) || !rules.is_no_name(low))
    };
    // The first word has its capital letter from the sentence.
    let mut names = words.iter().skip(1).filter(is_name);
    let first = names.next()?;
    let name = bare_raw(&first.raw);
    let next = words.iter().skip_while(|word| !std::ptr::eq(*word, first)).nth(1);
    Some(match next.filter(is_name) {
        Some(second) => format!("{name} {}", bare_raw(&second.raw)),
        None => name.to_owned(),
    })
}

/// "Anna's" is about Anna; "who's" stays a question's word.
fn bare(word: &str) -> &str {
    if matches!(word, "who's" | "what's" | "where's" | "that's" | "it's" | "he's" | "she's") {
        return word;
    }
    word.strip_suffix("'s").unwrap_or(word)
}

fn bare_raw(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whom(question: &str) -> Option<Whom> {
        let known = ["Anna", "Anna Maria", "Bob", "Will"].map(str::to_owned);
        about_whom(question, &known)
    }

    #[test]
    fn questions_about_the_one_who_asks_are_about_me() {
        for question in [
            "Who am I?",
            "Do you know who I am?",
            "do you know me",
            "When did we meet?",
            "When did we first meet?",
            "Have we met before?",
            "When did you last see me?",
            "Have you seen me today?",
            "What is my name?",
            "Do you remember me?",
            "Did you recognise me?",
            "When was the last time you saw me?",
        ] {
            assert_eq!(whom(question), Some(Whom::Me), "{question}");
        }
    }

    #[test]
    fn a_known_name_is_a_person_with_and_without_a_capital_letter() {
        for question in [
            "When did you last see Bob?",
            "did you see bob today",
            "Was Bob here?",
            "Who is Bob?",
            "What did Bob say about Paris?",
            "When was Bob's last visit?",
        ] {
            assert_eq!(whom(question), Some(Whom::Person("Bob".into())), "{question}");
        }
        assert_eq!(whom("Have you seen Anna Maria?"), Some(Whom::Person("Anna Maria".into())));
        assert_eq!(whom("Have you seen Anna?"), Some(Whom::Person("Anna".into())));
    }

    #[test]
    fn somebody_by_an_unknown_name_is_never_somebody_known() {
        assert_eq!(whom("Have you ever met Xiomara?"), Some(Whom::Unknown("Xiomara".into())));
        assert_eq!(whom("When did you last see Mark?"), Some(Whom::Unknown("Mark".into())));
        assert_eq!(whom("Do you know Joanna?"), Some(Whom::Unknown("Joanna".into())));
        assert_eq!(whom("Did you see Farid Haddad today?"), Some(Whom::Unknown("Farid Haddad".into())));
    }

    #[test]
    fn questions_about_whoever_came_are_about_everybody() {
        for question in [
            "Who did you see today?",
            "who was here this morning",
            "Did you see anybody yesterday?",
            "Who came while I was gone?",
            "Was anyone here?",
        ] {
            assert_eq!(whom(question), Some(Whom::Everybody), "{question}");
        }
    }

    #[test]
    fn questions_about_things_are_about_nobody() {
        for question in [
            "Where are my keys?",
            "What did you see this morning?",
            "Did you see my phone on Monday?",
            "What do you know about Paris?",
            "What happened while I was gone?",
            "Do you know German?",
            "",
        ] {
            assert_eq!(whom(question), None, "{question}");
        }
    }

    #[test]
    fn a_name_inside_another_word_is_not_meant() {
        assert_eq!(whom("Did you see the bobsleigh?"), None);
        assert_eq!(whom("Do you remember the bananna?"), None);
    }
}
