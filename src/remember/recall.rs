//! What counts as an answer: pure decisions over scores, words and times.
//!
//! A search always returns something, so a memory counts only from its store's gate on, or if it holds the question's
//! own words (see [`words`]); likeness and words together give the order. A question that names nothing
//! ("What did we talk about this morning?") cannot be answered by likeness; it is answered by its time.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::words::{self, Match};
use super::{Exchange, Recalled, Remembered, TimeRange};

/// A candidate with its cosine to the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    pub exchange: Exchange,
    pub score: f32,
    /// How it matches by its words.
    pub words: Match,
    /// Still in the window.
    pub just_said: bool,
}

impl Scored {
    /// What the order of answers is made by.
    #[must_use]
    pub fn fused(&self) -> f32 {
        self.score + self.words.lift(words::EXCHANGES)
    }
}

/// Two memories this close in score are told in the order of time, the newer first, because the newer one is more
/// likely still true ("the key is in the drawer now"). Not measured.
const AS_GOOD_AS: f32 = 0.02;

/// What [`decide`] comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Best first.
    Found(Vec<Remembered>),
    /// The best cosine under the gate, if anything was compared.
    Nothing { best: Option<f32> },
}

/// Keeps what passes the gate or holds the question's words, best first, at most `limit`.
#[must_use]
pub fn decide(mut candidates: Vec<Scored>, gate: f32, limit: usize) -> Decision {
    let best = candidates.iter().map(|candidate| candidate.score).reduce(f32::max);
    candidates.retain(|candidate| candidate.score >= gate || candidate.words.found);
    if candidates.is_empty() {
        return Decision::Nothing { best };
    }
    best_first(&mut candidates, Scored::fused, |candidate| candidate.exchange.said_at);
    Decision::Found(candidates.into_iter().take(limit).map(remembered).collect())
}

/// Sorts by score, the best first, and those as good as the best by time, the newest first.
pub(super) fn best_first<T>(candidates: &mut [T], score: impl Fn(&T) -> f32, at: impl Fn(&T) -> Timestamp) {
    candidates.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let Some(top) = candidates.first().map(&score) else { return };
    let tied = candidates.iter().take_while(|candidate| top - score(candidate) <= AS_GOOD_AS).count();
    candidates[..tied].sort_by_key(|candidate| Reverse(at(candidate)));
}

fn remembered(candidate: Scored) -> Remembered {
    Remembered {
        text: candidate.exchange.line(),
        exchange: candidate.exchange,
        score: Some(candidate.score),
        just_said: candidate.just_said,
    }
}

/// The answer to a question that names nothing: exchanges of its time, oldest first, spread evenly over the range so
/// that a long morning is told from its beginning to its end.
///
/// `all` is in any order and holds only what lies in the range.
#[must_use]
pub fn sample(mut all: Vec<(Exchange, bool)>, limit: usize) -> Recalled {
    all.sort_by_key(|(exchange, _)| exchange.said_at);
    let of = all.len();
    if of == 0 || limit == 0 {
        return Recalled::Nothing { searched: of, best: None };
    }
    let keep = limit.min(of);
    let memories = (0..keep)
        .map(|index| if keep == 1 { of - 1 } else { index * (of - 1) / (keep - 1) })
        .map(|index| {
            let (exchange, just_said) = all[index].clone();
            Remembered { text: exchange.line(), exchange, score: None, just_said }
        })
        .collect();
    Recalled::Sampled { memories, of }
}

/// Whether a moment may answer. That it lies ahead of the clock is no reason against it: a robot that starts without
/// the network may have a clock that is behind, and must not deny what it knows.
#[must_use]
pub fn may_answer(said_at: Timestamp, when: Option<TimeRange>) -> bool {
    when.is_none_or(|range| range.contains(said_at))
}

/// Whether a question names nothing to look for: every word is a question's, a pronoun's, talk's or time's own.
///
/// English words only; a question in another language always names something, and is answered by likeness alone.
#[must_use]
pub fn names_nothing(question: &str) -> bool {
    names_nothing_but(question, "")
}

/// The same where `also` are further words that name nothing.
pub(super) fn names_nothing_but(question: &str, also: &str) -> bool {
    let mut words = question
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’')
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase().replace('’', "'"))
        .peekable();
    let is_also = |word: &str| also.split_whitespace().any(|other| other == word);
    words.peek().is_some() && words.all(|word| is_framing(&word) || is_also(&word))
}

/// Words that frame a question about a conversation without naming what it was about.
fn is_framing(word: &str) -> bool {
    const TIMES: &str = "
        afternoon ago day days evening hour hours minute minutes moment month monday morning night noon now o'clock
        saturday sunday thursday today tonight tuesday wednesday week weekend friday yesterday before breakfast lunch
        dinner few couple two three
    ";
    // "At 9 o'clock", "on the 12th"; a longer number is a room, a code, an invoice.
    let small_number = word.len() <= 2 && word.chars().all(|letter| letter.is_ascii_digit());
    is_talk(word) || holds(TIMES, word) || small_number
}

/// Words of talk itself: pronouns, question words, telling and remembering. In small letters or not.
pub(super) fn is_talk(word: &str) -> bool {
    const TALK: &str = "
        a about all an and any anything at been between can conversation conversations could d did discuss discussed
        discussing discussion do does earlier else ever everything for from had happen happened happens has have i i've
        if in into just know last latest mention mentioned me most my of on or our over past please recall recap
        recently remember remind s said say saying since so some something speak spoke spoken subject subjects summarise
        summarize summary talk talked talking tell that the then there thing things this to told topic topics up us
        was we we've were what what's when which while with you you've your chat chatted
    ";
    holds(TALK, &word.to_lowercase())
}

fn holds(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn exchange(words: &str, second: i64) -> Exchange {
        Exchange { heard: words.into(), said: "All right.".into(), speaker: None, said_at: at(second) }
    }

    fn scored(words: &str, second: i64, score: f32) -> Scored {
        Scored { exchange: exchange(words, second), score, words: Match::default(), just_said: false }
    }

    #[test]
    fn a_search_that_returns_only_what_is_under_the_gate_found_nothing() {
        let candidates = vec![scored("tea", 1, 0.41), scored("train", 2, 0.30)];
        assert_eq!(decide(candidates, 0.5, 5), Decision::Nothing { best: Some(0.41) });
    }

    #[test]
    fn what_holds_the_questions_words_is_found_under_the_gate_and_comes_before_what_is_only_alike() {
        let holds = Match { bm25: 6.0, share: 0.9, alone: false, found: true };
        let candidates = vec![scored("room 212", 1, 0.55), Scored { words: holds, ..scored("room 4127", 2, 0.41) }];
        let Decision::Found(memories) = decide(candidates, 0.5, 5) else { panic!("nothing found") };
        let words: Vec<_> = memories.iter().map(|memory| memory.exchange.heard.as_str()).collect();
        assert_eq!(words, ["room 4127", "room 212"]);
        assert_eq!(memories[0].score, Some(0.41), "the score that is shown is the cosine");
    }

    #[test]
    fn the_best_comes_first_and_equals_come_newest_first() {
        let candidates = vec![scored("old box", 1, 0.80), scored("tea", 5, 0.60), scored("new drawer", 9, 0.79)];
        let Decision::Found(memories) = decide(candidates, 0.5, 2) else { panic!("nothing found") };
        let words: Vec<_> = memories.iter().map(|memory| memory.exchange.heard.as_str()).collect();
        assert_eq!(words, ["new drawer", "old box"]);
    }

    #[test]
    fn a_long_morning_is_told_from_its_beginning_to_its_end() {
        let all = (0..10).rev().map(|second| (exchange(&second.to_string(), second), false)).collect();
        let Recalled::Sampled { memories, of } = sample(all, 4) else { panic!("nothing sampled") };
        let words: Vec<_> = memories.iter().map(|memory| memory.exchange.heard.as_str()).collect();
        assert_eq!((words.as_slice(), of), (["0", "3", "6", "9"].as_slice(), 10));
    }

    #[test]
    fn an_empty_morning_is_nothing_and_not_a_sample() {
        assert_eq!(sample(Vec::new(), 4), Recalled::Nothing { searched: 0, best: None });
    }

    #[test]
    fn questions_about_the_talk_itself_name_nothing() {
        for question in [
            "What did we talk about this morning?",
            "what did we talk about",
            "What have we discussed today",
            "Do you remember what I told you yesterday?",
            "What was our conversation about an hour ago?",
            "What did I say to you just now?",
            "Remind me what we talked about on Monday at 9 o'clock.",
        ] {
            assert!(names_nothing(question), "{question}");
        }
    }

    #[test]
    fn questions_about_a_thing_name_it() {
        for question in [
            "Where is the key of the bicycle?",
            "What did I tell you about the piano?",
            "When is my sister coming to visit?",
            "What did we say about Hamburg this morning?",
            "Worüber haben wir gesprochen?",
            "What was 20418?",
            "",
        ] {
            assert!(!names_nothing(question), "{question}");
        }
    }

    #[test]
    fn a_range_has_both_ends_and_a_clock_that_is_behind_denies_nothing() {
        let range = TimeRange { from: at(100), to: at(200) };
        assert!(may_answer(at(100), Some(range)) && may_answer(at(200), Some(range)));
        assert!(!may_answer(at(99), Some(range)) && !may_answer(at(201), Some(range)));
        assert!(may_answer(at(500), None));
    }
}
