use super::*;

fn cut_by(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut splitter = Sentences::new();
    let mut sentences = Vec::new();
    for delta in characters.chunks(size.max(1)) {
        sentences.extend(splitter.push(&delta.iter().collect::<String>()));
    }
    sentences.extend(splitter.finish());
    sentences
}

/// The sentences of `text`, which must be the same for every way of splitting it.
fn sentences(text: &str) -> Vec<String> {
    let whole = cut_by(text, usize::MAX);
    for size in 1..=text.chars().count().min(30) {
        assert_eq!(cut_by(text, size), whole, "{size} characters a delta");
    }
    whole
}

#[track_caller]
fn check(text: &str, wanted: &[&str]) {
    assert_eq!(sentences(text), wanted, "{text}");
}

#[test]
fn a_number_with_a_point_is_one_number() {
    check("It is 3.5 metres. Pi is 3.14.", &["It is 3.5 metres.", "Pi is 3.14."]);
    check("At 18.30 we ate. Version 1.2.3 is out.", &["At 18.30 we ate.", "Version 1.2.3 is out."]);
    check("See example.com for it. Bye.", &["See example.com for it.", "Bye."]);
}

#[test]
fn titles_abbreviations_and_initials_end_no_sentence() {
    check("Dr. Smith met Mrs. Jones. They ate.", &["Dr. Smith met Mrs. Jones.", "They ate."]);
    check("Take fruit, e.g. Apples or pears. Good.", &["Take fruit, e.g. Apples or pears.", "Good."]);
    check("J. R. R. Tolkien wrote it. J.K. Rowling did not.", &["J. R. R. Tolkien wrote it.", "J.K. Rowling did not."]);
    check("The U.S. Army came. In the U.S. It is big.", &["The U.S. Army came.", "In the U.S.", "It is big."]);
    check("Come at 8 a.m. tomorrow. At 9 p.m. We sleep.", &["Come at 8 a.m. tomorrow.", "At 9 p.m.", "We sleep."]);
    check("Take No. 5 today. No. I will not.", &["Take No. 5 today.", "No.", "I will not."]);
}

#[test]
fn stops_in_a_run_and_quotes_after_them_stay_together() {
    check("Really?! Yes!!! Well... Perhaps… Fine.", &["Really?!", "Yes!!!", "Well...", "Perhaps…", "Fine."]);
    check("Well... maybe not. Ok.", &["Well... maybe not.", "Ok."]);
    check(
        "She said \"Go.\" Then she left. (He stayed.) I wait.",
        &["She said \"Go.\"", "Then she left.", "(He stayed.)", "I wait."],
    );
    check("“Where?” I asked. «Là.» Bon.", &["“Where?”", "I asked.", "«Là.»", "Bon."]);
}

#[test]
fn scripts_without_spaces_and_russian_are_cut_at_their_stops() {
    check("你好。你在哪里？我很好！「是。」好", &["你好。", "你在哪里？", "我很好！", "「是。」", "好"]);
    check("Привет. Как дела? Это т.е. хорошо. Да.", &["Привет.", "Как дела?", "Это т.е. хорошо.", "Да."]);
}

#[test]
fn lines_and_lists_are_spoken_line_by_line() {
    check(
        "Here:\n- milk\n- **bread**\n\n1. Eat it.\n2. Sleep.\nBye",
        &["Here:", "milk", "bread", "1. Eat it.", "2. Sleep.", "Bye"],
    );
    check("## A title\n> quoted words\n---\n* star", &["A title", "quoted words", "star"]);
}

#[test]
fn markdown_is_not_read_out() {
    check("**Bold** and *thin* and __both__ and `code` and ~~gone~~.", &["Bold and thin and both and code and gone."]);
    check("**First sentence. Second one.** Third.", &["First sentence.", "Second one.", "Third."]);
    check("See [the bowl](https://a.b/c_d) or ![a cup](x.png) now.", &["See the bowl or a cup now."]);
    check("2 * 3 is 6, look_left is <b>left</b>, 3 < 4.", &["2 * 3 is 6, look left is left, 3 < 4."]);
    check("```rust\nlet a = 1;\n```\nDone.", &["let a = 1;", "Done."]);
    check("Look [at this (really)] now.", &["Look [at this (really)] now."]);
}

#[test]
fn emoji_are_not_read_out() {
    check("Hello 😀! I am happy 👍🏽. 🎉", &["Hello!", "I am happy."]);
    check("Hi :wave: there :smile:. It is 10:30:45 now.", &["Hi there.", "It is 10:30:45 now."]);
    check("Family 👨‍👩‍👧 and flag 🇩🇪 and ❤️ end.", &["Family and flag and end."]);
    assert_eq!(sentences("😀 🎉"), Vec::<String>::new());
}

#[test]
fn a_tool_call_that_leaked_is_never_spoken() {
    check("I look. <|tool_call>call:camera{direction:left}<tool_call|>", &["I look."]);
    check("<think>Is it 3.5? No.</think>It is four. Yes.", &["It is four.", "Yes."]);
    check("Sure. call:move({\"gesture\": \"nod\"}) I nod.", &["Sure.", "I nod."]);
    check("<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>Hello.", &["Hello."]);
    check("```json\n{\"name\": \"camera\", \"arguments\": {}}\n```\nHello.", &["Hello."]);
    check("<|channel>thought\nHmm. So.<channel|>Hello there. Bye.", &["Hello there.", "Bye."]);
}

#[test]
fn a_sentence_is_spoken_as_soon_as_it_is_surely_complete() {
    let mut splitter = Sentences::new();
    assert!(splitter.push("It is 3").is_empty());
    assert!(splitter.push(".").is_empty(), "3. may become 3.5");
    assert!(splitter.push("5 m.").is_empty());
    assert_eq!(splitter.push(" T"), vec!["It is 3.5 m."]);
    assert!(splitter.push("rue!").is_empty());
    assert_eq!(splitter.push(" "), vec!["True!"], "after ! a space is enough");
    assert_eq!(splitter.push("Next line\n"), vec!["Next line"]);
    assert_eq!(splitter.finish(), None);
}

#[test]
fn only_the_first_words_were_spoken() {
    let long: String = (0..400).map(|number| format!("This is sentence number {number}, of many. ")).collect();
    let spoken = sentences(&long);
    assert_eq!(spoken.len(), 400);
    assert_eq!(spoken.join(" "), long.trim());
}

#[test]
fn text_without_any_stop_is_cut_and_all_of_it_is_spoken() {
    let words: Vec<String> = (0..500).map(|number| format!("word{number}")).collect();
    let text = words.join(" ");
    let spoken = sentences(&text);
    assert!(spoken.len() > 5 && spoken.iter().all(|sentence| sentence.chars().count() <= LONGEST_SENTENCE));
    assert_eq!(spoken.join(" "), text);
    let unbroken = "x".repeat(1000);
    assert_eq!(sentences(&unbroken).concat(), unbroken);
}

#[test]
fn the_buffer_stays_small_whatever_comes() {
    for endless in [".", " ", "a", "\"", "a. ", "* ", "…", "`"] {
        let mut splitter = Sentences::new();
        for _ in 0..5_000 {
            let _ = splitter.push(endless);
            assert!(splitter.pending.len() <= LONGEST_SENTENCE + 64, "{endless:?}: {}", splitter.pending.len());
        }
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

proptest::proptest! {
    #[test]
    fn any_split_of_the_same_text_gives_the_same_sentences(
        text in "([A-Za-z ]{1,6}|[.!?…。*_`#:<>\\[\\]()\"'\n-]|3\\.5|Dr\\. |U\\.S\\. |e\\.g\\. |😀|:smile:|\\. |call:move\\{gesture:nod\\}|<think>|</think>|```|日本){0,60}",
        sizes in proptest::collection::vec(1_usize..12, 1..20),
    ) {
        let characters: Vec<char> = text.chars().collect();
        let mut splitter = Sentences::new();
        let mut split = Vec::new();
        let mut from = 0;
        for size in sizes.iter().cycle() {
            if from >= characters.len() {
                break;
            }
            let to = (from + size).min(characters.len());
            split.extend(splitter.push(&characters[from..to].iter().collect::<String>()));
            from = to;
        }
        split.extend(splitter.finish());
        // What finish gives as one text may have come earlier as several: the words and their order are the same.
        proptest::prop_assert_eq!(split.join(" "), cut_by(&text, usize::MAX).join(" "));
    }

    #[test]
    fn every_letter_of_plain_text_is_spoken(text in "([A-Za-z0-9äéß]{1,9}|[.,!?;'\"()…]|[ \n]|Dr\\. |3\\.5|日本。|Да\\. ){0,200}") {
        proptest::prop_assert_eq!(letters(&cut_by(&text, 3).join(" ")), letters(&text));
    }
}
