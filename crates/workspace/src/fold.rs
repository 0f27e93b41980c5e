//! The ledger added up: from entries to the state of every review, the names that are used, and the
//! requests that wait to be taken; and the same as lines, which snapshots keep.

use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use judgement::UsedNames;
use review::{Record, Restore, ReviewKey, State};
use spool::{Entry, Fold, Folded, SpoolError, VisitError};

use crate::proofs::Proofs;
use crate::untaken::{Delivered, Untaken};

/// The form of the lines below, and of all they are made of, to be raised with every change in it or
/// in how a record is added up. `tests/it/ledgers.rs` of the daemon fails where that was forgotten.
const FORM: u32 = 2;

/// How many names stand in one line.
const NAMES_PER_LINE: usize = 1024;

/// Everything the daemon knows from the ledger.
#[derive(Debug, Default, PartialEq)]
pub struct Books {
    /// Where every review stands.
    pub state: State,
    /// The names used in every mailbox.
    pub names: UsedNames,
    /// The requests nobody has taken yet.
    pub untaken: Untaken,
    /// What was delivered to every inbox.
    pub proofs: Proofs,
    /// How many messages were refused.
    refused: u64,
}

impl Books {
    /// How things stand in a workspace: its ledger added up from the newest snapshot on, without the lock.
    pub fn read(root: &Path) -> Result<(Self, Folded), SpoolError> {
        let mut books = Self::default();
        let folded = spool::fold_ledger(root, &mut books)?;
        Ok((books, folded))
    }

    /// Where every review stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many messages were refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Fold for Books {
    /// Other builds may add up otherwise, so a snapshot is for the version that made it.
    fn form(&self) -> String {
        format!("settled {} {FORM}", env!("CARGO_PKG_VERSION"))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        let (record, at) = decision(entry)?;
        self.names.note(entry);
        self.proofs.note(entry);
        self.untaken.note(entry, &record);
        self.refused += u64::from(record.refused().is_some());
        review::apply(&mut self.state, &record, at);
        Ok(())
    }

    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let Self {
            state,
            names,
            untaken,
            proofs,
            refused,
        } = self;
        let mut tell = |word: &str, json: &[u8]| line(&[word.as_bytes(), b" ", json].concat());
        state.write_lines(&mut |json| tell(STATE, json))?;
        for hashes in names.hashes().chunks(NAMES_PER_LINE) {
            tell(NAMES, &serde_json::to_vec(hashes)?)?;
        }
        for hashes in proofs.hashes().chunks(NAMES_PER_LINE) {
            tell(PROOFS, &serde_json::to_vec(hashes)?)?;
        }
        for waiting in untaken.iter() {
            tell(UNTAKEN, &serde_json::to_vec(&waiting)?)?;
        }
        tell(REFUSED, &serde_json::to_vec(refused)?)
    }

    fn restore(&mut self, lines: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), VisitError> {
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
                Ok(NAMES) => self.names.extend(serde_json::from_slice::<Vec<u64>>(json)?),
                Ok(PROOFS) => self
                    .proofs
                    .extend(serde_json::from_slice::<Vec<u64>>(json)?),
                Ok(UNTAKEN) => {
                    let (review, delivered): (ReviewKey, Vec<Delivered>) =
                        serde_json::from_slice(json)?;
                    self.untaken.restore(review, delivered);
                }
                Ok(REFUSED) => self.refused = serde_json::from_slice(json)?,
                Ok(_) | Err(_) => return Err("a line is of no kind this version writes".into()),
            }
        }
        self.state = state.into_state();
        Ok(())
    }
}

/// What the lines begin with.
const STATE: &str = "state";
const NAMES: &str = "names";
const PROOFS: &str = "proofs";
const UNTAKEN: &str = "untaken";
const REFUSED: &str = "refused";

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

/// Adds one entry to the state alone.
pub fn fold(state: &mut State, entry: &Entry) -> Result<(), Unreadable> {
    let (record, at) = decision(entry)?;
    review::apply(state, &record, at);
    Ok(())
}
