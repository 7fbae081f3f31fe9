//! Takes out of a stream of text what was never meant for ears: tool calls and thoughts that leaked into it.
//!
//! Servers that cannot read a model's own tool-call format pass it on as text. [`LeakFilter`] holds such markup back,
//! however it is split over deltas, and [`read`] reads the calls in it. Text that cannot be the beginning of markup
//! passes at once. Pure, and bounded: markup longer than [`LONGEST_LEAK`] is dropped while it streams.

mod read;

use serde_json::Value;

/// The most markup that is kept to be read, in bytes. Not measured: the longest valid call has about 2 KB.
pub const LONGEST_LEAK: usize = 8 * 1024;

/// What came out of the filter, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text as the model wrote it, markdown and all.
    Text(String),
    /// A call to a registered tool; its arguments are not validated yet.
    Call { name: String, arguments: Value },
    /// Markup that holds no whole call to a registered tool; for the log's count, never for ears.
    HeldBack(String),
}

/// Markup with a beginning and one of several ends.
struct Tagged {
    opener: &'static str,
    closers: &'static [&'static str],
}

const CALL_ENDS: &[&str] =
    &["<tool_call|>", "</tool_call>", "<|/tool_call|>", "<|tool_call_end|>", "<end_function_call>"];

/// Gemma 4 writes `<|tool_call>call:name{…}<tool_call|>` and `<|channel>thought …<channel|>`; the others are what
/// Qwen, Hermes, FunctionGemma and reasoning models write.
const TAGGED: [Tagged; 10] = [
    Tagged { opener: "<|tool_call>", closers: CALL_ENDS },
    Tagged { opener: "<|tool_call|>", closers: CALL_ENDS },
    Tagged { opener: "<tool_call>", closers: CALL_ENDS },
    Tagged { opener: "<start_function_call>", closers: CALL_ENDS },
    Tagged { opener: "<function=", closers: &["</function>"] },
    Tagged { opener: "<|channel>", closers: &["<channel|>"] },
    Tagged { opener: "<|tool_response>", closers: &["<tool_response|>"] },
    Tagged { opener: "<tool_response>", closers: &["</tool_response>"] },
    Tagged { opener: "<think>", closers: &["</think>"] },
    Tagged { opener: "<thought>", closers: &["</thought>"] },
];

/// Single tokens that are dropped where they stand: stray ends of the above.
const STRAY: [&str; 10] = [
    "</tool_call>",
    "</function>",
    "</think>",
    "</thought>",
    "</tool_response>",
    "<end_function_call>",
    "<end_of_turn>",
    "<start_of_turn>",
    "[TOOL_CALLS]",
    "</s>",
];

/// Keys that begin a call written as bare JSON.
const JSON_CALL_KEYS: [&str; 4] = ["\"name\"", "\"tool_calls\"", "\"tool\"", "\"function\""];

/// What stands at a place of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Here {
    /// Ordinary text.
    Text,
    /// Perhaps markup: more text is needed.
    Unsure,
    /// A single token of this many bytes.
    Token(usize),
    Block(Block),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    /// Index into [`TAGGED`].
    Tagged(usize),
    /// `call:name{…}` or `call:name(…)`.
    Call,
    /// A JSON object at the start of a line.
    Json,
    /// A fenced block of JSON.
    Fence,
}

/// The filter of one answer.
#[derive(Debug, Default)]
pub struct LeakFilter {
    /// Text that is not decided yet; starts with the markup when `block` is set.
    held: String,
    block: Option<Block>,
    /// The block became too long; it is dropped up to its end.
    too_long: bool,
    /// The last character that went out, to know the beginnings of lines and words.
    last: Option<char>,
}

impl LeakFilter {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the stream and gives what is decided by now.
    pub fn push(&mut self, delta: &str) -> Vec<Piece> {
        self.held.push_str(delta);
        let mut out = Vec::new();
        self.advance(&mut out, false);
        out
    }

    /// Gives the rest. A call without its closing tag is read if it is whole.
    pub fn finish(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        self.advance(&mut out, true);
        out
    }

    fn advance(&mut self, out: &mut Vec<Piece>, ended: bool) {
        loop {
            let went_on = match self.block {
                Some(block) => self.leave_block(block, out, ended),
                None => self.pass_text(out, ended),
            };
            if !went_on || self.held.is_empty() {
                return;
            }
        }
    }

    /// Lets text pass up to the next markup. False when more text is needed (or none is left).
    fn pass_text(&mut self, out: &mut Vec<Piece>, ended: bool) -> bool {
        let mut passed = String::new();
        let mut at = 0;
        let mut verdict = Here::Text;
        while let Some(next) = self.held[at..].chars().next() {
            verdict = here(&self.held[at..], self.last, ended);
            if verdict != Here::Text {
                break;
            }
            passed.push(next);
            self.last = Some(next);
            at += next.len_utf8();
        }
        self.held.drain(..at);
        push_text(out, passed);
        match verdict {
            Here::Token(length) => {
                self.held.drain(..length);
                true
            }
            Here::Block(block) => {
                self.block = Some(block);
                true
            }
            Here::Text | Here::Unsure => false,
        }
    }

    /// Reads the markup at the start of `held` once its end is there. False when more text is needed.
    fn leave_block(&mut self, block: Block, out: &mut Vec<Piece>, ended: bool) -> bool {
        let end = block_end(block, &self.held).or_else(|| if ended { Some(open_end(block, &self.held)) } else { None });
        let Some(end) = end else {
            if self.held.len() <= LONGEST_LEAK {
                return false;
            }
            return self.shorten(block, out);
        };
        let raw: String = self.held.drain(..end).collect();
        self.block = None;
        if std::mem::take(&mut self.too_long) || end > LONGEST_LEAK {
            out.push(Piece::HeldBack(raw));
            return true;
        }
        let calls = read::calls_in(&raw);
        let is_code = calls.is_empty() && matches!(block, Block::Fence | Block::Json);
        if is_code && !read::looks_like_a_call(&raw) {
            // Ordinary code or JSON that somebody asked for: nothing readable is lost.
            self.last = raw.chars().next_back().or(self.last);
            push_text(out, raw);
            return true;
        }
        let known = calls.iter().any(|(name, _)| super::tools::NAMES.contains(&name.as_str()));
        for (name, arguments) in calls {
            if super::tools::NAMES.contains(&name.as_str()) {
                out.push(Piece::Call { name, arguments });
            }
        }
        if !known {
            out.push(Piece::HeldBack(raw));
        }
        true
    }

    /// Makes markup short that became too long. A tag or a fence is dropped up to its end; a bracket that is never
    /// closed ends here, and what follows is text again (true).
    fn shorten(&mut self, block: Block, out: &mut Vec<Piece>) -> bool {
        if matches!(block, Block::Call | Block::Json) {
            out.push(Piece::HeldBack(std::mem::take(&mut self.held)));
            self.block = None;
            return true;
        }
        self.too_long = true;
        // The opener stays, and enough of the tail to recognise an end that is split over deltas.
        let opener = self.held.char_indices().nth(32).map_or(0, |(at, _)| at);
        let mut tail = self.held.len().saturating_sub(64).max(opener);
        while !self.held.is_char_boundary(tail) {
            tail += 1;
        }
        self.held.replace_range(opener..tail, "");
        false
    }
}

fn push_text(out: &mut Vec<Piece>, text: String) {
    if text.is_empty() {
        return;
    }
    if let Some(Piece::Text(before)) = out.last_mut() {
        before.push_str(&text);
    } else {
        out.push(Piece::Text(text));
    }
}

/// What stands at the start of `text`, after `last`. With `ended`, no more text will come.
fn here(text: &str, last: Option<char>, ended: bool) -> Here {
    let verdict = match text.as_bytes().first() {
        Some(b'<' | b'[') => tag_here(text),
        Some(b'c') if !last.is_some_and(char::is_alphanumeric) => call_here(text),
        Some(b'{') if line_start(last) => json_here(text),
        Some(b'`') if line_start(last) => fence_here(text),
        _ => Here::Text,
    };
    if verdict == Here::Unsure && ended { Here::Text } else { verdict }
}

fn line_start(last: Option<char>) -> bool {
    last.is_none_or(|last| last == '\n')
}

fn tag_here(text: &str) -> Here {
    let mut unsure = false;
    for (index, tagged) in TAGGED.iter().enumerate() {
        if text.starts_with(tagged.opener) {
            return Here::Block(Block::Tagged(index));
        }
        unsure |= tagged.opener.starts_with(text);
    }
    for stray in STRAY {
        if text.starts_with(stray) {
            return Here::Token(stray.len());
        }
        unsure |= stray.starts_with(text);
    }
    if unsure { Here::Unsure } else { special_token_here(text) }
}

/// `<|name>`, `<|name|>` or `<name|>`: a control token of a chat template.
fn special_token_here(text: &str) -> Here {
    const LONGEST: usize = 32;
    let Some(inside) = text.strip_prefix('<') else { return Here::Text };
    let piped = inside.starts_with('|');
    let name_start = usize::from(piped);
    let name = inside[name_start..]
        .bytes()
        .take_while(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'/' | b'"'))
        .count();
    if name > LONGEST {
        return Here::Text;
    }
    let rest = &inside[name_start + name..];
    let length = 1 + name_start + name;
    match (piped, rest) {
        (_, "") => Here::Unsure,
        (true, rest) if rest.starts_with('>') => Here::Token(length + 1),
        (_, "|") if name > 0 => Here::Unsure,
        (_, rest) if rest.starts_with("|>") && name > 0 => Here::Token(length + 2),
        _ => Here::Text,
    }
}

fn call_here(text: &str) -> Here {
    const OPENER: &str = "call:";
    if OPENER.starts_with(text) {
        return Here::Unsure;
    }
    let Some(after) = text.strip_prefix(OPENER) else { return Here::Text };
    let name =
        after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')).count();
    match after.as_bytes().get(name) {
        None if name <= 40 => Here::Unsure,
        Some(b'{' | b'(') if name > 0 => Here::Block(Block::Call),
        _ => Here::Text,
    }
}

fn json_here(text: &str) -> Here {
    let inside = text[1..].trim_start();
    if inside.is_empty() {
        return if text.len() < 40 { Here::Unsure } else { Here::Text };
    }
    if JSON_CALL_KEYS.iter().any(|key| inside.starts_with(key)) {
        return Here::Block(Block::Json);
    }
    if JSON_CALL_KEYS.iter().any(|key| key.starts_with(inside)) { Here::Unsure } else { Here::Text }
}

/// A fence whose body begins like JSON, or that says that it is a tool call.
fn fence_here(text: &str) -> Here {
    if text.len() < 3 {
        return if "```".starts_with(text) { Here::Unsure } else { Here::Text };
    }
    let Some(after) = text.strip_prefix("```") else { return Here::Text };
    let language = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let rest = after[language..].trim_start();
    match (&after[..language], rest.as_bytes().first()) {
        (language, _) if language.len() > 16 => Here::Text,
        (_, None) => Here::Unsure,
        ("tool_call" | "tool_code" | "tool", Some(_)) | ("" | "json" | "JSON", Some(b'{' | b'[')) => {
            Here::Block(Block::Fence)
        }
        _ => Here::Text,
    }
}

/// Where the markup at the start of `text` ends, if its end is there.
fn block_end(block: Block, text: &str) -> Option<usize> {
    match block {
        Block::Tagged(index) => {
            let tagged = TAGGED.get(index)?;
            let from = tagged.opener.len();
            let closed = tagged
                .closers
                .iter()
                .filter_map(|closer| text[from..].find(closer).map(|at| (from + at, from + at + closer.len())))
                .min();
            // A second call may begin before the first was closed.
            let again = text[from..].find(tagged.opener).map(|at| from + at);
            match (closed, again) {
                (Some((at, _)), Some(again)) if again < at => Some(again),
                (Some((_, end)), _) => Some(end),
                (None, again) => again,
            }
        }
        Block::Call => read::balanced(text, text.find(['{', '('])?),
        Block::Json => read::balanced(text, 0),
        Block::Fence => text[3..].find("```").map(|at| at + 6),
    }
}

/// Where markup ends whose end never came: after its call where that is whole, else with the text.
fn open_end(block: Block, text: &str) -> usize {
    if let Block::Tagged(index) = block
        && TAGGED.get(index).is_some_and(|tagged| std::ptr::eq(tagged.closers, CALL_ENDS))
        && let Some(open) = text.find('{')
        && let Some(end) = read::balanced(text, open)
    {
        return end;
    }
    text.len()
}

#[cfg(test)]
mod tests;
