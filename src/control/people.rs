//! What commands ask about people, and the changes that go through every place where somebody stands: the people, the
//! conversation's window and journal, the memory, and the lines that were typed.
//!
//! A change runs to its end even where the command that asked went away. Each step is whole or not at all, in an order
//! in which the same command, run again after a power cut, completes what is left.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::{Desk, Response};
use crate::remember::journal::{self, Journal};
use crate::remember::people::{Change, PeopleError, checked_name, nearest_names, same_name, spoken_name};
use crate::remember::store::Forgotten;
use crate::remember::{Memory, People, people::Person};

/// The file in which the typed conversation keeps its lines.
const TYPED_LINES: &str = "typed-lines";
/// A change goes over the memory again as often as this where somebody was still speaking while it ran.
const PASSES: usize = 3;

/// A change that the conversation makes to its window and journal, between two turns. Whoever owns them applies
/// [`Change::exchange`] to each exchange, writes the journal anew, and answers how many exchanges changed.
#[derive(Debug)]
pub struct Reword {
    pub change: Change,
    pub done: oneshot::Sender<Result<usize, String>>,
}

/// Where the conversation takes such changes.
pub type Window = mpsc::Sender<Reword>;

/// What a command does to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersonChange {
    Rename { name: String, to: String },
    Merge { keep: String, other: String },
    Forget { name: String, everything: bool },
}

/// Somebody as commands print them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonEntry {
    pub name: String,
    /// Unix seconds.
    pub met_at: i64,
    /// Unix seconds; the last introduction.
    pub taught_at: i64,
    /// Unix seconds.
    pub last_seen_at: i64,
    pub shots: usize,
}

/// Somebody, and how much of the memory is theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonCard {
    pub person: PersonEntry,
    /// What they said, in the memory and in the conversation; `None` where the memory could not be asked.
    pub exchanges: Option<usize>,
    /// Pictures that show them.
    pub frames: Option<usize>,
    /// Why the memory could not be asked.
    pub memory: Option<String>,
}

/// What a change did, or would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PersonReport {
    /// The name that it is about, as it is stored.
    pub name: String,
    /// The name that stands in its place; none where it is forgotten.
    pub new_name: Option<String>,
    /// Face vectors that are removed, or carried over; `None` where nobody of that name was introduced.
    pub shots: Option<usize>,
    /// Of a merge: shots that found no room.
    pub left_out: usize,
    pub memory: Forgotten,
    /// Exchanges of the conversation that are not in the memory yet.
    pub window: usize,
    /// Typed lines in which the name stood.
    pub typed_lines: usize,
    /// Files set aside earlier that no command changes, and that may hold the name or the face.
    pub set_aside: Vec<PathBuf>,
}

impl Desk {
    pub(super) async fn people_list(&self) -> Result<Response, String> {
        let people = match self.people()? {
            Some(people) => people.list().await.map_err(say)?,
            None => Vec::new(),
        };
        Ok(Response::People { people: people.into_iter().map(entry).collect() })
    }

    pub(super) async fn person_show(&self, name: &str) -> Result<Response, String> {
        let person = self.known(name).await?;
        let change = Change::Forget { name: person.name.clone(), everything: true, namesake: true };
        let theirs = match &self.memory {
            Ok(memory) => memory.would(change).await.map_err(say),
            Err(why) => Err(why.clone()),
        };
        let open = journal::peek(&self.folder).into_iter();
        let open = open.filter(|said| said.speaker.as_deref().is_some_and(|it| same_name(it, &person.name))).count();
        Ok(Response::Person(PersonCard {
            person: entry(person),
            exchanges: theirs.as_ref().ok().map(|theirs| theirs.exchanges_removed + open),
            frames: theirs.as_ref().ok().map(|theirs| theirs.frames_removed),
            memory: theirs.err(),
        }))
    }

    /// What a change would do.
    pub(super) async fn person_would(&self, change: &PersonChange) -> Result<Response, String> {
        let plan = self.plan(change).await?;
        let mut report = plan.report(&self.folder);
        report.memory = plan.memory.would(plan.change.clone()).await.map_err(say)?;
        let open = journal::peek(&self.folder);
        report.window = open.iter().filter(|said| plan.change.exchange(said).as_ref() != Some(said)).count();
        report.typed_lines = typed(&self.folder, &plan.change).map_err(say)?.1;
        let found = report.shots.is_some() || !report.memory.is_nothing() || report.window + report.typed_lines > 0;
        if found { Ok(Response::PersonReport(report)) } else { Err(self.unknown(plan.change.name()).await) }
    }

    /// Makes a change, to its end.
    pub(super) async fn person_change(&self, change: PersonChange) -> Result<Response, String> {
        let desk = self.clone();
        // A caller who went away must not leave it half done.
        let done = tokio::spawn(async move { desk.make(&change).await });
        done.await.map_err(|_| "the change died in the middle; run the command again".to_owned())?
    }

    async fn make(&self, change: &PersonChange) -> Result<Response, String> {
        let plan = self.plan(change).await?;
        let mut report = plan.report(&self.folder);
        let again = |why: String| format!("{why}; run the command again to complete it");
        // Who is forgotten is recognised no more from here on, so nothing new gets the name. A name that changes, changes
        // last: until then the command finds the old one when it is run again.
        if let (PersonChange::Forget { .. }, Some(person)) = (change, &plan.person) {
            plan.people()?.forget(person.id).await.map_err(|error| again(error.to_string()))?;
        }
        report.window = self.reword(&plan.change).await.map_err(again)?;
        report.memory = plan.in_memory().await.map_err(|error| again(error.to_string()))?;
        report.left_out = plan.in_people(change).await.map_err(again)?;
        self.what_came_meanwhile(&plan, &mut report).await.map_err(again)?;
        let (lines, changed) = typed(&self.folder, &plan.change).map_err(|error| again(error.to_string()))?;
        if changed > 0 {
            write_whole(&self.folder.join(TYPED_LINES), &lines).map_err(|error| again(error.to_string()))?;
            report.typed_lines = changed;
        }
        Ok(Response::PersonReport(report))
    }

    /// Goes over the window and the memory again for what was said and seen while the change ran.
    async fn what_came_meanwhile(&self, plan: &Plan, report: &mut PersonReport) -> Result<(), String> {
        for _ in 0..PASSES {
            report.window += self.reword(&plan.change).await?;
            if plan.memory.would(plan.change.clone()).await.map_err(say)?.is_nothing() {
                return Ok(());
            }
            add(&mut report.memory, plan.in_memory().await.map_err(say)?);
        }
        Err(format!("{} was still being spoken of", plan.change.name()))
    }

    /// Who and what a change is about; the errors are all that can be known before anything is changed.
    async fn plan(&self, change: &PersonChange) -> Result<Plan, String> {
        let memory = self.memory.clone()?;
        let people = self.people()?;
        let all = match &people {
            Some(people) => people.list().await.map_err(say)?,
            None => Vec::new(),
        };
        let find = |name: &str| all.iter().find(|person| same_name(&person.name, &tidy(name))).cloned();
        let (person, other, change) = match change {
            PersonChange::Forget { name, everything } => {
                // Somebody who is in the memory alone, as after a power cut in the middle, can be forgotten too.
                let checked = checked_name(name).map_err(say)?;
                let person = find(name);
                let name = person.as_ref().map_or(checked, |person| person.name.clone());
                let alike = |other: &Person| {
                    !same_name(&other.name, &name) && same_name(spoken_name(&other.name), spoken_name(&name))
                };
                let namesake = all.iter().any(alike);
                (person, None, Change::Forget { name, everything: *everything, namesake })
            }
            PersonChange::Rename { name, to } => {
                let person = self.known(name).await?;
                let to = checked_name(to).map_err(say)?;
                if let Some(taken) = find(&to).filter(|other| other.id != person.id) {
                    return Err(say(PeopleError::NameTaken { name: taken.name }));
                }
                let from = person.name.clone();
                (Some(person), None, Change::Rename { from, to })
            }
            PersonChange::Merge { keep, other } => {
                let (keep, other) = (self.known(keep).await?, self.known(other).await?);
                if keep.id == other.id {
                    return Err(format!("{} cannot be merged with themselves", keep.name));
                }
                let change = Change::Rename { from: other.name.clone(), to: keep.name.clone() };
                (Some(other), Some(keep), change)
            }
        };
        Ok(Plan { memory, people, person, other, change })
    }

    /// Changes the conversation's window and journal, and answers how many of their exchanges changed.
    async fn reword(&self, change: &Change) -> Result<usize, String> {
        if let Some(window) = &self.window {
            let (done, answer) = oneshot::channel();
            let reword = Reword { change: change.clone(), done };
            let gone = || "the conversation has ended".to_owned();
            window.send(reword).await.map_err(|_| gone())?;
            return answer.await.map_err(|_| gone())?;
        }
        let (folder, change) = (self.folder.clone(), change.clone());
        tokio::task::spawn_blocking(move || in_journal(&folder, &change)).await.map_err(say)?
    }

    fn people(&self) -> Result<Option<People>, String> {
        self.people.clone()
    }

    async fn known(&self, name: &str) -> Result<Person, String> {
        let found = match self.people()? {
            Some(people) => people.find(name).await.map_err(say)?,
            None => None,
        };
        match found {
            Some(person) => Ok(person),
            None => Err(self.unknown(name).await),
        }
    }

    /// That nobody has this name, with the names that were perhaps meant.
    async fn unknown(&self, name: &str) -> String {
        let people = match &self.people {
            Ok(Some(people)) => people.list().await.unwrap_or_default(),
            _ => Vec::new(),
        };
        let near = nearest_names(name, people.iter().map(|person| person.name.as_str()));
        match near.as_slice() {
            [] if people.is_empty() => format!("nobody called {name} is known; nobody was introduced yet"),
            [] => format!("nobody called {name} is known; `people list` shows everybody"),
            [one] => format!("nobody called {name} is known; did you mean {one}?"),
            many => format!("nobody called {name} is known; did you mean one of {}?", many.join(", ")),
        }
    }
}

/// Who and what a change is about.
struct Plan {
    memory: Memory,
    people: Option<People>,
    /// Whose name goes; `None`: the name stands in the memory alone.
    person: Option<Person>,
    /// Of a merge: who stays.
    other: Option<Person>,
    change: Change,
}

impl Plan {
    fn people(&self) -> Result<&People, String> {
        self.people.as_ref().ok_or_else(|| "nobody was introduced yet".into())
    }

    fn report(&self, folder: &Path) -> PersonReport {
        let new_name = match &self.change {
            Change::Rename { to, .. } => Some(to.clone()),
            Change::Forget { .. } => None,
        };
        PersonReport {
            name: self.change.name().to_owned(),
            new_name,
            shots: self.person.as_ref().map(|person| person.shots),
            left_out: 0,
            memory: Forgotten::default(),
            window: 0,
            typed_lines: 0,
            set_aside: set_aside(folder),
        }
    }

    /// Changes the people themselves, where the change is no forgetting; answers how many shots found no room.
    async fn in_people(&self, change: &PersonChange) -> Result<usize, String> {
        match (change, &self.person, &self.other, &self.change) {
            (PersonChange::Rename { .. }, Some(person), _, Change::Rename { to, .. }) => {
                self.people()?.rename(person.id, to).await.map_err(say)?;
                Ok(0)
            }
            (PersonChange::Merge { .. }, Some(other), Some(keep), _) => {
                Ok(self.people()?.merge(keep.id, other.id).await.map_err(say)?.left_out)
            }
            _ => Ok(0),
        }
    }

    async fn in_memory(&self) -> Result<Forgotten, crate::remember::MemoryError> {
        match &self.change {
            Change::Forget { name, everything, namesake } => {
                self.memory.forget_person(name, *everything, *namesake).await
            }
            Change::Rename { from, to } => self.memory.rename_person(from, to).await,
        }
    }
}

fn add(sum: &mut Forgotten, more: Forgotten) {
    sum.exchanges_unnamed += more.exchanges_unnamed;
    sum.exchanges_reworded += more.exchanges_reworded;
    sum.exchanges_removed += more.exchanges_removed;
    sum.frames_unnamed += more.frames_unnamed;
    sum.frames_reworded += more.frames_reworded;
    sum.frames_removed += more.frames_removed;
}

/// The same in the journal of a conversation that is over.
fn in_journal(folder: &Path, change: &Change) -> Result<usize, String> {
    let (mut journal, left) = Journal::open(folder).map_err(say)?;
    let after: Vec<_> = left.exchanges.iter().map(|exchange| change.exchange(exchange)).collect();
    let changed = left.exchanges.iter().zip(&after).filter(|(before, after)| Some(*before) != after.as_ref()).count();
    // A torn last line may hold the name as well.
    if changed > 0 || matches!(change, Change::Forget { .. }) {
        journal.replace(after.iter().flatten()).map_err(say)?;
    }
    Ok(changed)
}

/// The typed lines after a change, and how many of them changed.
fn typed(folder: &Path, change: &Change) -> io::Result<(String, usize)> {
    let lines = match fs::read_to_string(folder.join(TYPED_LINES)) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), 0)),
        Err(error) => return Err(error),
    };
    let after: Vec<String> = lines.split('\n').map(|line| change.line(line)).collect();
    let changed = lines.split('\n').zip(&after).filter(|(before, after)| before != after).count();
    Ok((after.join("\n"), changed))
}

/// Writes a file whole or not at all, its owner's alone.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}

/// What was set aside in the folder because it was damaged.
fn set_aside(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let damaged = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".damaged-") || name.contains(".unreadable-")
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(damaged).collect();
    paths.sort();
    paths
}

fn tidy(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn entry(person: Person) -> PersonEntry {
    PersonEntry {
        met_at: person.met_at.as_second(),
        taught_at: person.taught_at.as_second(),
        last_seen_at: person.last_seen_at.as_second(),
        shots: person.shots,
        name: person.name,
    }
}

fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
}
