//! How a command tells the daemon something: writes the order, sees to it that it is heard, and
//! shows what came of it.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use message_schema::Code;
use message_schema::id::{AgentName, MessageId, PrNumber, Repo};
use message_schema::line::escaped;
use review::{Event, Record, Which};
use spool::{Entry, SpoolError};

use super::answer::Answer;
use super::context::{Context, quoted};
use super::failure::Failure;
use super::outcome::Outcome;
use super::serve;
use crate::daemon::{self, DaemonError};
use crate::exit::Exit;
use crate::mailroom::MailroomError;
use crate::orders::{self, Order};
use crate::{clock, fold};

/// How long a daemon may take to hear an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the order is looked for.
const POLL: Duration = Duration::from_millis(20);

/// How often a waiting command looks whether the daemon is still there. The look takes the lock for
/// an instant, which must not be in the way of a daemon that starts.
const LOOKS_PER_POLL: u32 = 50;

/// The review a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The number of the pull request
    #[arg(value_name = "PR")]
    pr: PrNumber,
    /// The reviewer, where the pull request has several
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<AgentName>,
    /// The repository, where the number alone does not tell
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Repo>,
}

impl Target {
    pub(super) fn which(&self) -> Which {
        Which { pr: self.pr.clone(), repo: self.repo.clone(), reviewer: self.reviewer.clone() }
    }
}

/// Gives the order and shows what came of it.
pub(super) fn give(event: Event, context: &Context) -> Result<Exit, Failure> {
    let root = context.workspace()?;
    orders::check(&event)
        .map_err(|why| Failure::plain(Exit::Usage, format!("{why}; nothing was ordered")))?;
    let order = Order::new(clock::new_order_id(), clock::now(), event);
    let file = orders::write(root, &order).map_err(|error| cannot_write(root, &error))?;
    see_to_it(root, &file)?;
    let Some((entry, record)) = find(root, &order.id)? else {
        let name = file.file_name().unwrap_or_default();
        let why = if orders::is_put_aside(root, name) { "cannot read it" } else { "does not know it" };
        let message = format!("the order {} is gone and the daemon {why}; its log says more", order.id);
        return Err(Failure::plain(Exit::Failed, message));
    };
    let outcome = Outcome::of(&order.id, &entry, &record);
    match record {
        Record::Declined { code, why, .. } => {
            Err(Failure::plain(exit(code), format!("{code}: {}", escaped(&why)))
                .code(code.as_str())
                .data(&outcome)
                .next(context.command("status")))
        }
        Record::Happened(_) | Record::Accepted(_) | Record::Duplicate { .. } | Record::Refused { .. } => {
            context.say(&Answer::new(outcome), Outcome::text)?;
            Ok(Exit::Ok)
        }
    }
}

/// A review or a thread that was named and does not exist is told apart from a decision that does
/// not fit.
fn exit(code: Code) -> Exit {
    let is_missing = code == Code::NoOpenRequest || code == Code::ThreadUnknown;
    if is_missing { Exit::NotFound } else { Exit::Failed }
}

fn cannot_write(root: &Path, error: &io::Error) -> Failure {
    let place = orders::directory(root);
    if error.kind() == io::ErrorKind::PermissionDenied {
        let message = format!("only the owner of {} can tell the daemon anything: {error}", place.display());
        return Failure::plain(Exit::Identity, message);
    }
    Failure::plain(Exit::Failed, format!("the order cannot be written to {}: {error}", place.display()))
}

/// Waits until the daemon has heard the order, or hears it in its place where none serves.
fn see_to_it(root: &Path, file: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    for look in 0_u32.. {
        if look.is_multiple_of(LOOKS_PER_POLL) && spool::is_served(root) != Some(true) {
            match daemon::serve_once(root) {
                // A daemon has started in between.
                Err(DaemonError::Mailroom(MailroomError::Spool(SpoolError::Locked { .. }))) => {}
                Err(error) => return Err(waits(file, serve::failure(&error, root))),
                Ok(_) => return Ok(()),
            }
        }
        if file.symlink_metadata().is_err() {
            return Ok(());
        }
        if start.elapsed() >= PATIENCE {
            break;
        }
        std::thread::sleep(POLL);
    }
    let message = format!("the daemon has not heard the order within {} s", PATIENCE.as_secs());
    let next = format!("settled log {}", quoted(root.as_os_str()));
    Err(waits(file, Failure::plain(Exit::Temporary, message).next(next)))
}

/// An order that was not heard is not lost, and whoever gave it should know.
fn waits(file: &Path, failure: Failure) -> Failure {
    let message = format!("{}; the order is accepted and waits as {}", failure.message, file.display());
    Failure { message, ..failure }
}

/// The record an order led to. The last one: an id of ours is given once.
fn find(root: &Path, id: &MessageId) -> Result<Option<(Entry, Record)>, Failure> {
    let mut found = None;
    let read = spool::read_ledger(root, &mut |entry| {
        if entry.id.as_deref() == Some(id.as_str()) {
            let (record, _) = fold::decision(entry)?;
            found = Some((entry.clone(), record));
        }
        Ok(())
    });
    read.map_err(|error| Failure::new(Exit::Failed, &error))?;
    Ok(found)
}
