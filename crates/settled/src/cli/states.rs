//! `settled states`: prints the state table from the rules.

use serde::Serialize;
use simulate::states;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// Prints what every input does in every phase, the legal actions and the bounds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled states                       Markdown; docs/states.md is this output
  settled states | grep '^| fixing'    possible events while the author fixes")]
pub(super) struct Args {}

/// The page as JSON.
#[derive(Debug, Serialize)]
struct Page {
    markdown: String,
}

pub(super) fn run(_: &Args, context: &Context) -> Result<Exit, Failure> {
    context.say(
        &CommandOutput::new(Page {
            markdown: states::page(),
        }),
        |page| page.markdown.clone(),
    )?;
    Ok(Exit::Ok)
}
