//! `eval`: [`recall`] asks the memory; `eval tools` asks the configured brain questions whose right tool is known, and counts how often it chooses it.
//!
//! Nothing is run and nothing is stored: only the choice counts. Every question is asked in every history, because a
//! small model that chooses well at the start of a conversation may follow its own earlier answers later.

mod recall;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Subcommand;
use indicatif::ProgressBar;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::{CliError, Output, Setting, print_json, table, text_of};
use crate::config::Config;
use crate::daemon::parts;
use crate::think::brain::{Brain, BrainError, Delta, Message, Request};
use crate::think::offline::OfflineBrain;
use crate::think::routed::Routed;
use crate::think::tools::{NAMES, Tool};
use crate::think::words::SYSTEM;

/// The questions and histories that come with the program.
const QUESTIONS: &str = include_str!("../../tests/questions/tools_laptop.toml");
const HISTORIES: &str = include_str!("../../tests/questions/histories.toml");

/// The name, in a question file, of a question that needs no tool.
const NONE: &str = "none";

/// The most questions of one run, over all files and histories; at a laptop's pace of a second or two each, an hour.
const MOST: usize = 2000;

/// Deltas that may wait; they are taken at once.
const DELTAS: usize = 16;

#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// How often the configured brain chooses the right tool.
    Tools(ToolsArguments),
    /// How well the memory finds what was said, by likeness, by words, and by both.
    Recall(recall::RecallArguments),
}

#[derive(Debug, clap::Args)]
pub struct ToolsArguments {
    /// Files of questions; without one, those that come with the program.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A file of conversations that go before each question; without it, those that come with the program.
    #[arg(long, value_name = "FILE")]
    histories: Option<PathBuf>,
    /// Asks the robot's own offline brain, whatever the configuration names.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Questions {
    question: Vec<Question>,
}

/// A question with what it should come to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
    /// One of [`NAMES`], or [`NONE`].
    tool: String,
    /// For `remember`: what it is about, or several that are right, with `|` between.
    about: Option<String>,
    /// For `move`.
    gesture: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Histories {
    history: Vec<History>,
}

/// What was said before a question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    name: String,
    #[serde(default)]
    exchange: Vec<Said>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    heard: String,
    said: String,
    speaker: Option<String>,
}

/// What a brain chose.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    /// One of [`NAMES`], [`NONE`], or why there was no answer.
    tool: String,
    /// `about` of `remember`, the gesture of `move`.
    detail: String,
}

/// Everything that was counted.
#[derive(Debug, Serialize)]
struct Report {
    brain: String,
    histories: Vec<String>,
    rows: Vec<Row>,
    misses: Vec<Miss>,
    /// Mean time to a choice, in seconds.
    seconds_each: f64,
}

/// One tool in one history.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Row {
    history: String,
    tool: String,
    right: usize,
    /// Right with its `about` or gesture too.
    whole: usize,
    total: usize,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Miss {
    history: String,
    text: String,
    wanted: String,
    chosen: String,
}

pub async fn run(setting: &Setting, command: EvalCommand) -> Result<ExitCode, CliError> {
    let arguments = match command {
        EvalCommand::Tools(arguments) => arguments,
        EvalCommand::Recall(arguments) => return recall::run(setting, arguments).await,
    };
    let questions = questions(&arguments.files)?;
    let histories = histories(arguments.histories.as_deref())?;
    let count = questions.len() * histories.len();
    if count > MOST {
        return Err(CliError::WrongUse(format!("these are {count} questions; ask at most {MOST} at once")));
    }
    let brain = brain(&setting.config, arguments.offline).await?;
    brain.reachable().await.map_err(CliError::could_not)?;
    let report = ask_all(brain.as_ref(), &questions, &histories).await?;
    if arguments.output.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// The brain that a conversation would ask first.
async fn brain(config: &Config, offline: bool) -> Result<Arc<dyn Brain>, CliError> {
    let zone = parts::clock(config).map_err(CliError::could_not)?.zone().clone();
    let laptop = if offline { None } else { parts::laptop(config, zone.clone()).map_err(CliError::could_not)? };
    let own = {
        let config = config.clone();
        tokio::task::spawn_blocking(move || {
            let text = parts::load_text(&config).map_err(|error| error.to_string())?;
            OfflineBrain::new(text.embedder, zone).map_err(|error| error.to_string())
        })
        .await
        .map_err(CliError::could_not)?
    };
    match (laptop, own) {
        (Some(laptop), own) => {
            let own = own.ok().map(|own| Arc::new(own) as Arc<dyn Brain>);
            let laptop = Arc::new(laptop);
            laptop.learn().await;
            Ok(Arc::new(Routed::new(laptop, own)))
        }
        (None, Ok(own)) => Ok(Arc::new(own)),
        (None, Err(why)) => Err(CliError::CouldNot(why)),
    }
}

async fn ask_all(brain: &dyn Brain, questions: &[Question], histories: &[History]) -> Result<Report, CliError> {
    let bar = ProgressBar::new((questions.len() * histories.len()) as u64);
    let began = Instant::now();
    let mut answers = Vec::new();
    for history in histories {
        for question in questions {
            let chosen = match choose(brain, history, &question.text).await {
                Ok(chosen) => chosen,
                Err(
                    error @ (BrainError::Away { .. } | BrainError::Waking { .. } | BrainError::Misconfigured { .. }),
                ) => {
                    bar.finish_and_clear();
                    return Err(CliError::could_not(error));
                }
                Err(error) => Chosen { tool: format!("no answer ({error})"), detail: String::new() },
            };
            answers.push((history.name.as_str(), question, chosen));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let seconds_each = began.elapsed().as_secs_f64() / answers.len().max(1) as f64;
    let (rows, misses) = count(&answers);
    let histories = histories.iter().map(|history| history.name.clone()).collect();
    Ok(Report { brain: brain.name(), histories, rows, misses, seconds_each })
}

/// The first round of a turn: which tool, if any.
async fn choose(brain: &dyn Brain, history: &History, text: &str) -> Result<Chosen, BrainError> {
    let now = Timestamp::now();
    let mut messages = Vec::new();
    for said in &history.exchange {
        messages.push(Message::User { text: said.heard.clone(), speaker: said.speaker.clone(), at: now });
        messages.push(Message::Assistant { text: said.said.clone(), calls: Vec::new() });
    }
    messages.push(Message::User { text: text.to_owned(), speaker: None, at: now });
    let request = Request { system: SYSTEM.to_owned(), messages, tools_allowed: true, now };
    let (sender, mut receiver) = mpsc::channel(DELTAS);
    let first = async {
        let mut chosen = Chosen { tool: NONE.into(), detail: String::new() };
        while let Some(delta) = receiver.recv().await {
            match delta {
                Delta::Call(call) if chosen.tool == NONE => chosen = chosen_by(&call.tool),
                Delta::BadCall { name, why, .. } if chosen.tool == NONE => {
                    chosen = Chosen { tool: format!("unusable call of {name}"), detail: why };
                }
                _ => {}
            }
        }
        chosen
    };
    let (outcome, chosen) = tokio::join!(brain.generate(&request, sender), first);
    outcome.map(|_| chosen)
}

fn chosen_by(tool: &Tool) -> Chosen {
    let detail = match tool {
        Tool::Remember(arguments) => arguments.about.name().to_owned(),
        Tool::Camera { .. } => String::new(),
        Tool::Move { gesture } => gesture.name().to_owned(),
    };
    Chosen { tool: tool.name().to_owned(), detail }
}

fn count(answers: &[(&str, &Question, Chosen)]) -> (Vec<Row>, Vec<Miss>) {
    let mut rows: Vec<Row> = Vec::new();
    let mut misses = Vec::new();
    for (history, question, chosen) in answers {
        let at = rows.iter().position(|row| row.history == *history && row.tool == question.tool);
        let at = at.unwrap_or_else(|| {
            rows.push(Row { history: (*history).into(), tool: question.tool.clone(), ..Row::default() });
            rows.len() - 1
        });
        let wanted = question.about.as_ref().or(question.gesture.as_ref()).map_or("", String::as_str);
        let right = chosen.tool == question.tool;
        let whole = right && (wanted.is_empty() || wanted.split('|').any(|one| one.trim() == chosen.detail));
        if let Some(row) = rows.get_mut(at) {
            row.total += 1;
            row.right += usize::from(right);
            row.whole += usize::from(whole);
        }
        if !whole {
            let name = |tool: &str, detail: &str| format!("{tool} {detail}").trim_end().to_owned();
            misses.push(Miss {
                history: (*history).into(),
                text: question.text.clone(),
                wanted: name(&question.tool, wanted),
                chosen: name(&chosen.tool, &chosen.detail),
            });
        }
    }
    (rows, misses)
}

fn print(report: &Report) {
    println!("{}, {:.2} s a question", report.brain, report.seconds_each);
    let mut counted = table(&["history", "tool", "right", "with its argument", "of"]);
    let (mut right, mut whole, mut total) = (0, 0, 0);
    for row in &report.rows {
        let numbers = [row.right, row.whole, row.total].map(|number| number.to_string());
        counted.add_row(
            [row.history.as_str(), row.tool.as_str()].iter().copied().chain(numbers.iter().map(String::as_str)),
        );
        (right, whole, total) = (right + row.right, whole + row.whole, total + row.total);
    }
    counted.add_row(["all", "all", &right.to_string(), &whole.to_string(), &total.to_string()]);
    println!("{counted}");
    if !report.misses.is_empty() {
        let mut missed = table(&["history", "question", "wanted", "chosen"]);
        for miss in &report.misses {
            missed.add_row([&miss.history, &miss.text, &miss.wanted, &miss.chosen]);
        }
        println!("{missed}");
    }
}

fn questions(files: &[PathBuf]) -> Result<Vec<Question>, CliError> {
    let mut all = Vec::new();
    if files.is_empty() {
        all = read_questions(QUESTIONS, "the program's own questions")?;
    }
    for file in files {
        all.extend(read_questions(&text_of(file)?, &file.display().to_string())?);
    }
    if all.is_empty() {
        return Err(CliError::WrongUse("there is no question in these files".into()));
    }
    Ok(all)
}

fn read_questions(text: &str, from: &str) -> Result<Vec<Question>, CliError> {
    let Questions { question } =
        toml::from_str(text).map_err(|error| CliError::WrongUse(format!("{from}: {error}")))?;
    match question.iter().find(|question| question.tool != NONE && !NAMES.contains(&question.tool.as_str())) {
        Some(wrong) => Err(CliError::WrongUse(format!(
            "{from}: {:?} wants the tool {:?}; it is one of {}, {NONE}",
            wrong.text,
            wrong.tool,
            NAMES.join(", ")
        ))),
        None => Ok(question),
    }
}

fn histories(file: Option<&Path>) -> Result<Vec<History>, CliError> {
    let (text, from) = match file {
        Some(file) => (text_of(file)?, file.display().to_string()),
        None => (HISTORIES.to_owned(), "the program's own histories".to_owned()),
    };
    let Histories { history } =
        toml::from_str(&text).map_err(|error| CliError::WrongUse(format!("{from}: {error}")))?;
    if history.is_empty() {
        return Err(CliError::WrongUse(format!("{from}: there is no history; an empty one is enough")));
    }
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_questions_cover_every_tool_and_its_histories_differ() {
        let questions = questions(&[]).unwrap();
        assert!(questions.len() >= 26, "{}", questions.len());
        for tool in NAMES.iter().chain([&NONE]) {
            assert!(questions.iter().filter(|question| question.tool == *tool).count() >= 4, "{tool}");
        }
        let histories = histories(None).unwrap();
        assert!(histories.iter().any(|history| history.exchange.is_empty()));
        assert!(histories.len() >= 3 && histories.iter().any(|history| history.exchange.len() >= 4));
    }

    #[test]
    fn a_right_tool_with_a_wrong_argument_is_right_and_listed() {
        let question = |tool: &str, about: Option<&str>| Question {
            text: "Where is it?".into(),
            tool: tool.into(),
            about: about.map(str::to_owned),
            gesture: None,
        };
        let chosen = |tool: &str, detail: &str| Chosen { tool: tool.into(), detail: detail.into() };
        let (one, two, three) =
            (question("remember", Some("seen|any")), question("remember", Some("said")), question("none", None));
        let answers = [
            ("empty", &one, chosen("remember", "any")),
            ("empty", &two, chosen("remember", "seen")),
            ("empty", &three, chosen("camera", "")),
        ];
        let (rows, misses) = count(&answers);
        let numbers: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.right, row.whole, row.total)).collect();
        assert_eq!(numbers, [("remember", 2, 1, 2), ("none", 0, 0, 1)]);
        assert_eq!(misses.len(), 2);
        assert_eq!((misses[0].wanted.as_str(), misses[0].chosen.as_str()), ("remember said", "remember seen"));
    }

    #[test]
    fn a_question_for_a_tool_that_does_not_exist_is_wrong_use() {
        let why = read_questions("[[question]]\ntext = \"x\"\ntool = \"look\"\n", "a file").unwrap_err().to_string();
        assert!(why.contains("a file") && why.contains("remember, camera, move, none"), "{why}");
    }
}
