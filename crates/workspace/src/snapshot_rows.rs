//! Reads the rows of a snapshot for the tables of an index. If a row fails its checksum, all rows are rebuilt from the
//! records, once, in memory.

use std::sync::{Arc, OnceLock};

use review::{RowKey, StoredRows};
use spool::{Fold as _, Rows};

use crate::index::LedgerIndex;

/// The rows, and the index of the records that replaces damaged rows.
#[derive(Debug)]
pub(crate) struct SnapshotRows {
    rows: Arc<Rows>,
    of_records: OnceLock<Box<LedgerIndex>>,
}

impl SnapshotRows {
    pub(crate) fn new(rows: Arc<Rows>) -> Self {
        Self {
            rows,
            of_records: OnceLock::new(),
        }
    }

    /// Reads the records up to the snapshot's last. Panics if they cannot be read: nothing else has the rows.
    fn read_records(&self) -> Box<LedgerIndex> {
        let mut index = Box::new(LedgerIndex::default());
        let read = spool::read_ledger_to(self.rows.root(), self.rows.seq(), &mut |entry| {
            index.add(entry)
        });
        read.expect("a snapshot that is damaged has its records");
        index
    }
}

impl StoredRows for SnapshotRows {
    fn visit(&self, prefix: &[u8], visit: &mut dyn FnMut(RowKey, &[u8])) {
        let mut found = Vec::new();
        let read = self
            .rows
            .visit(prefix, &mut |key, value| found.push((key, value.to_vec())));
        if read.is_ok() && self.of_records.get().is_none() {
            found
                .iter()
                .for_each(|(key, value)| visit(*key, value.as_slice()));
            return;
        }
        let index = self.of_records.get_or_init(|| self.read_records());
        let rows = index.new_rows();
        let first = rows.partition_point(|(key, _)| key[..prefix.len()] < *prefix);
        let wanted = rows[first..]
            .iter()
            .take_while(|(key, _)| key.starts_with(prefix));
        wanted.for_each(|(key, value)| visit(*key, value));
    }
}
