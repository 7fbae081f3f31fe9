//! Where a sentence surely ends.
//!
//! A decision about a place looks at the text before it and at a bounded stretch after it; where that stretch is not
//! there yet, it is [`Boundary::Unsure`].

/// Where the first sentence of a text ends, in characters from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    At(usize),
    /// Perhaps here; if the text ends now, certainly.
    Unsure(usize),
    None,
}

/// How far after a full stop is looked, in characters: over quotes, spaces and emoji to the next word, and through it.
const LOOK_AHEAD: usize = 32;

/// Stops of scripts that put no space after them.
const WIDE_STOPS: &str = "。！？｡︒";
const STOPS: &str = ".!?…؟।";
/// What may stand between a stop and the space after it.
const CLOSERS: &str = "\"'”’»)]}」』）】》*_`~";
/// What may stand before the first letter of the next sentence.
const OPENERS: &str = "\"'“‘«„([{¿¡*_`~#>-–—•";

/// Abbreviations that stand before what they belong to and end no sentence.
const NEVER_LAST: [&str; 37] = [
    "dr", "mr", "mrs", "ms", "mx", "prof", "st", "mt", "gen", "capt", "lt", "sgt", "rev", "hon", "e.g", "i.e", "cf",
    "vs", "approx", "ca", "fig", "vol", "bzw", "z.b", "d.h", "hr", "fr", "nr", "str", "т.е", "т.к", "им", "ул", "mme",
    "sra", "sr", "dept",
];
/// Abbreviations that may also end a sentence; a capital letter after them decides.
const MAY_BE_LAST: [&str; 1] = ["no"];
/// Words that begin a sentence and follow no initial or acronym as its name ("the U.S. It is…" against "U.S. Army").
const BEGINNINGS: [&str; 33] = [
    "i", "i'm", "it", "it's", "he", "she", "they", "we", "you", "the", "that", "this", "there", "then", "and", "but",
    "so", "in", "on", "at", "my", "your", "what", "where", "when", "who", "do", "did", "is", "are", "was", "if", "no",
];

/// The first sentence's end in `text`; `line_start` says whether `text` begins a line.
pub(super) fn first(text: &[char], line_start: bool, longest: usize) -> Boundary {
    for (at, character) in text.iter().enumerate().take(longest) {
        let found = match *character {
            '\n' => Boundary::At(at + 1),
            stop if WIDE_STOPS.contains(stop) => after_stop(text, at, true, line_start),
            stop if STOPS.contains(stop) => after_stop(text, at, false, line_start),
            _ => Boundary::None,
        };
        // The rest of a run of stops was judged with its first one.
        let inside_a_run = at > 0 && is_stop(text[at - 1]) && is_stop(*character);
        if found != Boundary::None && !inside_a_run {
            return found;
        }
    }
    if text.len() > longest { Boundary::At(cut(text, longest)) } else { Boundary::None }
}

fn is_stop(character: char) -> bool {
    STOPS.contains(character) || WIDE_STOPS.contains(character)
}

/// Whether the stop at `at` ends a sentence.
fn after_stop(text: &[char], at: usize, wide: bool, line_start: bool) -> Boundary {
    let window = text.len().min(at + LOOK_AHEAD);
    let full = text.len() >= at + LOOK_AHEAD;
    let run = (at..window).find(|&next| !is_stop(text[next])).unwrap_or(window);
    let end = (run..window).find(|&next| !CLOSERS.contains(text[next])).unwrap_or(window);
    if end == window {
        return if full { Boundary::At(end) } else { Boundary::Unsure(end) };
    }
    let next = text[end];
    let strong = wide || text[at..run].iter().any(|stop| *stop != '.' && *stop != '…');
    match next {
        '\n' => return Boundary::At(end + 1),
        // Closers that belong to the next word, as in 。「 or a quote that opens.
        _ if wide => return Boundary::At(end),
        next if !next.is_whitespace() && !super::clean::is_emoji(next) => return Boundary::None,
        _ if strong => return Boundary::At(end),
        _ => {}
    }
    let single = run == at + 1 && text[at] == '.';
    let word = word_before(text, at);
    if single && ends_nothing(&word, text, at, line_start) {
        return Boundary::None;
    }
    next_word_decides(text, end, window, full, if single { &word } else { "" })
}

/// After ". " the next word decides: a small letter goes on, anything else begins anew.
fn next_word_decides(text: &[char], end: usize, window: usize, full: bool, word: &str) -> Boundary {
    let skipped = |next: char| next.is_whitespace() || OPENERS.contains(next) || super::clean::is_emoji(next);
    let Some(start) = (end..window).find(|&next| text[next] == '\n' || !skipped(text[next])) else {
        return if full { Boundary::At(end) } else { Boundary::Unsure(end) };
    };
    let next = text[start];
    if next == '\n' {
        return Boundary::At(end);
    }
    if next.is_lowercase() {
        return Boundary::None;
    }
    if MAY_BE_LAST.contains(&word) && next.is_numeric() {
        return Boundary::None;
    }
    if !is_initials(word) {
        return Boundary::At(end);
    }
    let in_word = |next: char| next.is_alphabetic() || next == '\'' || next == '’';
    let Some(over) = (start..window).find(|&next| !in_word(text[next])) else {
        return if full { Boundary::None } else { Boundary::Unsure(end) };
    };
    let following: String = text[start..over].iter().flat_map(|letter| letter.to_lowercase()).collect();
    if BEGINNINGS.contains(&following.replace('’', "'").as_str()) { Boundary::At(end) } else { Boundary::None }
}

/// The word before the stop at `at`, with the dots inside it, as in `e.g` or `U.S`.
fn word_before(text: &[char], at: usize) -> String {
    // No abbreviation is longer than this; a longer word is cut and matches none.
    const LONGEST: usize = 12;
    let from = (at.saturating_sub(LONGEST)..at)
        .rev()
        .take_while(|&before| text[before].is_alphanumeric() || text[before] == '.')
        .last()
        .unwrap_or(at);
    let word: String = text[from..at].iter().collect();
    if is_initials(&word) { word } else { word.to_lowercase() }
}

/// `J`, `U.S`, `J.R.R`: single capital letters with dots between them.
fn is_initials(word: &str) -> bool {
    !word.is_empty()
        && word.split('.').all(|part| {
            let mut letters = part.chars();
            letters.next().is_some_and(char::is_uppercase) && letters.next().is_none()
        })
}

/// Whether the stop belongs to an abbreviation or to a list's number at the start of a line.
fn ends_nothing(word: &str, text: &[char], at: usize, line_start: bool) -> bool {
    if NEVER_LAST.contains(&word) {
        return true;
    }
    let before_is_blank = line_start
        && text[..at].iter().take_while(|character| character.is_whitespace()).count()
            == at.saturating_sub(word.chars().count());
    before_is_blank && !word.is_empty() && word.len() <= 3 && word.chars().all(|digit| digit.is_ascii_digit())
}

/// Where a sentence that is too long is cut: after the last comma or the like, else after the last space, else there.
fn cut(text: &[char], longest: usize) -> usize {
    let head = &text[..longest];
    let clause = (longest / 2..longest).rev().find(|&at| {
        (",;:–—".contains(head[at]) && text.get(at + 1).is_some_and(|next| next.is_whitespace()))
            || "，、；：".contains(head[at])
    });
    clause.or_else(|| head.iter().rposition(|character| character.is_whitespace())).map_or(longest, |at| at + 1)
}
