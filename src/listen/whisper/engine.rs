//! whisper.cpp itself: the model, its settings and what is read out of its result. Lives on the recogniser's thread.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters, WhisperState};

use super::{Control, HearError, MOST_TOKENS, WhisperError};
use crate::config::ListenConfig;
use crate::listen::reject::{Doubt, judge};
use crate::listen::{Heard, RATE, Utterance};

/// Positions of the audio encoder that are computed, of 1500; 50 a second. 512 costs a quarter of 1500 and hears as
/// well (word error rate .035 both, tiny.en); at 384 it rose to .123.
const SHORT_CONTEXT: u32 = 512;
/// Speech up to this long is heard with [`SHORT_CONTEXT`] (10.2 s less a margin of a second), in samples.
const SHORT_SAMPLES: usize = 9 * RATE as usize;
/// Positions a second, and positions added after the end of longer speech, as much as the short context leaves.
/// The words heard beyond nine seconds: not measured.
const POSITIONS_A_SECOND: usize = 50;
const MARGIN: usize = 62;

pub(super) struct Engine {
    context: WhisperContext,
    state: WhisperState,
    /// Made once: each making leaks the language's name and the abort function in whisper-rs 0.16.
    parameters: FullParams<'static, 'static>,
    control: Arc<Control>,
    config: ListenConfig,
    english_only: bool,
}

impl Engine {
    pub fn load(
        path: &Path,
        english_only: bool,
        config: ListenConfig,
        threads: u32,
        control: Arc<Control>,
    ) -> Result<Self, WhisperError> {
        // Without whisper-rs's log features the hooks swallow what whisper.cpp would print to stderr.
        whisper_rs::install_logging_hooks();
        super::file::check_whole(path)?;
        let no_model = |why: String| WhisperError::NoModel { path: path.to_owned(), why };
        let context = WhisperContext::new_with_params(path, WhisperContextParameters::default())
            .map_err(|error| no_model(error.to_string()))?;
        check_languages(path, &context, english_only, &config.language)?;
        let state = context.create_state().map_err(|error| no_model(error.to_string()))?;
        let parameters = parameters(&config.language, threads, Arc::clone(&control));
        Ok(Self { context, state, parameters, control, config, english_only })
    }

    pub fn transcribe(&mut self, utterance: &Utterance) -> Result<Heard, HearError> {
        let began = Instant::now();
        let mut parameters = self.parameters.clone();
        parameters.set_audio_ctx(audio_context(utterance.samples.len(), self.context.n_audio_ctx()));
        self.state.full(parameters, &utterance.samples).map_err(|error| {
            if self.control.stops() { HearError::Aborted } else { HearError::Failed { why: error.to_string() } }
        })?;
        let Transcript { text, doubt, confidence } = self.read()?;
        judge(&text, &doubt, &self.config)?;
        Ok(Heard {
            text,
            started_at: utterance.started_at,
            ended_at: utterance.ended_at,
            confidence,
            transcribed_in_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// The text of every segment, and how sure the model was of the text's tokens (not of the timestamps).
    fn read(&self) -> Result<Transcript, HearError> {
        let end_of_text = self.context.token_eot();
        let (mut text, mut logs, mut sum, mut tokens, mut no_speech) = (String::new(), 0.0, 0.0, 0_u16, 0.0_f32);
        for segment in self.state.as_iter() {
            let part = segment.to_str_lossy().map_err(|error| HearError::Failed { why: error.to_string() })?;
            text.push_str(&part);
            no_speech = no_speech.max(segment.no_speech_probability());
            let words = (0..segment.n_tokens()).filter_map(|token| segment.get_token(token));
            for data in words.map(|token| token.token_data()).filter(|data| data.id < end_of_text) {
                logs += data.plog;
                sum += data.p;
                tokens = tokens.saturating_add(1);
            }
        }
        let count = f32::from(tokens.max(1));
        let doubt = Doubt { mean_log_probability: logs / count, no_speech, english_only: self.english_only };
        Ok(Transcript { text: text.trim().to_owned(), doubt, confidence: sum / count })
    }
}

struct Transcript {
    text: String,
    doubt: Doubt,
    confidence: f32,
}

fn parameters(language: &str, threads: u32, control: Arc<Control>) -> FullParams<'static, 'static> {
    let mut parameters = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
    // Leaked once, because whisper-rs wants the name to live as long as the parameters.
    parameters.set_language(Some(Box::leak(language.to_owned().into_boxed_str())));
    parameters.set_n_threads(i32::try_from(threads).unwrap_or(1));
    parameters.set_temperature(0.0);
    parameters.set_temperature_inc(0.0);
    parameters.set_no_context(true);
    parameters.set_single_segment(true);
    parameters.set_max_tokens(i32::try_from(MOST_TOKENS).unwrap_or(0));
    parameters.set_no_timestamps(false);
    parameters.set_suppress_nst(false);
    parameters.set_print_special(false);
    parameters.set_print_progress(false);
    parameters.set_print_realtime(false);
    parameters.set_print_timestamps(false);
    // Exactly this type: whisper-rs boxes the function once more and then calls it as the type it was given, which
    // is only right when that type is the boxed one.
    let stops: Box<dyn FnMut() -> bool> = Box::new(move || control.stops());
    parameters.set_abort_callback_safe(stops);
    parameters
}

/// Positions of the encoder for so many samples, at most the model's own.
fn audio_context(samples: usize, most: i32) -> i32 {
    let positions = if samples <= SHORT_SAMPLES {
        SHORT_CONTEXT
    } else {
        let positions = samples * POSITIONS_A_SECOND / RATE as usize + MARGIN;
        u32::try_from(positions.next_multiple_of(64)).unwrap_or(u32::MAX)
    };
    i32::try_from(positions).unwrap_or(i32::MAX).min(most)
}

fn check_languages(
    path: &Path,
    context: &WhisperContext,
    english_only: bool,
    language: &str,
) -> Result<(), WhisperError> {
    let name = |english: bool| if english { "English only" } else { "many languages" };
    if english_only == context.is_multilingual() {
        let (said, found) = (name(english_only), name(!english_only));
        return Err(WhisperError::OtherLanguages { path: path.to_owned(), said, found });
    }
    let is_name = !language.is_empty() && language.bytes().all(|byte| byte.is_ascii_lowercase());
    let known = is_name && whisper_rs::get_lang_id(language).is_some();
    if !known || (english_only && language != "en") {
        return Err(WhisperError::Language { language: language.to_owned(), known: name(english_only) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_covers_the_speech_whatever_its_length() {
        for seconds in 1..=29_usize {
            let positions = audio_context(seconds * RATE as usize, 1500);
            assert!(positions as usize >= (seconds * POSITIONS_A_SECOND + 40).min(1500), "{seconds} s: {positions}");
        }
        assert_eq!(audio_context(9 * RATE as usize, 1500), 512);
        assert!(audio_context(15 * RATE as usize, 1500) < 900);
        assert_eq!(audio_context(29 * RATE as usize, 1500), 1500);
    }
}
