//! Conversations in LoCoMo's format: samples, each with sessions of turns and questions about them.
//!
//! A sample has `conversation` (`session_N`: turns of `dia_id`, `speaker`, `text`; `session_N_date_time`) and `qa`
//! (`question`, `evidence`: the `dia_id`s that answer, `category` 1 to 5, of which 5 has no answer). A memory is two turns
//! that follow each other; it answers where it holds one of the evidence's turns. Files differ in details: what cannot be
//! used is left out, counted and said.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::remember::Exchange;
use crate::remember::calibrate::exchanges::{Searched, open, query};
use crate::remember::calibrate::{CalibrateError, Half};
use crate::remember::embed::EmbedText;

/// The format's categories, from 1.
const CATEGORIES: [&str; 5] = ["1 multi-hop", "2 temporal", "3 open-domain", "4 single-hop", "5 adversarial"];

/// One conversation with its questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub units: Vec<Exchange>,
    pub questions: Vec<Question>,
}

/// A question about a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub asks: String,
    /// From 1 to 5.
    pub category: usize,
    /// Places of the units that answer; none for an adversarial question.
    pub finds: Vec<usize>,
}

/// What of a file could not be used, each counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub samples_without_conversation: usize,
    pub turns_without_text: usize,
    pub dates_not_understood: usize,
    pub questions_without_text: usize,
    pub questions_without_category: usize,
    /// Answerable questions none of whose evidence is in the conversation.
    pub questions_without_evidence: usize,
    pub evidence_not_in_conversation: usize,
}

impl LeftOut {
    /// What two files together left out.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            samples_without_conversation: self.samples_without_conversation + other.samples_without_conversation,
            turns_without_text: self.turns_without_text + other.turns_without_text,
            dates_not_understood: self.dates_not_understood + other.dates_not_understood,
            questions_without_text: self.questions_without_text + other.questions_without_text,
            questions_without_category: self.questions_without_category + other.questions_without_category,
            questions_without_evidence: self.questions_without_evidence + other.questions_without_evidence,
            evidence_not_in_conversation: self.evidence_not_in_conversation + other.evidence_not_in_conversation,
        }
    }
}

/// Reads a file.
///
/// # Errors
/// [`CalibrateError::Questions`] when it is not JSON, or holds no sample.
pub fn parse(text: &str) -> Result<(Vec<Sample>, LeftOut), CalibrateError> {
    let value: Value = serde_json::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))?;
    let mut left_out = LeftOut::default();
    let all = match &value {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    };
    let samples: Vec<Sample> = all.into_iter().filter_map(|one| sample(one, &mut left_out)).collect();
    if samples.is_empty() {
        return Err(CalibrateError::Questions("there is no sample with a `conversation` in it".into()));
    }
    Ok((samples, left_out))
}

fn sample(value: &Value, left_out: &mut LeftOut) -> Option<Sample> {
    let Some(conversation) = value.get("conversation").and_then(Value::as_object) else {
        left_out.samples_without_conversation += 1;
        return None;
    };
    let numbered = |key: &String| key.strip_prefix("session_")?.parse::<i64>().ok();
    let mut sessions: Vec<i64> = conversation.keys().filter_map(numbered).collect();
    sessions.sort_unstable();
    let (mut units, mut places) = (Vec::new(), HashMap::new());
    for session in sessions {
        let turns = conversation.get(&format!("session_{session}")).and_then(Value::as_array);
        let date = conversation.get(&format!("session_{session}_date_time")).and_then(Value::as_str);
        let began = date.and_then(moment).unwrap_or_else(|| {
            left_out.dates_not_understood += 1;
            // In order all the same: a day for each session.
            Timestamp::UNIX_EPOCH
                .saturating_add(SignedDuration::from_hours(session.saturating_mul(24)))
                .unwrap_or_default()
        });
        let turns: Vec<Turn> = turns.into_iter().flatten().filter_map(|turn| Turn::read(turn, left_out)).collect();
        for (pair, minute) in turns.chunks(2).zip(0..) {
            for turn in pair {
                places.insert(turn.id.clone(), units.len());
            }
            let said_at = began.saturating_add(SignedDuration::from_mins(minute)).unwrap_or(began);
            units.extend(unit(pair, said_at));
        }
    }
    let questions = value.get("qa").and_then(Value::as_array).into_iter().flatten();
    let questions = questions.filter_map(|one| question(one, &places, left_out)).collect();
    Some(Sample { units, questions })
}

struct Turn {
    id: String,
    speaker: String,
    text: String,
}

impl Turn {
    fn read(value: &Value, left_out: &mut LeftOut) -> Option<Self> {
        let part = |key: &str| value.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default().to_owned();
        let turn = Self { id: part("dia_id"), speaker: part("speaker"), text: part("text") };
        if turn.text.is_empty() {
            left_out.turns_without_text += 1;
            return None;
        }
        Some(turn)
    }
}

/// Two turns as one memory; the second speaker is named too, because here both are people.
fn unit(pair: &[Turn], said_at: Timestamp) -> Option<Exchange> {
    let first = pair.first()?;
    let said = pair.get(1).map(|turn| format!("{}: {}", turn.speaker, turn.text)).unwrap_or_default();
    let speaker = Some(first.speaker.clone()).filter(|name| !name.is_empty());
    Some(Exchange { heard: first.text.clone(), said, speaker, said_at })
}

fn question(value: &Value, places: &HashMap<String, usize>, left_out: &mut LeftOut) -> Option<Question> {
    let asks = value.get("question").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if asks.is_empty() {
        left_out.questions_without_text += 1;
        return None;
    }
    let category = match value.get("category") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let category = category.and_then(|category| usize::try_from(category).ok());
    let Some(category) = category.filter(|category| (1..=CATEGORIES.len()).contains(category)) else {
        left_out.questions_without_category += 1;
        return None;
    };
    let mut finds = Vec::new();
    if category < CATEGORIES.len() {
        for id in evidence(value.get("evidence")) {
            match places.get(&id) {
                Some(place) if finds.contains(place) => {}
                Some(place) => finds.push(*place),
                None => left_out.evidence_not_in_conversation += 1,
            }
        }
        if finds.is_empty() {
            left_out.questions_without_evidence += 1;
            return None;
        }
    }
    Some(Question { asks: asks.to_owned(), category, finds })
}

/// The ids of the evidence: a list of them, several in one string, or one string of several.
fn evidence(value: Option<&Value>) -> Vec<String> {
    let texts: Vec<&str> = match value {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => Vec::new(),
    };
    let apart = |letter: char| letter == ';' || letter == ',' || letter.is_whitespace();
    texts.iter().flat_map(|text| text.split(apart)).filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

/// "1:56 pm on 8 May, 2023", taken as UTC.
fn moment(text: &str) -> Option<Timestamp> {
    let civil = DateTime::strptime("%I:%M %p on %d %B, %Y", text.trim()).ok()?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Puts each conversation into a memory of its own and asks it its questions.
///
/// # Errors
/// [`CalibrateError`].
pub async fn search(samples: &[Sample], embedder: Arc<dyn EmbedText>) -> Result<Vec<Searched>, CalibrateError> {
    let mut all = Vec::new();
    for sample in samples {
        let folder = tempfile::tempdir()?;
        let memory = open(folder.path(), Arc::clone(&embedder)).await?;
        memory.store(sample.units.clone()).await?;
        for question in &sample.questions {
            let began = Instant::now();
            let candidates = memory.candidates(query(&question.asks)).await?;
            let took_ms = began.elapsed().as_secs_f64() * 1000.0;
            let category = (!question.finds.is_empty()).then(|| CATEGORIES[question.category - 1].to_owned());
            let finds = question.finds.iter().filter_map(|place| sample.units.get(*place).cloned()).collect();
            all.push(Searched { asks: question.asks.clone(), category, half: Half::Held, candidates, finds, took_ms });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_turns_are_a_unit_and_evidence_names_it() {
        let text = r#"[{"conversation": {"session_2": [{"dia_id": "D2:1", "speaker": "Bo", "text": "Later."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"dia_id": "D1:1", "speaker": "Al", "text": "Hi."}, {"dia_id": "D1:2", "speaker": "Bo", "text": "Hello."},
                          {"dia_id": "D1:3", "speaker": "Al", "text": "Bye."}],
            "session_1_date_time": "9:05 am on 7 May, 2023"},
            "qa": [{"question": "Who?", "answer": "Bo", "evidence": ["D1:2", "D2:1"], "category": 1},
                   {"question": "What?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5}]}]"#;
        let (samples, left_out) = parse(text).unwrap();
        assert_eq!(left_out, LeftOut::default());
        let lines: Vec<String> = samples[0].units.iter().map(Exchange::line).collect();
        assert_eq!(lines, ["Al: Hi. Reachy: Bo: Hello.", "Al: Bye.", "Bo: Later."]);
        let finds: Vec<_> = samples[0].questions.iter().map(|question| question.finds.clone()).collect();
        assert_eq!(finds, [vec![0, 2], vec![]]);
        assert_eq!(samples[0].units[2].said_at.to_string(), "2023-05-08T13:56:00Z");
    }

    #[test]
    fn what_cannot_be_used_is_counted_and_the_rest_is_asked() {
        let text = r#"[{"qa": []}, {"conversation": {"session_1": [{"dia_id": "D1:1", "text": "A."}, {"dia_id": "D1:2"}, 7,
            {"dia_id": "D1:3", "speaker": "Al", "text": "C."}], "session_1_date_time": "some day", "session_x": [], "speaker_a": "Al"},
            "qa": [{"question": "One?", "evidence": "D1:3; D7:4", "category": 4}, {"question": "Two?", "category": 2},
                   {"question": "", "category": 2}, {"question": "Three?", "category": 9}, {"question": "Four?", "category": "5"}]}]"#;
        let (samples, left_out) = parse(text).unwrap();
        let asked: Vec<_> = samples[0].questions.iter().map(|question| question.asks.as_str()).collect();
        assert_eq!(asked, ["One?", "Four?"]);
        let wanted = LeftOut {
            samples_without_conversation: 1,
            turns_without_text: 2,
            dates_not_understood: 1,
            questions_without_text: 1,
            questions_without_category: 1,
            questions_without_evidence: 1,
            evidence_not_in_conversation: 1,
        };
        assert_eq!(left_out, wanted);
        assert!(parse("{}").is_err() && parse("no JSON").is_err());
    }
}
