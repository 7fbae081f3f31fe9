//! Words as the 64 token numbers that the text tower takes.
//!
//! SigLIP 2 was trained on text in small letters, cut or padded to 64 tokens, with the padding attended to like
//! everything else. Each of these left out makes vectors that look right and find less, so none of them is an option.
//! Which special tokens stand around the words, and on which side the padding goes, the checkpoint's own
//! `tokenizer_config.json` says; without that file `tokenizer.json` decides the first, and the padding is Gemma's, on
//! the right (as the model was trained; not checked against the published file).

use std::path::Path;

use serde::Deserialize;
use tokenizers::{Tokenizer, TruncationParams};

use super::tower::TOKENS;
use crate::remember::embed::EmbedError;

/// The longest text that is looked at, in bytes. 64 tokens are about 300 letters; not measured.
const LONGEST: usize = 4096;

/// A token's name in the settings: alone, or with facts about it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Plain(String),
    Described { content: String },
}

impl Name {
    fn text(&self) -> &str {
        match self {
            Self::Plain(name) | Self::Described { content: name } => name,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Left,
    /// Also where nothing is said: the model was trained so.
    #[default]
    Right,
}

/// Gemma's padding token.
const PADDING: &str = "<pad>";

/// What of `tokenizer_config.json` decides the numbers.
#[derive(Deserialize)]
struct Settings {
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    bos_token: Option<Name>,
    eos_token: Option<Name>,
    pad_token: Option<Name>,
    #[serde(default)]
    padding_side: Side,
}

impl Settings {
    fn of_gemma() -> Self {
        Self {
            add_bos_token: None,
            add_eos_token: None,
            bos_token: None,
            eos_token: None,
            pad_token: Some(Name::Plain(PADDING.to_owned())),
            padding_side: Side::Right,
        }
    }
}

/// Who puts the special tokens around the words.
enum Special {
    /// `tokenizer.json` does, for the settings say nothing.
    Tokenizer,
    /// The settings say which; they then overrule `tokenizer.json`.
    Stated { before: Option<u32>, after: Option<u32> },
}

/// A loaded tokenizer. Gemma's, with 256,000 pieces, is the larger part of what loading the text side costs in time.
pub(super) struct Words {
    tokenizer: Tokenizer,
    special: Special,
    padding: u32,
    side: Side,
}

impl Words {
    /// # Errors
    /// [`EmbedError::Load`] when a file is missing or broken, or the two do not belong together.
    pub fn load(tokenizer_path: &Path, settings_path: Option<&Path>) -> Result<Self, EmbedError> {
        let wrong = |path: &Path, why: String| EmbedError::Load { path: path.display().to_string(), why };
        let settings = match settings_path {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| error.to_string())
                .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
                .map_err(|why| wrong(path, why))?,
            None => Settings::of_gemma(),
        };
        let settings_path = settings_path.unwrap_or(tokenizer_path);
        let mut tokenizer =
            Tokenizer::from_file(tokenizer_path).map_err(|error| wrong(tokenizer_path, error.to_string()))?;
        let number = |name: Option<&Name>, what: &str| {
            let name = name.ok_or_else(|| wrong(settings_path, format!("it names no {what} token")))?.text();
            tokenizer.token_to_id(name).ok_or_else(|| wrong(tokenizer_path, format!("it has no token {name}")))
        };
        let padding = number(settings.pad_token.as_ref(), "padding")?;
        let special = if settings.add_bos_token.is_none() && settings.add_eos_token.is_none() {
            Special::Tokenizer
        } else {
            // Said of one only, the other is what Gemma's tokenizer does by itself: a first token, no last one.
            let before = settings.add_bos_token.unwrap_or(true);
            let before = before.then(|| number(settings.bos_token.as_ref(), "first")).transpose()?;
            let after = settings.add_eos_token.unwrap_or(false);
            let after = after.then(|| number(settings.eos_token.as_ref(), "last")).transpose()?;
            Special::Stated { before, after }
        };
        tokenizer.with_padding(None);
        let room = match &special {
            Special::Tokenizer => TOKENS,
            Special::Stated { before, after } => TOKENS - before.iter().chain(after).count(),
        };
        tokenizer
            .with_truncation(Some(TruncationParams { max_length: room, ..TruncationParams::default() }))
            .map_err(|error| wrong(tokenizer_path, error.to_string()))?;
        Ok(Self { tokenizer, special, padding, side: settings.padding_side })
    }

    /// The [`TOKENS`] token numbers of a text; words that do not fit are left out at the end, as in training.
    ///
    /// # Errors
    /// [`EmbedError::Refused`] for an empty or endless text, [`EmbedError::Run`] when the tokenizer fails.
    pub fn tokens(&self, words: &str) -> Result<Vec<u32>, EmbedError> {
        if words.trim().is_empty() {
            return Err(EmbedError::Refused { why: "it is empty".to_owned() });
        }
        if words.len() > LONGEST {
            let why = format!("it has {} bytes, at most {LONGEST} are looked at", words.len());
            return Err(EmbedError::Refused { why });
        }
        let add = matches!(self.special, Special::Tokenizer);
        let encoded = self
            .tokenizer
            .encode_fast(words.to_lowercase(), add)
            .map_err(|error| EmbedError::Run { why: error.to_string() })?;
        let mut tokens = Vec::with_capacity(TOKENS);
        let (before, after) = match self.special {
            Special::Tokenizer => (None, None),
            Special::Stated { before, after } => (before, after),
        };
        tokens.extend(before);
        tokens.extend_from_slice(encoded.get_ids());
        tokens.extend(after);
        let missing = TOKENS.checked_sub(tokens.len()).ok_or_else(|| EmbedError::Run {
            why: format!("{} tokens came out of the tokenizer, at most {TOKENS} were asked for", tokens.len()),
        })?;
        let padding = std::iter::repeat_n(self.padding, missing);
        Ok(match self.side {
            Side::Right => tokens.into_iter().chain(padding).collect(),
            Side::Left => padding.chain(tokens).collect(),
        })
    }

    /// The pieces that it knows.
    pub fn known(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }
}

#[cfg(test)]
mod tests;
