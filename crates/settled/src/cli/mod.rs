//! The command line: one file per command, every one thin.

mod explain;
mod gc;
mod init;
mod ledger;
mod log;
mod order;
mod outcome;
mod person;
mod pull;
mod separate;
mod serve;
mod simulate;
mod states;
mod status;
mod turn;
mod up;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use message_schema::id::AgentName;
use review::Act;

use crate::exit::Exit;
use crate::workspace;

/// The mailroom for AI code review.
#[derive(Debug, Parser)]
#[command(name = "settled", version, about, long_about = LONG, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const LONG: &str = "The mailroom for AI code review. Agents write YAML files into their outbox; Settled checks each \
one, decides whether it may move the review now, and delivers it to the recipient's inbox exactly once in effect. \
Whose turn it is, rounds, replies and attempts are the daemon's to count.";

const EXAMPLES: &str = "Examples:
  settled up ./mailroom --agents claude,codex    make a workspace and serve it
  settled status ./mailroom                      whose move is it
  settled serve --once ./mailroom                judge and deliver what is there, then exit
  settled log ./mailroom                         every decision, oldest first
  settled pr merged ./mailroom 86                tell what happened to a pull request
  settled reopen ./mailroom 86                   give an escalated review back to the agents
  settled explain action_missing                 what a code means and what to do
  settled ledger verify ./mailroom               check the ledger's chain

Exit codes: 0 ok, 1 failed, 2 usage or config, 3 not found, 5 only a person may, 7 a message was refused, 9 try again.";

#[derive(Debug, Subcommand)]
enum Command {
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
  settled reopen ./mailroom 86
  settled reopen ./mailroom 86 --reviewer codex --reason \"the blocker was ours\"")]
    Reopen(person::OfReview),
    /// Grant a review one more round
    #[command(after_help = "Examples:
  settled grant ./mailroom 86 --rounds 1")]
    Grant(person::OfRounds),
    /// Declare a thread done with
    #[command(after_help = "Examples:
  settled resolve ./mailroom 86 F-001")]
    Resolve(person::OfThread),
    /// Leave a thread as it is, on purpose
    #[command(after_help = "Examples:
  settled wont-fix ./mailroom 86 F-001")]
    WontFix(person::OfThread),
    /// Hand a thread off when the pull request is merged, whatever the mode
    #[command(after_help = "Examples:
  settled queue ./mailroom 86 F-001")]
    Queue(person::OfThread),
    /// Take a thread out of the agents' hands
    #[command(after_help = "Examples:
  settled hold ./mailroom 86 F-001")]
    Hold(person::OfThread),
    /// Give a held thread back to the agents
    #[command(after_help = "Examples:
  settled release ./mailroom 86 F-001")]
    Release(person::OfThread),
}

/// Runs a command.
pub fn run(cli: Cli) -> Exit {
    let result = match cli.command {
        Command::Up(args) => up::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Gc(args) => gc::run(&args),
        Command::Ledger(args) => ledger::run(&args),
        Command::States(args) => states::run(&args),
        Command::Turn(args) => turn::turn(&args),
        Command::Take(args) => turn::take(&args),
        Command::Pr(args) => pull::run(&args),
        Command::Reopen(args) => person::reopen(&args),
        Command::Grant(args) => person::grant(&args),
        Command::Resolve(args) => person::of_thread(&args, Act::Resolve),
        Command::WontFix(args) => person::of_thread(&args, Act::WontFix),
        Command::Queue(args) => person::of_thread(&args, Act::Queue),
        Command::Hold(args) => person::of_thread(&args, Act::Hold),
        Command::Release(args) => person::of_thread(&args, Act::Release),
    };
    result.unwrap_or_else(|failure| {
        complain(&failure);
        failure.exit
    })
}

/// Why a command failed, and the next command where there is one.
#[derive(Debug)]
struct Failure {
    exit: Exit,
    message: String,
    next: Option<String>,
    /// The reader of our output went away, which is no failure of ours.
    is_broken_pipe: bool,
}

impl Failure {
    /// A failure that says only what it says.
    fn plain(exit: Exit, message: String) -> Self {
        Self { exit, message, next: None, is_broken_pipe: false }
    }

    /// A failure with the error's causes.
    fn new(exit: Exit, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut failure = Self::plain(exit, error.to_string());
        let mut cause = Some(error);
        while let Some(error) = cause {
            let is_broken_pipe = error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe);
            failure.is_broken_pipe |= is_broken_pipe;
            let text = error.to_string();
            if !failure.message.ends_with(&text) {
                failure.message = format!("{}: {text}", failure.message);
            }
            cause = error.source();
        }
        failure
    }

    fn next(self, command: String) -> Self {
        Self { next: Some(command), ..self }
    }
}

fn complain(failure: &Failure) {
    let mut text = format!("settled: {}\n", failure.message);
    if let Some(next) = &failure.next {
        text += &format!("  try: {next}\n");
    }
    // Nothing is left to do if standard error is gone too.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints to standard output; a reader that went away ends the command quietly.
fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    match written.map_err(|error| Failure::new(Exit::Failed, &error)) {
        Err(failure) if !failure.is_broken_pipe => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn existing_workspace(root: &Path) -> Result<(), Failure> {
    let agents = root.join("agents");
    let is_workspace = workspace::is_workspace(root).map_err(|error| {
        let message = format!("cannot look at {}: {error}", agents.display());
        Failure::plain(Exit::Failed, message).next(format!("ls -ld {}", agents.display()))
    })?;
    if is_workspace {
        return Ok(());
    }
    let message = format!("{} is not a workspace: it has no agents/ directory", root.display());
    let next = format!("settled up {} --agents claude,codex", root.display());
    Err(Failure::plain(Exit::NotFound, message).next(next))
}

/// The workspace argument every command takes.
#[derive(Debug, clap::Args)]
struct Root {
    /// The workspace
    #[arg(value_name = "ROOT", env = "SETTLED_ROOT")]
    root: PathBuf,
}

/// The agents option of `up` and `init`.
#[derive(Debug, clap::Args)]
struct Agents {
    /// The agents to have mailboxes, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = agent)]
    agents: Vec<AgentName>,
}

fn agent(text: &str) -> Result<AgentName, String> {
    match AgentName::new(text) {
        Ok(name) if name.is_daemon() => Err("`settled` is the daemon's own name".to_owned()),
        Ok(name) => Ok(name),
        Err(error) => Err(error.to_string()),
    }
}
