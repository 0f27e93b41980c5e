//! `settled serve`

use std::io::{ErrorKind, IsTerminal as _};
use std::path::Path;

use spool::SpoolError;

use super::answer::{Answer, print};
use super::context::{Context, Root};
use super::failure::Failure;
use crate::config::{Config, ConfigError};
use crate::daemon::{self, DaemonError, Tally};
use crate::exit::Exit;
use crate::mailroom::MailroomError;
use crate::stderr::Log;
use crate::workspace;

/// Serves a workspace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  settled serve ./mailroom
  settled serve --once ./mailroom      exit code 0 if nothing was refused, 7 if something was")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    /// Judge and deliver all that is there, then exit
    #[arg(long)]
    once: bool,
}

pub(super) fn run(args: &Args, context: Context) -> Result<Exit, Failure> {
    let context = context.at(&args.root);
    let root = context.workspace()?;
    if args.once { once(root, &context) } else { foreground(root) }
}

/// Serves until a signal.
pub(super) fn foreground(root: &Path) -> Result<Exit, Failure> {
    log_to_stderr();
    warn_of_strangers(root);
    daemon::serve(root, |_| tracing::info!(root = %root.display(), "serving"))
        .map_err(|error| failure(&error, root))?;
    Ok(Exit::Ok)
}

fn once(root: &Path, context: &Context) -> Result<Exit, Failure> {
    log_to_stderr();
    warn_of_strangers(root);
    let tally = daemon::serve_once(root).map_err(|error| failure(&error, root))?;
    let said =
        format!("{} accepted, {} refused, {} duplicates\n", tally.accepted, tally.refused, tally.duplicates);
    let Tally { undelivered, unread, .. } = tally;
    if undelivered > 0 || unread > 0 {
        let message = format!(
            "{undelivered} files could not be delivered or put away yet, {unread} files or outboxes not be read; the \
             log names them, and the next start does the rest"
        );
        if !context.json {
            print(&said)?;
        }
        return Err(Failure::plain(Exit::Temporary, message).data(&tally).next(context.command("status")));
    }
    context.say(&Answer::new(&tally), |_| said)?;
    Ok(if tally.refused > 0 { Exit::InvalidMessage } else { Exit::Ok })
}

/// Warns of names in the config that are of no agent of this workspace. What cannot be read is
/// the daemon's to complain about.
fn warn_of_strangers(root: &Path) {
    if let (Ok(config), Ok(agents)) = (Config::load(root), workspace::agents(root)) {
        for agent in config.strangers(&agents) {
            tracing::warn!(%agent, "settled.toml names an agent without a mailbox");
        }
    }
}

/// Why serving failed, sorted by who has to act.
pub(super) fn failure(error: &DaemonError, root: &Path) -> Failure {
    let root_shown = root.display();
    match error {
        DaemonError::Mailroom(MailroomError::Spool(spool)) => {
            let (exit, more, next) = advice(spool);
            let failure = Failure::new(exit, error);
            let message = format!("{}{more}", failure.message);
            Failure { message, ..failure }.next(format!("{next} {root_shown}"))
        }
        DaemonError::Mailroom(MailroomError::NotTheDaemon { owner, .. }) => {
            Failure::new(Exit::Identity, error)
                .next(format!("setpriv --reuid={owner} --clear-groups settled …"))
        }
        DaemonError::Mailroom(MailroomError::Config(ConfigError::Invalid { .. })) => {
            Failure::new(Exit::Usage, error)
        }
        DaemonError::Mailroom(MailroomError::Config(ConfigError::Unreadable { .. }))
        | DaemonError::Setup(_) => {
            Failure::new(Exit::Failed, error).next(format!("settled serve {root_shown}"))
        }
    }
}

/// How a failure of the spool ends the daemon (6 where starting it again would only fail again), what is to be said of it besides, and the next command.
fn advice(error: &SpoolError) -> (Exit, &'static str, &'static str) {
    match error {
        SpoolError::Locked { .. } => (Exit::Temporary, "; it is being served already", "settled status"),
        SpoolError::Full { .. } => {
            (Exit::Temporary, "; nothing was lost, make room and start again", "df -h")
        }
        SpoolError::Io { source, .. }
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
        {
            (Exit::Temporary, "; nothing was lost, make room and start again", "df -h")
        }
        SpoolError::Io { .. } => {
            (Exit::Failed, "; nothing was lost, the next start does the rest", "settled serve")
        }
        SpoolError::Fatal { .. } | SpoolError::Stopped { .. } => {
            (Exit::Failed, "; look at the disk, the next start reads what is really there", "settled serve")
        }
        SpoolError::Replaced { .. } => {
            (Exit::ActionRequired, "; put back what was there before the next start", "settled ledger verify")
        }
        SpoolError::Damaged { .. } => (
            Exit::ActionRequired,
            "; nothing was changed, put the ledger back from a backup",
            "settled ledger verify",
        ),
        SpoolError::TooNew { .. } => {
            (Exit::ActionRequired, "; a newer settled has to serve it", "settled log")
        }
        SpoolError::Visit { .. } | SpoolError::Sequence { .. } | SpoolError::Unfit { .. } => {
            (Exit::Failed, "", "settled ledger verify")
        }
    }
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SETTLED_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // A log that cannot be written, on a full disk above all, ends nothing.
        .log_internal_errors(false);
    // A second daemon in one process (a test) keeps the first one's log.
    let _ = subscriber.try_init();
}
