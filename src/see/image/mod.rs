//! Pictures, and words about pictures, to vectors of one space: SigLIP 2 base patch16-224 on candle.
//!
//! A [`SiglipEmbedder`] owns the checkpoint's open file and its two towers. Anybody may ask it from any blocking
//! thread; calls run side by side, each with its own activations. [`checkpoint`] reads the file, [`tower`] is the
//! network, [`pixels`] and [`words`] make its input, [`text_side`] holds the text tower for as long as it is asked.
//!
//! [`SiglipEmbedder::new`] looks at every tensor's place and shape, so that a wrong or torn file is found when the robot
//! starts; it loads nothing. The picture tower is read on its first use, by the thread that needs it: 372 MB from an
//! SD card are many seconds that the robot's start need not wait for ([`SiglipEmbedder::warm`] does it earlier). It
//! then stays, for pictures come all day. The text tower is wanted only when a day is sampled: it is read when words
//! come and let go after [`SiglipFacts::keep_text`] without any, or at once by [`SiglipEmbedder::release_text`].
//!
//! When a call fails, the embedder stays usable and the next call tries again, loading included.

mod checkpoint;
mod gelu;
mod pixels;
mod text_side;
mod tower;
mod words;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use checkpoint::AtRest;
pub use pixels::square;

use self::checkpoint::Checkpoint;
use self::text_side::{TextFiles, TextSide};
use self::tower::{TextTower, VisionTower, WIDTH};
use super::{EmbedImage, Rgb};
use crate::remember::embed::{EmbedError, Identity};

/// The text tower is let go after this time without words. A day is sampled with one question, and people ask again
/// within a minute or not at all; not measured.
pub const KEEP_TEXT: Duration = Duration::from_secs(120);

/// The four files of a checkpoint.
#[derive(Clone, Debug)]
pub struct SiglipFiles {
    /// `model.safetensors` with both towers, in 32-bit or either kind of 16-bit floats.
    pub weights: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `tokenizer_config.json`: special tokens and the side of the padding; without it, Gemma's.
    pub tokenizer_config: Option<PathBuf>,
    /// `preprocessor_config.json`: must ask for the preprocessing that is done here.
    pub preprocessor_config: PathBuf,
}

/// How the checkpoint is run; the default is what the robot uses.
#[derive(Clone, Debug)]
pub struct SiglipFacts {
    /// How the matrices are held.
    pub at_rest: AtRest,
    /// The text tower is let go after this time without words.
    pub keep_text: Duration,
}

impl Default for SiglipFacts {
    fn default() -> Self {
        Self { at_rest: AtRest::Bf16, keep_text: KEEP_TEXT }
    }
}

/// The embedder for pictures and for words about them.
pub struct SiglipEmbedder {
    weights: PathBuf,
    at_rest: AtRest,
    identity: Identity,
    checkpoint: Arc<Checkpoint>,
    /// Locked while it is loaded, so that it is loaded once; not while it runs.
    vision: Mutex<Option<Arc<VisionTower>>>,
    text: TextSide,
}

impl std::fmt::Debug for SiglipEmbedder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SiglipEmbedder").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl SiglipEmbedder {
    /// Opens a checkpoint and checks that both towers are in it, whole; loads neither. Takes milliseconds.
    ///
    /// # Errors
    /// [`EmbedError::Load`] when a file is missing or broken, is of another model, or contradicts `identity`.
    pub fn new(files: SiglipFiles, facts: SiglipFacts, identity: Identity) -> Result<Self, EmbedError> {
        if identity.dimension != WIDTH {
            let why = format!("its vectors have {WIDTH} numbers, expected are {}", identity.dimension);
            return Err(load_error(&files.weights, why));
        }
        pixels::check_settings(&files.preprocessor_config)
            .map_err(|why| load_error(&files.preprocessor_config, why))?;
        for path in std::iter::once(&files.tokenizer).chain(&files.tokenizer_config) {
            std::fs::metadata(path).map_err(|error| load_error(path, error.to_string()))?;
        }
        let checkpoint = Checkpoint::open(&files.weights)
            .and_then(|checkpoint| {
                VisionTower::measure(&checkpoint)?;
                TextTower::measure(&checkpoint)?;
                Ok(Arc::new(checkpoint))
            })
            .map_err(|why| load_error(&files.weights, why))?;
        let text_files = TextFiles {
            weights: files.weights.clone(),
            tokenizer: files.tokenizer,
            tokenizer_config: files.tokenizer_config,
        };
        let text = TextSide::new(text_files, Arc::clone(&checkpoint), facts.at_rest, facts.keep_text);
        Ok(Self {
            weights: files.weights,
            at_rest: facts.at_rest,
            identity,
            checkpoint,
            vision: Mutex::new(None),
            text,
        })
    }

    /// Loads the picture tower now, if it is not there yet. Blocks for as long as the disk needs.
    ///
    /// # Errors
    /// [`EmbedError::Load`].
    pub fn warm(&self) -> Result<(), EmbedError> {
        self.vision().map(drop)
    }

    /// Lets the text tower go; true when there was one. A question that is being embedded keeps it until it is done.
    pub fn release_text(&self) -> bool {
        self.text.release()
    }

    /// Whether the text tower is in memory.
    #[must_use]
    pub fn text_is_loaded(&self) -> bool {
        self.text.is_loaded()
    }

    fn vision(&self) -> Result<Arc<VisionTower>, EmbedError> {
        // Poison can be passed over: the lock guards a whole tower or none.
        let mut vision = self.vision.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tower) = &*vision {
            return Ok(Arc::clone(tower));
        }
        let tower = VisionTower::load(&self.checkpoint, self.at_rest).map_err(|why| load_error(&self.weights, why))?;
        Ok(Arc::clone(vision.insert(Arc::new(tower))))
    }
}

impl EmbedImage for SiglipEmbedder {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn picture(&self, picture: &Rgb) -> Result<Vec<f32>, EmbedError> {
        let square = pixels::square(picture).map_err(|why| EmbedError::Refused { why })?;
        let tower = self.vision()?;
        let vector = tower.run(pixels::patches(&square)).map_err(|error| EmbedError::Run { why: error.to_string() })?;
        unit(vector)
    }

    fn words(&self, words: &str) -> Result<Vec<f32>, EmbedError> {
        self.text.vector(words).and_then(unit)
    }
}

/// Brings a vector to length one.
///
/// # Errors
/// [`EmbedError::Run`] when it has another dimension, holds what is no number, or has no length.
fn unit(mut vector: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
    if vector.len() != WIDTH {
        return Err(EmbedError::Run { why: format!("a vector has {} numbers instead of {WIDTH}", vector.len()) });
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::EPSILON {
        let why = format!("a vector has the length {length}; the weights may be broken");
        return Err(EmbedError::Run { why });
    }
    for number in &mut vector {
        *number /= length;
    }
    Ok(vector)
}

fn load_error(path: &Path, why: String) -> EmbedError {
    EmbedError::Load { path: path.display().to_string(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_vector_of_numbers_is_handed_out() {
        let vector = unit(vec![2.0; WIDTH]).unwrap();
        assert!((vector.iter().map(|number| number * number).sum::<f32>() - 1.0).abs() < 1e-5);
        let mut broken = vec![1.0; WIDTH];
        broken[7] = f32::NAN;
        for vector in [vec![1.0; WIDTH - 1], vec![0.0; WIDTH], vec![f32::INFINITY; WIDTH], broken] {
            assert!(matches!(unit(vector), Err(EmbedError::Run { .. })));
        }
    }
}
