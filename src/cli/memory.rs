//! `memory stats|search|reembed`: asks the running service, or opens the memory itself when none runs.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use jiff::Timestamp;

use super::{CliError, Output, Setting, bytes, print_json, table};
use crate::clock::Clock;
use crate::control::{self, Desk, FoundMemory, Request, Response, SearchAnswer};
use crate::daemon::parts;
use crate::health::Health;
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
    /// Carries the memory over to the text model that is in use now (the service must be stopped).
    Reembed,
}

pub async fn run(setting: &Setting, command: MemoryCommand) -> Result<ExitCode, CliError> {
    match command {
        MemoryCommand::Stats(output) => match ask(setting, Request::MemoryStats).await? {
            Response::MemoryStats(stats) if output.json => print_json(&stats),
            Response::MemoryStats(stats) => {
                print_stats(&stats, &parts::clock(&setting.config).map_err(CliError::could_not)?);
                Ok(())
            }
            other => Err(unexpected(other)),
        },
        MemoryCommand::Search { question, when, output } => {
            match ask(setting, Request::MemorySearch { question, when }).await? {
                Response::MemorySearch(answer) if output.json => print_json(&answer),
                Response::MemorySearch(answer) => {
                    print_answer(&answer, &parts::clock(&setting.config).map_err(CliError::could_not)?);
                    Ok(())
                }
                other => Err(unexpected(other)),
            }
        }
        MemoryCommand::Reembed => reembed(setting).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the running service; where none runs, opens the memory for this one question.
async fn ask(setting: &Setting, request: Request) -> Result<Response, CliError> {
    let config = &setting.config;
    if let Some(response) = control::ask(&config.remember.folder, &request).await.map_err(CliError::could_not)? {
        return Ok(response);
    }
    let clock = parts::clock(config).map_err(CliError::could_not)?;
    let opened = parts::open_memory(config, &clock).await.map_err(CliError::could_not)?;
    for note in &opened.notes {
        eprintln!("{} {note}", console::style("note:").yellow().for_stderr());
    }
    let desk = Desk { memory: Ok::<Memory, String>(opened.memory), clock, health: Arc::new(Health::default()) };
    Ok(desk.answer(request).await)
}

fn unexpected(response: Response) -> CliError {
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
    for FoundMemory { text, said_at, score, .. } in &answer.memories {
        let when = Timestamp::from_second(*said_at)
            .map_or_else(|_| "?".into(), |at| told::told(at, clock.now(), clock.zone()));
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
            indicatif::ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} exchanges, {eta} left")
                .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
        );
        let settings = parts::memory_settings(&config, &text);
        let carried = remember::store::reembed(&settings, text.embedder.as_ref(), |done, total| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        })
        .map_err(CliError::could_not)?;
        bar.finish_and_clear();
        Ok((carried, model))
    })
    .await
    .map_err(CliError::could_not)??;
    println!("{} exchanges carried over to {}.", carried.0, carried.1);
    Ok(())
}
