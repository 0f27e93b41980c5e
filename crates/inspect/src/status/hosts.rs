//! The hosts that share the ledger, for people and programs.

use chrono::{DateTime, TimeDelta, Utc};
use fleet::{Fleet, Member};
use message_schema::id::AgentName;
use serde::Serialize;
use spool::HostName;
use workspace::clock;
use workspace::heartbeat::{self, HeardHost};

/// One host that shares the ledger. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// True for the host that gives this answer.
    pub is_this: bool,
    /// The agents that live there.
    pub agents: Vec<AgentName>,
    /// Its version of settled when it joined.
    pub version: String,
    /// Its public key.
    pub key: String,
    /// True if that key is retired.
    pub is_retired: bool,
    /// The number of its last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_record: Option<u64>,
    /// The time of that record, by the host's own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<DateTime<Utc>>,
    /// The last heartbeat of it that this host's daemon received. A log without heartbeats has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<LastHeard>,
}

/// The last heartbeat of a host. Fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastHeard {
    /// The time, by this host's clock.
    pub at: DateTime<Utc>,
    /// The version of settled that ran there.
    pub version: String,
    /// Its progress with the shared ledger: `in_step`, `waiting`, `frozen` or `stopped`.
    pub state: String,
    /// The number of records that its ledger was behind this host's.
    pub behind: u64,
    /// The lead of its clock over this host's, in milliseconds; negative if it was behind.
    pub clock_ahead_ms: i64,
}

impl LastHeard {
    /// True if the host has been silent for longer than a lost heartbeat explains: it sleeps, is off, or is cut off.
    pub fn is_silent(&self, now: DateTime<Utc>) -> bool {
        now - self.at > heartbeat::SILENT
    }

    /// Formats the offset of its clock, to a tenth of a second.
    pub fn clock(&self) -> String {
        // Round before choosing the sign, so that there is no negative zero.
        let tenths = (self.clock_ahead_ms + 50 * self.clock_ahead_ms.signum()) / 100;
        let sign = if tenths < 0 { '-' } else { '+' };
        let tenths = tenths.abs();
        format!("{sign}{}.{} s", tenths / 10, tenths % 10)
    }

    /// Describes the host in a few words: its silence, or else each deviation.
    pub fn describe(&self, now: DateTime<Utc>) -> String {
        let ago = clock::span((now - self.at).max(TimeDelta::zero()));
        if self.is_silent(now) {
            return format!("silent for {ago}");
        }
        let mut said = format!("heard {ago} ago");
        if self.state != "in_step" {
            said += &format!(", {}", self.state);
        }
        if self.behind > 0 {
            said += &format!(", {} records behind", self.behind);
        }
        if self.clock_ahead_ms.abs() > heartbeat::CLOCKS_APART_MAX.num_milliseconds() {
            said += &format!(", clock {}", self.clock());
        }
        if self.version != env!("CARGO_PKG_VERSION") {
            said += &format!(", version {}", self.version);
        }
        said
    }
}

impl From<&HeardHost> for LastHeard {
    fn from(heard: &HeardHost) -> Self {
        Self {
            at: heard.heard_at,
            version: heard.state.version.clone(),
            state: heard.state.state.clone(),
            behind: heard.behind,
            clock_ahead_ms: heard.clock_ahead().num_milliseconds(),
        }
    }
}

/// Lists all hosts by name; empty where the ledger is not shared.
pub fn rows(fleet: &Fleet, this: Option<&HostName>, heard: &[HeardHost]) -> Vec<HostRow> {
    let row = |(name, member): (&HostName, &Member)| HostRow {
        name: name.to_string(),
        is_this: this == Some(name),
        agents: fleet.at_home(name).cloned().collect(),
        version: member.version.clone(),
        key: member.key.clone(),
        is_retired: member.is_retired,
        last_record: member.last_record.map(|(seq, _)| seq),
        last_at: member.last_record.map(|(_, at)| at),
        heard: heard
            .iter()
            .find(|heard| heard.state.host == *name && this != Some(name))
            .map(LastHeard::from),
    };
    fleet.members().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_said_first_and_then_what_is_not_as_it_should_be() {
        let heard = |state: &str, behind, clock_ahead_ms| LastHeard {
            at: DateTime::UNIX_EPOCH,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: state.to_owned(),
            behind,
            clock_ahead_ms,
        };
        let said = |heard: LastHeard, after| {
            heard.describe(DateTime::UNIX_EPOCH + TimeDelta::seconds(after))
        };
        assert_eq!(said(heard("in_step", 0, -49), 3), "heard 3 s ago");
        assert_eq!(
            said(heard("waiting", 12, -5_040), 3),
            "heard 3 s ago, waiting, 12 records behind, clock -5.0 s"
        );
        assert_eq!(said(heard("in_step", 12, 0), 240), "silent for 4 min");
        // Two heartbeats may be lost, and two clocks differ by two seconds.
        assert_eq!(said(heard("in_step", 0, 2_000), 35), "heard 35 s ago");
        assert_eq!(said(heard("in_step", 0, 0), 36), "silent for 36 s");
        let other = LastHeard {
            version: "0.0.9".to_owned(),
            ..heard("in_step", 0, 0)
        };
        assert_eq!(said(other, 3), "heard 3 s ago, version 0.0.9");
        let clocks = [-5_040, -49, 0, 50, 2_960].map(|ms| heard("in_step", 0, ms).clock());
        assert_eq!(clocks, ["-5.0 s", "+0.0 s", "+0.0 s", "+0.1 s", "+3.0 s"]);
    }
}
