//! The command `validate-message`: files in, every violation out.
//!
//! What a violation is, the library `validate-message` says; here is which files are read, how it is printed, and how
//! the command ends. One file each for the other things that the command does.

mod check;
mod cli;
mod codes;
mod hook;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let Cli { command, check } = Cli::parse();
    match command {
        None => check::run(check),
        Some(Command::ListCodes) => codes::list(),
        Some(Command::InstallHook(args)) => hook::run(&args),
    }
}
