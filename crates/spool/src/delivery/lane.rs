//! Names a lane: one directory that follows the ledger by itself.

use std::fmt;

use crate::{FileName, Mailbox, layout};
use ledger_records::dirs::{OUTBOX, PULLS, is_agent_name};

/// A directory that follows the ledger with a cursor of its own, so that an unwritable directory holds up no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Files are made in this mailbox of an agent, or this folder of packets.
    Mailbox(Mailbox),
    /// Files are made in the folders of all pull requests. They share a lane, because nothing would ever remove the
    /// cursor of a single one.
    Pulls,
    /// Judged originals are put away from this agent's outbox.
    Outbox(String),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Mailbox(mailbox) => mailbox.fmt(f),
            Lane::Pulls => f.write_str(PULLS),
            Lane::Outbox(agent) => write!(f, "{agent}/{OUTBOX}"),
        }
    }
}

impl Lane {
    /// Returns the lane that makes the files of this mailbox.
    pub fn of(mailbox: &Mailbox) -> Lane {
        match mailbox {
            Mailbox::Inbox(_) | Mailbox::DeadLetter(_) | Mailbox::Packets(_) => {
                Lane::Mailbox(mailbox.clone())
            }
            Mailbox::PullRequest(_) => Lane::Pulls,
        }
    }

    /// Reads the displayed form of a lane: a mailbox, `events/pr`, or `<agent>/outbox`.
    pub(crate) fn read(text: &str) -> Option<Lane> {
        if text == PULLS {
            return Some(Lane::Pulls);
        }
        match text
            .strip_suffix(OUTBOX)
            .and_then(|text| text.strip_suffix('/'))
        {
            Some(agent) if is_agent_name(agent) => Some(Lane::Outbox(agent.to_owned())),
            Some(_) | None => text.parse().ok().as_ref().map(Lane::of),
        }
    }

    /// Returns the name of the lane's cursor file.
    pub(crate) fn cursor_name(&self) -> FileName {
        layout::cursor_name(&self.to_string())
    }
}
