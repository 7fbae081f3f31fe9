//! `knowledge build|verify|pull`: makes, checks and fetches snapshots of what the robot was taught.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use console::style;
use serde::Serialize;

use super::{CliError, Output, Setting, bytes, print_json, table};
use crate::daemon::parts;
use crate::remember::knowledge::build::{self, Built};
use crate::remember::knowledge::facts::Facts;
use crate::remember::knowledge::pull::{self, Fetched, Pulled};
use crate::remember::knowledge::restore::Workshop;
use crate::remember::knowledge::verify::{self, Verified};
use crate::remember::knowledge::{KnowledgeError, Settings};

#[derive(Debug, Subcommand)]
pub enum KnowledgeCommand {
    /// Embeds the facts with the text model in use and writes them as one snapshot, for this robot or for many.
    Build {
        /// The file of facts; without it, the one that the configuration names.
        #[arg(long, value_name = "FILE")]
        facts: Option<PathBuf>,
        /// Where the snapshot goes; without it, where the configuration looks for one.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Opens a snapshot in a temporary folder and asks every question that it holds.
    Verify {
        /// The snapshot.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Fetches the snapshot of the server that the configuration names, if there is a new one.
    Pull(Output),
}

pub async fn run(setting: &Setting, command: KnowledgeCommand) -> Result<ExitCode, CliError> {
    match command {
        KnowledgeCommand::Build { facts, out, output } => build(setting, facts, out, output).await,
        KnowledgeCommand::Verify { file, output } => verify(setting, file, output).await,
        KnowledgeCommand::Pull(output) => pull(setting, output).await,
    }
}

async fn build(
    setting: &Setting,
    facts: Option<PathBuf>,
    out: Option<PathBuf>,
    output: Output,
) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    let out = out.unwrap_or_else(|| config.knowledge.snapshot.clone());
    if out.as_os_str().is_empty() {
        return Err(CliError::WrongUse("[knowledge] snapshot is empty: say where it goes with --out".into()));
    }
    let path = out.clone();
    let built = blocking(move || {
        let facts = Facts::load(&facts.unwrap_or_else(|| config.knowledge.facts.clone()))
            .map_err(|error| CliError::WrongUse(error.to_string()))?;
        let text = parts::load_text(&config).map_err(CliError::could_not)?;
        if let Some(folder) = out.parent() {
            std::fs::create_dir_all(folder).map_err(CliError::could_not)?;
        }
        let bar = progress(facts.questions(), &text.embedder.identity().model, output);
        let built = build::build(&facts, text.embedder.as_ref(), &out, &mut |done| bar.set_position(done as u64));
        bar.finish_and_clear();
        built.map_err(CliError::could_not)
    })
    .await?;
    if output.json {
        print_json(&built)?;
    } else {
        print_built(&built, &path);
    }
    Ok(ExitCode::SUCCESS)
}

fn progress(questions: usize, model: &str, output: Output) -> indicatif::ProgressBar {
    if output.json {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(questions as u64).with_message(format!("embedding with {model}"));
    bar.set_style(
        indicatif::ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} questions, {eta} left")
            .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
    );
    bar
}

fn print_built(built: &Built, path: &Path) {
    let mut table = table(&["snapshot", ""]);
    table.add_row(["file", &path.display().to_string()]);
    table.add_row(["facts", &format!("{} with {} questions", built.facts, built.questions)]);
    table.add_row(["text model", &built.identity.model]);
    table.add_row(["size", &bytes(built.bytes)]);
    table.add_row(["SHA-256", &built.sha256]);
    println!("{table}");
}

async fn verify(setting: &Setting, file: PathBuf, output: Output) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    let path = file.clone();
    let verified = blocking(move || {
        let text = parts::load_text(&config).map_err(CliError::could_not)?;
        verify::verify(&file, text.embedder.as_ref())
            .map_err(|error| CliError::CouldNot(format!("{}: {error}", file.display())))
    })
    .await?;
    if output.json {
        print_json(&verified)?;
    } else {
        print_verified(&verified, &path);
    }
    Ok(if verified.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_verified(verified: &Verified, path: &Path) {
    let mut table = table(&["snapshot", ""]);
    table.add_row(["file", &path.display().to_string()]);
    table.add_row(["facts", &verified.facts.to_string()]);
    let right = verified.questions - verified.wrong.len();
    table.add_row(["questions", &format!("{right} of {} find their own fact", verified.questions)]);
    let weights: String = verified.identity.weights.chars().take(8).collect();
    table.add_row(["text model", &format!("{} (weights {weights})", verified.identity.model)]);
    table.add_row(["size", &bytes(verified.bytes)]);
    table.add_row(["SHA-256", &verified.sha256]);
    println!("{table}");
    for wrong in &verified.wrong {
        println!("{} {}: finds “{}”", style("✗").red(), wrong.question, wrong.finds);
    }
}

/// What a pull came to.
#[derive(Debug, Serialize)]
struct Report {
    changed: bool,
    facts: Option<usize>,
}

async fn pull(setting: &Setting, output: Output) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    // The gate plays no part in fetching.
    let settings = Settings::from_config(&config, 1.0).map_err(|error| match error {
        KnowledgeError::Key { .. } => CliError::WrongUse(error.to_string()),
        other => CliError::could_not(other),
    })?;
    let from = settings.pull.clone();
    let from = from.ok_or_else(|| CliError::WrongUse("[knowledge] source names no server to ask".into()))?;
    std::fs::create_dir_all(&settings.folder).map_err(CliError::could_not)?;
    let report = match pull::pull(&settings.folder, &from).await.map_err(CliError::could_not)? {
        Pulled::Unchanged => Report { changed: false, facts: None },
        Pulled::Fetched(fetched) => {
            let facts = blocking(move || judge(setting_parts(&config)?, &settings, fetched)).await?;
            Report { changed: true, facts: Some(facts) }
        }
    };
    match report {
        _ if output.json => print_json(&report)?,
        Report { facts: Some(facts), .. } => {
            println!("{facts} facts fetched; a running service takes them within a minute, else the next start does.");
        }
        Report { facts: None, .. } => println!("The server has nothing new."),
    }
    Ok(ExitCode::SUCCESS)
}

fn setting_parts(config: &crate::config::Config) -> Result<parts::Text, CliError> {
    parts::load_text(config).map_err(CliError::could_not)
}

/// Keeps what was fetched if the robot would take it. The shard in use is left to the service.
fn judge(text: parts::Text, settings: &Settings, fetched: Fetched) -> Result<usize, CliError> {
    let work = tempfile::tempdir_in(&settings.folder).map_err(CliError::could_not)?;
    let workshop = Workshop {
        embedder: text.embedder.as_ref(),
        search_threads: settings.search_threads,
        min_free_bytes: settings.min_free_bytes,
    };
    match workshop.prepare(fetched.path(), &work.path().join("shard")) {
        Ok(prepared) => {
            fetched.keep(&settings.folder).map_err(CliError::could_not)?;
            Ok(prepared.label.facts)
        }
        Err(error) => {
            fetched.refuse(&settings.folder);
            Err(CliError::CouldNot(format!("the server's snapshot was not taken: {error}")))
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(CliError::could_not)?
}
