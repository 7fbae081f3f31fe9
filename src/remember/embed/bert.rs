//! Words to vectors with a BERT encoder on candle: bge-small (CLS token) and MiniLM (mean of the tokens).
//!
//! The pooling belongs to the checkpoint: with the wrong one nothing fails and everything is found a little worse, so
//! each is held to reference vectors by a test. The weights are read-only after loading; calls from several threads
//! run side by side, each with its own activations. Threads within a call follow `RAYON_NUM_THREADS`.
//!
//! Measured with MiniLM at one x86 thread: 16 to 19 ms a short question; 109 MB resident after loading, 110 MB at the
//! peak (the ignored test `ms_per_short_question` prints them). Not measured on the robot.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use tokenizers::{Tokenizer, TruncationParams};

use super::{EmbedError, EmbedText, Identity, weights};

/// Tokens, padding included, that go through the model at once. At MiniLM's width the activations of one layer then
/// stay near 20 MB; computed, not measured. A single text may be longer than this and then goes alone.
const TOKENS_AT_ONCE: usize = 1024;

/// Questions whose vectors are kept: one turn asks the same one of several stores, and embeds it once (14 ms saved each
/// further time, measured with MiniLM at one thread).
const RECENT_QUESTIONS: usize = 4;

/// Room for the two special tokens and one of the text.
const FEWEST_TOKENS: usize = 3;

/// The three files of a checkpoint.
#[derive(Clone, Debug)]
pub struct BertFiles {
    /// `model.safetensors`.
    pub weights: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `config.json`.
    pub config: PathBuf,
}

/// How the hidden states of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The state of the first token (bge).
    Cls,
    /// The mean of the states of all tokens that are no padding (MiniLM).
    Mean,
}

/// A loaded model.
pub struct BertEmbedder {
    model: BertModel,
    tokenizer: Tokenizer,
    pooling: Pooling,
    question_prefix: String,
    normalise: bool,
    padding_id: u32,
    identity: Identity,
    /// The last questions with their vectors, the newest last.
    recent: Mutex<VecDeque<(String, Vec<f32>)>>,
}

impl std::fmt::Debug for BertEmbedder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BertEmbedder").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl BertEmbedder {
    /// Loads a checkpoint; blocks while some tens of megabytes are read.
    ///
    /// `question_prefix` is put before questions only; `normalise` divides each vector by its length; longer texts are
    /// cut after `max_tokens` tokens, special tokens included.
    ///
    /// # Errors
    /// [`EmbedError::Load`] when a file is missing or broken, or contradicts `max_tokens` or `identity`.
    pub fn load(
        files: &BertFiles,
        pooling: Pooling,
        question_prefix: &str,
        normalise: bool,
        max_tokens: usize,
        identity: Identity,
    ) -> Result<Self, EmbedError> {
        let config = read_config(files)?;
        if config.hidden_size != identity.dimension {
            return Err(load_error(
                &files.config,
                format!("its vectors have {} numbers, expected are {}", config.hidden_size, identity.dimension),
            ));
        }
        if !(FEWEST_TOKENS..=config.max_position_embeddings).contains(&max_tokens) {
            return Err(load_error(
                &files.config,
                format!(
                    "texts of {max_tokens} tokens were asked for, it takes {FEWEST_TOKENS} to {}",
                    config.max_position_embeddings
                ),
            ));
        }
        let padding_id =
            u32::try_from(config.pad_token_id).map_err(|error| load_error(&files.config, error.to_string()))?;
        let tokenizer = read_tokenizer(files, max_tokens)?;
        let known = tokenizer.get_vocab_size(true);
        if known > config.vocab_size {
            return Err(load_error(
                &files.tokenizer,
                format!("it knows {known} tokens, the model {}; they do not belong together", config.vocab_size),
            ));
        }
        // The pooler on top of the encoder is not used by either pooling.
        let tensors = weights::read(&files.weights, &["pooler.", "bert.pooler.", "cls."])
            .map_err(|why| load_error(&files.weights, why))?;
        let model = BertModel::load(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu), &config)
            .map_err(|error| load_error(&files.weights, error.to_string()))?;
        Ok(Self {
            model,
            tokenizer,
            pooling,
            question_prefix: question_prefix.to_owned(),
            normalise,
            padding_id,
            identity,
            recent: Mutex::default(),
        })
    }

    /// Vectors of `texts`, in their order, a bounded number of tokens at a time.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<u32>> = Vec::new();
        let mut longest = 0;
        for text in texts {
            let tokens = self.tokens(text)?;
            let grown = longest.max(tokens.len());
            if !batch.is_empty() && grown * (batch.len() + 1) > TOKENS_AT_ONCE {
                vectors.extend(self.run(&batch, longest)?);
                batch.clear();
                longest = 0;
            }
            longest = longest.max(tokens.len());
            batch.push(tokens);
        }
        if !batch.is_empty() {
            vectors.extend(self.run(&batch, longest)?);
        }
        Ok(vectors)
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        if text.trim().is_empty() {
            return Err(EmbedError::Refused { why: "it is empty".to_owned() });
        }
        let encoding =
            self.tokenizer.encode_fast(text, true).map_err(|error| EmbedError::Run { why: error.to_string() })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// One batch, padded on the right to `longest` tokens.
    fn run(&self, batch: &[Vec<u32>], longest: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let pooled = self.pooled(batch, longest).map_err(|error| EmbedError::Run { why: error.to_string() })?;
        pooled.into_iter().map(|vector| self.finished(vector)).collect()
    }

    fn pooled(&self, batch: &[Vec<u32>], longest: usize) -> candle_core::Result<Vec<Vec<f32>>> {
        let shape = (batch.len(), longest);
        let mut ids = Vec::with_capacity(batch.len() * longest);
        let mut mask = Vec::with_capacity(batch.len() * longest);
        for tokens in batch {
            let padding = longest - tokens.len();
            ids.extend_from_slice(tokens);
            ids.extend(std::iter::repeat_n(self.padding_id, padding));
            mask.extend(std::iter::repeat_n(1.0_f32, tokens.len()));
            mask.extend(std::iter::repeat_n(0.0_f32, padding));
        }
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let states = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let pooled = match self.pooling {
            Pooling::Cls => states.narrow(1, 0, 1)?.squeeze(1)?,
            Pooling::Mean => {
                let sum = states.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)?;
                sum.broadcast_div(&mask.sum_keepdim(1)?)?
            }
        };
        pooled.to_vec2()
    }

    /// Checks a vector and brings it to length one.
    fn finished(&self, mut vector: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
        if vector.len() != self.identity.dimension {
            let why = format!("a vector has {} numbers instead of {}", vector.len(), self.identity.dimension);
            return Err(EmbedError::Run { why });
        }
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        if !length.is_finite() || length <= f32::EPSILON {
            return Err(EmbedError::Run {
                why: format!("a vector has the length {length}; the weights may be broken"),
            });
        }
        if self.normalise {
            for number in &mut vector {
                *number /= length;
            }
        }
        Ok(vector)
    }
}

impl EmbedText for BertEmbedder {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        if text.trim().is_empty() {
            return Err(EmbedError::Refused { why: "it is empty".to_owned() });
        }
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, vector)) = recent().iter().find(|(question, _)| question == text) {
            return Ok(vector.clone());
        }
        let prefixed = format!("{}{text}", self.question_prefix);
        let vectors = self.embed(&[&prefixed])?;
        let vector =
            vectors.into_iter().next().ok_or_else(|| EmbedError::Run { why: "no vector came back".to_owned() })?;
        let mut recent = recent();
        if recent.len() >= RECENT_QUESTIONS {
            recent.pop_front();
        }
        recent.push_back((text.to_owned(), vector.clone()));
        Ok(vector)
    }

    fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embed(texts)
    }
}

fn read_config(files: &BertFiles) -> Result<Config, EmbedError> {
    let text = fs::read_to_string(&files.config).map_err(|error| load_error(&files.config, error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| load_error(&files.config, error.to_string()))
}

fn read_tokenizer(files: &BertFiles, max_tokens: usize) -> Result<Tokenizer, EmbedError> {
    let mut tokenizer =
        Tokenizer::from_file(&files.tokenizer).map_err(|error| load_error(&files.tokenizer, error.to_string()))?;
    // Some checkpoints ship a fixed padding and a truncation of their own; both are decided here.
    tokenizer.with_padding(None);
    tokenizer
        .with_truncation(Some(TruncationParams { max_length: max_tokens, ..TruncationParams::default() }))
        .map_err(|error| load_error(&files.tokenizer, error.to_string()))?;
    Ok(tokenizer)
}

fn load_error(path: &std::path::Path, why: impl Into<String>) -> EmbedError {
    EmbedError::Load { path: path.display().to_string(), why: why.into() }
}

#[cfg(test)]
mod tests;
