//! `config.toml`: one section a room, in the order of the loop.
//!
//! No file means the defaults below; `config.toml` at the top of the project shows every key at its default and a
//! test keeps the two equal. Unknown keys and values out of range are refused with file, line and what is allowed.
//! Relative paths are relative to the folder of the config file (or the working directory without one).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Everything that an owner may set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub robot: RobotConfig,
    pub listen: ListenConfig,
    pub remember: RememberConfig,
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
    /// `sim`: the built-in simulated robot.
    pub body: BodyKind,
    /// The scripted day that the simulated robot plays; empty: a silent room.
    pub day: PathBuf,
    /// IANA name of the house's time zone, as in `Europe/Berlin`; empty: the machine's own.
    pub time_zone: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    #[default]
    Sim,
}

/// Hearing. Where the numbers come from is said at [`crate::listen::endpoint`] and [`crate::listen::reject`].
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
    /// After the robot has spoken, the microphone is ignored this much longer, in milliseconds.
    pub echo_wait_ms: u32,
    /// Below this mean log-probability a transcription is rejected.
    pub min_log_probability: f32,
    /// Over this probability of "no speech" an English model's transcription is rejected (0…1).
    pub max_no_speech: f32,
    /// A microphone that gives only zeros for this long is deaf, in seconds.
    pub deaf_after_s: u32,
}

/// The memory on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RememberConfig {
    /// Folder of the shards, and of the socket that commands talk to.
    pub folder: PathBuf,
    /// Everything written is on the disk itself at most this much later, in seconds.
    pub flush_every_s: u32,
    /// Memories handed to the brain at most.
    pub limit: u32,
    /// An exchange counts as found from this score on (0…1); unset: the text model's own, from the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_gate: Option<f32>,
    /// Nothing is written when less than this is free on the disk, in megabytes.
    pub min_free_mb: u64,
}

/// The brain and its window.
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
    /// The model's context that the conversation may fill, in tokens.
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
    /// Words a minute.
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
}

/// What may be written down besides the memory itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrivacyConfig {
    /// Whether logs may hold what people and the robot said.
    pub log_words: bool,
}

/// Threads and memory. The robot has four cores, one of them for its own daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Threads that Whisper may use while it runs.
    pub whisper_threads: u32,
    /// Threads that the embedders may use.
    pub embed_threads: u32,
    /// Threads that one search may use.
    pub search_threads: u32,
}

impl Default for RobotConfig {
    fn default() -> Self {
        Self { body: BodyKind::Sim, day: PathBuf::new(), time_zone: String::new() }
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
            min_log_probability: -0.8,
            max_no_speech: 0.6,
            deaf_after_s: 60,
        }
    }
}

impl Default for RememberConfig {
    fn default() -> Self {
        Self { folder: "shards".into(), flush_every_s: 5, limit: 5, exchange_gate: None, min_free_mb: 200 }
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
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { whisper_threads: 3, embed_threads: 2, search_threads: 1 }
    }
}

impl Config {
    /// Reads `path`, or the defaults where it is `None`.
    ///
    /// # Errors
    /// [`ConfigError`], whose sentence names the file, the line, and what is allowed.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let _ = path;
        todo!()
    }
}

/// Why a config was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}:{line}: {why}", path.display())]
    Refused { path: PathBuf, line: usize, why: String },
}
