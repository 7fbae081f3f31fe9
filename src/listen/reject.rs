//! Which transcriptions are no speech. Whisper makes text out of anything; this throws away what nobody said.
//!
//! Pure functions of the text and Whisper's own doubts. A [`Rejection`] never holds the text itself, so that it may
//! be logged.
//!
//! Measured with tiny.en on six minutes of noise and on spoken sentences: with timestamps on and non-speech tokens
//! allowed, noise gave only empty text, brackets or dots, and no spoken sentence was rejected at −0.8 and 0.6.

use thiserror::Error;

use crate::config::ListenConfig;

/// A phrase that is said this often in a row is a loop of the recogniser, not of a person.
pub const LOOP: usize = 3;
/// A single word may be said more often ("no, no, no"); from this count on it is a loop. Not measured.
pub const WORD_LOOP: usize = 5;

/// Why a transcription was thrown away.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Rejection {
    #[error("nothing was said")]
    Empty,
    #[error("it was only a sound in brackets, no words")]
    Bracketed,
    #[error("there was no letter or digit in it")]
    NoWords,
    #[error("the recogniser took it for no speech ({probability:.2}, over {most:.2})")]
    NoSpeech { probability: f32, most: f32 },
    #[error("the recogniser was too unsure (mean log-probability {mean:.2}, below {least:.2})")]
    Unsure { mean: f32, least: f32 },
    #[error("a phrase of {words} words was repeated {times} times, which is the recogniser's own loop")]
    Repeats { words: usize, times: usize },
}

/// How sure Whisper was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// Mean natural logarithm of the text tokens' probabilities.
    pub mean_log_probability: f32,
    /// Probability of "no speech", 0…1. Whisper gives 0 for models of many languages, whatever was heard.
    pub no_speech: f32,
    /// Whether the model knows English only, and so whether `no_speech` means anything.
    pub english_only: bool,
}

/// Whether somebody said that text.
///
/// # Errors
/// The [`Rejection`] that applies first.
pub fn judge(text: &str, doubt: &Doubt, config: &ListenConfig) -> Result<(), Rejection> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Rejection::Empty);
    }
    if !has_words(text) {
        return Err(Rejection::NoWords);
    }
    if !has_words(&outside_brackets(text)) {
        return Err(Rejection::Bracketed);
    }
    if doubt.english_only && doubt.no_speech > config.max_no_speech {
        return Err(Rejection::NoSpeech { probability: doubt.no_speech, most: config.max_no_speech });
    }
    if doubt.mean_log_probability.is_nan() || doubt.mean_log_probability < config.min_log_probability {
        return Err(Rejection::Unsure { mean: doubt.mean_log_probability, least: config.min_log_probability });
    }
    match repetition(text) {
        Some((words, times)) => Err(Rejection::Repeats { words, times }),
        None => Ok(()),
    }
}

fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// The text without what stands in brackets, asterisks or notes. A bracket that is never closed runs to the end
/// (the recogniser stops after so many tokens); a single asterisk is none.
fn outside_brackets(text: &str) -> String {
    let mut outside = String::new();
    let mut rest = text;
    while let Some(open) = rest.find(['[', '(', '{', '*', '♪']) {
        outside.push_str(&rest[..open]);
        let inside = &rest[open..];
        let opening = inside.chars().next().unwrap_or('[');
        let (closing, length) = match opening {
            '[' => (']', 1),
            '(' => (')', 1),
            '{' => ('}', 1),
            other => (other, other.len_utf8()),
        };
        match inside[length..].find(closing) {
            Some(close) => rest = &inside[length + close + closing.len_utf8()..],
            None if opening == '*' => rest = &inside[length..],
            None => return outside,
        }
    }
    outside.push_str(rest);
    outside
}

/// Words of a phrase and how often it follows itself, where that is a loop: one runs to the text's end, where its last
/// round may be cut off. Numbers alone may repeat.
fn repetition(text: &str) -> Option<(usize, usize)> {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>())
        .filter(|word| !word.is_empty())
        .collect();
    for length in 1..=words.len() / LOOP {
        let most = if length == 1 { WORD_LOOP } else { LOOP };
        for phrase in (0..words.len()).map(|start| &words[start..]) {
            let Some(first) = phrase.get(..length) else { break };
            let times = phrase.chunks_exact(length).take_while(|next| *next == first).count();
            let cut = &phrase[times * length..];
            let to_the_end = cut.len() < length && first.starts_with(cut);
            let wordy = first.iter().any(|word| word.chars().any(char::is_alphabetic));
            // "no no no no no no" is one word six times, not a phrase of two words three times.
            let one_word = length > 1 && first.iter().all(|word| word == &first[0]);
            if times >= most && to_the_end && wordy && !one_word {
                return Some((length, times));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Doubt = Doubt { mean_log_probability: -0.2, no_speech: 0.01, english_only: true };

    fn judged(text: &str, doubt: Doubt) -> Result<(), Rejection> {
        judge(text, &doubt, &ListenConfig::default())
    }

    #[test]
    fn what_people_say_passes() {
        for text in [
            "Good morning.",
            "7",
            "No, no, no!",
            "Très bien, à demain.",
            "こんにちは",
            "My number is 0 0 0 0 0 0.",
            "Bye bye bye bye.",
            "(laughs) That was funny.",
            "It is 2 * 3, I think.",
            "Read me the book, read me the book.",
            "Does it go up (or down)?",
            "I know, I know. I know what you mean.",
        ] {
            assert_eq!(judged(text, SURE), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_nobody_said_is_rejected() {
        let cases = [
            ("", Rejection::Empty),
            ("  \n", Rejection::Empty),
            ("...", Rejection::NoWords),
            (". . . !", Rejection::NoWords),
            ("♪♪", Rejection::NoWords),
            ("[ ]", Rejection::NoWords),
            ("[MUSIC]", Rejection::Bracketed),
            (" [BLANK_AUDIO] ", Rejection::Bracketed),
            ("(wind)", Rejection::Bracketed),
            ("*sigh*", Rejection::Bracketed),
            ("♪ la la la ♪", Rejection::Bracketed),
            ("[MUSIC] (wind blowing).", Rejection::Bracketed),
            ("(wind blowing", Rejection::Bracketed),
            ("Thank you. Thank you. Thank you.", Rejection::Repeats { words: 2, times: 3 }),
            ("and then I go and then I go and then I go and", Rejection::Repeats { words: 4, times: 3 }),
            ("you you you you you", Rejection::Repeats { words: 1, times: 5 }),
            (
                "So I'm going to do it, I'm going to do it. I'm going to do it",
                Rejection::Repeats { words: 5, times: 3 },
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(judged(text, SURE), Err(wanted), "{text}");
        }
    }

    #[test]
    fn an_unsure_text_is_rejected_at_the_gate_and_not_before() {
        let unsure = |mean| judged("Hello there.", Doubt { mean_log_probability: mean, ..SURE });
        assert_eq!(unsure(-0.8), Ok(()));
        assert!(matches!(unsure(-0.81), Err(Rejection::Unsure { .. })));
        assert!(matches!(unsure(f32::NAN), Err(Rejection::Unsure { .. })));
    }

    #[test]
    fn no_speech_counts_for_english_models_only() {
        let doubt = Doubt { no_speech: 0.9, ..SURE };
        assert!(matches!(judged("Hello there.", doubt), Err(Rejection::NoSpeech { .. })));
        assert_eq!(judged("Hello there.", Doubt { english_only: false, ..doubt }), Ok(()));
        assert_eq!(judged("Hello there.", Doubt { no_speech: 0.6, ..SURE }), Ok(()));
    }

    #[test]
    fn a_rejection_never_tells_what_was_said() {
        let error = judged("My secret plan. My secret plan. My secret plan.", SURE).unwrap_err();
        assert!(!error.to_string().contains("secret") && !format!("{error:?}").contains("secret"));
    }
}
