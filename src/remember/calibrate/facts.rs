//! Questions about facts: each fact has the questions that it answers, and the nearest of them counts.

use super::{CalibrateError, Half, Halves, Measured};
use crate::remember::embed::{EmbedText, cosine};

/// A question and the key of the fact that answers it.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answerable {
    pub asks: String,
    pub finds: String,
}

/// Questions about facts.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    pub tune: Halves<Answerable>,
    pub held: Halves<Answerable>,
}

impl Questions {
    /// Reads a file of questions.
    ///
    /// # Errors
    /// [`CalibrateError::Questions`].
    pub fn parse(text: &str) -> Result<Self, CalibrateError> {
        toml::from_str(text).map_err(|error| CalibrateError::Questions(error.to_string()))
    }

    /// What each question comes to at every gate. `facts`: each one's key and the questions that it answers. Blocks.
    ///
    /// # Errors
    /// [`CalibrateError::Embed`]; [`CalibrateError::Questions`] for a fact that is not there.
    pub fn measure(
        &self,
        facts: &[(&str, &[String])],
        embedder: &dyn EmbedText,
    ) -> Result<Vec<Measured>, CalibrateError> {
        let mut stored = Vec::new();
        for (key, questions) in facts {
            let texts: Vec<&str> = questions.iter().map(String::as_str).collect();
            stored.extend(embedder.stored(&texts)?.into_iter().map(|vector| (*key, vector)));
        }
        let mut measured = Vec::new();
        for (half, questions) in [(Half::Tune, &self.tune), (Half::Held, &self.held)] {
            let answerable = questions.answerable.iter().map(|one| (&one.asks, Some(one.finds.as_str())));
            for (asks, finds) in answerable.chain(questions.absent.iter().map(|asks| (asks, None))) {
                if let Some(finds) = finds.filter(|finds| !facts.iter().any(|(key, _)| key == finds)) {
                    let why = format!("“{asks}” finds the fact {finds}, which is not there");
                    return Err(CalibrateError::Questions(why));
                }
                let question = embedder.question(asks)?;
                let nearest = stored.iter().map(|(key, vector)| (*key, cosine(vector, &question)));
                let nearest = nearest.max_by(|a, b| a.1.total_cmp(&b.1));
                let answer = |gate| nearest.filter(|(_, score)| *score >= gate).map(|(key, _)| finds == Some(key));
                measured.push(Measured::new(asks, half, finds.is_some(), nearest.map(|(_, score)| score), answer));
            }
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remember::calibrate::{at_gate, best, sweep};
    use crate::remember::embed::stand_in::StandIn;

    #[test]
    fn a_fact_is_found_by_the_nearest_of_its_questions() {
        let text = "[tune]\nanswerable = [{ asks = \"Where is your memory kept?\", finds = \"where\" }]\nabsent = [\"Who won \
                    the football match?\"]\n[held]\nanswerable = []\nabsent = []\n";
        let (one, other) =
            (["Where is the memory kept?".to_owned(), "Which disk?".to_owned()], ["Who are you?".to_owned()]);
        let facts: [(&str, &[String]); 2] = [("where", &one), ("who", &other)];
        let questions = Questions::parse(text).unwrap();
        let measured = questions.measure(&facts, &StandIn::new()).unwrap();
        let gate = best(&sweep(&measured)).unwrap().gate;
        let at = at_gate(&measured, None, gate);
        assert_eq!((at.right, at.wrong, at.missed), (1, 0, 0), "{gate}");
        assert!(questions.measure(&facts[1..], &StandIn::new()).is_err());
    }
}
