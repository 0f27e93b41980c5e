//! The hosts that share the ledger, as people and programs read them.

use chrono::{DateTime, Utc};
use fleet::{Fleet, Member};
use message_schema::id::AgentName;
use serde::Serialize;
use spool::HostName;

/// One host. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// Whether it is the one that was asked.
    pub is_this: bool,
    /// The agents at home there.
    pub agents: Vec<AgentName>,
    /// Its version of settled when it joined.
    pub version: String,
    /// Its public key.
    pub key: String,
    /// Whether that key is retired.
    pub is_retired: bool,
    /// The number of its last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_record: Option<u64>,
    /// When it judged that record, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<DateTime<Utc>>,
}

/// All hosts, by name; none where the workspace has one.
pub fn rows(fleet: &Fleet, this: Option<&HostName>) -> Vec<HostRow> {
    let row = |(name, member): (&HostName, &Member)| HostRow {
        name: name.to_string(),
        is_this: this == Some(name),
        agents: fleet.at_home(name).cloned().collect(),
        version: member.version.clone(),
        key: member.key.clone(),
        is_retired: member.is_retired,
        last_record: member.last_record.map(|(seq, _)| seq),
        last_at: member.last_record.map(|(_, at)| at),
    };
    fleet.members().map(row).collect()
}
