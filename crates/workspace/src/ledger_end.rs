//! Searches the ledger from its end: what somebody asks about is usually in the newest records, and there may be a
//! million older ones.

use std::path::Path;

use spool::{Since, SpoolError, Tail};

/// The number of last records to search first; reading them takes a few milliseconds.
pub const RECORDS_AT_FIRST: u64 = 900;

/// Each further search reads this many times as many records, so all together cost little more than the last.
const READ_AGAIN_TIMES: u64 = 8;

/// Calls `look` with the last `records` of the ledger, then with more and more of them, until it finds something or has
/// seen all. Fails if the ledger cannot be read.
pub fn search<T>(
    root: &Path,
    mut records: u64,
    mut look: impl FnMut(&mut Tail, Searched) -> Result<Option<T>, SpoolError>,
) -> Result<Option<T>, SpoolError> {
    let end = Tail::open(root, Since::End)?.seq();
    loop {
        let (since, searched) = match end.saturating_sub(records) {
            0 => (Since::Beginning, Searched::All),
            before => (Since::Record(before), Searched::End),
        };
        let found = look(&mut Tail::open(root, since)?, searched)?;
        if found.is_some() || searched == Searched::All {
            return Ok(found);
        }
        records = records.saturating_mul(READ_AGAIN_TIMES);
    }
}

/// The part of the ledger that a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The last records.
    End,
    /// The whole ledger.
    All,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spool::{EntryDraft, Os, Spool};

    use super::*;

    fn draft() -> EntryDraft {
        EntryDraft {
            at: "2026-02-13T10:00:00.000Z".to_owned(),
            kind: "accepted".to_owned(),
            rules: 1,
            review: None,
            id: None,
            original: None,
            deliveries: Vec::new(),
            decision: serde_json::value::to_raw_value(&()).expect("JSON"),
        }
    }

    #[test]
    fn a_search_reads_no_more_than_eight_times_what_it_needs_and_ends_with_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        crate::directory::init(root, &[]).expect("a workspace");
        let opened = Spool::open(root, Arc::new(Os), &mut |_| Ok(())).expect("a spool");
        let mut spool = opened.spool;
        let drafts = std::iter::repeat_with(draft).take(100).collect();
        spool.commit(spool.next_seq(), drafts).expect("a commit");
        for (wanted, windows) in [
            (100, &[1][..]),
            (99, &[1, 8]),
            (30, &[1, 8, 64, 100]),
            (101, &[1, 8, 64, 100]),
        ] {
            let mut seen = Vec::new();
            let found = search(root, 1, |tail, searched| {
                let mut found = None;
                let count = tail.read(&mut |entry| {
                    found = found.or((entry.seq == wanted).then_some(entry.seq));
                    Ok(())
                })?;
                seen.push(count);
                assert_eq!(searched == Searched::All, count == 100);
                Ok(found)
            });
            assert_eq!(found.expect("a ledger"), (wanted <= 100).then_some(wanted));
            assert_eq!(seen, windows, "for record {wanted}");
        }
    }
}
