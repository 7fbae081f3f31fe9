//! The command line: what each command does, and how its output reads.

use std::process::ExitCode;

/// Runs the command that the process was started with. Exit codes: 0 done, 1 could not, 2 wrong use.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
