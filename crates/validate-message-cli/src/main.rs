//! The command `validate-message`: files in, every violation out.
//!
//! The library `validate-message` finds the violations; this program chooses the files, prints the violations and sets
//! the exit code. Each further service has a module of its own.

mod check;
mod cli;
mod codes;
mod diff;
mod explain;
mod file;
mod fix;
mod fmt;
mod hook;
mod limited_read;
mod new;
mod print;
mod schema;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

/// Reading a file makes hundreds of small values and frees them all at once. glibc keeps seven of each size for a thread,
/// and takes a lock for every other: without it ten thousand files take a sixth less processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { command, check } = Cli::parse();
    match command {
        None => check::run(check),
        Some(Command::Explain(args)) => explain::run(&args),
        Some(Command::ListCodes(args)) => codes::list(&args),
        Some(Command::Schema(args)) => schema::run(&args),
        Some(Command::New(args)) => new::run(&args),
        Some(Command::Fmt(args)) => fmt::run(&args),
        Some(Command::InstallHook(args)) => hook::run(&args),
    }
}
