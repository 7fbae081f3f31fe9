//! `calibrate`: measures the gates of the text model in use over questions, as tables and plots, and writes or checks them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use console::style;
use serde::Serialize;

use super::{CliError, Output, Setting, print_json, table, text_of};
use crate::daemon::parts::{self, Text};
use crate::remember::calibrate::{self, AtGate, Half, Margin, Measured, Outcome, SAME, exchanges, frames, write};
use crate::remember::embed::EmbedText;
use crate::remember::knowledge::facts::Facts;
use crate::remember::knowledge::questions::{Questions, SHIPPED};

#[derive(Debug, clap::Args)]
pub struct CalibrateArguments {
    /// A file of questions about what was said; without it, the ones that come with the project.
    file: Option<PathBuf>,
    /// Writes the gates into the manifest of the project's source; the program must be built again to use them.
    #[arg(long, value_name = "MANIFEST", num_args = 0..=1, default_missing_value = "models/manifest.toml")]
    write: Option<PathBuf>,
    /// Fails if a shipped gate is not what the questions give.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    #[command(flatten)]
    output: Output,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    text_model: String,
    /// Whether the manifest says that the shipped gates come from measurements.
    shipped_are_measured: bool,
    stores: Vec<Store>,
}

/// One store's gate.
#[derive(Debug, Serialize)]
struct Store {
    /// As in the manifest.
    store: &'static str,
    shipped: f32,
    /// Over the tune half.
    best: AtGate,
    /// The same gate over the half that had no say.
    best_on_held: AtGate,
    /// The shipped gate over all questions.
    shipped_on_all: AtGate,
    margin: Margin,
    /// Questions that name nothing to look for: how many, and how many of them are taken so.
    naming_nothing: (usize, usize),
    sweep: Vec<AtGate>,
    questions: Vec<Measured>,
}

impl Store {
    fn new(
        store: &'static str,
        shipped: f32,
        questions: Vec<Measured>,
        naming_nothing: (usize, usize),
    ) -> Result<Self, CliError> {
        let sweep = calibrate::sweep(&questions);
        let best = calibrate::best(&sweep).ok_or_else(|| CliError::CouldNot("there is no question".into()))?;
        Ok(Self {
            store,
            shipped,
            best,
            best_on_held: calibrate::at_gate(&questions, Some(Half::Held), best.gate),
            shipped_on_all: calibrate::at_gate(&questions, None, shipped),
            margin: calibrate::margin(&questions),
            naming_nothing,
            sweep,
            questions,
        })
    }

    fn is_as_shipped(&self) -> bool {
        (self.best.gate - self.shipped).abs() < SAME
    }
}

pub async fn run(setting: &Setting, arguments: CalibrateArguments) -> Result<ExitCode, CliError> {
    let said = match &arguments.file {
        Some(file) => {
            let questions = exchanges::Questions::parse(&text_of(file)?);
            vec![questions.map_err(|error| CliError::WrongUse(format!("{}: {error}", file.display())))?]
        }
        None => exchanges::Questions::shipped().map_err(CliError::could_not)?,
    };
    let config = setting.config.clone();
    let text = tokio::task::spawn_blocking(move || parts::load_text(&config)).await.map_err(CliError::could_not)?;
    let report = measure(&said, text.map_err(CliError::could_not)?).await?;
    if arguments.output.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    if let Some(manifest) = &arguments.write {
        store_gates(manifest, &report)?;
    }
    let all_as_shipped = report.stores.iter().all(Store::is_as_shipped);
    if arguments.check && !all_as_shipped {
        return Err(CliError::CouldNot("a shipped gate is not what the questions give".into()));
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(said: &[exchanges::Questions], text: Text) -> Result<Report, CliError> {
    let searched = exchanges::search(said, &text.embedder).await.map_err(CliError::could_not)?;
    let measured = exchanges::measure(&searched);
    let naming_nothing = || said.iter().flat_map(|questions| &questions.naming_nothing);
    let naming = naming_nothing().count();
    let taken = naming_nothing().filter(|asks| crate::remember::recall::names_nothing(asks)).count();
    let model = &text.model;
    let mut stores = vec![Store::new("exchange", model.exchange_gate, measured, (naming, taken))?];
    let embedder = Arc::clone(&text.embedder);
    let seen = tokio::task::spawn_blocking(move || {
        let questions = frames::Questions::parse(frames::QUESTIONS)?;
        Ok::<_, calibrate::CalibrateError>((questions.measure(embedder.as_ref())?, questions.naming_nothing()))
    });
    let (measured, naming_nothing) = seen.await.map_err(CliError::could_not)?.map_err(CliError::could_not)?;
    stores.push(Store::new("frame", model.frame_gate, measured, naming_nothing)?);
    let embedder = Arc::clone(&text.embedder);
    let facts = tokio::task::spawn_blocking(move || taught(embedder.as_ref())).await.map_err(CliError::could_not)??;
    stores.push(Store::new("fact", model.fact_gate, facts, (0, 0))?);
    Ok(Report { text_model: model.name.clone(), shipped_are_measured: model.gates_are_measured, stores })
}

/// The questions about the facts that come with the program.
fn taught(embedder: &dyn EmbedText) -> Result<Vec<Measured>, CliError> {
    let facts = Facts::load(Path::new("")).map_err(CliError::could_not)?;
    let questions = Questions::parse(SHIPPED, &facts).map_err(CliError::could_not)?;
    let mut measured = Vec::new();
    for (half, asked) in [(Half::Tune, &questions.tune), (Half::Held, &questions.held)] {
        let found = asked.ask(&facts, embedder).map_err(CliError::could_not)?;
        measured.extend(found.iter().map(|found| found.measured(half)));
    }
    Ok(measured)
}

fn store_gates(manifest: &PathBuf, report: &Report) -> Result<(), CliError> {
    let wrong = |error: std::io::Error| CliError::CouldNot(format!("{}: {error}", manifest.display()));
    let mut text = std::fs::read_to_string(manifest).map_err(wrong)?;
    for store in &report.stores {
        text = write::set_gate(&text, &report.text_model, store.store, store.best.gate).map_err(CliError::CouldNot)?;
    }
    std::fs::write(manifest, text).map_err(wrong)?;
    println!("written to {}; build the program again to use them", manifest.display());
    Ok(())
}

fn print(report: &Report) {
    if !report.shipped_are_measured {
        println!("The gates that ship for {} are from the design, not measured.", report.text_model);
    }
    for store in &report.stores {
        let asked = store.questions.len();
        println!("\n{} gate of {} over {asked} questions", store.store, report.text_model);
        let mut table = table(&["gate", "right", "wrong", "missed", ""]);
        for at in store.sweep.iter().filter(|at| (at.gate - store.best.gate).abs() < 0.105) {
            let mark = if at.gate == store.best.gate { "◂ best" } else { "" };
            let row = [format!("{:.2}", at.gate), at.right.to_string(), at.wrong.to_string(), at.missed.to_string()];
            table.add_row(row.into_iter().chain([mark.to_owned()]));
        }
        println!("{table}");
        plot(&store.questions, store.best.gate);
        let score = |score: Option<f32>| score.map_or_else(|| "none".into(), |score| format!("{score:.2}"));
        let Margin { lowest_right, highest_absent } = store.margin;
        println!("lowest right {}, highest absent {}", score(lowest_right), score(highest_absent));
        println!("tune half: {}", sentence(store.best));
        println!("held half: {}", sentence(store.best_on_held));
        println!("shipped gate {:.2}, all questions: {}", store.shipped, sentence(store.shipped_on_all));
        if store.naming_nothing.0 > 0 {
            println!("naming nothing: {} of {} taken so", store.naming_nothing.1, store.naming_nothing.0);
        }
    }
}

fn sentence(at: AtGate) -> String {
    format!("{} right, {} wrong, {} missed", at.right, at.wrong, at.missed)
}

/// Where the best scores lie: answerable questions above the line, absent ones under it.
fn plot(questions: &[Measured], gate: f32) {
    const FROM: f32 = 0.1;
    const WIDTH: usize = 80;
    let column = |score: f32| (((score - FROM).max(0.0) * 100.0) as usize).min(WIDTH - 1);
    let histogram = |answerable: bool| {
        let mut columns = [0_usize; WIDTH];
        for question in questions.iter().filter(|question| question.answerable == answerable) {
            columns[column(question.best)] += 1;
        }
        columns.map(|count| [' ', '▂', '▄', '▆', '█'][count.min(4)]).iter().collect::<String>()
    };
    println!("  answerable │{}", style(histogram(true)).green());
    println!("      absent │{}", style(histogram(false)).red());
    println!("             └{}▲ gate {gate:.2}   (0.10 to 0.90)", "─".repeat(column(gate)));
    for question in questions.iter().filter(|question| question.is_mistake(gate)) {
        let what = match (question.at(gate), question.answerable) {
            (Outcome::Nothing, _) => "missed",
            (_, true) => "another came first",
            (_, false) => "answered, and nothing answers it",
        };
        println!("  {:.2} {what}: {}", question.best, question.asks);
    }
}
