//! `talk`: the same conversation, typed. What was recalled is shown under each answer; Ctrl-C and Ctrl-D end it safely,
//! with everything stored.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use console::{Style, style};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustyline::error::ReadlineError;
use rustyline::{Config as LineConfig, DefaultEditor};
use tokio::sync::{mpsc, oneshot, watch};

use super::{CliError, Setting, transcript};
use crate::act::Spoken;
use crate::control::{self, Request};
use crate::daemon::parts::{self, Mind};
use crate::health::Health;
use crate::think::conversation::Said;
use crate::think::turn::{Speak, Step};

/// Lines kept for the arrow keys.
const HISTORY: usize = 500;

pub async fn run(setting: &Setting) -> Result<ExitCode, CliError> {
    let config = &setting.config;
    let running = control::ask(&config.remember.folder, &Request::Health).await.map_err(CliError::could_not)?;
    if running.is_some() {
        let what = "the service is running and owns the memory; talk to the robot, or stop the service first";
        return Err(CliError::CouldNot(what.into()));
    }
    let (robot, _) = parts::robot(config, 0).map_err(CliError::could_not)?;
    // Typed words are said now, whatever the day of a simulated robot.
    let clock = parts::clock(config).map_err(CliError::could_not)?;
    let (_end, ending) = watch::channel(false);
    let health = Arc::new(Health::default());
    let Mind { mut conversation, memory, folder: _folder, left, notes, .. } =
        parts::mind(config, Arc::clone(&robot), clock.clone(), &health, ending).await.map_err(CliError::could_not)?;
    for note in notes {
        println!("{} {note}", style("note:").yellow());
    }
    conversation.take_up(left).await;
    if let Ok(memory) = &memory
        && let Ok(stats) = memory.stats().await
    {
        println!("{}", style(format!("{} exchanges in {}", stats.exchanges, stats.folder.display())).dim());
    }
    println!("{}", style("Type to talk to Reachy. Ctrl-D or Ctrl-C ends it, and stores what was said.").dim());

    let mut keyboard = Keyboard::start(config.remember.folder.join("typed-lines"))?;
    while let Some(line) = keyboard.next().await {
        let said = Said { text: line, speaker: None, at: clock.now() };
        let witness = |step: Step| {
            if !matches!(step, Step::Saying { .. }) {
                for line in transcript::step_lines(&step, clock.now(), clock.zone()) {
                    println!("{line}");
                }
            }
        };
        let report = conversation.turn(said, &mut Screen::default(), &witness).await;
        if report.moved.stored > 0 {
            println!("{}", style(format!("  ({} exchanges moved into the memory)", report.moved.stored)).dim());
        }
    }
    let moved = conversation.close().await;
    match moved.kept_because {
        None => println!("{}", style(format!("Good-bye. {} exchanges stored.", moved.stored)).dim()),
        Some(why) => println!("{} not stored, kept for the next start: {why}", style("note:").yellow()),
    }
    robot.rest();
    Ok(ExitCode::SUCCESS)
}

/// The screen in place of a voice.
#[derive(Default)]
struct Screen {
    sentences: Vec<String>,
}

impl Speak for Screen {
    fn speak(&mut self, sentence: String) -> BoxFuture<'_, ()> {
        let who = if self.sentences.is_empty() { "Reachy " } else { "       " };
        println!("{}{sentence}", Style::new().green().bold().apply_to(who));
        self.sentences.push(sentence);
        std::future::ready(()).boxed()
    }

    fn finished(&mut self) -> BoxFuture<'_, Spoken> {
        let sentences = std::mem::take(&mut self.sentences);
        std::future::ready(Spoken { sentences, ..Spoken::default() }).boxed()
    }
}

/// The keyboard on a thread of its own, asked for one line at a time, so that the prompt comes after the answer.
struct Keyboard {
    ask: mpsc::Sender<oneshot::Sender<Option<String>>>,
}

impl Keyboard {
    fn start(history: PathBuf) -> Result<Self, CliError> {
        let settings = LineConfig::builder().max_history_size(HISTORY).map_err(CliError::could_not)?.build();
        let mut editor = DefaultEditor::with_config(settings).map_err(CliError::could_not)?;
        // No history yet is the usual first start.
        let _ = editor.load_history(&history);
        let (ask, mut asked) = mpsc::channel::<oneshot::Sender<Option<String>>>(1);
        std::thread::Builder::new()
            .name("keyboard".into())
            .spawn(move || {
                while let Some(reply) = asked.blocking_recv() {
                    let line = read(&mut editor);
                    if line.is_some()
                        && let Err(error) = editor.save_history(&history)
                    {
                        tracing::debug!(%error, "the typed lines were not saved");
                    }
                    let _ = reply.send(line);
                }
            })
            .map_err(CliError::could_not)?;
        Ok(Self { ask })
    }

    /// The next line that holds words; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let (reply, line) = oneshot::channel();
        self.ask.send(reply).await.ok()?;
        line.await.ok()?
    }
}

fn read(editor: &mut DefaultEditor) -> Option<String> {
    let prompt = Style::new().cyan().bold().apply_to("You    ").to_string();
    loop {
        match editor.readline(&prompt) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let line = line.trim().to_owned();
                // Only a full history refuses a line, and it drops the oldest instead.
                let _ = editor.add_history_entry(&line);
                return Some(line);
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return None,
            Err(error) => {
                eprintln!("reachy-remembers: the terminal cannot be read: {error}");
                return None;
            }
        }
    }
}
