//! What a script may say, and how it is told that it may not.

use super::*;

const HEAD: &str = "title = \"t\"\ntime_zone = \"UTC\"\nstarts = \"2026-05-04T08:00\"\n";

fn day(events: &str) -> Result<Day, DayError> {
    Day::from_toml(&format!("{HEAD}{events}"), Path::new("house/day.toml"))
}

fn refused(events: &str) -> (usize, String) {
    match day(events).unwrap_err() {
        DayError::Refused { line, why, .. } => (line, why),
        other => panic!("{other}"),
    }
}

#[test]
fn the_demo_day_loads_in_two_parts() {
    let day = Day::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/day.toml")).unwrap();
    let parts = day.parts();
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].ends.map(|(_, restart)| restart), Some(Restart::Kill));
    assert_eq!(parts[1].ends, None);
    let said = |part: &Part<'_>| part.events.iter().filter(|event| event.speech.is_some()).count();
    assert_eq!((said(&parts[0]), said(&parts[1])), (10, 9));
    assert_eq!(parts[1].starts, "2026-05-04T12:30:00Z".parse().unwrap());
}

#[test]
fn times_are_told_in_the_days_own_zone() {
    let text = HEAD.replace("UTC", "Europe/Berlin") + "[[event]]\nat = \"08:05:30\"\npause_s = 3\n";
    let day = Day::from_toml(&text, Path::new("day.toml")).unwrap();
    assert_eq!(day.events[0].at, "2026-05-04T06:05:30Z".parse().unwrap());
}

#[test]
fn files_are_looked_for_beside_the_script() {
    let day = day("[[event]]\nat = \"08:05\"\nsound = \"sounds/a.wav\"\nsays = \"Hello.\"\n").unwrap();
    assert_eq!(day.events[0].speech.as_ref().unwrap().file, Path::new("house/sounds/a.wav"));
    let missing = day.check_files().unwrap_err().to_string();
    assert!(missing.starts_with("house/day.toml:4: there is no file house/sounds/a.wav"), "{missing}");
}

#[test]
fn a_time_that_goes_backward_is_refused_on_its_line() {
    let (line, why) = refused("[[event]]\nat = \"09:00\"\npause_s = 1\n[[event]]\nat = \"08:59\"\npause_s = 1\n");
    assert_eq!(line, 8);
    assert!(why.contains("backward"), "{why}");
    let (line, _) = refused("[[event]]\nat = \"07:59\"\npause_s = 1\n");
    assert_eq!(line, 5, "before the day starts");
}

#[test]
fn what_is_wrong_in_an_event_is_refused_with_its_line() {
    let cases = [
        ("[[event]]\nat = \"8:05\"\npause_s = 1", 5, "time of day"),
        ("[[event]]\nat = \"24:00\"\npause_s = 1", 5, "time of day"),
        ("[[event]]\nat = \"08:05:\"\npause_s = 1", 5, "time of day"),
        ("[[event]]\nat = \"08:05\"", 4, "nothing happens"),
        ("[[event]]\nat = \"08:05\"\nsays = \"Hi\"", 4, "needs a sound"),
        ("[[event]]\nat = \"08:05\"\nfault = \"camera-dark\"", 4, "for_s"),
        ("[[event]]\nat = \"08:05\"\nfor_s = 3", 4, "needs a fault"),
        ("[[event]]\nat = \"08:05\"\npause_s = 100000", 4, "3600"),
        ("[[event]]\nat = \"08:05\"\nrestart = \"kill\"\npause_s = 1", 4, "stands alone"),
        ("[[event]]\nat = \"08:05\"\nsound = \"a.wav\"\nvolume = 3", 7, "volume"),
        ("[[event]]\nat = \"08:05\"\nfault = \"no-coffee\"\nfor_s = 1", 6, "microphone-silent"),
        ("[[event]]\nat = \"08:05\"\nsees = [3]", 6, "what is in view"),
        ("[[event]]\nat = \"08:05\"\nsees = [\"\"]", 4, "needs a name"),
        ("[[event]]\nat = \"08:05\"\nfaces = [3]", 6, "a face must be"),
        ("[[event]]\nat = \"08:05\"\nfaces = [\" \"]", 4, "whose it is"),
        ("[[event]]\nat = \"08:05\"\nfaces = [{ of = \"anna\", angle = 91 }]", 4, "-90 to 90"),
        ("[[event]]\nat = \"08:05\"\nfaces = [{ of = \"anna\", place = [0.5, 0.1, 0.4, 0.2] }]", 4, "a place is"),
        ("[[event]]\nat = \"08:05\"\nsees = [{ label = \"cup\", place = [0.9, 0.1, 0.2, 0.3] }]", 4, "a place is"),
    ];
    for (events, at, says) in cases {
        let (line, why) = refused(events);
        assert_eq!(line, at, "{events}: {why}");
        assert!(why.contains(says), "{events}: {why}");
    }
}

#[test]
fn a_sight_may_have_a_place() {
    let day =
        day("[[event]]\nat = \"08:05\"\nsees = [\"cup\", { label = \"person\", place = [0.1, 0.2, 0.5, 0.9] }]\n")
            .unwrap();
    let sees = day.events[0].ahead.clone().unwrap().sees.unwrap();
    assert_eq!(sees[0], Annotation { label: "cup".into(), place: None });
    assert_eq!(sees[1].place, Some([0.1, 0.2, 0.5, 0.9]));
}

#[test]
fn faces_are_names_or_marks_and_bring_as_many_people() {
    let marked = day(
        "[[event]]\nat = \"08:05\"\nfaces = [\"anna\", { of = \"ben\", place = [0.1, 0.2, 0.3, 0.4], angle = -70, poor = true }]\n",
    )
    .unwrap();
    assert!(marked.marks_faces());
    let view = marked.events[0].ahead.clone().unwrap();
    let faces = view.faces.unwrap();
    assert_eq!(faces[0], FaceMark { of: "anna".into(), place: None, angle: 0.0, poor: false });
    assert_eq!((faces[1].angle, faces[1].poor, faces[1].place), (-70.0, true, Some([0.1, 0.2, 0.3, 0.4])));
    let sees = view.sees.unwrap();
    assert_eq!(sees.iter().map(|seen| seen.label.as_str()).collect::<Vec<_>>(), ["person", "person"]);
    let own = day("[[event]]\nat = \"08:05\"\nsees = [\"cup\"]\nfaces = [\"anna\"]\n").unwrap();
    assert_eq!(own.events[0].ahead.clone().unwrap().sees.unwrap()[0].label, "cup");
    let empty = day("[[event]]\nat = \"08:05\"\nfaces = []\n").unwrap();
    assert_eq!(empty.events[0].ahead.clone().unwrap().sees.unwrap(), []);
    assert!(empty.marks_faces() && !day("[[event]]\nat = \"08:05\"\nsees = [\"cup\"]\n").unwrap().marks_faces());
}

#[test]
fn a_part_that_is_not_there_is_a_typed_error() {
    let day = day("").unwrap();
    assert_eq!(day.parts().len(), 1, "a day without events still is one part");
    assert!(matches!(day.clock(1), Err(DayError::NoSuchPart { part: 1, parts: 1 })));
}
