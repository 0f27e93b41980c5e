//! Remembers every delivery to an inbox as a hash, to tell delivered mail from files that no record made.

use std::sync::Arc;

use review::{RowKey, StoredRows, Table};
use spool::{Content, Delivery, Digest, Entry, Mailbox};

/// The hashes of recipient and bytes of every file delivered to an inbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KnownDeliveries(Table<b'k'>);

impl KnownDeliveries {
    /// Adds the deliveries of an entry.
    pub fn note(&mut self, entry: &Entry) {
        let row = |delivery: &Delivery| {
            let Mailbox::Inbox(agent) = &delivery.mailbox else {
                return None;
            };
            Some(row_of(agent, &digest(entry, &delivery.content)?))
        };
        let rows = entry.deliveries.iter().filter_map(row);
        rows.for_each(|row| self.0.put(row, []));
    }

    /// True if the ledger delivered these bytes to that inbox.
    pub fn contains(&self, agent: &str, digest: &Digest) -> bool {
        self.0.has(&row_of(agent, digest))
    }

    /// The new rows, for a snapshot.
    pub(crate) fn new_rows(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        self.0.new_rows()
    }

    /// Notes that a snapshot has begun.
    pub fn begin_snapshot(&mut self) {
        self.0.begin_snapshot();
    }

    /// Notes that the snapshot failed.
    pub fn give_up_snapshot(&mut self) {
        self.0.give_up_snapshot();
    }

    /// Notes that the snapshot succeeded, and reads its rows from now on.
    pub fn rest_on(&mut self, stored: &Arc<dyn StoredRows>) {
        self.0.rest_on(Arc::clone(stored));
    }
}

fn digest(entry: &Entry, content: &Content) -> Option<Digest> {
    match content {
        Content::Original => entry.original.as_ref()?.digest,
        Content::Text(text) => Some(Digest::of(text.as_bytes())),
        Content::Withdrawn(_) => None,
    }
}

/// The key of a row. Snapshots keep it, so it must be the same in every build.
fn row_of(agent: &str, digest: &Digest) -> RowKey {
    Table::<b'k'>::key(&[agent.as_bytes(), &digest.bytes()])
}
