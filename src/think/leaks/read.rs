//! Reads the calls in leaked markup: Gemma's `call:name{key:<|"|>text<|"|>}`, Python-like `call:name(key="text")`,
//! and JSON in its several shapes. Anything that is not whole is no call.

use serde_json::{Map, Value};

/// How deep arguments may nest; ours are flat.
const DEEPEST: usize = 8;
/// How many calls one piece of markup may hold; the answer's own cap is lower.
const MOST: usize = 16;
/// Gemma's quotation mark.
const GEMMA_QUOTE: &str = "<|\"|>";

/// The whole calls in `raw`, by any name.
pub(super) fn calls_in(raw: &str) -> Vec<(String, Value)> {
    if let Some(at) = raw.find("call:") {
        let calls = gemma_calls(&raw[at..]);
        if !calls.is_empty() {
            return calls;
        }
    }
    let mut calls = Vec::new();
    let Some(start) = raw.find(['{', '[']) else { return calls };
    let Some(end) = balanced(raw, start) else { return calls };
    if let Ok(value) = serde_json::from_str::<Value>(&raw[start..end]) {
        json_calls(&value, &mut calls, 0);
    }
    calls
}

/// Whether JSON that is no whole call was at least meant as one, so that it is not read out.
pub(super) fn looks_like_a_call(raw: &str) -> bool {
    let named = super::super::tools::NAMES.iter().any(|name| raw.contains(&format!("\"{name}\"")));
    let has = |key: &str| raw.contains(key);
    (has("\"name\"") && (has("\"arguments\"") || has("\"parameters\"") || named)) || has("\"tool_calls\"")
}

/// Where the bracket at byte `open` of `text` is closed: the byte after it. Quoted brackets do not count.
pub(super) fn balanced(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    while let Some(next) = text[at..].chars().next() {
        if let Some(quote) = quote_at(&text[at..]) {
            at += quote.len() + quoted(&text[at + quote.len()..], quote)?.1;
            continue;
        }
        at += next.len_utf8();
        match next {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn quote_at(text: &str) -> Option<&'static str> {
    [GEMMA_QUOTE, "\""].into_iter().find(|quote| text.starts_with(quote))
}

/// The text up to the closing `quote`, and how many bytes it took with that quote.
fn quoted(text: &str, quote: &str) -> Option<(String, usize)> {
    let mut words = String::new();
    let mut at = 0;
    loop {
        if text[at..].starts_with(quote) {
            return Some((words, at + quote.len()));
        }
        let mut next = text[at..].chars();
        let character = next.next()?;
        at += character.len_utf8();
        if character == '\\' && quote != GEMMA_QUOTE {
            let escaped = next.next()?;
            at += escaped.len_utf8();
            words.push(match escaped {
                'n' => '\n',
                't' => '\t',
                other => other,
            });
        } else {
            words.push(character);
        }
    }
}

fn gemma_calls(raw: &str) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    let mut rest = raw;
    while let Some(at) = rest.find("call:") {
        let after = &rest[at + 5..];
        let Some(open) = after.find(['{', '(']) else { break };
        let name = after[..open].trim();
        let Some(end) = balanced(after, open) else { break };
        let inside = after[open..end].trim();
        // `call:x({…})` is an object in brackets; `call:x(a="b")` is the object itself.
        let body = inside
            .strip_prefix('(')
            .and_then(|inside| inside.strip_suffix(')'))
            .map(str::trim)
            .filter(|inside| inside.starts_with('{'))
            .unwrap_or(inside);
        match serde_json::from_str::<Value>(body).ok().or_else(|| Loose { rest: body }.whole()) {
            Some(arguments @ Value::Object(_)) if calls.len() < MOST => calls.push((name.to_owned(), arguments)),
            _ => break,
        }
        rest = &after[end..];
    }
    calls
}

fn json_calls(value: &Value, calls: &mut Vec<(String, Value)>, depth: usize) {
    if depth > DEEPEST || calls.len() >= MOST {
        return;
    }
    match value {
        Value::Array(several) => several.iter().for_each(|one| json_calls(one, calls, depth + 1)),
        Value::Object(object) => {
            if let Some(several) = object.get("tool_calls") {
                return json_calls(several, calls, depth + 1);
            }
            if let Some(function @ Value::Object(_)) = object.get("function") {
                return json_calls(function, calls, depth + 1);
            }
            let name = ["name", "tool", "function"].iter().find_map(|key| object.get(*key)?.as_str());
            let arguments = ["arguments", "parameters", "args"].iter().find_map(|key| object.get(*key));
            if let (Some(name), Some(arguments)) = (name, arguments) {
                calls.push((name.to_owned(), arguments.clone()));
            }
        }
        _ => {}
    }
}

/// A reader of objects whose keys have no quotes and whose texts have any.
struct Loose<'a> {
    rest: &'a str,
}

impl Loose<'_> {
    fn whole(mut self) -> Option<Value> {
        let value = self.value(0)?;
        self.rest.trim().is_empty().then_some(value)
    }

    fn eat(&mut self, wanted: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        for (open, close) in [("{", "}"), ("(", ")")] {
            if self.eat(open) {
                return self.object(close, depth);
            }
        }
        if self.eat("[") {
            return self.array(depth);
        }
        if let Some(words) = self.quoted_words() {
            return Some(Value::String(words?));
        }
        let end = self.rest.find([',', '}', ']', ')', '\n']).unwrap_or(self.rest.len());
        let word = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        Some(serde_json::from_str(word).unwrap_or_else(|_| match word {
            "None" | "" => Value::Null,
            other => Value::String(other.to_owned()),
        }))
    }

    /// `None` where no quotation begins, `Some(None)` where one never ends.
    fn quoted_words(&mut self) -> Option<Option<String>> {
        self.rest = self.rest.trim_start();
        let quote = [GEMMA_QUOTE, "\"", "'"].into_iter().find(|quote| self.rest.starts_with(quote))?;
        let Some((words, used)) = quoted(&self.rest[quote.len()..], quote) else { return Some(None) };
        self.rest = &self.rest[quote.len() + used..];
        Some(Some(words))
    }

    fn object(&mut self, close: &str, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        while !self.eat(close) {
            let key = match self.quoted_words() {
                Some(words) => words?,
                None => {
                    let end = self.rest.find([':', '=', ',', '}', ')'])?;
                    let key = self.rest[..end].trim().to_owned();
                    self.rest = &self.rest[end..];
                    key
                }
            };
            if !(self.eat(":") || self.eat("=")) {
                return None;
            }
            let value = self.value(depth + 1)?;
            object.insert(key, value);
            if !self.eat(",") && !self.rest.trim_start().starts_with(close) {
                return None;
            }
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        while !self.eat("]") {
            values.push(self.value(depth + 1)?);
            if !self.eat(",") && !self.rest.trim_start().starts_with(']') {
                return None;
            }
        }
        Some(Value::Array(values))
    }
}
