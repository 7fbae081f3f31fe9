//! `demo`: plays the scripted day of the config on the simulated robot and prints a transcript.
//!
//! Each part of the day between two restarts is a process of its own, the same program that the service is: what it
//! still knows after a restart, it knows from the disk. A restart that the script calls `kill` is a real SIGKILL.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use console::style;

use super::{CliError, Setting, transcript};
use crate::config::Config;
use crate::daemon;
use crate::daemon::parts;
use crate::robot::day::{Day, Part, Restart};
use crate::robot::{Attention, Direction, Gesture, MicrophoneRead, Picture, Robot, RobotError, Sound};

/// Marks a memory that a demo made and may make anew.
const MARK: &str = "made-by-the-demo";

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DemoArguments {
    /// Plays this part alone, in this process, on the memory that is there.
    #[arg(long, value_name = "NUMBER", hide = true)]
    part: Option<usize>,
}

pub async fn run(setting: &Setting, arguments: &DemoArguments) -> Result<ExitCode, CliError> {
    let config = &setting.config;
    if config.robot.day.as_os_str().is_empty() {
        let what = "the config names no `day` in [robot]; `reachy-remembers --config demo/config.toml demo` plays the \
                    one that comes with the project";
        return Err(CliError::WrongUse(what.into()));
    }
    let day = Day::load(&config.robot.day).map_err(CliError::could_not)?;
    match arguments.part {
        Some(part) => play(config, &day, part).await?,
        None => play_all(setting, &day).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn play_all(setting: &Setting, day: &Day) -> Result<(), CliError> {
    let config = &setting.config;
    introduce(config, day)?;
    empty_the_memory(&config.remember.folder)?;
    let began = Instant::now();
    for part in day.parts() {
        heading(day, &part);
        let status = child(setting, part.number).await?;
        match part.ends {
            Some((at, Restart::Kill)) if status.signal() == Some(9) => {
                let time = at.to_zoned(day.zone.clone()).strftime("%H:%M");
                println!("{time}  {}", style("✂ The plug is pulled: kill -9. Nothing was saved on the way out.").red());
            }
            _ if status.success() => {}
            _ => return Err(CliError::CouldNot(format!("part {} of the day ended with {status}", part.number + 1))),
        }
    }
    let named = setting.config_file.as_deref().map(|file| format!(" --config {}", file.display())).unwrap_or_default();
    println!();
    println!(
        "The day took {:.0} s. Its memory is in {}.",
        began.elapsed().as_secs_f64(),
        config.remember.folder.display()
    );
    println!("Ask it yourself: reachy-remembers{named} memory search \"where is the key\"");
    Ok(())
}

fn introduce(config: &Config, day: &Day) -> Result<(), CliError> {
    day.check_files().map_err(CliError::could_not)?;
    let library = parts::library(config).map_err(CliError::could_not)?;
    let in_use = [
        library.speech().map(|model| model.in_use),
        library.voice_activity().map(|model| model.in_use),
        library.text().map(|model| model.in_use),
    ];
    println!("{}", style(&day.title).bold());
    println!(
        "The robot is simulated: recordings play its microphone, what it says goes through its voice into no speaker,"
    );
    println!("and annotations stand in for its camera where the script has no picture. The rest is real.");
    for line in in_use {
        println!("  {}", line.map_err(CliError::could_not)?);
    }
    let brain = if config.think.url.is_empty() { "the robot's own offline brain" } else { config.think.url.as_str() };
    println!("  brain: {brain}; window: {} tokens", config.think.window_tokens);
    Ok(())
}

fn heading(day: &Day, part: &Part<'_>) {
    let starts = part.starts.to_zoned(day.zone.clone());
    let title = starts.strftime("%A, %H:%M").to_string();
    println!();
    println!("{}", style(format!("── {title} {}", "─".repeat(60))).bold());
}

/// Makes the demo's folder anew. A folder that no demo made is left alone, and the demo is refused.
fn empty_the_memory(folder: &Path) -> Result<(), CliError> {
    let mark = folder.join(MARK);
    let in_use = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if in_use && !mark.exists() {
        return Err(CliError::WrongUse(format!(
            "{} holds a memory that no demo made, so the demo does not touch it; name another `folder` in [remember]",
            folder.display()
        )));
    }
    if in_use {
        std::fs::remove_dir_all(folder).map_err(CliError::could_not)?;
    }
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(mark, "")).map_err(CliError::could_not)
}

/// Plays one part in a process of its own, on this terminal.
async fn child(setting: &Setting, part: usize) -> Result<ExitStatus, CliError> {
    let program = std::env::current_exe().map_err(CliError::could_not)?;
    let mut command = tokio::process::Command::new(program);
    if let Some(file) = &setting.config_file {
        command.arg("--config").arg(file);
    }
    let colours = if console::colors_enabled() { "1" } else { "0" };
    command.args(["demo", "--part", &part.to_string()]).env("CLICOLOR_FORCE", colours).stdin(Stdio::null());
    command.status().await.map_err(CliError::could_not)
}

async fn play(config: &Config, day: &Day, part: usize) -> Result<(), CliError> {
    let (robot, clock) = parts::robot(config, part).map_err(CliError::could_not)?;
    let ends = day.part(part).map_err(CliError::could_not)?.ends;
    let robot: Arc<dyn Robot> = match ends {
        Some((_, Restart::Kill)) => Arc::new(PulledPlug(robot)),
        _ => robot,
    };
    let diary = transcript::to_terminal(clock.clone());
    daemon::live(config, robot, clock, diary).await.map_err(CliError::could_not)
}

/// A body whose plug is pulled when its script is over: the process is killed without a warning.
struct PulledPlug(Arc<dyn Robot>);

impl Robot for PulledPlug {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn hear(&self) -> Result<MicrophoneRead, RobotError> {
        let read = self.0.hear()?;
        if read == MicrophoneRead::Ended {
            // Fails only without the right to signal oneself, which every process has.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Ok(read)
    }

    fn picture(&self) -> Result<Picture, RobotError> {
        self.0.picture()
    }

    fn play(&self, sound: &Sound, stop: &dyn Fn() -> bool) -> Result<(), RobotError> {
        self.0.play(sound, stop)
    }

    fn say(&self, sentence: &str) {
        self.0.say(sentence);
    }

    fn gesture(&self, gesture: Gesture) -> Result<(), RobotError> {
        self.0.gesture(gesture)
    }

    fn look(&self, direction: Direction) -> Result<(), RobotError> {
        self.0.look(direction)
    }

    fn pause(&self, pause: std::time::Duration) {
        self.0.pause(pause);
    }

    fn attend(&self, attention: Attention) {
        self.0.attend(attention);
    }

    fn rest(&self) {
        self.0.rest();
    }
}
