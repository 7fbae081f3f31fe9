//! A stand-in for a text model: a hashed bag of words and letter groups.
//!
//! For tests of parts that need vectors but no weights. It knows spelling, not meaning: texts that share words are
//! near, synonyms are not. The service never chooses it by itself; whoever uses it says so, by [`MODEL`].

use super::{EmbedError, EmbedText, Identity};

/// The model's name in its [`Identity`].
pub const MODEL: &str = "stand-in";

/// Numbers in a vector; the same as the real text models have.
pub const DIMENSION: usize = 384;

/// Letters in a group; three is the usual size for spelling likeness.
const GROUP: usize = 3;

/// Weight of a letter group against a whole word at 1; chosen by hand, not measured.
const GROUP_WEIGHT: f32 = 0.3;

/// The stand-in embedder; needs no files, cannot fail on a text that holds a letter or digit.
#[derive(Clone, Debug)]
pub struct StandIn {
    identity: Identity,
}

impl Default for StandIn {
    fn default() -> Self {
        Self::new()
    }
}

impl StandIn {
    #[must_use]
    pub fn new() -> Self {
        Self {
            identity: Identity {
                model: MODEL.to_owned(),
                weights: "none".to_owned(),
                preprocessing: 1,
                dimension: DIMENSION,
            },
        }
    }
}

impl EmbedText for StandIn {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn question(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        vector(text)
    }

    fn stored(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        texts.iter().map(|text| vector(text)).collect()
    }
}

fn vector(text: &str) -> Result<Vec<f32>, EmbedError> {
    let lower = text.to_lowercase();
    let mut sums = vec![0.0_f32; DIMENSION];
    for word in lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        add(&mut sums, word.as_bytes(), 1.0);
        let marked: Vec<char> = format!("<{word}>").chars().collect();
        for group in marked.windows(GROUP) {
            add(&mut sums, group.iter().collect::<String>().as_bytes(), GROUP_WEIGHT);
        }
    }
    let length = sums.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length <= f32::EPSILON {
        return Err(EmbedError::Refused { why: "it holds no word".to_owned() });
    }
    Ok(sums.into_iter().map(|number| number / length).collect())
}

/// Adds `weight` at the place that the hash of `key` chooses, with the sign that it chooses.
fn add(sums: &mut [f32], key: &[u8], weight: f32) {
    // FNV-1a, 64 bits (offset basis and prime from its specification): stable over versions and machines.
    let hash = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    let length = sums.len() as u64;
    if let Some(sum) = usize::try_from(hash % length).ok().and_then(|place| sums.get_mut(place)) {
        *sum += sign * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(left: &str, right: &str) -> f32 {
        let left = vector(left).expect("a vector");
        let right = vector(right).expect("a vector");
        left.iter().zip(&right).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn shared_words_are_nearer_than_none() {
        let near = cosine("Where is the key of the bicycle?", "The key of the bicycle is in the blue box.");
        let far = cosine("Where is the key of the bicycle?", "Tomorrow we visit grandmother.");
        assert!(near > far + 0.3, "near {near}, far {far}");
    }

    #[test]
    fn case_and_punctuation_do_not_matter_and_the_length_is_one() {
        assert!((cosine("Blue box!", "blue box") - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_text_without_words_is_refused() {
        assert!(matches!(StandIn::new().question(" ?! "), Err(EmbedError::Refused { .. })));
    }
}
