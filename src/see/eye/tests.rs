use std::sync::{Arc, Mutex};

use super::*;
use crate::robot::{Annotation, FaceMark};
use crate::see::faces::{self, FaceReport, FindFaces};

/// A stand-in for a detector: finds what the test says, and counts how often it was asked.
#[derive(Clone, Default)]
struct Scripted {
    finds: Arc<Mutex<Vec<Detection>>>,
    fails: Arc<Mutex<bool>>,
    asked: Arc<Mutex<u32>>,
}

impl Scripted {
    fn finds(&self, labels: &[&str]) {
        let found = labels.iter().enumerate().map(|(index, label)| {
            let left = index as f32 * 0.2;
            Detection { label: (*label).into(), score: 0.8, place: [left, 0.2, left + 0.15, 0.6] }
        });
        *self.finds.lock().unwrap() = found.collect();
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }
}

impl Detect for Scripted {
    fn name(&self) -> String {
        "scripted stand-in".into()
    }

    fn detect(&mut self, picture: &Rgb) -> Result<Vec<Detection>, InferError> {
        assert!(picture.is_whole());
        *self.asked.lock().unwrap() += 1;
        if *self.fails.lock().unwrap() {
            return Err(InferError::Run { name: self.name(), why: "scripted".into() });
        }
        Ok(self.finds.lock().unwrap().clone())
    }
}

/// A camera at two pictures a second before a grey ramp with noise; `light` 0 is night, `scene` moves the ramp.
struct Camera {
    eye: Eye,
    now: Timestamp,
    looked: Direction,
    seed: u64,
    light: f32,
    scene: u32,
}

impl Camera {
    fn new(detector: Option<&Scripted>) -> Self {
        let detector = detector.map(|scripted| Box::new(scripted.clone()) as Box<dyn Detect>);
        let eye = Eye::new(detector, &EyeSettings::default()).unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        Self { eye, now, looked: Direction::Ahead, seed: 0, light: 1.0, scene: 0 }
    }

    fn rgb(&mut self) -> Rgb {
        let (width, height) = (320_u32, 180_u32);
        self.seed += 1;
        let mut state = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut pixels = Vec::new();
        for index in 0..width * height * 3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let ramp = 60 + ((index / 3 % width + self.scene * 100) % width) / 2;
            pixels.push(((ramp + (state % 7) as u32) as f32 * self.light) as u8);
        }
        Rgb { width, height, pixels }
    }

    fn picture(&mut self) -> Picture {
        let encoded = self.rgb().to_jpeg().unwrap();
        Picture { encoded, annotations: None, faces: None, at: self.now, looked: self.looked }
    }

    fn show(&mut self, picture: &Picture) -> Result<Glance, EyeError> {
        self.now += SignedDuration::from_millis(500);
        self.eye.glance(picture, false, self.now)
    }

    fn glance(&mut self) -> Glance {
        let picture = self.picture();
        self.show(&picture).unwrap()
    }

    fn seconds(&mut self, seconds: u32) -> Vec<Seen> {
        (0..seconds * 2).filter_map(|_| self.glance().seen).collect()
    }
}

#[test]
fn a_quiet_room_is_seen_once_and_looked_at_closely_once_in_five_seconds() {
    let scripted = Scripted::default();
    scripted.finds(&["person", "cup"]);
    let mut camera = Camera::new(Some(&scripted));
    let seen = camera.seconds(60);
    assert_eq!(seen.len(), 1);
    let seen = &seen[0];
    assert_eq!((seen.labels.as_slice(), seen.people), (&["cup".to_owned(), "person".to_owned()][..], 1));
    assert!(seen.jpeg.starts_with(&[0xFF, 0xD8]) && seen.rgb.is_some() && !seen.stand_in);
    let asked = scripted.asked();
    assert!((14..=22).contains(&asked), "{asked} detections in a minute");
}

#[test]
fn what_comes_is_seen_within_three_seconds() {
    let scripted = Scripted::default();
    scripted.finds(&["person"]);
    let mut camera = Camera::new(Some(&scripted));
    camera.seconds(10);
    scripted.finds(&["person", "cup"]);
    camera.scene = 1;
    let seen = camera.seconds(3);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].change.appeared, ["cup"]);
}

#[test]
fn no_fault_is_stored_or_looked_at_and_the_loop_goes_on() {
    let scripted = Scripted::default();
    scripted.finds(&["person"]);
    let mut camera = Camera::new(Some(&scripted));
    assert_eq!(camera.seconds(10).len(), 1);
    let asked = scripted.asked();
    camera.light = 0.02;
    let dark = camera.glance();
    assert!(matches!(dark.fault, Some(PictureFault::Dark { .. })), "{dark:?}");
    camera.light = 1.0;
    let mut torn = camera.picture();
    torn.encoded.truncate(torn.encoded.len() / 2);
    assert_eq!(camera.show(&torn).unwrap().fault, Some(PictureFault::Torn));
    let mut nothing = camera.picture();
    nothing.encoded.clear();
    assert_eq!(camera.show(&nothing).unwrap().fault, Some(PictureFault::Empty));
    nothing.encoded = b"no picture".to_vec();
    assert!(matches!(camera.show(&nothing).unwrap().fault, Some(PictureFault::Corrupt { .. })));
    assert_eq!(scripted.asked(), asked, "nothing was looked for in them");
    assert!(camera.seconds(10).is_empty(), "the room is as it was");
    let faults = camera.eye.report().faults;
    assert_eq!((faults.sum(), faults.dark, faults.torn, faults.empty, faults.corrupt), (4, 1, 1, 1, 1));
}

#[test]
fn a_camera_that_hangs_is_a_fault_and_not_a_quiet_room() {
    let scripted = Scripted::default();
    scripted.finds(&["person"]);
    let mut camera = Camera::new(Some(&scripted));
    camera.seconds(5);
    scripted.finds(&["cat"]);
    let hangs = camera.picture();
    let faults = (0..60).filter(|_| camera.show(&hangs).unwrap().fault.is_some()).count();
    assert_eq!(faults, 40, "the first ten seconds are not yet a fault");
    assert!(matches!(camera.eye.look(&hangs, camera.now), Err(EyeError::Fault(PictureFault::Frozen { .. }))));
    assert!(camera.glance().fault.is_none());
}

#[test]
fn nothing_is_looked_for_while_the_head_moves() {
    let scripted = Scripted::default();
    let mut camera = Camera::new(Some(&scripted));
    camera.seconds(10);
    let asked = scripted.asked();
    for _ in 0..10 {
        camera.scene += 1;
        camera.now += SignedDuration::from_millis(500);
        let picture = camera.picture();
        assert_eq!(camera.eye.glance(&picture, true, camera.now).unwrap(), Glance::default());
    }
    assert_eq!(scripted.asked(), asked);
    assert!(camera.glance().detected, "it stands still again");
}

#[test]
fn a_flood_of_pictures_is_not_a_flood_of_detections() {
    let scripted = Scripted::default();
    let mut camera = Camera::new(Some(&scripted));
    for index in 0..100 {
        camera.scene = index;
        camera.now += SignedDuration::from_millis(50);
        let picture = camera.picture();
        camera.eye.glance(&picture, false, camera.now).unwrap();
    }
    let asked = scripted.asked();
    assert!((8..=13).contains(&asked), "{asked} detections in five seconds");
}

#[test]
fn a_look_on_purpose_always_sees_and_the_next_glance_does_not_tell_it_again() {
    let scripted = Scripted::default();
    scripted.finds(&["clock"]);
    let mut camera = Camera::new(Some(&scripted));
    camera.looked = Direction::Left;
    for _ in 0..2 {
        let picture = camera.picture();
        let seen = camera.eye.look(&picture, camera.now).unwrap();
        assert_eq!((seen.labels.as_slice(), seen.looked), (&["clock".to_owned()][..], Direction::Left));
    }
    assert!(camera.seconds(10).is_empty());
    scripted.finds(&["clock", "cat"]);
    assert_eq!(camera.seconds(10).len(), 1);
}

#[test]
fn a_detector_that_fails_is_an_error_of_the_glance_and_is_tried_again() {
    let scripted = Scripted::default();
    scripted.finds(&["cup"]);
    *scripted.fails.lock().unwrap() = true;
    let mut camera = Camera::new(Some(&scripted));
    for _ in 0..3 {
        let picture = camera.picture();
        assert!(matches!(camera.show(&picture), Err(EyeError::Detector(_))));
    }
    *scripted.fails.lock().unwrap() = false;
    assert_eq!(camera.seconds(5).len(), 1);
    assert_eq!(camera.eye.report().failures, 3);
}

fn said(labels: &[&str]) -> Option<Vec<Annotation>> {
    Some(labels.iter().map(|label| Annotation { label: (*label).into(), place: None }).collect())
}

#[test]
fn without_a_detector_annotations_stand_in_and_it_is_said() {
    let mut camera = Camera::new(None);
    let mut seen = Vec::new();
    for labels in [&["person", "person", "cup"][..], &["person", "person", "cup", "cat"]] {
        for _ in 0..20 {
            let now = camera.now;
            let picture = Picture {
                encoded: Vec::new(),
                annotations: said(labels),
                faces: None,
                at: now,
                looked: Direction::Ahead,
            };
            let glance = camera.show(&picture).unwrap();
            assert!(glance.stand_in && glance.detected);
            seen.extend(glance.seen);
        }
    }
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].people, seen[0].detections.len(), seen[0].rgb.is_none()), (2, 3, true));
    assert!(seen[0].stand_in && seen[0].jpeg.is_empty());
    assert!(seen[0].detections.iter().all(|detection| detection.place == [0.0, 0.0, 1.0, 1.0]), "nobody said where");
    assert_eq!(seen[1].change.appeared, ["cat"]);
}

#[test]
fn annotations_that_change_under_one_picture_are_seen() {
    let mut camera = Camera::new(None);
    let mut seen = Vec::new();
    for labels in [&["cup"][..], &["cup", "cat"], &[]] {
        for _ in 0..20 {
            let picture = Picture { annotations: said(labels), ..camera.picture() };
            seen.extend(camera.show(&picture).unwrap().seen);
        }
    }
    let labels: Vec<_> = seen.iter().map(|seen| seen.labels.join(" ")).collect();
    assert_eq!(labels, ["cup", "cat cup", ""]);
}

#[test]
fn a_picture_that_nobody_can_look_into_is_an_error_and_not_an_empty_room() {
    let mut camera = Camera::new(None);
    let picture = camera.picture();
    assert!(matches!(camera.show(&picture), Err(EyeError::NoDetector)));
    assert!(matches!(camera.eye.look(&picture, camera.now), Err(EyeError::NoDetector)));
}

#[test]
fn settings_that_are_no_times_are_refused() {
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e9] {
        let settings = EyeSettings { seconds_between_quiet: value, ..EyeSettings::default() };
        assert!(matches!(Eye::new(None, &settings), Err(EyeError::Setting { name: "seconds_between_quiet", .. })));
        let settings = EyeSettings { frames_per_second_changing: value, ..EyeSettings::default() };
        assert!(Eye::new(None, &settings).is_err());
    }
}

/// Marks whose faces are before the simulated camera.
fn marked(names: &[&str]) -> Option<Vec<FaceMark>> {
    let mark = |of: &&str| FaceMark { of: (*of).into(), place: None, angle: 0.0, poor: false };
    Some(names.iter().map(mark).collect())
}

#[test]
fn faces_are_looked_for_three_times_a_second_while_somebody_is_there() {
    let mut camera = Camera::new(None);
    camera.eye = Eye::new(None, &EyeSettings::default()).unwrap().with_faces(Watch::stand_in());
    let (mut looks, mut vectors, mut kept) = (0, 0, Vec::new());
    for _ in 0..100 {
        camera.now += SignedDuration::from_millis(100);
        let (annotations, faces) = (said(&["person"]), marked(&["anna"]));
        let picture = Picture { encoded: Vec::new(), annotations, faces, at: camera.now, looked: Direction::Ahead };
        let glance = camera.eye.glance(&picture, false, camera.now).unwrap();
        looks += glance.faces.iter().count();
        vectors += glance.faces.iter().flatten().filter(|face| face.vector.is_some()).count();
        assert!(glance.faces.is_none() || glance.stand_in);
        kept.extend(glance.seen);
    }
    assert!((25..=40).contains(&looks), "{looks} looks in ten seconds");
    assert!((8..=11).contains(&vectors), "{vectors} embeddings in ten seconds");
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].faces.len(), kept[0].stand_in), (1, true));
    let report = camera.eye.report().faces;
    assert!(report.stand_in && report.looks >= looks as u64);
}

#[test]
fn nothing_is_looked_for_in_faces_while_the_head_moves_or_without_a_watch() {
    let mut camera = Camera::new(None);
    let picture = Picture { annotations: said(&["person"]), faces: marked(&["anna"]), ..camera.picture() };
    let glance = camera.show(&picture).unwrap();
    assert_eq!((glance.faces, glance.detected), (None, true));
    assert_eq!(camera.eye.report().faces, FaceReport::default());
    assert!(camera.eye.look(&picture, camera.now).unwrap().faces.is_empty());
    camera.eye = Eye::new(None, &EyeSettings::default()).unwrap().with_faces(Watch::stand_in());
    camera.now += SignedDuration::from_secs(5);
    assert_eq!(camera.eye.glance(&picture, true, camera.now).unwrap(), Glance::default());
}

#[test]
fn a_look_on_purpose_has_the_vector_of_everybody_although_they_were_embedded_just_now() {
    let mut camera = Camera::new(None);
    camera.eye = Eye::new(None, &EyeSettings::default()).unwrap().with_faces(Watch::stand_in());
    let picture = Picture { annotations: said(&["cup"]), faces: marked(&["anna", "ben"]), ..camera.picture() };
    let glance = camera.show(&picture).unwrap();
    let tracks: Vec<_> = glance.faces.unwrap().iter().map(|face| face.track).collect();
    let seen = camera.eye.look(&picture, camera.now).unwrap();
    assert!(seen.faces.iter().all(|face| face.vector.is_some()));
    assert_eq!(seen.faces.iter().map(|face| face.track).collect::<Vec<_>>(), tracks, "and they are the same faces");
}

/// Finds one face in every picture.
struct OneFace;

impl FindFaces for OneFace {
    fn name(&self) -> String {
        "one face".into()
    }

    fn find(&mut self, _: &Rgb) -> Result<Vec<faces::Found>, InferError> {
        let landmarks = [[0.45, 0.4], [0.55, 0.4], [0.5, 0.45], [0.46, 0.5], [0.54, 0.5]];
        Ok(vec![faces::Found { place: [0.4, 0.3, 0.6, 0.6], landmarks, score: 0.9 }])
    }
}

#[test]
fn faces_are_seen_although_nothing_finds_objects() {
    let mut camera = Camera::new(None);
    let watch = Watch::new(Box::new(OneFace), None);
    camera.eye = Eye::new(None, &EyeSettings::default()).unwrap().with_faces(watch);
    let glance = camera.glance();
    assert_eq!((glance.faces.map(|faces| faces.len()), glance.detected), (Some(1), false));
}

#[test]
fn another_view_at_once_ends_every_number() {
    let scripted = Scripted::default();
    let mut camera = Camera::new(Some(&scripted));
    let detector = Box::new(scripted) as Box<dyn Detect>;
    let watch = Watch::new(Box::new(OneFace), None);
    camera.eye = Eye::new(Some(detector), &EyeSettings::default()).unwrap().with_faces(watch);
    let track = |glance: Glance| glance.faces.map(|faces| faces[0].track);
    let first = track(camera.glance());
    assert_eq!(track(camera.glance()), first);
    let mut mirrored = camera.rgb();
    mirrored.pixels.reverse();
    let picture = Picture { encoded: mirrored.to_jpeg().unwrap(), ..camera.picture() };
    let second = track(camera.show(&picture).unwrap());
    assert!(second.is_some() && second != first, "{first:?} {second:?}");
}
