//! The binary `settled`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    settled::cli::run(settled::cli::Cli::parse()).into()
}
