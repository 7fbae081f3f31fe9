//! Scripted visits, each named after its symptom, and random ones that must keep the promises about people.
//!
//! The scripts are `tests/visits/*.toml`. A line of `events` is a moment in seconds (or `from..to`, once a second) and:
//! - `faces 1=a>Anna@.60/.10 …`: the face `a` on track 1, nearest to Anna at 0.60, the next person at 0.10. `1=a` was
//!   seen and not embedded, `1=a?…` is not usable, `>-` has nobody to be compared with. `turned` and `moving` instead of
//!   `faces` say how the head was.
//! - `say WORDS` (they took the second before), `long WORDS` (the five seconds before), `answered`, `read NAME` or `read -`, `enrolled NAME`, `enrolfailed`,
//!   `forgotten NAME`, `renamed NAME NEW`, `tick`.
//! - `who`: tells who is in the newest picture and who speaks; `away NAME`: when they were last seen before.
//!
//! `expect` is what comes of it, in order: greetings, questions, readings, enrolments, learned poses, words that become
//! somebody's, and answers to `who` and `away`; `words` and `seen` only where `watch` names them. Nothing that begins
//! like a line of `forbid` may come at all.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use reachy_remembers::remember::people::PersonId;
use reachy_remembers::think::visit::{
    BadSettings, Command, Event, Gates, Head, Likeness, MOST_KEPT, Settings, Shot, Sighting, Visits,
};
use serde::Deserialize;
use uuid::Uuid;

#[derive(Deserialize)]
struct Scripts {
    visit: Vec<Script>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    symptom: String,
    events: String,
    #[serde(default)]
    expect: Vec<String>,
    #[serde(default)]
    forbid: Vec<String>,
    #[serde(default)]
    watch: Vec<String>,
    /// When the memory says that somebody was last seen, in seconds.
    #[serde(default)]
    last_seen: HashMap<String, f64>,
}

fn settings() -> Settings {
    Settings { gates: Gates { greet: 0.35, ask: 0.25, margin: 0.05 }, visit_ends_after: SignedDuration::from_mins(10) }
}

/// 2026-11-30, nine in the morning, and so many seconds.
fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millisecond(1_796_029_200_000 + (seconds * 1000.0).round() as i64).unwrap()
}

fn seconds(at: Timestamp) -> String {
    let seconds = (at.as_millisecond() - 1_796_029_200_000) as f64 / 1000.0;
    format!("{seconds}")
}

fn person(name: &str) -> PersonId {
    let bytes = name.bytes().fold(7_u128, |sum, byte| sum * 257 + u128::from(byte));
    PersonId(Uuid::from_u128(bytes))
}

/// The shot of the face with this letter: unlike every other face's.
fn shot(face: char) -> Shot {
    let mut vector = vec![0.0; 32];
    vector[face as usize % 32] = 1.0;
    Arc::from(vector)
}

fn sighting(written: &str, last_seen: &HashMap<String, f64>) -> Sighting {
    let (track, rest) = written.split_once('=').unwrap();
    let (face, likeness) = rest.split_once('>').map_or((rest, None), |(face, likeness)| (face, Some(likeness)));
    let letter = face.chars().next().unwrap();
    let nearest = likeness.filter(|likeness| *likeness != "-").map(|likeness| {
        let (name, scores) = likeness.split_once('@').unwrap();
        let (score, second) = scores.split_once('/').map_or((scores, None), |(score, second)| (score, Some(second)));
        let nearest = Likeness {
            person: person(name),
            name: name.into(),
            score: score.parse().unwrap(),
            last_seen_at: last_seen.get(name).map(|seconds| at(*seconds)),
        };
        (nearest, second.map(|second| second.parse().unwrap()))
    });
    let track = track.parse().unwrap();
    Sighting {
        track,
        place: [0.1 * track as f32, 0.2, 0.1, 0.1],
        usable: !face.ends_with('?'),
        embedded: likeness.is_some(),
        shot: likeness.map(|_| shot(letter)),
        second: nearest.as_ref().and_then(|(_, second)| *second),
        nearest: nearest.map(|(nearest, _)| nearest),
    }
}

fn told(command: &Command) -> String {
    match command {
        Command::Greet { name, .. } => format!("greet {name}"),
        Command::AskName { track } => format!("ask {track}"),
        Command::ReadName { words } => format!("read {words}"),
        Command::Enrol { name, shots, met_at } => format!("enrol {name} {} met {}", shots.len(), seconds(*met_at)),
        Command::LearnPose { person: who, .. } => {
            let named = ["Anna", "Bob", "Eve"].into_iter().find(|name| person(name) == *who);
            format!("learn {}", named.unwrap_or("?"))
        }
        Command::SeenNow { person: who, at } => {
            let named = ["Anna", "Bob", "Eve"].into_iter().find(|name| person(name) == *who);
            format!("seen {} {}", named.unwrap_or("?"), seconds(*at))
        }
        Command::WordsAre { speaker } => {
            format!("words {}", speaker.as_ref().map_or("-", |speaker| speaker.name.as_str()))
        }
        Command::WordsBecome { name, since, until, .. } => {
            format!("become {name} {}..{}", seconds(*since), seconds(*until))
        }
    }
}

/// Runs one line of a script; answers what came of it.
fn line(visits: &mut Visits, moment: f64, what: &str, script: &Script) -> Vec<String> {
    let (kind, rest) = what.split_once(' ').unwrap_or((what, ""));
    let now = at(moment);
    let event = match kind {
        "faces" | "turned" | "moving" => Event::Faces {
            at: now,
            faces: rest.split_whitespace().map(|written| sighting(written, &script.last_seen)).collect(),
            head: match kind {
                "turned" => Head::Turned,
                "moving" => Head::Moving,
                _ => Head::Steady,
            },
        },
        "say" => Event::Heard { from: at(moment - 1.0), at: now, words: rest.into() },
        "long" => Event::Heard { from: at(moment - 5.0), at: now, words: rest.into() },
        "answered" => Event::Answered { at: now },
        "read" => Event::NameRead { at: now, name: (rest != "-").then(|| rest.to_owned()) },
        "enrolled" => Event::Enrolled { at: now, person: person(rest), name: rest.into() },
        "enrolfailed" => Event::EnrolFailed { at: now },
        "forgotten" => Event::Forgotten { person: person(rest) },
        "renamed" => {
            let (old, new) = rest.split_once(' ').unwrap();
            Event::Renamed { person: person(old), name: new.into() }
        }
        "tick" => Event::Tick { at: now },
        "who" => {
            let faces: Vec<String> = visits
                .present()
                .iter()
                .map(|face| format!("{}={}", face.track, face.speaker.as_ref().map_or("-", |who| who.name.as_str())))
                .collect();
            let speaker = visits.speaker_now().map_or("-".into(), |speaker| speaker.name);
            return vec![format!("present {} speaker {speaker}", faces.join(" "))];
        }
        "away" => return vec![format!("away {}", visits.away_since(person(rest)).map_or("-".into(), seconds))],
        other => panic!("{}: there is no event {other}", script.symptom),
    };
    visits.handle(event).iter().map(told).collect()
}

/// Everything that came of a script, each line with its moment.
fn played(script: &Script) -> Vec<String> {
    let mut visits = Visits::new(settings()).unwrap();
    let mut came = Vec::new();
    for written in script.events.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (when, what) = written.split_once(' ').unwrap();
        let (first, last) = when.split_once("..").unwrap_or((when, when));
        let (mut moment, last): (f64, f64) = (first.parse().unwrap(), last.parse().unwrap());
        while moment <= last {
            came.extend(line(&mut visits, moment, what, script).into_iter().map(|told| format!("{moment} {told}")));
            assert!(visits.kept() <= MOST_KEPT);
            moment += 1.0;
        }
    }
    came
}

fn scripts() -> Vec<Script> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/visits");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| toml::from_str::<Scripts>(&std::fs::read_to_string(file).unwrap()).unwrap().visit)
        .collect()
}

#[test]
fn every_scripted_visit_goes_as_a_good_host_would_have_it() {
    let scripts = scripts();
    let mut wrong = Vec::new();
    for script in &scripts {
        let came = played(script);
        let kind = |line: &str| line.split(' ').nth(1).unwrap_or_default().to_owned();
        let watched: Vec<&String> = came
            .iter()
            .filter(|line| {
                let kind = kind(line);
                !matches!(kind.as_str(), "words" | "seen") || script.watch.contains(&kind)
            })
            .collect();
        if watched != script.expect.iter().collect::<Vec<_>>() {
            wrong.push(format!("{}\n  expected {:?}\n  came     {watched:?}", script.symptom, script.expect));
        }
        for forbidden in &script.forbid {
            let without_time =
                |line: &&String| line.split_once(' ').is_some_and(|(_, what)| what.starts_with(forbidden));
            if let Some(line) = came.iter().find(without_time) {
                wrong.push(format!("{}\n  forbidden {forbidden:?}: {line}", script.symptom));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} went wrong:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
    let names: std::collections::HashSet<&str> = scripts.iter().map(|script| script.symptom.as_str()).collect();
    assert!(names.len() == scripts.len() && scripts.len() >= 60, "{} visits", scripts.len());
}

#[test]
fn gates_that_do_not_fit_together_are_refused_with_a_sentence() {
    let with = |greet: f32, ask: f32, margin: f32, seconds: i64| {
        let visit_ends_after = SignedDuration::from_secs(seconds);
        Visits::new(Settings { gates: Gates { greet, ask, margin }, visit_ends_after }).map(|_| ())
    };
    assert!(matches!(with(0.2, 0.3, 0.0, 600), Err(BadSettings::Gates { .. })));
    assert!(matches!(with(f32::NAN, 0.3, 0.0, 600), Err(BadSettings::Gates { .. })));
    assert!(matches!(with(0.4, 0.3, -0.1, 600), Err(BadSettings::Gates { .. })));
    let why = with(0.4, 0.3, 0.1, 0).unwrap_err().to_string();
    assert!(why.contains("visit_ends_after_min"), "{why}");
}

/// Who really stands before the camera.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Real {
    Anna,
    Bob,
    /// A stranger with their own face.
    Stranger(u8),
}

impl Real {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Anna => Some("Anna"),
            Self::Bob => Some("Bob"),
            Self::Stranger(_) => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Anna => 'a',
            Self::Bob => 'b',
            Self::Stranger(which) => char::from(b'u' + which % 4),
        }
    }
}

/// A step of a random day. Scores are what the real person's face gives.
#[derive(Clone, Debug)]
enum Step {
    /// Puts somebody on a place, on a new track or (another person) on the same one.
    Comes {
        place: usize,
        who: Real,
        same_track: bool,
    },
    Leaves {
        place: usize,
    },
    /// The camera looks: one quality for each place; a score between 0 and 1 of the way.
    Looks {
        scores: [f32; 2],
        usable: [bool; 2],
        head: u8,
    },
    Says {
        who_of: usize,
        words: usize,
    },
    Answered,
    Read {
        wrong: bool,
    },
    Enrolled,
    Failed,
    Passes {
        seconds: u32,
    },
}

const WORDS: [&str; 6] = ["I'm Tom.", "Eve.", "I am not Anna.", "What a day!", "I'm Bob.", "My name is Anna."];

fn real() -> impl Strategy<Value = Real> {
    prop_oneof![Just(Real::Anna), Just(Real::Bob), (0..4_u8).prop_map(Real::Stranger)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..2_usize, real(), any::<bool>())
            .prop_map(|(place, who, same_track)| Step::Comes { place, who, same_track }),
        1 => (0..2_usize).prop_map(|place| Step::Leaves { place }),
        9 => ([0.0..1.0_f32, 0.0..1.0_f32], [prop::bool::weighted(0.9), prop::bool::weighted(0.9)], 0..12_u8)
            .prop_map(|(scores, usable, head)| Step::Looks { scores, usable, head }),
        3 => (0..2_usize, 0..WORDS.len()).prop_map(|(who_of, words)| Step::Says { who_of, words }),
        3 => Just(Step::Answered),
        2 => any::<bool>().prop_map(|wrong| Step::Read { wrong }),
        2 => Just(Step::Enrolled),
        1 => Just(Step::Failed),
        1 => prop_oneof![Just(3_u32), Just(40), Just(700)].prop_map(|seconds| Step::Passes { seconds }),
    ]
}

/// A stranger who comes alone, speaks, and is asked: else random days hardly ever come so far.
fn day() -> impl Strategy<Value = Vec<Step>> {
    let meeting = |who: Real, reply: usize| {
        let look = Step::Looks { scores: [0.5; 2], usable: [true; 2], head: 9 };
        let mut steps = vec![Step::Comes { place: 0, who, same_track: false }];
        steps.extend(std::iter::repeat_n(look.clone(), 5));
        steps.extend([Step::Says { who_of: 0, words: 3 }, Step::Answered, look.clone()]);
        steps.extend([Step::Says { who_of: 0, words: reply }, Step::Read { wrong: false }, Step::Enrolled, look]);
        steps
    };
    let part = prop_oneof![
        3 => prop::collection::vec(step(), 1..40),
        1 => (real(), 0..WORDS.len()).prop_map(move |(who, reply)| meeting(who, reply)),
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// The real world beside the machine, and the promises that it is held to.
struct World {
    visits: Visits,
    now: f64,
    next_track: u32,
    /// Who stands on each place, on which track, and whether a usable look was made since they came.
    places: [Option<(Real, u32, bool)>; 2],
    /// Strangers who were enrolled, by their letter, under a name.
    enrolled: HashMap<char, String>,
    /// Best score of each person since they were last away for long.
    over_gate: HashMap<PersonId, u32>,
    greeted: HashMap<PersonId, f64>,
    asked: HashMap<char, f64>,
    /// Unnamed words: when they began, and by whom.
    unnamed: Vec<(f64, char)>,
    reading: Option<String>,
    enrolling: Option<(String, char)>,
    head: Head,
    /// The faces of the newest picture.
    looked_at: Vec<Sighting>,
}

impl World {
    fn new() -> Self {
        Self {
            visits: Visits::new(settings()).unwrap(),
            now: 0.0,
            next_track: 0,
            places: [None; 2],
            enrolled: HashMap::new(),
            over_gate: HashMap::new(),
            greeted: HashMap::new(),
            asked: HashMap::new(),
            unnamed: Vec::new(),
            reading: None,
            enrolling: None,
            head: Head::Steady,
            looked_at: Vec::new(),
        }
    }

    fn name_of(&self, who: Real) -> Option<String> {
        who.name().map(str::to_owned).or_else(|| self.enrolled.get(&who.letter()).cloned())
    }

    fn id_of(who: Real, name: &str) -> PersonId {
        // A stranger called Anna is another Anna.
        if who.name().is_some() { person(name) } else { person(&format!("{}{name}", who.letter())) }
    }

    /// A face: of somebody known between 0.15 and 0.85 of themselves, of a stranger at most 0.34 of somebody.
    fn face(&self, who: Real, track: u32, score: f32, usable: bool) -> Sighting {
        let known = self.name_of(who);
        let (name, id, score, second) = match known {
            Some(name) => (name.clone(), Self::id_of(who, &name), 0.15 + score * 0.7, Some(score * 0.3)),
            None => ("Anna".into(), person("Anna"), score * 0.34, Some(score * 0.2)),
        };
        Sighting {
            track,
            place: [0.0; 4],
            usable,
            embedded: true,
            shot: Some(shot(who.letter())),
            nearest: Some(Likeness { person: id, name, score, last_seen_at: None }),
            second,
        }
    }

    fn event(&self, step: &Step) -> Option<Event> {
        let now = at(self.now);
        Some(match step {
            Step::Looks { scores, usable, .. } => {
                let there = self.places.iter().zip(scores.iter().zip(usable));
                let faces = there.filter_map(|(place, (score, usable))| {
                    place.map(|(who, track, _)| self.face(who, track, *score, *usable))
                });
                Event::Faces { at: now, faces: faces.collect(), head: self.head }
            }
            Step::Says { words, .. } => Event::Heard { from: now, at: now, words: WORDS[*words].into() },
            Step::Answered => Event::Answered { at: now },
            Step::Read { wrong } => {
                let read = self.reading.as_deref().and_then(reachy_remembers::think::name::read);
                Event::NameRead { at: now, name: if *wrong { Some("Zacharias".into()) } else { read } }
            }
            Step::Enrolled => {
                let (name, letter) = self.enrolling.clone()?;
                Event::Enrolled { at: now, person: person(&format!("{letter}{name}")), name }
            }
            Step::Failed => Event::EnrolFailed { at: now },
            Step::Passes { .. } => Event::Tick { at: now },
            Step::Comes { .. } | Step::Leaves { .. } => return None,
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.now += 1.0;
        match step {
            Step::Comes { place, who, same_track } => {
                let elsewhere = self.places.iter().flatten().any(|(other, ..)| other == who);
                if !elsewhere {
                    let track =
                        self.places[*place].filter(|_| *same_track).map_or(self.next_track, |(_, track, _)| track);
                    self.next_track += 1;
                    self.places[*place] = Some((*who, track, false));
                }
            }
            Step::Leaves { place } => self.places[*place] = None,
            Step::Passes { seconds } => self.now += f64::from(*seconds),
            Step::Looks { head, .. } => {
                self.head = match head {
                    0 => Head::Turned,
                    1 => Head::Moving,
                    _ => Head::Steady,
                }
            }
            _ => {}
        }
        // Whoever speaks was clearly seen since they came: nothing can be known of a face before that.
        if matches!(step, Step::Says { .. }) && self.places.iter().flatten().any(|(.., looked)| !looked) {
            return Ok(());
        }
        let Some(event) = self.event(step) else { return Ok(()) };
        self.note_scores(&event);
        if matches!(step, Step::Looks { .. }) && self.head == Head::Steady {
            // Between the gates a face that took over a track says nothing of who it is.
            let clear = |face: &&Sighting| {
                let score = face.nearest.as_ref().map_or(0.0, |nearest| nearest.score);
                face.usable && !(0.25..0.35).contains(&score)
            };
            let clear: Vec<u32> = self.looked_at.iter().filter(clear).map(|face| face.track).collect();
            for (_, track, looked) in self.places.iter_mut().flatten() {
                *looked |= clear.contains(track);
            }
        }
        let commands = self.visits.handle(event);
        prop_assert!(self.visits.kept() <= MOST_KEPT);
        for command in commands {
            self.check(&command, step)?;
        }
        Ok(())
    }

    fn note_scores(&mut self, event: &Event) {
        let Event::Faces { faces, head: Head::Steady, .. } = event else { return };
        self.looked_at.clone_from(faces);
        for face in faces.iter().filter(|face| face.usable) {
            if let Some(nearest) = face.nearest.as_ref().filter(|nearest| nearest.score >= 0.35) {
                *self.over_gate.entry(nearest.person).or_default() += 1;
            }
        }
    }

    fn speaker(&self, step: &Step) -> Option<Real> {
        let Step::Says { who_of, .. } = step else { return None };
        let there: Vec<Real> = self.places.iter().flatten().map(|(who, ..)| *who).collect();
        there.get(*who_of % there.len().max(1)).copied()
    }

    fn check(&mut self, command: &Command, step: &Step) -> Result<(), TestCaseError> {
        match command {
            Command::Greet { person, .. } => {
                prop_assert!(self.over_gate.get(person).copied().unwrap_or(0) >= 3, "greeted under the gate");
                let again = self.greeted.insert(*person, self.now);
                prop_assert!(again.is_none_or(|before| self.now - before > 600.0), "greeted twice in a visit");
            }
            Command::AskName { track } => {
                // Whoever came since the newest picture cannot be known of.
                let [face] = self.looked_at.as_slice() else { return Err(TestCaseError::fail("asked one of two")) };
                prop_assert!(face.track == *track, "asked somebody who left");
                let letter = (b'a'..=b'z').map(char::from).find(|letter| face.shot.as_ref() == Some(&shot(*letter)));
                let again = self.asked.insert(letter.unwrap_or('?'), self.now);
                prop_assert!(again.is_none_or(|before| self.now - before > 600.0), "asked twice in a visit");
            }
            Command::ReadName { words } => self.reading = Some(words.clone()),
            Command::Enrol { name, shots, .. } => {
                let reply = self.reading.take().unwrap_or_default();
                prop_assert!(reply.contains(name.as_str()), "{name} was not said in {reply}");
                prop_assert!((3..=5).contains(&shots.len()));
                let letter = (b'a'..=b'z').map(char::from).find(|letter| shot(*letter) == shots[0]);
                let letter = letter.filter(|letter| shots.iter().all(|other| *other == shot(*letter)));
                let Some(letter) = letter else { return Err(TestCaseError::fail("two faces in one enrolment")) };
                prop_assert!(!matches!(letter, 'a' | 'b'), "somebody known was enrolled again");
                self.enrolling = Some((name.clone(), letter));
            }
            Command::LearnPose { person, shot: learned } => {
                // A stranger who slips into the track unnoticed and is a little like them cannot be told apart at once.
                let face = self.looked_at.iter().find(|face| face.shot.as_ref() == Some(learned));
                let nearest = face.and_then(|face| face.nearest.as_ref().map(|nearest| (nearest, face.second)));
                let Some((nearest, second)) = nearest else { return Err(TestCaseError::fail("a shot of nobody")) };
                prop_assert!(nearest.person == *person, "learned into another person");
                prop_assert!(nearest.score >= 0.25 && second.is_none_or(|second| second < nearest.score));
            }
            Command::WordsAre { speaker } => {
                let Some(real) = self.speaker(step) else { return Ok(()) };
                match speaker {
                    Some(speaker) => {
                        let own = self.name_of(real).map(|name| Self::id_of(real, &name));
                        prop_assert!(own == Some(speaker.person), "{real:?} spoke as {}", speaker.name);
                    }
                    None => self.unnamed.push((self.now, real.letter())),
                }
            }
            Command::WordsBecome { since, until, name, .. } => {
                let Some((_, letter)) = self.enrolling.take() else { return Err(TestCaseError::fail("no enrolment")) };
                for (when, by) in &self.unnamed {
                    let theirs = (*since..=*until).contains(&at(*when));
                    prop_assert!(!theirs || *by == letter, "words of {by} became those of {letter}");
                }
                self.enrolled.insert(letter, name.clone());
            }
            Command::SeenNow { .. } => {}
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_named_asked_or_enrolled_wrongly_on_any_day(steps in day()) {
        let mut world = World::new();
        for step in &steps {
            world.step(step)?;
        }
    }
}
