//! `settled turn` and `settled take`: reports the turns and takes of a reviewer; `take` also takes a message.

use message_schema::id::{AgentName, PrNumber, Repo};
use review::{Event, Which};

use super::context::Context;
use super::failure::Failure;
use super::inbox;
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
    /// The number of completed turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
}

/// Takes a message, or reports that a reviewer took its request.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled take                     the next message of your inbox
  settled take msg-claude-001      if several try, one succeeds
  settled take --pr 86             report that the reviewer took the request
  settled take --pr 86 --reviewer codex --repo owner/name")]
pub(super) struct TakeArgs {
    /// The message's id or file name [default: the next one]
    #[arg(value_name = "MESSAGE", conflicts_with_all = ["pr", "reviewer", "repo"])]
    message: Option<String>,
    /// Report that the reviewer of this pull request took its request
    #[arg(long, value_name = "NUMBER")]
    pr: Option<PrNumber>,
    /// The reviewer, if the pull request has several
    #[arg(long, value_name = "AGENT", requires = "pr")]
    reviewer: Option<AgentName>,
    /// The repository, if the number alone is ambiguous
    #[arg(long, value_name = "OWNER/NAME", requires = "pr")]
    repo: Option<Repo>,
}

pub(super) fn turn(args: &TurnArgs, context: &Context) -> Result<Exit, Failure> {
    let event = Event::Turns {
        which: args.target.which(),
        count: args.count,
    };
    order::give(event, context)
}

pub(super) fn take(args: &TakeArgs, context: &Context) -> Result<Exit, Failure> {
    let TakeArgs {
        message,
        pr,
        reviewer,
        repo,
    } = args;
    match pr {
        Some(pr) => {
            let which = Which {
                pr: pr.clone(),
                repo: repo.clone(),
                reviewer: reviewer.clone(),
            };
            order::give(Event::Taken(which), context)
        }
        None => inbox::take(message.as_deref(), context),
    }
}
