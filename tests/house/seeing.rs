//! A labelled day before a real detector: photographs as a camera would give them, and what is remembered of them.
//!
//! The camera is made up: it trembles by two pixels, its light drifts by 8 %, its sensor has noise and its pictures
//! are JPEGs. The photographs and the detector are real; where they are not to be had, a test says so and passes.

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use reachy_remembers::robot::{Direction, Picture};
use reachy_remembers::see::detect::Yolox;
use reachy_remembers::see::eye::{Eye, EyeSettings, Glance, Seen};
use reachy_remembers::see::gate::{Gate, Verdict};
use reachy_remembers::see::picture::{self, PictureFault};
use reachy_remembers::see::told;
use reachy_remembers::see::{Detect, Rgb};

use crate::detecting::{detector, engines, photos, processor_ms, read};

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 720;
/// Pixels that the camera trembles by, and the edge that a scene has for it.
const TREMBLES: u32 = 2;

/// The photographs.
struct Photos {
    astronaut: Rgb,
    cat: Rgb,
    coffee: Rgb,
    motorcycle: Rgb,
}

impl Photos {
    fn all() -> Option<Self> {
        let folder = photos()?;
        let photo = |name: &str| read(&folder.join(name));
        Some(Self {
            astronaut: photo("astronaut.png"),
            cat: photo("chelsea.png"),
            coffee: photo("coffee.png"),
            motorcycle: photo("motorcycle_left.png"),
        })
    }
}

/// A wall in soft daylight, with an edge for the trembling.
fn wall() -> Rgb {
    let (width, height) = (WIDTH + 2 * TREMBLES, HEIGHT + 2 * TREMBLES);
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let light = 120 + x * 50 / width + y * 30 / height;
            pixels.extend([light as u8, (light - 6) as u8, (light - 18) as u8]);
        }
    }
    Rgb { width, height, pixels }
}

/// The scene with a photograph put into it, `height` pixels high.
fn with(mut scene: Rgb, photo: &Rgb, left: u32, top: u32, height: u32) -> Rgb {
    let photo = photo.resized(photo.width * height / photo.height, height).unwrap();
    for y in 0..photo.height.min(scene.height - top) {
        let wide = photo.width.min(scene.width - left) as usize * 3;
        let from = (y * photo.width * 3) as usize;
        let to = (((y + top) * scene.width + left) * 3) as usize;
        scene.pixels[to..to + wide].copy_from_slice(&photo.pixels[from..from + wide]);
    }
    scene
}

/// The camera, its day and the eye behind it.
struct Camera {
    eye: Eye,
    now: Timestamp,
    state: u64,
    taken: u32,
    looked: Direction,
    moving: bool,
    stored: Vec<Seen>,
    faults: Vec<PictureFault>,
}

impl Camera {
    fn new(eye: Eye) -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let (stored, faults) = (Vec::new(), Vec::new());
        Self { eye, now, state: 0x5EED, taken: 0, looked: Direction::Ahead, moving: false, stored, faults }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// What the camera makes of a scene under `light`.
    fn take(&mut self, scene: &Rgb, light: f32) -> Rgb {
        self.taken += 1;
        let shift = u64::from(2 * TREMBLES + 1);
        let (left, top) = ((self.random() % shift) as u32, (self.random() % shift) as u32);
        let drift = 1.0 + 0.08 * (self.taken as f32 / 9.0).sin();
        let gain = (light * drift * 256.0) as i32;
        let mut pixels = Vec::with_capacity((WIDTH * HEIGHT * 3) as usize);
        for y in top..top + HEIGHT {
            let start = ((y * scene.width + left) * 3) as usize;
            for values in scene.pixels[start..start + WIDTH as usize * 3].chunks_exact(8) {
                // The sum of two dice a value: noise of about 3 of 255 in every one.
                let dice = self.random().to_le_bytes();
                for (value, dice) in values.iter().zip(dice) {
                    let noise = i32::from(dice & 7) + i32::from(dice >> 4 & 7) - 7;
                    pixels.push((((i32::from(*value) * gain) >> 8) + noise).clamp(0, 255) as u8);
                }
            }
        }
        Rgb { width: WIDTH, height: HEIGHT, pixels }
    }

    fn give(&mut self, encoded: Vec<u8>) -> Glance {
        self.now += SignedDuration::from_millis(500);
        let picture = Picture { encoded, annotations: None, faces: None, at: self.now, looked: self.looked };
        let glance = self.eye.glance(&picture, self.moving, self.now).expect("the detector works");
        self.faults.extend(glance.fault.clone());
        self.stored.extend(glance.seen.clone());
        glance
    }

    /// Shows a scene for so many seconds at two pictures a second; how many pictures were stored.
    fn seconds(&mut self, seconds: u32, scene: &Rgb, light: f32) -> usize {
        let before = self.stored.len();
        for _ in 0..seconds * 2 {
            let jpeg = self.take(scene, light).to_jpeg_at(85).unwrap();
            self.give(jpeg);
        }
        self.stored.len() - before
    }

    fn turn(&mut self, looked: Direction, passing: &Rgb) {
        self.moving = true;
        self.seconds(1, passing, 1.0);
        self.moving = false;
        self.looked = looked;
    }

    fn told(&self) -> Vec<String> {
        let tell = |seen: &Seen| {
            let change = format!("+{:?} -{:?}", seen.change.appeared, seen.change.gone);
            format!("{} {change}", told::sentence(&told::detected(&seen.detections), seen.looked, &[]))
        };
        self.stored.iter().map(tell).collect()
    }
}

fn yolox() -> Option<Yolox> {
    let model = detector()?;
    let engine = engines().pop().expect("an engine");
    Some(Yolox::load(&engine, &model.name, &model.weights).expect("a detector"))
}

fn eye() -> Option<Eye> {
    Some(Eye::new(Some(Box::new(yolox()?)), &EyeSettings::default()).expect("an eye"))
}

#[test]
fn of_a_labelled_day_every_real_change_is_remembered_once_and_nothing_else() {
    let (Some(photos), Some(eye)) = (Photos::all(), eye()) else { return };
    let mut camera = Camera::new(eye);
    let person = with(wall(), &photos.astronaut, 20, 60, 660);
    let person_and_cup = with(person.clone(), &photos.coffee, 740, 340, 330);
    let cat = with(wall(), &photos.cat, 200, 80, 560);
    let motorcycle = with(wall(), &photos.motorcycle, 120, 20, 680);

    assert_eq!(camera.seconds(6, &wall(), 1.0), 0, "an empty wall");
    camera.seconds(10, &person, 1.0);
    let before = camera.stored.len();
    camera.seconds(3, &person_and_cup, 1.0);
    camera.seconds(8, &person, 1.0);
    let cups = camera.stored[before..].iter().filter(|seen| seen.change.appeared.contains(&"cup".into())).count();
    assert_eq!(cups, 1, "a cup of three seconds: {:#?}", camera.told());

    assert_eq!(camera.seconds(10, &person, 0.03), 0, "the dark");
    assert_eq!(camera.faults.len(), 20);
    assert!(camera.faults.iter().all(|fault| matches!(fault, PictureFault::Dark { .. })));
    assert_eq!(camera.seconds(6, &person, 1.0), 0, "the light goes on and all is as it was: {:#?}", camera.told());
    camera.seconds(10, &cat, 1.0);

    let before = (camera.stored.len(), camera.faults.len());
    let same = camera.take(&cat, 1.0).to_jpeg_at(85).unwrap();
    let frozen = (0..60).filter(|_| camera.give(same.clone()).fault.is_some()).count();
    assert_eq!(frozen, 40);
    let large = wall().resized(4056, 3040).unwrap().to_jpeg_at(85).unwrap();
    for bad in [&same[..same.len() / 2], &same[..200], &[], b"0 by 0", &large[..large.len() / 3]] {
        assert!(camera.give(bad.to_vec()).fault.is_some());
    }
    assert_eq!((camera.stored.len(), camera.faults.len()), (before.0, before.1 + 45), "{:#?}", camera.told());
    assert_eq!(camera.seconds(4, &cat, 1.0), 0, "the loop goes on");

    camera.turn(Direction::Left, &person);
    camera.seconds(8, &motorcycle, 1.0);
    camera.turn(Direction::Ahead, &person);
    assert_eq!(camera.seconds(8, &cat, 1.0), 0, "looking back: {:#?}", camera.told());
    camera.seconds(10, &wall(), 1.0);

    println!("{:#?}\n{:#?}", camera.told(), camera.eye.report());
    let real_changes = 6;
    assert!(camera.stored.len() <= real_changes + 1, "{:#?}", camera.told());
    // The garage to the left has its own things, some of them taken for a person.
    use Direction::{Ahead, Left};
    for (label, looked) in [("person", Ahead), ("cup", Ahead), ("cat", Ahead), ("motorcycle", Left)] {
        let appears = |seen: &&Seen| seen.looked == looked && seen.change.appeared.contains(&label.into());
        assert_eq!(camera.stored.iter().filter(appears).count(), 1, "{label}: {:#?}", camera.told());
    }
    let last = camera.stored.last().unwrap();
    assert!(last.labels.is_empty() && last.change.gone.contains(&"cat".into()), "{:#?}", camera.told());
}

#[test]
fn two_hundred_and_forty_jittered_pictures_of_one_scene_change_what_is_visible_at_most_twice() {
    let (Some(photos), Some(mut raw)) = (Photos::all(), yolox()) else { return };
    let far = with(wall(), &photos.coffee, 150, 500, 100);
    let far = with(with(far, &photos.cat, 500, 480, 120), &photos.astronaut, 800, 380, 150);
    let scenes = [
        ("small and far", with(far, &photos.motorcycle, 1000, 500, 110)),
        ("a cup", with(wall(), &photos.coffee, 150, 30, 660)),
        ("a person", with(wall(), &photos.astronaut, 20, 60, 660)),
        ("all", with(with(wall(), &photos.astronaut, 20, 60, 620), &photos.cat, 660, 60, 400)),
    ];
    for (name, scene) in scenes {
        let Some(eye) = eye() else { return };
        let mut camera = Camera::new(eye);
        let (mut flickers, mut before) = (0, None);
        for index in 0..240 {
            let rgb = camera.take(&scene, 1.0);
            // Every fourth picture: enough to see the flicker that is kept out.
            if index % 4 == 0 {
                let found = raw.detect(&rgb).unwrap();
                let sure = found.iter().filter(|found| found.score >= 0.5).map(|found| found.label.clone());
                let labels: BTreeSet<_> = sure.collect();
                flickers += u32::from(before.as_ref().is_some_and(|before| *before != labels));
                before = Some(labels);
            }
            camera.give(rgb.to_jpeg_at(85).unwrap());
        }
        println!("{name}: {flickers} changes of raw labels in 60 pictures; told: {:#?}", camera.told());
        // The first is what is there; each further one is a change that nobody made.
        assert!(camera.stored.len() <= 1 + 2, "{name}: {:#?}", camera.told());
    }
}

#[test]
fn the_change_gate_sees_through_noise_and_light_on_photographs() {
    let (Some(photos), Some(eye)) = (Photos::all(), eye()) else { return };
    let mut camera = Camera::new(eye);
    let scene = with(wall(), &photos.astronaut, 20, 60, 660);
    let mut gate = Gate::new(SignedDuration::from_secs(3600));
    let still = |camera: &mut Camera, gate: &mut Gate, scene: &Rgb| {
        let picture = camera.take(scene, 1.0);
        gate.judge(&picture, Direction::Ahead, false, camera.now)
    };
    assert!(matches!(still(&mut camera, &mut gate, &scene), Verdict::Look(_)));
    gate.detected();
    let cup = with(scene.clone(), &photos.coffee, 900, 500, 90);
    assert!(matches!(still(&mut camera, &mut gate, &cup), Verdict::Look(_)), "a small thing comes");
}

/// `cargo test --test house -- --ignored --nocapture time_of_a_glance`
#[test]
#[ignore = "a measurement that needs a quiet machine; `make measure` runs it"]
fn processor_time_of_a_glance() {
    let (Some(photos), Some(eye)) = (Photos::all(), eye()) else { return };
    let mut camera = Camera::new(eye);
    let scene = with(with(wall(), &photos.astronaut, 20, 60, 660), &photos.coffee, 740, 340, 330);
    let pictures: Vec<_> = (0..20).map(|_| camera.take(&scene, 1.0)).collect();
    let files: Vec<_> = pictures.iter().map(|picture| picture.to_jpeg_at(85).unwrap()).collect();
    println!("{} kB a file", files.iter().map(Vec::len).sum::<usize>() / files.len() / 1000);
    let measure = |name: &str, rounds: u32, work: &mut dyn FnMut(usize)| {
        let (before, since) = (processor_ms(), Instant::now());
        for round in 0..rounds {
            for index in 0..pictures.len() {
                work(index + round as usize * pictures.len());
            }
        }
        let count = rounds * pictures.len() as u32;
        let spent = (processor_ms() - before) / f64::from(count);
        println!("{name}: {spent:.2} ms of processor, {:.2?}", since.elapsed() / count);
    };
    let count = pictures.len();
    measure("decode 1280×720", 5, &mut |at| drop(picture::decode(&files[at % count]).unwrap()));
    let mut gate = Gate::new(SignedDuration::from_secs(5));
    measure("gate", 20, &mut |at| {
        gate.judge(&pictures[at % count], Direction::Ahead, false, camera.now);
        gate.detected();
    });
    measure("brightness", 20, &mut |at| assert!(pictures[at % count].brightness() > 20.0));
    measure("JPEG at 80", 5, &mut |at| drop(pictures[at % count].to_jpeg().unwrap()));
    let mut detected = 0;
    let mut glance = |name: &str, millis: i64| {
        measure(name, 5, &mut |at| {
            camera.now += SignedDuration::from_millis(millis);
            let encoded = files[at % count].clone();
            let picture = Picture { encoded, annotations: None, faces: None, at: camera.now, looked: Direction::Ahead };
            detected += u32::from(camera.eye.glance(&picture, false, camera.now).unwrap().detected);
        });
        println!("  of which detected: {}", std::mem::take(&mut detected));
    };
    glance("a glance every half second", 500);
    glance("a glance that detects", 5_000);
}
