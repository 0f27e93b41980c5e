//! `settled keep-run`: the process that keeps one agent, for the daemon alone.

use std::path::PathBuf;

use runner::folder::Folder;
use runner::keeper;

use super::failure::Failure;
use crate::exit::Exit;

/// Keeps one agent until nothing of it runs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The directory of the run
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    keeper::keep(&Folder::at(&args.folder)).map_err(|error| Failure::new(Exit::Failed, &error))?;
    Ok(Exit::Ok)
}
