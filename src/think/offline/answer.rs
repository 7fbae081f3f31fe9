//! What a tool answered, put into words. It quotes and makes nothing up.
//!
//! "Found nothing" and "could not look" are different sentences here too, and what was said a moment ago is never told
//! as a memory.

use jiff::{SignedDuration, Timestamp, Zoned};

use super::form::{Form, Sentence};
use crate::remember::{Exchange, HowSeen, KnownFact, Recalled, Remembered, SeenFrame};
use crate::robot::Gesture;
use crate::think::tools::ToolResult;
use crate::think::when::{self, When};

/// Memories told in answer to a question that named something.
const TOLD: usize = 2;
/// A second memory is told only if it is this near to the best (cosine); chosen by hand.
const NEARLY_AS_GOOD: f32 = 0.05;
/// Something that was told goes before a question about it, if it is this near to the best (cosine); chosen by hand.
const TOLD_BEFORE_ASKED: f32 = 0.10;
/// Memories listed when the question named only a time.
const LISTED: usize = 5;
/// Letters of a quotation; a longer one is cut at a word.
const QUOTED: usize = 240;
/// What was said less than this ago was said "a moment ago".
const MOMENT: SignedDuration = SignedDuration::from_mins(2);

/// Who asks, and for which time.
pub(super) struct Asked<'a> {
    pub speaker: Option<&'a str>,
    /// The person's words for a time.
    pub when: Option<&'a str>,
    pub now: &'a Zoned,
}

/// The sentence or sentences that tell `result`.
pub(super) fn answer(result: &ToolResult, asked: &Asked<'_>) -> String {
    match result {
        ToolResult::Recalled(Recalled::Found { memories }) => found(memories, asked),
        ToolResult::Recalled(Recalled::Sampled { memories, of }) => sampled(memories, *of, asked),
        ToolResult::Recalled(Recalled::Nothing { searched, .. }) => nothing(*searched, asked),
        ToolResult::Recalled(Recalled::Seen { frames, how }) => {
            format!("{}{}", since_when(asked), frames_told(frames, *how, asked))
        }
        ToolResult::Recalled(Recalled::Person(known)) => people::known(known, asked),
        ToolResult::Recalled(Recalled::NeverMet { name }) => people::never_met(name.as_deref()),
        ToolResult::Recalled(Recalled::Away(away)) => people::away(away, asked),
        ToolResult::Recalled(Recalled::Facts { facts, besides }) => known(facts, besides.as_deref(), asked),
        ToolResult::CouldNotLook { why } => format!("I cannot look into my memory right now: {}", closed(why)),
        ToolResult::Seen { sentence } => closed(sentence),
        ToolResult::CouldNotSee { why } => format!("I cannot see anything right now: {}", closed(why)),
        ToolResult::Moved { gesture } => moved(*gesture).to_owned(),
        ToolResult::CouldNotMove { why } => format!("I could not move: {}", closed(why)),
        ToolResult::Refused { why } => format!("I could not do that: {}", closed(why)),
    }
}

fn nothing(searched: usize, asked: &Asked<'_>) -> String {
    if searched == 0 && asked.when.is_some() {
        "I searched my memory and found nothing from that time.".to_owned()
    } else {
        "I searched my memory and found nothing about that.".to_owned()
    }
}

/// What the robot was taught, in its own words, and then what somebody said or it saw, with its time.
fn known(facts: &[KnownFact], besides: Option<&Recalled>, asked: &Asked<'_>) -> String {
    let Some(best) = facts.first() else { return nothing(0, asked) };
    let known = closed(&best.text);
    match besides {
        Some(besides) => format!("{known} {}", answer(&ToolResult::Recalled(besides.clone()), asked)),
        None => known,
    }
}

fn found(memories: &[Remembered], asked: &Asked<'_>) -> String {
    let score = |memory: &Remembered| memory.score.unwrap_or(0.0);
    let Some(best) = memories.first().map(score) else { return nothing(memories.len(), asked) };
    let mut told: Vec<&Remembered> = memories.iter().collect();
    // Stable: within each half the order stays what recall made it.
    told.sort_by_key(|memory| is_question(&memory.exchange) || score(memory) < best - TOLD_BEFORE_ASKED);
    let lead = told.first().map_or(best, |memory| score(memory));
    let sentences = told
        .iter()
        .enumerate()
        .filter(|(place, memory)| {
            *place == 0 || (lead - score(memory) <= NEARLY_AS_GOOD && !is_question(&memory.exchange))
        })
        .take(TOLD)
        .map(|(_, memory)| tell(memory, asked));
    sentences.collect::<Vec<_>>().join(" ")
}

/// Said before an answer about the time somebody was away, which nobody measured.
fn since_when(asked: &Asked<'_>) -> &'static str {
    match asked.when.map(|words| when::resolve(words, asked.now)) {
        Some(When::WhileAway) => "I do not know since when you were away, so I tell you of today. ",
        _ => "",
    }
}

/// What was seen: the best picture, or different ones of a time, newest first.
fn frames_told(frames: &[SeenFrame], how: HowSeen, asked: &Asked<'_>) -> String {
    let shown = match how {
        HowSeen::Named | HowSeen::LastLook => 1,
        HowSeen::Sampled { .. } => frames.len(),
    };
    let told = frames.iter().take(shown).map(|seen| {
        let at = told_time(seen.frame.seen_at, asked.now);
        // "I saw a cup." after a time: "This morning at 08:05 I saw a cup."
        let sentence = closed(&seen.frame.sentence);
        let who = if seen.frame.names.is_empty() || seen.frame.names.iter().all(|name| sentence.contains(name)) {
            String::new()
        } else {
            format!(" {} was there.", seen.frame.names.join(" and "))
        };
        format!("{} {sentence}{who}", capitalised(&at))
    });
    told.collect::<Vec<_>>().join(" ")
}

/// One memory as a sentence of its own.
fn tell(memory: &Remembered, asked: &Asked<'_>) -> String {
    let exchange = &memory.exchange;
    if memory.just_said && same_speaker(exchange, asked) && !is_question(exchange) {
        return format!("You said that a moment ago: {}", quoted(&exchange.heard));
    }
    let at = if memory.just_said { "a moment ago".to_owned() } else { told_time(exchange.said_at, asked.now) };
    capitalised(&format!("{at} {}", said(exchange, asked)))
}

/// "you told me: “…”", without the time.
fn said(exchange: &Exchange, asked: &Asked<'_>) -> String {
    let who = match &exchange.speaker {
        _ if same_speaker(exchange, asked) => "you".to_owned(),
        Some(name) => name.clone(),
        None => "somebody".to_owned(),
    };
    if is_question(exchange) {
        if exchange.said.trim().is_empty() {
            return format!("{who} asked me: {}", quoted(&exchange.heard));
        }
        return format!("{who} asked me: {} I answered: {}", quoted(&exchange.heard), quoted(&exchange.said));
    }
    format!("{who} told me: {}", quoted(&exchange.heard))
}

/// Two unnamed speakers count as one: without faces the robot knows one voice only.
fn same_speaker(exchange: &Exchange, asked: &Asked<'_>) -> bool {
    exchange.speaker.as_deref() == asked.speaker
}

fn is_question(exchange: &Exchange) -> bool {
    Sentence::that_asks(&exchange.heard).form() == Form::Asks
}

fn sampled(memories: &[Remembered], of: usize, asked: &Asked<'_>) -> String {
    if memories.is_empty() {
        return nothing(of, asked);
    }
    let time = asked.when.map(turned_to_you);
    let opening = match (&time, memories.len()) {
        (Some(time), 1) => format!("{time} we talked about one thing."),
        (Some(time), _) => format!("{time} we talked about several things."),
        (None, 1) => "we talked about one thing.".to_owned(),
        (None, _) => "we talked about several things.".to_owned(),
    };
    let here = |memory: &Remembered| memory.exchange.said_at.to_zoned(asked.now.time_zone().clone());
    // The day is said once, and not at all where the person's own words for it opened the answer.
    let mut day = time.is_some().then(|| asked.now.date());
    let mut items = Vec::new();
    for memory in memories.iter().take(LISTED) {
        let (moment, before) = (here(memory), day.replace(here(memory).date()));
        let at = if memory.just_said {
            "a moment ago".to_owned()
        } else if before == Some(moment.date()) {
            format!("at {}", moment.strftime("%H:%M"))
        } else {
            told_time(memory.exchange.said_at, asked.now)
        };
        items.push(capitalised(&format!("{at} {}", said(&memory.exchange, asked))));
    }
    let listed = items.join(" ");
    let rest = match of.max(memories.len()) - memories.len().min(LISTED) {
        0 => String::new(),
        1 => " There is one more that I left out.".to_owned(),
        more => format!(" There are {more} more that I left out."),
    };
    capitalised(&format!("{opening} {listed}{rest}"))
}

/// A person's words for a time, as the robot says them back: "while I was away" becomes "while you were away".
fn turned_to_you(when: &str) -> String {
    let turned = format!(" {} ", when.to_lowercase())
        .replace(" i was ", " you were ")
        .replace(" we were ", " you were ")
        .replace(" i left ", " you left ")
        .replace(" my ", " your ");
    let mut words: Vec<String> = turned.split_whitespace().map(str::to_owned).collect();
    for word in &mut words {
        if matches!(word.as_str(), "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday") {
            *word = capitalised(word);
        }
    }
    words.join(" ")
}

/// When something was said, as in "this morning at 08:05".
fn told_time(at: Timestamp, now: &Zoned) -> String {
    if now.timestamp().duration_since(at).abs() < MOMENT {
        return "a moment ago".to_owned();
    }
    let at = at.to_zoned(now.time_zone().clone());
    let clock = at.strftime("%H:%M");
    let days = now.date().since(at.date()).map_or(i64::from(i32::MAX), |span| i64::from(span.get_days()));
    match days {
        0 => {
            let part = match at.hour() {
                0..5 => "last night",
                5..12 => "this morning",
                12..18 => "this afternoon",
                _ => "this evening",
            };
            format!("{part} at {clock}")
        }
        1 => format!("yesterday at {clock}"),
        2..7 => format!("on {} at {clock}", at.strftime("%A")),
        _ if at.year() == now.year() => format!("on {} at {clock}", at.strftime("%-d %B")),
        _ => format!("on {} at {clock}", at.strftime("%-d %B %Y")),
    }
}

/// In quotation marks, cut at a word where it is long, and closed by a mark of its own.
fn quoted(text: &str) -> String {
    let text = text.trim().trim_matches(['“', '”', '"']);
    if text.chars().count() <= QUOTED {
        return format!("“{}”", closed(text));
    }
    let cut: String = text.chars().take(QUOTED).collect();
    let kept = cut.rsplit_once(' ').map_or(cut.as_str(), |(kept, _)| kept);
    format!("“{kept} …”")
}

/// Ends with a mark.
fn closed(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn moved(gesture: Gesture) -> &'static str {
    match gesture {
        Gesture::Nod => "I nodded.",
        Gesture::Shake => "I shook my head.",
        Gesture::Dance => "That was my dance.",
        Gesture::Happy => "That is how I look when I am happy.",
        Gesture::Sad => "That is how I look when I am sad.",
        Gesture::Curious => "That is how I look when I am curious.",
        Gesture::Surprised => "That is how I look when I am surprised.",
        Gesture::Confused => "That is how I look when I am confused.",
        Gesture::LookLeft => "I am looking to my left.",
        Gesture::LookRight => "I am looking to my right.",
        Gesture::LookAhead => "I am looking straight ahead.",
    }
}

mod people;
#[cfg(test)]
mod tests;
