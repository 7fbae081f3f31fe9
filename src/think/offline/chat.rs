//! What is said when no tool is needed: greetings, thanks, a note taken, or plainly that it cannot.

use jiff::Zoned;
use serde::Deserialize;

use super::choose::is_clock_question;
use super::form::{Form, Sentence, words};

/// The sentences of `sentences.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sentences {
    greeting_morning: Vec<String>,
    greeting_day: Vec<String>,
    greeting_evening: Vec<String>,
    goodbye: Vec<String>,
    good_night: Vec<String>,
    thanks: Vec<String>,
    how_are_you: Vec<String>,
    who_are_you: Vec<String>,
    pleased: Vec<String>,
    time: Vec<String>,
    date: Vec<String>,
    all_right: Vec<String>,
    noted: Vec<String>,
    cannot: Vec<String>,
    no_tools: Vec<String>,
}

/// Local hours before which "good morning" and from which "good evening" is said.
const MORNING_ENDS: i8 = 11;
const EVENING_BEGINS: i8 = 18;

/// The most words that a greeting, a thank-you or a farewell has; longer ones tell something besides.
const SMALL_TALK_WORDS: usize = 8;

impl Sentences {
    /// Words in answer to `heard`, which asks for no tool. `turn` counts up and makes answers take turns.
    pub(super) fn answer(&self, heard: &str, speaker: Option<&str>, now: &Zoned, turn: usize) -> String {
        let kind = self.kind(heard, now);
        let chosen = kind.get(turn % kind.len().max(1)).map_or("", String::as_str);
        chosen
            .replace("{name}", &speaker.map(|name| format!(", {name}")).unwrap_or_default())
            .replace("{time}", &now.strftime("%H:%M").to_string())
            .replace("{date}", &now.strftime("%A, %-d %B %Y").to_string())
    }

    /// What is said instead of a search when tools are not allowed.
    pub(super) fn no_tools(&self) -> &str {
        self.no_tools.first().map_or("", String::as_str)
    }

    fn kind(&self, heard: &str, now: &Zoned) -> &[String] {
        let sentence = Sentence::that_asks(heard);
        if is_clock_question(&sentence) {
            let date = sentence.has(&["day", "date"]) || sentence.says(&["what is today"]);
            return if date { &self.date } else { &self.time };
        }
        let all = words(heard);
        if all.len() <= SMALL_TALK_WORDS
            && let Some(kind) = self.small_talk(&all, now)
        {
            return kind;
        }
        match sentence.form() {
            Form::Asks => &self.cannot,
            Form::Tells => &self.noted,
        }
    }

    fn small_talk(&self, all: &[String], now: &Zoned) -> Option<&[String]> {
        let joined = format!(" {} ", all.join(" "));
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
        let begins = |phrases: &[&str]| phrases.iter().any(|phrase| joined.starts_with(&format!(" {phrase} ")));
        let greets = begins(&["hello", "hi", "hey", "good morning", "good evening", "good afternoon", "good day"]);
        let only_greets = all.len() <= 4
            || says(&[
                "nice to see",
                "good to see",
                "i am back",
                "im back",
                "i am home",
                "im home",
                "its me",
                "it is me",
            ]);
        let kind = if says(&["good night", "sleep well"]) {
            &self.good_night
        } else if greets && only_greets && !says(&["how are you"]) {
            self.greeting(now)
        } else if says(&[
            "how are you",
            "how do you feel",
            "how are things",
            "whats up",
            "how is it going",
            "hows it going",
        ]) {
            &self.how_are_you
        } else if says(&["who are you", "your name", "whats your name"]) {
            &self.who_are_you
        } else if says(&["thank you", "thanks"]) && !begins(&["no"]) {
            &self.thanks
        } else if says(&["bye", "goodbye", "see you", "so long"]) {
            &self.goodbye
        } else if begins(&[
            "well done",
            "nice to",
            "good to see",
            "i love you",
            "i like you",
            "you are",
            "youre",
            "you did",
            "good robot",
        ]) {
            &self.pleased
        } else if begins(&[
            "stop",
            "be quiet",
            "quiet",
            "never mind",
            "okay never mind",
            "forget it",
            "yes",
            "no",
            "okay",
            "ok",
            "all right",
            "sure",
            "great",
            "fine",
        ]) && all.len() <= 4
            || begins(&["that is", "thats", "how nice", "how funny"]) && all.len() <= 4
        {
            &self.all_right
        } else {
            return None;
        };
        Some(kind)
    }

    fn greeting(&self, now: &Zoned) -> &[String] {
        match now.hour() {
            0..MORNING_ENDS => &self.greeting_morning,
            EVENING_BEGINS.. => &self.greeting_evening,
            _ => &self.greeting_day,
        }
    }
}
