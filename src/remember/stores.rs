//! Choosing among stores: what the robot was taught, and what was said and seen.
//!
//! Each store has its own gate and its own scale, so scores of two stores are not compared; how far each is over its
//! gate is. Pure: the searches were made before.

use super::{HowSeen, KnownFact, Recalled, TimeRange};
use crate::robot::Direction;

/// Two answers this near in how far they are over their gates (0 at the gate, 1 at a perfect match) are both told.
/// Not measured.
const AS_GOOD_AS: f32 = 0.2;

/// Whether facts can answer at all: they have no time and no direction.
#[must_use]
pub fn facts_may_answer(when: Option<TimeRange>, direction: Option<Direction>) -> bool {
    when.is_none() && direction.is_none()
}

/// The gates that the two answers passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gates {
    pub fact: f32,
    pub exchange: f32,
}

/// What is told of a question that was asked of every store.
///
/// `facts` passed their gate, best first; `memory` is what the memory answered. A fact goes before a sample of a day,
/// because the question named something after all; a picture that shows what was named is always told; of facts and
/// exchanges the one that is clearly farther over its gate is told, and else both, the facts first.
#[must_use]
pub fn choose(facts: Vec<KnownFact>, memory: Recalled, gates: Gates) -> Recalled {
    let Some(fact) = facts.first().map(|fact| over(fact.score, gates.fact)) else { return memory };
    let both = |facts, memory| Recalled::Facts { facts, besides: Some(Box::new(memory)) };
    match &memory {
        Recalled::Found { memories } => {
            let best = memories.iter().filter_map(|memory| memory.score).reduce(f32::max);
            let lead = fact - best.map_or(0.0, |best| over(best, gates.exchange));
            if lead > AS_GOOD_AS {
                Recalled::Facts { facts, besides: None }
            } else if lead < -AS_GOOD_AS {
                memory
            } else {
                both(facts, memory)
            }
        }
        Recalled::Seen { how: HowSeen::Named, .. } => both(facts, memory),
        Recalled::Sampled { .. } | Recalled::Seen { .. } | Recalled::Nothing { .. } => {
            Recalled::Facts { facts, besides: None }
        }
        // The memory answers with none of these.
        Recalled::Facts { .. } | Recalled::Person(_) | Recalled::NeverMet { .. } | Recalled::Away(_) => memory,
    }
}

/// How far a score is over its gate, 1 for a perfect match.
fn over(score: f32, gate: f32) -> f32 {
    (score - gate) / (1.0 - gate).max(f32::EPSILON)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::remember::{Exchange, Remembered};

    const GATES: Gates = Gates { fact: 0.6, exchange: 0.4 };

    fn facts(score: f32) -> Vec<KnownFact> {
        vec![KnownFact { id: Uuid::nil(), text: "My memory is on my own disk.".into(), score }]
    }

    fn said(score: f32) -> Recalled {
        let said_at = Timestamp::UNIX_EPOCH;
        let exchange = Exchange { heard: "The key is in the box.".into(), said: String::new(), speaker: None, said_at };
        let memory = Remembered { text: exchange.line(), exchange, score: Some(score), just_said: false };
        Recalled::Found { memories: vec![memory] }
    }

    fn seen(how: HowSeen) -> Recalled {
        Recalled::Seen { frames: Vec::new(), how }
    }

    #[test]
    fn what_only_one_store_holds_is_told_alone() {
        let nothing = Recalled::Nothing { searched: 3, best: None };
        assert_eq!(choose(Vec::new(), said(0.5), GATES), said(0.5));
        assert_eq!(choose(Vec::new(), nothing.clone(), GATES), nothing);
        assert_eq!(choose(facts(0.7), nothing, GATES), Recalled::Facts { facts: facts(0.7), besides: None });
    }

    #[test]
    fn the_one_that_is_clearly_farther_over_its_own_gate_is_told() {
        assert_eq!(choose(facts(0.62), said(0.9), GATES), said(0.9));
        assert_eq!(choose(facts(0.95), said(0.42), GATES), Recalled::Facts { facts: facts(0.95), besides: None });
    }

    #[test]
    fn two_that_are_as_good_are_told_both_the_taught_first() {
        // 0.7 is a quarter over the gate of facts, 0.55 a quarter over that of exchanges.
        let both = Recalled::Facts { facts: facts(0.7), besides: Some(Box::new(said(0.55))) };
        assert_eq!(choose(facts(0.7), said(0.55), GATES), both);
    }

    #[test]
    fn a_fact_goes_before_a_sample_of_the_day_and_beside_a_picture_of_what_was_named() {
        let alone = Recalled::Facts { facts: facts(0.7), besides: None };
        assert_eq!(choose(facts(0.7), Recalled::Sampled { memories: Vec::new(), of: 4 }, GATES), alone);
        assert_eq!(choose(facts(0.7), seen(HowSeen::Sampled { of: 4 }), GATES), alone);
        let both = Recalled::Facts { facts: facts(0.7), besides: Some(Box::new(seen(HowSeen::Named))) };
        assert_eq!(choose(facts(0.7), seen(HowSeen::Named), GATES), both);
    }

    #[test]
    fn a_question_about_a_time_or_a_side_is_not_for_facts() {
        let range = TimeRange { from: Timestamp::UNIX_EPOCH, to: Timestamp::UNIX_EPOCH };
        assert!(facts_may_answer(None, None));
        assert!(!facts_may_answer(Some(range), None));
        assert!(!facts_may_answer(None, Some(Direction::Left)));
    }
}
