//! What of a written sentence can be said aloud.
//!
//! A language model writes for the eye now and then: asterisks, headings, tags, emoji. A voice would read those out
//! ("asterisk asterisk"). Pure functions.

/// The words of `sentence` on one line, without markup; `None` where nothing is left to say.
#[must_use]
pub fn speakable(sentence: &str) -> Option<String> {
    let mut words = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = after_tag(rest) {
            words.push(' ');
            rest = after;
            continue;
        }
        rest = rest.get(next.len_utf8()..).unwrap_or("");
        match next {
            '*' | '_' | '`' | '#' | '~' | '|' => words.push(' '),
            _ if next.is_whitespace() || next.is_control() => words.push(' '),
            _ if is_picture(next) => words.push(' '),
            _ => words.push(next),
        }
    }
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().any(char::is_alphanumeric).then_some(line)
}

/// What follows the tag at the beginning of `text`, as in `<b>` or `</em>`; "3 < 5" begins with none.
fn after_tag(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let named = inside.strip_prefix('/').unwrap_or(inside);
    if !named.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let end = inside.find(['<', '>'])?;
    inside.get(end..)?.strip_prefix('>')
}

/// Emoji and other pictures, their joiners and modifiers, and characters that only lead somewhere else.
fn is_picture(character: char) -> bool {
    matches!(u32::from(character),
        0x1F000..=0x1FAFF | 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0xFE00..=0xFE0F | 0x200B..=0x200F | 0x2028..=0x202E
        | 0xE0000..=0xE007F | 0xE000..=0xF8FF | 0xFEFF | 0xFFFC | 0xFFFD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_is_not_read_out() {
        let cases = [
            ("**Hello** _you_!", "Hello you !"),
            ("# Heading\n- one\n- two", "Heading - one - two"),
            ("A <b>bold</b> word", "A bold word"),
            ("3 < 5 and 7 > 2", "3 < 5 and 7 > 2"),
            ("if a <b then", "if a <b then"),
            ("Fine 😀 thanks 👩‍🚀.", "Fine thanks ."),
            ("-5 degrees", "-5 degrees"),
            ("Größe, naïve, 日本", "Größe, naïve, 日本"),
        ];
        for (written, said) in cases {
            assert_eq!(speakable(written).as_deref(), Some(said), "{written}");
        }
    }

    #[test]
    fn where_no_word_is_left_there_is_nothing_to_say() {
        for written in ["", "  \n", "***", "…", "<br/>", "😀", "<b></b>", "- -", "\u{0}"] {
            assert_eq!(speakable(written), None, "{written:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_said_is_one_line_without_control_characters(text in "\\PC{0,60}|[<>a-z/*\n ]{0,60}") {
            if let Some(line) = speakable(&text) {
                prop_assert!(!line.chars().any(char::is_control));
                prop_assert!(line.chars().any(char::is_alphanumeric));
            }
        }
    }
}
