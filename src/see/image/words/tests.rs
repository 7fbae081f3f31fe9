use std::fs;
use std::path::PathBuf;

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding/siglip")
}

/// The fixture's tokenizer with changed settings.
fn words(change: impl Fn(&mut serde_json::Map<String, serde_json::Value>)) -> Result<Words, EmbedError> {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(fixtures().join("tokenizer_config.json")).unwrap();
    let mut settings = serde_json::from_str(&text).unwrap();
    change(&mut settings);
    let path = folder.path().join("tokenizer_config.json");
    fs::write(&path, serde_json::to_vec(&settings).unwrap()).unwrap();
    Words::load(&fixtures().join("tokenizer.json"), Some(&path))
}

const PAD: u32 = 0;
const EOS: u32 = 1;
const BOS: u32 = 2;

#[test]
fn a_short_mixed_case_text_has_the_reference_s_tokens() {
    let text = fs::read_to_string(fixtures().join("golden.json")).unwrap();
    let golden: serde_json::Value = serde_json::from_str(&text).unwrap();
    let words = words(|_| ()).unwrap();
    let texts: Vec<String> = serde_json::from_value(golden["texts"].clone()).unwrap();
    let ids: Vec<Vec<u32>> = serde_json::from_value(golden["ids"].clone()).unwrap();
    assert!(texts.len() == ids.len() && texts[0].chars().any(char::is_uppercase));
    for (text, ids) in texts.iter().zip(&ids) {
        assert_eq!(words.tokens(text).unwrap(), *ids, "{text}");
    }
    assert!(ids.iter().any(|ids| ids[TOKENS - 1] == EOS), "one of the texts is cut");
    assert!(ids.iter().flatten().any(|id| *id > 200_000), "the ids reach the end of the table");
}

#[test]
fn capital_letters_make_no_difference_and_would_have_made_one() {
    let words = words(|_| ()).unwrap();
    assert_eq!(words.tokens("CUP").unwrap(), words.tokens("cup").unwrap());
    let raw = words.tokenizer.encode_fast("CUP", false).unwrap();
    assert_ne!(raw.get_ids(), words.tokenizer.encode_fast("cup", false).unwrap().get_ids());
}

#[test]
fn the_padding_goes_to_the_side_that_the_checkpoint_says() {
    let right = words(|_| ()).unwrap().tokens("cup").unwrap();
    assert_eq!(right[1..4], [EOS, PAD, PAD]);
    let left = words(|settings| drop(settings.insert("padding_side".into(), "left".into()))).unwrap();
    let left = left.tokens("cup").unwrap();
    assert_eq!(left[TOKENS - 2..], [right[0], EOS]);
    assert_eq!(left[..TOKENS - 2], [PAD; TOKENS - 2]);
    let unsaid = words(|settings| drop(settings.remove("padding_side"))).unwrap();
    assert_eq!(unsaid.tokens("cup").unwrap(), right);
    assert!(words(|settings| drop(settings.insert("padding_side".into(), "top".into()))).is_err());
}

#[test]
fn the_settings_decide_which_special_tokens_stand_around_the_words() {
    let both = words(|settings| drop(settings.insert("add_bos_token".into(), true.into()))).unwrap();
    let tokens = both.tokens("cup").unwrap();
    assert_eq!((tokens[0], tokens[2]), (BOS, EOS));
    let long = both.tokens(&"cup ".repeat(100)).unwrap();
    assert_eq!((long.len(), long[0], long[TOKENS - 1]), (TOKENS, BOS, EOS));
    // Nothing said: the tokenizer's own rule, and this one has none.
    let silent = words(|settings| {
        settings.remove("add_bos_token");
        settings.remove("add_eos_token");
    });
    assert_eq!(silent.unwrap().tokens("cup").unwrap()[1], PAD);
}

#[test]
fn a_token_s_name_may_come_with_facts_about_it() {
    let described = serde_json::json!({ "content": "<eos>", "lstrip": false });
    let words = words(|settings| drop(settings.insert("eos_token".into(), described.clone()))).unwrap();
    assert_eq!(words.tokens("cup").unwrap()[1], EOS);
    let unknown = super::tests::words(|settings| drop(settings.insert("pad_token".into(), "<nothing>".into())));
    assert!(unknown.is_err_and(|error| error.to_string().contains("<nothing>")));
}

#[test]
fn empty_and_endless_texts_are_refused() {
    let words = words(|_| ()).unwrap();
    for text in ["", " \n\t", &"a".repeat(LONGEST + 1)] {
        assert!(matches!(words.tokens(text), Err(EmbedError::Refused { .. })));
    }
    assert!(words.tokens(&"a".repeat(LONGEST)).is_ok());
}
