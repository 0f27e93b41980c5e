//! Submits an order and finds the record it led to: writes the order's file and waits until the daemon has processed
//! it. If no daemon serves the workspace, this process does it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use message_schema::id::MessageId;
use review::{Event, EventRecord, Record};
use spool::{Entry, Since, SpoolError, Tail};
use workspace::index;
use workspace::orders::{self, Order};

use crate::mailroom::MailroomError;
use crate::serve::{self, DaemonError};

/// The time a daemon has to process an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// The shortest and longest pause between two looks. An idle daemon takes milliseconds, so the pause starts short and
/// doubles.
const POLL: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The number of looks after which the waiting process checks that a daemon still serves. The check takes the lock for
/// an instant, which could get in the way of a daemon that starts.
const LOOKS_PER_POLL: u32 = 50;

/// The reasons an order's outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// An order must not contain this event.
    #[error("{0}; nothing was ordered")]
    Unfit(String),
    /// The order could not be written, so nothing was ordered.
    #[error("cannot write the order to {}: {source}", place.display())]
    Unwritten {
        /// The directory for orders.
        place: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No daemon serves the workspace and this process could not take its place; the order waits.
    #[error("{error}; the order is accepted and waits as {}", file.display())]
    Unserved {
        /// The order.
        file: PathBuf,
        /// The cause.
        error: Box<DaemonError>,
    },
    /// The daemon did not process the order in time; the order waits.
    #[error(
        "the daemon did not record the order within {} s; the order is accepted and waits as {}",
        PATIENCE.as_secs(), .0.display()
    )]
    Unheard(PathBuf),
    /// The order is gone, and the ledger has no record of it.
    #[error("the order {id} disappeared and the daemon {why}; see its log")]
    Gone {
        /// The order.
        id: MessageId,
        /// A phrase that says what the daemon did with it.
        why: &'static str,
    },
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] SpoolError),
}

/// The ledger's record of an order.
#[derive(Debug)]
pub struct OrderEntry {
    /// Its id.
    pub id: MessageId,
    /// The ledger entry.
    pub entry: Entry,
    /// The decision.
    pub record: EventRecord,
}

/// Submits an order and waits for its record. An order that is not processed in time stays in place.
pub fn submit(root: &Path, event: Event) -> Result<OrderEntry, SubmitError> {
    submit_as(root, workspace::clock::new_order_id(), event)
}

/// Submits an order under an id of the caller's. An id counts once: an order whose id the ledger knows is removed without
/// effect, and so is [`SubmitError::Gone`].
pub fn submit_as(root: &Path, id: MessageId, event: Event) -> Result<OrderEntry, SubmitError> {
    orders::check(&event).map_err(SubmitError::Unfit)?;
    let now = workspace::clock::now();
    // Opened before the order is written, so that its record comes later. A user who may not write orders may not read
    // the ledger either and should get the error about writing, so this result is checked later.
    let tail = Tail::open(root, Since::End);
    let order = Order::new(id.clone(), now, event);
    let file = orders::write(root, &order).map_err(|source| SubmitError::Unwritten {
        place: orders::directory(root),
        source,
    })?;
    wait_processed(root, &file)?;
    let mut tail = tail?;
    let mut found = None;
    tail.read(&mut |entry| {
        if entry.id.as_deref() == Some(id.as_str()) {
            // A message may have the same id; it does not answer the order.
            if let (Record::Event(record), _) = index::decision(entry)? {
                found = Some((entry.clone(), record));
            }
        }
        Ok(())
    })?;
    if let Some((entry, record)) = found {
        return Ok(OrderEntry { id, entry, record });
    }
    let name = file.file_name().unwrap_or_default();
    let why = if orders::is_put_aside(root, name) {
        "cannot read it"
    } else {
        "does not know it"
    };
    Err(SubmitError::Gone { id, why })
}

/// Waits until the daemon has processed the order, or processes it itself if no daemon serves.
fn wait_processed(root: &Path, file: &Path) -> Result<(), SubmitError> {
    let is_processed =
        wait_until(root, PATIENCE, || file.symlink_metadata().is_err()).map_err(|error| {
            SubmitError::Unserved {
                file: file.to_owned(),
                error: Box::new(error),
            }
        })?;
    if is_processed {
        Ok(())
    } else {
        Err(SubmitError::Unheard(file.to_owned()))
    }
}

/// Waits until `is_done`, doing the daemon's work if no daemon serves; false if `patience` runs out first.
pub fn wait_until(
    root: &Path,
    patience: Duration,
    is_done: impl Fn() -> bool,
) -> Result<bool, DaemonError> {
    let start = Instant::now();
    let [mut pause, longest] = POLL;
    for look in 0_u32.. {
        if (look.is_multiple_of(LOOKS_PER_POLL) && judge_at_look(look, root)?) || is_done() {
            return Ok(true);
        }
        if start.elapsed() >= patience {
            break;
        }
        std::thread::sleep(pause);
        pause = longest.min(pause * 2);
    }
    Ok(false)
}

/// Does the daemon's work if no daemon serves, and returns true if it did. The daemon of a shared ledger releases the
/// lock for an instant when it reopens for other homes, so the first look is not believed there.
fn judge_at_look(look: u32, root: &Path) -> Result<bool, DaemonError> {
    match judge_in_its_place(root) {
        Err(DaemonError::Mailroom(MailroomError::Shared { .. })) if look == 0 => Ok(false),
        judged => judged,
    }
}

/// Judges and delivers all mail once if no daemon serves; true if it did.
fn judge_in_its_place(root: &Path) -> Result<bool, DaemonError> {
    if spool::is_served(root) == Some(true) {
        return Ok(false);
    }
    match serve::serve_once(root) {
        // A daemon has started meanwhile.
        Err(error) if error.is_locked() => Ok(false),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_shared_ledger_only_a_later_look_tells_that_this_process_may_not_write_it() {
        let root = tempfile::tempdir().expect("a directory");
        let agents = ["claude", "codex"].map(|name| name.parse().expect("a name"));
        workspace::directory::init(root.path(), &agents).expect("a workspace");
        let config = "[ledger]\nlog = \"./ledger.git\"\n";
        std::fs::write(root.path().join("settled.toml"), config).expect("a config");
        assert!(!judge_at_look(0, root.path()).expect("a daemon may open it again"));
        let error = judge_at_look(1, root.path()).expect_err("nobody serves");
        let is_shared = matches!(error, DaemonError::Mailroom(MailroomError::Shared { .. }));
        assert!(is_shared, "{error}");
    }
}
