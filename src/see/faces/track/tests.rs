//! Scripted walks before the camera, at three looks a second. Places are in widths of a face.

use super::*;

/// A face a tenth of the picture wide, whose centre is so many widths from the left.
fn at(widths: f32) -> [f32; 4] {
    let left = widths * 0.1;
    [left - 0.05, 0.4, left + 0.05, 0.55]
}

struct Walk {
    tracker: Tracker,
    now: Timestamp,
}

impl Walk {
    fn new() -> Self {
        Self { tracker: Tracker::default(), now: Timestamp::from_second(1_700_000_000).unwrap() }
    }

    fn look(&mut self, widths: &[f32]) -> Vec<u32> {
        self.after(333, widths)
    }

    fn after(&mut self, millis: i64, widths: &[f32]) -> Vec<u32> {
        self.now += SignedDuration::from_millis(millis);
        let places: Vec<_> = widths.iter().map(|widths| at(*widths)).collect();
        self.tracker.follow(&places, self.now)
    }
}

#[test]
fn a_face_that_sits_or_moves_a_little_keeps_its_number() {
    let mut walk = Walk::new();
    let first = walk.look(&[5.0]);
    for step in 1..60 {
        let sways = 5.0 + 0.4 * (step as f32).sin();
        assert_eq!(walk.look(&[sways]), first, "look {step}");
    }
}

#[test]
fn two_people_side_by_side_keep_their_numbers() {
    let mut walk = Walk::new();
    let first = walk.look(&[3.0, 4.4]);
    assert_ne!(first[0], first[1]);
    for step in 1..60 {
        let sway = 0.05 * (step as f32 * 1.7).sin();
        assert_eq!(walk.look(&[3.0 + sway, 4.4 - sway]), first, "look {step}");
    }
    assert_eq!(walk.look(&[4.4, 3.0]), [first[1], first[0]], "the order of the detections says nothing");
}

#[test]
fn one_or_two_missed_detections_are_survived_and_a_third_is_not() {
    let mut walk = Walk::new();
    let first = walk.look(&[5.0]);
    for misses in [1, 2] {
        for _ in 0..misses {
            assert!(walk.look(&[]).is_empty());
        }
        assert_eq!(walk.look(&[5.1]), first, "{misses} missed");
    }
    for _ in 0..3 {
        walk.look(&[]);
    }
    assert_ne!(walk.look(&[5.1]), first);
}

#[test]
fn who_was_not_looked_at_for_more_than_two_seconds_gets_a_new_number() {
    let mut walk = Walk::new();
    let first = walk.look(&[5.0]);
    assert_eq!(walk.after(1900, &[5.0]), first);
    assert_ne!(walk.after(2100, &[5.0]), first);
}

#[test]
fn a_cut_view_a_jump_and_a_clock_set_back_end_every_number() {
    let mut walk = Walk::new();
    let first = walk.look(&[5.0]);
    walk.tracker.cut();
    let second = walk.look(&[5.0]);
    assert_ne!(second, first);
    let third = walk.look(&[8.0]);
    assert_ne!(third, second, "three widths in a third of a second");
    let fourth = walk.after(-5_000, &[8.0]);
    assert_ne!(fourth, third);
    assert!(fourth[0] > third[0] && third[0] > second[0], "no number comes twice");
}

#[test]
fn a_face_twice_as_large_in_the_same_place_is_another() {
    let mut walk = Walk::new();
    let first = walk.look(&[5.0]);
    walk.now += SignedDuration::from_millis(333);
    let large = [0.4, 0.33, 0.6, 0.62];
    assert_ne!(walk.tracker.follow(&[large], walk.now), first);
}

/// Lets two people walk from `from` towards each other by `step` widths a look and beyond. Whoever stands left at the
/// end came from the right; nobody may have kept the number that the other one had at the beginning.
fn crossed(from: [f32; 2], step: f32, hidden_within: f32) -> Result<(), String> {
    let mut walk = Walk::new();
    // They come into view walking, so their speed is known when they meet.
    let mut places = from;
    let mut numbers: Vec<u32> = Vec::new();
    let mut before = [0, 0];
    for look in 0..40 {
        let apart = places[1] - places[0];
        let given = if apart.abs() < hidden_within {
            walk.look(&places[..1])
        } else {
            // The detector's order changes when they do.
            let swapped = apart < 0.0;
            let seen = if swapped { [places[1], places[0]] } else { places };
            let mut given = walk.look(&seen);
            if swapped {
                given.swap(0, 1);
            }
            given
        };
        if look == 1 {
            before = [given[0], given[1]];
        }
        numbers.clone_from(&given);
        places = [places[0] + step, places[1] - step];
        if apart < -4.0 {
            break;
        }
    }
    let swapped = numbers[0] == before[1] || numbers.get(1) == Some(&before[0]);
    if swapped {
        Err(format!("{from:?} by {step}, hidden within {hidden_within}: {before:?} → {numbers:?}"))
    } else {
        Ok(())
    }
}

#[test]
fn two_faces_that_cross_never_swap_their_numbers() {
    for step in (1..=30).map(|tenths| tenths as f32 / 10.0) {
        for offset in (0..20).map(|twentieths| twentieths as f32 / 20.0) {
            for hidden in [0.0, 0.4, 0.8, 1.2] {
                crossed([1.0, 8.0 + offset * 2.0 * step + 2.0 * step], step, hidden).unwrap();
            }
        }
    }
}

#[test]
fn one_who_passes_behind_a_sitting_person_never_takes_their_number() {
    for step in (2..=25).map(|tenths| tenths as f32 / 10.0) {
        for offset in (0..20).map(|twentieths| twentieths as f32 / 20.0) {
            let mut walk = Walk::new();
            let mut passer = -1.0 - offset * step;
            let sitting = walk.look(&[5.0])[0];
            let mut own = Vec::new();
            while passer < 11.0 {
                passer += step;
                if (passer - 5.0).abs() < 0.7 {
                    walk.look(&[5.0]);
                } else {
                    own.push(walk.look(&[5.0, passer])[1]);
                }
            }
            assert!(!own.contains(&sitting), "{step} and {offset}: the passer got {own:?}, sitting had {sitting}");
        }
    }
}

#[test]
fn a_crowd_that_trembles_is_followed_within_bounds() {
    let mut walk = Walk::new();
    for step in 0..200 {
        let crowd: Vec<f32> = (0..16).map(|index| index as f32 * 0.6 + 0.3 * ((step * index) as f32).sin()).collect();
        let numbers = walk.look(&crowd);
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), numbers.len(), "one number on two faces");
        assert!(walk.tracker.tracks.len() <= 3 * 16);
    }
}

#[test]
fn places_that_are_no_numbers_are_new_faces_and_nothing_breaks() {
    let mut walk = Walk::new();
    walk.look(&[5.0]);
    let odd = [[f32::NAN; 4], [0.5, 0.5, 0.5, 0.5], [0.6, 0.6, 0.4, 0.4], [f32::INFINITY, 0.0, 1.0, 1.0]];
    for _ in 0..3 {
        walk.now += SignedDuration::from_millis(333);
        assert_eq!(walk.tracker.follow(&odd, walk.now).len(), 4);
    }
}
