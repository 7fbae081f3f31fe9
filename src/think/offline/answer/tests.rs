use jiff::tz::TimeZone;

use super::*;

/// Monday, 2026-11-30, 09:30 in Berlin.
fn now() -> Zoned {
    let at: Timestamp = "2026-11-30T08:30:00Z".parse().expect("a time");
    at.to_zoned(TimeZone::get("Europe/Berlin").expect("the zone"))
}

fn memory(heard: &str, speaker: Option<&str>, at: &str, score: f32) -> Remembered {
    Remembered {
        text: format!("{heard} / All right."),
        exchange: Exchange {
            heard: heard.into(),
            said: "All right.".into(),
            speaker: speaker.map(Into::into),
            said_at: at.parse().expect("a time"),
        },
        score: Some(score),
        just_said: false,
    }
}

fn told(result: ToolResult, speaker: Option<&str>) -> String {
    answer(&result, &Asked { speaker, when: None, now: &now() })
}

fn found_told(memories: Vec<Remembered>, speaker: Option<&str>) -> String {
    told(ToolResult::Recalled(Recalled::Found { memories }), speaker)
}

#[test]
fn a_fact_is_spoken_in_its_own_words_and_a_memory_beside_it_with_its_time() {
    let fact = crate::remember::KnownFact { id: uuid::Uuid::nil(), text: "I run on Rust".into(), score: 0.8 };
    let alone = Recalled::Facts { facts: vec![fact.clone()], besides: None };
    assert_eq!(told(ToolResult::Recalled(alone), None), "I run on Rust.");
    let memories = vec![memory(KEY, None, "2026-11-30T07:06:00Z", 0.8)];
    let both = Recalled::Facts { facts: vec![fact], besides: Some(Box::new(Recalled::Found { memories })) };
    let told = told(ToolResult::Recalled(both), None);
    assert!(told.starts_with("I run on Rust. This morning at 08:06 you told me"), "{told}");
}

const KEY: &str = "The key of the bicycle is in the blue box.";

#[test]
fn a_memory_is_quoted_with_who_said_it_and_when() {
    let key = memory(KEY, None, "2026-11-30T07:06:00Z", 0.8);
    assert_eq!(
        found_told(vec![key], None),
        "This morning at 08:06 you told me: “The key of the bicycle is in the blue box.”"
    );
    let named = memory(KEY, Some("Anna"), "2026-11-29T19:06:00Z", 0.8);
    assert!(found_told(vec![named.clone()], Some("Anna")).starts_with("Yesterday at 20:06 you told me:"));
    assert!(found_told(vec![named], Some("Tom")).starts_with("Yesterday at 20:06 Anna told me:"));
    let unnamed = memory(KEY, None, "2026-11-27T19:06:00Z", 0.8);
    assert!(found_told(vec![unnamed], Some("Tom")).starts_with("On Friday at 20:06 somebody told me:"));
}

#[test]
fn what_was_just_said_is_no_memory() {
    let mut key = memory(KEY, None, "2026-11-30T08:20:00Z", 0.8);
    key.just_said = true;
    assert_eq!(found_told(vec![key.clone()], None), format!("You said that a moment ago: “{KEY}”"));
    key.exchange.speaker = Some("Anna".into());
    assert_eq!(found_told(vec![key], Some("Tom")), format!("A moment ago Anna told me: “{KEY}”"));
}

#[test]
fn an_old_question_is_told_as_a_question_and_after_what_was_told() {
    let asked = memory("Where is the key of the bicycle?", None, "2026-11-30T07:10:00Z", 0.85);
    let key = memory(KEY, None, "2026-11-30T07:06:00Z", 0.80);
    assert!(found_told(vec![asked.clone(), key], None).starts_with("This morning at 08:06 you told me:"));
    assert_eq!(
        found_told(vec![asked], None),
        "This morning at 08:10 you asked me: “Where is the key of the bicycle?” I answered: “All right.”"
    );
}

#[test]
fn a_much_weaker_memory_is_not_told_beside_the_best() {
    let key = memory(KEY, None, "2026-11-30T07:06:00Z", 0.80);
    let near = memory("The bicycle is green.", None, "2026-11-30T07:07:00Z", 0.78);
    let far = memory("We had pasta.", None, "2026-11-30T07:08:00Z", 0.64);
    let both = found_told(vec![key, near, far], None);
    assert!(both.contains("green") && !both.contains("pasta"), "{both}");
}

#[test]
fn nothing_found_and_could_not_look_are_different_sentences() {
    let nothing = told(ToolResult::Recalled(Recalled::Nothing { searched: 12, best: Some(0.4) }), None);
    assert_eq!(nothing, "I searched my memory and found nothing about that.");
    let empty = told(ToolResult::Recalled(Recalled::Found { memories: vec![] }), None);
    assert_eq!(empty, nothing);
    let could_not = told(ToolResult::CouldNotLook { why: "the disk is full".into() }, None);
    assert_eq!(could_not, "I cannot look into my memory right now: the disk is full.");
    let result = ToolResult::Recalled(Recalled::Nothing { searched: 0, best: None });
    let then = answer(&result, &Asked { speaker: None, when: Some("yesterday"), now: &now() });
    assert_eq!(then, "I searched my memory and found nothing from that time.");
}

#[test]
fn a_time_is_listed_in_order_and_what_is_left_out_is_said() {
    let memories: Vec<Remembered> = (0..7)
        .map(|minute| memory(&format!("Thing {minute}."), None, &format!("2026-11-29T07:0{minute}:00Z"), 0.0))
        .collect();
    let result = ToolResult::Recalled(Recalled::Sampled { memories, of: 9 });
    let listed = answer(&result, &Asked { speaker: None, when: Some("while I was away"), now: &now() });
    assert!(
        listed.starts_with(
            "While you were away we talked about several things. Yesterday at 08:00 you told me: “Thing 0.” At 08:01 you"
        ),
        "{listed}"
    );
    assert!(listed.contains("Thing 4") && !listed.contains("Thing 5"), "{listed}");
    assert!(listed.ends_with("There are 4 more that I left out."), "{listed}");
}

#[test]
fn looks_and_moves_are_told_as_they_went() {
    assert_eq!(
        told(ToolResult::Seen { sentence: "I see a cup and a person".into() }, None),
        "I see a cup and a person."
    );
    assert!(
        told(ToolResult::CouldNotSee { why: "the camera is off".into() }, None).starts_with("I cannot see anything")
    );
    assert_eq!(told(ToolResult::Moved { gesture: Gesture::Nod }, None), "I nodded.");
    assert!(
        told(ToolResult::CouldNotMove { why: "the motors are off.".into() }, None).ends_with("the motors are off.")
    );
    for gesture in Gesture::ALL {
        assert!(!moved(gesture).is_empty());
    }
}

#[test]
fn a_long_memory_is_cut_at_a_word() {
    let long = memory(&"strawberry ".repeat(60), None, "2026-11-30T07:06:00Z", 0.8);
    let told = found_told(vec![long], None);
    assert!(told.ends_with("strawberry …”") && told.chars().count() < 300, "{told}");
}

#[test]
fn times_are_told_as_people_tell_them() {
    let cases = [
        ("2026-11-30T08:29:00Z", "a moment ago"),
        ("2026-11-30T01:10:00Z", "last night at 02:10"),
        ("2026-11-29T23:30:00Z", "last night at 00:30"),
        ("2026-11-29T22:30:00Z", "yesterday at 23:30"),
        ("2026-11-24T08:00:00Z", "on Tuesday at 09:00"),
        ("2026-11-03T08:00:00Z", "on 3 November at 09:00"),
        ("2025-11-03T08:00:00Z", "on 3 November 2025 at 09:00"),
    ];
    for (at, expected) in cases {
        assert_eq!(told_time(at.parse().expect("a time"), &now()), expected);
    }
}

fn anna(last_seen_at: Option<&str>, is_here: bool, asks: bool) -> ToolResult {
    ToolResult::Recalled(Recalled::Person(crate::remember::Known {
        name: "Anna".into(),
        met_at: "2026-11-03T08:00:00Z".parse().expect("a time"),
        last_seen_at: last_seen_at.map(|at| at.parse().expect("a time")),
        is_here,
        asks,
        exchanges: Vec::new(),
    }))
}

#[test]
fn who_am_i_is_answered_with_since_when_and_when_last() {
    assert_eq!(
        told(anna(Some("2026-11-29T17:00:00Z"), true, true), Some("Anna")),
        "You are Anna. We first met on 3 November at 09:00. Before now I last saw you yesterday at 18:00."
    );
    assert!(told(anna(None, true, true), Some("Anna")).ends_with("This is the first time that I see you."));
}

#[test]
fn when_somebody_else_was_last_seen_is_told_by_name() {
    assert_eq!(
        told(anna(Some("2026-11-29T17:00:00Z"), false, false), Some("Bob")),
        "I know Anna; we first met on 3 November at 09:00. I last saw Anna yesterday at 18:00."
    );
    assert!(told(anna(Some("2026-11-29T17:00:00Z"), true, false), Some("Bob")).ends_with("Anna is here now."));
}

#[test]
fn never_met_cannot_see_faces_and_nothing_happened_are_different_sentences() {
    let nothing = crate::remember::Away { since: None, frames: vec![], came: vec![], of: 0 };
    let said = [
        told(ToolResult::Recalled(Recalled::NeverMet { name: None }), None),
        told(ToolResult::Recalled(Recalled::NeverMet { name: Some("Bob".into()) }), None),
        told(ToolResult::Recalled(Recalled::Away(nothing)), None),
        told(ToolResult::Recalled(Recalled::Nothing { searched: 3, best: None }), None),
        told(ToolResult::CouldNotLook { why: "I cannot see faces now".into() }, None),
    ];
    assert_eq!(said[0], "I see your face, and we have never met before.");
    assert_eq!(said[1], "I have never met anybody called Bob.");
    assert_eq!(said[2], "I do not know since when you were away, so I tell you of today. I saw nothing happen today.");
    assert!(said[4].contains("I cannot see faces now"));
    for (place, one) in said.iter().enumerate() {
        assert!(said.iter().skip(place + 1).all(|other| one != other), "{one}");
    }
}

#[test]
fn a_time_away_is_told_with_who_came_each_with_when() {
    let away = crate::remember::Away {
        since: Some("2026-11-30T06:00:00Z".parse().expect("a time")),
        frames: vec![],
        came: vec![
            ("Bob".into(), "2026-11-30T06:30:00Z".parse().expect("a time")),
            ("Eve".into(), "2026-11-30T07:30:00Z".parse().expect("a time")),
        ],
        of: 0,
    };
    assert_eq!(
        told(ToolResult::Recalled(Recalled::Away(away)), Some("Anna")),
        "I last saw you this morning at 07:00. This morning at 07:30 Bob came. This morning at 08:30 Eve came."
    );
}
