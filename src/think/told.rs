//! Times and tool results, told as a person would: "yesterday at 18:05".
//!
//! Pure: the moment that "now" means and the time zone are handed in. The offline brain tells times with the same
//! [`told`], so that both brains say a memory's time in the same words.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::remember::{Away, Frame, HowSeen, Known, KnownFact, Recalled, Remembered, SeenFrame};

use super::tools::ToolResult;

/// Characters of one memory that the model reads; the rest is an ellipsis. Five memories then take about a third of
/// a window of 1000 tokens. Not measured.
const LONGEST_MEMORY: usize = 300;

/// When `at` was, seen from `now` in `zone`: "today at 08:05", "yesterday at 18:10", "on Monday at 09:00" (two to six
/// days ago), "on 3 March 2026 at 09:00".
#[must_use]
pub fn told(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let then = at.to_zoned(zone.clone());
    let here = now.to_zoned(zone.clone());
    let clock = then.strftime("%H:%M");
    // Calendar days, not stretches of 24 hours: a night with a clock change is still one night.
    let days = then.date().until(here.date()).map_or(i32::MAX, |span| span.get_days());
    match days {
        0 => format!("today at {clock}"),
        1 => format!("yesterday at {clock}"),
        2..=6 => format!("on {} at {clock}", then.strftime("%A")),
        _ => format!("on {} at {clock}", then.strftime("%-d %B %Y")),
    }
}

/// The present moment for a model: "It is Monday, 30 November 2026, 18:05."
#[must_use]
pub fn told_now(now: Timestamp, zone: &TimeZone) -> String {
    format!("It is {}.", now.to_zoned(zone.clone()).strftime("%A, %-d %B %Y, %H:%M"))
}

impl ToolResult {
    /// What the model reads as the tool's answer. "Found nothing" and "could not look" never read alike.
    #[must_use]
    pub fn for_model(&self, now: Timestamp, zone: &TimeZone) -> String {
        match self {
            Self::Recalled(recalled) => recalled_for_model(recalled, now, zone),
            Self::CouldNotLook { why } => format!(
                "Your memory could not be searched: {}. Say that you cannot look right now; do not say that it never \
                 happened.",
                clause(why)
            ),
            Self::Seen { sentence } => format!("Your camera, now: {}", one_line(sentence)),
            Self::CouldNotSee { why } => format!(
                "Your camera gave no picture: {}. Say that you cannot see right now; do not guess what is there.",
                clause(why)
            ),
            Self::Moved { gesture } => format!("You made the gesture {}.", gesture.name().replace('_', " ")),
            Self::CouldNotMove { why } => {
                format!("You could not move: {}. Say so; do not pretend that you moved.", clause(why))
            }
            Self::Refused { why } => format!("This call was not run. {}", one_line(why)),
        }
    }
}

fn recalled_for_model(recalled: &Recalled, now: Timestamp, zone: &TimeZone) -> String {
    match recalled {
        Recalled::Found { memories } if !memories.is_empty() => {
            format!("You searched your memory and found, best match first:\n{}", lines(memories, now, zone))
        }
        Recalled::Sampled { memories, of } if !memories.is_empty() => format!(
            "Nothing in particular was asked for. From that time you remember, oldest first ({} of {of}):\n{}",
            memories.len(),
            lines(memories, now, zone)
        ),
        Recalled::Seen { frames, how } if !frames.is_empty() => {
            let opening = match how {
                HowSeen::Named => "You searched what you saw and found, best match first:",
                HowSeen::Sampled { .. } => {
                    "Nothing in particular was asked for. From that time you remember, newest first:"
                }
                HowSeen::LastLook => "Your last look that way:",
            };
            format!("{opening}\n{}", frame_lines(frames, now, zone))
        }
        Recalled::Person(known) => person_for_model(known, now, zone),
        Recalled::NeverMet { name: Some(name) } => {
            format!("You looked among the people you know: you never met anybody called {}. Say so.", one_line(name))
        }
        Recalled::NeverMet { name: None } => "You looked at the face of the person talking to you: you never met them \
                                              before, and you do not know their name. Say so; do not guess."
            .into(),
        Recalled::Away(away) => away_for_model(away, now, zone),
        Recalled::Facts { facts, besides } if !facts.is_empty() => {
            let known = facts_for_model(facts);
            besides
                .as_ref()
                .map_or(known.clone(), |besides| format!("{known}\n{}", recalled_for_model(besides, now, zone)))
        }
        _ => "You searched your memory and found nothing about this. Say so; do not make anything up.".into(),
    }
}

/// Somebody known: when they met, when they were last seen, and what they said.
fn person_for_model(known: &Known, now: Timestamp, zone: &TimeZone) -> String {
    let name = one_line(&known.name);
    let who = if known.asks { "The person talking to you is" } else { "You know" };
    let mut text = format!("{who} {name}. You first met them {}.", told(known.met_at, now, zone));
    match known.last_seen_at {
        Some(at) if known.is_here => {
            text +=
                &format!(" They are in front of you now; before this visit you last saw them {}.", told(at, now, zone));
        }
        Some(at) => text += &format!(" You last saw them {}; they are not here now.", told(at, now, zone)),
        None if known.is_here => text += " They are in front of you now, for the first time.",
        None => text += " You have not seen them since.",
    }
    if !known.exchanges.is_empty() {
        text += &format!(" What they said to you, newest first:\n{}", lines(&known.exchanges, now, zone));
    }
    text
}

/// A time away: who came and what was seen, each with when.
fn away_for_model(away: &Away, now: Timestamp, zone: &TimeZone) -> String {
    let opening = match away.since {
        Some(since) => format!("The person talking to you was away since {}.", told(since, now, zone)),
        None => {
            "You do not know since when the person talking to you was away, because you do not see a face that you \
                 know; this is what you saw today. Say that it is today's."
                .to_owned()
        }
    };
    if away.frames.is_empty() && away.came.is_empty() {
        return format!("{opening} You looked through that time, and nothing happened that you saw. Say so.");
    }
    let mut parts = vec![opening];
    if !away.came.is_empty() {
        let came: Vec<String> =
            away.came.iter().map(|(name, at)| format!("- {} came {}", one_line(name), told(*at, now, zone))).collect();
        parts.push(format!("Who came:\n{}", came.join("\n")));
    }
    if !away.frames.is_empty() {
        let count = format!("{} of {}", away.frames.len(), away.of.max(away.frames.len()));
        parts.push(format!("What you saw, newest first ({count}):\n{}", frame_lines(&away.frames, now, zone)));
    }
    parts.join("\n")
}

fn frame_lines(frames: &[SeenFrame], now: Timestamp, zone: &TimeZone) -> String {
    let lines: Vec<String> = frames.iter().map(|seen| format!("- {}", frame_note(&seen.frame, now, zone))).collect();
    lines.join("\n")
}

/// What the robot was taught is known, not remembered: it has no time, and nobody here said it.
fn facts_for_model(facts: &[KnownFact]) -> String {
    let lines: Vec<String> = facts.iter().map(|fact| format!("- {}", clipped(&one_line(&fact.text)))).collect();
    format!("You know, because you were taught it, best match first:\n{}", lines.join("\n"))
}

/// One remembered picture in a line: when it was, what was in it, who was, and what was said about it.
#[must_use]
pub fn frame_note(frame: &Frame, now: Timestamp, zone: &TimeZone) -> String {
    let who = if frame.names.is_empty() { String::new() } else { format!(" With {}.", frame.names.join(", ")) };
    format!("{}: {}{who}", told(frame.seen_at, now, zone), clipped(&one_line(&frame.words())))
}

fn lines(memories: &[Remembered], now: Timestamp, zone: &TimeZone) -> String {
    let lines: Vec<String> = memories
        .iter()
        .map(|memory| {
            let from = if memory.just_said {
                "just said, still in this conversation".to_owned()
            } else {
                told(memory.exchange.said_at, now, zone)
            };
            format!("- {from}: {}", clipped(&one_line(&memory.text)))
        })
        .collect();
    lines.join("\n")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A reason without its own full stop, to stand inside a sentence.
fn clause(why: &str) -> String {
    one_line(why).trim_end_matches('.').to_owned()
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= LONGEST_MEMORY {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST_MEMORY).collect();
    format!("{} …", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remember::Exchange;
    use crate::robot::Gesture;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse::<jiff::civil::DateTime>().unwrap().to_zoned(berlin()).unwrap().timestamp()
    }

    fn memory(text: &str, said_at: &str, just_said: bool) -> Remembered {
        let exchange = Exchange { heard: String::new(), said: String::new(), speaker: None, said_at: at(said_at) };
        Remembered { text: text.into(), exchange, score: None, just_said }
    }

    #[test]
    fn times_are_told_as_a_person_tells_them() {
        let now = at("2026-03-12T19:00");
        for (when, words) in [
            ("2026-03-12T08:05", "today at 08:05"),
            ("2026-03-12T00:00", "today at 00:00"),
            ("2026-03-11T23:59", "yesterday at 23:59"),
            ("2026-03-11T00:00", "yesterday at 00:00"),
            ("2026-03-10T09:00", "on Tuesday at 09:00"),
            ("2026-03-06T09:00", "on Friday at 09:00"),
            ("2026-03-05T09:00", "on 5 March 2026 at 09:00"),
            ("2025-12-31T09:00", "on 31 December 2025 at 09:00"),
        ] {
            assert_eq!(told(at(when), now, &berlin()), words);
        }
    }

    #[test]
    fn a_month_ago_is_not_told_as_a_weekday() {
        assert_eq!(told(at("2026-02-12T09:00"), at("2026-03-12T19:00"), &berlin()), "on 12 February 2026 at 09:00");
        assert_eq!(told(at("2024-03-12T09:00"), at("2026-03-12T19:00"), &berlin()), "on 12 March 2024 at 09:00");
    }

    #[test]
    fn the_night_of_a_clock_change_is_still_yesterday() {
        assert_eq!(told(at("2026-03-28T23:30"), at("2026-03-29T00:30"), &berlin()), "yesterday at 23:30");
        assert_eq!(told(at("2026-03-29T01:30"), at("2026-03-29T03:30"), &berlin()), "today at 01:30");
    }

    #[test]
    fn a_moment_ahead_of_the_clock_is_told_by_its_date() {
        assert_eq!(told(at("2026-03-13T09:00"), at("2026-03-12T19:00"), &berlin()), "on 13 March 2026 at 09:00");
    }

    #[test]
    fn a_memory_says_when_it_is_from_and_what_was_just_said_is_no_memory() {
        let found = Recalled::Found {
            memories: vec![
                memory("Anna said: my keys\nare in the bowl.", "2026-03-11T18:05", false),
                memory("Anna said: I am hungry.", "2026-03-12T18:59", true),
            ],
        };
        let text = ToolResult::Recalled(found).for_model(at("2026-03-12T19:00"), &berlin());
        assert!(text.contains("- yesterday at 18:05: Anna said: my keys are in the bowl."), "{text}");
        assert!(text.contains("- just said, still in this conversation: Anna said: I am hungry."), "{text}");
    }

    #[test]
    fn what_was_taught_is_known_and_not_remembered_and_what_was_said_keeps_its_time() {
        let fact = KnownFact { id: uuid::Uuid::nil(), text: "My memory is on\nmy own disk.".into(), score: 0.8 };
        let now = at("2026-03-12T19:00");
        let alone = Recalled::Facts { facts: vec![fact.clone()], besides: None };
        let text = ToolResult::Recalled(alone).for_model(now, &berlin());
        assert_eq!(text, "You know, because you were taught it, best match first:\n- My memory is on my own disk.");
        let said = Recalled::Found { memories: vec![memory("Anna said: buy a disk.", "2026-03-11T18:05", false)] };
        let both = Recalled::Facts { facts: vec![fact], besides: Some(Box::new(said)) };
        let text = ToolResult::Recalled(both).for_model(now, &berlin());
        assert!(
            text.starts_with("You know") && text.contains("- yesterday at 18:05: Anna said: buy a disk."),
            "{text}"
        );
    }

    #[test]
    fn found_nothing_and_could_not_look_never_read_alike() {
        let now = at("2026-03-12T19:00");
        let nothing =
            ToolResult::Recalled(Recalled::Nothing { searched: 12, best: Some(0.4) }).for_model(now, &berlin());
        assert_eq!(nothing, "You searched your memory and found nothing about this. Say so; do not make anything up.");
        let broken = ToolResult::CouldNotLook { why: "the disk is full.".into() }.for_model(now, &berlin());
        assert_eq!(
            broken,
            "Your memory could not be searched: the disk is full. Say that you cannot look right now; do not say \
             that it never happened."
        );
        let empty = ToolResult::Recalled(Recalled::Found { memories: Vec::new() }).for_model(now, &berlin());
        assert_eq!(empty, nothing);
    }

    fn known(last_seen_at: Option<&str>, is_here: bool, asks: bool) -> Known {
        Known {
            name: "Anna".into(),
            met_at: at("2026-03-01T10:00"),
            last_seen_at: last_seen_at.map(at),
            is_here,
            asks,
            exchanges: Vec::new(),
        }
    }

    #[test]
    fn a_person_is_told_with_when_you_met_and_when_you_last_saw_them() {
        let now = at("2026-03-12T19:00");
        let text = |known: Known| ToolResult::Recalled(Recalled::Person(known)).for_model(now, &berlin());
        assert_eq!(
            text(known(Some("2026-03-11T18:05"), true, true)),
            "The person talking to you is Anna. You first met them on 1 March 2026 at 10:00. They are in front of you \
             now; before this visit you last saw them yesterday at 18:05."
        );
        assert_eq!(
            text(known(Some("2026-03-12T08:05"), false, false)),
            "You know Anna. You first met them on 1 March 2026 at 10:00. You last saw them today at 08:05; they are not \
             here now."
        );
        let mut said = known(None, true, true);
        said.exchanges = vec![memory("Anna: I like tea.", "2026-03-11T18:05", false)];
        let text = text(said);
        assert!(
            text.contains("for the first time") && text.contains("- yesterday at 18:05: Anna: I like tea."),
            "{text}"
        );
    }

    #[test]
    fn never_met_nothing_happened_and_could_not_look_never_read_alike() {
        let now = at("2026-03-12T19:00");
        let text = |result: ToolResult| result.for_model(now, &berlin());
        let texts = [
            text(ToolResult::Recalled(Recalled::NeverMet { name: None })),
            text(ToolResult::Recalled(Recalled::NeverMet { name: Some("Bob".into()) })),
            text(ToolResult::Recalled(Recalled::Away(Away { since: None, frames: vec![], came: vec![], of: 0 }))),
            text(ToolResult::Recalled(Recalled::Nothing { searched: 3, best: None })),
            text(ToolResult::CouldNotLook { why: "I cannot see faces now".into() }),
        ];
        for (place, one) in texts.iter().enumerate() {
            assert!(texts.iter().skip(place + 1).all(|other| one != other), "{one}");
        }
        assert!(texts[0].contains("never met") && texts[1].contains("never met anybody called Bob"));
        assert!(texts[2].contains("nothing happened") && texts[2].contains("today"), "{}", texts[2]);
        assert!(texts[4].contains("cannot see faces now") && texts[4].contains("do not say that it never happened"));
    }

    #[test]
    fn a_time_away_is_told_with_who_came_and_when() {
        let frame = Frame {
            seen_at: at("2026-03-12T12:00"),
            looked: crate::robot::Direction::Ahead,
            labels: vec!["cat".into()],
            detections: Vec::new(),
            names: Vec::new(),
            people: 0,
            sentence: "I saw a cat.".into(),
            caption: None,
            jpeg: Vec::new(),
        };
        let away = Away {
            since: Some(at("2026-03-12T08:00")),
            frames: vec![SeenFrame { frame, score: None }],
            came: vec![("Bob".into(), at("2026-03-12T11:30"))],
            of: 7,
        };
        let text = ToolResult::Recalled(Recalled::Away(away)).for_model(at("2026-03-12T19:00"), &berlin());
        assert_eq!(
            text,
            "The person talking to you was away since today at 08:00.\nWho came:\n- Bob came today at 11:30\nWhat you \
             saw, newest first (1 of 7):\n- today at 12:00: I saw a cat."
        );
    }

    #[test]
    fn a_sample_says_that_it_is_one() {
        let sampled =
            Recalled::Sampled { memories: vec![memory("Anna said: hello.", "2026-03-12T08:05", false)], of: 9 };
        let text = ToolResult::Recalled(sampled).for_model(at("2026-03-12T19:00"), &berlin());
        assert!(text.contains("(1 of 9)") && text.contains("- today at 08:05: Anna said: hello."), "{text}");
    }

    #[test]
    fn a_very_long_memory_is_visibly_shortened() {
        let found = Recalled::Found { memories: vec![memory(&"word ".repeat(500), "2026-03-12T08:05", false)] };
        let text = ToolResult::Recalled(found).for_model(at("2026-03-12T19:00"), &berlin());
        assert!(text.len() < 450 && text.ends_with('…'), "{text}");
    }

    #[test]
    fn a_failed_move_or_look_is_told_as_a_failure() {
        let now = at("2026-03-12T19:00");
        let text = |result: ToolResult| result.for_model(now, &berlin());
        assert!(text(ToolResult::CouldNotMove { why: "the motors are off".into() }).contains("do not pretend"));
        assert!(text(ToolResult::CouldNotSee { why: "no camera".into() }).contains("do not guess"));
        assert_eq!(text(ToolResult::Moved { gesture: Gesture::LookLeft }), "You made the gesture look left.");
        assert!(text(ToolResult::Refused { why: "There is no tool x.".into() }).contains("not run"));
    }

    #[test]
    fn now_is_told_with_day_and_clock() {
        assert_eq!(told_now(at("2026-11-30T18:05"), &berlin()), "It is Monday, 30 November 2026, 18:05.");
    }
}
