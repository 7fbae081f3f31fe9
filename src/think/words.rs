//! The words that a model reads: the system prompt, the tools' descriptions, and the line that asks for words.
//!
//! They are files in `words/`, so that they can be read and changed as text; a test holds their bytes in a whole
//! request. They never change while the program runs: a server's prefix cache depends on it.

/// Who the robot is and how it answers; the first message of every request.
pub const SYSTEM: &str = include_str!("words/system.md");

/// The line that ends a turn's last tool result when the model must answer in words.
pub const ANSWER_NOW: &str = include_str!("words/answer_now.md");

/// How one picture that was just taken is put into words; the system prompt of a side request.
pub const PICTURE_NOW: &str = include_str!("words/pictures/now.md");

/// How one picture out of the memory is put into words.
pub const PICTURE_MEMORY: &str = include_str!("words/pictures/memory.md");

/// How several pictures of one stretch of time are put into words.
pub const PICTURE_DAY: &str = include_str!("words/pictures/day.md");

const TOOLS: &str = include_str!("words/tools.md");

/// The description of a tool (`remember`) or of one of its arguments (`remember.query`), in one line.
///
/// Empty where `tools.md` has no such section; a test shows that every section asked for is there.
#[must_use]
pub fn tool_words(section: &str) -> String {
    let mut inside = false;
    let mut words: Vec<&str> = Vec::new();
    for line in TOOLS.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            inside = title.trim() == section;
        } else if inside && !line.trim().is_empty() {
            words.push(line.trim());
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_prompt_says_what_a_small_model_must_be_told() {
        for needed in ["`remember` first", "`camera`", "NOW", "`move`", "before you have searched", "say when it was"] {
            assert!(SYSTEM.contains(needed), "{needed}");
        }
        assert!(SYSTEM.contains("Make nothing up") && SYSTEM.contains("one to three short sentences"));
        // About 4 bytes a token: the prompt may take a third of a window of 1000 tokens at most.
        assert!(SYSTEM.len() < 1400, "{} bytes", SYSTEM.len());
    }

    #[test]
    fn recalled_pictures_are_memories_and_are_never_called_pictures() {
        for words in [PICTURE_MEMORY, PICTURE_DAY] {
            for needed in ["your own memor", "past tense", "never", "say when", "nvent nothing"] {
                assert!(words.contains(needed), "{needed}: {words}");
            }
        }
        assert!(PICTURE_DAY.contains("newest first") && PICTURE_DAY.contains("one story"));
        assert!(PICTURE_NOW.contains("at this moment") && !PICTURE_NOW.contains("past tense"));
    }

    #[test]
    fn every_tool_and_argument_has_its_words() {
        for section in [
            "remember",
            "remember.query",
            "remember.about",
            "remember.direction",
            "remember.when",
            "camera",
            "camera.direction",
            "move",
            "move.gesture",
        ] {
            assert!(tool_words(section).len() > 10, "{section}");
        }
        assert_eq!(tool_words("no such section"), "");
    }

    #[test]
    fn remember_is_described_by_questions_in_the_past_tense() {
        let words = tool_words("remember");
        for question in ["Where did I leave", "What did you see", "Who was here"] {
            assert!(words.contains(question), "{question}");
        }
        assert!(tool_words("camera").contains("NOW") && tool_words("camera").contains("Never for the past"));
    }
}
