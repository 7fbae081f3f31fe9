//! What somebody said, cut into clauses and words. Pure.

/// A stretch of words between two marks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    pub words: Vec<Word>,
    /// A question mark ends it.
    pub asks: bool,
}

/// A word as it was said, and in lower case with a plain apostrophe.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub raw: String,
    pub low: String,
}

impl Word {
    fn of(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches(['\'', '’', '-']).replace('’', "'");
        (!raw.is_empty()).then(|| Self { low: raw.to_lowercase(), raw })
    }
}

/// Marks that end a clause. A hyphen inside a word does not.
fn ends_a_clause(letter: char) -> bool {
    const MARKS: &str = ".!?,;:…—–()[]\"“”„«»¿¡。、！？，；：「」،؟؛।|/\n";
    MARKS.contains(letter)
}

/// The clauses of `text`, empty ones left out.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut words = String::new();
    for letter in text.chars().chain(['.']) {
        if !ends_a_clause(letter) {
            words.push(letter);
            continue;
        }
        let asks = matches!(letter, '?' | '？' | '؟');
        let found: Vec<Word> = words.split_whitespace().filter_map(Word::of).collect();
        if !found.is_empty() {
            clauses.push(Clause { words: found, asks });
        }
        words.clear();
    }
    clauses
}

/// Whether a letter belongs to a script that joins its words.
pub(super) fn is_joined(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '々')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_cut_clauses_and_hyphens_and_apostrophes_do_not() {
        let cut = clauses("Hi! I’m Anna-Maria, d'accord? 我叫小明。");
        let words: Vec<Vec<&str>> =
            cut.iter().map(|clause| clause.words.iter().map(|word| word.low.as_str()).collect()).collect();
        assert_eq!(words, [vec!["hi"], vec!["i'm", "anna-maria"], vec!["d'accord"], vec!["我叫小明"]]);
        assert!(cut[2].asks && !cut[1].asks);
        assert!(clauses(" … ?! ").is_empty());
    }
}
