//! The parts of the robot, each made from the config, each with its own way to be missing.
//!
//! The service, the typed conversation and `doctor` are all put together from these, so they cannot differ.

mod people;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::watch;

use crate::act::{ActError, Motion};
use crate::clock::Clock;
use crate::config::{BodyKind, Config};
use crate::health::Health;
use crate::listen::Ear;
use crate::listen::ear::EarError;
use crate::listen::vad::{Vad, VadError};
use crate::listen::whisper::{Whisper, WhisperError};
use crate::models::{
    FaceGates, Library, ModelError, Pooling as ModelPooling, SpeechModel, TextModel, VoiceActivityModel,
};
use crate::remember::embed::bert::{BertEmbedder, BertFiles, Pooling};
use crate::remember::embed::{EmbedError, EmbedText};
use crate::remember::journal::{Journal, JournalError, Left};
pub use people::{Acquaintances, acquaintances, people_settings};

use crate::remember::knowledge::{self, Knowledge};
use crate::remember::people::PeopleOpenError;
use crate::remember::store::{FolderError, Lock, Opened, hold_folder};
use crate::remember::{Memory, OpenError, Settings};
use crate::robot::Robot;
use crate::robot::day::{Day, DayError};
use crate::robot::sdk::Sdk;
use crate::robot::sim::Sim;
use crate::see::detect::Yolox;
use crate::see::eye::{Eye, EyeError, EyeSettings};
use crate::see::faces::{Sface, Watch, Yunet, stand_in};
use crate::see::image::{SiglipEmbedder, SiglipFacts, SiglipFiles};
use crate::see::infer::{Engine, Places};
use crate::see::sight::Sight;
use crate::see::{Detect, EmbedImage};
use crate::think::brain::{Brain, BrainError};
use crate::think::brains::{Brains, LaptopSeat};
use crate::think::conversation::Conversation;
use crate::think::hands::Hands;
use crate::think::http::HttpBrain;
use crate::think::offline::{OfflineBrain, OfflineError};
use crate::think::routed::Routed;
use crate::think::window::Limits;
use crate::think::words;

/// Why a part could not be made; each sentence names the part and what to do.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("the time zone `{zone}` in [robot] is not known: {why}")]
    TimeZone { zone: String, why: String },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Memory(#[from] OpenError),
    #[error(transparent)]
    People(#[from] PeopleOpenError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Day(#[from] DayError),
    #[error(transparent)]
    Ear(#[from] EarError),
    #[error(transparent)]
    VoiceActivity(#[from] VadError),
    #[error(transparent)]
    Speech(#[from] WhisperError),
    #[error(transparent)]
    Offline(#[from] OfflineError),
    #[error(transparent)]
    Laptop(#[from] BrainError),
    #[error(transparent)]
    Eye(#[from] EyeError),
    #[error("the key file {} in [think] cannot be read: {source}", path.display())]
    Key { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Act(#[from] ActError),
    #[error("the signals that stop the service cannot be watched: {0}")]
    Signals(std::io::Error),
    #[error("a part died while it was being made")]
    Died,
}

/// Pictures as alike as this are one scene to a sample of a day, where the config does not say. Measured with SigLIP 2:
/// pictures of one room 0.90 to 0.97, of other scenes 0.61 to 0.79.
const NEAR_DUPLICATE: f32 = 0.97;

/// The laptop's last address, beside the memory.
const LAPTOP_ADDRESS: &str = "laptop-address.json";

/// A clock in the house's time zone.
///
/// # Errors
/// [`PartError::TimeZone`].
pub fn clock(config: &Config) -> Result<Clock, PartError> {
    let zone = &config.robot.time_zone;
    if zone.is_empty() {
        return Ok(Clock::system());
    }
    TimeZone::get(zone)
        .map(Clock::system_in)
        .map_err(|error| PartError::TimeZone { zone: zone.clone(), why: error.to_string() })
}

/// The weight files as the config wants them.
///
/// # Errors
/// [`PartError::Model`].
pub fn library(config: &Config) -> Result<Library, PartError> {
    Ok(Library::new(&config.models, Path::new(""))?)
}

/// The text model, ready to embed.
pub struct Text {
    pub embedder: Arc<dyn EmbedText>,
    pub model: TextModel,
}

/// Loads the text model. Blocks for about a second.
///
/// # Errors
/// [`PartError`] when it is not there or cannot be loaded.
pub fn load_text(config: &Config) -> Result<Text, PartError> {
    let model = library(config)?.text()?;
    let files =
        BertFiles { weights: model.weights.clone(), tokenizer: model.tokenizer.clone(), config: model.config.clone() };
    let pooling = match model.pooling {
        ModelPooling::Cls => Pooling::Cls,
        ModelPooling::Mean => Pooling::Mean,
    };
    let identity = model.identity.clone();
    let embedder =
        BertEmbedder::load(&files, pooling, &model.question_prefix, model.normalise, model.max_tokens, identity)?;
    Ok(Text { embedder: Arc::new(embedder), model })
}

/// How the memory is opened with this text model.
#[must_use]
pub fn memory_settings(config: &Config, text: &Text) -> Settings {
    let remember = &config.remember;
    Settings {
        folder: remember.folder.clone(),
        exchange_gate: remember.exchange_gate.unwrap_or(text.model.exchange_gate),
        frame_gate: config.see.frame_gate.unwrap_or(text.model.frame_gate),
        near_duplicate: config.see.near_duplicate.unwrap_or(NEAR_DUPLICATE),
        limit: remember.limit as usize,
        min_free_bytes: remember.min_free_mb * 1_000_000,
        search_threads: config.limits.search_threads as usize,
    }
}

/// Loads the text model and opens the memory with it.
///
/// # Errors
/// [`PartError`].
pub async fn open_memory(config: &Config, clock: &Clock) -> Result<Opened, PartError> {
    let (config, now) = (config.clone(), clock.now());
    blocking(move || {
        let text = load_text(&config)?;
        Ok(Memory::open(memory_settings(&config, &text), text.embedder, now)?)
    })
    .await
}

/// The robot and its clock: a Reachy Mini, which is looked for from now on; the simulated robot and the clock that its day
/// moves; or the machine's clock in a silent room.
///
/// # Errors
/// [`PartError::Day`], [`PartError::TimeZone`].
pub fn robot(config: &Config, part: usize) -> Result<(Arc<dyn Robot>, Clock), PartError> {
    if config.robot.body == BodyKind::Sdk {
        let clock = clock(config)?;
        return Ok((Arc::new(Sdk::start((&config.robot).into(), clock.clone())), clock));
    }
    if config.robot.day.as_os_str().is_empty() {
        let clock = clock(config)?;
        return Ok((Arc::new(Sim::silent_room(clock.clone())), clock));
    }
    let day = Day::load(&config.robot.day)?;
    day.check_files()?;
    let clock = day.clock(part)?;
    Ok((Arc::new(Sim::new(&day, part, clock.clone())?), clock))
}

/// Everything that hears.
pub struct Hearing {
    pub ear: Ear,
    pub whisper: Whisper,
    pub speech: SpeechModel,
    pub voice_activity: VoiceActivityModel,
}

/// Loads the models that hear. Blocks for tenths of a second.
///
/// # Errors
/// [`PartError`] when one is not there or cannot be loaded.
pub fn load_hearing(config: &Config) -> Result<Hearing, PartError> {
    let library = library(config)?;
    let (speech, voice_activity) = (library.speech()?, library.voice_activity()?);
    let ear = Ear::new(Vad::load(&voice_activity.weights)?, &config.listen)?;
    let threads = whisper_threads(config.limits.whisper_threads);
    let whisper = Whisper::start(&speech.weights, speech.english_only, &config.listen, threads)?;
    Ok(Hearing { ear, whisper, speech, voice_activity })
}

/// Threads for Whisper: as many as allowed, and one core left for everybody else. Its threads wait for one another
/// actively, so one too many costs more than it gives (measured: 40 s instead of 1 s for an utterance, with three
/// threads on two busy cores).
fn whisper_threads(allowed: u32) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
    allowed.min(cores.saturating_sub(1)).max(1)
}

/// Everything that sees.
pub struct Seeing {
    pub sight: Sight,
    /// What its faces' likenesses mean; `None` where its faces have no vectors.
    pub gates: Option<FaceGates>,
    /// Which detector and which engine, or what stands in for one.
    pub in_use: String,
}

/// Loads what sees. A missing detector is no error: the simulated camera's annotations stand in, and a real camera's
/// pictures are looked at when there is one. Blocks for tenths of a second.
///
/// # Errors
/// [`PartError`] for settings that the owner must correct.
pub fn load_seeing(config: &Config) -> Result<Seeing, PartError> {
    let library = library(config)?;
    let (detector, in_use) = match load_detector(config, &library) {
        Ok((detector, in_use)) => (Some(Box::new(detector) as Box<dyn Detect>), in_use),
        Err(why) => (None, format!("no detector ({why}); the simulated camera's annotations stand in")),
    };
    let see = &config.see;
    let settings = EyeSettings {
        stable_for_s: see.stable_for_s,
        forget_after_s: see.forget_after_s,
        frames_per_second_changing: see.frames_per_second_changing,
        seconds_between_quiet: see.seconds_between_quiet,
        faces_per_second: see.faces_per_second,
        // The simulated camera repeats its files.
        frozen_after_s: match config.robot.body {
            BodyKind::Sim => None,
            BodyKind::Sdk => EyeSettings::default().frozen_after_s,
        },
    };
    let (eye, faces) = (Eye::new(detector, &settings)?, load_faces(config)?);
    let in_use = format!("{in_use}; {}", faces.in_use);
    let eye = match faces.watch {
        Some(watch) => eye.with_faces(watch),
        None => eye,
    };
    Ok(Seeing { sight: Sight::new(eye), gates: faces.gates, in_use })
}

/// Everything that sees faces.
pub struct Faces {
    /// `None` where nothing can find faces, or the owner wants none found.
    pub watch: Option<Watch>,
    /// What its likenesses mean; `None` where its faces have no vectors.
    pub gates: Option<FaceGates>,
    /// Which models, or why there are none.
    pub in_use: String,
}

/// Loads what sees faces; for a day that marks faces, the stand-in. A missing model is no error: without one that finds
/// faces none are seen, without one that tells them apart nobody is known by theirs. Blocks for tenths of a second.
///
/// # Errors
/// [`PartError`] for settings that the owner must correct.
pub fn load_faces(config: &Config) -> Result<Faces, PartError> {
    let without = |in_use: String| Faces { watch: None, gates: None, in_use };
    if !config.see.faces {
        return Ok(without("faces are switched off in [see]".into()));
    }
    let day = &config.robot.day;
    if !day.as_os_str().is_empty() && Day::load(day)?.marks_faces() {
        let in_use = "faces: the day's own marks stand in for both models".into();
        return Ok(Faces { watch: Some(Watch::stand_in()), gates: Some(stand_in::gates()), in_use });
    }
    let library = library(config)?;
    let engine = match engine(config, &library) {
        Ok(engine) => engine,
        Err(why) => return Ok(without(format!("no faces are seen ({why})"))),
    };
    let finder = library.face_detector().map_err(|error| error.to_string()).and_then(|model| {
        let finder = Yunet::load(&engine, &model.name, &model.facts, &model.weights);
        finder.map(|finder| (finder, model.in_use)).map_err(|error| error.to_string())
    });
    let (finder, found_by) = match finder {
        Ok(loaded) => loaded,
        Err(why) => return Ok(without(format!("no faces are seen ({why})"))),
    };
    let embedder = library.face().map_err(|error| error.to_string()).and_then(|model| {
        let embedder = Sface::load(&engine, model.identity, &model.facts, &model.weights);
        embedder.map(|embedder| (embedder, model.facts.gates, model.in_use)).map_err(|error| error.to_string())
    });
    let finder = Box::new(finder);
    Ok(match embedder {
        Ok((embedder, gates, known_by)) => Faces {
            watch: Some(Watch::new(finder, Some(Box::new(embedder)))),
            gates: Some(gates),
            in_use: format!("{found_by}; {known_by}"),
        },
        Err(why) => Faces {
            watch: Some(Watch::new(finder, None)),
            gates: None,
            in_use: format!("{found_by}; nobody is known by face ({why})"),
        },
    })
}

fn engine(config: &Config, library: &Library) -> Result<Engine, String> {
    let runtime = library.runtime().ok().map(|runtime| runtime.library);
    let places = Places::of_this_process(&config.see.onnx_runtime, runtime);
    let threads = config.limits.see_threads as usize;
    Engine::start(config.see.backend, &places, threads).map_err(|error| error.to_string())
}

fn load_detector(config: &Config, library: &Library) -> Result<(Yolox, String), String> {
    let model = library.detector().map_err(|error| error.to_string())?;
    let engine = engine(config, library)?;
    let detector = Yolox::load(&engine, &model.name, &model.weights).map_err(|error| error.to_string())?;
    Ok((detector, format!("{}; {}", model.in_use, engine.in_use())))
}

/// The picture model, which loads itself when it is first used.
///
/// # Errors
/// [`PartError`] when it is not there, or not what it should be.
pub fn load_pictures(config: &Config) -> Result<(Arc<dyn EmbedImage>, String), PartError> {
    let model = library(config)?.image()?;
    let files = SiglipFiles {
        weights: model.weights,
        tokenizer: model.tokenizer,
        tokenizer_config: None,
        preprocessor_config: model.preprocessor,
    };
    let pictures = SiglipEmbedder::new(files, SiglipFacts::default(), model.identity)?;
    Ok((Arc::new(pictures), model.in_use))
}

/// The laptop's brain, where the config names one.
///
/// # Errors
/// [`PartError::Key`], [`PartError::Laptop`].
pub fn laptop(config: &Config, zone: TimeZone) -> Result<Option<HttpBrain>, PartError> {
    let think = &config.think;
    if think.url.is_empty() {
        return Ok(None);
    }
    let key = if think.key_file.as_os_str().is_empty() {
        None
    } else {
        let key = std::fs::read_to_string(&think.key_file)
            .map_err(|source| PartError::Key { path: think.key_file.clone(), source })?;
        Some(key.trim().to_owned())
    };
    Ok(Some(HttpBrain::new(think, key)?.in_zone(zone)))
}

/// The brain that is asked first, where the config names one; `own` chooses tools for a server that knows none.
///
/// # Errors
/// As [`laptop`].
pub fn asked_first(
    config: &Config,
    zone: TimeZone,
    own: Option<Arc<dyn Brain>>,
) -> Result<Option<Arc<dyn Brain>>, PartError> {
    let laptop = laptop(config, zone)?;
    Ok(laptop.map(|laptop| {
        let laptop = Arc::new(laptop.remembering_in(config.remember.folder.join(LAPTOP_ADDRESS)));
        Arc::new(Routed::new(laptop, own)) as Arc<dyn Brain>
    }))
}

/// The health report's line on the brain that is asked first.
#[must_use]
pub fn laptop_line(laptop: Option<&dyn Brain>) -> String {
    laptop.map_or_else(
        || "none is named in [think] url; the robot's own offline brain answers".into(),
        |laptop| format!("{} is asked first", laptop.name()),
    )
}

/// A conversation with what it works with.
pub struct Mind {
    pub conversation: Conversation,
    /// The laptop's place among its brains, and the brain that stands in.
    pub seat: LaptopSeat,
    pub own: Option<Arc<dyn Brain>>,
    pub memory: Result<Memory, String>,
    pub acquaintances: Acquaintances,
    /// The lock on the memory's folder.
    pub folder: Arc<Lock>,
    /// The eye, or why there is none.
    pub sight: Result<Sight, String>,
    /// True while the head is turned for a look.
    pub head_turned: Arc<AtomicBool>,
    /// What an earlier process left unsaved.
    pub left: Left,
    /// Sentences that the owner must read.
    pub notes: Vec<String>,
}

/// Puts a conversation together from what is there: without a text model it has no memory and no brain of its own,
/// and says so; without a laptop its own brain answers.
///
/// # Errors
/// [`PartError`] only for what the owner must correct first: another process owns the memory, or the laptop's entry
/// is wrong.
pub async fn mind(
    config: &Config,
    robot: Arc<dyn Robot>,
    clock: Clock,
    health: &Arc<Health>,
    ending: watch::Receiver<bool>,
) -> Result<Mind, PartError> {
    let mut notes = Vec::new();
    let zone = clock.zone().clone();
    let text = {
        let config = config.clone();
        blocking(move || load_text(&config)).await
    };
    let (memory, own, text) = match text {
        Ok(text) => {
            health.set("text model", true, text.model.in_use.clone());
            let memory = open(config, &text, &clock, health, &mut notes).await?;
            let zone = zone.clone();
            let embedder = Arc::clone(&text.embedder);
            let own = blocking(move || Ok(OfflineBrain::new(embedder, zone)?)).await?;
            (memory, Some(Arc::new(own) as Arc<dyn Brain>), Some(text))
        }
        Err(error) => {
            health.set("text model", false, error.to_string());
            notes.push(format!("There is no memory and no brain of the robot's own: {error}"));
            (Err(format!("the text model is missing ({error})")), None, None)
        }
    };
    let laptop = asked_first(config, zone, own.clone())?;
    health.set("laptop", true, laptop_line(laptop.as_deref()));
    let brains = Brains::new(laptop, own.clone(), Duration::from_secs(u64::from(config.think.retry_after_s)));
    // Where the shard could not be opened, the journal keeps what is said until it can be.
    let folder = match &memory {
        Ok(memory) => memory.lock(),
        Err(_) => Arc::new(hold_folder(&config.remember.folder).map_err(OpenError::Folder)?),
    };
    let knowledge = match &text {
        Some(text) => know(config, text, health, &mut notes).await,
        None => Err("what I was taught needs a text model, and there is none".to_owned()),
    };
    let (journal, left) = Journal::open(&config.remember.folder)?;
    if let Some(path) = &left.unreadable {
        notes.push(format!(
            "Some lines of the last conversation could not be read; they are kept in {}.",
            path.display()
        ));
    }
    let motion = Arc::new(Motion::start(Arc::clone(&robot), config.act.gestures)?);
    let (sight, gates) = sight(config, health).await?;
    let acquaintances = acquaintances(config, &sight, gates, Arc::clone(&folder), &clock, health, &mut notes).await;
    let head_turned = Arc::<AtomicBool>::default();
    let hands = Hands {
        memory: memory.clone(),
        knowledge,
        robot,
        motion,
        sight: sight.clone(),
        company: acquaintances.company.clone(),
        head_turned: Arc::clone(&head_turned),
        clock,
    };
    let limits = Limits { tokens: config.think.window_tokens, exchanges: config.think.window_exchanges as usize };
    let seat = brains.seat();
    let conversation = Conversation::new(hands, brains, words::SYSTEM.to_owned(), limits, Some(journal), ending);
    Ok(Mind { conversation, seat, own, memory, acquaintances, folder, sight, head_turned, left, notes })
}

/// The eye, or why there is none, and what its faces' likenesses mean.
async fn sight(config: &Config, health: &Health) -> Result<(Result<Sight, String>, Option<FaceGates>), PartError> {
    if !config.see.enabled {
        health.set("seeing", true, "switched off in [see]");
        return Ok((Err("the camera is switched off in the config ([see] enabled = false)".into()), None));
    }
    let wanted = config.clone();
    let seeing = blocking(move || load_seeing(&wanted)).await?;
    health.set("seeing", true, seeing.in_use);
    Ok((Ok(seeing.sight), seeing.gates))
}

/// Starts what the robot was taught; the caller goes on to hold the memory's folder.
async fn know(
    config: &Config,
    text: &Text,
    health: &Arc<Health>,
    notes: &mut Vec<String>,
) -> Result<Knowledge, String> {
    if !config.knowledge.enabled {
        health.set("knowledge", true, "switched off in [knowledge]");
        return Err("what I was taught is switched off in the config ([knowledge] enabled = false)".into());
    }
    let settings = knowledge::Settings::from_config(config, text.model.fact_gate).map_err(|error| {
        health.set("knowledge", false, error.to_string());
        error.to_string()
    })?;
    let started = Knowledge::start(settings, Arc::clone(&text.embedder), Arc::clone(health)).await;
    notes.extend(started.notes);
    Ok(started.knowledge)
}

/// Opens the memory; what only the owner can correct ends the start, everything else leaves the robot without one.
async fn open(
    config: &Config,
    text: &Text,
    clock: &Clock,
    health: &Health,
    notes: &mut Vec<String>,
) -> Result<Result<Memory, String>, PartError> {
    let (settings, embedder, now) = (memory_settings(config, text), Arc::clone(&text.embedder), clock.now());
    match blocking(move || Ok(Memory::open(settings, embedder, now)?)).await {
        Ok(opened) => {
            let state = opened.notes.first().cloned().unwrap_or_else(|| "open".into());
            health.set("memory", opened.notes.is_empty(), state);
            if config.see.enabled {
                tell_pictures_apart(config, &opened.memory, health).await;
            }
            notes.extend(opened.notes);
            Ok(Ok(opened.memory))
        }
        Err(
            error @ PartError::Memory(OpenError::Folder(FolderError::Owned { .. } | FolderError::NotWritable { .. })),
        ) => Err(error),
        Err(error) => {
            health.set("memory", false, error.to_string());
            notes.push(format!("The memory is not open: {error}"));
            Ok(Err(error.to_string()))
        }
    }
}

/// Gives the memory its picture vectors, where their model is there.
async fn tell_pictures_apart(config: &Config, memory: &Memory, health: &Health) {
    let (wanted, memory) = (config.clone(), memory.clone());
    let given = blocking(move || {
        let (pictures, in_use) = load_pictures(&wanted)?;
        memory.embed_pictures_with(pictures)?;
        Ok(in_use)
    });
    match given.await {
        Ok(in_use) => health.set("pictures", true, in_use),
        // Frames are kept all the same, and found by their sentences.
        Err(error) => health.set("pictures", true, format!("kept without vectors: {error}")),
    }
}

/// Runs blocking work on a thread for such work.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, PartError> + Send + 'static,
) -> Result<T, PartError> {
    tokio::task::spawn_blocking(call).await.map_err(|_| PartError::Died)?
}
