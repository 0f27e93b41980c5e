//! Reads `[ledger]`: the size of a segment, and how often the ledger gets a snapshot.

use serde::{Deserialize, Deserializer};

use super::field;

/// `[ledger]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LedgerSection {
    /// A segment of this many MiB is followed by a new one: 1 to 4096.
    #[serde(deserialize_with = "segment_mib")]
    pub segment_mib: u64,
    /// A snapshot is made at a quiet moment after this many records: 1 to 1 000 000.
    #[serde(deserialize_with = "snapshot_records")]
    pub snapshot_records: u64,
}

impl Default for LedgerSection {
    fn default() -> Self {
        Self {
            segment_mib: 64,
            snapshot_records: 20_000,
        }
    }
}

fn segment_mib<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "ledger.segment_mib", 1..=4096)
}

fn snapshot_records<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "ledger.snapshot_records", 1..=1_000_000)
}
