//! Faces with the real network, by both engines, against what OpenCV finds and cuts out of the same portraits.
//!
//! The portraits are not part of the project: `python3 tests/faces/portraits.py FOLDER` brings them, and they are looked
//! for in `REACHY_PORTRAITS` or in `tmp/portraits` of the build folder. `tests/faces/make_golden.py` made the numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use reachy_remembers::config::ModelsConfig;
use reachy_remembers::models::{Colours, FaceDetectorModel, FaceFacts, FaceGates, Library};
use reachy_remembers::remember::embed::Identity;
use reachy_remembers::robot::{Direction, Picture};
use reachy_remembers::see::Rgb;
use reachy_remembers::see::eye::{Eye, EyeSettings};
use reachy_remembers::see::faces::{EmbedFace, FindFaces, Found, Sface, Watch, Yunet, align};
use reachy_remembers::see::infer::{Engine, InferError};
use reachy_remembers::see::picture;
use reachy_remembers::see::scene::overlap;

use crate::detecting::{engines, processor_ms, sha256};
use crate::weights;

/// Every so many pixels of a crop are in the golden file.
const EVERY: usize = 29;

#[derive(serde::Deserialize)]
struct Golden {
    weights: String,
    portraits: BTreeMap<String, Portrait>,
}

#[derive(serde::Deserialize)]
struct Portrait {
    name: String,
    working: [u32; 2],
    looked_at: [u32; 2],
    faces: Vec<Face>,
}

#[derive(serde::Deserialize)]
struct Face {
    place: [f32; 4],
    landmarks: [[f32; 2]; 5],
    score: f32,
    pixels: Vec<u8>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../faces/golden.json")).expect("the golden file")
}

/// The network of that name in the manifest, or `None` after saying why it is not there.
pub fn finder(name: &str) -> Option<FaceDetectorModel> {
    let config = ModelsConfig { folder: weights::folder(), face_detector: name.into(), ..ModelsConfig::default() };
    let library = Library::new(&config, Path::new("")).expect("a library");
    library.face_detector().map_err(|error| println!("skipped: {error}")).ok()
}

pub fn yunet(engine: &Engine, model: &FaceDetectorModel) -> Yunet {
    Yunet::load(engine, &model.name, &model.facts, &model.weights).expect("a face detector")
}

/// The portraits' folder, or `None` after saying why.
pub fn portraits() -> Option<PathBuf> {
    let folder = std::env::var_os("REACHY_PORTRAITS")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("portraits"), PathBuf::from);
    if folder.join("obama.jpg").is_file() {
        return Some(folder);
    }
    println!("skipped: no portraits; `python3 tests/faces/portraits.py {}` brings them", folder.display());
    None
}

/// A portrait as the eye sees it.
pub fn portrait(name: &str) -> Option<Rgb> {
    let file = fs::read(portraits()?.join(name)).expect("a portrait");
    Some(picture::decode(&file).expect("a picture"))
}

fn pixels_apart(one: &[[f32; 2]; 5], other: &[[f32; 2]; 5], size: [u32; 2]) -> f32 {
    let apart = |(one, other): (&[f32; 2], &[f32; 2])| {
        ((one[0] - other[0]) * size[0] as f32).hypot((one[1] - other[1]) * size[1] as f32)
    };
    one.iter().zip(other).map(apart).fold(0.0, f32::max)
}

/// Mean difference of the golden pixels, of 255.
fn difference(crop: &Rgb, golden: &[u8]) -> f32 {
    let mine: Vec<u8> = crop.pixels.chunks_exact(3).step_by(EVERY).flatten().copied().collect();
    assert_eq!(mine.len(), golden.len());
    let sum: u32 = mine.iter().zip(golden).map(|(one, other)| u32::from(one.abs_diff(*other))).sum();
    sum as f32 / golden.len() as f32
}

#[test]
fn both_engines_find_and_straighten_the_faces_that_opencv_finds_and_straightens() {
    let (Some(model), Some(folder)) = (finder("yunet-s-dynamic"), portraits()) else { return };
    let golden = golden();
    assert_eq!(sha256(&fs::read(&model.weights).expect("the weights")), golden.weights, "made with other weights");
    let mut compared = 0;
    for engine in engines() {
        let mut yunet = yunet(&engine, &model);
        assert_eq!(yunet.name(), format!("yunet-s-dynamic ({})", engine.name()));
        for (hash, expected) in &golden.portraits {
            let file = fs::read(folder.join(&expected.name)).expect("a portrait");
            assert_eq!(sha256(&file), *hash, "{} is another picture", expected.name);
            let seen = picture::decode(&file).expect("a picture");
            assert_eq!([seen.width, seen.height], expected.working, "{}", expected.name);
            let found = yunet.find(&seen).expect("faces");
            assert_eq!(found.len(), expected.faces.len(), "{}, {}", expected.name, engine.name());
            for (found, face) in found.iter().zip(&expected.faces) {
                let over = overlap(&found.place, &face.place);
                let apart = pixels_apart(&found.landmarks, &face.landmarks, expected.looked_at);
                let crop = align::crop(&seen, &found.landmarks).expect("a crop");
                let same = align::crop(&seen, &face.landmarks).expect("a crop");
                let (own, same) = (difference(&crop, &face.pixels), difference(&same, &face.pixels));
                println!(
                    "{} {}: overlap {over:.4}, landmarks {apart:.3} px, score {:+.4}, crop {own:.3}, from their \
                     landmarks {same:.3} of 255",
                    engine.name(),
                    expected.name,
                    found.score - face.score
                );
                assert!(over >= 0.99 && apart <= 0.5 && own <= 1.0 && same <= 1.0, "{}", expected.name);
                assert!((found.score - face.score).abs() <= 0.01);
                compared += 1;
            }
        }
    }
    assert!(compared >= 6);
}

/// A portrait whose face has that width, before a grey wall with a pattern, 1280 × 720.
pub fn before_a_wall(portrait: &Rgb, found: &Found, face_px: f32, at: (u32, u32)) -> Rgb {
    let scale = face_px / ((found.place[2] - found.place[0]) * portrait.width as f32);
    let side = |side: u32| ((side as f32 * scale).round() as u32).max(1);
    let small = portrait.resized(side(portrait.width), side(portrait.height)).expect("a small portrait");
    let mut room = Rgb { width: 1280, height: 720, pixels: Vec::new() };
    for y in 0..room.height {
        for x in 0..room.width {
            let inside = x.checked_sub(at.0).zip(y.checked_sub(at.1));
            match inside.filter(|(x, y)| *x < small.width && *y < small.height) {
                Some((x, y)) => {
                    let start = ((y * small.width + x) * 3) as usize;
                    room.pixels.extend(&small.pixels[start..start + 3]);
                }
                None => room.pixels.extend([(60 + x / 20 + y / 20 + (x / 37 + y / 53) % 3 * 12) as u8; 3]),
            }
        }
    }
    room
}

#[test]
fn a_face_of_forty_pixels_is_found_in_the_whole_camera_picture_by_both_engines() {
    let (Some(model), Some(_)) = (finder("yunet-s-dynamic"), portraits()) else { return };
    let mut of_each = Vec::new();
    for engine in engines() {
        let mut yunet = yunet(&engine, &model);
        let mut found = Vec::new();
        for name in ["obama.jpg", "obama2.jpg", "obama3.jpg", "biden.jpg"] {
            let portrait = portrait(name).expect("a portrait");
            let large = yunet.find(&portrait).expect("faces");
            for (index, at) in [(30, 20), (611, 333), (1001, 97)].into_iter().enumerate() {
                let room = before_a_wall(&portrait, &large[0], 40.0, at);
                let small = yunet.find(&room).expect("faces");
                let width = small.first().map_or(0.0, |face| (face.place[2] - face.place[0]) * 1280.0);
                assert_eq!(small.len(), 1, "{name}, place {index}, {}", engine.name());
                assert!((32.0..50.0).contains(&width), "{name}: {width} pixels");
                found.extend(small);
            }
        }
        of_each.push(found);
    }
    for other in &of_each[1..] {
        for (one, other) in of_each[0].iter().zip(other) {
            assert!(overlap(&one.place, &other.place) > 0.99 && (one.score - other.score).abs() < 0.005);
        }
    }
}

#[test]
fn the_network_for_squares_of_320_finds_near_faces() {
    let (Some(model), Some(_)) = (finder("yunet-s-320"), portraits()) else { return };
    for engine in engines() {
        let mut yunet = yunet(&engine, &model);
        for name in ["obama.jpg", "obama3.jpg", "biden.jpg"] {
            let found = yunet.find(&portrait(name).expect("a portrait")).expect("faces");
            assert_eq!(found.len(), 1, "{name}");
            let golden = golden().portraits.into_values().find(|portrait| portrait.name == name).expect("golden");
            assert!(overlap(&found[0].place, &golden.faces[0].place) > 0.7, "{name}");
        }
    }
}

#[test]
fn pictures_of_any_size_are_looked_at_and_files_of_other_networks_are_refused() {
    let Some(model) = finder("yunet-s-dynamic") else { return };
    for engine in engines() {
        let mut yunet = yunet(&engine, &model);
        for (width, height) in [(1, 1), (1, 5_000), (5_000, 1), (33, 31), (4_056, 3_040)] {
            let grey = Rgb { width, height, pixels: vec![90; (width * height * 3) as usize] };
            assert!(yunet.find(&grey).expect("a look").is_empty(), "{width} × {height}");
        }
        for (width, height, bytes) in [(0, 5, 0), (10, 10, 299), (u32::MAX, u32::MAX, 0)] {
            let none = Rgb { width, height, pixels: vec![0; bytes] };
            assert!(matches!(yunet.find(&none), Err(InferError::Input { .. })));
        }
        let refused = Yunet::load(&engine, "x", &model.facts, &stand_in_file());
        assert!(matches!(refused, Err(InferError::Load { .. })), "a face model finds no faces");
        let (identity, facts) = (identity(), facts());
        let refused = Sface::load(&engine, identity.clone(), &facts, &model.weights);
        assert!(matches!(refused, Err(InferError::Load { .. })), "a detector tells no faces apart");
        let other = FaceFacts { dimension: 512, ..facts };
        let refused = Sface::load(&engine, identity, &other, &stand_in_file()).expect_err("512 numbers");
        assert!(refused.to_string().contains("128 numbers instead of 512"), "{refused}");
    }
}

fn stand_in_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faces/stand_in.onnx")
}

/// What the stand-in network is known by: never what a real one is.
pub fn identity() -> Identity {
    let weights = sha256(&fs::read(stand_in_file()).expect("the stand-in"));
    Identity { model: "stand-in face network".into(), weights, preprocessing: 1, dimension: 128 }
}

pub fn facts() -> FaceFacts {
    // Two photographs are alike by 0.38 to 0.65 to it, of one man or of two; one photograph at other sizes by 0.79 to
    // 0.98.
    let gates = FaceGates { greet: 0.75, ask: 0.65, margin: 0.05 };
    FaceFacts { dimension: 128, colours: Colours::Rgb, scale: 1.0, mean: 0.0, preprocessing: 1, gates }
}

/// A network that goes the way of a real face model and recognises nothing.
pub fn stand_in(engine: &Engine) -> Sface {
    Sface::load(engine, identity(), &facts(), &stand_in_file()).expect("the stand-in")
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The face of a portrait, laid straight.
fn straight(name: &str) -> Option<Rgb> {
    let golden = golden().portraits.into_values().find(|portrait| portrait.name == name)?;
    align::crop(&portrait(name)?, &golden.faces[0].landmarks)
}

#[test]
fn both_engines_make_the_same_numbers_of_a_face() {
    if portraits().is_none() {
        return;
    }
    let crops: Vec<Rgb> =
        ["obama.jpg", "obama2.jpg", "biden.jpg"].iter().map(|name| straight(name).expect("a face")).collect();
    let of_each: Vec<Vec<Vec<f32>>> = engines()
        .iter()
        .map(|engine| {
            let mut stand_in = stand_in(engine);
            assert_eq!(stand_in.name(), format!("stand-in face network ({})", engine.name()));
            crops.iter().map(|crop| stand_in.embed(crop).expect("numbers")).collect()
        })
        .collect();
    for vectors in &of_each {
        for (vector, first) in vectors.iter().zip(&of_each[0]) {
            assert_eq!(vector.len(), 128);
            assert!((cosine(vector, vector) - 1.0).abs() < 1e-5 && cosine(vector, first) > 0.9999);
        }
        assert!(cosine(&vectors[0], &vectors[2]) < 0.9, "another face has other numbers");
    }
}

#[test]
fn a_face_that_is_turned_or_shrunk_keeps_its_numbers_once_it_is_laid_straight() {
    let (Some(model), Some(portrait)) = (finder("yunet-s-dynamic"), portrait("obama.jpg")) else { return };
    let engine = engines().remove(0);
    let (mut yunet, mut stand_in) = (yunet(&engine, &model), stand_in(&engine));
    let large = yunet.find(&portrait).expect("faces");
    let mut numbers = |room: &Rgb| {
        let found = yunet.find(room).expect("faces");
        assert_eq!(found.len(), 1);
        stand_in.embed(&align::crop(room, &found[0].landmarks).expect("a crop")).expect("numbers")
    };
    let whole = numbers(&portrait);
    let other = cosine(&whole, &numbers(&self::portrait("biden.jpg").expect("a portrait")));
    for face_px in [150.0, 100.0] {
        let alike = cosine(&whole, &numbers(&before_a_wall(&portrait, &large[0], face_px, (400, 30))));
        assert!(alike > other + 0.1, "{face_px} pixels: {alike}, another man's {other}");
    }
    let alike = cosine(&whole, &numbers(&leaning(&portrait, 20.0)));
    assert!(alike > other + 0.05, "leaning by 20°: {alike}, another man's {other}");
}

/// The picture turned about its middle, black where there is nothing.
pub fn leaning(picture: &Rgb, degrees: f32) -> Rgb {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (width, height) = (picture.width as f32, picture.height as f32);
    let mut pixels = Vec::with_capacity(picture.pixels.len());
    for y in 0..picture.height {
        for x in 0..picture.width {
            let (x, y) = (x as f32 - width / 2.0, y as f32 - height / 2.0);
            let (x, y) = (x * cos + y * sin + width / 2.0, y * cos - x * sin + height / 2.0);
            let inside = (0.0..width).contains(&x) && (0.0..height).contains(&y);
            let start = (y as usize * picture.width as usize + x as usize) * 3;
            pixels.extend(if inside { &picture.pixels[start..start + 3] } else { &[0; 3] });
        }
    }
    Rgb { pixels, ..*picture }
}

#[test]
fn the_eye_follows_a_face_and_gives_its_numbers_once_a_second() {
    let (Some(model), Some(portrait)) = (finder("yunet-s-dynamic"), portrait("obama.jpg")) else { return };
    let engine = engines().pop().expect("an engine");
    let mut finder = yunet(&engine, &model);
    let large = finder.find(&portrait).expect("faces");
    let watch = Watch::new(Box::new(finder), Some(Box::new(stand_in(&engine))));
    let mut eye = Eye::new(None, &EyeSettings::default()).expect("an eye").with_faces(watch);
    assert_eq!(eye.face_identity(), Some(&identity()));
    let mut now = Timestamp::from_second(1_700_000_000).expect("a time");
    let mut faces = Vec::new();
    for step in 0..20_u32 {
        now += SignedDuration::from_millis(200);
        // The face sways, so something always changes.
        let room = before_a_wall(&portrait, &large[0], 90.0, (400 + 9 * (step % 3), 100));
        let encoded = room.to_jpeg().expect("a JPEG");
        let picture = Picture { encoded, annotations: None, faces: None, at: now, looked: Direction::Ahead };
        faces.extend(eye.glance(&picture, false, now).expect("a glance").faces);
    }
    assert!((9..=14).contains(&faces.len()), "{} looks in four seconds", faces.len());
    assert!(faces.iter().all(|faces| faces.len() == 1 && faces[0].track == 1 && faces[0].quality.usable()));
    let vectors: Vec<_> = faces.iter().filter_map(|faces| faces[0].vector.as_ref()).collect();
    assert!((3..=5).contains(&vectors.len()), "{} vectors in four seconds", vectors.len());
    assert!(vectors.iter().all(|vector| cosine(vector, vectors[0]) > 0.75));
    let report = eye.report().faces;
    assert_eq!((report.failures, report.model.as_deref()), (0, Some("stand-in face network")));
    println!("{report:?}");
}

#[test]
fn the_real_face_model_knows_one_man_in_three_photographs_and_not_the_other() {
    let config = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    let library = Library::new(&config, Path::new("")).expect("a library");
    let model = match library.face() {
        Ok(model) => model,
        Err(error) => return println!("skipped: {error}"),
    };
    if portraits().is_none() {
        return;
    }
    for engine in engines() {
        let mut sface = Sface::load(&engine, model.identity.clone(), &model.facts, &model.weights).expect("a model");
        let mut numbers = |name: &str| sface.embed(&straight(name).expect("a face")).expect("numbers");
        let (first, other) = (numbers("obama.jpg"), numbers("biden.jpg"));
        for name in ["obama2.jpg", "obama3.jpg"] {
            let again = numbers(name);
            assert!(cosine(&first, &again) >= model.facts.gates.greet, "{name}: {}", cosine(&first, &again));
            assert!(cosine(&again, &other) < model.facts.gates.ask, "{name}: {}", cosine(&again, &other));
        }
    }
}

/// `cargo test --test house -- --ignored --nocapture processor_time_of_faces`
#[test]
#[ignore = "a measurement that needs a quiet machine; `make measure` runs it"]
fn processor_time_of_faces() {
    let (Some(model), Some(portrait)) = (finder("yunet-s-dynamic"), portrait("obama.jpg")) else { return };
    for engine in engines() {
        let (mut yunet, mut stand_in) = (yunet(&engine, &model), stand_in(&engine));
        let large = yunet.find(&portrait).expect("faces");
        let room = before_a_wall(&portrait, &large[0], 90.0, (400, 100));
        let found = yunet.find(&room).expect("faces");
        let crop = align::crop(&room, &found[0].landmarks).expect("a crop");
        let times = 200;
        let measure = |what: &str, run: &mut dyn FnMut()| {
            let (before, since) = (processor_ms(), Instant::now());
            (0..times).for_each(|_| run());
            let spent = (processor_ms() - before) / f64::from(times);
            println!("{}, {what}: {spent:.2} ms of processor, {:.2?}", engine.name(), since.elapsed() / times);
        };
        measure("a look for faces in 1280 × 720", &mut || drop(yunet.find(&room).expect("faces")));
        measure("laying straight", &mut || drop(align::crop(&room, &found[0].landmarks)));
        measure("the stand-in network", &mut || drop(stand_in.embed(&crop).expect("numbers")));
    }
}
