//! How a fetch tells what it is doing.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Told what a fetch is doing, from the task that fetches.
pub trait Progress: Send {
    /// A step begins. `total`: its bytes, where they are known; `done`: how many of them are there from before.
    fn begin(&mut self, what: &str, total: Option<u64>, done: u64);
    /// The step's bytes that are there now; may fall when a download had to start again.
    fn at(&mut self, done: u64);
    /// The step is over; `how` says how it went.
    fn end(&mut self, how: &str);
    /// Something worth saying between steps.
    fn say(&mut self, line: &str);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _what: &str, _total: Option<u64>, _done: u64) {}
    fn at(&mut self, _done: u64) {}
    fn end(&mut self, _how: &str) {}
    fn say(&mut self, _line: &str) {}
}

/// A bar on the terminal (name, bytes, speed); where standard error is no terminal, a line at the start and at the end.
#[derive(Debug)]
pub struct Bars {
    terminal: bool,
    step: Option<(String, ProgressBar)>,
}

impl Bars {
    /// Draws on standard error.
    #[must_use]
    pub fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), step: None }
    }

    /// A closed standard error is no reason to stop a fetch, so a failed write is ignored.
    fn line(&self, line: &str) {
        match &self.step {
            Some((_, bar)) if self.terminal => bar.println(line),
            _ => {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }
}

impl Default for Bars {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Bars {
    fn begin(&mut self, what: &str, total: Option<u64>, done: u64) {
        if !self.terminal {
            self.line(&match total {
                Some(total) => format!("{what}: {}", super::error::megabytes(total - done.min(total))),
                None => what.to_owned(),
            });
        }
        let bar = match total {
            _ if !self.terminal => ProgressBar::hidden(),
            Some(total) => ProgressBar::new(total).with_style(style(
                "{msg:<44!} {bar:24} {decimal_bytes:>9} of {decimal_total_bytes:<9} {decimal_bytes_per_sec}",
            )),
            None => ProgressBar::new_spinner().with_style(style("{msg} {spinner} {elapsed}")),
        };
        bar.set_message(what.to_owned());
        bar.set_position(done);
        bar.reset_eta();
        if total.is_none() && self.terminal {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        self.step = Some((what.to_owned(), bar));
    }

    fn at(&mut self, done: u64) {
        if let Some((_, bar)) = &self.step {
            bar.set_position(done);
        }
    }

    fn end(&mut self, how: &str) {
        if let Some((what, bar)) = self.step.take() {
            bar.finish_and_clear();
            self.line(&format!("{what}: {how}"));
        }
    }

    fn say(&mut self, line: &str) {
        self.line(line);
    }
}

/// A template that cannot be read gives the default look instead of an end of the fetch.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
