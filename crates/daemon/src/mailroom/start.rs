//! Reads the ledger at the start, and logs the progress if that takes seconds.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use chrono::DateTime;
use spool::log::Head;
use spool::{Entry, Fold, RowKey, Rows, Since, SpoolError, Tail, VisitError};
use workspace::index::LedgerIndex;

use crate::shared_ledger::{LastRecord, PAST_MAX, PastHeads};

/// The pause between two progress lines. A shorter start logs none.
const PAUSE: Duration = Duration::from_secs(2);

/// The number of records and lines between two looks at the clock.
const STEPS: u64 = 256;

/// The index, and when its progress was last logged.
pub(super) struct StartFold {
    pub(super) index: LedgerIndex,
    lines: u64,
    next: Instant,
    /// The last ends of the ledger before a record, once [`Self::last_record`] has read them.
    pub(super) past: PastHeads,
    interrupt: Arc<AtomicBool>,
}

impl StartFold {
    pub(super) fn new(interrupt: Arc<AtomicBool>) -> Self {
        Self {
            index: LedgerIndex::default(),
            lines: 0,
            next: Instant::now() + PAUSE,
            past: PastHeads::default(),
            interrupt,
        }
    }

    /// Reads from the ledger's last record, number `seq`, what limits later records, and from the end of the ledger as
    /// many records as others' histories are compared with.
    pub(super) fn last_record(&mut self, root: &Path, seq: u64) -> Result<LastRecord, SpoolError> {
        let mut last = LastRecord::default();
        let end = Since::Record(seq.saturating_sub(PAST_MAX as u64));
        Tail::open(root, end)?.read(&mut |entry| {
            last = of_entry(entry)?;
            self.past.note(before(entry));
            Ok(())
        })?;
        Ok(last)
    }
}

/// The end of the ledger before a record.
fn before(entry: &Entry) -> Head {
    Head {
        seq: entry.seq - 1,
        digest: entry.prev,
    }
}

fn of_entry(entry: &Entry) -> Result<LastRecord, VisitError> {
    Ok(LastRecord {
        at: DateTime::parse_from_rfc3339(&entry.at)?.to_utc(),
        names_host: entry.host.is_some(),
    })
}

impl Fold for StartFold {
    fn form(&self) -> String {
        self.index.form()
    }

    fn clear(&mut self) {
        self.index.clear();
    }

    fn add(&mut self, entry: &Entry) -> Result<(), VisitError> {
        if is_due(entry.seq, &mut self.next) {
            tracing::info!(
                "still starting: reading the ledger, {} records so far",
                entry.seq
            );
        }
        self.index.add(entry)
    }

    fn save(&self, line: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.index.save(line)
    }

    fn new_rows(&self) -> Vec<(RowKey, &[u8])> {
        self.index.new_rows()
    }

    fn is_removal(&self, key: &RowKey, value: &[u8]) -> bool {
        self.index.is_removal(key, value)
    }

    fn rest_on(&mut self, rows: &Arc<Rows>) {
        self.index.rest_on(rows);
    }

    fn restore(
        &mut self,
        lines: &mut dyn Iterator<Item = Vec<u8>>,
        rows: &Arc<Rows>,
    ) -> Result<(), VisitError> {
        let (read, next) = (&mut self.lines, &mut self.next);
        let mut told = lines.inspect(|_| {
            *read += 1;
            if is_due(*read, next) {
                tracing::info!("still starting: reading a snapshot, {read} lines so far");
            }
        });
        self.index.restore(&mut told, rows)
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }
}

fn is_due(step: u64, next: &mut Instant) -> bool {
    let is_due = step.is_multiple_of(STEPS) && Instant::now() >= *next;
    if is_due {
        *next = Instant::now() + PAUSE;
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_start_are_those_of_its_index() {
        let fold = StartFold::new(Arc::default());
        assert_eq!(fold.new_rows(), []);
        let key_of = |kind: u8| {
            let mut key = RowKey::default();
            key[0] = kind;
            key
        };
        for (kind, value, is_removal) in [
            (b'w', &b""[..], true),
            (b'w', b"{}", false),
            (b'n', b"", false),
        ] {
            assert_eq!(fold.is_removal(&key_of(kind), value), is_removal);
        }
    }
}
