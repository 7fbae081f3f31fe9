//! `memory stats|search|show|export-frames|reembed`: asks the running service, or opens the memory itself when none runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use console::style;
use jiff::Timestamp;

use super::{CliError, Output, Setting, bytes, print_json, table};
use crate::clock::Clock;
use crate::control::{self, Desk, Entry, FoundMemory, Happened, Request, Response, SearchAnswer};
use crate::daemon::parts;
use crate::health::Health;
use crate::remember::exchange::{ROBOT, UNNAMED};
use crate::remember::{self, Memory, Stats};
use crate::think::told;

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// How much the memory holds, since when, and how much disk it takes.
    Stats(Output),
    /// Searches what was said, as the robot itself would.
    Search {
        /// The question, as in "where is the key of the bicycle".
        question: String,
        /// Only from this time, in your own words: "today", "yesterday evening", "2 days ago".
        #[arg(long, value_name = "WORDS")]
        when: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Prints what was said and seen, in the order of time.
    Show {
        /// Which day or time, in your own words: "today", "yesterday", "this morning". None: everything.
        #[arg(long, value_name = "WORDS")]
        day: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Writes the pictures of a day as JPEG files into a folder.
    ExportFrames {
        /// The folder; made if it is not there.
        folder: PathBuf,
        /// Which day or time, in your own words; none: everything.
        #[arg(long, value_name = "WORDS")]
        day: Option<String>,
    },
    /// Carries the memory over to the text and picture models that are in use now (the service must be stopped).
    Reembed,
}

pub async fn run(setting: &Setting, command: MemoryCommand) -> Result<ExitCode, CliError> {
    if matches!(command, MemoryCommand::Reembed) {
        reembed(setting).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let asked = Asked::find(setting).await?;
    match command {
        MemoryCommand::Stats(output) => match asked.ask(Request::MemoryStats).await? {
            Response::MemoryStats(stats) if output.json => print_json(&stats),
            Response::MemoryStats(stats) => {
                print_stats(&stats, &parts::clock(&setting.config).map_err(CliError::could_not)?);
                Ok(())
            }
            other => Err(unexpected(other)),
        },
        MemoryCommand::Search { question, when, output } => {
            match asked.ask(Request::MemorySearch { question, when }).await? {
                Response::MemorySearch(answer) if output.json => print_json(&answer),
                Response::MemorySearch(answer) => {
                    print_answer(&answer, &parts::clock(&setting.config).map_err(CliError::could_not)?);
                    Ok(())
                }
                other => Err(unexpected(other)),
            }
        }
        MemoryCommand::Show { day, output } => {
            let entries = show(&asked, day).await?;
            if output.json {
                print_json(&entries)
            } else {
                print_entries(&entries, &parts::clock(&setting.config).map_err(CliError::could_not)?);
                Ok(())
            }
        }
        MemoryCommand::ExportFrames { folder, day } => export(&asked, setting, &folder, day).await,
        MemoryCommand::Reembed => Ok(()),
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn show(asked: &Asked, when: Option<String>) -> Result<Vec<Entry>, CliError> {
    match asked.ask(Request::MemoryShow { when }).await? {
        Response::MemoryShow { entries } => Ok(entries),
        other => Err(unexpected(other)),
    }
}

/// A day as a person would want to read it.
fn print_entries(entries: &[Entry], clock: &Clock) {
    let mut day = None;
    for Entry { at, what } in entries {
        let Ok(at) = Timestamp::from_second(*at) else { continue };
        let at = at.to_zoned(clock.zone().clone());
        if day.replace(at.date()) != Some(at.date()) {
            println!("{}", style(format!("── {} ──", at.strftime("%A, %-d %B %Y"))).bold());
        }
        let time = at.strftime("%H:%M");
        match what {
            Happened::Said { speaker, heard, answered } => {
                println!("{time}  {} {heard}", style(format!("{:<8}", speaker.as_deref().unwrap_or(UNNAMED))).cyan());
                if !answered.is_empty() {
                    println!("       {} {answered}", style(format!("{ROBOT:<8}")).green());
                }
            }
            Happened::Seen { sentence, caption, names, .. } => {
                let who = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
                println!("{time}  {} {sentence}{who}", style("saw     ").magenta());
                if let Some(caption) = caption {
                    println!("       {} {caption}", style("said    ").dim());
                }
            }
        }
    }
    if entries.len() >= Memory::MOST_FRAMES {
        println!(
            "{}",
            style(format!("These are the newest {} of each kind; name a day for others.", Memory::MOST_FRAMES)).dim()
        );
    }
    if entries.is_empty() {
        println!("Nothing was said or seen then.");
    }
}

async fn export(asked: &Asked, setting: &Setting, folder: &Path, day: Option<String>) -> Result<(), CliError> {
    let entries = show(asked, day).await?;
    let zone = parts::clock(&setting.config).map_err(CliError::could_not)?.zone().clone();
    std::fs::create_dir_all(folder).map_err(|error| CliError::CouldNot(format!("{}: {error}", folder.display())))?;
    let (mut written, mut without) = (0, 0);
    for Entry { at, what } in entries {
        let (Happened::Seen { id, looked, labels, .. }, Ok(at)) = (what, Timestamp::from_second(at)) else { continue };
        let jpeg = match asked.ask(Request::FramePicture { id }).await? {
            Response::FramePicture { jpeg } => STANDARD.decode(jpeg).map_err(CliError::could_not)?,
            other => return Err(unexpected(other)),
        };
        if jpeg.is_empty() {
            without += 1;
            continue;
        }
        let stamp = at.to_zoned(zone.clone()).strftime("%Y-%m-%d_%H-%M-%S").to_string();
        let shows = if labels.is_empty() { "nothing".into() } else { labels.join("-").replace(' ', "_") };
        let file = folder.join(format!("{stamp}_{}_{shows}.jpg", looked.name()));
        std::fs::write(&file, jpeg).map_err(|error| CliError::CouldNot(format!("{}: {error}", file.display())))?;
        written += 1;
    }
    let rest = if without > 0 { format!(" {without} more have no picture.") } else { String::new() };
    println!("{written} pictures written to {}.{rest}", folder.display());
    Ok(())
}

/// Whom a command asks: the running service, or, where none runs, the memory that it opened itself.
pub(super) enum Asked {
    Service(PathBuf),
    Own(Desk),
}

impl Asked {
    async fn find(setting: &Setting) -> Result<Self, CliError> {
        let (config, folder) = (&setting.config, &setting.config.remember.folder);
        if control::ask(folder, &Request::Health).await.map_err(CliError::could_not)?.is_some() {
            return Ok(Self::Service(folder.clone()));
        }
        let clock = parts::clock(config).map_err(CliError::could_not)?;
        let opened = parts::open_memory(config, &clock).await.map_err(CliError::could_not)?;
        for note in &opened.notes {
            eprintln!("{} {note}", style("note:").yellow().for_stderr());
        }
        Ok(Self::Own(Desk {
            memory: Ok(opened.memory),
            folder: folder.clone(),
            clock,
            health: Arc::new(Health::default()),
            people: Ok(None),
            window: None,
        }))
    }

    pub(super) async fn ask(&self, request: Request) -> Result<Response, CliError> {
        match self {
            Self::Own(desk) => Ok(desk.answer(request).await),
            Self::Service(folder) => control::ask(folder, &request)
                .await
                .map_err(CliError::could_not)?
                .ok_or_else(|| CliError::CouldNot("the service ended in the middle of this command".into())),
        }
    }
}

pub(super) fn unexpected(response: Response) -> CliError {
    match response {
        Response::CouldNot { why } => CliError::CouldNot(why),
        _ => CliError::CouldNot("the running service is of another version and answered something else".into()),
    }
}

fn print_stats(stats: &Stats, clock: &Clock) {
    let moment = |second: Option<i64>| match second.map(Timestamp::from_second) {
        Some(Ok(at)) => told::told(at, clock.now(), clock.zone()),
        _ => "–".into(),
    };
    let mut table = table(&["memory", ""]);
    table.add_row(["folder", &stats.folder.display().to_string()]);
    table.add_row(["exchanges", &stats.exchanges.to_string()]);
    let bare = match stats.without_picture_vector {
        0 => String::new(),
        bare => format!(" ({bare} of the newest hundred without a picture vector: `memory reembed` makes them)"),
    };
    table.add_row(["pictures", &format!("{}{bare}", stats.frames)]);
    table.add_row(["oldest", &moment(stats.oldest)]);
    table.add_row(["newest", &moment(stats.newest)]);
    table.add_row(["on the disk", &bytes(stats.disk_bytes)]);
    table.add_row(["free on the disk", &stats.free_bytes.map_or_else(|| "unknown".into(), bytes)]);
    table.add_row(["text model", &format!("{} (gate {:.2})", stats.text_model, stats.exchange_gate)]);
    println!("{table}");
}

fn print_answer(answer: &SearchAnswer, clock: &Clock) {
    if answer.memories.is_empty() {
        let searched = answer.searched.unwrap_or(0);
        let best = match answer.best_below_gate {
            Some(best) => format!(" The nearest scored {best:.2}; the gate is {:.2}.", answer.gate),
            None => String::new(),
        };
        println!("Nothing found among {searched} memories.{best}");
        return;
    }
    if answer.by_time_alone {
        println!("The question names nothing to look for; these are from its time:");
    }
    let mut table = table(&["score", "when", "what was said"]);
    for FoundMemory { text, said_at, score, just_said, .. } in &answer.memories {
        let when = match Timestamp::from_second(*said_at) {
            _ if *just_said => "just said".into(),
            Ok(at) => told::told(at, clock.now(), clock.zone()),
            Err(_) => "?".into(),
        };
        table.add_row([score.map_or_else(|| "–".into(), |score| format!("{score:.2}")), when, text.clone()]);
    }
    println!("{table}");
}

async fn reembed(setting: &Setting) -> Result<(), CliError> {
    let config = setting.config.clone();
    let carried = tokio::task::spawn_blocking(move || -> Result<(usize, String), CliError> {
        let text = parts::load_text(&config).map_err(CliError::could_not)?;
        let model = text.embedder.identity().model.clone();
        let bar = indicatif::ProgressBar::no_length().with_message(format!("embedding with {model}"));
        bar.set_style(
            indicatif::ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} memories, {eta} left")
                .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
        );
        let settings = parts::memory_settings(&config, &text);
        // Without a picture model the vectors that are there are kept.
        let pictures = parts::load_pictures(&config).ok().map(|(pictures, _)| pictures);
        let carried =
            remember::store::reembed(&settings, text.embedder.as_ref(), pictures.as_deref(), |done, total| {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            })
            .map_err(CliError::could_not)?;
        bar.finish_and_clear();
        Ok((carried, model))
    })
    .await
    .map_err(CliError::could_not)??;
    println!("{} memories carried over to {}.", carried.0, carried.1);
    Ok(())
}
