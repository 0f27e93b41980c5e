//! Records that a person accepts a ledger which a snapshot contradicts. No daemon serves such a ledger, so this module
//! opens it. It sets the snapshots aside only when the ledger has the record.

use std::path::Path;
use std::sync::Arc;

use review::{Event, LedgerAccepted};
use spool::{Digest, Os, Spool};
use workspace::clock::Clock;

use super::{Mailroom, MailroomError};

/// Accepts the ledger that ends with `head`, records who did it and why, and returns the record's number.
pub fn accept(root: &Path, head: Digest, by: String, reason: String) -> Result<u64, MailroomError> {
    let (mut mailroom, recovery) = Mailroom::open_by(root, None, Arc::default(), |index| {
        Spool::accept(root, Arc::new(Os), head, index)
    })?;
    let event = Event::LedgerAccepted(LedgerAccepted {
        by,
        reason,
        head: head.to_string(),
    });
    mailroom.record_event(&event, None, Clock::start().read())?;
    mailroom.spool.set_snapshots_aside()?;
    mailroom.close();
    Ok(recovery.records + 1)
}
