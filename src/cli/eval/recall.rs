//! `eval recall`: how well the memory finds what was said, over questions whose answers are known.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use crate::cli::{CliError, Output, Setting, print_json, table};
use crate::daemon::parts;
use crate::remember::calibrate::exchanges::{self, Questions, Searched};
use crate::remember::calibrate::{CalibrateError, Half};
use crate::remember::embed::EmbedText;
use crate::remember::eval::locomo::{self, LeftOut};
use crate::remember::eval::{self, Ranked, Report};
use crate::remember::knowledge::facts::Facts;
use crate::remember::knowledge::questions as taught;

#[derive(Debug, clap::Args)]
pub struct RecallArguments {
    /// Files of questions; without one, those that come with the program.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What the files are written in.
    #[arg(long, value_enum, default_value = "questions")]
    format: Format,
    /// Only the questions that no gate and no weight was chosen over.
    #[arg(long)]
    held: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// As tests/questions/exchanges.toml.
    Questions,
    /// LoCoMo's JSON.
    Locomo,
}

#[derive(Debug, Serialize)]
struct Evaluated {
    text_model: String,
    #[serde(flatten)]
    report: Report,
    /// What of the files could not be used.
    left_out: Option<LeftOut>,
}

pub async fn run(setting: &Setting, arguments: RecallArguments) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    let text = tokio::task::spawn_blocking(move || parts::load_text(&config)).await.map_err(CliError::could_not)?;
    let text = text.map_err(CliError::could_not)?;
    let gate = setting.config.remember.exchange_gate.unwrap_or(text.model.exchange_gate);
    let embedder = &text.embedder;
    let said = |searched: Vec<Searched>| searched.iter().map(|one| Ranked::said(one, gate)).collect::<Vec<_>>();
    let (mut ranked, mut left_out): (Vec<Ranked>, Option<LeftOut>) = (Vec::new(), None);
    if arguments.files.is_empty() {
        if arguments.format == Format::Locomo {
            return Err(CliError::WrongUse("name a file in LoCoMo's format".into()));
        }
        let shipped = Questions::shipped().map_err(CliError::could_not)?;
        ranked.extend(said(exchanges::search(&shipped, embedder).await.map_err(CliError::could_not)?));
        let (embedder, gate) =
            (Arc::clone(embedder), setting.config.knowledge.fact_gate.unwrap_or(text.model.fact_gate));
        let taught = tokio::task::spawn_blocking(move || rank_taught(embedder.as_ref(), gate));
        ranked.extend(taught.await.map_err(CliError::could_not)?.map_err(CliError::could_not)?);
    }
    for file in &arguments.files {
        let content = super::text_of(file)?;
        let wrong = |error: CalibrateError| CliError::WrongUse(format!("{}: {error}", file.display()));
        ranked.extend(said(match arguments.format {
            Format::Questions => {
                let questions = Questions::parse(&content).map_err(wrong)?;
                questions.search(Arc::clone(embedder)).await.map_err(CliError::could_not)?
            }
            Format::Locomo => {
                let (samples, more) = locomo::parse(&content).map_err(wrong)?;
                left_out = Some(left_out.unwrap_or_default().and(more));
                locomo::search(&samples, Arc::clone(embedder)).await.map_err(CliError::could_not)?
            }
        }));
    }
    let half = arguments.held.then_some(Half::Held);
    let report = eval::report(&ranked, half);
    let evaluated = Evaluated { text_model: text.model.name.clone(), report, left_out };
    if arguments.output.json {
        print_json(&evaluated)?;
    } else {
        print(&evaluated)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The questions about the facts that come with the program. Blocks for seconds.
fn rank_taught(embedder: &dyn EmbedText, gate: f32) -> Result<Vec<Ranked>, CalibrateError> {
    let facts = Facts::load(Path::new("")).map_err(|error| CalibrateError::Questions(error.to_string()))?;
    let questions = taught::Questions::parse(taught::SHIPPED, &facts)?;
    let mut ranked = Vec::new();
    for (half, asked) in [(Half::Tune, &questions.tune), (Half::Held, &questions.held)] {
        ranked.extend(asked.ask(&facts, embedder)?.iter().map(|found| found.ranked("fact", half, gate)));
    }
    Ok(ranked)
}

fn print(evaluated: &Evaluated) -> Result<(), CliError> {
    let report = &evaluated.report;
    println!("{}: {:.1} ms a question (p50), {:.1} ms (p99)", evaluated.text_model, report.p50_ms, report.p99_ms);
    let mut ranks = table(&["category", "asked", "by", "recall@1", "recall@5", "recall@10", "MRR"]);
    for row in &report.rows {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        ranks.add_row([
            row.category.clone(),
            row.asked.to_string(),
            row.by.name().to_owned(),
            percent(row.recall_at_1),
            percent(row.recall_at_5),
            percent(row.recall_at_10),
            format!("{:.3}", row.mrr),
        ]);
    }
    println!("{ranks}");
    let abstention = report.abstention;
    println!(
        "at the gates in use: {} of {} absent questions answered with nothing, {} of {} answerable ones too",
        abstention.absent_refused, abstention.absent, abstention.answerable_refused, abstention.answerable
    );
    if let Some(left_out) = evaluated.left_out.filter(|left_out| *left_out != LeftOut::default()) {
        println!("left out: {}", serde_json::to_string(&left_out).map_err(CliError::could_not)?);
    }
    Ok(())
}
