//! Takes out of a sentence what a voice would stumble over: markdown, links' addresses, HTML tags, emoji.

/// A sentence as a voice should say it; `None` where nothing in it can be spoken. `line_start` says whether it begins
/// a line, where `- ` is a bullet and `#` a heading.
#[must_use]
pub fn clean(sentence: &[char], line_start: bool) -> Option<String> {
    let start = sentence.iter().position(|character| !character.is_whitespace())?;
    let mut text = &sentence[start..];
    if line_start {
        text = without_line_marks(text);
    }
    let plain = without_inline_marks(text);
    let plain = spaced(&plain);
    plain.chars().any(char::is_alphanumeric).then_some(plain)
}

/// Without bullets, headings and quotation marks of a line, and without a fence's own line.
fn without_line_marks(mut text: &[char]) -> &[char] {
    if text.starts_with(&['`', '`', '`']) {
        let line = text.iter().position(|character| *character == '\n').unwrap_or(text.len());
        // "```rust" is no speech; "```Hello there```" is.
        let only_a_word = text[3..line].iter().all(|character| !character.is_whitespace() && *character != '`');
        return if only_a_word { &text[line..] } else { text };
    }
    loop {
        let marks = match text.first() {
            Some('#') => text.iter().take_while(|character| **character == '#').count(),
            Some('-' | '*' | '+' | '•' | '>' | '|') => 1,
            _ => return text,
        };
        match text.get(marks) {
            Some(next) if next.is_whitespace() => {
                let rest = &text[marks..];
                let words = rest.iter().position(|character| !character.is_whitespace()).unwrap_or(rest.len());
                text = &rest[words..];
            }
            None => return &[],
            _ => return text,
        }
    }
}

fn without_inline_marks(text: &[char]) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let before = at.checked_sub(1).map(|before| text[before]);
        let rest = &text[at..];
        let next = rest.get(1).copied();
        let (kept, used) = match rest[0] {
            '!' if next == Some('[') && has_link(&rest[1..]) => (None, 1),
            '[' if has_link(rest) => (None, 1),
            ']' if next == Some('(') && address(&rest[1..]).is_some() => (None, 1 + address(&rest[1..]).unwrap_or(0)),
            '<' => tag(rest).map_or((Some('<'), 1), |used| (None, used)),
            ':' => emoji_name(rest, before).map_or((Some(':'), 1), |used| (None, used)),
            '`' => (None, 1),
            '~' if next == Some('~') || before == Some('~') => (None, 1),
            '*' if spaced_out(before, next) => (Some('*'), 1),
            '*' => (None, 1),
            '_' if inside_a_word(before, next) => (Some(' '), 1),
            '_' => (None, 1),
            '|' => (Some(' '), 1),
            '\u{20e3}' | '\u{fe0f}' | '\u{fe0e}' | '\u{200d}' => (None, 1),
            emoji if is_emoji(emoji) => (Some(' '), 1),
            other => (Some(other), 1),
        };
        plain.extend(kept);
        at += used.max(1);
    }
    plain
}

/// `2 * 3`: a mark that stands alone is no markup.
fn spaced_out(before: Option<char>, next: Option<char>) -> bool {
    before.is_some_and(char::is_whitespace) && next.is_some_and(char::is_whitespace)
}

fn inside_a_word(before: Option<char>, next: Option<char>) -> bool {
    before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric)
}

/// Whether `[` begins `[words](address)`.
fn has_link(text: &[char]) -> bool {
    let close = text.iter().skip(1).take_while(|character| **character != '[').position(|character| *character == ']');
    close.is_some_and(|close| address(&text[close + 2..]).is_some())
}

/// The length of `(address)` at the start of `text`: no spaces inside.
fn address(text: &[char]) -> Option<usize> {
    if text.first() != Some(&'(') {
        return None;
    }
    let close = text.iter().position(|character| *character == ')' || character.is_whitespace())?;
    let inside = &text[1..close];
    let is_address = inside.iter().any(|character| "./#:".contains(*character));
    (text[close] == ')' && is_address).then_some(close + 1)
}

/// The length of an HTML tag at the start of `text`.
fn tag(text: &[char]) -> Option<usize> {
    const LONGEST: usize = 64;
    let next = *text.get(1)?;
    if !(next.is_ascii_alphabetic() || next == '/') {
        return None;
    }
    let close = text.iter().take(LONGEST).position(|character| *character == '>')?;
    let is_address = text[..close].contains(&':');
    (!is_address).then_some(close + 1)
}

/// The length of `:name:` at the start of `text`, but not in `10:30:45` or `so: this: that`.
fn emoji_name(text: &[char], before: Option<char>) -> Option<usize> {
    const LONGEST: usize = 40;
    if before.is_some_and(char::is_alphanumeric) || !text.get(1)?.is_ascii_alphabetic() {
        return None;
    }
    let name = text[1..]
        .iter()
        .take(LONGEST)
        .take_while(|character| character.is_ascii_alphanumeric() || "_+-".contains(**character))
        .count();
    (text.get(name + 1) == Some(&':')).then_some(name + 2)
}

/// Pictures in place of letters. The blocks are Unicode's; text symbols such as ° and € are not among them.
pub(super) fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{fe0f}' | '\u{fe0e}' | '\u{200d}' | '\u{20e3}' | '\u{e0020}'..='\u{e007f}'
        | '\u{3030}' | '\u{303d}' | '\u{25aa}'..='\u{25fe}')
}

/// One space between words, none before a mark that ends something.
fn spaced(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let only_marks = word.chars().all(|character| ".,!?;:…)".contains(character));
        if !plain.is_empty() && !only_marks {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}
