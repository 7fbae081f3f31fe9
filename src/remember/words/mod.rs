//! What is found by its words: names, numbers and codes, which likeness of meaning does not keep apart ("room 4127").
//!
//! Pure decisions over terms and their weights. A term is a hashed word as the engine's BM25 counts it; its weight is
//! its inverse document frequency in the memory that is searched. Nothing here can fail; a text without a countable
//! word simply has no terms, and is found by likeness alone.

mod engine;

use super::recall::is_talk;

pub use engine::{bag, terms};

/// From this share of a question's weight on, an exchange that holds it counts as found whatever its likeness (and if
/// more than one term, or a name or number, is among it). Swept together with the gate over the tune halves of
/// tests/questions/{exchanges,year,coast,village}_tune.toml with MiniLM: 0.6 was best, 0.55 to 0.75 nearly as good.
pub const ENOUGH: f32 = 0.6;

/// A name or a number of the question weighs so many times what its rarity gives it, in the share that a text holds:
/// "flight TP 576" is not "flight TP 571". Chosen together with [`Lift`].
const MARKED: f32 = 2.0;

/// A word that carries little weighs so much of what its rarity gives it: what is rare in a small memory is not what is
/// rare in the language ("How does Oskar get to sleep?"). Chosen together with [`Lift`].
const LIGHT: f32 = 0.2;

/// By how much words put a memory up in the order of answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lift {
    /// What a text that holds all of a question's weight is put up by, in cosine.
    pub most: f32,
    /// The power of the share: a small share says little, because a common word gives one.
    pub bend: f32,
    /// What the share counts where it is one everyday word of all that a question names, which may be there by chance
    /// ("electric guitar" for "electricity").
    pub alone: f32,
}

/// For exchanges. Chosen over the tune halves of tests/questions/{exchanges,year,coast,village}_tune.toml with MiniLM among
/// other numbers, sums with the BM25 score and reciprocal rank fusion, as the one that is best over all and in no
/// category behind likeness or BM25 alone; see `reachy-remembers eval recall`.
pub const EXCHANGES: Lift = Lift { most: 0.5, bend: 3.0, alone: 0.2 };

/// For facts, whose text is longer, with all its questions. Chosen over the tune half of tests/questions/facts.toml: 118
/// of 132 questions in new words had their fact in the first place, 104 by likeness alone.
pub const FACTS: Lift = Lift { most: 0.5, bend: 2.0, alone: 0.4 };

/// More terms of a question are not looked up; spoken questions have 2 to 8.
const MOST_TERMS: usize = 32;

/// The terms of a stored text with BM25's weights of their frequency, sorted by term.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bag(Vec<(u32, f32)>);

impl Bag {
    #[must_use]
    pub fn new(mut terms: Vec<(u32, f32)>) -> Self {
        terms.sort_unstable_by_key(|(term, _)| *term);
        Self(terms)
    }

    /// The terms with their weights, sorted by term.
    #[must_use]
    pub fn terms(&self) -> &[(u32, f32)] {
        &self.0
    }

    /// The weight of a term, where the text holds it.
    #[must_use]
    pub fn weight(&self, term: u32) -> Option<f32> {
        let place = self.0.binary_search_by_key(&term, |(term, _)| *term).ok()?;
        self.0.get(place).map(|(_, weight)| *weight)
    }
}

/// A question's terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Each once, sorted; at most 32.
    terms: Vec<u32>,
    /// Those of them that are names or hold a digit.
    marked: Vec<u32>,
    /// Those of them that carry little.
    light: Vec<u32>,
}

impl Asked {
    /// The terms of a question as it was heard or typed, without the words that only frame a question.
    #[must_use]
    pub fn of(question: &str) -> Self {
        let named: Vec<&str> = question.split_whitespace().filter(|word| !is_talk(bare(word))).collect();
        let mut all = terms(&named.join(" "));
        all.truncate(MOST_TERMS);
        let mut marked = names_and_numbers(question).flat_map(terms).collect::<Vec<_>>();
        marked.retain(|term| all.contains(term));
        let light = named.iter().filter(|word| is_light(bare(word))).flat_map(|word| terms(word)).collect();
        Self { terms: all, marked, light }
    }

    #[must_use]
    pub fn terms(&self) -> &[u32] {
        &self.terms
    }
}

/// Words that carry so little of a sentence that holding them says next to nothing, and that are no stop words of the
/// engine's.
fn is_light(word: &str) -> bool {
    const LIGHT: &str = "
        get gets getting got come comes coming came take takes taking took taken go goes going went gone make makes
        making made put puts give gives giving gave want wants wanted like likes liked need needs needed keep keeps kept
        find finds found use uses used see look bring brings brought let lets leave leaves left start starts stay stays
        kind sort way long old new good big little much many more now still again always never also other another one
        first next
    ";
    let word = word.to_lowercase();
    LIGHT.split_whitespace().any(|light| light == word)
}

/// Words with a digit, and words with a capital letter that do not begin a sentence.
fn names_and_numbers(question: &str) -> impl Iterator<Item = &str> {
    let mut begins = true;
    question.split_whitespace().filter(move |word| {
        let first = std::mem::replace(&mut begins, word.ends_with(['.', '!', '?', ':']));
        let bare = bare(word);
        let me = bare == "I" || bare.starts_with("I'") || bare.starts_with("I’");
        let capital = bare.starts_with(char::is_uppercase);
        bare.contains(|letter: char| letter.is_ascii_digit()) || (capital && !first && !me)
    })
}

fn bare(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
}

/// The weight of each of a question's terms in one memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights(Vec<(u32, f32)>);

impl Weights {
    /// `found`: the inverse document frequencies of the terms that the memory holds; the others weigh what a term does
    /// that none of its `texts` texts holds.
    #[must_use]
    pub fn new(asked: &Asked, found: &[(u32, f32)], texts: usize) -> Self {
        let unknown = rarity(0, texts);
        let weight = |term: u32| found.iter().find(|(other, _)| *other == term).map_or(unknown, |(_, weight)| *weight);
        Self(asked.terms.iter().map(|term| (*term, weight(*term))).collect())
    }

    /// How well a text matches by its words.
    #[must_use]
    pub fn compare(&self, asked: &Asked, bag: &Bag) -> Match {
        let (mut bm25, mut all, mut shared, mut terms, mut marked) = (0.0, 0.0, 0.0, 0, false);
        for (term, weight) in &self.0 {
            let is_marked = asked.marked.contains(term);
            let factor = if is_marked {
                MARKED
            } else if asked.light.contains(term) {
                LIGHT
            } else {
                1.0
            };
            let counts = factor * weight;
            all += counts;
            if let Some(frequency) = bag.weight(*term) {
                bm25 += weight * frequency;
                shared += counts;
                terms += 1;
                marked |= is_marked;
            }
        }
        let share = if all > 0.0 { shared / all } else { 0.0 };
        let alone = terms == 1 && !marked;
        Match { bm25, share, alone, found: share >= ENOUGH && terms > 0 && !alone }
    }
}

/// What a term weighs that `holders` of `texts` texts hold: its inverse document frequency by the engine's formula,
/// ln((n − df + 0.5) / (df + 0.5) + 1).
#[must_use]
pub fn rarity(holders: usize, texts: usize) -> f32 {
    ((texts as f32 - holders as f32 + 0.5) / (holders as f32 + 0.5)).ln_1p()
}

/// How a text matches a question by its words.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Match {
    /// The BM25 score, 0 and more.
    pub bm25: f32,
    /// The share of the question's weight that the text holds, 0…1; names and numbers weigh more.
    pub share: f32,
    /// Whether it is one everyday word.
    pub alone: bool,
    /// Whether that is enough to count as found.
    pub found: bool,
}

impl Match {
    /// What the text is put up by in the order of answers, in cosine.
    #[must_use]
    pub fn lift(&self, by: Lift) -> f32 {
        let counts = if self.alone { by.alone * self.share } else { self.share };
        by.most * counts.powf(by.bend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(question: &str, text: &str, found: &[(&str, f32)]) -> Match {
        let asked = Asked::of(question);
        let found: Vec<(u32, f32)> =
            found.iter().flat_map(|(word, weight)| terms(word).into_iter().map(|term| (term, *weight))).collect();
        Weights::new(&asked, &found, 100).compare(&asked, &bag(text))
    }

    #[test]
    fn a_number_and_a_code_are_found_by_their_words() {
        let room = "The meeting was moved to room 4127. Room 4127, all right.";
        let found = compare("What is in room 4127?", room, &[("room", 3.5), ("4127", 4.2)]);
        assert!(found.found && found.share > 0.99 && found.bm25 > 7.7, "{found:?}");
        let other = compare("What is in room 5011?", room, &[("room", 3.5)]);
        assert!(!other.found && other.share < 0.5, "{other:?}");
    }

    #[test]
    fn one_everyday_word_alone_finds_nothing_and_one_name_alone_does() {
        assert!(!compare("Can you help me?", "I have to help at the election.", &[("help", 4.0)]).found);
        assert!(
            compare(
                "What did we say about Zelenka?",
                "Doctor Zelenka looks at my eyes.",
                &[("zelenka", 5.0), ("say", 1.0)]
            )
            .found
        );
    }

    #[test]
    fn names_are_capital_letters_inside_a_sentence_and_numbers_hold_a_digit() {
        let marked = |question: &str| names_and_numbers(question).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(marked("Where did I put LH 1832?"), ["LH", "1832?"]);
        assert_eq!(marked("Tell me. What does Anna say?"), ["Anna"]);
        assert_eq!(marked("Where is the key?"), Vec::<String>::new());
    }

    #[test]
    fn words_that_carry_little_count_little() {
        let weights = [("oskar", 2.0), ("get", 4.0), ("sleep", 4.0)];
        let [right, wrong] = ["Oskar goes to sleep when somebody hums.", "Oskar gets a rash."]
            .map(|text| compare("How does Oskar get to sleep?", text, &weights).share);
        assert!(right > 0.85 && wrong < 0.6, "{right} {wrong}");
    }

    #[test]
    fn without_a_countable_word_nothing_matches() {
        assert_eq!(compare("What is it?", "It is what it is.", &[]), Match::default());
    }

    #[test]
    fn words_put_a_memory_up_but_a_common_or_a_single_word_hardly_does() {
        let weights = [("room", 3.5), ("4127", 4.2), ("meeting", 3.8), ("move", 4.0)];
        let lift = |question: &str, text: &str| compare(question, text, &weights).lift(FACTS);
        assert!(lift("Which meeting was moved to room 4127?", "The meeting was moved to room 4127.") > 0.49);
        assert!(lift("Which meeting was moved to room 4127?", "A room with a view.") < 0.06);
        let (alone, named) = (lift("A meeting?", "The meeting."), lift("And 4127?", "It is 4127."));
        assert!(alone < 0.25 && named > 0.49, "{alone} {named}");
    }

    #[test]
    fn a_number_decides_between_two_texts_that_share_a_word_each() {
        let weights = [("flight", 4.0), ("tp", 3.5), ("576", 4.1)];
        let [right, wrong] = ["On the way back we take TP 576.", "Our flight to Lisbon is TP 571."]
            .map(|text| compare("Which flight is TP 576?", text, &weights).share);
        assert!(right > wrong + 0.2, "{right} {wrong}");
    }
}
