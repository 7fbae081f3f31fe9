use jiff::civil::date;
use jiff::tz::TimeZone;

use super::*;

/// Thursday, 2026-11-26, 15:30 in Berlin unless a case says otherwise.
fn now() -> Zoned {
    at(2026, 11, 26, 15, 30)
}

fn at(year: i16, month: i8, day: i8, hour: i8, minute: i8) -> Zoned {
    let zone = TimeZone::get("Europe/Berlin").expect("the zone");
    date(year, month, day).at(hour, minute, 0, 0).to_zoned(zone).expect("a time")
}

/// A range as local times, to the second, as in "11-25 00:00:00 – 11-25 23:59:59".
fn told(when: When, now: &Zoned) -> String {
    let local = |at: Timestamp| at.to_zoned(now.time_zone().clone()).strftime("%m-%d %H:%M:%S").to_string();
    match when {
        When::Range(range) => {
            assert!(range.from <= range.to && range.to <= now.timestamp(), "the range is upside down or in the future");
            format!("{} – {}", local(range.from), local(range.to))
        }
        When::WhileAway => "while away".into(),
        When::Unknown => "unknown".into(),
    }
}

#[test]
fn words_for_a_time_become_ranges_with_both_ends() {
    let cases = [
        ("today", "11-26 00:00:00 – 11-26 15:30:00"),
        ("earlier today", "11-26 00:00:00 – 11-26 15:30:00"),
        ("this morning", "11-26 05:00:00 – 11-26 11:59:59"),
        ("This Morning.", "11-26 05:00:00 – 11-26 11:59:59"),
        ("this afternoon", "11-26 12:00:00 – 11-26 15:30:00"),
        ("tonight", "unknown"),
        ("this evening", "unknown"),
        ("last night", "11-25 18:00:00 – 11-26 04:59:59"),
        ("yesterday", "11-25 00:00:00 – 11-25 23:59:59"),
        ("yesterday evening", "11-25 18:00:00 – 11-25 23:59:59"),
        ("yesterday in the morning", "11-25 05:00:00 – 11-25 11:59:59"),
        ("the day before yesterday", "11-24 00:00:00 – 11-24 23:59:59"),
        ("just now", "11-26 15:25:00 – 11-26 15:30:00"),
        ("a few minutes ago", "11-26 15:15:00 – 11-26 15:30:00"),
        ("an hour ago", "11-26 14:15:00 – 11-26 14:45:00"),
        ("half an hour ago", "11-26 14:52:30 – 11-26 15:07:30"),
        ("20 minutes ago", "11-26 15:05:00 – 11-26 15:15:00"),
        ("two hours ago", "11-26 13:00:00 – 11-26 14:00:00"),
        ("a few hours ago", "11-26 11:00:00 – 11-26 14:00:00"),
        ("three days ago", "11-23 00:00:00 – 11-23 23:59:59"),
        ("two weeks ago", "11-09 00:00:00 – 11-15 23:59:59"),
        ("in the last hour", "11-26 14:30:00 – 11-26 15:30:00"),
        ("the last 10 minutes", "11-26 15:20:00 – 11-26 15:30:00"),
        ("in the past two days", "11-24 15:30:00 – 11-26 15:30:00"),
        ("on Monday", "11-23 00:00:00 – 11-23 23:59:59"),
        ("last Monday evening", "11-23 18:00:00 – 11-23 23:59:59"),
        ("Monday", "11-23 00:00:00 – 11-23 23:59:59"),
        ("on Thursday", "11-19 00:00:00 – 11-19 23:59:59"),
        ("this week", "11-23 00:00:00 – 11-26 15:30:00"),
        ("last week", "11-16 00:00:00 – 11-22 23:59:59"),
        ("last weekend", "11-21 00:00:00 – 11-22 23:59:59"),
        ("this month", "11-01 00:00:00 – 11-26 15:30:00"),
        ("last month", "10-01 00:00:00 – 10-31 23:59:59"),
        ("at eight", "11-26 07:45:00 – 11-26 08:15:00"),
        ("at 8:30", "11-26 08:15:00 – 11-26 08:45:00"),
        ("at half past nine", "11-26 09:15:00 – 11-26 09:45:00"),
        ("at quarter to nine", "11-26 08:30:00 – 11-26 09:00:00"),
        ("around 3 pm", "11-26 14:30:00 – 11-26 15:30:00"),
        ("8 p.m.", "11-25 19:45:00 – 11-25 20:15:00"),
        ("at nine in the evening", "11-25 20:45:00 – 11-25 21:15:00"),
        ("at noon", "11-26 11:45:00 – 11-26 12:15:00"),
        ("at three o'clock", "11-26 14:45:00 – 11-26 15:15:00"),
        ("yesterday at eight", "11-25 07:45:00 – 11-25 08:15:00"),
        ("at eight yesterday evening", "11-25 19:45:00 – 11-25 20:15:00"),
        ("this morning at 8", "11-26 07:45:00 – 11-26 08:15:00"),
        ("at 2 last night", "11-26 01:45:00 – 11-26 02:15:00"),
        ("since yesterday", "11-25 00:00:00 – 11-26 15:30:00"),
        ("since this morning", "11-26 05:00:00 – 11-26 15:30:00"),
        ("since breakfast", "unknown"),
        ("while I was away", "while away"),
        ("while i was at work", "while away"),
        ("when I wasn't here", "while away"),
        ("while I was cooking", "unknown"),
        ("tomorrow", "unknown"),
        ("soon", "unknown"),
        ("", "unknown"),
    ];
    let now = now();
    for (words, expected) in cases {
        assert_eq!(told(resolve(words, &now), &now), expected, "{words}");
    }
}

#[test]
fn yesterday_leaves_today_out_at_both_edges_of_midnight() {
    let late = at(2026, 11, 26, 23, 59);
    assert_eq!(told(resolve("yesterday", &late), &late), "11-25 00:00:00 – 11-25 23:59:59");
    assert_eq!(told(resolve("tonight", &late), &late), "11-26 18:00:00 – 11-26 23:59:00");
    let midnight = at(2026, 11, 27, 0, 0);
    assert_eq!(told(resolve("yesterday", &midnight), &midnight), "11-26 00:00:00 – 11-26 23:59:59");
    assert_eq!(told(resolve("today", &midnight), &midnight), "11-27 00:00:00 – 11-27 00:00:00");
    let When::Range(yesterday) = resolve("yesterday", &midnight) else { panic!("a range") };
    assert!(!yesterday.contains(midnight.timestamp()) && yesterday.contains(late.timestamp()));
}

#[test]
fn the_small_hours_belong_to_the_night_before() {
    let small = at(2026, 11, 27, 2, 0);
    assert_eq!(told(resolve("last night", &small), &small), "11-26 18:00:00 – 11-27 02:00:00");
    assert_eq!(told(resolve("tonight", &small), &small), "11-26 18:00:00 – 11-27 02:00:00");
    assert_eq!(told(resolve("this morning", &small), &small), "11-27 00:00:00 – 11-27 02:00:00");
    assert_eq!(told(resolve("this afternoon", &small), &small), "unknown");
}

#[test]
fn days_with_a_clock_change_are_whole() {
    let length = |when: When| match when {
        When::Range(range) => (range.to.duration_since(range.from).as_secs_f64() / 3600.0).round(),
        _ => 0.0,
    };
    // Clocks went back on 2026-10-25 and forward on 2026-03-29.
    assert_eq!(length(resolve("yesterday", &at(2026, 10, 26, 9, 0))), 25.0);
    assert_eq!(length(resolve("yesterday", &at(2026, 3, 30, 9, 0))), 23.0);
    // 02:30 did not exist on 2026-03-29; the hour after it stands in.
    let now = at(2026, 3, 29, 9, 0);
    assert_eq!(told(resolve("at 2:30", &now), &now), "03-29 03:15:00 – 03-29 03:45:00");
}

#[test]
fn a_time_is_found_inside_a_question() {
    let now = now();
    let cases = [
        ("what did we talk about this morning", Some("this morning")),
        ("Did you see my keys yesterday evening?", Some("yesterday evening")),
        ("What happened while I was away?", Some("while I was away")),
        ("What did I say an hour ago?", Some("an hour ago")),
        ("What did you see on Monday?", Some("on Monday")),
        ("What did we talk about on Monday?", Some("on Monday")),
        ("Was anyone here at 8:30?", Some("at 8:30")),
        ("Who was here in the last two hours?", Some("in the last two hours")),
        ("Have you seen Peter today?", Some("today")),
        ("Tell me about yesterday.", Some("yesterday")),
        // What is asked is no time of the past.
        ("Who is coming on Sunday?", None),
        ("What do I have to do today?", None),
        ("When did I say that the train leaves at eight?", None),
        ("What did I tell you about the meeting on Monday?", None),
        ("Where is the key?", None),
        ("What have you seen since breakfast?", None),
        ("", None),
    ];
    for (question, expected) in cases {
        assert_eq!(find_in(question, &now).map(|(_, words)| words).as_deref(), expected, "{question}");
    }
}

#[test]
fn words_that_were_found_resolve_to_the_same_range() {
    let now = now();
    for question in ["What did Anna’s brother say yesterday, at eight?", "What did we talk about — this morning?"] {
        let (when, words) = find_in(question, &now).expect("a time");
        assert_eq!(resolve(&words, &now), when, "{words}");
    }
}

#[test]
fn numbers_out_of_bounds_are_not_understood_and_do_no_harm() {
    let now = now();
    for words in ["99999999999999999999 days ago", "9223372036854775807 hours ago", "at 25:99", "at 99", "0 days ago"] {
        assert_eq!(resolve(words, &now), When::Unknown, "{words}");
    }
}
