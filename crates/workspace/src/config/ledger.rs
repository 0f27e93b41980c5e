//! Reads `[ledger]`: the size of a segment, the frequency of snapshots, and the address of a ledger that hosts share.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use spool::HostName;

use super::field;

/// `[ledger]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LedgerSection {
    /// The size in MiB at which a new segment begins: 1 to 4096.
    #[serde(deserialize_with = "segment_mib")]
    pub segment_mib: u64,
    /// The number of records after which a snapshot is made at a quiet moment: 1 to 1 000 000.
    #[serde(deserialize_with = "snapshot_records")]
    pub snapshot_records: u64,
    /// The address of the shared log: brokers or a git repository; none if the workspace has one host.
    #[serde(deserialize_with = "log")]
    pub log: Option<String>,
    /// The workspace's name in the shared log.
    #[serde(deserialize_with = "workspace")]
    pub workspace: Option<String>,
    /// This host's name in the shared log.
    #[serde(deserialize_with = "host")]
    pub host: Option<HostName>,
}

/// The address of the shared log and the names that this host uses there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLog {
    /// The addresses of brokers, or of a git repository.
    pub log: String,
    /// The workspace's name in the log.
    pub workspace: String,
    /// This host's name in the log.
    pub host: HostName,
}

impl LedgerSection {
    /// Returns the size in bytes at which a new segment begins.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_mib * 1024 * 1024
    }

    /// Returns the settings of the shared log if several hosts share the ledger; the error names a missing key.
    pub fn shared(&self) -> Result<Option<SharedLog>, &'static str> {
        let Some(log) = self.log.clone() else {
            return Ok(None);
        };
        Ok(Some(SharedLog {
            log,
            workspace: self.workspace.clone().ok_or("ledger.workspace")?,
            host: self.host.clone().ok_or("ledger.host")?,
        }))
    }
}

/// True if a workspace name is valid in every kind of log, where it becomes part of a subject or a ref.
pub fn is_workspace_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

impl Default for LedgerSection {
    fn default() -> Self {
        Self {
            segment_mib: 64,
            snapshot_records: 1_000,
            log: None,
            workspace: None,
            host: None,
        }
    }
}

fn segment_mib<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "ledger.segment_mib", 1..=4096)
}

fn snapshot_records<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    field::within(deserializer, "ledger.snapshot_records", 1..=1_000_000)
}

fn log<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let expected = "addresses of brokers or a git repository";
    let log = field::text(deserializer, "ledger.log", expected)?;
    Ok(Some(log).filter(|log| !log.trim().is_empty()))
}

fn workspace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let expected = "1 to 64 letters, digits, `-` or `_`";
    let name = field::text(deserializer, "ledger.workspace", expected)?;
    if name.is_empty() {
        Ok(None)
    } else if is_workspace_name(&name) {
        Ok(Some(name))
    } else {
        let what = format!("ledger.workspace is \"{name}\", expected {expected}");
        Err(D::Error::custom(what))
    }
}

fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HostName>, D::Error> {
    let name = field::text(deserializer, "ledger.host", "the name of a host")?;
    if name.is_empty() {
        return Ok(None);
    }
    let host = name.parse();
    host.map(Some)
        .map_err(|error| D::Error::custom(format!("ledger.host is \"{name}\": {error}")))
}
