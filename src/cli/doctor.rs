//! `doctor`: for each part, that it works, or what to do. While the service runs, the service is asked.

mod body;

use std::process::ExitCode;

use console::style;
use serde::Serialize;

use super::{CliError, Output, Setting, bytes, print_json};
use crate::act::Voice;
use crate::clock::Clock;
use crate::config::Config;
use crate::control::{self, Request, Response};
use crate::daemon::parts;
use crate::health::PartHealth;
use crate::remember::People;
use crate::remember::knowledge::facts::Facts;
use crate::think::brain::Brain;

/// Everything that was looked at.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether the service runs on this memory.
    service: bool,
    parts: Vec<PartHealth>,
}

pub async fn run(setting: &Setting, output: Output) -> Result<ExitCode, CliError> {
    let config = &setting.config;
    let answer = control::ask(&config.remember.folder, &Request::Health).await;
    let mut parts = vec![part("config", Ok(config_line(setting)))];
    let service = match answer {
        Ok(Some(Response::Health { parts: running })) => {
            parts.extend(running);
            true
        }
        Ok(None) => {
            parts.extend(look(config).await);
            false
        }
        Ok(Some(_)) => {
            parts.push(part("service", Err("it is of another version; restart it".into())));
            true
        }
        Err(error) => {
            parts.push(part("service", Err(error.to_string())));
            true
        }
    };
    let report = Report { service, parts };
    let all_work = report.parts.iter().all(|part| part.works);
    if output.json {
        print_json(&report)?;
    } else {
        print(&report);
    }
    Ok(if all_work { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report) {
    let service = if report.service {
        "The service is running and says:"
    } else {
        "The service is not running; looked at its parts:"
    };
    println!("{service}");
    let width = report.parts.iter().map(|part| part.part.len()).max().unwrap_or(0);
    for PartHealth { part, works, what } in &report.parts {
        let mark = if *works { style("✓").green() } else { style("✗").red() };
        println!("  {mark} {part:<width$}  {what}");
    }
}

fn part(part: &str, state: Result<String, String>) -> PartHealth {
    let works = state.is_ok();
    PartHealth { part: part.into(), works, what: state.unwrap_or_else(|why| why) }
}

fn config_line(setting: &Setting) -> String {
    match &setting.config_file {
        Some(file) => format!("read from {}", file.display()),
        None => "no file; everything is at its default".into(),
    }
}

/// Looks at every part, one after the other, as the service would start them.
async fn look(config: &Config) -> Vec<PartHealth> {
    let clock = parts::clock(config);
    let time = clock.as_ref().map(time_line).map_err(ToString::to_string);
    let clock = clock.unwrap_or_else(|_| Clock::system());
    let mut found = vec![part("clock", time)];
    found.extend(body::look(config).await);
    found.extend(hearing(config).await);
    found.push(part("seeing", seeing_line(config).await));
    found.push(part("pictures", pictures_line(config).await));
    found.push(part("memory", memory_line(config, &clock).await));
    found.push(part("people", people_line(config, &clock).await));
    found.push(part("knowledge", knowledge_line(config)));
    found.push(part("voice", voice_line(config).await));
    found.push(part("laptop", laptop_line(config, &clock).await));
    found
}

fn time_line(clock: &Clock) -> String {
    clock.now_here().strftime("it is %A, %-d %B %Y, %H:%M (%Q)").to_string()
}

async fn hearing(config: &Config) -> Vec<PartHealth> {
    if !config.listen.enabled {
        return vec![part("hearing", Ok("switched off in [listen]".into()))];
    }
    let config = config.clone();
    let loaded = tokio::task::spawn_blocking(move || {
        parts::load_hearing(&config)
            .map(|hearing| (hearing.speech.in_use, hearing.voice_activity.in_use))
            .map_err(|error| error.to_string())
    })
    .await
    .unwrap_or_else(|error| Err(error.to_string()));
    match loaded {
        Ok((speech, voice_activity)) => {
            vec![part("speech model", Ok(speech)), part("voice activity", Ok(voice_activity))]
        }
        Err(why) => vec![part("hearing", Err(why))],
    }
}

async fn seeing_line(config: &Config) -> Result<String, String> {
    if !config.see.enabled {
        return Ok("switched off in [see]".into());
    }
    let config = config.clone();
    let loaded = tokio::task::spawn_blocking(move || parts::load_seeing(&config).map(|seeing| seeing.in_use));
    loaded.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// The robot goes on without it, so its absence is no failure.
async fn pictures_line(config: &Config) -> Result<String, String> {
    let config = config.clone();
    let loaded = tokio::task::spawn_blocking(move || parts::load_pictures(&config).map(|(_, in_use)| in_use));
    let loaded = loaded.await.map_err(|error| error.to_string())?;
    Ok(loaded.unwrap_or_else(|error| format!("kept without vectors, and found by their sentences: {error}")))
}

async fn memory_line(config: &Config, clock: &Clock) -> Result<String, String> {
    let opened = parts::open_memory(config, clock).await.map_err(|error| error.to_string())?;
    if let Some(note) = opened.notes.first() {
        return Err(note.clone());
    }
    let stats = opened.memory.stats().await.map_err(|error| error.to_string())?;
    let measured = parts::library(config).and_then(|library| Ok(library.text()?.gates_are_measured));
    let from = if measured.unwrap_or(true) { "" } else { " (from the design, not measured)" };
    Ok(format!(
        "{} exchanges, {} in {}, {} free; text model {}, gate {:.2}{from}",
        stats.exchanges,
        bytes(stats.disk_bytes),
        stats.folder.display(),
        stats.free_bytes.map_or_else(|| "unknown".into(), bytes),
        stats.text_model,
        stats.exchange_gate,
    ))
}

/// Whom it knows; without a face model they are known, and not recognised.
async fn people_line(config: &Config, clock: &Clock) -> Result<String, String> {
    let (settings, now) = (parts::people_settings(config, None), clock.now());
    let opened = tokio::task::spawn_blocking(move || People::open_as_they_are(settings, now));
    let opened = opened.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let Some(opened) = opened else { return Ok("nobody was introduced yet".into()) };
    if let Some(note) = opened.notes.first() {
        return Err(note.clone());
    }
    let known = opened.people.list().await.map_err(|error| error.to_string())?.len();
    Ok(format!("{known} known by face"))
}

fn knowledge_line(config: &Config) -> Result<String, String> {
    if !config.knowledge.enabled {
        return Ok("switched off in [knowledge]".into());
    }
    let facts = Facts::load(&config.knowledge.facts).map_err(|error| error.to_string())?;
    Ok(format!("{} facts to be taught", facts.facts.len()))
}

async fn voice_line(config: &Config) -> Result<String, String> {
    let act = config.act.clone();
    let name = act.voice_name.clone();
    let report = tokio::task::spawn_blocking(move || Voice::find(&act)).await.map_err(|error| error.to_string())?;
    report.muteness().map_or_else(|| Ok(format!("espeak-ng speaks with {name}")), |why| Err(why.to_string()))
}

async fn laptop_line(config: &Config, clock: &Clock) -> Result<String, String> {
    let Some(laptop) = parts::laptop(config, clock.zone().clone()).map_err(|error| error.to_string())? else {
        return Ok("none is named in [think] url; the robot's own offline brain answers".into());
    };
    let probe =
        laptop.probe().await.map_err(|error| format!("{error}; the robot's own offline brain answers meanwhile"))?;
    let listed = match probe.model_listed {
        Some(false) => {
            return Err(format!(
                "{} is there, but has no model of that name; it has: {}",
                laptop.name(),
                probe.models.join(", ")
            ));
        }
        Some(true) | None => "",
    };
    let can = |what: &str, can: Option<bool>| match can {
        Some(true) => format!(", {what}"),
        Some(false) => format!(", no {what}"),
        None => String::new(),
    };
    let context = probe.context_tokens.map(|tokens| format!(", {tokens} tokens of context")).unwrap_or_default();
    let (tools, pictures) = (can("tools", probe.supports_tools), can("pictures", probe.takes_pictures));
    Ok(format!("{} answers at {}{listed}{context}{tools}{pictures}", laptop.name(), probe.url))
}
