//! `models list|fetch|verify`: the weight files, as tables.

use std::process::ExitCode;

use clap::Subcommand;
use console::style;

use super::{CliError, Output, Setting, bytes, print_json, table};
use crate::daemon::parts;
use crate::models::{Bars, Fetched, Library, Row, Silent, State, Wanted};

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Which models there are, which are here, and where they come from.
    List(Output),
    /// Fetches what is missing: one usable model for each part, or the models that are named.
    Fetch {
        /// Names from `models list`; none: one usable model for each part.
        names: Vec<String>,
        /// Also the model that tells pictures apart (1.5 GB).
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Reads every weight file again and compares it with its SHA-256.
    Verify(Output),
}

pub async fn run(setting: &Setting, command: ModelsCommand) -> Result<ExitCode, CliError> {
    let library = parts::library(&setting.config).map_err(CliError::could_not)?;
    match command {
        ModelsCommand::List(output) => show(&library.list().map_err(CliError::could_not)?, output),
        ModelsCommand::Verify(output) => verify(library, output).await,
        ModelsCommand::Fetch { names, all, output } => fetch(&library, names, all, output).await,
    }
}

fn show(rows: &[Row], output: Output) -> Result<ExitCode, CliError> {
    if output.json {
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table(&["", "model", "for", "state", "size", "licence", "from"]);
    for row in rows {
        let in_use = if row.in_use { "▸" } else { "" };
        let state = match row.state {
            State::Verified => "verified",
            State::Here => "here",
            State::Missing => "missing",
            State::Damaged => "damaged",
        };
        let from = row.from.as_deref().unwrap_or("–");
        table.add_row([in_use, &row.name, &row.role.to_string(), state, &bytes(row.bytes), &row.licence, from]);
    }
    println!("{table}");
    for row in rows {
        if let Some(problem) = &row.problem
            && row.state == State::Damaged
        {
            println!("{} {}: {problem}", style("✗").red(), row.name);
        }
    }
    println!("{}", style("▸ is in use").dim());
    Ok(ExitCode::SUCCESS)
}

async fn verify(library: Library, output: Output) -> Result<ExitCode, CliError> {
    let rows = tokio::task::spawn_blocking(move || library.verify())
        .await
        .map_err(CliError::could_not)?
        .map_err(CliError::could_not)?;
    show(&rows, output)?;
    let damaged = rows.iter().any(|row| row.state == State::Damaged);
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn fetch(library: &Library, names: Vec<String>, all: bool, output: Output) -> Result<ExitCode, CliError> {
    let wanted = match (names.is_empty(), all) {
        (true, false) => Wanted::OnePerRole,
        (true, true) => Wanted::EveryRole,
        (false, _) => Wanted::Named(names),
    };
    let report = if output.json {
        library.fetch(&wanted, &mut Silent).await
    } else {
        library.fetch(&wanted, &mut Bars::new()).await
    }
    .map_err(CliError::could_not)?;
    if output.json {
        print_json(&report)?;
    } else {
        report.fetched.iter().for_each(print_fetched);
        for failure in &report.failures {
            let mark = if failure.goes_on { style("–").yellow() } else { style("✗").red() };
            eprintln!("{} {failure}", mark.for_stderr());
        }
    }
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_fetched(fetched: &Fetched) {
    let Fetched { model, role, from, was_here, bytes: size, took_ms, .. } = fetched;
    let how = if *was_here {
        "was here".into()
    } else {
        format!("{} from {} in {:.1} s", bytes(*size), from.join(", "), *took_ms as f64 / 1000.0)
    };
    println!("{} {role}: {model} ({how})", style("✓").green());
    for line in &fetched.passed_over {
        println!("    {}", style(line).dim());
    }
}
