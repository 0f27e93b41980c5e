//! The result of checking the whole ledger.

use inspect::ledger::{LedgerCheck, WrongRecord};
use serde::Serialize;
use spool::Agreement;

/// The result of a check. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub struct LedgerView {
    records: u64,
    segments: usize,
    bytes: u64,
    /// The digest of the last record's line. Kept elsewhere, it proves later that no record up to it was changed.
    last: String,
    snapshots: Vec<Snapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<WrongRecord>,
}

/// The result of comparing a snapshot with the records.
#[derive(Debug, Serialize)]
struct Snapshot {
    /// The last record it covers.
    at: u64,
    agrees: bool,
    summary: String,
}

impl Snapshot {
    fn of(at: u64, agreement: &Agreement) -> Self {
        let summary = match agreement {
            Agreement::Agrees => "agrees with the records".to_owned(),
            Agreement::Differs => "contradicts the records".to_owned(),
            Agreement::Contradicts(what) => format!("was made from other records: {what}"),
            Agreement::PassedOver(why) => format!("is skipped: {why}"),
        };
        Self {
            at,
            agrees: *agreement == Agreement::Agrees,
            summary,
        }
    }
}

impl LedgerView {
    /// Makes the view of a check's result.
    pub fn of(check: &LedgerCheck) -> Self {
        let LedgerCheck {
            verified,
            snapshots,
            wrong,
        } = check;
        Self {
            records: verified.records,
            segments: verified.segments,
            bytes: verified.bytes,
            last: verified.last.to_string(),
            snapshots: snapshots
                .iter()
                .map(|(seq, agreement)| Snapshot::of(*seq, agreement))
                .collect(),
            wrong: wrong.clone(),
        }
    }

    /// Formats the result for people.
    pub fn text(&self) -> String {
        let Self {
            records,
            segments,
            last,
            snapshots,
            wrong,
            ..
        } = self;
        let begin = if wrong.is_none() { "ok" } else { "chained" };
        let text =
            format!("{begin}: {records} records in {segments} segments, the last is {last}\n");
        snapshots
            .iter()
            .fold(text, |text, Snapshot { at, summary, .. }| {
                text + &format!("the snapshot at {at} {summary}\n")
            })
    }
}
