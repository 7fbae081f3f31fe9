//! Answers about a person and about a time away.

use super::{Asked, HowSeen, capitalised, closed, frames_told, tell, told_time};
use crate::remember::{Away, Known};

/// Things that somebody said, told in an answer about them.
const TOLD_OF_A_PERSON: usize = 2;
/// People who came, told in an answer about a time away.
const TOLD_WHO_CAME: usize = 5;

/// Who somebody is, when we met, and when I last saw them.
pub(super) fn known(known: &Known, asked: &Asked<'_>) -> String {
    let met = told_time(known.met_at, asked.now);
    let mut sentences = if known.asks {
        vec![format!("You are {}.", known.name), format!("We first met {met}.")]
    } else {
        vec![format!("I know {}; we first met {met}.", known.name)]
    };
    let seen = known.last_seen_at.map(|at| told_time(at, asked.now));
    let (who, them) = if known.asks { ("you", "you") } else { (known.name.as_str(), "them") };
    match (seen, known.is_here) {
        (Some(at), true) => sentences.push(format!("Before now I last saw {who} {at}.")),
        (Some(at), false) => sentences.push(format!("I last saw {who} {at}.")),
        (None, true) => sentences.push(format!("This is the first time that I see {them}.")),
        (None, false) => sentences.push(format!("I have not seen {who} since.")),
    }
    if !known.asks && known.is_here {
        sentences.push(format!("{} is here now.", known.name));
    }
    sentences.extend(known.exchanges.iter().take(TOLD_OF_A_PERSON).map(|memory| tell(memory, asked)));
    sentences.join(" ")
}

/// That there is nobody of that name, or that the one who asks is not known.
pub(super) fn never_met(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("I have never met anybody called {name}."),
        None => "I see your face, and we have never met before.".to_owned(),
    }
}

/// Who came and what was seen while somebody was away, each with when.
pub(super) fn away(away: &Away, asked: &Asked<'_>) -> String {
    let opening = match away.since {
        Some(since) => format!("I last saw you {}.", told_time(since, asked.now)),
        None => "I do not know since when you were away, so I tell you of today.".to_owned(),
    };
    if away.frames.is_empty() && away.came.is_empty() {
        let time = if away.since.is_some() { "since then" } else { "today" };
        return format!("{opening} I saw nothing happen {time}.");
    }
    let mut sentences = vec![opening];
    let came = away.came.iter().take(TOLD_WHO_CAME);
    sentences.extend(came.map(|(name, at)| capitalised(&format!("{} {name} came.", told_time(*at, asked.now)))));
    match away.came.len().saturating_sub(TOLD_WHO_CAME) {
        0 => {}
        1 => sentences.push("One more person came.".to_owned()),
        more => sentences.push(format!("{more} more people came.")),
    }
    if !away.frames.is_empty() {
        let of = away.of.max(away.frames.len());
        sentences.push(closed(&frames_told(&away.frames, HowSeen::Sampled { of }, asked)));
    }
    sentences.join(" ")
}
