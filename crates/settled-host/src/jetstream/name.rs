//! The names that NATS has for a ledger.

/// The name of a ledger: its workspace, and the stream that many workspaces share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerName {
    /// The name of the workspace.
    pub workspace: String,
    /// The stream's name after `SETTLED_`.
    pub shard: String,
}

impl LedgerName {
    /// The stream's name.
    pub fn stream(&self) -> String {
        format!("SETTLED_{}", self.shard)
    }

    /// The workspace's subject.
    pub fn subject(&self) -> String {
        format!("led.{}.{}", self.shard, self.workspace)
    }

    /// The subject of the hosts' heartbeats, which no stream stores.
    pub fn heartbeats(&self) -> String {
        format!("beat.{}.{}", self.shard, self.workspace)
    }
}
