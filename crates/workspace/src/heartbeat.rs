//! Writes and reads heartbeats: the state that hosts of a shared ledger report every few seconds, and the last report
//! of each. No record has them and nothing is decided by them; the next heartbeat replaces a lost one.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use fleet::Fleet;
use serde::{Deserialize, Serialize};
use spool::log::HostKeys;
use spool::{Digest, HostName, Layout};

use crate::regular_file;

/// The file in `.settled`.
const FILE: &str = "hosts.json";

/// The time between two heartbeats of a host, in milliseconds.
pub const EVERY_MS: u64 = 10_000;

/// The time without a heartbeat after which a host counts as silent: two may be lost.
pub const SILENT: TimeDelta = TimeDelta::seconds(35);

/// The largest difference between the clocks of two hosts that is no finding.
pub const CLOCKS_APART_MAX: TimeDelta = TimeDelta::seconds(2);

/// The longest version and state, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// The state of a host, as the host reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Its name.
    pub host: HostName,
    /// The version of settled that it runs.
    pub version: String,
    /// The last record of its ledger.
    pub seq: u64,
    /// The digest of that record. A version that sends none is not compared with other hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The state of its connection to the shared ledger: `in_step`, `waiting`, `frozen` or `stopped`.
    #[serde(rename = "standing")]
    pub state: String,
    /// Its clock's time.
    pub at: DateTime<Utc>,
    /// Its clock's time when its daemon started, which distinguishes this daemon run from earlier ones.
    #[serde(default)]
    pub started: DateTime<Utc>,
    /// The number of earlier heartbeats of this daemon run. A clock may go back; this cannot.
    #[serde(default)]
    pub number: u64,
}

/// The last heartbeat received from a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardHost {
    /// The state it reported.
    #[serde(flatten)]
    pub state: HostState,
    /// The time of arrival, by this host's clock.
    pub heard_at: DateTime<Utc>,
    /// The number of records it was behind this host then.
    pub behind: u64,
}

impl HeardHost {
    /// The lead of that host's clock over this one's, less the time the heartbeat took to arrive.
    pub fn clock_ahead(&self) -> TimeDelta {
        self.state.at - self.heard_at
    }
}

/// A heartbeat for the log: its text and the signature of the host that it names.
#[derive(Serialize, Deserialize)]
struct SignedState {
    state: String,
    signature: Vec<u8>,
}

fn signed_bytes(workspace: &str, state: &str) -> Vec<u8> {
    // No other signed text begins like this.
    format!("heartbeat of a host of {workspace}\n{state}").into_bytes()
}

/// Writes a heartbeat, signed by its host.
pub fn written(state: &HostState, workspace: &str, keys: &dyn HostKeys) -> Vec<u8> {
    let state = serde_json::to_string(state).expect("plain values are JSON");
    let signature = keys.sign(&signed_bytes(workspace, &state));
    serde_json::to_vec(&SignedState { state, signature }).expect("plain values are JSON")
}

/// True if the text can be shown to people as it is: short, and only visible ASCII.
fn is_word(text: &str) -> bool {
    text.len() <= WORD_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a heartbeat; none if it is malformed or not signed by the host that it names.
pub fn read_signed(
    bytes: &[u8],
    workspace: &str,
    fleet: &Fleet,
    keys: &dyn HostKeys,
) -> Option<HostState> {
    let signed: SignedState = serde_json::from_slice(bytes).ok()?;
    let state: HostState = serde_json::from_str(&signed.state).ok()?;
    if !is_word(&state.version) || !is_word(&state.state) {
        return None;
    }
    let key = fleet.key(&state.host)?;
    let said = signed_bytes(workspace, &signed.state);
    keys.is_signed(key, &said, &signed.signature)
        .then_some(state)
}

/// Reads what the daemon last received from each host; empty if there is no readable file.
pub fn read(root: &Path) -> Vec<HeardHost> {
    serde_json::from_slice(&regular_file::read_saved(root, FILE)).unwrap_or_default()
}

/// Saves what was received, without a sync: hosts repeat what a power cut loses.
pub fn save<'a>(root: &Path, heard: impl Iterator<Item = &'a HeardHost>) {
    let own = Layout::new(root).own();
    let (file, temporary) = (own.join(FILE), own.join(format!("{FILE}.tmp")));
    let all: Vec<&HeardHost> = heard.collect();
    let text = serde_json::to_string(&all).expect("plain values are JSON");
    let written =
        std::fs::write(&temporary, text + "\n").and_then(|()| std::fs::rename(&temporary, &file));
    if let Err(error) = written {
        tracing::debug!(%error, "cannot save the other hosts' heartbeats; the next ones will be saved");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of hosts that sign with their own name.
    struct NamedKey(&'static str);

    impl HostKeys for NamedKey {
        fn sign(&self, bytes: &[u8]) -> Vec<u8> {
            [self.0.as_bytes(), bytes].concat()
        }

        fn is_signed(&self, key: &str, bytes: &[u8], signature: &[u8]) -> bool {
            signature == [key.as_bytes(), bytes].concat()
        }
    }

    fn state(host: &str) -> HostState {
        HostState {
            host: host.parse().expect("a name"),
            version: "0.4.0".to_owned(),
            seq: 7,
            digest: Some(Digest::ZERO),
            state: "in_step".to_owned(),
            at: DateTime::UNIX_EPOCH,
            started: DateTime::UNIX_EPOCH,
            number: 3,
        }
    }

    #[test]
    fn a_heartbeat_is_heard_if_the_host_it_names_signed_it_for_this_workspace() {
        let mut fleet = Fleet::default();
        let name = || "north".parse().expect("a name");
        fleet.join(name(), "north".to_owned()).expect("it joins");
        let north = state("north");
        let sent = |state: &HostState, workspace, key| written(state, workspace, &NamedKey(key));
        let heard = |bytes: &[u8]| read_signed(bytes, "w", &fleet, &NamedKey("here"));
        assert_eq!(heard(&sent(&north, "w", "north")), Some(north.clone()));
        assert_eq!(heard(&sent(&north, "other", "north")), None);
        assert_eq!(heard(&sent(&north, "w", "south")), None);
        assert_eq!(heard(&sent(&state("south"), "w", "south")), None);
        assert_eq!(heard(b"{}"), None);
        for (word, is_heard) in [
            ("x".repeat(64), true),
            ("x".repeat(65), false),
            ("a b".to_owned(), false),
            ("\u{202e}".to_owned(), false),
        ] {
            for changed in [
                HostState {
                    version: word.clone(),
                    ..north.clone()
                },
                HostState {
                    state: word.clone(),
                    ..north.clone()
                },
            ] {
                let said = heard(&sent(&changed, "w", "north"));
                assert_eq!(said, is_heard.then_some(changed), "{word}");
            }
        }
    }

    #[test]
    fn what_was_heard_is_kept_with_the_lead_of_each_clock() {
        let root = tempfile::tempdir().expect("a directory");
        Layout::init(root.path(), &["claude"]).expect("a tree");
        assert_eq!(read(root.path()), []);
        let of = |ahead: i64| HeardHost {
            state: HostState {
                at: DateTime::UNIX_EPOCH + TimeDelta::seconds(60 + ahead),
                ..state("north")
            },
            heard_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(60),
            behind: 2,
        };
        let all = [of(3), of(-4)];
        save(root.path(), all.iter());
        assert_eq!(read(root.path()), all);
        assert_eq!(
            all.map(|host| host.clock_ahead()),
            [TimeDelta::seconds(3), TimeDelta::seconds(-4)]
        );
    }
}
