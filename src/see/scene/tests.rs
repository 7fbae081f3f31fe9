use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use Direction::{Ahead, Left};

fn thing(label: &str, score: f32, left: f32) -> Detection {
    Detection { label: label.into(), score, place: [left, 0.2, left + 0.2, 0.6] }
}

/// Feeds a scene at two pictures a second.
struct Fed {
    scene: Scene,
    now: Timestamp,
}

impl Fed {
    fn new() -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        Self { scene: Scene::new(SceneSettings::default()), now }
    }

    fn see(&mut self, looked: Direction, found: &[Detection]) -> Option<Change> {
        self.now += SignedDuration::from_millis(500);
        self.scene.update(looked, found, self.now)
    }

    /// The changes that so many seconds of one thing after another make.
    fn seconds(&mut self, seconds: u32, found: &[Detection]) -> Vec<Change> {
        (0..seconds * 2).filter_map(|_| self.see(Ahead, found)).collect()
    }
}

fn labels(change: &Change) -> Vec<&str> {
    change.visible.iter().map(|detection| detection.label.as_str()).collect()
}

#[test]
fn a_steady_scene_is_told_once() {
    let mut fed = Fed::new();
    let changes = fed.seconds(60, &[thing("cup", 0.7, 0.1), thing("person", 0.9, 0.5)]);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].appeared, ["cup", "person"]);
    assert!(changes[0].gone.is_empty());
    assert_eq!(labels(&changes[0]), ["person", "cup"]);
    assert!(fed.scene.is_settled(Ahead));
}

#[test]
fn nothing_to_see_is_not_told() {
    assert!(Fed::new().seconds(30, &[]).is_empty());
    assert!(Fed::new().seconds(30, &[thing("cup", 0.45, 0.1)]).is_empty(), "never sure enough to be born");
}

#[test]
fn a_thing_of_three_seconds_is_told_once_and_so_is_its_going() {
    let mut fed = Fed::new();
    let person = thing("person", 0.9, 0.5);
    fed.seconds(10, std::slice::from_ref(&person));
    let came = fed.seconds(3, &[person.clone(), thing("cup", 0.7, 0.1)]);
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].appeared, ["cup"]);
    let went = fed.seconds(10, &[person]);
    assert_eq!(went.len(), 1);
    assert_eq!((went[0].gone.clone(), labels(&went[0])), (vec!["cup".to_owned()], vec!["person"]));
}

#[test]
fn what_went_and_what_came_are_never_told_together() {
    let mut fed = Fed::new();
    fed.seconds(10, &[thing("cat", 0.9, 0.1)]);
    let changes = fed.seconds(10, &[thing("cup", 0.9, 0.7)]);
    assert_eq!(changes.len(), 1);
    assert_eq!(labels(&changes[0]), ["cup"]);
    assert_eq!(
        (changes[0].appeared.as_slice(), changes[0].gone.as_slice()),
        (&["cup".into()][..], &["cat".into()][..])
    );
}

#[test]
fn a_thing_that_takes_the_place_of_another_is_named_after_eight_pictures() {
    let mut fed = Fed::new();
    fed.seconds(60, &[thing("person", 0.9, 0.3)]);
    let pictures = (1..20).find(|_| fed.see(Ahead, &[thing("cat", 0.9, 0.3)]).is_some()).unwrap();
    assert!((8..=11).contains(&pictures), "{pictures} pictures");
}

#[test]
fn a_switch_of_the_whole_picture_is_named_sooner() {
    let mut fed = Fed::new();
    fed.seconds(60, &[thing("person", 0.9, 0.3)]);
    fed.scene.cut(Ahead);
    let pictures = (1..20).find(|_| fed.see(Ahead, &[thing("cat", 0.9, 0.3)]).is_some()).unwrap();
    assert!(pictures <= 5, "{pictures} pictures");
}

#[test]
fn a_label_that_flickers_keeps_its_name() {
    let mut fed = Fed::new();
    let mut changes = fed.seconds(5, &[thing("cup", 0.7, 0.3)]);
    for index in 0..240 {
        let label = if index % 3 == 0 { "bowl" } else { "cup" };
        let score = if index % 7 == 0 { 0.2 } else { 0.55 };
        changes.extend(fed.see(Ahead, &[thing(label, score, 0.3)]));
    }
    assert_eq!(changes.len(), 1, "{changes:?}");
}

#[test]
fn a_small_thing_that_is_missed_for_three_seconds_does_not_come_and_go() {
    let mut fed = Fed::new();
    let mut changes = 0;
    for index in 0..240 {
        let found = [thing("cat", 0.9, 0.7), thing("cup", 0.55, 0.1)];
        let count = if index % 8 < 2 || index < 8 { 2 } else { 1 };
        changes += u32::from(fed.see(Ahead, &found[..count]).is_some());
    }
    assert_eq!(changes, 1);
}

#[test]
fn two_boxes_on_one_thing_are_one_thing() {
    let mut fed = Fed::new();
    let changes = fed.seconds(5, &[thing("couch", 0.8, 0.3), thing("chair", 0.7, 0.31)]);
    assert_eq!(labels(&changes[0]), ["couch"]);
}

#[test]
fn a_second_person_is_a_change_and_a_second_cup_or_a_fifth_person_is_not() {
    let mut fed = Fed::new();
    let at = |label, left| thing(label, 0.9, left);
    fed.seconds(5, &[at("person", 0.0), at("cup", 0.75)]);
    let second = fed.seconds(5, &[at("person", 0.0), at("person", 0.25), at("cup", 0.75)]);
    assert_eq!(second[0].appeared, ["person"]);
    assert!(fed.seconds(5, &[at("person", 0.0), at("person", 0.25), at("cup", 0.75), at("cup", 0.5)]).is_empty());
    let people: Vec<_> = [0.0, 0.2, 0.4, 0.6, 0.8].map(|left| at("person", left)).into();
    fed.seconds(8, &people[..3]);
    assert!(fed.seconds(8, &people).is_empty(), "three are many");
}

#[test]
fn looking_left_and_back_makes_nothing_new_and_nothing_vanish() {
    let mut fed = Fed::new();
    fed.seconds(10, &[thing("person", 0.9, 0.3)]);
    let left: Vec<_> = (0..20).filter_map(|_| fed.see(Left, &[thing("clock", 0.9, 0.3)])).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].appeared, ["clock"]);
    let mut back = fed.seconds(10, &[thing("person", 0.9, 0.33)]);
    back.extend((0..20).filter_map(|_| fed.see(Left, &[thing("clock", 0.9, 0.28)])));
    assert!(back.is_empty(), "{back:?}");
}

#[test]
fn an_hour_in_the_dark_and_a_detection_in_five_seconds_make_nobody_vanish() {
    let mut fed = Fed::new();
    let person = [thing("person", 0.9, 0.3)];
    fed.seconds(10, &person);
    fed.now += SignedDuration::from_hours(1);
    assert!(fed.see(Ahead, &[]).is_none(), "the first picture after it missed");
    assert!(!fed.scene.is_settled(Ahead), "worth another look");
    assert!(fed.seconds(10, &person).is_empty());
    for missed in [false, true, false, false, true, false] {
        fed.now += SignedDuration::from_secs(5);
        assert!(fed.see(Ahead, if missed { &[] } else { &person }).is_none());
    }
    fed.now -= SignedDuration::from_hours(2);
    assert!(fed.seconds(10, &person).is_empty(), "a clock that was set back");
}

#[test]
fn what_was_stored_before_the_start_is_not_told_again_but_its_absence_is() {
    let stored = [thing("person", 0.9, 0.3), thing("cup", 0.8, 0.7)];
    let mut fed = Fed::new();
    fed.scene.is_known(Ahead, &stored);
    assert!(fed.seconds(20, &stored).is_empty());
    let mut fed = Fed::new();
    fed.scene.is_known(Ahead, &stored);
    let changes = fed.seconds(20, &stored[..1]);
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].gone.as_slice(), changes[0].appeared.len()), (&["cup".into()][..], 0));
}

#[test]
fn impossible_detections_are_left_out() {
    let mut bad = vec![thing("cup", f32::NAN, 0.1), thing("cup", 1.5, 0.1), thing("", 0.9, 0.1)];
    for place in [[f32::NAN; 4], [0.5, 0.5, 0.4, 0.6], [0.0; 4], [0.0, 0.0, f32::INFINITY, 1.0]] {
        bad.push(Detection { label: "cup".into(), score: 0.9, place });
    }
    assert!(Fed::new().seconds(10, &bad).is_empty());
}

/// Detections as no camera gives them, but as a detector may.
fn any_detection() -> impl Strategy<Value = Detection> {
    let label = prop::sample::select(vec!["person", "cup", "bowl", "cat", "tv"]);
    (label, 0.0_f32..=1.0, 0.0_f32..0.8, 0.0_f32..0.8, 0.05_f32..0.5, 0.05_f32..0.5).prop_map(
        |(label, score, left, top, width, height)| Detection {
            label: label.into(),
            score,
            place: [left, top, left + width, top + height],
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_label_is_told_that_was_not_found_at_birth_score(
        pictures in prop::collection::vec(prop::collection::vec(any_detection(), 0..6), 1..120),
    ) {
        let mut fed = Fed::new();
        let mut born = std::collections::BTreeSet::new();
        for found in &pictures {
            born.extend(found.iter().filter(|found| found.score >= BIRTH).map(|found| found.label.clone()));
            if let Some(change) = fed.see(Ahead, found) {
                prop_assert!(change.visible.iter().all(|visible| born.contains(&visible.label)));
                prop_assert!(change.appeared.iter().all(|label| born.contains(label)));
                prop_assert!(!change.appeared.is_empty() || !change.gone.is_empty());
                prop_assert!(change.visible.iter().all(|visible| (0.0..=1.0).contains(&visible.score)));
            }
        }
    }

    #[test]
    fn memory_is_bounded_whatever_is_found(
        pictures in prop::collection::vec(prop::collection::vec(any_detection(), 0..200), 1..30),
    ) {
        let mut fed = Fed::new();
        for found in &pictures {
            fed.see(Ahead, found);
            prop_assert!(fed.scene.ahead.tracks.len() <= MOST_THINGS);
            prop_assert!(fed.scene.ahead.tracks.iter().all(Track::is_bounded));
        }
    }

    #[test]
    fn a_steady_scene_never_tells_twice(
        found in prop::collection::vec(any_detection(), 0..12),
        gaps in prop::collection::vec(100_i64..20_000, 60),
    ) {
        let mut fed = Fed::new();
        let mut told = 0;
        for gap in gaps {
            fed.now += SignedDuration::from_millis(gap);
            told += u32::from(fed.scene.update(Ahead, &found, fed.now).is_some());
        }
        prop_assert!(told <= 1);
    }
}
