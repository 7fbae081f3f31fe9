use serde_json::json;

use super::*;

/// Text, calls and the number of pieces held back, with `text` cut into `size` characters a delta.
fn filtered(text: &str, size: usize) -> (String, Vec<(String, Value)>, usize) {
    let characters: Vec<char> = text.chars().collect();
    let mut filter = LeakFilter::new();
    let mut pieces = Vec::new();
    for delta in characters.chunks(size.max(1)) {
        pieces.extend(filter.push(&delta.iter().collect::<String>()));
    }
    pieces.extend(filter.finish());
    let (mut words, mut calls, mut held) = (String::new(), Vec::new(), 0);
    for piece in pieces {
        match piece {
            Piece::Text(text) => words.push_str(&text),
            Piece::Call { name, arguments } => calls.push((name, arguments)),
            Piece::HeldBack(_) => held += 1,
        }
    }
    (words, calls, held)
}

fn every_split(text: &str) -> (String, Vec<(String, Value)>, usize) {
    let whole = filtered(text, usize::MAX);
    for size in 1..=text.chars().count().min(40) {
        assert_eq!(filtered(text, size), whole, "{size} characters a delta: {text}");
    }
    whole
}

#[test]
fn a_gemma_call_in_the_text_is_recovered_however_it_is_split() {
    let (words, calls, _) = every_split(
        "Let me look.\n<|tool_call>call:remember{about:<|\"|>said<|\"|>,query:<|\"|>my \"red\" keys, {old}<|\"|>}<tool_call|>",
    );
    assert_eq!(words, "Let me look.\n");
    assert_eq!(calls, vec![("remember".into(), json!({"about": "said", "query": "my \"red\" keys, {old}"}))]);
}

#[test]
fn every_way_of_writing_a_call_is_read() {
    let wanted = vec![("camera".to_owned(), json!({"direction": "left"}))];
    for text in [
        "<|tool_call>call:camera{direction:<|\"|>left<|\"|>}<tool_call|>",
        "<|tool_call>call:camera{direction:left}<tool_call|>",
        "<|tool_call>call:camera{direction:left}",
        "<tool_call>{\"name\": \"camera\", \"arguments\": {\"direction\": \"left\"}}</tool_call>",
        "<tool_call>\n{\"name\": \"camera\", \"parameters\": {\"direction\": \"left\"}}\n</tool_call>",
        "<start_function_call>call:camera{direction:left}<end_function_call>",
        "call:camera({\"direction\": \"left\"})",
        "call:camera({direction: 'left'})",
        "call:camera(direction=\"left\")",
        "call:camera{direction:\"left\"}",
        "```json\n{\"name\": \"camera\", \"arguments\": {\"direction\": \"left\"}}\n```",
        "```tool_call\n{\"function\": {\"name\": \"camera\", \"arguments\": {\"direction\": \"left\"}}}\n```",
        "{\"name\": \"camera\", \"arguments\": {\"direction\": \"left\"}}",
        "[TOOL_CALLS]{\"tool_calls\": [{\"name\": \"camera\", \"arguments\": {\"direction\": \"left\"}}]}",
    ] {
        let (words, calls, held) = every_split(text);
        assert_eq!((words.trim(), held), ("", 0), "{text}");
        assert_eq!(calls, wanted, "{text}");
    }
}

#[test]
fn a_call_in_mid_text_leaves_the_text_around_it() {
    let (words, calls, _) = every_split("I will nod. call:move{gesture:nod} There you are.");
    assert_eq!(words, "I will nod.  There you are.");
    assert_eq!(calls, vec![("move".into(), json!({"gesture": "nod"}))]);
    let (words, calls, _) = every_split("<|tool_call>call:move{gesture:nod} There you are.");
    assert_eq!((words.as_str(), calls.len()), (" There you are.", 1));
}

#[test]
fn two_calls_one_after_the_other_are_two() {
    let text = "<|tool_call>call:move{gesture:nod}<tool_call|><|tool_call>call:camera{}<tool_call|>";
    assert_eq!(every_split(text).1.len(), 2);
    let text = "<|tool_call>call:move{gesture:nod}<|tool_call>call:camera{}<tool_call|>";
    assert_eq!(every_split(text).1.len(), 2);
}

#[test]
fn an_unknown_tool_and_a_truncated_call_are_held_back_and_never_run() {
    for text in [
        "<|tool_call>call:get_weather{city:Rome}<tool_call|>",
        "<|tool_call>call:remember{query:<|\"|>my ke",
        "call:remember({\"query\": \"my ke",
        "{\"name\": \"remember\", \"arguments\": {\"query\": \"my ke",
        "<function=remember><parameter=query>keys</parameter></function>",
    ] {
        let (words, calls, held) = every_split(text);
        assert_eq!((words.as_str(), calls.len(), held), ("", 0, 1), "{text}");
    }
}

#[test]
fn thoughts_are_never_spoken() {
    for text in [
        "<|channel>thought\nThe user wants keys.<channel|>They are in the bowl.",
        "<think>Hmm, 3 < 4.</think>They are in the bowl.",
        "They are in the bowl.<|channel>thought and no end",
        "They are in <channel|>the bowl.<end_of_turn>",
        "They are in the bowl.<|im_end|>",
    ] {
        assert_eq!(every_split(text).0, "They are in the bowl.", "{text}");
    }
}

#[test]
fn ordinary_text_passes_whole_and_at_once() {
    for text in [
        "Call: mum. I call it a day; recall: nothing (really). She did call:",
        "3 < 4 and 5 > 4, <b>bold</b>, a <- b, [one](two), {braces} and `code`.",
        "```rust\nfn main() {}\n```",
        "{\"colour\": \"red\"} is JSON.",
        "Ends with <",
    ] {
        let (words, calls, held) = every_split(text);
        assert_eq!((words.as_str(), calls.len(), held), (text, 0, 0));
    }
    let mut filter = LeakFilter::new();
    for delta in ["They ", "are in ", "the bowl", ", next to the ", "clock."] {
        assert_eq!(filter.push(delta), vec![Piece::Text(delta.into())]);
    }
    // A word that begins like a marker waits only until it cannot be one any more.
    assert_eq!(filter.push(" c"), vec![Piece::Text(" ".into())]);
    assert_eq!(filter.push("at"), vec![Piece::Text("cat".into())]);
}

#[test]
fn json_that_is_no_call_is_not_lost() {
    let text = "```json\n{\"colour\": \"red\"}\n```\nThat is it.";
    assert_eq!(every_split(text).0, text);
}

#[test]
fn markup_without_an_end_does_not_grow_the_buffer() {
    let mut filter = LeakFilter::new();
    filter.push("<|tool_call>call:remember{query:<|\"|>");
    for _ in 0..20_000 {
        assert_eq!(filter.push("words and words "), Vec::new());
        assert!(filter.held.len() <= LONGEST_LEAK + 64);
    }
    let after = filter.push("<|\"|>}<tool_call|>Hello.");
    assert_eq!(after.last(), Some(&Piece::Text("Hello.".into())));
    assert!(!after.iter().any(|piece| matches!(piece, Piece::Call { .. })));
}

proptest::proptest! {
    #[test]
    fn nothing_panics_and_every_split_gives_the_same(
        text in "([a-z .{}()\"<|>:`\\[\\]\n]|call:|<\\|tool_call>|<tool_call\\|>|remember|```json|\"name\"|é|日){0,40}",
        size in 1_usize..9,
    ) {
        proptest::prop_assert_eq!(filtered(&text, size), filtered(&text, usize::MAX));
    }
}
