//! `settled states`: the state table, printed from the rules.

use super::{Failure, print};
use crate::exit::Exit;
use crate::states;

/// Prints what every input does in every phase, the legal actions and the bounds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled states                       Markdown; docs/states.md is this print
  settled states | grep '^| fixing'    what can happen while the author fixes")]
pub(super) struct Args {}

pub(super) fn run(_: &Args) -> Result<Exit, Failure> {
    print(&states::page())?;
    Ok(Exit::Ok)
}
