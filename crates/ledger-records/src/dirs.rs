//! The names of a workspace's directories and of its config file. The names of mailboxes in the ledger use the same words, and the spool's
//! `Layout` joins them to paths. Rooms that are not built on this one, such as those of the validator, spell the few
//! names they need.

/// All agents' directories.
pub const AGENTS: &str = "agents";
/// An agent's messages that are not judged yet.
pub const OUTBOX: &str = "outbox";
/// An agent's delivered messages.
pub const INBOX: &str = "inbox";
/// An agent's accepted originals.
pub const SENT: &str = "sent";
/// An agent's refused originals, and the reports on them.
pub const DEAD_LETTER: &str = "dead_letter";
/// The messages an agent has finished with.
pub const ARCHIVE: &str = "archive";
/// The messages of its inbox that an agent is working on.
pub const TAKEN: &str = "inbox/taken";
/// A second place for finished messages, which readers of OACP use.
pub const INBOX_ARCHIVE: &str = "inbox/archive";
/// The directories of every agent, the outbox first: it alone is never recreated, because its owner proves who sent a
/// message.
pub const OF_AGENT: [&str; 5] = [OUTBOX, INBOX, SENT, DEAD_LETTER, ARCHIVE];

/// All packets.
pub const PACKETS: &str = "packets";
/// The folder of packets for findings.
pub const FINDINGS: &str = "findings";
/// The folder of packets for handoffs.
pub const HANDOFF: &str = "handoff";
/// The folder of packets for briefs.
pub const BRIEFS: &str = "briefs";
/// The folders of packets.
pub const PACKET_FOLDERS: [&str; 3] = [FINDINGS, HANDOFF, BRIEFS];

/// All event files.
pub const EVENTS: &str = "events";
/// Event files of pull requests, one directory for each number.
pub const PULLS: &str = "events/pr";

/// The daemon's own directory.
pub const OWN: &str = ".settled";
/// The ledger's segments.
pub const LEDGER: &str = ".settled/ledger";
/// One cursor file for each lane.
pub const CURSORS: &str = ".settled/cursors";
/// The snapshots: the state after some record of the ledger.
pub const SNAPSHOTS: &str = ".settled/snapshots";
/// Bytes that were cut off a torn ledger.
pub const TORN: &str = ".settled/torn";
/// The lock file.
pub const LOCK: &str = ".settled/lock";
/// The orders of people and runners that the daemon has not recorded yet.
pub const ORDERS: &str = ".settled/orders";
/// One folder for each run of an agent's command.
pub const RUNS: &str = ".settled/runs";
/// One worktree for each run that has one.
pub const TREES: &str = ".settled/trees";
/// One folder for each pair.
pub const PAIRS: &str = ".settled/pairs";
/// What this host knows of a shared ledger, and its key.
pub const HOST: &str = ".settled/host";

/// The config file.
pub const CONFIG: &str = "settled.toml";

/// Returns the displayed form of an agent's directory, relative to the root: `agents/<agent>/<directory>`.
pub fn of_agent(agent: &str, directory: &str) -> String {
    format!("{AGENTS}/{agent}/{directory}")
}

/// Returns the displayed form of a folder of packets, relative to the root: `packets/<folder>`.
pub fn of_packets(folder: &str) -> String {
    format!("{PACKETS}/{folder}")
}

/// Returns whether a text can name an agent's directory: no path, not hidden, short enough for the names made from it.
pub fn is_agent_name(text: &str) -> bool {
    (1..=200).contains(&text.len()) && !text.starts_with('.') && !text.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_shown_relative_to_the_root() {
        assert_eq!(of_agent("codex", TAKEN), "agents/codex/inbox/taken");
        assert_eq!(of_packets(FINDINGS), "packets/findings");
    }

    #[test]
    fn the_name_of_an_agent_is_one_short_and_visible_directory() {
        let longest = "x".repeat(200);
        let long = "x".repeat(201);
        for (name, is_one) in [
            ("a", true),
            ("a.b", true),
            (&longest, true),
            ("", false),
            (&long, false),
            (".a", false),
            ("a/b", false),
            ("a\0", false),
        ] {
            assert_eq!(is_agent_name(name), is_one, "{name:?}");
        }
    }
}
