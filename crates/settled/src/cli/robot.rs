//! `settled robot`: introduces an agent to Settled and gives it the next step.

use clap::Subcommand;
use serde::Serialize;

use super::answer::CommandOutput;
use super::context::Context;
use super::failure::Failure;
use super::home;
use crate::exit::Exit;

/// The primer, at most 700 tokens.
pub(super) const PRIMER: &str = include_str!("../robot.md");

/// Helps agents.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:
  settled robot help     the primer, in less than 700 tokens
  settled robot triage   your status and next command as JSON; exit 6: your move",
    disable_help_subcommand = true
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a primer for agents
    Help,
    /// Print your status and next command, as JSON; exit 6 if you have something to do
    Triage,
}

/// The primer as JSON.
#[derive(Debug, Serialize)]
struct Primer {
    markdown: &'static str,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    match args.command {
        Command::Help => {
            context.say(&CommandOutput::new(Primer { markdown: PRIMER }), |primer| {
                primer.markdown.to_owned()
            })?;
            Ok(Exit::Ok)
        }
        Command::Triage => home::triage(context),
    }
}
