//! `settled turn` and `settled take`: what a runner reports of a reviewer at work.

use review::Event;

use super::Failure;
use super::order::{self, Form, Target};
use crate::exit::Exit;

/// Counts turns of a reviewer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled turn ./mailroom 86                 after each completed turn of the reviewer
  settled turn ./mailroom 86 --count 3
  settled turn ./mailroom 86 --reviewer codex --json")]
pub(super) struct TurnArgs {
    #[command(flatten)]
    target: Target,
    /// How many turns were completed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    #[command(flatten)]
    form: Form,
}

/// Reports that a reviewer took its request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled take ./mailroom 86                 the reviewer's seconds count from now on
  settled take ./mailroom 86 --reviewer codex --repo owner/name")]
pub(super) struct TakeArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    form: Form,
}

pub(super) fn turn(args: &TurnArgs) -> Result<Exit, Failure> {
    let event = Event::Turns { which: args.target.which(), count: args.count };
    order::give(&args.target.root, event, &args.form)
}

pub(super) fn take(args: &TakeArgs) -> Result<Exit, Failure> {
    order::give(&args.target.root, Event::Taken(args.target.which()), &args.form)
}
