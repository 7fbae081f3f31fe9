//! Wires the command line to the library; everything else is there.

use std::process::ExitCode;

fn main() -> ExitCode {
    reachy_remembers::cli::main()
}
