//! The voice: a sentence becomes sound.
//!
//! A [`Voice`] is a cheap handle that may be mute; it knows why, so that the daemon can say it once, and a mute robot
//! still answers in text. [`super::Mouth`] is the only one who asks it to speak.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::espeak::Espeak;
use super::speakable::speakable;
use crate::config::file::closest;
use crate::config::{ActConfig, VoiceKind};
use crate::robot::Sound;

/// Something that turns words into sound.
pub trait Synthesiser: Send + Sync {
    /// The sound of `words` (one line, with at least one letter or digit). Returns [`VoiceError::Stopped`] soon after
    /// `stop` answers true. Blocks; never called from a tokio worker.
    ///
    /// # Errors
    /// [`VoiceError`]; the next sentence may be tried all the same.
    fn synthesise(&self, words: &str, stop: &dyn Fn() -> bool) -> Result<Sound, VoiceError>;
}

/// Why a sentence has no sound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VoiceError {
    #[error("the program {program} is not installed; install it: sudo apt install espeak-ng")]
    ProgramMissing { program: String },
    #[error("there is no voice {voice:?}; `espeak-ng --voices` lists them")]
    UnknownVoice { voice: String },
    #[error("a sentence of {characters} characters is too long to say; at most {most}")]
    TooLong { characters: usize, most: usize },
    #[error("the voice did not finish in time and was ended")]
    TimedOut,
    /// Somebody asked for silence.
    #[error("the voice was stopped")]
    Stopped,
    #[error("{why}")]
    Failed { why: String },
    /// This robot has no voice at all.
    #[error(transparent)]
    Mute(#[from] Muteness),
}

/// Why the robot has no voice, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Muteness {
    #[error("the robot answers in text only, because the config says [act] voice = \"none\"")]
    Chosen,
    #[error(
        "the robot is mute: the program {program} is not installed. Install it (sudo apt install espeak-ng) and \
         restart, or set [act] voice = \"none\""
    )]
    ProgramMissing { program: String },
    #[error(
        "the robot is mute: espeak-ng has no voice {voice:?}{}. Set [act] voice_name to one that `espeak-ng --voices` \
         lists",
        near_ones(near)
    )]
    UnknownVoice { voice: String, near: Vec<String> },
    #[error("the robot is mute: the voice does not work: {why}")]
    Broken { why: String },
}

fn near_ones(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it are {}", near.join(", ")) }
}

/// Whether there is a voice.
#[derive(Clone, Debug)]
pub enum VoiceReport {
    Works(Voice),
    Mute(Muteness),
}

impl VoiceReport {
    /// The voice, which is mute where none works.
    #[must_use]
    pub fn voice(&self) -> Voice {
        match self {
            Self::Works(voice) => voice.clone(),
            Self::Mute(why) => Voice::mute(why.clone()),
        }
    }

    /// Why there is none.
    #[must_use]
    pub fn muteness(&self) -> Option<&Muteness> {
        match self {
            Self::Works(_) => None,
            Self::Mute(why) => Some(why),
        }
    }
}

/// A handle on the voice.
#[derive(Clone)]
pub struct Voice {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Works(Arc<dyn Synthesiser>),
    Mute(Muteness),
}

impl fmt::Debug for Voice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Works(_) => formatter.write_str("Voice(works)"),
            Source::Mute(why) => write!(formatter, "Voice(mute: {why})"),
        }
    }
}

impl Voice {
    /// Tries the configured voice on one short word. Blocks for about a tenth of a second.
    #[must_use]
    pub fn find(config: &ActConfig) -> VoiceReport {
        match config.voice {
            VoiceKind::None => VoiceReport::Mute(Muteness::Chosen),
            VoiceKind::EspeakNg => Self::try_out(Espeak::new("espeak-ng", &config.voice_name, config.words_per_minute)),
        }
    }

    /// Tries `espeak` on one short word.
    #[must_use]
    pub fn try_out(espeak: Espeak) -> VoiceReport {
        let tried = espeak.synthesise("yes", &|| false).and_then(|sound| match espeak.knows_its_voice()? {
            true => Ok(sound),
            false => Err(VoiceError::UnknownVoice { voice: espeak.voice().to_owned() }),
        });
        let why = match tried {
            Ok(sound) if sound.samples.iter().all(|sample| *sample == 0.0) => {
                Muteness::Broken { why: "it gives only silence".into() }
            }
            Ok(_) => return VoiceReport::Works(Self::from_synthesiser(Arc::new(espeak))),
            Err(VoiceError::ProgramMissing { program }) => Muteness::ProgramMissing { program },
            Err(VoiceError::UnknownVoice { voice }) => {
                // Without a list the owner still learns which name is wrong.
                let near = near(&voice, &espeak.voices().unwrap_or_default());
                Muteness::UnknownVoice { voice, near }
            }
            Err(other) => Muteness::Broken { why: other.to_string() },
        };
        VoiceReport::Mute(why)
    }

    /// A voice that `synthesiser` makes.
    #[must_use]
    pub fn from_synthesiser(synthesiser: Arc<dyn Synthesiser>) -> Self {
        Self { source: Source::Works(synthesiser) }
    }

    /// No voice, and why.
    #[must_use]
    pub fn mute(why: Muteness) -> Self {
        Self { source: Source::Mute(why) }
    }

    /// Why it is mute, if it is.
    #[must_use]
    pub fn muteness(&self) -> Option<&Muteness> {
        match &self.source {
            Source::Works(_) => None,
            Source::Mute(why) => Some(why),
        }
    }

    /// The sound of `sentence`, or `None` where nothing in it can be said (empty, markup only). Blocks; ends soon after
    /// `stop` answers true.
    ///
    /// # Errors
    /// [`VoiceError`]; the next sentence may be tried all the same.
    pub fn speak(&self, sentence: &str, stop: &dyn Fn() -> bool) -> Result<Option<Sound>, VoiceError> {
        let synthesiser = match &self.source {
            Source::Works(synthesiser) => synthesiser,
            Source::Mute(why) => return Err(why.clone().into()),
        };
        speakable(sentence).map(|words| synthesiser.synthesise(&words, stop)).transpose()
    }
}

/// At most five names near `voice`: those of its language, and the one that is spelt most like it.
fn near(voice: &str, names: &[String]) -> Vec<String> {
    let language = voice.split(['-', '_', '+']).next().unwrap_or(voice).to_lowercase();
    let mut near: Vec<String> =
        closest(voice, names.iter().map(String::as_str)).map(str::to_owned).into_iter().collect();
    for name in names {
        let same = name.split('-').next() == Some(language.as_str());
        if same && !near.contains(name) && near.len() < 5 {
            near.push(name.clone());
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_voices_are_of_the_same_language_or_spelt_alike() {
        let names: Vec<String> = ["de", "el", "en-gb", "en-us", "en-us-nyc", "fr-fr"].map(str::to_owned).into();
        assert_eq!(near("en-uk", &names), ["en-us", "en-gb", "en-us-nyc"]);
        assert_eq!(near("EN_US", &names).first().map(String::as_str), Some("en-us"));
        assert!(near("klingon", &names).is_empty());
    }

    #[test]
    fn a_chosen_silence_says_so_and_no_program_is_run() {
        let config = ActConfig { voice: VoiceKind::None, ..ActConfig::default() };
        let report = Voice::find(&config);
        assert_eq!(report.muteness(), Some(&Muteness::Chosen));
        let refused = report.voice().speak("Hello.", &|| false);
        assert_eq!(refused, Err(VoiceError::Mute(Muteness::Chosen)));
    }

    #[test]
    fn a_missing_program_is_named_with_what_to_do() {
        let report = Voice::try_out(Espeak::new("no-such-voice-program", "en-us", 160));
        let why = report.muteness().unwrap().to_string();
        assert!(why.contains("no-such-voice-program") && why.contains("apt install espeak-ng"), "{why}");
    }
}
