//! The command line: what each command does, and how its output reads.
//!
//! This is the only part of the project that prints. Exit codes: 0 done, 1 could not, 2 wrong use.

// Printing is what it is for.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod calibrate;
mod demo;
mod doctor;
mod eval;
mod knowledge;
mod memory;
mod models;
mod people;
mod reaction;
mod talk;
mod transcript;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::Config;

/// A memory for a Reachy Mini: it hears, answers, remembers, and still knows after a restart.
#[derive(Debug, Parser)]
#[command(name = "reachy-remembers", version, max_term_width = 100, subcommand_required = false)]
struct Arguments {
    /// The configuration file; without it, `config.toml` in this folder if there is one, else the defaults.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The service: listen, answer and remember until it is told to stop (this is the default).
    Run,
    /// Plays a scripted day on the simulated robot, with a restart in the middle, and prints what happened.
    Demo(demo::DemoArguments),
    /// The same conversation, typed in this terminal.
    Talk,
    /// Says for each part whether it works, or what to do.
    Doctor(Output),
    /// The weight files: which there are, where they come from.
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// The memory: what it holds, and what it finds.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// The people whom the robot knows: who they are, and forgetting them.
    #[command(subcommand)]
    People(people::PeopleCommand),
    /// What the robot was taught: makes, checks and fetches snapshots of its facts.
    #[command(subcommand)]
    Knowledge(knowledge::KnowledgeCommand),
    /// Measures from which score on an exchange counts as found, with the text model in use.
    Calibrate(calibrate::CalibrateArguments),
    /// How long searches and recalls take, beside the Python build of the same engine where it is there.
    Bench(bench::BenchArguments),
    /// How well the configured brain does, and how well the memory finds.
    #[command(subcommand)]
    Eval(eval::EvalCommand),
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Output {
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// A command that could not do what it was asked, as a sentence for a person.
#[derive(Debug, thiserror::Error)]
enum CliError {
    /// The command line or the configuration is wrong: exit code 2.
    #[error("{0}")]
    WrongUse(String),
    /// It could not be done: exit code 1.
    #[error("{0}")]
    CouldNot(String),
}

impl CliError {
    fn could_not(error: impl std::fmt::Display) -> Self {
        Self::CouldNot(error.to_string())
    }
}

/// What every command is given.
struct Setting {
    config: Config,
    /// The file that the configuration came from.
    config_file: Option<PathBuf>,
}

impl Setting {
    fn load(named: Option<PathBuf>) -> Result<Self, CliError> {
        let here = PathBuf::from("config.toml");
        let config_file = named.or_else(|| here.exists().then_some(here));
        let config = Config::load(config_file.as_deref()).map_err(|error| CliError::WrongUse(error.to_string()))?;
        Ok(Self { config, config_file })
    }
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    // Everything that this process writes is its owner's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or(Command::Run);
    start_log(&command);
    match Setting::load(arguments.config).and_then(|setting| run(command, &setting)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{} {error}", console::style("reachy-remembers:").red().for_stderr());
            ExitCode::from(if matches!(error, CliError::WrongUse(_)) { 2 } else { 1 })
        }
    }
}

fn run(command: Command, setting: &Setting) -> Result<ExitCode, CliError> {
    limit_threads(&setting.config);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(CliError::could_not)?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Run => {
                crate::daemon::run(&setting.config, setting.config_file.clone()).await.map_err(CliError::could_not)?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Demo(arguments) => demo::run(setting, &arguments).await,
            Command::Talk => talk::run(setting).await,
            Command::Doctor(output) => doctor::run(setting, output).await,
            Command::Models(command) => models::run(setting, command).await,
            Command::Memory(command) => memory::run(setting, command).await,
            Command::People(command) => people::run(setting, command).await,
            Command::Knowledge(command) => knowledge::run(setting, command).await,
            Command::Calibrate(arguments) => calibrate::run(setting, arguments).await,
            Command::Eval(command) => eval::run(setting, command).await,
            Command::Bench(arguments) => bench::run(setting, arguments).await,
        }
    });
    // Blocking threads that still wait for a dead microphone must not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    outcome
}

/// The embedders' thread pool reads its size once, before its first use.
fn limit_threads(config: &Config) {
    // candle's matrix products run on rayon's global pool, and nothing else in this process does.
    crate::remember::embed::limit_threads(config.limits.embed_threads);
}

/// The service logs to the journal where systemd started it, else to this terminal; other commands say warnings only.
fn start_log(command: &Command) {
    let default = match command {
        Command::Run => "info,qdrant_edge=warn",
        _ => "error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let registry = tracing_subscriber::registry().with(filter);
    let journal = std::env::var_os("JOURNAL_STREAM").is_some().then(tracing_journald::layer).and_then(Result::ok);
    let started = match journal {
        Some(journal) => registry.with(journal).try_init(),
        None => {
            let terminal = tracing_subscriber::fmt::layer()
                .with_writer(std::io::stderr)
                .with_ansi(std::io::stderr().is_terminal())
                .with_target(false);
            registry.with(terminal).try_init()
        }
    };
    if let Err(error) = started {
        eprintln!("reachy-remembers: no log: {error}");
    }
}

/// Prints `value` as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(value).map_err(CliError::could_not)?;
    println!("{json}");
    Ok(())
}

/// A table in the house's style.
fn table(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(
        header.iter().map(|title| comfy_table::Cell::new(title).add_attribute(comfy_table::Attribute::Bold)),
    );
    table
}

/// Bytes as people read them: "83.3 MB".
fn bytes(count: u64) -> String {
    indicatif::DecimalBytes(count).to_string()
}

/// A file that the command line names.
fn text_of(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|error| CliError::WrongUse(format!("{}: {error}", file.display())))
}
