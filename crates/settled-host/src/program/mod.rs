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
//! - `serve` runs the daemon.

mod change;
mod check;
mod config;
mod join;
mod list;
mod log_summary;
mod member;
mod republish;
mod serve;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Parser, Subcommand};
use message_schema::line::escaped;
use runner::folder::Folder;
use runner::{keeper, launch};
use serde::Serialize;
use settled_host::is_missing;
use settled_host::place::PlaceError;
use spool::Os;
use spool::log::{HostName, Local, LogError};
use views::answer::{self, CommandOutput};
use views::exit::Exit;
use views::failure::Failure;
use views::serving::of_spool;
use workspace::config::{Config, SharedLog};
use workspace::directory;
use workspace::shell::quoted;

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
    keeper::keep(&Folder::at(folder)).map_err(|error| Failure::new(Exit::Failed, &error))?;
    Ok(Exit::Ok)
}

/// The workspace, and the format of the output.
struct HostContext {
    root: Option<PathBuf>,
    is_json: bool,
}

impl HostContext {
    fn root(&self) -> Result<&Path, Failure> {
        self.root.as_deref().ok_or_else(|| {
            let message = "no workspace given: use --root DIR, or set SETTLED_ROOT".to_owned();
            Failure::plain(Exit::Identity, message)
        })
    }

    /// The workspace and its shared log; fails if it is no workspace or shares none.
    fn shared(&self) -> Result<(&Path, SharedLog), Failure> {
        let root = self.root()?;
        let is_workspace =
            directory::is_workspace(root).map_err(|error| Failure::new(Exit::Failed, &error))?;
        if !is_workspace {
            let message = format!("{} is not a workspace", root.display());
            return Err(Failure::plain(Exit::NotFound, message));
        }
        let config = load(root)?;
        match shared_log(&config)? {
            Some(shared) => Ok((root, shared)),
            None => Err(Failure::plain(
                Exit::NotFound,
                format!("{} shares its ledger with no other host", root.display()),
            )
            .next(self.command("host join nats://HOST --workspace NAME"))),
        }
    }

    /// The text of a `settled` command for this workspace.
    fn command(&self, words: &str) -> String {
        workspace::shell::settled(words, self.root.as_deref(), None)
    }

    fn say<T: Serialize>(
        &self,
        answer: &CommandOutput<T>,
        said: impl FnOnce(&T) -> String,
    ) -> Result<Exit, Failure> {
        let text = if self.is_json {
            answer.json()
        } else {
            answer.text(&said(&answer.data))
        };
        print(&text)?;
        Ok(Exit::Ok)
    }

    fn complain(&self, failure: &Failure) {
        if self.is_json {
            // If nobody reads this, the exit code still tells.
            let _ = print(&answer::failure(failure));
        }
        let lines: Vec<String> = failure.message.lines().map(escaped).collect();
        let mut text = format!("settled host: {}\n", lines.join("\n"));
        for next in &failure.next {
            text += &format!("  try: {}\n", escaped(&next.run));
        }
        // Nothing is left to do if standard error is closed too.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    match written.map_err(|error| Failure::new(Exit::Failed, &error)) {
        Err(failure) if !failure.is_broken_pipe => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn load(root: &Path) -> Result<Config, Failure> {
    Config::load(root).map_err(|error| Failure::new(Exit::Usage, &error))
}

/// The shared log of the config, if it has one.
fn shared_log(config: &Config) -> Result<Option<SharedLog>, Failure> {
    config.ledger.shared().map_err(|key| {
        let message =
            format!("settled.toml has ledger.log and no {key}; `settled host join` writes both");
        Failure::plain(Exit::Usage, message)
    })
}

/// The failure for a log that cannot be opened or reached.
fn of_place(error: &PlaceError) -> Failure {
    let exit = match error {
        PlaceError::Log(error) => return of_log(error),
        PlaceError::Access(_) | PlaceError::Key(_) | PlaceError::Unfit(_) => Exit::Usage,
        PlaceError::NoRepository { .. } => Exit::NotFound,
        PlaceError::Io { .. } => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// The failure for a log that a person has just named.
fn of_new_log(error: &LogError, log: &str) -> Failure {
    let failure = of_log(error);
    if !is_missing(error) {
        return failure;
    }
    let message = format!("there is no git repository at {log}: {}", failure.message);
    Failure::plain(Exit::NotFound, message)
}

/// The ledger of this host, as a log.
fn local(root: &Path, host: &HostName) -> Result<Local, Failure> {
    let local = Local::open(root, Arc::new(Os), host.clone());
    local.map_err(|error| of_spool(&error, &error, &quoted(root.as_os_str())))
}

fn of_log(error: &LogError) -> Failure {
    let exit = match error {
        LogError::Unreachable { .. } => Exit::Temporary,
        LogError::Denied { .. } => Exit::Identity,
        LogError::TooLarge { .. }
        | LogError::RolledBack { .. }
        | LogError::Forked { .. }
        | LogError::TooNew(_)
        | LogError::Broken { .. } => Exit::ActionRequired,
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use spool::log::Head;

    use super::*;

    #[test]
    fn an_exit_code_says_who_can_help() {
        let why = || "x".to_owned();
        let (log, ours) = (Head::EMPTY, Head::EMPTY);
        for (error, exit) in [
            (LogError::Unreachable { why: why() }, Exit::Temporary),
            (LogError::Denied { why: why() }, Exit::Identity),
            (LogError::Broken { what: why() }, Exit::ActionRequired),
            (LogError::RolledBack { log, ours }, Exit::ActionRequired),
        ] {
            assert_eq!(of_log(&error).exit, exit);
            assert_eq!(of_place(&PlaceError::Log(error)).exit, exit);
        }
        let unfit = PlaceError::Unfit(why());
        assert_eq!(of_place(&unfit).exit, Exit::Usage);
        let path = PathBuf::from("p");
        let source = std::io::Error::other("full");
        let io = PlaceError::Io { path, source };
        assert_eq!(of_place(&io).exit, Exit::Failed);
    }
}
