//! `calibrate`: measures the gate of the text model in use over questions, as a table and a plot.

use std::path::PathBuf;
use std::process::ExitCode;

use console::style;
use serde::Serialize;

use super::{CliError, Output, Setting, print_json, table};
use crate::daemon::parts;
use crate::remember::calibrate::{self, AtGate, Questions, Scored};

#[derive(Debug, clap::Args)]
pub struct CalibrateArguments {
    /// A file of questions; without it, the ones that come with the project.
    file: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    text_model: String,
    shipped_gate: f32,
    best: AtGate,
    shipped: AtGate,
    sweep: Vec<AtGate>,
    questions: Vec<Scored>,
}

pub async fn run(setting: &Setting, arguments: CalibrateArguments) -> Result<ExitCode, CliError> {
    let config = setting.config.clone();
    let file = arguments.file.clone();
    let report = tokio::task::spawn_blocking(move || -> Result<Report, CliError> {
        let text = match file {
            Some(file) => std::fs::read_to_string(&file)
                .map_err(|error| CliError::WrongUse(format!("{}: {error}", file.display())))?,
            None => calibrate::QUESTIONS.to_owned(),
        };
        let questions = Questions::parse(&text).map_err(CliError::could_not)?;
        let model = parts::load_text(&config).map_err(CliError::could_not)?;
        let scored = questions.score(model.embedder.as_ref()).map_err(CliError::could_not)?;
        let sweep = calibrate::sweep(&scored);
        let best = calibrate::best(&sweep).ok_or_else(|| CliError::CouldNot("there is no question".into()))?;
        Ok(Report {
            text_model: model.model.name.clone(),
            shipped_gate: model.model.exchange_gate,
            shipped: calibrate::at_gate(&scored, model.model.exchange_gate),
            best,
            sweep,
            questions: scored,
        })
    })
    .await
    .map_err(CliError::could_not)??;
    if arguments.output.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report) {
    println!("exchange gate of {} over {} questions", report.text_model, report.questions.len());
    let mut table = table(&["gate", "right", "wrong", "missed", ""]);
    for at in report.sweep.iter().filter(|at| (at.gate - report.best.gate).abs() < 0.105) {
        let mark = if at.gate == report.best.gate { "◂ best" } else { "" };
        let row = [format!("{:.2}", at.gate), at.right.to_string(), at.wrong.to_string(), at.missed.to_string()];
        table.add_row(row.into_iter().chain([mark.to_owned()]));
    }
    println!("{table}");
    plot(&report.questions, report.best.gate);
    let AtGate { right, wrong, missed, .. } = report.shipped;
    println!("shipped gate {:.2}: {right} right, {wrong} wrong, {missed} missed", report.shipped_gate);
}

/// Where the best scores lie: answerable questions above the line, absent ones under it.
fn plot(questions: &[Scored], gate: f32) {
    const FROM: f32 = 0.1;
    const WIDTH: usize = 80;
    let column = |score: f32| (((score - FROM).max(0.0) * 100.0) as usize).min(WIDTH - 1);
    let histogram = |absent: bool| {
        let mut columns = [0_usize; WIDTH];
        for question in questions.iter().filter(|question| question.right.is_none() == absent) {
            columns[column(question.best)] += 1;
        }
        columns.map(|count| [' ', '▂', '▄', '▆', '█'][count.min(4)]).iter().collect::<String>()
    };
    println!("  answerable │{}", style(histogram(false)).green());
    println!("      absent │{}", style(histogram(true)).red());
    println!("             └{}▲ gate {gate:.2}   (0.10 to 0.90)", "─".repeat(column(gate)));
    for question in questions.iter().filter(|question| is_mistake(question, gate)) {
        let what = match question.right {
            None => "answered, and nothing answers it",
            Some(false) if question.best >= gate => "another exchange was nearer",
            Some(_) => "missed",
        };
        println!("  {:.2} {what}: {}", question.best, question.question);
    }
}

fn is_mistake(question: &Scored, gate: f32) -> bool {
    match question.right {
        None => question.best >= gate,
        Some(right) => !right || question.best < gate,
    }
}
