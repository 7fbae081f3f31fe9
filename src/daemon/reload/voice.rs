//! A voice that can become another one between two sentences.

use std::sync::{Arc, PoisonError, RwLock};

use super::{Commit, Part};
use crate::act::voice::{Synthesiser, VoiceError};
use crate::act::{Muteness, Voice, VoiceReport};
use crate::config::{ActConfig, Config, VoiceKind};
use crate::health::Health;
use crate::robot::Sound;

/// Whichever voice the configuration names now. Cheap to clone; all clones are one voice.
#[derive(Clone)]
pub struct LiveVoice {
    now: Arc<RwLock<Voice>>,
}

impl LiveVoice {
    /// Begins as `voice`.
    #[must_use]
    pub fn new(voice: Voice) -> Self {
        Self { now: Arc::new(RwLock::new(voice)) }
    }

    /// The handle for the mouth, which is given it once.
    #[must_use]
    pub fn voice(&self) -> Voice {
        Voice::from_synthesiser(Arc::new(self.clone()))
    }

    /// The part that tries a newly configured voice on a word, refuses one that does not speak, and takes over one that
    /// does.
    #[must_use]
    pub fn part(&self, health: Arc<Health>) -> Part {
        let live = self.clone();
        Part::new(
            |old: &Config, new: &Config| of_voice(&old.act) != of_voice(&new.act),
            move |new| {
                let (live, health) = (live.clone(), Arc::clone(&health));
                let what = match new.act.voice {
                    VoiceKind::EspeakNg => format!("espeak-ng, {}", new.act.voice_name),
                    VoiceKind::None => Muteness::Chosen.to_string(),
                };
                let (voice, speaks) = match Voice::find(&new.act) {
                    VoiceReport::Works(voice) => (voice, true),
                    VoiceReport::Mute(Muteness::Chosen) => (Voice::mute(Muteness::Chosen), false),
                    VoiceReport::Mute(why) => return Err(why.to_string()),
                };
                Ok(Box::new(move || {
                    *live.now.write().unwrap_or_else(PoisonError::into_inner) = voice;
                    health.set("voice", speaks, what);
                }) as Commit)
            },
        )
    }
}

fn of_voice(act: &ActConfig) -> (VoiceKind, &str, u32) {
    (act.voice, &act.voice_name, act.words_per_minute)
}

impl Synthesiser for LiveVoice {
    fn synthesise(&self, words: &str, stop: &dyn Fn() -> bool) -> Result<Sound, VoiceError> {
        // A sentence is spoken to its end with the voice that it began with.
        let voice = self.now.read().unwrap_or_else(PoisonError::into_inner).clone();
        voice.speak(words, stop)?.ok_or_else(|| VoiceError::Failed { why: "there is nothing in it to say".into() })
    }
}
