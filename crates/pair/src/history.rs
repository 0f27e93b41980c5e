//! Reads everything that the ledger has about a pair.

use std::path::Path;

use review::{Event, PairId, PairStatus, PairStep};
use spool::SpoolError;
use workspace::index;

/// A step of a pair, as recorded.
#[derive(Debug)]
pub struct Past {
    /// The record's number.
    pub seq: u64,
    /// The time of the record.
    pub at: String,
    /// The step.
    pub step: PairStep,
    /// The pair's state after the step.
    pub status: PairStatus,
}

/// Reads the steps of a pair, oldest first: the one with this id or, without an id, the one opened last. Returns none
/// if there is no such pair.
pub fn of(root: &Path, id: Option<&PairId>) -> Result<Option<(PairId, Vec<Past>)>, SpoolError> {
    let mut found: Option<(PairId, Vec<Past>)> = None;
    spool::read_ledger(root, &mut |entry| {
        let (record, _) = index::decision(entry)?;
        let Some(happened) = record.happened() else {
            return Ok(());
        };
        let (Event::Pair(news), Some(status)) = (&happened.event, happened.pair) else {
            return Ok(());
        };
        let is_new =
            matches!(news.what, PairStep::Opened(_)) && id.is_none_or(|id| *id == news.pair);
        if is_new {
            found = Some((news.pair.clone(), Vec::new()));
        }
        if let Some((pair, past)) = &mut found
            && *pair == news.pair
        {
            past.push(Past {
                seq: entry.seq,
                at: entry.at.clone(),
                step: news.what.clone(),
                status,
            });
        }
        Ok(())
    })?;
    Ok(found)
}
