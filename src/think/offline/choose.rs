//! Which tool a sentence needs: the kind of the nearest examples, corrected by what the words give away.
//!
//! Pure: the sentence's likeness to every example is handed in.

use serde::Deserialize;

use super::form::{Form, Sentence};
use crate::robot::{Direction, Gesture};
use crate::think::tools::About;

/// What an example stands for; the tables of `examples.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Seen,
    Said,
    Any,
    Me,
    Taught,
    Camera,
    Move,
    None,
}

impl Kind {
    pub(super) const ALL: [Self; 8] =
        [Self::Seen, Self::Said, Self::Any, Self::Me, Self::Taught, Self::Camera, Self::Move, Self::None];
}

/// What follows from a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Remember(About),
    Camera(Direction),
    Move(Gesture),
    /// No tool.
    Words,
}

/// How many of a kind's nearest examples are averaged. On the first 108 tuning questions 2, 3 and 4 came out alike (0.86
/// without the rules), 1 and 5 lower (0.84).
const NEAREST: usize = 3;

/// A kind whose nearest examples are less alike than this is no answer (cosine). On the tuning questions 0.25 and 0.30
/// came out alike (190 of 193).
const LEAST_ALIKE: f32 = 0.30;

/// Likeness of a sentence to each kind of example.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Likeness([f32; Kind::ALL.len()]);

impl Likeness {
    /// From the cosine to every example; `kinds` names theirs, in the same order.
    pub(super) fn of(cosines: &[f32], kinds: &[Kind]) -> Self {
        Self(Kind::ALL.map(|kind| {
            let mut own: Vec<f32> =
                cosines.iter().zip(kinds).filter(|(_, of)| **of == kind).map(|(cosine, _)| *cosine).collect();
            own.sort_by(|left, right| right.total_cmp(left));
            own.truncate(NEAREST);
            if own.is_empty() { -1.0 } else { own.iter().sum::<f32>() / own.len() as f32 }
        }))
    }

    fn to(&self, kind: Kind) -> f32 {
        Kind::ALL.iter().zip(self.0).find(|(known, _)| **known == kind).map_or(-1.0, |(_, likeness)| likeness)
    }

    /// The nearest kind for which `allowed` holds.
    pub(super) fn nearest(&self, allowed: impl Fn(Kind) -> bool) -> Kind {
        Kind::ALL
            .into_iter()
            .filter(|kind| allowed(*kind))
            .max_by(|left, right| self.to(*left).total_cmp(&self.to(*right)))
            .unwrap_or(Kind::None)
    }
}

/// The nearest kind alone, without the rules; what the rules are measured against.
#[cfg(test)]
pub(super) fn nearest_alone(sentence: &Sentence, likeness: &Likeness) -> Choice {
    finish(likeness.nearest(|_| true), sentence)
}

/// What follows from `sentence`; `past_time` says that it names a time of the past.
pub(super) fn choose(sentence: &Sentence, likeness: &Likeness, past_time: bool) -> Choice {
    if let Some(gesture) = sentence.gesture() {
        return Choice::Move(gesture);
    }
    if sentence.form() == Form::Tells || is_clock_question(sentence) {
        return Choice::Words;
    }
    finish(corrected(sentence, likeness, past_time), sentence)
}

fn finish(kind: Kind, sentence: &Sentence) -> Choice {
    match kind {
        Kind::Seen => Choice::Remember(About::Seen),
        Kind::Said => Choice::Remember(About::Said),
        Kind::Any => Choice::Remember(About::Any),
        Kind::Me => Choice::Remember(About::Me),
        Kind::Taught => Choice::Remember(About::Taught),
        Kind::Camera => Choice::Camera(sentence.direction().unwrap_or_default()),
        Kind::Move => Choice::Move(sentence.gesture().unwrap_or(UNNAMED_GESTURE)),
        Kind::None => Choice::Words,
    }
}

/// For "Move your antennas" and the like, which name no gesture.
const UNNAMED_GESTURE: Gesture = Gesture::Curious;

/// "What time is it?" is answered from the clock.
pub(super) fn is_clock_question(sentence: &Sentence) -> bool {
    sentence.begins(&[
        "what time is it",
        "whats the time",
        "what is the time",
        "what day is it",
        "what date is it",
        "whats the date",
        "what is the date",
        "what day is today",
        "which day is it",
        "which day is today",
        "what is today",
        "can you tell me the time",
        "do you know what time it is",
        "do you know the time",
        "tell me the time",
        "how late is it",
    ])
}

fn corrected(sentence: &Sentence, likeness: &Likeness, past_time: bool) -> Kind {
    let past = sentence.past() || past_time;
    if sentence.beyond() && !(past && (sentence.sight() || sentence.speech())) {
        return Kind::None;
    }
    if sentence.glance() && !past {
        return Kind::Camera;
    }
    if sentence.says(&[
        "seen me before",
        "see me before",
        "met before",
        "met me",
        "last see me",
        "last saw me",
        "did we meet",
        "did we first meet",
        "have we met",
        "we first met",
    ]) {
        return Kind::Me;
    }
    if sentence.about_itself() {
        return Kind::Taught;
    }
    by_tense(sentence, likeness, past, past_time)
}

/// The nearest kind that the words allow, with eyes and ears sorted into then and now.
fn by_tense(sentence: &Sentence, likeness: &Likeness, past: bool, past_time: bool) -> Kind {
    let speaker =
        sentence.has(&["i", "me", "im", "each", "talking", "speaking"]) || sentence.says(&["my name", "my face"]);
    let movable = sentence.has(&["move", "trick", "antennas", "emotion", "emotions", "gesture"]);
    let looking = sentence.sight() || sentence.now();
    let nearest = likeness.nearest(|kind| match kind {
        Kind::Me => speaker,
        Kind::Move => movable,
        Kind::Seen => past || looking,
        _ => true,
    });
    if sentence.now() && matches!(nearest, Kind::Seen | Kind::Camera) {
        return Kind::Camera;
    }
    if nearest == Kind::Me {
        return Kind::Me;
    }
    if past && (sentence.sight() || sentence.visit()) && (!sentence.speech() || sentence.begins(&["tell me"])) {
        return Kind::Seen;
    }
    if past && sentence.speech() && !sentence.sight() && nearest != Kind::Taught {
        return Kind::Said;
    }
    match nearest {
        Kind::Camera if past => Kind::Seen,
        Kind::Seen if !past => Kind::Camera,
        Kind::None if past_time || sentence.personal() || sentence.names_somebody() => Kind::Any,
        kind if likeness.to(kind) < LEAST_ALIKE && sentence.names_somebody() => Kind::Any,
        kind if likeness.to(kind) < LEAST_ALIKE && !sentence.personal() => Kind::None,
        kind => kind,
    }
}
