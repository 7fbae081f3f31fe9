use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;

use super::*;

/// What `tests/embedding/make_golden.py` wrote.
#[derive(Deserialize)]
struct Golden {
    texts: Vec<String>,
    max_tokens: usize,
    #[serde(default)]
    cls: Vec<Vec<f32>>,
    mean: Vec<Vec<f32>>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding")
}

fn golden(name: &str) -> Golden {
    let text = fs::read_to_string(fixtures().join(name)).expect("a committed file");
    serde_json::from_str(&text).expect("golden vectors")
}

fn files(folder: &Path) -> BertFiles {
    BertFiles {
        weights: folder.join("model.safetensors"),
        tokenizer: folder.join("tokenizer.json"),
        config: folder.join("config.json"),
    }
}

fn identity(model: &str, dimension: usize) -> Identity {
    Identity { model: model.into(), weights: "not hashed".into(), preprocessing: 1, dimension }
}

fn tiny(pooling: Pooling, prefix: &str) -> BertEmbedder {
    BertEmbedder::load(&files(&fixtures().join("tiny")), pooling, prefix, true, 48, identity("tiny", 32))
        .expect("loads")
}

fn minilm() -> Option<BertEmbedder> {
    let folder = std::env::var_os("REACHY_MODELS_FOLDER")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("models/cache"), PathBuf::from)
        .join("all-minilm-l6-v2");
    if !folder.join("model.safetensors").exists() {
        eprintln!("skipped: no MiniLM weights at {}", folder.display());
        return None;
    }
    Some(
        BertEmbedder::load(&files(&folder), Pooling::Mean, "", true, 256, identity("all-minilm-l6-v2", 384))
            .expect("loads"),
    )
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    assert_eq!(left.len(), right.len());
    product(left, right) / (product(left, left) * product(right, right)).sqrt()
}

fn agree(embedder: &BertEmbedder, texts: &[String], expected: &[Vec<f32>]) {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert!(texts.len() == expected.len() && !texts.is_empty());
    let together = embedder.stored(&texts).expect("vectors");
    for ((text, vector), expected) in texts.iter().zip(&together).zip(expected) {
        let alike = cosine(vector, expected);
        assert!(alike >= 0.9999, "{alike} in a batch for {text}");
        let length = cosine(vector, vector).sqrt() * vector.iter().map(|x| x * x).sum::<f32>().sqrt() as f64;
        assert!((length - 1.0).abs() < 1e-5, "length {length}");
        let alone = embedder.question(text).expect("a vector");
        assert!(cosine(&alone, expected) >= 0.9999, "alone: {text}");
    }
}

#[test]
fn cls_pooling_agrees_with_the_reference() {
    let golden = golden("golden_tiny.json");
    assert_eq!(golden.max_tokens, 48);
    agree(&tiny(Pooling::Cls, ""), &golden.texts, &golden.cls);
}

#[test]
fn mean_pooling_agrees_with_the_reference() {
    let golden = golden("golden_tiny.json");
    agree(&tiny(Pooling::Mean, ""), &golden.texts, &golden.mean);
}

#[test]
fn the_wrong_pooling_would_be_noticed() {
    let golden = golden("golden_tiny.json");
    let vector = tiny(Pooling::Mean, "").question(&golden.texts[0]).expect("a vector");
    assert!(cosine(&vector, &golden.cls[0]) < 0.99);
}

#[test]
fn minilm_agrees_with_the_reference() {
    let Some(embedder) = minilm() else { return };
    let golden = golden("golden_minilm.json");
    assert_eq!(golden.max_tokens, 256);
    agree(&embedder, &golden.texts, &golden.mean);
}

#[test]
fn the_prefix_is_put_before_questions_only() {
    let plain = tiny(Pooling::Cls, "");
    let prefixed = tiny(Pooling::Cls, "the key of ");
    let text = "my blue box";
    assert_eq!(prefixed.stored(&[text]).expect("vectors"), plain.stored(&[text]).expect("vectors"));
    let question = prefixed.question(text).expect("a vector");
    assert!(cosine(&question, &plain.question(text).expect("a vector")) < 0.999);
    assert!(cosine(&question, &plain.question("the key of my blue box").expect("a vector")) > 0.999_999);
}

#[test]
fn many_texts_keep_their_order_over_several_batches() {
    let embedder = tiny(Pooling::Mean, "");
    let texts: Vec<String> = (0..150).map(|number| format!("the box {}", "key ".repeat(number % 40 + 1))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let together = embedder.stored(&texts).expect("vectors");
    assert_eq!(together.len(), texts.len());
    for number in [0, 39, 75, 149] {
        let alone = embedder.stored(&[texts[number]]).expect("a vector");
        assert!(cosine(&together[number], &alone[0]) > 0.999_999, "text {number}");
    }
}

#[test]
fn words_after_the_last_token_make_no_difference() {
    let embedder = tiny(Pooling::Mean, "");
    let long = "key ".repeat(60);
    let longer = format!("{long} {}", "box ".repeat(40));
    let vectors = embedder.stored(&[&long, &longer]).expect("vectors");
    assert_eq!(vectors[0], vectors[1]);
}

#[test]
fn empty_text_is_refused_even_with_a_prefix() {
    let embedder = tiny(Pooling::Cls, "the key of ");
    assert!(matches!(embedder.question("  "), Err(EmbedError::Refused { .. })));
    assert!(matches!(embedder.stored(&["box", "\n"]), Err(EmbedError::Refused { .. })));
    assert!(embedder.stored(&[]).expect("no vectors").is_empty());
}

#[test]
fn facts_that_contradict_the_files_are_refused() {
    let files = files(&fixtures().join("tiny"));
    let load = |max_tokens, dimension| {
        BertEmbedder::load(&files, Pooling::Cls, "", true, max_tokens, identity("tiny", dimension))
    };
    assert!(load(48, 384).is_err_and(|error| error.to_string().contains("32 numbers, expected are 384")));
    assert!(load(65, 32).is_err_and(|error| error.to_string().contains("it takes 3 to 64")));
    assert!(load(2, 32).is_err());
}

#[test]
fn a_weight_file_that_is_cut_short_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(fixtures().join("tiny/model.safetensors")).expect("the fixture");
    let weights = folder.path().join("model.safetensors");
    let files = BertFiles { weights: weights.clone(), ..files(&fixtures().join("tiny")) };
    for kept in [0, 5, 100, whole.len() - 1] {
        fs::write(&weights, &whole[..kept]).expect("written");
        let loaded = BertEmbedder::load(&files, Pooling::Cls, "", true, 48, identity("tiny", 32));
        assert!(matches!(loaded, Err(EmbedError::Load { .. })), "{kept} bytes");
    }
}

#[test]
fn broken_weights_give_an_error_and_no_vector() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = fs::read(fixtures().join("tiny/model.safetensors")).expect("the fixture");
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let weights = folder.path().join("model.safetensors");
    fs::write(&weights, bytes).expect("written");
    let files = BertFiles { weights, ..files(&fixtures().join("tiny")) };
    let embedder =
        BertEmbedder::load(&files, Pooling::Cls, "", true, 48, identity("tiny", 32)).expect("loads all the same");
    assert!(matches!(embedder.question("box"), Err(EmbedError::Run { .. })));
}

/// Prints what a question costs; run alone, with `RAYON_NUM_THREADS=1` and `--ignored --nocapture`.
#[test]
#[ignore = "a measurement that needs a quiet machine; `make measure` runs it"]
fn ms_per_short_question() {
    let Some(embedder) = minilm() else { return };
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    for line in status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")) {
        eprintln!("{line}");
    }
    embedder.question("warm up").expect("a vector");
    let mut spent: Vec<f64> = (0..50)
        .map(|_| {
            let start = Instant::now();
            embedder.question("What did we talk about this morning?").expect("a vector");
            start.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    spent.sort_by(f64::total_cmp);
    eprintln!("{:.1} ms median, {:.1} ms fastest of {}", spent[spent.len() / 2], spent[0], spent.len());
}

#[test]
fn a_question_asked_of_several_stores_is_embedded_once_and_few_are_kept() {
    let embedder = tiny(Pooling::Mean, "");
    let first = embedder.question("the blue box").unwrap();
    assert_eq!(embedder.question("the blue box").unwrap(), first);
    assert_eq!(embedder.recent.lock().unwrap().len(), 1);
    for number in 0..10 {
        embedder.question(&format!("what is {number}")).unwrap();
    }
    assert_eq!(embedder.recent.lock().unwrap().len(), RECENT_QUESTIONS);
    assert_eq!(embedder.question("the blue box").unwrap(), first);
}
