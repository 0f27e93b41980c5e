//! The command line of `settled-host`, which `settled host` runs.
//!
//! - `join` makes this directory one of the hosts;
//! - `log_summary` reads a log before anything is written;
//! - `change` records a change of hosts: a retired key, a moved home, another policy, a host that leaves;
//! - `republish` puts back what a log lost;
//! - `check` says what the log promises;
//! - `list` shows the hosts;
//! - `member` follows the log and records a change for one command;
//! - `config` writes what joining decided into `settled.toml`;
//! - `serve` runs the daemon;
//! - `wait` bounds the time that a command waits for the log.

mod change;
mod check;
mod config;
mod context;
mod join;
mod list;
mod log_summary;
mod member;
mod republish;
mod serve;
mod wait;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use runner::folder::Folder;
use runner::{keeper, launch};
use views::exit::Exit;
use views::failure::Failure;

use self::context::{HostContext, load, local, of_log, of_new_log, of_place, shared_log};
use self::wait::Wait;

/// Share one ledger among several hosts.
#[derive(Debug, Parser)]
#[command(name = "settled host", bin_name = "settled host", version = VERSION, max_term_width = 100)]
#[command(after_help = "Examples:
  settled host join nats://broker.example.org --workspace team
  settled host join git@example.org:team/ledger.git --agents codex
  settled host list

More: docs/hosts.md.")]
struct Args {
    /// The workspace [default: $SETTLED_ROOT]
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        env = "SETTLED_ROOT",
        hide_env = true
    )]
    root: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
    /// How many seconds to wait for a log that does not answer; 0 asks once
    #[arg(long, value_name = "SECONDS", global = true, default_value = "30")]
    wait: Wait,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make this workspace one of the hosts that share a ledger
    Join(join::JoinArgs),
    /// List the hosts, their agents, and how far each has come
    #[command(after_help = "Examples:
  settled host list
  settled host list --json")]
    List,
    /// Make this host the home of more agents
    Claim(change::ClaimArgs),
    /// Move the home of an agent to another host
    MoveHome(change::MoveHomeArgs),
    /// Retire the key of a host: what it signs from now on is refused
    RetireKey(change::RetireKeyArgs),
    /// Record this host's policy for all hosts, or take theirs
    Policy(change::PolicyArgs),
    /// Put back into the log what it lost, from this host's ledger
    #[command(after_help = "Examples:
  settled host republish")]
    Republish,
    /// Put the whole ledger into another log, and follow that one
    Restore(republish::RestoreArgs),
    /// Check what the log promises and whether this host fits
    Check(check::CheckArgs),
    /// Retire this host's own key and stop sharing
    Leave(change::LeaveArgs),
    /// Serve the workspace; `settled serve` and `settled up` become this
    #[command(hide = true)]
    Serve(serve::ServeArgs),
    /// Supervise one agent; the daemon starts this command
    #[command(name = launch::KEEPER, hide = true)]
    KeepRun {
        /// The directory of the run
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("SETTLED_REVISION"),
    ")"
);

/// Reads the command line and runs the command it names.
pub(crate) fn run() -> Exit {
    let args = Args::parse();
    let context = HostContext {
        root: args.root,
        is_json: args.json,
        wait: args.wait,
    };
    let ran = match &args.command {
        Command::Join(args) => join::run(args, &context),
        Command::List => list::run(&context),
        Command::Claim(args) => change::claim(args, &context),
        Command::MoveHome(args) => change::move_home(args, &context),
        Command::RetireKey(args) => change::retire_key(args, &context),
        Command::Policy(args) => change::policy(args, &context),
        Command::Republish => republish::republish(&context),
        Command::Restore(args) => republish::restore(args, &context),
        Command::Check(args) => check::run(args, &context),
        Command::Leave(args) => change::leave(args, &context),
        Command::Serve(args) => serve::run(args, &context),
        Command::KeepRun { folder } => keep_run(folder),
    };
    ran.unwrap_or_else(|failure| {
        context.complain(&failure);
        failure.exit
    })
}

/// Keeps one agent until none of its processes is left. The keeper is the program of its daemon, whose notes it writes.
fn keep_run(folder: &Path) -> Result<Exit, Failure> {
    keeper::keep(&Folder::at(folder))?;
    Ok(Exit::Ok)
}
