//! Words, numbers and clock figures, before they are read as times. Pure.

/// A word in lower case without apostrophes, and where it stands.
pub(super) struct Token {
    pub(super) word: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let part_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’' | ':');
    let mut tokens = Vec::new();
    let mut start = None;
    for (place, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        match (part_of_word(letter), start) {
            (true, None) => start = Some(place),
            (false, Some(begin)) => {
                let raw = text.get(begin..place).unwrap_or_default();
                let kept = raw.trim_matches([':', '\'', '’']);
                let begin = begin + raw.find(kept).unwrap_or_default();
                let word = kept.to_lowercase().replace(['\'', '’'], "");
                if !word.is_empty() {
                    tokens.push(Token { word, start: begin, end: begin + kept.len() });
                }
                start = None;
            }
            _ => {}
        }
    }
    tokens
}

/// Which half of the day a clock of twelve hours means.
#[derive(Clone, Copy)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

impl Half {
    pub(super) fn read(word: &str) -> Option<Self> {
        match word {
            "am" => Some(Self::Morning),
            "pm" => Some(Self::Afternoon),
            _ => None,
        }
    }

    pub(super) fn of_part(last: &str, first: &str) -> Self {
        if last == "morning" || first == "a" { Self::Morning } else { Self::Afternoon }
    }
}

/// Reads "8", "8:30", "8pm", "eight"; `minute` is what stood before.
pub(super) fn clock_figures(word: &str, minute: i8) -> Option<(i8, i8, Option<Half>)> {
    let (figures, half) = match word.strip_suffix("am").or_else(|| word.strip_suffix("pm")) {
        Some(figures) if !figures.is_empty() => (figures, Half::read(&word[figures.len()..])),
        _ => (word, None),
    };
    let (hour, minute) = match figures.split_once(':') {
        Some((hour, minutes)) => (hour.parse().ok()?, minutes.parse().ok()?),
        None => (i8::try_from(number(figures)?).ok()?, minute),
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute, half))
}

/// A number up to sixty in words, or any in figures.
pub(super) fn number(word: &str) -> Option<i64> {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if let Some(place) = WORDS.iter().position(|known| *known == word) {
        return i64::try_from(place).ok();
    }
    match word {
        "fifteen" => Some(15),
        "twenty" => Some(20),
        "thirty" => Some(30),
        "forty" => Some(40),
        "fifty" => Some(50),
        "sixty" => Some(60),
        _ => word.parse().ok(),
    }
}
