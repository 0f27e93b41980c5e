//! Long jobs for developers: `cargo xtask bench`, `cargo xtask walk`, `cargo xtask powerloss`,
//! `cargo xtask mutants`.

#![expect(clippy::print_stdout, reason = "a developer's tool talks on standard output")]

mod bench;
mod mutants;
mod powerloss;
mod walk;

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
    /// Walk every reachable state of a review and check every law on every step
    Walk(walk::Args),
    /// Cut the power at any instant of a run and check what is left of what was promised
    Powerloss(powerloss::Args),
    /// Break the code in a copy, one mutant after the other, and name the test that notices each
    Mutants(mutants::Args),
}

fn main() -> ExitCode {
    let Cli { job } = Cli::parse();
    let is_good = match job {
        Job::Bench(args) => bench::run(&args).inspect_err(|error| println!("bench: {error}")).is_ok(),
        Job::Walk(args) => walk::walk(&args),
        Job::Powerloss(args) => powerloss::run(&args).unwrap_or_else(|error| {
            println!("powerloss: {error}");
            false
        }),
        Job::Mutants(args) => mutants::run(&args).unwrap_or_else(|error| {
            println!("mutants: {error}");
            false
        }),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
