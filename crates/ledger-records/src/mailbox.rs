//! The places to which files are delivered, and their form in the ledger.
//!
//! The spool's `Layout` maps each to its directory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dirs::{DEAD_LETTER, INBOX, PACKET_FOLDERS, PACKETS, PULLS, is_agent_name};

/// The most digits of a pull request's number.
const PULL_DIGITS_MAX: usize = 20;

/// A place to which files are delivered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mailbox {
    /// An agent's `inbox/`.
    Inbox(String),
    /// An agent's `dead_letter/`, for reports.
    DeadLetter(String),
    /// `packets/<this>/`: findings, handoff or briefs.
    Packets(String),
    /// `events/pr/<this>/`: event files of the pull request of this number, 1 to 20 digits.
    PullRequest(String),
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mailbox::Inbox(agent) => write!(f, "{agent}/{INBOX}"),
            Mailbox::DeadLetter(agent) => write!(f, "{agent}/{DEAD_LETTER}"),
            Mailbox::Packets(folder) => write!(f, "{PACKETS}/{folder}"),
            Mailbox::PullRequest(number) => write!(f, "{PULLS}/{number}"),
        }
    }
}

/// A text was read where a mailbox was expected.
#[derive(Debug, thiserror::Error)]
#[error(
    "a mailbox is `<agent>/inbox`, `<agent>/dead_letter`, `packets/` with findings, handoff or briefs, or `events/pr/<number>`"
)]
pub struct NotAMailbox;

impl FromStr for Mailbox {
    type Err = NotAMailbox;

    fn from_str(text: &str) -> Result<Mailbox, NotAMailbox> {
        let mailbox = match text.rsplit_once('/') {
            Some((agent, INBOX)) => Mailbox::Inbox(agent.to_owned()),
            Some((agent, DEAD_LETTER)) => Mailbox::DeadLetter(agent.to_owned()),
            Some((PACKETS, folder)) => Mailbox::Packets(folder.to_owned()),
            Some((PULLS, number)) => Mailbox::PullRequest(number.to_owned()),
            Some(_) | None => return Err(NotAMailbox),
        };
        if mailbox.is_possible() {
            Ok(mailbox)
        } else {
            Err(NotAMailbox)
        }
    }
}

impl Mailbox {
    /// Returns the agent that owns the mailbox; packets and event files have no owner.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Mailbox::Inbox(agent) | Mailbox::DeadLetter(agent) => Some(agent),
            Mailbox::Packets(_) | Mailbox::PullRequest(_) => None,
        }
    }

    /// Returns whether such a mailbox can exist: the agent's name is a plain directory name, the folder is one of ours,
    /// and the number is all digits.
    pub fn is_possible(&self) -> bool {
        match self {
            Mailbox::Inbox(agent) | Mailbox::DeadLetter(agent) => is_agent_name(agent),
            Mailbox::Packets(folder) => PACKET_FOLDERS.contains(&folder.as_str()),
            Mailbox::PullRequest(number) => {
                (1..=PULL_DIGITS_MAX).contains(&number.len())
                    && number.bytes().all(|b| b.is_ascii_digit())
            }
        }
    }
}

impl Serialize for Mailbox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mailbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mailbox, D::Error> {
        disk::from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_survives_its_text_and_never_leaves_the_tree() {
        for text in [
            "codex/inbox",
            "codex/dead_letter",
            "packets/briefs",
            "packets/inbox",
            "events/pr/86",
        ] {
            assert_eq!(
                text.parse::<Mailbox>()
                    .map(|mailbox| mailbox.to_string())
                    .ok()
                    .as_deref(),
                Some(text)
            );
        }
        let long = format!("events/pr/{}", "9".repeat(21));
        for text in [
            "",
            "/inbox",
            "../inbox",
            "a/b/inbox",
            "packets/other",
            "codex/outbox",
            ".settled/inbox",
            "events/pr/",
            "events/pr/..",
            "events/pr/8x",
            "events/86",
            &long,
        ] {
            assert!(
                text.parse::<Mailbox>().is_err(),
                "{text} was read as a mailbox"
            );
        }
    }

    #[test]
    fn an_agent_owns_its_inbox_and_its_dead_letters() {
        for (text, owner) in [
            ("codex/inbox", Some("codex")),
            ("codex/dead_letter", Some("codex")),
            ("packets/briefs", None),
            ("events/pr/86", None),
        ] {
            let mailbox: Mailbox = text.parse().expect("a mailbox");
            assert_eq!(mailbox.owner(), owner, "{text}");
        }
    }

    #[test]
    fn the_number_of_a_pull_request_has_at_most_twenty_digits() {
        let longest = format!("events/pr/{}", "9".repeat(20));
        assert!(longest.parse::<Mailbox>().is_ok());
    }
}
