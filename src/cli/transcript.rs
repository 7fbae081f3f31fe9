//! What happens, as a transcript that a person enjoys reading: who said what, which tool was called, which memories
//! answered with their scores, and how long each step took.

use std::sync::Arc;
use std::time::Duration;

use console::{Style, style};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::clock::Clock;
use crate::daemon::{Diary, Event};
use crate::remember::{HowSeen, KnownFact, Recalled, Remembered, SeenFrame};
use crate::think::conversation::Moved;
use crate::think::told;
use crate::think::tools::{Tool, ToolResult};
use crate::think::turn::Step;

/// Prints every event to standard output.
pub fn to_terminal(clock: Clock) -> Diary {
    Arc::new(move |event| {
        for line in lines(event, clock.now(), clock.zone()) {
            println!("{line}");
        }
    })
}

/// The lines of one event.
fn lines(event: &Event, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    match event {
        Event::Note { what } => vec![aside("note", what)],
        Event::Ready { after } => vec![aside("ready", &format!("after {}", seconds(*after))), String::new()],
        Event::TakenUp(moved) if moved.stored > 0 => vec![aside(
            "memory",
            &format!("{} were still in the journal and are in the memory now", exchanges(moved.stored)),
        )],
        Event::TakenUp(moved) | Event::Ended(moved) if moved.kept_because.is_some() => not_stored(moved),
        Event::TakenUp(_) => Vec::new(),
        Event::Heard { heard, seconds: length, .. } => {
            let how = format!(
                "{length:.1} s of speech, heard in {:.2} s, {:.0} % sure",
                heard.transcribed_in_ms as f64 / 1000.0,
                heard.confidence * 100.0
            );
            vec![spoken("You", &Style::new().cyan().bold(), &heard.text, &time(heard.started_at, zone), &how)]
        }
        Event::Greeted { line, .. } | Event::AskedName { line } => {
            vec![spoken("Reachy", &Style::new().green().bold(), line, "     ", "of its own accord")]
        }
        Event::Met { name, line } => vec![
            aside("met", &format!("{name}; what they said so far is theirs")),
            spoken("Reachy", &Style::new().green().bold(), line, "     ", "of its own accord"),
        ],
        Event::Interrupted => vec![aside("interrupted", "somebody spoke over the robot; it fell silent")],
        Event::NotHeard { why } => vec![aside("not heard", why)],
        Event::Saw { sentence, at, stand_in, stored } => {
            let stored = match stored {
                Ok(()) => String::new(),
                Err(why) => format!(" (not stored: {why})"),
            };
            let who = if *stand_in { "annotations stand in for the detector" } else { "kept as a picture" };
            let words = format!("{sentence}{stored}");
            vec![format!("{:>5}  {} {words}  {}", time(*at, zone), style("saw    ").magenta(), style(who).dim())]
        }
        Event::Step(step) => step_lines(step, now, zone),
        Event::TurnEnded { report, took, .. } => {
            let mut lines = Vec::new();
            if report.moved.left_window > 0 {
                let stored = exchanges(report.moved.stored);
                lines.push(aside("memory", &format!("the window is full: its oldest half moves out, {stored} stored")));
            }
            lines.extend(not_stored(&report.moved));
            lines.push(aside("", &format!("turn {}", seconds(*took))));
            lines.push(String::new());
            lines
        }
        Event::Trouble { what } => vec![trouble(what)],
        Event::Ended(moved) => {
            vec![aside("memory", &format!("good night: {} from the window stored", exchanges(moved.stored)))]
        }
    }
}

/// The lines of one step of a turn.
pub fn step_lines(step: &Step, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    match step {
        Step::Asked { .. } => Vec::new(),
        Step::Called { tool } => vec![aside("tool", &call(tool))],
        Step::Answered { result, took, .. } => result_lines(result, *took, now, zone),
        Step::Saying { sentence, after } => {
            let how = format!("after {}", seconds(*after));
            vec![spoken("Reachy", &Style::new().green().bold(), sentence, "", &how)]
        }
        Step::Trouble { what } => vec![trouble(what)],
    }
}

fn call(tool: &Tool) -> String {
    match tool {
        Tool::Remember(arguments) => {
            let about = format!("{:?}", arguments.about).to_lowercase();
            let when = arguments.when.as_deref().map(|when| format!(", when: “{when}”")).unwrap_or_default();
            format!("remember(“{}”, about: {about}{when})", arguments.query)
        }
        Tool::Camera { direction } => format!("camera({})", format!("{direction:?}").to_lowercase()),
        Tool::Move { gesture } => format!("move({})", gesture.name()),
    }
}

fn result_lines(result: &ToolResult, took: Duration, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let headline = |words: &str| vec![aside("", &format!("→ {words}, {}", millis(took)))];
    match result {
        ToolResult::Recalled(Recalled::Found { memories }) => with_memories(
            headline(&format!("{} found", counted(memories.len(), "memory", "memories"))),
            memories,
            now,
            zone,
        ),
        ToolResult::Recalled(Recalled::Sampled { memories, of }) => with_memories(
            headline(&format!("nothing named; {} of {of} from that time", memories.len())),
            memories,
            now,
            zone,
        ),
        ToolResult::Recalled(Recalled::Person(known)) => {
            with_memories(headline(&format!("{} is known", known.name)), &known.exchanges, now, zone)
        }
        ToolResult::Recalled(Recalled::NeverMet { name }) => {
            headline(&format!("never met {}", name.as_deref().unwrap_or("the one who asks")))
        }
        ToolResult::Recalled(Recalled::Away(away)) => {
            let since = away.since.map_or_else(|| "today".into(), |since| told::told(since, now, zone));
            let mut lines = headline(&format!("away since {since}: {} of {} pictures", away.frames.len(), away.of));
            lines.extend(
                away.came.iter().map(|(name, at)| aside("", &format!("   {name}, {}", told::told(*at, now, zone)))),
            );
            lines.extend(frames_lines(&away.frames, now, zone));
            lines
        }
        ToolResult::Recalled(Recalled::Seen { frames, how }) => {
            let how = match how {
                HowSeen::Named => format!("{} found", counted(frames.len(), "picture", "pictures")),
                HowSeen::Sampled { of } => format!("nothing named; {} different scenes of {of} pictures", frames.len()),
                HowSeen::LastLook => "the last look that way".into(),
            };
            let mut lines = headline(&how);
            lines.extend(frames_lines(frames, now, zone));
            lines
        }
        ToolResult::Recalled(Recalled::Facts { facts, besides }) => {
            let mut lines = headline(&format!("{} known", counted(facts.len(), "fact", "facts")));
            let fact = |fact: &KnownFact| format!("   {} {}", style(format!("{:.2}", fact.score)).yellow(), fact.text);
            lines.extend(facts.iter().map(|known| aside("", &fact(known))));
            let besides = besides.iter().map(|besides| ToolResult::Recalled(besides.as_ref().clone()));
            lines.extend(besides.flat_map(|besides| result_lines(&besides, took, now, zone)));
            lines
        }
        ToolResult::Recalled(Recalled::Nothing { searched, best }) => {
            let best = best.map(|best| format!(" (nearest {best:.2}, under the gate)")).unwrap_or_default();
            headline(&format!("nothing found among {searched}{best}"))
        }
        ToolResult::CouldNotLook { why } => headline(&format!("could not look: {why}")),
        ToolResult::Seen { sentence } => headline(sentence),
        ToolResult::CouldNotSee { why } => headline(&format!("could not see: {why}")),
        ToolResult::Moved { gesture } => headline(&format!("moved: {}", gesture.name())),
        ToolResult::CouldNotMove { why } => headline(&format!("could not move: {why}")),
        ToolResult::Refused { why } => headline(&format!("refused: {why}")),
    }
}

fn frames_lines(frames: &[SeenFrame], now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let line = |SeenFrame { frame, score }: &SeenFrame| {
        let score = score.map_or_else(|| "    ".into(), |score| format!("{score:.2}"));
        let when = told::told(frame.seen_at, now, zone);
        aside("", &format!("   {} {}  {}", style(score).yellow(), style(when).italic(), frame.words()))
    };
    frames.iter().map(line).collect()
}

fn with_memories(mut lines: Vec<String>, memories: &[Remembered], now: Timestamp, zone: &TimeZone) -> Vec<String> {
    lines.extend(memories.iter().map(|memory| {
        let score = memory.score.map_or_else(|| "    ".into(), |score| format!("{score:.2}"));
        let when = if memory.just_said { "just said".into() } else { told::told(memory.exchange.said_at, now, zone) };
        aside("", &format!("   {} {}  {}", style(score).yellow(), style(when).italic(), memory.text))
    }));
    lines
}

fn not_stored(moved: &Moved) -> Vec<String> {
    moved.kept_because.iter().map(|why| trouble(&format!("not stored, kept for the next try: {why}"))).collect()
}

fn spoken(who: &str, colour: &Style, words: &str, at: &str, how: &str) -> String {
    format!("{at:>5}  {} {}  {}", colour.apply_to(format!("{who:<7}")), style(words).bold(), style(how).dim())
}

fn aside(what: &str, words: &str) -> String {
    format!("       {} {}", style(format!("{what:<7}")).dim(), style(words).dim())
}

fn trouble(what: &str) -> String {
    format!("       {} {what}", style("trouble").red())
}

fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M").to_string()
}

fn exchanges(count: usize) -> String {
    counted(count, "exchange", "exchanges")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn seconds(took: Duration) -> String {
    format!("{:.2} s", took.as_secs_f64())
}

fn millis(took: Duration) -> String {
    format!("{:.0} ms", took.as_secs_f64() * 1000.0)
}
