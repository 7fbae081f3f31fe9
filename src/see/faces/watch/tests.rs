use std::sync::{Arc, Mutex};

use super::*;
use crate::robot::FaceMark;

/// Finds and embeds what the test says, and counts.
#[derive(Clone, Default)]
struct Scripted {
    finds: Arc<Mutex<Vec<Found>>>,
    fails: Arc<Mutex<bool>>,
    embedded: Arc<Mutex<u32>>,
}

impl Scripted {
    /// Faces a tenth of the picture wide, whose left edges are there.
    fn finds(&self, lefts: &[f32]) {
        let found = lefts.iter().map(|left| {
            let at = |across: f32, down: f32| [left + 0.1 * across, 0.3 + 0.2 * down];
            let landmarks = [at(0.3, 0.4), at(0.7, 0.4), at(0.5, 0.6), at(0.35, 0.8), at(0.65, 0.8)];
            Found { place: [*left, 0.3, left + 0.1, 0.5], landmarks, score: 0.9 }
        });
        *self.finds.lock().unwrap() = found.collect();
    }

    fn fail(&self) -> Result<(), InferError> {
        let fails = *self.fails.lock().unwrap();
        if fails { Err(InferError::Run { name: "scripted".into(), why: "broken".into() }) } else { Ok(()) }
    }
}

impl FindFaces for Scripted {
    fn name(&self) -> String {
        "scripted".into()
    }

    fn find(&mut self, _: &Rgb) -> Result<Vec<Found>, InferError> {
        self.fail()?;
        Ok(self.finds.lock().unwrap().clone())
    }
}

struct Numbers(Identity, Scripted);

impl EmbedFace for Numbers {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn embed(&mut self, crop: &Rgb) -> Result<Vec<f32>, InferError> {
        assert_eq!((crop.width, crop.height), (112, 112));
        *self.1.embedded.lock().unwrap() += 1;
        if *self.1.embedded.lock().unwrap() == 99 {
            return Err(InferError::Run { name: "scripted".into(), why: "the 99th".into() });
        }
        Ok(vec![1.0])
    }
}

struct Room {
    watch: Watch,
    scripted: Scripted,
    now: Timestamp,
    rgb: Rgb,
    looked: Direction,
}

impl Room {
    fn new() -> Self {
        let scripted = Scripted::default();
        let identity = Identity { model: "scripted".into(), weights: "none".into(), preprocessing: 1, dimension: 1 };
        let embedder = Box::new(Numbers(identity, scripted.clone()));
        let watch = Watch::new(Box::new(scripted.clone()), Some(embedder));
        // A checked picture, so that every face in it is sharp.
        let value = |index: u32| if (index % 1280 / 8 + index / 1280 / 8).is_multiple_of(2) { 40 } else { 200 };
        let rgb =
            Rgb { width: 1280, height: 720, pixels: (0..1280 * 720).flat_map(|index| [value(index); 3]).collect() };
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        Self { watch, scripted, now, rgb, looked: Direction::Ahead }
    }

    fn look(&mut self, glimpse: Glimpse) -> Vec<Face> {
        self.now += SignedDuration::from_millis(333);
        let picture =
            Picture { encoded: Vec::new(), annotations: None, faces: None, at: self.now, looked: self.looked };
        self.watch.look(&picture, Some(&self.rgb), glimpse, self.now).unwrap().unwrap()
    }

    fn embedded(&self) -> u32 {
        *self.scripted.embedded.lock().unwrap()
    }
}

#[test]
fn a_new_face_is_embedded_at_once_and_then_once_a_second() {
    let mut room = Room::new();
    room.scripted.finds(&[0.4]);
    let first = room.look(Glimpse::Passing);
    assert!(first[0].quality.usable(), "{:?}", first[0].quality);
    assert!(first[0].vector.is_some());
    let vectors: Vec<_> = (0..12).map(|_| room.look(Glimpse::Passing)[0].vector.is_some()).collect();
    assert_eq!(vectors.iter().filter(|given| **given).count(), 3, "{vectors:?}");
    assert!(!vectors[0] && !vectors[1], "less than a second ago");
    room.scripted.finds(&[0.4, 0.7]);
    let both = room.look(Glimpse::Passing);
    assert!(both[1].vector.is_some(), "who comes is embedded at once");
    assert_ne!(both[0].track, both[1].track);
    assert_eq!(both[0].track, first[0].track);
}

#[test]
fn a_look_on_purpose_embeds_every_usable_face() {
    let mut room = Room::new();
    room.scripted.finds(&[0.1, 0.25, 0.4, 0.55, 0.7, 0.85]);
    assert_eq!(room.look(Glimpse::Passing).iter().filter(|face| face.vector.is_some()).count(), MOST_AT_ONCE);
    assert!(room.look(Glimpse::OnPurpose).iter().all(|face| face.vector.is_some()));
}

#[test]
fn a_poor_face_is_followed_and_never_embedded() {
    let mut room = Room::new();
    room.scripted.finds(&[-0.02]);
    for _ in 0..5 {
        let cut = room.look(Glimpse::OnPurpose);
        assert!(cut[0].quality.cut_by_edge && cut[0].vector.is_none());
    }
    room.rgb.pixels.fill(90);
    room.scripted.finds(&[0.4]);
    assert!(room.look(Glimpse::OnPurpose)[0].vector.is_none(), "a picture of one colour is not sharp");
    assert_eq!(room.embedded(), 0);
}

#[test]
fn a_head_that_turns_away_and_back_follows_nobody() {
    let mut room = Room::new();
    room.scripted.finds(&[0.4]);
    let first = room.look(Glimpse::Passing)[0].track;
    room.looked = Direction::Left;
    let left = room.look(Glimpse::Passing);
    assert!(left[0].vector.is_some());
    room.looked = Direction::Ahead;
    let back = room.look(Glimpse::Passing)[0].track;
    assert!(first != left[0].track && left[0].track != back && first != back);
}

#[test]
fn what_fails_is_counted_and_the_next_look_works() {
    let mut room = Room::new();
    room.scripted.finds(&[0.4]);
    *room.scripted.fails.lock().unwrap() = true;
    let picture = Picture { encoded: Vec::new(), annotations: None, faces: None, at: room.now, looked: room.looked };
    assert!(room.watch.look(&picture, Some(&room.rgb), Glimpse::Passing, room.now).is_err());
    *room.scripted.fails.lock().unwrap() = false;
    *room.scripted.embedded.lock().unwrap() = 98;
    assert!(room.look(Glimpse::Passing)[0].vector.is_none(), "an embedding that fails leaves the face");
    assert!(room.look(Glimpse::Passing)[0].vector.is_some(), "and is tried again at once");
    let report = room.watch.report();
    assert_eq!((report.failures, report.looks, report.embedded), (2, 2, 1));
    assert!(report.last_failure.as_deref().unwrap_or_default().contains("the 99th"));
}

#[test]
fn without_an_embedder_faces_are_followed_and_without_pixels_nothing_is_looked_for() {
    let scripted = Scripted::default();
    scripted.finds(&[0.4]);
    let mut room = Room { watch: Watch::new(Box::new(scripted.clone()), None), scripted, ..Room::new() };
    assert!(room.look(Glimpse::OnPurpose)[0].vector.is_none());
    assert_eq!((room.watch.identity(), room.watch.report().model.as_deref()), (None, None));
    let marks = Some(vec![FaceMark { of: "anna".into(), place: None, angle: 0.0, poor: false }]);
    let picture = Picture { encoded: Vec::new(), annotations: None, faces: marks, at: room.now, looked: room.looked };
    assert_eq!(
        room.watch.look(&picture, None, Glimpse::Passing, room.now).unwrap(),
        None,
        "marks are for the stand-in"
    );
}

#[test]
fn the_stand_in_takes_marks_and_keeps_the_same_pace() {
    let mut watch = Watch::stand_in();
    let mut now = Timestamp::from_second(1_700_000_000).unwrap();
    let mark = |of: &str, poor| FaceMark { of: of.into(), place: None, angle: 0.0, poor };
    let mut look = |watch: &mut Watch, marks: Option<Vec<FaceMark>>, annotations| {
        now += SignedDuration::from_millis(333);
        let picture = Picture { encoded: Vec::new(), annotations, faces: marks, at: now, looked: Direction::Ahead };
        watch.look(&picture, None, Glimpse::Passing, now).unwrap()
    };
    let first = look(&mut watch, Some(vec![mark("anna", false), mark("ben", true)]), None).unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].vector.as_ref().map(Vec::len), Some(super::super::DIMENSION));
    assert!(first[1].vector.is_none() && !first[1].quality.usable());
    let second = look(&mut watch, Some(vec![mark("anna", false)]), None).unwrap();
    assert_eq!((second[0].track, second[0].vector.is_none()), (first[0].track, true));
    assert_eq!(look(&mut watch, None, Some(Vec::new())), Some(Vec::new()), "nobody is there");
    assert_eq!(look(&mut watch, None, None), None, "a camera's picture says nothing");
    assert!(watch.report().stand_in && watch.identity().is_some_and(|identity| identity.model.contains("stand-in")));
}
