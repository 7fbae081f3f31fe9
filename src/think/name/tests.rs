use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Replies {
    reply: Vec<Reply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    said: String,
    name: Option<String>,
}

fn replies(file: &str) -> Vec<Reply> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/questions").join(file);
    toml::from_str::<Replies>(&std::fs::read_to_string(path).unwrap()).unwrap().reply
}

/// Right, names that nobody gave, names that were missed, of how many; single misses only where `show` says so.
fn score(file: &str, show: bool) -> (usize, usize, usize, usize) {
    let replies = replies(file);
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for reply in &replies {
        let got = read(&reply.said);
        match (&got, &reply.name) {
            (got, wanted) if got == wanted => right += 1,
            (None, Some(_)) => missed += 1,
            _ => wrong += 1,
        }
        if show && got != reply.name {
            eprintln!("{:?}: {got:?}, not {:?}", reply.said, reply.name);
        }
    }
    eprintln!("{file}: {right} of {} right, {wrong} false names, {missed} missed", replies.len());
    (right, wrong, missed, replies.len())
}

#[test]
fn the_tuning_replies_give_their_names() {
    let (right, wrong, _, of) = score("names_tune.toml", true);
    assert!(of >= 60 && wrong == 0 && right * 100 >= of * 95, "{right} of {of}, {wrong} false");
}

/// Prints counts only: whoever reads single misses here begins to tune on them.
#[test]
fn held_out_replies_give_their_names_and_hardly_ever_a_false_one() {
    let (right, wrong, _, of) = score("names_held.toml", false);
    assert!(of >= 60 && wrong <= 1 && right * 100 >= of * 80, "{right} of {of}, {wrong} false");
}

#[test]
fn no_reply_stands_in_both_files() {
    let tune: std::collections::HashSet<String> =
        replies("names_tune.toml").into_iter().map(|reply| reply.said.to_lowercase()).collect();
    for reply in replies("names_held.toml") {
        assert!(!tune.contains(&reply.said.to_lowercase()), "{}", reply.said);
    }
}

#[test]
fn a_remark_by_somebody_who_is_known_is_an_introduction_only_in_so_many_words() {
    assert_eq!(introduces("Actually I'm Bob."), Some("Bob".into()));
    assert_eq!(introduces("No, my name is Bob."), Some("Bob".into()));
    for remark in ["Bob.", "Bob is coming for dinner.", "I'm hungry.", "I'm German.", "My brother is Bob.", ""] {
        assert_eq!(introduces(remark), None, "{remark}");
    }
}

#[test]
fn i_am_not_anna_takes_that_name_back_and_no_other() {
    for denial in [
        "I'm not Anna.",
        "No, I am not Anna!",
        "Hey, my name is not Anna",
        "I’m not Anna, I'm Bob.",
        "That's not my name.",
        "Don't call me Anna.",
        "Ich bin nicht Anna.",
        "Je ne suis pas Anna",
        "No soy Anna.",
        "Меня зовут не Анна.",
    ] {
        let name = if denial.contains('М') { "Анна" } else { "Anna" };
        assert!(denies(denial, name), "{denial}");
    }
    for remark in ["I'm Anna.", "I'm not hungry.", "Anna is not here.", "I'm not Bob.", "I did not see Anna."] {
        assert!(!denies(remark, "Anna"), "{remark}");
    }
    assert!(denies("我不是安娜", "安娜") && denies("私はアンナじゃないです", "アンナ"));
}

#[test]
fn a_models_word_counts_only_if_it_was_really_said() {
    for (model, said, name) in [
        ("Anna", "Oh, I'm Anna.", Some("Anna")),
        ("anna", "my name is anna", Some("Anna")),
        ("\"Anna.\"", "I'm Anna", Some("Anna")),
        ("Anna Maria", "I am Anna Maria.", Some("Anna Maria")),
        ("Anne-Marie", "Je m'appelle Anne-Marie.", Some("Anne-Marie")),
        ("安娜", "我叫安娜。", Some("安娜")),
        ("Xiomara", "Xiomara.", Some("Xiomara")),
        ("none", "I'm Anna", None),
        ("None.", "I'm hungry", None),
        ("Hungry", "I'm hungry.", None),
        ("Annabel", "I'm Anna", None),
        ("Ann", "I'm Anna", None),
        ("Bob", "I'm Anna", None),
        ("Anna", "I'm not Anna.", None),
        ("The name is Anna", "I'm Anna", None),
        ("", "I'm Anna", None),
        ("Anna123", "I'm Anna123", None),
        ("<|channel>", "I'm Anna", None),
    ] {
        assert_eq!(parse_reply(model, said).as_deref(), name, "{model:?} of {said:?}");
    }
}

#[test]
fn the_models_words_ask_for_one_word_or_none() {
    let request = name_request("Well,\n I'm Anna.");
    assert!(request.system.contains("one short word") && request.system.contains("none"));
    assert!(request.user.ends_with("The answer: Well, I'm Anna."));
}

#[test]
fn odd_replies_harm_nothing() {
    for reply in
        ["", " ", "…", "?", "'", "-", "’s", "A", "1234", &"Anna ".repeat(200), "\u{0}\u{1}", "🙂", "我", "です"]
    {
        assert_eq!(read(reply), None, "{reply:?}");
    }
}

proptest::proptest! {
    #[test]
    fn what_is_read_was_said(words in "[A-Za-zäöüé'我叫です ,.!?-]{0,60}") {
        if let Some(name) = read(&words) {
            proptest::prop_assert!(was_said(&name, &words), "{} of {}", name, words);
        }
    }

    #[test]
    fn what_a_model_says_is_taken_only_if_it_was_said(model in "\\PC{0,30}", words in "\\PC{0,40}") {
        if let Some(name) = parse_reply(&model, &words) {
            proptest::prop_assert!(was_said(&name, &words));
        }
    }
}
