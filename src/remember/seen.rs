//! What counts as an answer to a question about seeing: pure decisions over scores, labels, times and pictures.
//!
//! Words find things, pictures find days. A question that names a thing goes to the sentences of the frames: one
//! counts if it passes the gate and beats a blank frame ("I saw something"), because every sentence begins alike. A
//! question that names nothing is answered by a sample of its time: frames that are as different as possible.

use std::cmp::Reverse;

use super::Frame;
use super::embed::cosine;
use super::recall::best_first;

/// The blank competitor's sentence.
pub const BLANK: &str = "I saw something.";
/// The most frames that a sample shows; four pictures are what a small model keeps apart.
pub const SAMPLE: usize = 4;
/// A frame that nobody spoke of holds only the detector's words. A question that names none of them must be so much
/// nearer to be about it after all, by another word for it. Measured with MiniLM: a dragon to "I saw a cat." 0.51, right
/// ones by other words over 0.60.
const NOBODY_SPOKE_OF_IT: f32 = 0.1;
/// Without picture vectors: how much of the likeness of two frames is their labels; the rest is where the head looked.
const LABELS_WEIGH: f32 = 0.8;

/// A frame with its cosine to the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub frame: Frame,
    pub score: f32,
}

/// Keeps the frames that answer a question which names something, best first, at most `limit`.
///
/// `named` are the labels of the detector's vocabulary that the question names: a frame that shows one of them answers
/// whatever its score, and no other frame does. Where it names none, a frame counts from `gate` on (and a little more
/// where nobody spoke of it) and over `blank`.
#[must_use]
pub fn decide(mut candidates: Vec<Candidate>, named: &[String], gate: f32, blank: f32, limit: usize) -> Vec<Candidate> {
    let shows = |frame: &Frame| frame.labels.iter().any(|label| named.contains(label));
    if named.is_empty() {
        let needed = |frame: &Frame| if frame.caption.is_some() { gate } else { gate + NOBODY_SPOKE_OF_IT };
        candidates.retain(|candidate| candidate.score >= needed(&candidate.frame) && candidate.score > blank);
    } else {
        candidates.retain(|candidate| shows(&candidate.frame));
        // All of them show it: those that show more of what was named come first, then the likeness.
        let count = |frame: &Frame| named.iter().filter(|label| frame.labels.contains(label)).count();
        let most = candidates.iter().map(|candidate| count(&candidate.frame)).max().unwrap_or(0);
        candidates.retain(|candidate| count(&candidate.frame) == most);
    }
    best_first(&mut candidates, |candidate| candidate.score, |candidate| candidate.frame.seen_at);
    candidates.truncate(limit);
    candidates
}

/// A frame that a sample may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    pub frame: Frame,
    /// The unit vector of its picture, where it has one.
    pub image: Option<Vec<f32>>,
    /// Cosine of the picture to the question, where both have vectors.
    pub nearness: Option<f32>,
}

/// At most `limit` frames that are as different as possible, newest first: the one nearest to the question by its
/// picture (else the newest) first, then always the one least like those chosen already (farthest-point selection).
/// Frames as like as `near_duplicate` to a chosen one are left out.
#[must_use]
pub fn sample(mut picks: Vec<Pick>, near_duplicate: f32, limit: usize) -> Vec<Frame> {
    picks.sort_by_key(|pick| Reverse(pick.frame.seen_at));
    let nearest = picks
        .iter()
        .enumerate()
        .filter_map(|(place, pick)| Some((place, pick.nearness?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(place, _)| place);
    if picks.is_empty() || limit == 0 {
        return Vec::new();
    }
    let mut chosen = vec![picks.remove(nearest)];
    while chosen.len() < limit {
        let closest = |pick: &Pick| chosen.iter().map(|other| likeness(pick, other)).fold(f32::MIN, f32::max);
        // Of equals the newest, which comes first.
        let farthest =
            picks.iter().enumerate().map(|(place, pick)| (place, closest(pick))).min_by(|a, b| a.1.total_cmp(&b.1));
        match farthest {
            Some((place, likeness)) if likeness < near_duplicate => chosen.push(picks.remove(place)),
            _ => break,
        }
    }
    chosen.sort_by_key(|pick| Reverse(pick.frame.seen_at));
    chosen.into_iter().map(|pick| pick.frame).collect()
}

/// How alike two frames are, 1 for the same: the cosine of their pictures, or, where one has no vector, what they
/// show and where the head looked.
#[must_use]
pub fn likeness(a: &Pick, b: &Pick) -> f32 {
    if let (Some(a), Some(b)) = (&a.image, &b.image) {
        return cosine(a, b);
    }
    let (a, b) = (&a.frame, &b.frame);
    let both = a.labels.iter().filter(|label| b.labels.contains(label)).count();
    let either = a.labels.len() + b.labels.len() - both;
    let labels = if either == 0 { 1.0 } else { both as f32 / either as f32 };
    let looked = if a.looked == b.looked { 1.0 } else { 0.0 };
    LABELS_WEIGH * labels + (1.0 - LABELS_WEIGH) * looked
}

/// Whether a question about seeing names nothing to look for; see [`super::recall::names_nothing`].
#[must_use]
pub fn names_nothing(question: &str) -> bool {
    super::recall::names_nothing_but(question, SEEING)
}

/// Words that frame a question about seeing without naming what was seen.
const SEEING: &str = "
    see seen saw seeing sees look looked looking notice noticed noticing watch watched watching been observe observed spot spotted
    camera eyes picture pictures view visible show shown showed spend spent went going gone away out home back house
    here there room around outside inside today's new interesting unusual special different much many other others
    happening took place left right ahead front side your yours how were did by who's
";

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::robot::Direction;

    fn frame(labels: &[&str], second: i64) -> Frame {
        Frame {
            seen_at: Timestamp::from_second(second).unwrap(),
            looked: Direction::Ahead,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            detections: Vec::new(),
            names: Vec::new(),
            people: 0,
            sentence: format!("I saw {}.", labels.join(" and ")),
            caption: None,
            jpeg: Vec::new(),
        }
    }

    fn candidate(labels: &[&str], second: i64, score: f32) -> Candidate {
        Candidate { frame: frame(labels, second), score }
    }

    fn seconds(candidates: &[Candidate]) -> Vec<i64> {
        candidates.iter().map(|candidate| candidate.frame.seen_at.as_second()).collect()
    }

    #[test]
    fn a_question_about_a_dog_is_never_answered_with_the_cat() {
        let all = vec![candidate(&["cat"], 1, 0.9), candidate(&["cup"], 2, 0.8)];
        assert_eq!(decide(all.clone(), &["dog".into()], 0.5, 0.4, 3), []);
        assert_eq!(seconds(&decide(all, &["cat".into()], 0.95, 0.95, 3)), [1]);
    }

    #[test]
    fn a_thing_outside_the_vocabulary_must_pass_the_gate_and_beat_the_blank_frame() {
        let all = vec![candidate(&["cup"], 1, 0.70), candidate(&["cat"], 2, 0.60)];
        assert_eq!(seconds(&decide(all.clone(), &[], 0.55, 0.65, 3)), [1]);
        assert_eq!(decide(all.clone(), &[], 0.55, 0.71, 3), []);
        assert_eq!(decide(all.clone(), &[], 0.65, 0.60, 3), [], "nobody spoke of the cup");
        let spoken_of = Frame { caption: Some("A cup with a dragon on it.".into()), ..all[0].frame.clone() };
        let all = vec![Candidate { frame: spoken_of, score: 0.70 }];
        assert_eq!(seconds(&decide(all, &[], 0.65, 0.60, 3)), [1]);
    }

    #[test]
    fn of_two_named_things_the_frame_that_shows_both_answers() {
        let all = vec![candidate(&["person"], 1, 0.9), candidate(&["cup", "person"], 2, 0.7)];
        assert_eq!(seconds(&decide(all, &["cup".into(), "person".into()], 0.5, 0.5, 3)), [2]);
    }

    #[test]
    fn four_newest_frames_of_an_evening_are_not_one_picture_four_times() {
        let unit = |angle: f32| Some(vec![angle.cos(), angle.sin()]);
        let pick = |second, angle| Pick { frame: frame(&["couch"], second), image: unit(angle), nearness: None };
        // Ten of one scene, then three others earlier in the day.
        let mut picks: Vec<Pick> = (100..110).map(|second| pick(second, second as f32 * 0.001)).collect();
        picks.extend([pick(1, 1.5), pick(2, 0.9), pick(3, 2.2)]);
        let chosen: Vec<i64> = sample(picks, 0.97, 4).iter().map(|frame| frame.seen_at.as_second()).collect();
        assert_eq!(chosen, [109, 3, 2, 1]);
    }

    #[test]
    fn the_picture_nearest_to_the_question_is_always_among_them() {
        let pick = |second, nearness| Pick {
            frame: frame(&["couch"], second),
            image: Some(vec![1.0, 0.0]),
            nearness: Some(nearness),
        };
        let chosen = sample(vec![pick(1, 0.1), pick(2, 0.9), pick(3, 0.2)], 0.97, 4);
        assert_eq!(chosen.iter().map(|frame| frame.seen_at.as_second()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn without_picture_vectors_labels_and_direction_tell_frames_apart() {
        let pick = |labels: &[&str], second| Pick { frame: frame(labels, second), image: None, nearness: None };
        let picks = vec![pick(&["cup"], 3), pick(&["cup"], 2), pick(&["cat", "person"], 1)];
        let chosen: Vec<i64> = sample(picks, 0.97, 4).iter().map(|frame| frame.seen_at.as_second()).collect();
        assert_eq!(chosen, [3, 1]);
        assert!(sample(Vec::new(), 0.97, 4).is_empty());
    }

    #[test]
    fn questions_that_name_nothing_reach_the_day() {
        for question in [
            "What did you see?",
            "What happened here today?",
            "Did you notice anything?",
            "What was going on while I was away?",
            "Did you see anything interesting this morning?",
            "What have you seen since I left?",
            "What was on your left?",
        ] {
            assert!(names_nothing(question), "{question}");
        }
        for question in ["Did you see my cat?", "Was the window open?", "Did you see a dragon today?"] {
            assert!(!names_nothing(question), "{question}");
        }
    }
}
