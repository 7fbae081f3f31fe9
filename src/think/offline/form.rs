//! What the words alone give away, before any vector is compared: whether something is asked, told or wanted, which
//! gesture or direction is named, and whether eyes and ears are meant now or in the past.
//!
//! Small rules, each where sentence vectors were measured to be weak: a statement lies as near to the examples of its
//! topic as a question does, "What do you see?" and "What did you see?" are 0.79 alike (cosine, MiniLM), and a gesture's name is worth
//! more than its neighbourhood. What the rules are worth together is
//! printed by the test that leaves each example out in turn (276 of 296 with them, 232 without).

use crate::robot::{Direction, Gesture};

/// A sentence, its greeting and fillers taken off, and its words in lower case without punctuation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sentence {
    /// As it was heard.
    pub text: String,
    pub words: Vec<String>,
    marked: bool,
}

/// What a sentence wants from whoever hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An answer or a deed.
    Asks,
    /// To be heard.
    Tells,
}

/// Words that open a sentence without changing what it wants.
const FILLERS: [&str; 16] = [
    "reachy", "hey", "hi", "hello", "please", "okay", "ok", "so", "well", "and", "but", "um", "uh", "oh", "now", "then",
];

/// Greetings of two words that may stand before a question.
const GREETINGS: [[&str; 2]; 4] = [["good", "morning"], ["good", "evening"], ["good", "afternoon"], ["good", "day"]];

/// Words that open a question.
const QUESTION_OPENERS: [&str; 49] = [
    "what", "whats", "who", "whos", "whose", "whom", "where", "wheres", "when", "whens", "why", "which", "how", "hows",
    "did", "do", "does", "have", "has", "had", "is", "are", "was", "were", "am", "can", "could", "will", "would",
    "shall", "should", "may", "might", "must", "didnt", "dont", "doesnt", "havent", "hasnt", "isnt", "arent", "wasnt",
    "werent", "cant", "couldnt", "wont", "wouldnt", "anything", "anybody",
];

/// Words that open a request for something that a tool can do.
const REQUEST_OPENERS: [&str; 34] = [
    "tell",
    "summarise",
    "summarize",
    "remind",
    "repeat",
    "show",
    "look",
    "take",
    "describe",
    "turn",
    "nod",
    "shake",
    "dance",
    "act",
    "pretend",
    "make",
    "do",
    "be",
    "move",
    "face",
    "try",
    "give",
    "search",
    "find",
    "recall",
    "say",
    "watch",
    "smile",
    "cheer",
    "lets",
    "let",
    "check",
    "see",
    "have",
];

/// How a sentence begins that asks although it begins with "I".
const POLITE: [&str; 9] = [
    "i want you to",
    "i want to know",
    "i would like",
    "id like",
    "i wonder",
    "i would love",
    "i need you to",
    "you should",
    "tell me",
];

impl Sentence {
    /// Reads one sentence.
    pub(super) fn read(text: &str) -> Self {
        let text = text.trim();
        let mut words = words(text);
        let opened = opening(&words);
        // Nothing but a greeting stays what it is.
        if opened < words.len() {
            words.drain(..opened);
        }
        Self { text: text.to_owned(), words, marked: text.ends_with('?') }
    }

    /// The sentence of an utterance that asks for something, the last one if there are several; else the last.
    pub(super) fn that_asks(heard: &str) -> Self {
        let sentences: Vec<Self> =
            split(heard).into_iter().map(Self::read).filter(|sentence| !sentence.words.is_empty()).collect();
        let asks = sentences.iter().rev().find(|sentence| sentence.form() == Form::Asks);
        asks.or(sentences.last()).cloned().unwrap_or_else(|| Self::read(heard))
    }

    /// As it is embedded: without the greeting, in plain words, so that case and marks make no difference.
    pub(super) fn spoken(&self) -> String {
        self.words.join(" ")
    }

    fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }

    /// Whether any of `words` occurs.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    /// Whether any of `phrases`, words with single spaces, occurs.
    pub(super) fn says(&self, phrases: &[&str]) -> bool {
        let joined = format!(" {} ", self.words.join(" "));
        phrases.iter().any(|phrase| joined.contains(&format!(" {phrase} ")))
    }

    /// Whether it begins with any of `phrases`.
    pub(super) fn begins(&self, phrases: &[&str]) -> bool {
        let joined = format!("{} ", self.words.join(" "));
        phrases.iter().any(|phrase| joined.starts_with(&format!("{phrase} ")))
    }

    /// Whether it asks or tells. Without a question mark, as speech recognition often leaves it, the first word
    /// decides.
    pub(super) fn form(&self) -> Form {
        let first = self.word(0);
        // "Look, I have no time", "Do not forget …" and "Remember that …" open like requests.
        let told = (first == "look" && matches!(self.word(1), "i" | "im" | "we" | "my"))
            || self.begins(&[
                "do not",
                "dont forget",
                "dont",
                "have a nice",
                "have a good",
                "have fun",
                "make sure",
                "see you",
            ])
            || self.says(&["do not forget"]);
        let asks = self.marked
            || QUESTION_OPENERS.contains(&first)
            || REQUEST_OPENERS.contains(&first)
            || self.begins(&POLITE)
            || self.wishes();
        if asks && (self.marked || !told) { Form::Asks } else { Form::Tells }
    }

    /// "You can look left now."
    fn wishes(&self) -> bool {
        self.begins(&["you can", "you may", "you could"]) && self.words.len() > 2
    }

    /// The gesture that is asked for by name. A direction counts as a gesture only where nothing is to be told about it.
    pub(super) fn gesture(&self) -> Option<Gesture> {
        let wanted = self.begins(&[
            "show",
            "let me see",
            "let us see",
            "act",
            "pretend",
            "make",
            "do",
            "be",
            "give",
            "can you",
            "could you",
            "would you",
            "will you",
            "look",
            "try",
            "play",
            "lets",
            "let us",
            "i want you to",
            "you should",
            "express",
            "you can",
        ]);
        if self.asks_in_turn() {
            return None;
        }
        let alone = self.words.len() <= 3 && self.has(&["face"]);
        let named = |word: &str| match word {
            "nod" | "nodding" => Some(Gesture::Nod),
            "dance" | "dancing" | "moves" => Some(Gesture::Dance),
            "happy" | "happiness" | "joy" | "cheer" | "smile" | "glad" | "cheerful" => Some(Gesture::Happy),
            "sad" | "sadness" | "unhappy" => Some(Gesture::Sad),
            "curious" | "curiosity" | "interested" => Some(Gesture::Curious),
            "surprised" | "surprise" | "astonished" | "amazed" => Some(Gesture::Surprised),
            "confused" | "confusion" | "puzzled" => Some(Gesture::Confused),
            _ => None,
        };
        if self.says(&["yes with your head"]) {
            return Some(Gesture::Nod);
        }
        if self.says(&["no with your head", "shake your head", "shake it", "head shake"])
            || (self.word(0) == "shake" && self.words.len() == 1)
        {
            return Some(Gesture::Shake);
        }
        let verb = matches!(self.word(0), "nod" | "dance" | "cheer" | "smile");
        if (wanted || verb) && self.has(&["dance", "dancing"]) {
            return Some(Gesture::Dance);
        }
        if (wanted || verb || alone)
            && let Some(gesture) = self.words.iter().find_map(|word| named(word))
        {
            return Some(gesture);
        }
        self.turn()
    }

    /// Questions about a feeling ("Are you happy?", "Do you like to dance?") are no wish to see it.
    fn asks_in_turn(&self) -> bool {
        self.begins(&[
            "are you", "were you", "am i", "is", "do you", "do i", "did", "have you", "what", "who", "why", "when",
            "where", "how", "which", "i am", "im", "he", "she", "we", "my", "you are", "youre", "do not",
        ])
    }

    /// "Turn to the left", "Look right": the head turns, and nothing is to be told.
    fn turn(&self) -> Option<Gesture> {
        let verb = self.begins(&[
            "look",
            "turn",
            "face",
            "move your head",
            "can you look",
            "can you turn",
            "could you look",
            "could you turn",
            "you can look",
            "i want you to look",
        ]);
        let tells = self.has(&["tell", "say", "what", "who", "describe", "see", "anything", "anybody"])
            || self.begins(&["look around"]);
        if !verb || tells {
            return None;
        }
        if self.has(&["left"]) {
            return Some(Gesture::LookLeft);
        }
        if self.has(&["right"]) {
            return Some(Gesture::LookRight);
        }
        let ahead = self.has(&["ahead", "straight", "forward", "forwards"])
            || self.says(&["at me again", "back to me", "at me", "to me"]);
        ahead.then_some(Gesture::LookAhead)
    }

    /// The direction that is named.
    pub(super) fn direction(&self) -> Option<Direction> {
        let side = |side: &str| {
            let named = ["your ", "the ", "to ", "on your ", "look "].map(|before| format!("{before}{side}"));
            named.iter().any(|phrase| self.says(&[phrase])) && !(side == "right" && self.says(&["right now"]))
        };
        if side("left") {
            Some(Direction::Left)
        } else if side("right") {
            Some(Direction::Right)
        } else if self.has(&["ahead"]) || self.says(&["in front of you"]) {
            Some(Direction::Ahead)
        } else {
            None
        }
    }

    /// Whether it is about what happened before.
    pub(super) fn past(&self) -> bool {
        self.has(&[
            "did",
            "was",
            "were",
            "had",
            "saw",
            "seen",
            "didnt",
            "wasnt",
            "been",
            "before",
            "earlier",
            "happened",
            "ever",
            "told",
            "said",
            "talked",
            "mentioned",
        ])
    }

    /// Whether it is about this moment.
    pub(super) fn now(&self) -> bool {
        self.says(&["right now", "at the moment", "now", "currently", "this moment"])
    }

    /// Whether it is about eyes.
    pub(super) fn sight(&self) -> bool {
        self.has(&[
            "see", "saw", "seen", "notice", "noticed", "spot", "spotted", "watch", "watched", "observe", "observed",
        ])
    }

    /// Whether it wants a picture taken.
    pub(super) fn glance(&self) -> bool {
        self.says(&["take a look", "have a look", "take a photo", "take a picture", "take another look", "look around"])
            || self.says(&["am i wearing", "am i holding", "am i doing", "in my hand", "in my hands"])
    }

    /// Whether it is about the robot's own make: its parts, or how it does what it does.
    pub(super) fn about_itself(&self) -> bool {
        const PARTS: [&str; 30] = [
            "qdrant",
            "vector",
            "vectors",
            "embedding",
            "embeddings",
            "database",
            "databases",
            "semantic",
            "snapshot",
            "shard",
            "shards",
            "processor",
            "motor",
            "motors",
            "antenna",
            "antennas",
            "microphone",
            "microphones",
            "sensors",
            "battery",
            "software",
            "computer",
            "internet",
            "offline",
            "cloud",
            "data",
            "private",
            "privacy",
            "reachy",
            "model",
        ];
        let how = self.begins(&[
            "how do you",
            "how does your",
            "how did you learn",
            "how much do you",
            "how long do you",
            "how much can you",
            "what are you for",
        ]) && !self.has(&["say", "spell", "pronounce", "translate", "feel", "like", "me", "my"])
            && !self.says(&["how do you do"]);
        let parts = self.has(&PARTS) && !self.personal() && !self.past();
        how || parts
            || self.says(&["your memory", "your memories", "made you", "built you", "are you made", "you made of"])
            || self.begins(&["what can you do", "what are you able", "what do you do"])
            || (self.words.len() == 3 && self.begins(&["what are you"]))
    }

    /// Whether it wants something that no tool can do.
    pub(super) fn beyond(&self) -> bool {
        self.begins(&[
            "tell me a",
            "tell me something",
            "tell us a",
            "sing",
            "play",
            "set",
            "translate",
            "turn on",
            "turn off",
            "turn the light",
            "turn the music",
            "switch",
            "call",
            "order",
            "open",
            "close",
            "calculate",
            "write",
            "spell",
            "read",
            "count",
            "why is",
            "why are",
            "why does",
            "why do",
            "how do i",
            "how can i",
            "how do you say",
            "how do you spell",
            "how do you pronounce",
            "how much is",
            "will it",
            "who are you",
            "whats your name",
            "what is your name",
            "can you help",
            "do you like",
            "do you love",
            "do you want",
            "are you happy",
            "are you sad",
            "are you tired",
            "how are you",
            "how do you feel",
            "who wrote",
            "who invented",
            "who discovered",
            "who painted",
            "who composed",
            "be quiet",
            "be silent",
        ]) || self.says(&["weather tomorrow", "weather like", "the weather"]) && !self.past() && !self.personal()
    }

    /// Whether it is about people who came and went, which eyes notice.
    pub(super) fn visit(&self) -> bool {
        self.says(&[
            "was here",
            "were here",
            "was there anybody",
            "was there anyone",
            "come by",
            "came by",
            "come in",
            "came in",
        ]) || self.says(&[
            "walk by",
            "walk past",
            "walked by",
            "walked past",
            "drop by",
            "dropped by",
            "was in the room",
        ])
    }

    /// Whether it asks for somebody or something by a name that only this household knows, as in "Who is Peter?".
    pub(super) fn names_somebody(&self) -> bool {
        let who = self.begins(&["who is", "whos", "who was"])
            && self.words.len() <= 3
            && !self.has(&["there", "here", "that", "this"]);
        who || self.says(&["the name of", "the next"]) && !self.has(&["capital", "world", "country", "planet"])
    }

    /// Whether it is about words that were exchanged.
    pub(super) fn speech(&self) -> bool {
        self.has(&[
            "say",
            "said",
            "tell",
            "told",
            "talk",
            "talked",
            "talking",
            "speak",
            "spoke",
            "spoken",
            "mention",
            "mentioned",
            "conversation",
            "discuss",
            "discussed",
            "discuss",
            "promised",
            "recommend",
            "saying",
            "answer",
            "answered",
            "ask",
            "asked",
        ])
    }

    /// Whether it is about the person or household that speaks.
    pub(super) fn personal(&self) -> bool {
        self.has(&["my", "mine", "our", "ours", "we", "us"])
            || (self.has(&["i"]) && !self.says(&["how do i", "how can i", "can i", "should i"]))
    }
}

/// How many words at the beginning are greeting and filler.
fn opening(words: &[String]) -> usize {
    let mut opened = 0;
    loop {
        let at = |place: usize| words.get(place).map_or("", String::as_str);
        if GREETINGS.iter().any(|[first, second]| at(opened) == *first && at(opened + 1) == *second) {
            opened += 2;
        } else if FILLERS.contains(&at(opened)) {
            opened += 1;
        } else {
            return opened;
        }
    }
}

/// Sentences of an utterance, with their marks. A point within a number or a word ends nothing.
fn split(heard: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (place, letter) in heard.char_indices() {
        let end = place + letter.len_utf8();
        let over = heard.get(end..).is_none_or(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if matches!(letter, '.' | '!' | '?') && over {
            sentences.extend(heard.get(start..end));
            start = end;
        }
    }
    sentences.extend(heard.get(start..));
    sentences
}

/// Words in lower case, without apostrophes and punctuation.
pub(super) fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .replace(['\'', '’'], "")
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
