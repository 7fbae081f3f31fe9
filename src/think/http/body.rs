//! One request's body, as every server that runs Gemma on a laptop takes it.
//!
//! Tools and system prompt stand first and never change, then the conversation, then what changes from turn to turn:
//! a server's prefix cache holds as far as the bytes are the same. Whatever the history holds, what goes out is valid:
//! roles alternate, every call has its answer, every argument is JSON.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::think::brain::{Message, Request};
use crate::think::told::told_now;
use crate::think::tools::{schemas, wire_call};
use crate::think::words::ANSWER_NOW;

/// Low: a tool must be chosen and a memory told in its own words; variety would only add mistakes. Not measured.
const TEMPERATURE: f64 = 0.2;

/// When an answer was unusable: at the low temperature the same question gets the same answer. Seen with llama.cpp's
/// "output that does not match the expected format"; the value itself is not measured.
const SECOND_TEMPERATURE: f64 = 0.8;

/// The options that a server may refuse; a bit each in [`Shape::left_out`].
pub(super) const OPTIONAL: [&str; 6] = [
    "reasoning_effort",
    "chat_template_kwargs",
    "parallel_tool_calls",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
];

/// What a body depends on besides the request.
pub(super) struct Shape<'a> {
    pub model: &'a str,
    /// Longest answer, in tokens.
    pub answer_tokens: u32,
    /// Bits of [`OPTIONAL`] that the server refused.
    pub left_out: u8,
    /// Whether the tools are named at all, allowed or not.
    pub with_tools: bool,
    /// Whether the server knows nothing of tools: calls are then left out, and their answers told as words.
    pub in_words: bool,
    /// Whether the first answer was unusable.
    pub again: bool,
    pub zone: &'a TimeZone,
}

pub(super) fn body(request: &Request, shape: &Shape<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(shape.model));
    if shape.with_tools {
        // Named even when words are asked for: servers put them at the very front of the prompt.
        body.insert("tools".into(), schemas());
    }
    body.insert("messages".into(), Value::Array(messages(request, shape)));
    if shape.with_tools {
        // Never "required": a server that forces the grammar can generate without end.
        body.insert("tool_choice".into(), json!(if request.tools_allowed { "auto" } else { "none" }));
        body.insert("parallel_tool_calls".into(), json!(false));
    }
    add_options(&mut body, shape);
    Value::Object(body)
}

/// How the answer is made and sent: the same for a turn and for pictures.
pub(super) fn add_options(body: &mut Map<String, Value>, shape: &Shape<'_>) {
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    // LiteRT-LM reads only the second name, older servers only the first.
    body.insert("max_tokens".into(), json!(shape.answer_tokens));
    body.insert("max_completion_tokens".into(), json!(shape.answer_tokens));
    body.insert("temperature".into(), json!(if shape.again { SECOND_TEMPERATURE } else { TEMPERATURE }));
    body.insert("reasoning_effort".into(), json!("none"));
    body.insert("chat_template_kwargs".into(), json!({ "enable_thinking": false }));
    for (bit, option) in OPTIONAL.iter().enumerate() {
        if shape.left_out & (1 << bit) != 0 {
            body.shift_remove(*option);
        }
    }
}

/// The calls of an assistant message while its answers are collected.
struct Called {
    /// Where its message stands.
    at: usize,
    /// Ids without an answer yet.
    open: Vec<String>,
}

/// What is not in the history but must be in the body: the answers of calls that nobody answered.
const NOT_RUN: &str = "This call was not run.";

fn messages(request: &Request, shape: &Shape<'_>) -> Vec<Value> {
    let zone = shape.zone;
    let mut list = vec![json!({ "role": "system", "content": request.system.trim_end() })];
    let mut called: Option<Called> = None;
    let last_user = request.messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    for (at, message) in request.messages.iter().enumerate() {
        match message {
            // A template without tools drops such messages, or fails on them.
            Message::Tool { result, .. } if shape.in_words => {
                push_words(&mut list, "user", &result.for_model(request.now, zone));
            }
            Message::Tool { call_id, name, result } => {
                let text = result.for_model(request.now, zone);
                answer_call(&mut list, &mut called, call_id, name, &text);
            }
            Message::User { text, speaker, .. } => {
                close_calls(&mut list, &mut called);
                let now = (Some(at) == last_user).then_some(request.now);
                push_words(&mut list, "user", &user_text(text, speaker.as_deref(), now, zone));
            }
            Message::Assistant { text, calls } => {
                close_calls(&mut list, &mut called);
                if calls.is_empty() || shape.in_words {
                    push_words(&mut list, "assistant", text.trim());
                } else {
                    let wire: Vec<Value> = calls.iter().map(super::super::tools::ToolCall::to_wire).collect();
                    list.push(json!({ "role": "assistant", "content": text.trim(), "tool_calls": wire }));
                    let open = calls.iter().map(|call| call.id.clone()).collect();
                    called = Some(Called { at: list.len() - 1, open });
                }
            }
        }
    }
    close_calls(&mut list, &mut called);
    if !request.tools_allowed || shape.in_words {
        ask_for_words(&mut list);
    }
    list
}

/// Who speaks, what was said, and, in the newest message only, what time it is.
fn user_text(text: &str, speaker: Option<&str>, now: Option<Timestamp>, zone: &TimeZone) -> String {
    let mut words = match speaker {
        Some(name) => format!("{name}: {}", text.trim()),
        None => text.trim().to_owned(),
    };
    if let Some(now) = now {
        words.push_str(&format!("\n({})", told_now(now, zone)));
    }
    words
}

/// Adds words, to the message before where that has the same role: chat templates want the roles to alternate.
fn push_words(list: &mut Vec<Value>, role: &str, words: &str) {
    if words.is_empty() {
        return;
    }
    if let Some(before) = list.last_mut()
        && before["role"] == role
        && before.get("tool_calls").is_none()
    {
        let together = format!("{}\n{words}", before["content"].as_str().unwrap_or_default());
        before["content"] = Value::String(together);
        return;
    }
    list.push(json!({ "role": role, "content": words }));
}

/// Adds a tool's answer. A call that was refused stands in no assistant message; it gets one with empty arguments.
fn answer_call(list: &mut Vec<Value>, called: &mut Option<Called>, id: &str, name: &str, text: &str) {
    let open = called.get_or_insert_with(|| {
        list.push(json!({ "role": "assistant", "content": "", "tool_calls": [] }));
        Called { at: list.len() - 1, open: Vec::new() }
    });
    if let Some(at) = open.open.iter().position(|known| known == id) {
        open.open.remove(at);
    } else if let Some(calls) = list[open.at]["tool_calls"].as_array_mut() {
        calls.push(wire_call(id, name, &json!({})));
    }
    list.push(json!({ "role": "tool", "tool_call_id": id, "name": name, "content": text }));
}

fn close_calls(list: &mut Vec<Value>, called: &mut Option<Called>) {
    for id in called.take().map(|called| called.open).unwrap_or_default() {
        list.push(json!({ "role": "tool", "tool_call_id": id, "content": NOT_RUN }));
    }
}

/// The line that asks for words goes last, into the newest tool result or message.
fn ask_for_words(list: &mut [Value]) {
    if let Some(last) = list.last_mut() {
        let words = format!("{}\n{}", last["content"].as_str().unwrap_or_default(), ANSWER_NOW.trim());
        last["content"] = Value::String(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::Gesture;
    use crate::think::tools::{Tool, ToolCall, ToolResult};

    fn user(text: &str) -> Message {
        Message::User { text: text.into(), speaker: None, at: Timestamp::UNIX_EPOCH }
    }

    fn said(text: &str) -> Message {
        Message::Assistant { text: text.into(), calls: Vec::new() }
    }

    fn nod(id: &str) -> ToolCall {
        ToolCall { id: id.into(), tool: Tool::Move { gesture: Gesture::Nod } }
    }

    fn sent(messages: Vec<Message>, tools_allowed: bool) -> Vec<Value> {
        let request = Request { system: "You are.".into(), messages, tools_allowed, now: Timestamp::UNIX_EPOCH };
        super::messages(&request, &shape(&TimeZone::UTC, 0))
    }

    fn shape(zone: &TimeZone, left_out: u8) -> Shape<'_> {
        Shape { model: "m", answer_tokens: 9, left_out, with_tools: true, in_words: false, again: false, zone }
    }

    fn roles(list: &[Value]) -> Vec<&str> {
        list.iter().filter_map(|message| message["role"].as_str()).collect()
    }

    #[test]
    fn roles_alternate_whatever_the_history_holds() {
        let list = sent(vec![user("One."), user("Two."), said(""), said("Three."), said("Four."), user("Five.")], true);
        assert_eq!(roles(&list), ["system", "user", "assistant", "user"]);
        assert_eq!(list[1]["content"], "One.\nTwo.");
        assert_eq!(list[2]["content"], "Three.\nFour.");
    }

    #[test]
    fn every_call_has_exactly_one_answer() {
        let calls = vec![nod("a"), nod("b")];
        let done = Message::Tool {
            call_id: "b".into(),
            name: "move".into(),
            result: ToolResult::Moved { gesture: Gesture::Nod },
        };
        let list =
            sent(vec![user("Nod."), Message::Assistant { text: String::new(), calls }, done, user("And?")], true);
        assert_eq!(roles(&list), ["system", "user", "assistant", "tool", "tool", "user"]);
        assert_eq!((&list[3]["tool_call_id"], &list[4]["tool_call_id"]), (&json!("b"), &json!("a")));
        assert_eq!(list[4]["content"], NOT_RUN);
    }

    #[test]
    fn a_malformed_call_kept_in_the_history_would_break_every_later_turn() {
        let refused = Message::Tool {
            call_id: "x".into(),
            name: "remember".into(),
            result: ToolResult::Refused { why: "`remember` needs `query`.".into() },
        };
        let list = sent(vec![user("Keys?"), refused], true);
        assert_eq!(roles(&list), ["system", "user", "assistant", "tool"]);
        let call = &list[2]["tool_calls"][0];
        assert_eq!((&call["id"], &call["function"]["arguments"]), (&json!("x"), &json!("{}")));
    }

    #[test]
    fn only_the_newest_message_says_what_time_it_is() {
        let list = sent(vec![user("One."), said("Two."), user("Three.")], true);
        assert_eq!(list[1]["content"], "One.");
        assert_eq!(list[3]["content"], "Three.\n(It is Thursday, 1 January 1970, 00:00.)");
    }

    #[test]
    fn a_forced_answer_is_asked_for_in_the_last_line() {
        let list = sent(vec![user("One.")], false);
        assert!(list[1]["content"].as_str().unwrap().ends_with(ANSWER_NOW.trim()));
    }

    #[test]
    fn a_server_without_tools_is_told_what_they_answered_in_words() {
        let nothing = ToolResult::CouldNotLook { why: "the disk is full".into() };
        let done = Message::Tool { call_id: "a".into(), name: "remember".into(), result: nothing };
        let request = Request {
            system: "S".into(),
            messages: vec![user("Keys?"), Message::Assistant { text: String::new(), calls: vec![nod("a")] }, done],
            tools_allowed: true,
            now: Timestamp::UNIX_EPOCH,
        };
        let zone = TimeZone::UTC;
        let sent = body(&request, &Shape { with_tools: false, in_words: true, ..shape(&zone, 0) });
        assert!(sent.get("tools").is_none() && sent.get("tool_choice").is_none());
        let list = sent["messages"].as_array().unwrap();
        assert_eq!(roles(list), ["system", "user"]);
        let words = list[1]["content"].as_str().unwrap();
        assert!(words.starts_with("Keys?") && words.contains("the disk is full"), "{words}");
        assert!(words.ends_with(ANSWER_NOW.trim()));
    }

    #[test]
    fn refused_options_are_left_out_and_nothing_else() {
        let request =
            Request { system: "S".into(), messages: vec![user("x")], tools_allowed: true, now: Timestamp::UNIX_EPOCH };
        let zone = TimeZone::UTC;
        let whole = body(&request, &shape(&zone, 0));
        let less = body(&request, &shape(&zone, 0b11));
        assert_eq!(whole["reasoning_effort"], "none");
        assert_eq!(whole["chat_template_kwargs"]["enable_thinking"], false);
        assert!(less.get("reasoning_effort").is_none() && less.get("chat_template_kwargs").is_none());
        assert_eq!(whole.as_object().unwrap().len(), less.as_object().unwrap().len() + 2);
    }
}
