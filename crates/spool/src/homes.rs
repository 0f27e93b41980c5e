//! The agents that have their mailboxes on this host.

use std::collections::BTreeSet;

use crate::{Lane, Mailbox};

/// The agents at home on this host. For all other agents this host makes no file and puts none away: their own host
/// does, and its cursors record it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Homes(Option<BTreeSet<String>>);

impl Homes {
    /// Every agent is at home: the workspace has one host.
    pub fn of_all() -> Homes {
        Homes(None)
    }

    /// These agents are at home here, and no other.
    pub fn of(agents: impl IntoIterator<Item = String>) -> Homes {
        Homes(Some(agents.into_iter().collect()))
    }

    /// Returns whether an agent is at home here.
    pub fn has(&self, agent: &str) -> bool {
        self.0.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// Returns whether this host follows a lane. Every host has the packets and the files about pull requests, because
    /// any agent may read them.
    pub(crate) fn follow(&self, lane: &Lane) -> bool {
        match lane {
            Lane::Mailbox(Mailbox::Inbox(agent) | Mailbox::DeadLetter(agent))
            | Lane::Outbox(agent) => self.has(agent),
            Lane::Mailbox(Mailbox::Packets(_) | Mailbox::PullRequest(_)) | Lane::Pulls => true,
        }
    }
}
