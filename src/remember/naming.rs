//! Which things of the detector's vocabulary a question names: "Was anybody here with a bike?" names a person and a
//! bicycle.
//!
//! The detector knows 80 things. A question that names one of them can only be answered by a frame that shows it, which
//! likeness of sentences alone does not keep: to a text model "I saw a cat" is near to a question about a dog. English
//! words; a question in another language names none, and likeness decides.

/// The detector's vocabulary, one label a line.
const LABELS: &str = include_str!("../see/detect/coco.txt");

/// Other words for labels, and words for groups of them: a word (or two), then the labels.
const OTHER_WORDS: &[(&str, &[&str])] = &[
    ("somebody", &["person"]),
    ("someone", &["person"]),
    ("anybody", &["person"]),
    ("anyone", &["person"]),
    ("people", &["person"]),
    ("who", &["person"]),
    ("man", &["person"]),
    ("men", &["person"]),
    ("woman", &["person"]),
    ("women", &["person"]),
    ("child", &["person"]),
    ("children", &["person"]),
    ("kid", &["person"]),
    ("boy", &["person"]),
    ("girl", &["person"]),
    ("guest", &["person"]),
    ("visitor", &["person"]),
    ("human", &["person"]),
    ("kitten", &["cat"]),
    ("kitty", &["cat"]),
    ("puppy", &["dog"]),
    ("bike", &["bicycle"]),
    ("motorbike", &["motorcycle"]),
    ("automobile", &["car"]),
    ("aeroplane", &["airplane"]),
    ("plane", &["airplane"]),
    ("mug", &["cup"]),
    ("glass", &["wine glass", "cup"]),
    ("wine glasses", &["wine glass"]),
    ("sofa", &["couch"]),
    ("television", &["tv"]),
    ("telly", &["tv"]),
    ("screen", &["tv", "laptop"]),
    ("monitor", &["tv"]),
    ("phone", &["cell phone"]),
    ("mobile", &["cell phone"]),
    ("smartphone", &["cell phone"]),
    ("computer", &["laptop"]),
    ("notebook", &["laptop", "book"]),
    ("plant", &["potted plant"]),
    ("flower", &["potted plant", "vase"]),
    ("table", &["dining table"]),
    ("ball", &["sports ball"]),
    ("teddy", &["teddy bear"]),
    ("doughnut", &["donut"]),
    ("bag", &["handbag", "backpack", "suitcase"]),
    ("purse", &["handbag"]),
    ("rucksack", &["backpack"]),
    ("luggage", &["suitcase"]),
    ("hydrant", &["fire hydrant"]),
    ("animal", &["cat", "dog", "bird", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"]),
    ("pet", &["cat", "dog", "bird"]),
    ("vehicle", &["car", "truck", "bus", "motorcycle", "bicycle", "train"]),
    ("fruit", &["apple", "banana", "orange"]),
    ("food", &["apple", "banana", "orange", "sandwich", "pizza", "cake", "hot dog", "donut", "carrot", "broccoli"]),
];

/// Words whose plural is not made with an s, and one that is no plural of what it looks like.
const PLURALS: &[(&str, &str)] = &[
    ("glasses", "glasses"),
    ("mice", "mouse"),
    ("knives", "knife"),
    ("buses", "bus"),
    ("couches", "couch"),
    ("sandwiches", "sandwich"),
];

/// The labels that `question` names, each once, sorted; empty where it names none of the vocabulary.
#[must_use]
pub fn named(question: &str) -> Vec<String> {
    let words: Vec<String> = question
        .to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(singular)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let mut labels: Vec<String> = Vec::new();
    for label in LABELS.lines().filter(|label| !label.is_empty()) {
        if text.contains(&format!(" {label} ")) {
            labels.push(label.to_owned());
        }
    }
    for (word, meant) in OTHER_WORDS {
        // "Glass" in "wine glass" and "phone" in "cell phone" are named already.
        let part_of_a_label =
            labels.iter().any(|label| label.contains(' ') && label.split(' ').any(|part| part == *word));
        if text.contains(&format!(" {word} ")) && !part_of_a_label {
            labels.extend(meant.iter().map(|label| (*label).to_owned()));
        }
    }
    labels.sort();
    labels.dedup();
    labels
}

fn singular(word: &str) -> String {
    if let Some((_, one)) = PLURALS.iter().find(|(many, _)| *many == word) {
        return (*one).to_owned();
    }
    let known = |one: &str| {
        LABELS.lines().any(|label| label.split(' ').any(|part| part == one))
            || OTHER_WORDS.iter().any(|(other, _)| *other == one)
    };
    match word.strip_suffix('s') {
        Some(one) if !known(word) && known(one) => one.to_owned(),
        _ => match word.strip_suffix("es") {
            Some(one) if !known(word) && known(one) => one.to_owned(),
            _ => word.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn things_are_named_by_their_label_their_plural_and_their_other_names() {
        for (question, labels) in [
            ("Did you see my cat?", &["cat"][..]),
            ("Were there any mice or cups?", &["cup", "mouse"]),
            ("Was anybody here with a bike?", &["bicycle", "person"]),
            ("Did you notice two wine glasses?", &["wine glass"]),
            ("Where is my mobile phone?", &["cell phone"]),
            ("Have you seen a cell phone?", &["cell phone"]),
            ("Did the bus come?", &["bus"]),
            ("Who came in?", &["person"]),
            ("Where are my glasses?", &[]),
            ("What did you see today?", &[]),
            ("Did you see a dragon?", &[]),
            ("Hast du die Katze gesehen?", &[]),
        ] {
            assert_eq!(named(question), labels, "{question}");
        }
    }
}
