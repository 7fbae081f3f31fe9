//! Hearing with real weights and recorded sentences: sound → ear → Whisper.
//!
//! The sentences were made by `demo/record.py`. Weights are looked for in `REACHY_MODELS_FOLDER`, else in
//! `models/cache`; a test that does not find them says so and passes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use reachy_remembers::config::ListenConfig;
use reachy_remembers::listen::reject::Rejection;
use reachy_remembers::listen::sound::{SoundError, read_wav, to_16k_mono};
use reachy_remembers::listen::vad::Vad;
use reachy_remembers::listen::whisper::{HearError, Whisper, WhisperError};
use reachy_remembers::listen::{Ear, FRAME, Heard, RATE, Utterance};
use reachy_remembers::robot::Sound;
use rubato::{FftFixedIn, Resampler};

/// Two cores, and figures that mean something: one of these tests at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn models() -> PathBuf {
    std::env::var_os("REACHY_MODELS_FOLDER")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("models/cache"), PathBuf::from)
}

fn vad() -> Option<Vad> {
    let path = models().join("silero-vad/silero_vad_16k_op15.onnx");
    if !path.exists() {
        eprintln!("skipped: no voice-activity model at {}", path.display());
        return None;
    }
    Some(Vad::load(&path).unwrap())
}

/// A `ggml-*.bin` in a folder `whisper-*`; tiny.en first, because the figures here are its.
fn whisper_file() -> Option<PathBuf> {
    let first = models().join("whisper-tiny.en/ggml-tiny.en.bin");
    if first.exists() {
        return Some(first);
    }
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let named =
        |path: &Path, start: &str| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    let folders = inside(&models()).into_iter().filter(|path| named(path, "whisper-"));
    let found = folders
        .flat_map(|folder| inside(&folder))
        .find(|path| named(path, "ggml-") && path.extension().is_some_and(|extension| extension == "bin"));
    if found.is_none() {
        eprintln!("skipped: no speech model at {}", models().join("whisper-*/ggml-*.bin").display());
    }
    found
}

fn whisper() -> Option<Whisper> {
    let path = whisper_file()?;
    let english_only = path.to_string_lossy().contains(".en");
    Some(Whisper::start(&path, english_only, &ListenConfig::default(), 1).unwrap())
}

fn ear() -> Option<Ear> {
    Some(Ear::new(vad()?, &ListenConfig::default()).unwrap())
}

fn sounds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sounds")
}

/// Name and text of the recorded sentences.
fn sentences() -> BTreeMap<String, String> {
    let table: toml::Table = std::fs::read_to_string(sounds().join("sentences.toml")).unwrap().parse().unwrap();
    let word = |sentence: &toml::Value, key: &str| sentence[key].as_str().unwrap().to_owned();
    table["sentence"].as_array().unwrap().iter().map(|one| (word(one, "name"), word(one, "text"))).collect()
}

fn recorded(name: &str) -> Sound {
    read_wav(&sounds().join(format!("{name}.wav"))).unwrap()
}

fn start() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().unwrap()
}

/// A quiet room: noise at −80 dB, the same every time.
fn room(seconds: f32) -> Vec<f32> {
    let mut noise = Noise(1);
    (0..(seconds * RATE as f32) as usize).map(|_| noise.next() * 1e-4).collect()
}

/// Feeds a sound in reads of a tenth of a second.
fn listen(ear: &mut Ear, sound: &Sound) -> Vec<Utterance> {
    let read = sound.rate as usize / 10 * usize::from(sound.channels);
    let mut utterances = Vec::new();
    for (n, samples) in sound.samples.chunks(read).enumerate() {
        let part = Sound { samples: samples.to_vec(), ..*sound };
        let at = start() + SignedDuration::from_millis(100 * n as i64);
        utterances.extend(ear.push(&part, at).unwrap());
    }
    utterances.extend(ear.end().unwrap());
    utterances
}

fn mono(samples: Vec<f32>) -> Sound {
    Sound { samples, rate: RATE, channels: 1 }
}

fn utterance(samples: Vec<f32>) -> Utterance {
    Utterance { samples, started_at: start(), ended_at: start() }
}

/// Lower case, letters and digits only, digits as words. No spelling is changed: the sentences have one only.
fn words(text: &str) -> Vec<String> {
    const NUMBERS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    text.to_lowercase()
        .split_whitespace()
        .map(|word| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>())
        .filter(|word| !word.is_empty())
        .map(|word| word.parse::<usize>().ok().and_then(|n| NUMBERS.get(n)).map_or(word, |name| (*name).to_owned()))
        .collect()
}

/// Words to insert, remove or change.
fn errors(wanted: &[String], heard: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (n, wanted) in wanted.iter().enumerate() {
        let before = row.clone();
        row[0] = n + 1;
        for (m, heard) in heard.iter().enumerate() {
            row[m + 1] = (before[m + 1] + 1).min(row[m] + 1).min(before[m] + usize::from(wanted != heard));
        }
    }
    row[heard.len()]
}

/// Processor time of this process in seconds; other tests that run beside count in.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Hears every recorded sentence in a quiet room, after `change`; gives errors and words.
fn word_error_rate(ear: &mut Ear, whisper: &Whisper, change: impl Fn(Sound) -> Sound) -> (usize, usize) {
    let (mut wrong, mut all) = (0, 0);
    for (name, text) in sentences() {
        let spoken = recorded(&name);
        let seconds = spoken.samples.len() as f64 / f64::from(RATE);
        let samples = [room(1.0), spoken.samples, room(1.2)].concat();
        let found = listen(ear, &change(mono(samples)));
        let [one] = &found[..] else { panic!("{name}: {} utterances", found.len()) };
        let (began, ended) = (one.started_at.duration_since(start()), one.ended_at.duration_since(start()));
        assert!((0.95..1.5).contains(&began.as_secs_f64()), "{name} began at {began:?}");
        assert!((seconds + 1.0 - ended.as_secs_f64()).abs() < 0.45, "{name} of {seconds} s ended at {ended:?}");
        let before = processor_seconds();
        let heard = whisper.transcribe_blocking(one.clone()).unwrap();
        let spent = processor_seconds() - before;
        let errors = errors(&words(&text), &words(&heard.text));
        println!(
            "{name}: {seconds:.2} s, {spent:.2} CPU-s, {} ms, confidence {:.2}, {errors} errors: {}",
            heard.transcribed_in_ms, heard.confidence, heard.text
        );
        wrong += errors;
        all += words(&text).len();
    }
    (wrong, all)
}

#[test]
fn ten_sentences_are_heard_word_for_word() {
    let _alone = alone();
    let (Some(mut ear), Some(whisper)) = (ear(), whisper()) else { return };
    let (wrong, all) = word_error_rate(&mut ear, &whisper, |sound| sound);
    println!("word error rate {:.3} ({wrong} of {all})", wrong as f64 / all as f64);
    assert!(wrong as f64 <= 0.06 * all as f64, "{wrong} of {all} words");
}

#[test]
fn the_same_sentences_are_heard_at_44_khz_in_stereo() {
    let _alone = alone();
    let (Some(mut ear), Some(whisper)) = (ear(), whisper()) else { return };
    let (wrong, all) = word_error_rate(&mut ear, &whisper, |sound| {
        let mut resampler = FftFixedIn::<f32>::new(RATE as usize, 44_100, 1600, 1, 1).unwrap();
        let chunks = sound.samples.chunks_exact(1600);
        let converted: Vec<f32> =
            chunks.flat_map(|chunk| resampler.process(&[chunk], None).unwrap().remove(0)).collect();
        Sound {
            samples: converted.into_iter().flat_map(|sample| [sample, sample]).collect(),
            rate: 44_100,
            channels: 2,
        }
    });
    println!("word error rate {:.3} ({wrong} of {all})", wrong as f64 / all as f64);
    assert!(wrong as f64 <= 0.06 * all as f64, "{wrong} of {all} words");
}

#[test]
fn two_sentences_with_a_pause_are_two_utterances() {
    let _alone = alone();
    let (Some(mut ear), Some(whisper)) = (ear(), whisper()) else { return };
    let (first, second) = (recorded("rain").samples, recorded("who").samples);
    let found = listen(&mut ear, &mono([room(0.5), first, room(1.0), second, room(1.0)].concat()));
    assert_eq!(found.len(), 2);
    let texts: Vec<String> =
        found.into_iter().map(|one| whisper.transcribe_blocking(one).unwrap().text.to_lowercase()).collect();
    assert!(texts[0].contains("raining") && texts[1].contains("who was here"), "{texts:?}");
}

#[test]
fn the_voice_activity_model_agrees_with_onnx_runtime() {
    let _alone = alone();
    let Some(mut vad) = vad() else { return };
    let golden: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(sounds().join("golden.json")).unwrap()).unwrap();
    let names = golden["sentences"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let samples: Vec<f32> = names.flat_map(|name| [recorded(name).samples, vec![0.0; 16_000]].concat()).collect();
    let began = Instant::now();
    let found: Vec<f32> = samples.chunks_exact(FRAME).map(|frame| vad.probability(frame).unwrap()).collect();
    let millis = began.elapsed().as_secs_f64() * 1000.0 / found.len() as f64;
    let wanted = golden["probabilities"].as_array().unwrap();
    assert_eq!(found.len(), wanted.len());
    let most = found
        .iter()
        .zip(wanted)
        .map(|(found, wanted)| (f64::from(*found) - wanted.as_f64().unwrap()).abs())
        .fold(0.0, f64::max);
    println!("{} frames, {millis:.3} ms a frame, greatest difference {most:.2e}", found.len());
    assert!(most <= 2e-5, "{most}");
}

/// Seeded noise in −1…1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

/// Twenty seconds of a sound that is no speech, its loudest sample 1.
fn nuisance(kind: &str, seed: u64) -> Vec<f32> {
    let mut noise = Noise(seed);
    let (mut low, mut slow, mut pitch) = (0.0, 0.0, 0.0_f32);
    let turn = |hz: f32, t: f32| (std::f32::consts::TAU * hz * t).sin();
    let samples: Vec<f32> = (0..20 * RATE)
        .map(|n| {
            let t = n as f32 / RATE as f32;
            match kind {
                "fan" => {
                    low += 0.08 * (noise.next() - low);
                    slow += 0.01 * (noise.next() - slow);
                    low + 2.0 * slow * (1.0 + 0.2 * turn(3.1, t))
                }
                "motor" => (1..12).map(|k| turn(50.0 * k as f32 * (1.0 + 0.002 * turn(0.3, t)), t) / k as f32).sum(),
                "music" => {
                    let beat = n % (RATE * 2 / 5);
                    if beat == 0 {
                        let step = ((noise.next() + 1.0) * 2.5) as usize;
                        pitch = 220.0 * [1.0, 1.125, 1.25, 1.5, 1.667][step.min(4)];
                    }
                    let fade = (-(beat as f32) / 3000.0).exp();
                    (turn(pitch, t) + 0.5 * turn(2.0 * pitch, t) + 0.25 * turn(3.0 * pitch, t)) * fade
                        + 0.3 * turn(110.0, t)
                }
                "clicks" => {
                    if noise.next() > 0.9998 {
                        low = noise.next()
                    }
                    low *= 0.97;
                    low
                }
                "silence" => 0.0,
                _ => noise.next(),
            }
        })
        .collect();
    let peak = samples.iter().fold(1e-9_f32, |peak, sample| peak.max(sample.abs()));
    samples.iter().map(|sample| sample / peak).collect()
}

/// Six kinds at three levels, twenty seconds each: six minutes.
fn nuisances() -> impl Iterator<Item = (String, Vec<f32>)> {
    let kinds = ["fan", "motor", "music", "clicks", "silence", "hiss"];
    kinds.into_iter().flat_map(|kind| {
        [0.01_f32, 0.1, 0.7].into_iter().enumerate().map(move |(seed, level)| {
            let samples = nuisance(kind, 100 + seed as u64).iter().map(|sample| sample * level).collect();
            (format!("{kind} at {level}"), samples)
        })
    })
}

#[test]
fn six_minutes_of_noise_are_heard_as_nothing() {
    let _alone = alone();
    let (Some(mut ear), Some(whisper)) = (ear(), whisper()) else { return };
    let (mut utterances, mut seconds) = (0, 0);
    for (name, samples) in nuisances() {
        seconds += samples.len() / RATE as usize;
        for one in listen(&mut ear, &mono(samples)) {
            utterances += 1;
            let result = whisper.transcribe_blocking(one);
            assert!(matches!(result, Err(HearError::Rejected(_))), "{name}: {result:?}");
        }
    }
    println!("{seconds} s of noise, {utterances} utterances, nothing heard");
    assert_eq!(seconds, 360);
}

#[test]
fn noise_that_passes_for_speech_is_rejected_by_what_whisper_makes_of_it() {
    let _alone = alone();
    let Some(whisper) = whisper() else { return };
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (name, samples) in nuisances() {
        for window in samples.chunks(10 * RATE as usize) {
            match whisper.transcribe_blocking(utterance(window.to_vec())) {
                Err(HearError::Rejected(rejection)) => {
                    let reason = format!("{rejection:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
                    *reasons.entry(reason).or_default() += 1;
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    println!("{reasons:?}");
}

#[test]
fn a_stop_ends_the_transcription_at_once_and_the_next_one_works() {
    let _alone = alone();
    let Some(whisper) = whisper() else { return };
    let whisper = Arc::new(whisper);
    let long: Vec<f32> =
        sentences().keys().flat_map(|name| recorded(name).samples).take(28 * RATE as usize / 2).collect();
    for delay in [1, 50, 200] {
        let busy = Arc::clone(&whisper);
        let long = long.clone();
        let thread = std::thread::spawn(move || busy.transcribe_blocking(utterance(long)));
        std::thread::sleep(Duration::from_millis(delay));
        let stopped = Instant::now();
        whisper.abort();
        let result = thread.join().unwrap();
        println!("stopped after {delay} ms, returned {} ms later", stopped.elapsed().as_millis());
        assert!(matches!(result, Err(HearError::Aborted)), "{result:?}");
        assert!(stopped.elapsed() < Duration::from_millis(200));
    }
    let heard = whisper.transcribe_blocking(utterance(recorded("rain").samples)).unwrap();
    assert!(heard.text.contains("raining"), "{}", heard.text);
}

#[test]
fn a_slow_recogniser_takes_two_utterances_and_refuses_the_third() {
    let _alone = alone();
    let Some(whisper) = whisper() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let one = || utterance(recorded("rain").samples);
    runtime.block_on(async {
        let (first, second, third) =
            tokio::join!(whisper.transcribe(one()), whisper.transcribe(one()), whisper.transcribe(one()));
        assert!(matches!(third, Err(HearError::Busy)), "{third:?}");
        for result in [first, second] {
            assert!(matches!(&result, Ok(Heard { text, .. }) if text.contains("raining")), "{result:?}");
        }
        let gone = tokio::time::timeout(Duration::from_millis(50), whisper.transcribe(one())).await;
        let began = Instant::now();
        assert!(gone.is_err(), "it takes longer than 50 ms");
        assert!(whisper.transcribe(one()).await.is_ok(), "a caller that went away leaves the place free");
        println!("after an abandoned request the next one took {} ms", began.elapsed().as_millis());
    });
}

#[test]
fn ten_minutes_of_talk_that_nobody_takes_hold_one_utterance_at_most() {
    let _alone = alone();
    let Some(mut ear) = ear() else { return };
    let talk: Vec<f32> = sentences().keys().flat_map(|name| recorded(name).samples).collect();
    let read = RATE as usize / 10;
    let mut most = 0;
    for n in 0..6_000_usize {
        let from = n * read % (talk.len() - read);
        let part = mono(talk[from..from + read].to_vec());
        drop(ear.push(&part, start() + SignedDuration::from_millis(100 * n as i64)).unwrap());
        most = most.max(ear.held());
    }
    println!("ten minutes: at most {most} samples held, {} utterances", ear.report().utterances);
    assert!(most <= 15 * RATE as usize + FRAME);
    assert!(ear.report().utterances >= 40);
}

#[test]
fn empty_short_and_broken_sound_is_an_error_and_no_crash() {
    let _alone = alone();
    assert!(matches!(to_16k_mono(&mono(vec![])), Err(SoundError::Empty)));
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.wav");
    let bytes = std::fs::read(sounds().join("rain.wav")).unwrap();
    std::fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    let error = read_wav(&broken).unwrap_err();
    assert!(error.to_string().contains("broken.wav") && error.to_string().contains("too early"), "{error}");
    let Some(whisper) = whisper() else { return };
    for length in [0, 1, 1599] {
        let result = whisper.transcribe_blocking(utterance(vec![0.1; length]));
        assert!(matches!(result, Err(HearError::TooShort { .. })), "{length}: {result:?}");
    }
    let shortest = whisper.transcribe_blocking(utterance(vec![0.0; 1600]));
    assert!(matches!(shortest, Err(HearError::Rejected(Rejection::Empty))), "{shortest:?}");
}

#[test]
fn a_damaged_or_mistaken_speech_model_is_refused() {
    let _alone = alone();
    let Some(path) = whisper_file() else { return };
    let english = path.to_string_lossy().contains(".en");
    let mistaken = Whisper::start(&path, !english, &ListenConfig::default(), 1).err().unwrap();
    assert!(matches!(mistaken, WhisperError::OtherLanguages { .. }), "{mistaken}");
    for language in ["de", "xx", "", "e\0n"] {
        let config = ListenConfig { language: language.into(), ..ListenConfig::default() };
        if english || language != "de" {
            let error = Whisper::start(&path, english, &config, 1).err().unwrap();
            assert!(matches!(error, WhisperError::Language { .. }), "{error}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("ggml-half.bin");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let error = Whisper::start(&half, english, &ListenConfig::default(), 1).err().unwrap();
    assert!(matches!(error, WhisperError::NoModel { .. }), "{error}");
}
