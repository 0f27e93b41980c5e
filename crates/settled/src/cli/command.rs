//! Every command there is, and which file answers for it.

use clap::Subcommand;
use review::Act;

use super::context::Context;
use super::failure::Failure;
use super::{
    dead_letter, doctor, explain, gc, init, ledger, log, person, pull, serve, simulate, states, status,
    trace, turn, up,
};
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the workspace if it is missing, then serve it in the foreground
    Up(up::Args),
    /// Make a workspace, or add agents to one; nothing is overwritten
    Init(init::Args),
    /// Serve a workspace in the foreground
    Serve(serve::Args),
    /// Show every review: phase, round, whose move
    Status(status::Args),
    /// Show every decision of the ledger, oldest first
    Log(log::Args),
    /// Play scenarios by the real rules, without a workspace
    Simulate(simulate::Args),
    /// Explain a code: what it means, an example that yields it, the same done right
    Explain(explain::Args),
    /// Remove what agents are done with and what is older than settled.toml says
    Gc(gc::Args),
    /// Work with the ledger
    Ledger(ledger::Args),
    /// Print the table of states, the legal actions and the bounds
    States(states::Args),
    /// Count completed turns of a reviewer; at the limit its invocation ends
    Turn(turn::TurnArgs),
    /// Report that a reviewer took its request: its seconds count from now on
    Take(turn::TakeArgs),
    /// Tell what happened to a pull request
    Pr(pull::Args),
    /// Give a review that ended back to the agents, in a new generation
    #[command(after_help = "Examples:
  settled reopen 86
  settled reopen 86 --reviewer codex --reason \"the blocker was ours\"")]
    Reopen(person::OfReview),
    /// Grant a review one more round
    #[command(after_help = "Examples:
  settled grant 86 --rounds 1")]
    Grant(person::OfRounds),
    /// Declare a thread done with
    #[command(after_help = "Examples:
  settled resolve 86 F-001")]
    Resolve(person::OfThread),
    /// Leave a thread as it is, on purpose
    #[command(after_help = "Examples:
  settled wont-fix 86 F-001")]
    WontFix(person::OfThread),
    /// Hand a thread off when the pull request is merged, whatever the mode
    #[command(after_help = "Examples:
  settled queue 86 F-001")]
    Queue(person::OfThread),
    /// Take a thread out of the agents' hands
    #[command(after_help = "Examples:
  settled hold 86 F-001")]
    Hold(person::OfThread),
    /// Give a held thread back to the agents
    #[command(after_help = "Examples:
  settled release 86 F-001")]
    Release(person::OfThread),
    /// Show the whole life of one message, each step with its evidence
    Trace(trace::Args),
    /// Show what was refused, and send it once more
    DeadLetter(dead_letter::Args),
    /// Look whether all is well, each thing with its fix
    Doctor(doctor::Args),
}

impl Command {
    /// Runs it.
    pub(super) fn run(&self, context: Context) -> Result<Exit, Failure> {
        match self {
            Command::Up(args) => up::run(args, context),
            Command::Init(args) => init::run(args, context),
            Command::Serve(args) => serve::run(args, context),
            Command::Status(args) => status::run(args, context),
            Command::Log(args) => log::run(args, context),
            Command::Simulate(args) => simulate::run(args, &context),
            Command::Explain(args) => explain::run(args, &context),
            Command::Gc(args) => gc::run(args, context),
            Command::Ledger(args) => ledger::run(args, context),
            Command::States(args) => states::run(args, &context),
            Command::Turn(args) => turn::turn(args, &context),
            Command::Take(args) => turn::take(args, &context),
            Command::Pr(args) => pull::run(args, &context),
            Command::Reopen(args) => person::reopen(args, &context),
            Command::Grant(args) => person::grant(args, &context),
            Command::Resolve(args) => person::of_thread(args, Act::Resolve, &context),
            Command::WontFix(args) => person::of_thread(args, Act::WontFix, &context),
            Command::Queue(args) => person::of_thread(args, Act::Queue, &context),
            Command::Hold(args) => person::of_thread(args, Act::Hold, &context),
            Command::Release(args) => person::of_thread(args, Act::Release, &context),
            Command::Trace(args) => trace::run(args, &context),
            Command::DeadLetter(args) => dead_letter::run(args, &context),
            Command::Doctor(args) => doctor::run(args, context),
        }
    }
}
