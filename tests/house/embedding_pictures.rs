//! Pictures and words to vectors, at the real size: against Hugging Face's SigLIP with the same seeded weights, and, where
//! the real checkpoint is there, against what it must know.
//!
//! `tests/embedding/make_golden_siglip.py` made the reference; the weights are made again here, by the same counter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reachy_remembers::remember::embed::{EmbedError, Identity};
use reachy_remembers::see::image::{AtRest, KEEP_TEXT, SiglipEmbedder, SiglipFacts, SiglipFiles};
use reachy_remembers::see::{EmbedImage, Rgb};

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const TABLE: &str = "text_model.embeddings.token_embedding.weight";

#[derive(serde::Deserialize)]
struct Golden {
    pictures: Vec<[u32; 4]>,
    texts: Vec<String>,
    ids: Vec<Vec<usize>>,
    picture_vectors: Vec<Vec<f32>>,
    text_vectors: Vec<Vec<f32>>,
    shapes: BTreeMap<String, Vec<usize>>,
    first: BTreeMap<String, Vec<f32>>,
    first_pixels: Vec<u8>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding/siglip")
}

fn golden() -> Golden {
    serde_json::from_str(&fs::read_to_string(fixtures().join("golden.json")).unwrap()).unwrap()
}

/// SplitMix64's finaliser.
fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// FNV-1a, 64 bits.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |value, byte| (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// Middle and half width of a tensor's numbers, as in the script.
fn around_and_spread(name: &str) -> (f32, f32) {
    let ends = |end: &str| name.ends_with(end);
    if name.contains("norm") && ends("weight") {
        (1.0, 0.25)
    } else if ends("bias") || ends("patch_embedding.weight") {
        (0.0, 0.125)
    } else if ends("position_embedding.weight") {
        (0.0, 0.5)
    } else if ends("token_embedding.weight") || ends("probe") {
        (0.0, 1.0)
    } else if ends("fc2.weight") {
        (0.0, 1.0 / 32.0)
    } else if ends("q_proj.weight") || ends("k_proj.weight") {
        (0.0, 1.0 / 8.0)
    } else {
        (0.0, 1.0 / 16.0)
    }
}

fn numbers(name: &str, first: usize, count: usize) -> impl Iterator<Item = f32> {
    let (start, (around, spread)) = (seed(name), around_and_spread(name));
    (first as u64 + 1..=(first + count) as u64).map(move |place| {
        let number = mixed(start.wrapping_add(place.wrapping_mul(STEP))) >> 40;
        (number as f32 * (2.0_f32).powi(-23) - 1.0) * spread + around
    })
}

/// Coloured blocks under a gradient and a little noise, as in the script.
fn picture([width, height, seed, block]: [u32; 4]) -> Rgb {
    let start = u64::from(seed).wrapping_mul(STEP);
    let dice = |x: u32, y: u32, colour: u32| {
        mixed(start.wrapping_add((u64::from(y) << 24) + (u64::from(x) << 4) + u64::from(colour))) >> 56
    };
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            for colour in 0..3 {
                let gradient = if colour == 0 { x * 255 / (width - 1) } else { y * 255 / (height - 1) };
                let blocks = dice(x / block, y / block, colour);
                pixels.push(((4 * blocks + 3 * u64::from(gradient) + (dice(x, y, colour) >> 3)) / 8) as u8);
            }
        }
    }
    Rgb { width, height, pixels }
}

/// Writes the seeded checkpoint: 1.5 GB long, 0.7 GB on the disk, for of the token table only the rows that are asked
/// for are written.
fn write_checkpoint(path: &Path, golden: &Golden) {
    let mut header = serde_json::Map::new();
    let mut length = 0;
    for (name, shape) in &golden.shapes {
        let bytes = shape.iter().product::<usize>() * 4;
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [length, length + bytes] });
        header.insert(name.clone(), entry);
        length += bytes;
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(&header).unwrap();
    let body = 8 + header.len();
    let mut start = body;
    for (name, shape) in &golden.shapes {
        let count: usize = shape.iter().product();
        if name == TABLE {
            for id in golden.ids.iter().flatten().collect::<BTreeSet<_>>() {
                file.seek(SeekFrom::Start((start + id * 768 * 4) as u64)).unwrap();
                numbers(name, id * 768, 768).for_each(|number| file.write_all(&number.to_le_bytes()).unwrap());
            }
            file.seek(SeekFrom::Start((start + count * 4) as u64)).unwrap();
        } else {
            numbers(name, 0, count).for_each(|number| file.write_all(&number.to_le_bytes()).unwrap());
        }
        start += count * 4;
    }
    file.into_inner().unwrap().set_len((body + length) as u64).unwrap();
}

/// A picture as Pillow squeezed it.
fn squeezed(number: usize) -> Rgb {
    let square = image::open(fixtures().join(format!("pixels_{number}.png"))).unwrap().into_rgb8();
    Rgb { width: square.width(), height: square.height(), pixels: square.into_raw() }
}

fn files(folder: &Path, weights: PathBuf) -> SiglipFiles {
    SiglipFiles {
        weights,
        tokenizer: folder.join("tokenizer.json"),
        tokenizer_config: Some(folder.join("tokenizer_config.json")),
        preprocessor_config: folder.join("preprocessor_config.json"),
    }
}

fn identity(dimension: usize) -> Identity {
    Identity { model: "siglip2".into(), weights: "not hashed".into(), preprocessing: 1, dimension }
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    assert_eq!(left.len(), right.len());
    product(left, right) / (product(left, left) * product(right, right)).sqrt()
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt()
}

/// A line of `/proc/self/status`, in MB.
fn memory(line: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    found.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() / 1000
}

fn timed<T>(what: &str, call: impl FnOnce() -> T) -> T {
    // Resets the peak, so that it is this call's own.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let start = Instant::now();
    let result = call();
    let spent = start.elapsed().as_millis();
    println!("{what}: {spent} ms, resident {} MB, peak {} MB", memory("VmRSS"), memory("VmHWM"));
    result
}

#[test]
fn both_towers_agree_with_the_reference_and_the_text_tower_is_let_go() {
    let golden = golden();
    for (name, first) in &golden.first {
        assert_eq!(numbers(name, 0, first.len()).collect::<Vec<_>>(), *first, "the generator differs: {name}");
    }
    let pictures: Vec<Rgb> = golden.pictures.iter().map(|facts| picture(*facts)).collect();
    assert_eq!(pictures[0].pixels[..golden.first_pixels.len()], golden.first_pixels, "the picture differs");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let weights = folder.path().join("model.safetensors");
    timed("writing the checkpoint", || write_checkpoint(&weights, &golden));
    for (at_rest, least) in [(AtRest::F32, 0.999_99), (AtRest::Bf16, 0.999)] {
        let facts = SiglipFacts { at_rest, keep_text: KEEP_TEXT };
        let embedder =
            timed("looking", || SiglipEmbedder::new(files(&fixtures(), weights.clone()), facts, identity(768)))
                .unwrap();
        timed("loading the picture tower", || embedder.warm()).unwrap();
        for (number, (picture, expected)) in pictures.iter().zip(&golden.picture_vectors).enumerate() {
            // The reference's own square needs no squeezing: this is the tower alone.
            let vector = timed("a picture", || embedder.picture(&squeezed(number))).unwrap();
            let whole = cosine(&embedder.picture(picture).unwrap(), expected);
            let alike = cosine(&vector, expected);
            println!("{at_rest:?} {} by {}: {alike:.8}, squeezed here {whole:.8}", picture.width, picture.height);
            assert!(alike >= least && (length(&vector) - 1.0).abs() < 1e-5, "{alike}");
            assert!(whole >= 0.999, "{whole}");
        }
        assert!(!embedder.text_is_loaded(), "pictures need no text tower");
        let before = memory("VmRSS");
        for (text, expected) in golden.texts.iter().zip(&golden.text_vectors) {
            let vector = timed("a text (the first one loads the tower)", || embedder.words(text)).unwrap();
            let alike = cosine(&vector, expected);
            println!("{at_rest:?} {text:.20}: {alike:.8}");
            assert!(alike >= least && (length(&vector) - 1.0).abs() < 1e-5);
        }
        let during = memory("VmRSS");
        assert!(embedder.release_text() && !embedder.text_is_loaded() && !embedder.release_text());
        let after = memory("VmRSS");
        println!("{at_rest:?}: {before} MB without the text tower, {during} with it, {after} after it");
        assert!(during < after + 400 && after + 130 < during, "the memory goes back to the system");
    }
    // Shorter than one question takes: a tower that is at work is not idle.
    let facts = SiglipFacts { keep_text: Duration::from_millis(1), ..SiglipFacts::default() };
    let embedder = SiglipEmbedder::new(files(&fixtures(), weights), facts, identity(768)).unwrap();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| embedder.words(&golden.texts[0]));
        let mut was_there = 0;
        while !asked.is_finished() {
            was_there += usize::from(embedder.text_is_loaded());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(asked.join().unwrap().is_ok() && was_there >= 5, "let go during the question: {was_there}");
    });
    let start = Instant::now();
    while embedder.text_is_loaded() {
        assert!(start.elapsed() < Duration::from_secs(20), "an idle text tower stays in memory");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(cosine(&embedder.words("cup").unwrap(), &golden.text_vectors[1]) >= 0.999, "it comes back when asked");
}

/// Against Pillow's own result, kept as pictures.
#[test]
fn a_picture_is_squeezed_as_the_reference_does_it() {
    for number in 0..golden().pictures.len() {
        let expected = squeezed(number).pixels;
        let square = reachy_remembers::see::image::square(&picture(golden().pictures[number])).unwrap();
        assert_eq!(square.len(), expected.len());
        let worst = square.iter().zip(&expected).map(|(left, right)| left.abs_diff(*right)).max().unwrap();
        println!("picture {number}: at most {worst} of 255 off");
        assert!(worst <= 2, "picture {number}: {worst}");
    }
}

#[test]
fn a_checkpoint_of_another_model_is_refused_before_anything_is_loaded() {
    let text_model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding/tiny/model.safetensors");
    let new = |dimension| {
        SiglipEmbedder::new(files(&fixtures(), text_model.clone()), SiglipFacts::default(), identity(dimension))
    };
    assert!(new(768).is_err_and(|error| error.to_string().contains("it has no tensor vision_model.")));
    assert!(new(384).is_err_and(|error| error.to_string().contains("768 numbers, expected are 384")));
    let missing = SiglipFiles { tokenizer: "nowhere.json".into(), ..files(&fixtures(), text_model) };
    let refused = SiglipEmbedder::new(missing, SiglipFacts::default(), identity(768));
    assert!(refused.is_err_and(|error| matches!(&error, EmbedError::Load { path, .. } if path == "nowhere.json")));
}

/// With the real weights, plain colours are nearest to their own names.
#[test]
fn the_real_checkpoint_knows_its_colours() {
    let Ok(entries) = fs::read_dir(super::weights::folder()) else {
        println!("skipped: no models folder");
        return;
    };
    let found = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("siglip2") && path.join("model.safetensors").exists());
    let Some(folder) = found else {
        println!("skipped: no SigLIP 2 checkpoint in the models folder");
        return;
    };
    let weights = folder.join("model.safetensors");
    let embedder = SiglipEmbedder::new(files(&folder, weights), SiglipFacts::default(), identity(768)).unwrap();
    let colours = [("red", [220, 20, 20]), ("green", [20, 180, 20]), ("blue", [20, 20, 220])];
    let said: Vec<Vec<f32>> =
        colours.iter().map(|(name, _)| embedder.words(&format!("A plain {name} Picture")).unwrap()).collect();
    for (number, (name, colour)) in colours.iter().enumerate() {
        let plain = Rgb { width: 320, height: 240, pixels: colour.repeat(320 * 240) };
        let seen = embedder.picture(&plain).unwrap();
        let scores: Vec<f64> = said.iter().map(|said| cosine(&seen, said)).collect();
        println!("{name}: {scores:?}");
        let best = scores.iter().enumerate().max_by(|left, right| left.1.total_cmp(right.1)).unwrap().0;
        assert_eq!(best, number, "{name}: {scores:?}");
    }
}
