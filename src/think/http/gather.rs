//! Puts the fragments of one streamed answer together. Pure.
//!
//! Servers agree on little here: calls share an index or an id, arguments come as objects, the reason for the end is
//! missing or unknown. So every chunk is any JSON, and the calls themselves are trusted over what is said about them.

use serde_json::Value;

use crate::think::brain::Usage;

/// The most fragments of arguments kept for one call, in bytes; a valid call has about 2 KB at most.
const LONGEST_ARGUMENTS: usize = 16 * 1024;

/// The most calls kept of one answer; later ones are only counted.
const MOST_CALLS: usize = 16;

/// A call as far as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RawCall {
    index: Option<u64>,
    pub id: String,
    pub name: String,
    text: String,
    object: Option<Value>,
}

impl RawCall {
    pub fn new(name: String, arguments: Value) -> Self {
        Self { name, object: Some(arguments), ..Self::default() }
    }

    /// The arguments: an object where they are one, else the text as it came.
    pub fn arguments(&self) -> Value {
        match &self.object {
            Some(object) => object.clone(),
            None => Value::String(self.text.clone()),
        }
    }

    /// Whether the arguments are one whole JSON object.
    pub fn is_whole(&self) -> bool {
        self.object.is_some() || serde_json::from_str::<Value>(&self.text).is_ok()
    }

    fn has_arguments(&self) -> bool {
        self.object.is_some() || !self.text.trim().is_empty()
    }

    fn add(&mut self, arguments: &Value) {
        match arguments {
            Value::String(text) if self.text.len() + text.len() <= LONGEST_ARGUMENTS => self.text.push_str(text),
            // Too long to be valid: an unfinished text never parses, so the call is refused.
            Value::String(_) => self.text = "{ too long".into(),
            Value::Object(_) => self.object = Some(arguments.clone()),
            _ => {}
        }
    }
}

/// What one chunk brought.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Text of the answer.
    pub text: String,
    /// A token came: text or part of a call.
    pub means_something: bool,
    /// A token of a thought came.
    pub thought: bool,
    /// The server reported a fault in mid-stream.
    pub fault: Option<String>,
}

/// One answer as far as it came.
#[derive(Debug, Default)]
pub(super) struct Gather {
    calls: Vec<RawCall>,
    /// Calls beyond [`MOST_CALLS`].
    uncounted: usize,
    /// Set once the server gave any reason for the end.
    pub finish_reason: Option<String>,
    pub usage: Option<Usage>,
    pub thoughts: bool,
}

impl Gather {
    /// Takes one chunk of a stream, or a whole completion.
    pub fn take(&mut self, chunk: &Value) -> Step {
        let mut step = Step { fault: fault_in(chunk), ..Step::default() };
        if let Some(usage) = usage_in(chunk) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else { return step };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish_reason = Some(reason.to_owned());
        }
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else { return step };
        step.text = words_in(delta.get("content"));
        step.thought =
            ["reasoning_content", "reasoning", "thinking"].iter().any(|key| !words_in(delta.get(*key)).is_empty());
        self.thoughts |= step.thought;
        step.means_something = !step.text.is_empty();
        match delta.get("tool_calls") {
            Some(Value::Array(fragments)) => {
                for fragment in fragments {
                    step.means_something |= self.take_call(fragment);
                }
            }
            Some(fragment @ Value::Object(_)) => step.means_something |= self.take_call(fragment),
            _ => {}
        }
        if let Some(function @ Value::Object(_)) = delta.get("function_call") {
            step.means_something |= self.take_call(&serde_json::json!({ "index": 0, "function": function }));
        }
        step
    }

    /// The calls in their order, and how many more there were.
    pub fn calls(self) -> (Vec<RawCall>, usize) {
        (self.calls, self.uncounted)
    }

    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    fn take_call(&mut self, fragment: &Value) -> bool {
        let function = fragment.get("function").unwrap_or(fragment);
        let words = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let name = words(function.get("name"));
        let id = words(fragment.get("id"));
        let index = fragment.get("index").and_then(Value::as_u64);
        let arguments = function.get("arguments").or_else(|| function.get("parameters")).unwrap_or(&Value::Null);
        if name.is_empty() && id.is_empty() && arguments.is_null() {
            return false;
        }
        match self.continued(index, &id, &name, arguments) {
            Some(call) => {
                let Some(call) = self.calls.get_mut(call) else { return true };
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name.is_empty() {
                    call.name = name;
                }
                call.add(arguments);
            }
            // A server that lost its way repeats calls without end; fragments of those have nowhere to go.
            None if self.calls.len() >= MOST_CALLS => self.uncounted += usize::from(!name.is_empty()),
            None if name.is_empty() && self.uncounted > 0 => {}
            None => {
                let mut call = RawCall { index, id, name, ..RawCall::default() };
                call.add(arguments);
                self.calls.push(call);
            }
        }
        true
    }

    /// Which known call a fragment continues; `None` when it begins one.
    fn continued(&self, index: Option<u64>, id: &str, name: &str, arguments: &Value) -> Option<usize> {
        if name.is_empty() && self.uncounted > 0 {
            return None;
        }
        let known = if index.is_some() {
            self.calls.iter().rposition(|call| call.index == index)
        } else if id.is_empty() {
            self.calls.len().checked_sub(1)
        } else {
            self.calls.iter().rposition(|call| call.id == id)
        }?;
        let call = self.calls.get(known)?;
        let another_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        let another_name = !name.is_empty() && !call.name.is_empty() && call.name != name;
        // Some servers repeat the name in every fragment; a second call begins only after the first is whole, and only
        // with arguments of its own.
        let brings_arguments = match arguments {
            Value::String(text) => !text.trim().is_empty(),
            other => !other.is_null(),
        };
        let begins_anew = !name.is_empty() && brings_arguments && call.has_arguments() && call.is_whole();
        (!another_id && !another_name && !begins_anew).then_some(known)
    }
}

/// Text, or a list of parts that hold text.
fn words_in(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        _ => String::new(),
    }
}

fn fault_in(chunk: &Value) -> Option<String> {
    match chunk.get("error") {
        None | Some(Value::Null) => None,
        Some(Value::String(words)) => Some(words.clone()),
        Some(error) => Some(error.to_string()),
    }
}

fn usage_in(chunk: &Value) -> Option<Usage> {
    let usage = chunk.get("usage").filter(|usage| usage.is_object())?;
    let tokens =
        |key: &str| usage.get(key).and_then(Value::as_u64).map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    Some(Usage { prompt_tokens: tokens("prompt_tokens")?, completion_tokens: tokens("completion_tokens").unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gathered(fragments: Vec<Value>) -> Vec<(String, String, Value)> {
        let mut gather = Gather::default();
        for fragment in fragments {
            gather.take(&json!({"choices": [{"delta": {"tool_calls": [fragment]}}]}));
        }
        gather.calls().0.into_iter().map(|call| (call.id.clone(), call.name.clone(), call.arguments())).collect()
    }

    fn piece(index: u64, id: &str, name: &str, arguments: &str) -> Value {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
    }

    #[test]
    fn fragments_of_two_interleaved_calls_find_their_own() {
        let calls = gathered(vec![
            piece(0, "a", "remember", "{\"que"),
            piece(1, "b", "camera", "{"),
            piece(0, "", "", "ry\":\"x\"}"),
            piece(1, "", "", "}"),
        ]);
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0].2, json!("{\"query\":\"x\"}"));
        assert_eq!(calls[1].2, json!("{}"));
    }

    #[test]
    fn two_calls_with_one_index_and_one_id_are_two() {
        let calls = gathered(vec![
            piece(0, "a", "move", "{\"gesture\":\"nod\"}"),
            piece(0, "a", "move", "{\"gesture\":\"sad\"}"),
        ]);
        assert_eq!(calls.len(), 2);
        let calls = gathered(vec![piece(0, "a", "move", "{\"gesture\":\"nod\"}"), piece(0, "b", "camera", "")]);
        assert_eq!(calls.len(), 2);
    }

    #[test]
    fn a_name_repeated_in_every_fragment_is_one_call() {
        let calls = gathered(vec![
            piece(0, "a", "remember", ""),
            piece(0, "a", "remember", "{\"query\""),
            piece(0, "a", "remember", ":\"x\"}"),
            piece(0, "a", "remember", ""),
        ]);
        assert_eq!(calls, vec![("a".into(), "remember".into(), json!("{\"query\":\"x\"}"))]);
    }

    #[test]
    fn fragments_without_index_or_id_continue_the_last_call() {
        let calls = gathered(vec![
            json!({"function": {"name": "remember", "arguments": "{\"query\""}}),
            json!({"function": {"arguments": ":\"x\"}"}}),
        ]);
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].2, json!("{\"query\":\"x\"}"));
    }

    #[test]
    fn calls_without_end_are_counted_and_not_kept() {
        let mut gather = Gather::default();
        for number in 0..66 {
            gather.take(&json!({"choices": [{"delta": {"tool_calls": [piece(number, &format!("c{number}"), "camera", "{}")]}}]}));
        }
        let (calls, more) = gather.calls();
        assert_eq!((calls.len(), more), (MOST_CALLS, 66 - MOST_CALLS));
    }

    #[test]
    fn endless_arguments_are_not_kept() {
        let mut gather = Gather::default();
        for _ in 0..100 {
            gather.take(&json!({"choices": [{"delta": {"tool_calls": [piece(0, "", "", &"x".repeat(1000))]}}]}));
        }
        let call = &gather.calls().0[0];
        assert!(!call.is_whole() && call.text.len() <= LONGEST_ARGUMENTS);
    }

    #[test]
    fn odd_chunks_are_passed_over() {
        let mut gather = Gather::default();
        for chunk in [json!(null), json!([]), json!({"choices": []}), json!({"choices": [{"delta": null}]}), json!(3)] {
            assert_eq!(gather.take(&chunk), Step::default());
        }
        let step = gather.take(&json!({"choices": [{"delta": {"content": [{"type": "text", "text": "Hi"}]}}]}));
        assert_eq!(step.text, "Hi");
    }
}
