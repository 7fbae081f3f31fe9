//! `people list|show|rename|merge|forget`: asks the running service, or opens the shards itself when none runs.
//!
//! What cannot be taken back says first what it will do, and asks.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use console::style;
use jiff::Timestamp;

use super::memory::{Asked, unexpected};
use super::{CliError, Output, Setting, print_json, table};
use crate::clock::Clock;
use crate::control::{self, Desk, PersonCard, PersonChange, PersonEntry, PersonReport, Request, Response};
use crate::daemon::parts;
use crate::health::Health;
use crate::remember::People;
use crate::think::told;

#[derive(Debug, Subcommand)]
pub enum PeopleCommand {
    /// Everybody whom the robot knows.
    List(Output),
    /// One person: when you met, when they were last seen, and how much of the memory is theirs.
    Show {
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Gives somebody another name, everywhere in the memory.
    Rename { name: String, to: String },
    /// Makes one person of two who are the same; the first name stays.
    Merge {
        keep: String,
        other: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Forgets somebody: their face, and their name in everything that was said and seen.
    Forget {
        name: String,
        /// Removes what they said, and the pictures that show them, too.
        #[arg(long)]
        everything: bool,
        #[command(flatten)]
        sure: Sure,
    },
}

/// Whether to ask first.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Sure {
    /// Does it without asking.
    #[arg(long)]
    yes: bool,
}

pub async fn run(setting: &Setting, command: PeopleCommand) -> Result<ExitCode, CliError> {
    let clock = parts::clock(&setting.config).map_err(CliError::could_not)?;
    match command {
        PeopleCommand::List(output) => match find(setting, false).await?.ask(Request::PeopleList).await? {
            Response::People { people } if output.json => print_json(&people)?,
            Response::People { people } => print_people(&people, &clock),
            other => return Err(unexpected(other)),
        },
        PeopleCommand::Show { name, output } => {
            match find(setting, true).await?.ask(Request::PersonShow { name }).await? {
                Response::Person(card) if output.json => print_json(&card)?,
                Response::Person(card) => print_card(&card, &clock),
                other => return Err(unexpected(other)),
            }
        }
        PeopleCommand::Rename { name, to } => {
            let asked = find(setting, true).await?;
            print_done(&make(&asked, PersonChange::Rename { name, to }).await?);
        }
        PeopleCommand::Merge { keep, other, sure } => {
            return ask_and_make(setting, PersonChange::Merge { keep, other }, sure).await;
        }
        PeopleCommand::Forget { name, everything, sure } => {
            return ask_and_make(setting, PersonChange::Forget { name, everything }, sure).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what a change will do, asks, and makes it.
async fn ask_and_make(setting: &Setting, change: PersonChange, sure: Sure) -> Result<ExitCode, CliError> {
    if !sure.yes && !io::stdin().is_terminal() {
        let why = "this cannot be taken back, and nobody is there to be asked: say --yes to do it all the same";
        return Err(CliError::WrongUse(why.into()));
    }
    let asked = find(setting, true).await?;
    match asked.ask(Request::PersonWould { change: change.clone() }).await? {
        Response::PersonReport(report) => print_would(&report),
        other => return Err(unexpected(other)),
    }
    if !sure.yes && !said_yes().await? {
        println!("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    print_done(&make(&asked, change).await?);
    Ok(ExitCode::SUCCESS)
}

async fn make(asked: &Asked, change: PersonChange) -> Result<PersonReport, CliError> {
    match asked.ask(Request::PersonChange { change }).await? {
        Response::PersonReport(report) => Ok(report),
        other => Err(unexpected(other)),
    }
}

async fn said_yes() -> Result<bool, CliError> {
    let read = || -> io::Result<String> {
        print!("Do it? This cannot be taken back. [y/N] ");
        io::stdout().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = tokio::task::spawn_blocking(read).await.map_err(CliError::could_not)?.map_err(CliError::could_not)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The running service, or the shards, opened here: the memory too where the command is about it.
async fn find(setting: &Setting, with_memory: bool) -> Result<Asked, CliError> {
    let (config, folder) = (&setting.config, &setting.config.remember.folder);
    if control::ask(folder, &Request::Health).await.map_err(CliError::could_not)?.is_some() {
        return Ok(Asked::Service(folder.clone()));
    }
    let clock = parts::clock(config).map_err(CliError::could_not)?;
    let mut notes = Vec::new();
    let memory = if with_memory {
        let opened = parts::open_memory(config, &clock).await.map_err(|error| error.to_string());
        opened.map(|opened| {
            notes.extend(opened.notes);
            opened.memory
        })
    } else {
        Err("the memory is not open".into())
    };
    let settings = parts::people_settings(config, memory.as_ref().ok().map(crate::remember::Memory::lock));
    let now = clock.now();
    let opened = tokio::task::spawn_blocking(move || People::open_as_they_are(settings, now)).await;
    let opened = opened.map_err(CliError::could_not)?.map_err(CliError::could_not)?;
    let people = opened.map(|opened| {
        notes.extend(opened.notes);
        opened.people
    });
    for note in notes {
        eprintln!("{} {note}", style("note:").yellow().for_stderr());
    }
    let health = Arc::new(Health::default());
    Ok(Asked::Own(Desk { memory, folder: folder.clone(), clock, health, people: Ok(people), window: None }))
}

fn print_people(people: &[PersonEntry], clock: &Clock) {
    if people.is_empty() {
        println!("Nobody was introduced yet.");
        return;
    }
    let mut table = table(&["name", "met", "last seen", "shots"]);
    for PersonEntry { name, met_at, last_seen_at, shots, .. } in people {
        table.add_row([name.clone(), moment(*met_at, clock), moment(*last_seen_at, clock), shots.to_string()]);
    }
    println!("{table}");
}

fn print_card(card: &PersonCard, clock: &Clock) {
    let PersonCard { person, exchanges, frames, memory } = card;
    let count = |count: &Option<usize>| count.map_or_else(|| "not known".into(), |count| count.to_string());
    let mut table = table(&["person", ""]);
    table.add_row(["name", &person.name]);
    table.add_row(["met", &moment(person.met_at, clock)]);
    table.add_row(["introduced", &moment(person.taught_at, clock)]);
    table.add_row(["last seen", &moment(person.last_seen_at, clock)]);
    table.add_row(["shots of the face", &person.shots.to_string()]);
    table.add_row(["exchanges", &count(exchanges)]);
    table.add_row(["pictures", &count(frames)]);
    println!("{table}");
    if let Some(why) = memory {
        println!("The memory could not be asked: {why}");
    }
}

fn print_would(report: &PersonReport) {
    let PersonReport { name, new_name, shots, .. } = report;
    match (new_name, shots) {
        (Some(new), _) => println!("{} becomes {}:", style(name).bold(), style(new).bold()),
        (None, Some(_)) => println!("{} will be forgotten:", style(name).bold()),
        (None, None) => println!("Nobody called {} was introduced, but the name is remembered:", style(name).bold()),
    }
    print_lines(report, false);
}

fn print_done(report: &PersonReport) {
    match &report.new_name {
        Some(new) => println!("{} is {} now.", style(&report.name).bold(), style(new).bold()),
        None => println!("{} is forgotten.", style(&report.name).bold()),
    }
    print_lines(report, true);
}

/// What is changed, a line each; what is nothing is left out.
fn print_lines(report: &PersonReport, done: bool) {
    let PersonReport { new_name, shots, memory, window, typed_lines, left_out, .. } = report;
    let renamed = new_name.is_some();
    let verb = if done { "were" } else { "will be" };
    let lines = [
        (shots.unwrap_or(0), "shots of the face", if renamed { "carried over" } else { "removed" }),
        (*left_out, "shots of the face", "left out, because there was no room"),
        (memory.exchanges_removed, "things that they said", "removed, with the answers"),
        (memory.exchanges_unnamed, "things that they said", if renamed { "renamed" } else { "kept without the name" }),
        (memory.exchanges_reworded, "things that others said", "kept with \"somebody\" for the name"),
        (memory.frames_removed, "pictures that show them", "removed"),
        (memory.frames_unnamed, "pictures that show them", if renamed { "renamed" } else { "kept without the name" }),
        (memory.frames_reworded, "other pictures", "kept with \"somebody\" for the name"),
        (*window, "things said in the last conversation", "changed likewise"),
        (*typed_lines, "typed lines", "kept with \"somebody\" for the name"),
    ];
    for (count, what, becomes) in lines.into_iter().filter(|line| line.0 > 0) {
        println!("  {what}: {count} {verb} {becomes}");
    }
    if !renamed && !report.set_aside.is_empty() {
        println!(
            "These were set aside because they were damaged, and may still hold the name or the face; delete them:"
        );
        for path in &report.set_aside {
            println!("  {}", path.display());
        }
    }
}

fn moment(second: i64, clock: &Clock) -> String {
    Timestamp::from_second(second).map_or_else(|_| "?".into(), |at| told::told(at, clock.now(), clock.zone()))
}
