//! `config.toml`: one section a room, in the order of the loop.
//!
//! No file means the defaults below; `config.toml` at the top of the project shows every key at its default and a
//! test keeps the two equal. Unknown keys and values out of range are refused with file, line and what is allowed.
//! Relative paths are relative to the folder of the config file (or the working directory without one). The file is
//! read once, at start; nothing here lives on. [`rules`] has what each key may be.

pub(crate) mod file;
mod rules;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Everything that an owner may set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub robot: RobotConfig,
    pub listen: ListenConfig,
    pub see: SeeConfig,
    pub remember: RememberConfig,
    pub people: PeopleConfig,
    pub knowledge: KnowledgeConfig,
    pub think: ThinkConfig,
    pub act: ActConfig,
    pub models: ModelsConfig,
    pub privacy: PrivacyConfig,
    pub limits: LimitsConfig,
}

/// Which body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RobotConfig {
    /// `sim`: the built-in simulated robot; `sdk`: a Reachy Mini through its own SDK.
    pub body: BodyKind,
    /// The scripted day that the simulated robot plays; empty: a silent room.
    pub day: PathBuf,
    /// The Python environment that has the robot's SDK; the robot's own by default.
    pub venv: PathBuf,
    /// The machine on which the robot's own daemon runs.
    pub host: String,
    /// The port of the robot's own daemon.
    pub port: u16,
    /// The speaker's volume, 0 to 100; unset: as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<u8>,
    /// IANA name of the house's time zone, as in `Europe/Berlin`; empty: the machine's own.
    pub time_zone: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    #[default]
    Sim,
    Sdk,
}

/// Hearing. The endpointing numbers (`speech_on` to `max_utterance_s`) were measured together on ten turns of
/// synthetic speech: ten of ten were cut right, none lost its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// Whether the microphone is used at all.
    pub enabled: bool,
    /// Language of the house, as Whisper names it (`en`, `de`, …). English models know only `en`.
    pub language: String,
    /// Speech starts at this probability (0…1).
    pub speech_on: f32,
    /// Speech goes on at or over this probability (0…1), below `speech_on`.
    pub speech_off: f32,
    /// Shorter speech is a click, in milliseconds.
    pub min_speech_ms: u32,
    /// Sound kept from before speech was noticed, in milliseconds.
    pub pre_roll_ms: u32,
    /// Silence that ends an utterance, in milliseconds.
    pub end_silence_ms: u32,
    /// The longest utterance, in seconds; longer speech is cut there.
    pub max_utterance_s: u32,
    /// After the robot has spoken, the microphone is ignored this much longer, in milliseconds. Not measured on a
    /// robot: long enough for the sound still in the buffers.
    pub echo_wait_ms: u32,
    /// Whether somebody may speak over the robot: it then listens while it speaks, and falls silent. Only for a
    /// microphone that takes the robot's own voice out of what it hears.
    pub barge_in: bool,
    /// Below this mean log-probability a transcription is rejected. Chosen on synthetic speech against six minutes
    /// of noise.
    pub min_log_probability: f32,
    /// Over this probability of "no speech" an English model's transcription is rejected (0…1). Whisper's own
    /// default; other models always say 0.
    pub max_no_speech: f32,
    /// A microphone that gives only zeros for this long is deaf, in seconds. Not measured: a real room is never
    /// silent to the last bit.
    pub deaf_after_s: u32,
}

/// Seeing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeeConfig {
    /// Whether the camera is used at all.
    pub enabled: bool,
    /// What runs the networks that see.
    pub backend: Backend,
    /// ONNX Runtime's shared library; empty: looked for in `ORT_DYLIB_PATH`, the models folder and the system.
    pub onnx_runtime: PathBuf,
    /// Pictures that are looked at closely while something changes, a second. Not measured on a robot: 2 a second
    /// are 2 % of one desktop core with ONNX Runtime, 9 % with rten.
    pub frames_per_second_changing: f32,
    /// A close look at least this often, in seconds, while nothing changes. Not measured.
    pub seconds_between_quiet: f32,
    /// Whether faces are looked for, so that people can be known.
    pub faces: bool,
    /// Looks for faces a second while somebody is in view or something changes. Not measured on a robot: 3 a second are
    /// 2 % of one desktop core with ONNX Runtime, 10 % with rten.
    pub faces_per_second: f32,
    /// What is visible must stay so for this long to count, in seconds. From 240 jittered frames of one scene: 1 to 2
    /// changes instead of 89 to 176.
    pub stable_for_s: f32,
    /// What was not found again for this long is gone, in seconds. From the same frames.
    pub forget_after_s: f32,
    /// Two pictures at least this alike show the same (0…1); unset: the image model's own, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_duplicate: Option<f32>,
    /// A remembered picture counts as found from this score on (0…1); unset: the text model's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_gate: Option<f32>,
}

/// What runs the networks that see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// ONNX Runtime where its library is found and fit, rten otherwise.
    #[default]
    Auto,
    /// ONNX Runtime or nothing.
    OnnxRuntime,
    /// The engine that is part of the program.
    Rten,
}

/// The memory on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RememberConfig {
    /// Folder of the shards, and of the socket that commands talk to.
    pub folder: PathBuf,
    /// Everything written is on the disk itself at most this much later, in seconds. Not measured on an SD card:
    /// few syncs, little to lose.
    pub flush_every_s: u32,
    /// Memories handed to the brain at most. Not measured: what fits a small window beside the conversation.
    pub limit: u32,
    /// An exchange counts as found from this score on (0…1); unset: the text model's own, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_gate: Option<f32>,
    /// Nothing is written when less than this is free on the disk, in megabytes. Not measured: room for the logs
    /// and for one optimisation of the shards.
    pub min_free_mb: u64,
}

/// What the robot was taught: facts with the questions that they answer, replaced as a whole and never written by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KnowledgeConfig {
    /// Whether the robot answers from facts at all.
    pub enabled: bool,
    /// File of facts and their questions; empty: the one that the program was built with.
    pub facts: PathBuf,
    /// Snapshot that is restored at every start, where there is one; else the facts are embedded on the robot.
    pub snapshot: PathBuf,
    /// Address of a Qdrant server whose collection is fetched; empty: none.
    pub source: String,
    /// Name of the collection there.
    pub collection: String,
    /// Number of the collection's shard there.
    pub shard: u32,
    /// File that holds the server's key; empty: the systemd credential `knowledge-api-key`, where there is one.
    pub api_key_file: PathBuf,
    /// How often the server is asked, in hours; 0: only at the start.
    pub pull_every_h: u32,
    /// A fact counts as found from this score on (0…1); unset: the text model's own, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact_gate: Option<f32>,
}

/// The brain and its window. The timeouts are not measured; they are what a person waits for before asking again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThinkConfig {
    /// Base address of an OpenAI-compatible server in the house, as in `http://laptop.local:8080/v1`; empty: the
    /// robot's own offline brain answers.
    pub url: String,
    /// Name of the model at that server.
    pub model: String,
    /// File that holds the server's key; empty: none.
    pub key_file: PathBuf,
    /// The model's context that the conversation may fill, in tokens. Small on purpose: what leaves the window is
    /// remembered.
    pub window_tokens: u32,
    /// The most exchanges in the window, whatever the tokens say.
    pub window_exchanges: u32,
    /// Longest answer, in tokens.
    pub answer_tokens: u32,
    /// To open a connection, in seconds.
    pub connect_timeout_s: u32,
    /// To the first token from a model that is loaded, in seconds.
    pub first_token_timeout_s: u32,
    /// To the first token from a model that may have to load first, in seconds.
    pub cold_token_timeout_s: u32,
    /// Between two tokens, in seconds.
    pub next_token_timeout_s: u32,
    /// For a whole turn, in seconds.
    pub turn_timeout_s: u32,
    /// After the laptop was away, it is tried again no sooner than this, in seconds.
    pub retry_after_s: u32,
}

/// Voice and gestures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActConfig {
    /// Which program speaks.
    pub voice: VoiceKind,
    /// The voice's name, as `espeak-ng --voices` lists them.
    pub voice_name: String,
    /// Words a minute. espeak-ng's own default is 175; a little slower is easier to follow. Not measured.
    pub words_per_minute: u32,
    /// Whether the robot makes gestures.
    pub gestures: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoiceKind {
    #[default]
    EspeakNg,
    None,
}

/// Weight files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// Where weight files are kept.
    pub folder: PathBuf,
    /// A folder or address that is asked before the model hub; the variable `REACHY_MODELS_MIRROR` goes before it.
    pub mirror: String,
    /// The text model, by its name in the manifest; `auto`: the first in the manifest that is there.
    pub text: String,
    /// The speech model, likewise.
    pub speech: String,
    /// The voice-activity model, likewise.
    pub voice_activity: String,
    /// The model that finds objects, likewise.
    pub detector: String,
    /// The model that finds faces, likewise.
    pub face_detector: String,
    /// The model that tells faces apart, likewise.
    pub face: String,
    /// The image model, likewise.
    pub image: String,
}

/// What may be written down besides the memory itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivacyConfig {
    /// Whether logs may hold what people and the robot said.
    pub log_words: bool,
}

/// Threads. The robot has four cores, one of them for its own daemon, so three are left for the seconds in which
/// Whisper runs; the others were not measured on the robot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Threads that Whisper may use while it runs.
    pub whisper_threads: u32,
    /// Threads that the embedders may use.
    pub embed_threads: u32,
    /// Threads that one search may use.
    pub search_threads: u32,
    /// Threads that one look at a picture may use.
    pub see_threads: u32,
}

impl Default for RobotConfig {
    fn default() -> Self {
        Self {
            body: BodyKind::Sim,
            day: PathBuf::new(),
            venv: "/venvs/mini_daemon".into(),
            host: "localhost".into(),
            port: 8_000,
            volume: None,
            time_zone: String::new(),
        }
    }
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            language: "en".into(),
            speech_on: 0.5,
            speech_off: 0.35,
            min_speech_ms: 200,
            pre_roll_ms: 300,
            end_silence_ms: 600,
            max_utterance_s: 15,
            echo_wait_ms: 300,
            barge_in: false,
            min_log_probability: -0.8,
            max_no_speech: 0.6,
            deaf_after_s: 60,
        }
    }
}

impl Default for SeeConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            backend: Backend::Auto,
            onnx_runtime: PathBuf::new(),
            frames_per_second_changing: 2.0,
            seconds_between_quiet: 5.0,
            faces: true,
            faces_per_second: 3.0,
            stable_for_s: 1.0,
            forget_after_s: 2.0,
            near_duplicate: None,
            frame_gate: None,
        }
    }
}

/// Knowing people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleConfig {
    /// A visit ends when somebody was out of view for so long, in minutes; at the next one they are greeted again.
    pub visit_ends_after_min: u32,
    /// Whether somebody known is greeted by name, once a visit.
    pub greet: bool,
    /// Whether a stranger who spoke is asked for their name, once a visit.
    pub ask_names: bool,
}

impl Default for PeopleConfig {
    fn default() -> Self {
        Self { visit_ends_after_min: 10, greet: true, ask_names: true }
    }
}

impl Default for RememberConfig {
    fn default() -> Self {
        Self { folder: "shards".into(), flush_every_s: 5, limit: 5, exchange_gate: None, min_free_mb: 200 }
    }
}

impl Default for KnowledgeConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            facts: PathBuf::new(),
            snapshot: "shards/knowledge.snapshot".into(),
            source: String::new(),
            collection: "knowledge".into(),
            shard: 0,
            api_key_file: PathBuf::new(),
            pull_every_h: 24,
            fact_gate: None,
        }
    }
}

impl Default for ThinkConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            model: "gemma-4-e2b".into(),
            key_file: PathBuf::new(),
            window_tokens: 1000,
            window_exchanges: 40,
            answer_tokens: 300,
            connect_timeout_s: 2,
            first_token_timeout_s: 15,
            cold_token_timeout_s: 60,
            next_token_timeout_s: 5,
            turn_timeout_s: 45,
            retry_after_s: 30,
        }
    }
}

impl Default for ActConfig {
    fn default() -> Self {
        Self { voice: VoiceKind::EspeakNg, voice_name: "en-us".into(), words_per_minute: 160, gestures: true }
    }
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self {
            folder: "models/cache".into(),
            mirror: String::new(),
            text: "auto".into(),
            speech: "auto".into(),
            voice_activity: "auto".into(),
            detector: "auto".into(),
            face_detector: "auto".into(),
            face: "auto".into(),
            image: "auto".into(),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { whisper_threads: 3, embed_threads: 2, search_threads: 1, see_threads: 1 }
    }
}

impl Config {
    /// Reads `path`, or the defaults where it is `None`. Relative paths come out relative to the file's folder.
    ///
    /// # Errors
    /// [`ConfigError`], whose sentence names the file, the line, and what is allowed.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text = file::read_text(path).map_err(|fault| match fault.line {
            Some(line) => ConfigError::Refused { path: path.to_owned(), line, why: fault.why },
            None => ConfigError::Unreadable { path: path.to_owned(), why: fault.why },
        })?;
        let config = Self::from_toml(&text, path)?.with_paths_from(path.parent().unwrap_or(Path::new("")));
        config.check_key_file().map_err(|why| ConfigError::Refused {
            path: path.to_owned(),
            line: rules::line_of_key_in(&text, "think", "key_file"),
            why,
        })?;
        Ok(config)
    }

    /// The config in `text`, its paths as written; `origin` is the file that errors name.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] with the line of the first key that is unknown, of the wrong type or out of range.
    pub fn from_toml(text: &str, origin: &Path) -> Result<Self, ConfigError> {
        rules::parse(text).map_err(|refusal| ConfigError::Refused {
            path: origin.to_owned(),
            line: refusal.line,
            why: refusal.why,
        })
    }

    /// The config as a file would have it, without comments; unset keys are left out.
    ///
    /// # Errors
    /// [`ConfigError::Unprintable`] when a path is not UTF-8.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string_pretty(self).map_err(|error| ConfigError::Unprintable { why: error.to_string() })
    }

    /// The one place where relative paths are resolved. An empty path means "none" and stays empty.
    fn with_paths_from(mut self, folder: &Path) -> Self {
        let resolve = |path: &mut PathBuf| {
            if !path.as_os_str().is_empty() {
                *path = folder.join(&*path);
            }
        };
        resolve(&mut self.robot.day);
        resolve(&mut self.robot.venv);
        resolve(&mut self.see.onnx_runtime);
        resolve(&mut self.remember.folder);
        resolve(&mut self.knowledge.facts);
        resolve(&mut self.knowledge.snapshot);
        resolve(&mut self.knowledge.api_key_file);
        resolve(&mut self.think.key_file);
        resolve(&mut self.models.folder);
        // A mirror is a folder or an address; only a folder can be relative.
        if !self.models.mirror.is_empty() && !self.models.mirror.contains("://") {
            self.models.mirror = folder.join(&self.models.mirror).to_string_lossy().into_owned();
        }
        self
    }

    fn check_key_file(&self) -> Result<(), String> {
        let path = &self.think.key_file;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        match file::read_text(path) {
            Ok(key) if key.trim().is_empty() => {
                Err(format!("[think] key_file names {}, which is empty; put the server's key there", path.display()))
            }
            Ok(_) => Ok(()),
            Err(fault) => Err(format!("[think] key_file names {}, which {}", path.display(), fault.why)),
        }
    }
}

/// Why a config was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no such file, or it is no file that can be a config.
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// Something in it is not allowed; `line` counts from 1.
    #[error("{}:{line}: {why}", path.display())]
    Refused { path: PathBuf, line: usize, why: String },
    /// It cannot be written as TOML.
    #[error("this configuration cannot be printed: {why}")]
    Unprintable { why: String },
}
