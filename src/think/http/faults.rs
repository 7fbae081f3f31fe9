//! What a server's complaint means for the turn. Pure: a status and a text in, what to do next out.
//!
//! The text may be JSON of any shape, a web page, or nothing; it is read by what it says.

use serde_json::Value;

use crate::think::brain::BrainError;

use super::body::OPTIONAL;

/// The most of a server's own words that go into a sentence, in characters.
const LONGEST_EXCERPT: usize = 200;

/// How the reason begins where the server answered with a status of refusal.
pub(super) const STATUS: &str = "status ";

/// What is done next.
#[derive(Debug)]
pub(super) enum Fault {
    /// Ask again without these options (bits of [`OPTIONAL`]).
    Options(u8, String),
    /// Ask once more.
    Again(String),
    Final(BrainError),
}

/// Who complained.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub url: &'a str,
    pub model: &'a str,
    /// Kept out of every sentence.
    pub key: Option<&'a str>,
}

impl Server<'_> {
    /// A fault that came with an HTTP status.
    pub fn status(&self, status: u16, body: &str) -> Fault {
        let words = self.excerpt(body);
        let lower = body.to_lowercase();
        let why = if words.is_empty() { format!("{STATUS}{status}") } else { format!("{STATUS}{status}: {words}") };
        match status {
            401 | 403 => self.misconfigured(format!(
                "the server at {} refuses the key ({why}); put the right one into the file at `key_file` in [think]",
                self.url
            )),
            413 => Fault::Final(BrainError::TooLong { why }),
            _ if status >= 400 && says_too_long(&lower) => Fault::Final(BrainError::TooLong { why }),
            404 | 405 => self.misconfigured(format!(
                "the server at {} knows no model {:?} or has no chat there ({why}); check `url` and `model` in [think]",
                self.url, self.model
            )),
            300..=399 => self.misconfigured(format!(
                "the server at {} sends elsewhere ({why}); write the address itself into `url` in [think]",
                self.url
            )),
            400 | 422 => match named_options(&lower) {
                0 => Fault::Final(self.unusable(why)),
                options => Fault::Options(options, why),
            },
            429 | 503 => Fault::Final(self.waking(why)),
            502 | 504 => Fault::Final(BrainError::Away { url: self.url.to_owned(), why }),
            _ if says_loading(&lower) => Fault::Final(self.waking(why)),
            500..=599 => Fault::Again(why),
            _ => Fault::Final(self.unusable(why)),
        }
    }

    /// A fault inside a stream that began with 200.
    pub fn stream(&self, text: &str) -> Fault {
        let words = self.excerpt(text);
        let lower = text.to_lowercase();
        if says_too_long(&lower) {
            return Fault::Final(BrainError::TooLong { why: words });
        }
        if says_loading(&lower) {
            return Fault::Final(self.waking(words));
        }
        Fault::Again(if words.is_empty() { "an error without words".into() } else { words })
    }

    /// A request that got no answer at all.
    pub fn transport(&self, error: &reqwest::Error) -> Fault {
        let why = super::events::reason(error);
        if error.is_builder() {
            return self.misconfigured(format!("the request to {} cannot be made: {why}", self.url));
        }
        if error.is_connect() || error.is_timeout() {
            return Fault::Final(BrainError::Away { url: self.url.to_owned(), why });
        }
        Fault::Again(why)
    }

    pub fn unusable(&self, why: String) -> BrainError {
        BrainError::Unusable { url: self.url.to_owned(), why }
    }

    fn waking(&self, why: String) -> BrainError {
        BrainError::Waking { url: self.url.to_owned(), why }
    }

    fn misconfigured(&self, sentence: String) -> Fault {
        Fault::Final(BrainError::Misconfigured { sentence })
    }

    /// The server's own words, short, in one line, without the key.
    pub fn excerpt(&self, body: &str) -> String {
        let words = match serde_json::from_str::<Value>(body) {
            Ok(value) => message_in(&value).unwrap_or_else(|| body.to_owned()),
            Err(_) => without_tags(body),
        };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = match self.key {
            Some(key) => words.replace(key, "(the key)"),
            None => words,
        };
        words.chars().take(LONGEST_EXCERPT).collect()
    }
}

/// Where servers put their sentence: `error.message`, `error`, `message`, `detail`.
fn message_in(value: &Value) -> Option<String> {
    match value {
        Value::String(words) => Some(words.clone()),
        Value::Object(object) => {
            ["error", "message", "detail", "response"].iter().find_map(|key| object.get(*key).and_then(message_in))
        }
        Value::Array(several) => several.first().and_then(message_in),
        _ => None,
    }
}

/// A web page's words.
fn without_tags(page: &str) -> String {
    let mut words = String::new();
    let mut inside = false;
    for character in page.chars().take(4096) {
        match character {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                words.push(' ');
            }
            other if !inside => words.push(other),
            _ => {}
        }
    }
    words
}

/// Sentences of llama.cpp, Ollama, LM Studio, vLLM and LiteRT-LM about a conversation beyond the context.
fn says_too_long(lower: &str) -> bool {
    const SENTENCES: [&str; 11] = [
        "exceed_context_size",
        "exceeds the available context",
        "context length",
        "context_length",
        "context window",
        "context size",
        "context the overflows",
        "too long",
        "too many tokens",
        "exceeds the maximum number of tokens",
        "input token count exceeds",
    ];
    SENTENCES.iter().any(|sentence| lower.contains(sentence))
}

fn says_loading(lower: &str) -> bool {
    const SENTENCES: [&str; 5] =
        ["loading model", "model is loading", "model is being loaded", "is sleeping", "still loading"];
    SENTENCES.iter().any(|sentence| lower.contains(sentence))
}

/// The options that a complaint names. Both switches for thinking go together, and of the two names for the longest
/// answer only the older one goes where both are named: the complaint then recommends the other.
fn named_options(lower: &str) -> u8 {
    let bit = |name: &str| OPTIONAL.iter().position(|option| *option == name).map_or(0, |at| 1_u8 << at);
    let mut options =
        OPTIONAL.iter().filter(|option| names(lower, option)).fold(0, |options, option| options | bit(option));
    let thinking = bit("reasoning_effort") | bit("chat_template_kwargs");
    if options & thinking != 0 || lower.contains("enable_thinking") || lower.contains("does not support thinking") {
        options |= thinking;
    }
    let both = bit("max_tokens") | bit("max_completion_tokens");
    if options & both == both {
        options &= !bit("max_completion_tokens");
    }
    options
}

fn names(lower: &str, option: &str) -> bool {
    lower.match_indices(option).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + option.len()..].chars().next();
        let joined = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || next == '_');
        !joined(before) && !joined(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server<'_> = Server { url: "http://a/v1", model: "gemma", key: Some("sk-geheim") };

    #[test]
    fn complaints_are_classified_by_status_and_text() {
        let kind = |status: u16, body: &str| match SERVER.status(status, body) {
            Fault::Options(..) => "options",
            Fault::Again(_) => "again",
            Fault::Final(BrainError::TooLong { .. }) => "too long",
            Fault::Final(BrainError::Waking { .. }) => "waking",
            Fault::Final(BrainError::Misconfigured { .. }) => "misconfigured",
            Fault::Final(BrainError::Away { .. }) => "away",
            Fault::Final(BrainError::Unusable { .. }) => "unusable",
            Fault::Final(_) => "other",
        };
        for (status, body, wanted) in [
            (400, r#"{"error":{"code":400,"type":"exceed_context_size_error","n_ctx":4096}}"#, "too long"),
            (400, r#"{"error":"This model's maximum context length is 4096 tokens"}"#, "too long"),
            (500, "Trying to keep the first 4000 tokens when context the overflows", "too long"),
            (413, "", "too long"),
            (400, r#"{"error":{"message":"unknown field reasoning_effort"}}"#, "options"),
            (422, r#"{"detail":[{"loc":["body","stream_options"]}]}"#, "options"),
            (400, r#"{"error":{"message":"\"gemma\" does not support thinking"}}"#, "options"),
            (400, "<html><body>Bad Request</body></html>", "unusable"),
            (401, "", "misconfigured"),
            (403, "no", "misconfigured"),
            (404, r#"{"error":"model 'gemma' not found"}"#, "misconfigured"),
            (302, "", "misconfigured"),
            (503, r#"{"error":{"message":"Loading model"}}"#, "waking"),
            (500, "model is loading", "waking"),
            (429, "", "waking"),
            (502, "<html>", "away"),
            (500, "Failed to parse tool call", "again"),
            (418, "", "unusable"),
        ] {
            assert_eq!(kind(status, body), wanted, "{status} {body}");
        }
    }

    #[test]
    fn of_two_names_for_the_longest_answer_one_stays() {
        let both = named_options("unsupported parameter: 'max_tokens'. use 'max_completion_tokens' instead.");
        assert_eq!(both, 1 << 4);
        assert_eq!(named_options("unknown field `max_completion_tokens`"), 1 << 5);
        assert_eq!(named_options("unknown: enable_thinking"), 0b11);
    }

    #[test]
    fn a_server_that_repeats_the_key_does_not_bring_it_into_a_sentence() {
        let Fault::Final(error) = SERVER.status(401, r#"{"error":{"message":"Incorrect key: sk-geheim"}}"#) else {
            panic!("not final");
        };
        assert!(!error.to_string().contains("sk-geheim") && error.to_string().contains("key_file"));
    }

    #[test]
    fn a_web_page_becomes_a_short_line() {
        let page = format!("<html><title>Router</title>\n<p>{}</p></html>", "word ".repeat(500));
        let words = SERVER.excerpt(&page);
        assert!(words.starts_with("Router word word") && words.chars().count() <= LONGEST_EXCERPT, "{words}");
    }
}
