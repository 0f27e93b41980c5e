//! Telling the daemon something, and hearing what the ledger says of it: writes the order, sees to it that it is heard,
//! by the daemon or in its place where none serves, and finds the record it led to.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use message_schema::id::MessageId;
use review::{Event, EventRecord, Record};
use spool::{Entry, Since, SpoolError, Tail};
use workspace::fold;
use workspace::orders::{self, Order};

use crate::mailroom::MailroomError;
use crate::serve::{self, DaemonError};

/// How long a daemon may take to hear an order.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long is waited between two looks: at first, since a daemon at rest hears it within milliseconds,
/// and then twice as long each time, up to the second.
const POLL: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// How often whoever waits looks whether the daemon is still there. The look takes the lock for an instant, which
/// must not be in the way of a daemon that starts.
const LOOKS_PER_POLL: u32 = 50;

/// Why it is not known what came of an order.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// The order asks for what none may.
    #[error("{0}; nothing was ordered")]
    Unfit(String),
    /// It could not be written: nothing was ordered.
    #[error("the order cannot be written to {}: {source}", place.display())]
    Unwritten {
        /// Where it was to lie.
        place: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No daemon serves, and none could in this place; the order waits.
    #[error("{error}; the order is accepted and waits as {}", file.display())]
    Unserved {
        /// The order.
        file: PathBuf,
        /// Why.
        error: Box<DaemonError>,
    },
    /// A daemon serves and did not hear it in time; the order waits.
    #[error(
        "the daemon has not heard the order within {} s; the order is accepted and waits as {}",
        PATIENCE.as_secs(), .0.display()
    )]
    Unheard(PathBuf),
    /// It is gone, and the ledger has nothing of it.
    #[error("the order {id} is gone and the daemon {why}; its log says more")]
    Gone {
        /// The order.
        id: MessageId,
        /// What the daemon made of it.
        why: &'static str,
    },
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] SpoolError),
}

/// What the ledger has of an order.
#[derive(Debug)]
pub struct Heard {
    /// Its id.
    pub id: MessageId,
    /// The entry.
    pub entry: Entry,
    /// What was decided.
    pub record: EventRecord,
}

/// Gives the order and waits for what comes of it. One that was not heard is not lost.
pub fn tell(root: &Path, event: Event) -> Result<Heard, TellError> {
    orders::check(&event).map_err(TellError::Unfit)?;
    let (id, now) = (workspace::clock::new_order_id(), workspace::clock::now());
    // Whatever comes of it stands behind this. Who may write no order may not read this either, and is told the first.
    let tail = Tail::open(root, Since::End);
    let order = Order::new(id.clone(), now, event);
    let file = orders::write(root, &order).map_err(|source| TellError::Unwritten {
        place: orders::directory(root),
        source,
    })?;
    see_to_it(root, &file)?;
    let mut tail = tail?;
    let mut found = None;
    tail.read(&mut |entry| {
        if entry.id.as_deref() == Some(id.as_str()) {
            // A message may bear the id as well; it is no answer to the order.
            if let (Record::Event(record), _) = fold::decision(entry)? {
                found = Some((entry.clone(), record));
            }
        }
        Ok(())
    })?;
    if let Some((entry, record)) = found {
        return Ok(Heard { id, entry, record });
    }
    let name = file.file_name().unwrap_or_default();
    let why = if orders::is_put_aside(root, name) {
        "cannot read it"
    } else {
        "does not know it"
    };
    Err(TellError::Gone { id, why })
}

/// Waits until the daemon has heard the order, or hears it in its place where none serves.
fn see_to_it(root: &Path, file: &Path) -> Result<(), TellError> {
    let is_heard =
        wait_until(root, PATIENCE, || file.symlink_metadata().is_err()).map_err(|error| {
            TellError::Unserved {
                file: file.to_owned(),
                error: Box::new(error),
            }
        })?;
    if is_heard {
        Ok(())
    } else {
        Err(TellError::Unheard(file.to_owned()))
    }
}

/// Waits until the daemon has done something, or all is done in its place where none serves; says whether it was
/// within its time.
pub fn wait_until(
    root: &Path,
    patience: Duration,
    is_done: impl Fn() -> bool,
) -> Result<bool, DaemonError> {
    let start = Instant::now();
    let [mut pause, longest] = POLL;
    for look in 0_u32.. {
        if (look.is_multiple_of(LOOKS_PER_POLL) && judge_in_its_place(root)?) || is_done() {
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

/// Where no daemon serves, judges and delivers all that lies there in its place; says whether it did.
fn judge_in_its_place(root: &Path) -> Result<bool, DaemonError> {
    if spool::is_served(root) == Some(true) {
        return Ok(false);
    }
    match serve::serve_once(root) {
        // A daemon has started in between.
        Err(DaemonError::Mailroom(MailroomError::Spool(SpoolError::Locked { .. }))) => Ok(false),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}
