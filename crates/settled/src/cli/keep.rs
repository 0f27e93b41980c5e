//! `settled keep-run` and `settled run-inside`: the keeper of one agent, and the process that carries its connections
//! out of a sandbox. Only the daemon starts them.

use std::ffi::OsString;
use std::path::PathBuf;

use runner::folder::Folder;
use runner::{keeper, sandbox};

use super::failure::Failure;
use crate::exit::Exit;

/// Keeps one agent until none of its processes is left.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory of the run
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    keeper::keep(&Folder::at(&args.folder))?;
    Ok(Exit::Ok)
}

/// Runs a command inside a sandbox.
#[derive(Debug, clap::Args)]
pub(super) struct InsideArgs {
    /// The directory of the run
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

/// Exits with the code of the command, which has no meaning to us.
pub(super) fn run_inside(args: &InsideArgs) -> Result<Exit, Failure> {
    let code = sandbox::inside(&args.folder, &args.command)?;
    std::process::exit(i32::from(code))
}
