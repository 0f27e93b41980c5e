//! The agents that have their mailboxes on this host.

use std::collections::BTreeSet;

use crate::{Lane, Mailbox};

/// The agents at home on this host. Of everybody else's mail nothing is made here and nothing is put away: their own
/// host does that, and its cursors know.
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

    /// Says whether an agent is at home here.
    pub fn has(&self, agent: &str) -> bool {
        self.0.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// Says whether a lane is followed here. Packets and the files about pull requests are everywhere: any agent may
    /// read them.
    pub(crate) fn follow(&self, lane: &Lane) -> bool {
        match lane {
            Lane::Mailbox(Mailbox::Inbox(agent) | Mailbox::DeadLetter(agent))
            | Lane::Outbox(agent) => self.has(agent),
            Lane::Mailbox(Mailbox::Packets(_) | Mailbox::PullRequest(_)) | Lane::Pulls => true,
        }
    }
}
