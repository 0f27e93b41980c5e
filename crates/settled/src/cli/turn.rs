//! `settled turn` and `settled take`: what a runner reports of a reviewer at work.

use review::Event;

use super::context::Context;
use super::failure::Failure;
use super::order::{self, Target};
use crate::exit::Exit;

/// Counts turns of a reviewer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled turn 86                 after each completed turn of the reviewer
  settled turn 86 --count 3
  settled turn 86 --reviewer codex --json")]
pub(super) struct TurnArgs {
    #[command(flatten)]
    target: Target,
    /// How many turns were completed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

/// Reports that a reviewer took its request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled take 86                 the reviewer's seconds count from now on
  settled take 86 --reviewer codex --repo owner/name")]
pub(super) struct TakeArgs {
    #[command(flatten)]
    target: Target,
}

pub(super) fn turn(args: &TurnArgs, context: &Context) -> Result<Exit, Failure> {
    let event = Event::Turns { which: args.target.which(), count: args.count };
    order::give(event, context)
}

pub(super) fn take(args: &TakeArgs, context: &Context) -> Result<Exit, Failure> {
    order::give(Event::Taken(args.target.which()), context)
}
