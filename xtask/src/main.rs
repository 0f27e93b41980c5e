//! Long jobs for developers: `cargo xtask bench`.

#![expect(clippy::print_stdout, reason = "a developer's tool talks on standard output")]

mod bench;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Long jobs for developers
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Measure the real binary, each figure beside the physical limit it is compared with
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let Cli { job: Job::Bench(args) } = Cli::parse();
    match bench::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
