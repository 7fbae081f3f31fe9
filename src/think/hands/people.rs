//! What `remember` answers about people: who somebody is, who was seen, and what happened while somebody was away.

use jiff::Timestamp;

use super::{Hands, Moment};
use crate::remember::people::Person;
use crate::remember::{Away, Frame, HowSeen, Known, Memory, Query, Recalled, Remembered, SeenFrame, TimeRange};
use crate::think::company::Company;
use crate::think::lines;
use crate::think::name::{Whom, about_whom};
use crate::think::tools::About;

/// Exchanges told of one person: a model of a few billion parameters takes in no more at once. Not measured.
const EXCHANGES: usize = 3;
/// Frames told of one person, the newest.
const FRAMES: usize = 4;

impl Hands {
    /// Who somebody is, where the question is about a person; `None` where it is not, and the memory has to answer.
    pub(super) async fn about_person(&self, query: &Query, moment: &Moment) -> Result<Option<Recalled>, String> {
        let company = match &self.company {
            Ok(company) => company,
            // What somebody said of themselves can be found without faces.
            Err(why) => return self.said_or(query, Err(format!("{}: {why}", lines::NO_FACES_NOW))).await.map(Some),
        };
        let known = company.people().list().await.map_err(|error| error.to_string())?;
        let names: Vec<String> = known.iter().map(|person| person.name.clone()).collect();
        let called = |name: &str| known.iter().find(|person| person.name == name);
        match about_whom(&query.text, &names).unwrap_or(Whom::Me) {
            Whom::Person(name) => match called(&name) {
                Some(person) => self.known(company, person, query, false).await.map(Some),
                None => Ok(Some(Recalled::NeverMet { name: Some(name) })),
            },
            Whom::Unknown(name) => self.said_or(query, Ok(Recalled::NeverMet { name: Some(name) })).await.map(Some),
            Whom::Everybody => Ok(None),
            Whom::Me => match moment.speaker.as_deref().and_then(called) {
                Some(person) => self.known(company, person, query, true).await.map(Some),
                None if company.stranger_speaks() => {
                    self.said_or(query, Ok(Recalled::NeverMet { name: None })).await.map(Some)
                }
                None => {
                    let why = "I am not sure whom I see, or nobody is in front of me";
                    self.said_or(query, Err(format!("{}: {why}", lines::NO_FACES_NOW))).await.map(Some)
                }
            },
        }
    }

    /// What was said about it where something was, else `otherwise`.
    async fn said_or(&self, query: &Query, otherwise: Result<Recalled, String>) -> Result<Recalled, String> {
        let memory = self.memory.as_ref().map_err(Clone::clone)?;
        let query = Query { about: About::Said, ..query.clone() };
        match memory.recall(query).await {
            Ok(found @ Recalled::Found { .. }) => Ok(found),
            Ok(_) => otherwise,
            Err(error) => Err(error.to_string()),
        }
    }

    async fn known(&self, company: &Company, person: &Person, query: &Query, asks: bool) -> Result<Recalled, String> {
        let is_here = asks || company.is_here(person.id);
        // While they are here, what counts is when they were seen before they came.
        let before = company.away_since(person.id);
        let last_seen_at = if is_here { before } else { Some(person.last_seen_at) };
        let exchanges = match &self.memory {
            Ok(memory) => self.theirs(memory, person, query).await?,
            // Their face is known all the same.
            Err(_) => Vec::new(),
        };
        Ok(Recalled::Person(Known {
            name: person.name.clone(),
            met_at: person.met_at,
            last_seen_at: last_seen_at.filter(|at| *at > person.met_at || !is_here),
            is_here,
            asks,
            exchanges,
        }))
    }

    /// What they said that has to do with the question, or lately.
    async fn theirs(&self, memory: &Memory, person: &Person, query: &Query) -> Result<Vec<Remembered>, String> {
        let query = Query { about: About::Said, ..query.clone() };
        let recalled = memory.recall(query).await.map_err(|error| error.to_string())?;
        let mut memories = match recalled {
            Recalled::Found { memories } | Recalled::Sampled { memories, .. } => memories,
            _ => Vec::new(),
        };
        memories.retain(|memory| memory.exchange.speaker.as_deref() == Some(person.name.as_str()));
        memories.sort_by_key(|memory| std::cmp::Reverse(memory.exchange.said_at));
        memories.truncate(EXCHANGES);
        Ok(memories)
    }

    /// The frames that show somebody by name, where a question about seeing asks for that; `None` where it does not.
    pub(super) async fn seen_person(&self, query: &Query) -> Result<Option<Recalled>, String> {
        let (Ok(company), Ok(memory)) = (&self.company, &self.memory) else { return Ok(None) };
        let known = company.people().list().await.map_err(|error| error.to_string())?;
        let names: Vec<String> = known.into_iter().map(|person| person.name).collect();
        let asked = match about_whom(&query.text, &names) {
            Some(Whom::Person(name)) => Some(name),
            Some(Whom::Everybody) => None,
            _ => return Ok(None),
        };
        let mut frames = memory.frames(query.when).await.map_err(|error| error.to_string())?;
        frames.retain(|frame| frame.seen_at < query.now);
        let searched = frames.len();
        let found = match &asked {
            Some(name) => {
                let mut found: Vec<Frame> =
                    frames.into_iter().rev().filter(|frame| frame.names.contains(name)).take(FRAMES).collect();
                found.dedup_by(|later, earlier| later.sentence == earlier.sentence);
                found
            }
            None => first_of_each(&frames).into_iter().map(|(_, frame)| frame).collect(),
        };
        if found.is_empty() {
            // Somebody without a name may be what was meant by everybody.
            let nothing = Recalled::Nothing { searched, best: None };
            return Ok(asked.is_some().then_some(nothing));
        }
        let frames = found.into_iter().map(|frame| SeenFrame { frame, score: None }).collect();
        Ok(Some(Recalled::Seen { frames, how: HowSeen::Named }))
    }

    /// Since when the one who asks was away; `None` where that is not known.
    pub(super) async fn away_since(&self, moment: &Moment) -> Option<Timestamp> {
        let company = self.company.as_ref().ok()?;
        let person = company.people().find(moment.speaker.as_deref()?).await.ok()??;
        company.away_since(person.id)
    }

    /// What was seen in the time that somebody was away, and who came.
    pub(super) async fn while_away(
        &self,
        query: Query,
        since: Option<Timestamp>,
        moment: &Moment,
    ) -> Result<Recalled, String> {
        let memory = self.memory.as_ref().map_err(Clone::clone)?;
        let when = query.when;
        let mut seen = self.seen(memory, Query { about: About::Seen, ..query.clone() }).await?;
        if seen.is_none() {
            // Nothing of the sort that was named; then what there was.
            seen = self.seen(memory, Query { about: About::Seen, text: String::new(), ..query }).await?;
        }
        let (frames, of) = seen.unwrap_or_default();
        let all = memory.frames(when).await.map_err(|error| error.to_string())?;
        let asks = moment.speaker.as_deref();
        let came = first_of_each(&all)
            .into_iter()
            .filter(|(name, _)| asks != Some(name.as_str()))
            .map(|(name, frame)| (name, frame.seen_at))
            .collect();
        Ok(Recalled::Away(Away { since, frames, came, of: of.max(all.len()) }))
    }

    async fn seen(&self, memory: &Memory, query: Query) -> Result<Option<(Vec<SeenFrame>, usize)>, String> {
        Ok(match memory.recall(query).await.map_err(|error| error.to_string())? {
            Recalled::Seen { frames, how: HowSeen::Sampled { of } } => Some((frames, of)),
            Recalled::Seen { frames, .. } => {
                let of = frames.len();
                Some((frames, of))
            }
            _ => None,
        })
    }
}

/// Each name with the first of these frames that shows it, oldest first.
fn first_of_each(frames: &[Frame]) -> Vec<(String, Frame)> {
    let mut first: Vec<(String, Frame)> = Vec::new();
    for frame in frames {
        for name in &frame.names {
            if first.iter().all(|(known, _)| known != name) {
                first.push((name.clone(), frame.clone()));
            }
        }
    }
    first
}

/// From `since` to now.
pub(super) fn range(since: Timestamp, now: Timestamp) -> TimeRange {
    TimeRange { from: since, to: now }
}
