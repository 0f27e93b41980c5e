//! `settled ledger`: work with the ledger itself.

use clap::Subcommand;

use super::{Failure, Root, existing_workspace, print};
use crate::exit::Exit;

/// Works with the ledger.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that every record is whole and chained to the one before
    #[command(after_help = "Examples:
  settled ledger verify ./mailroom")]
    Verify(Root),
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Verify(root) => verify(root),
    }
}

fn verify(root: &Root) -> Result<Exit, Failure> {
    existing_workspace(&root.root)?;
    let verified = spool::verify(&root.root).map_err(|error| Failure::new(Exit::Failed, &error))?;
    print(&format!(
        "ok: {} records in {} segments, the last is {}\n",
        verified.records, verified.segments, verified.last
    ))?;
    Ok(Exit::Ok)
}
