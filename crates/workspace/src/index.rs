//! Folds the ledger into an index: the state of every review, the used file names, the untaken requests and the newest
//! refusals. Writes the index as the lines and rows of a snapshot and restores it from them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use fleet::{Fleet, FleetRefusal};
use judgement::UsedNames;
use review::{Event, EventRecord, HostChange, Record, Restore, ReviewKey, State, StoredRows};
use spool::{Entry, Fold, Folded, RowKey, Rows, SpoolError, VisitError};

use crate::known_deliveries::KnownDeliveries;
use crate::refusals::{Refusal, Refusals};
use crate::snapshot_rows::SnapshotRows;
use crate::untaken_requests::{Delivered, UntakenRequests};

/// The version of the snapshot lines below and everything in them. Raise it with every change to a line or to how a
/// record is folded; `crates/daemon/tests/it/ledgers.rs` fails if you forget.
const FORM: u32 = 13;

/// Everything the daemon derives from the ledger.
#[derive(Debug, Default, PartialEq)]
pub struct LedgerIndex {
    /// The state of every review.
    pub state: State,
    /// The file names used in every mailbox.
    pub names: UsedNames,
    /// The requests no reviewer has taken yet.
    pub untaken: UntakenRequests,
    /// The deliveries to every inbox.
    pub known_deliveries: KnownDeliveries,
    /// The hosts that share the ledger; none if there is only one host.
    pub fleet: Fleet,
    /// The newest refusals of each agent.
    pub refusals: Refusals,
    /// The number of refused messages.
    refused: u64,
}

impl LedgerIndex {
    /// Reads a workspace's ledger from its newest snapshot, without the lock.
    pub fn read(root: &Path) -> Result<(Self, Folded), SpoolError> {
        let mut index = Self::default();
        let folded = spool::fold_ledger(root, &mut index)?;
        Ok((index, folded))
    }

    /// The state of every review.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The number of refused messages.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Fold for LedgerIndex {
    /// Another version may fold differently, so it does not restore the snapshots of this one.
    fn form(&self) -> String {
        format!("settled {} {FORM}", env!("CARGO_PKG_VERSION"))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        let (record, at) = decision(entry)?;
        self.names.note(entry);
        self.known_deliveries.note(entry);
        self.untaken.note(entry, &record);
        self.refusals.note(entry, &record, at);
        self.refused += u64::from(record.refused().is_some());
        fold_hosts(&mut self.fleet, entry, &record, at)?;
        review::apply(&mut self.state, &record, at);
        Ok(())
    }

    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let Self {
            state,
            names: _,
            untaken,
            known_deliveries: _,
            fleet,
            refusals,
            refused,
        } = self;
        let mut write = |word: &str, json: &[u8]| line(&[word.as_bytes(), b" ", json].concat());
        state.write_lines(&mut |json| write(STATE, json))?;
        for waiting in untaken.iter() {
            write(UNTAKEN, &serde_json::to_vec(&waiting)?)?;
        }
        if !fleet.is_empty() {
            write(FLEET, &serde_json::to_vec(fleet)?)?;
        }
        for refusal in refusals.iter() {
            write(REFUSAL, &serde_json::to_vec(&refusal)?)?;
        }
        write(REFUSED, &serde_json::to_vec(refused)?)
    }

    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        in_order(
            (self.state.new_rows())
                .chain(self.names.new_rows())
                .chain(self.known_deliveries.new_rows())
                .collect(),
        )
    }

    fn is_removal(&self, key: &RowKey, value: &[u8]) -> bool {
        review::is_removal_of_review(key, value)
    }

    fn rest_on(&mut self, rows: &Arc<Rows>) {
        let stored = stored_rows(rows);
        self.state.rest_on(&stored);
        self.names.rest_on(&stored);
        self.known_deliveries.rest_on(&stored);
    }

    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        rows: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        self.clear();
        let mut state = Restore::default();
        for line in lines {
            let space = line
                .iter()
                .position(|byte| *byte == b' ')
                .unwrap_or(line.len());
            let (word, json) = line.split_at(space);
            match std::str::from_utf8(word) {
                Ok(STATE) => state.take(json)?,
                Ok(UNTAKEN) => {
                    let (review, delivered): (ReviewKey, Vec<Delivered>) =
                        serde_json::from_slice(json)?;
                    self.untaken.restore(review, delivered);
                }
                Ok(FLEET) => self.fleet = serde_json::from_slice(json)?,
                Ok(REFUSAL) => {
                    let (outbox, refusal): (String, Refusal) = serde_json::from_slice(json)?;
                    self.refusals.remember(outbox, refusal);
                }
                Ok(REFUSED) => self.refused = serde_json::from_slice(json)?,
                Ok(_) | Err(_) => return Err("this version writes no such line".into()),
            }
        }
        self.state = state.into_state();
        self.rest_on(rows);
        Ok(())
    }
}

/// Sorts the rows by key. A start without a snapshot sorts a million at a time, so they are first distributed by kind
/// and the first byte of the hash: each part then fits into a core's cache.
fn in_order(rows: Vec<(RowKey, &[u8])>) -> Vec<(RowKey, &[u8])> {
    let lot = |key: &RowKey| usize::from(u16::from_be_bytes([key[0], key[1]]));
    let mut ends = vec![0; 1 << 16];
    rows.iter().for_each(|(key, _)| ends[lot(key)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut sorted: Vec<(RowKey, &[u8])> = vec![([0; size_of::<RowKey>()], &[]); rows.len()];
    let mut begins = ends.clone();
    for row in rows {
        let at = &mut begins[lot(&row.0)];
        *at -= 1;
        sorted[*at] = row;
    }
    for (begin, end) in begins.into_iter().zip(ends) {
        sorted[begin..end].sort_unstable_by_key(|(key, _)| *key);
    }
    sorted
}

/// The rows of a snapshot, for use by tables.
pub fn stored_rows(rows: &Arc<Rows>) -> Arc<dyn StoredRows> {
    Arc::new(SnapshotRows::new(Arc::clone(rows)))
}

/// The first word of each snapshot line.
const STATE: &str = "state";
const UNTAKEN: &str = "untaken";
const FLEET: &str = "fleet";
const REFUSAL: &str = "refusal";
const REFUSED: &str = "refused";

/// Folds what a record says about hosts. No host takes over a change that the fleet refuses.
pub fn fold_hosts(
    fleet: &mut Fleet,
    entry: &Entry,
    record: &Record,
    at: DateTime<Utc>,
) -> Result<(), FleetRefusal> {
    let Some(host) = &entry.host else {
        return Ok(());
    };
    if let Some(change) = host_change(record) {
        fleet.change(change, host)?;
    }
    fleet.note(host, entry.seq, at);
    Ok(())
}

/// The change of hosts in a record, if there is one.
pub fn host_change(record: &Record) -> Option<&HostChange> {
    match record {
        Record::Event(EventRecord::Happened(happened)) => {
            if let Event::Host(change) = &happened.event {
                Some(change)
            } else {
                None
            }
        }
        Record::Event(EventRecord::Declined(_)) | Record::Judged(_) => None,
    }
}

/// A record in an unbroken chain whose decision this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("ledger record {seq}: {what} is not readable by this version of settled")]
pub struct Unreadable {
    /// The record's number.
    pub seq: u64,
    /// The part that cannot be read.
    pub what: &'static str,
    /// The cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Reads an entry's decision and time.
pub fn decision(entry: &Entry) -> Result<(Record, DateTime<Utc>), Unreadable> {
    let unreadable = |what, source| Unreadable {
        seq: entry.seq,
        what,
        source,
    };
    let record = serde_json::from_str(entry.decision.get())
        .map_err(|error| unreadable("the decision", Box::new(error).into()))?;
    let at = DateTime::parse_from_rfc3339(&entry.at)
        .map_err(|error| unreadable("the time", Box::new(error).into()))?;
    Ok((record, at.to_utc()))
}

/// Applies one entry to the state only.
pub fn apply(state: &mut State, entry: &Entry) -> Result<(), Unreadable> {
    let (record, at) = decision(entry)?;
    review::apply(state, &record, at);
    Ok(())
}

#[cfg(test)]
mod tests;
