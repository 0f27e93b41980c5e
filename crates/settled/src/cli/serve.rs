//! `settled serve`

use std::io::IsTerminal as _;
use std::path::Path;

use super::{Failure, Root, existing_workspace, print};
use crate::config::Config;
use crate::daemon::{self, DaemonError};
use crate::exit::Exit;
use crate::mailroom::MailroomError;
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

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    existing_workspace(&args.root.root)?;
    if args.once { once(&args.root.root) } else { foreground(&args.root.root) }
}

/// Serves until a signal.
pub(super) fn foreground(root: &Path) -> Result<Exit, Failure> {
    log_to_stderr();
    warn_of_strangers(root);
    daemon::serve(root, |_| tracing::info!(root = %root.display(), "serving"))
        .map_err(|error| failure(&error, root))?;
    Ok(Exit::Ok)
}

fn once(root: &Path) -> Result<Exit, Failure> {
    log_to_stderr();
    warn_of_strangers(root);
    let tally = daemon::serve_once(root).map_err(|error| failure(&error, root))?;
    print(&format!(
        "{} accepted, {} refused, {} duplicates\n",
        tally.accepted, tally.refused, tally.duplicates
    ))?;
    if tally.undelivered > 0 {
        let message = format!("{} files could not be delivered or put away yet", tally.undelivered);
        return Err(Failure::plain(Exit::Temporary, message));
    }
    if tally.unread > 0 {
        let message = format!("{} files could not be read", tally.unread);
        let next = format!("settled status {}", root.display());
        return Err(Failure::plain(Exit::Temporary, message).next(next));
    }
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
    match error {
        DaemonError::Mailroom(MailroomError::Spool(spool::SpoolError::Locked { .. })) => {
            let held = Failure::new(Exit::Temporary, error);
            let message = format!("{}; it is being served already", held.message);
            Failure { message, ..held }.next(format!("settled status {}", root.display()))
        }
        DaemonError::Mailroom(MailroomError::NotTheDaemon { owner, .. }) => {
            Failure::new(Exit::NotAllowed, error)
                .next(format!("setpriv --reuid={owner} --clear-groups settled …"))
        }
        DaemonError::Mailroom(MailroomError::Config(_)) => Failure::new(Exit::Usage, error),
        DaemonError::Mailroom(MailroomError::Spool(_)) | DaemonError::Setup(_) => {
            Failure::new(Exit::Failed, error)
        }
    }
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SETTLED_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second daemon in one process (a test) keeps the first one's log.
    let _ = subscriber.try_init();
}
