//! The ledger added up: from entries to the state of every review, the names that are used, and the
//! requests that wait to be taken.

use chrono::{DateTime, Utc};
use review::{Record, State};
use spool::Entry;

use crate::names::NameBook;
use crate::unproven::Proofs;
use crate::untaken::Untaken;

/// Everything the daemon knows from the ledger.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Where every review stands.
    pub(crate) state: State,
    /// The names used in every mailbox.
    pub(crate) names: NameBook,
    /// The requests nobody has taken yet.
    pub(crate) untaken: Untaken,
    /// What was delivered to every inbox.
    pub(crate) proofs: Proofs,
}

impl Books {
    /// Adds one entry.
    pub(crate) fn add(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        let (record, at) = decision(entry)?;
        self.names.note(entry);
        self.proofs.note(entry);
        self.untaken.note(entry, &record);
        review::apply(&mut self.state, &record, at);
        Ok(())
    }
}

/// A ledger line whose chain is whole but whose decision this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("ledger record {seq}: {what} is not readable by this version of settled")]
pub struct Unreadable {
    /// The record's number.
    pub seq: u64,
    /// Which part.
    pub what: &'static str,
    /// Why.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Reads what an entry decided, and when.
pub fn decision(entry: &Entry) -> Result<(Record, DateTime<Utc>), Unreadable> {
    let unreadable = |what, source| Unreadable { seq: entry.seq, what, source };
    let record = serde_json::from_str(entry.decision.get())
        .map_err(|error| unreadable("the decision", Box::new(error).into()))?;
    let at = DateTime::parse_from_rfc3339(&entry.at)
        .map_err(|error| unreadable("the time", Box::new(error).into()))?;
    Ok((record, at.to_utc()))
}

/// Adds one entry to the state alone.
pub fn fold(state: &mut State, entry: &Entry) -> Result<(), Unreadable> {
    let (record, at) = decision(entry)?;
    review::apply(state, &record, at);
    Ok(())
}
