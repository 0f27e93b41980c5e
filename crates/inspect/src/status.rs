//! The state of a workspace: the folded ledger, the mail in outboxes, refused messages that nobody corrected, and the
//! daemon's alerts. Reads without the lock and changes nothing. The files below draw the conclusions, and `views` shows
//! them.

pub mod fix;
mod homes;
pub mod hosts;
pub mod overview;
pub mod pending;
pub mod problems;
pub mod row;
pub mod threads;
pub mod why;

use std::path::Path;

use message_schema::id::AgentName;
use review::{Review, ReviewKey, Which};
use spool::{Folded, HostName, SpoolError};
use workspace::config::Config;
use workspace::directory;
use workspace::heartbeat::{self, HeardHost};
use workspace::index::LedgerIndex;
use workspace::operator_alerts::{self, Alert};

use self::pending::PendingMail;
use crate::dead_letter::refusals::{self, OpenRefusal};

/// Everything that can be read without the lock.
#[derive(Debug)]
pub struct WorkspaceStatus {
    /// The fold of the ledger.
    pub index: LedgerIndex,
    /// The extent of the ledger.
    pub folded: Folded,
    /// True if a daemon serves; `None` where this user cannot see it.
    pub serving: Option<bool>,
    /// The agents that have mailboxes.
    pub agents: Vec<AgentName>,
    /// The mail in outboxes that the daemon has not judged yet.
    pub unjudged: PendingMail,
    /// The open refusals, oldest first.
    pub dead: Vec<OpenRefusal>,
    /// The daemon's alerts that only an operator can fix.
    pub alerts: Vec<Alert>,
    /// This host's name among those that share the ledger.
    pub host: Option<HostName>,
    /// The last heartbeats that its daemon heard of the others.
    pub heard: Vec<HeardHost>,
}

/// Returns the validation commands of the open request that `which` selects: its own and the project's.
pub fn validation_of(root: &Path, which: &Which) -> Result<Vec<String>, String> {
    let status = WorkspaceStatus::read(root).map_err(|error| error.to_string())?;
    let config = Config::load(root).map_err(|error| error.to_string())?;
    let policy = config.policy(status.agents.iter().cloned());
    let selected = status.selected(which);
    let open = selected
        .iter()
        .filter_map(|(key, review)| Some((key, review.phase.invocation()?)));
    match open.collect::<Vec<_>>()[..] {
        [] => Err(format!("pull request {} has no open request", which.pr)),
        [(_, open)] => Ok(review::required_commands(&policy, open)
            .into_iter()
            .map(str::to_owned)
            .collect()),
        [_, _, ..] => Err(format!(
            "pull request {} has several open requests; name the reviewer or the repository",
            which.pr
        )),
    }
}

impl WorkspaceStatus {
    /// Reads it all.
    pub fn read(root: &Path) -> Result<Self, SpoolError> {
        // Outboxes before the ledger: a message judged in between is counted twice rather than never.
        let agents = directory::agents(root)?;
        let unjudged = PendingMail::read(root, &agents);
        let (index, folded) = LedgerIndex::read(root)?;
        let dead = refusals::open(root, &index);
        let host = Config::load(root)
            .ok()
            .and_then(|config| config.ledger.host);
        let (serving, alerts) = (spool::is_served(root), operator_alerts::read(root));
        Ok(Self {
            index,
            folded,
            serving,
            agents,
            unjudged,
            dead,
            alerts,
            host,
            heard: heartbeat::read(root),
        })
    }

    /// Returns the reviews that `which` selects, in the order of their keys.
    pub fn selected(&self, which: &Which) -> Vec<(&ReviewKey, &Review)> {
        self.index
            .state()
            .reviews_of(&which.pr)
            .filter(|(key, review)| which.may_mean(key, review.reviewer(key)))
            .collect()
    }

    /// The alert that the daemon cannot write to this agent's inbox, if there is one.
    pub fn unwritable_inbox(&self, agent: &str) -> Option<&Alert> {
        operator_alerts::of_inbox(&self.alerts, agent)
    }

    /// True if no daemon serves the workspace; false where this user cannot tell.
    pub fn is_unserved(&self) -> bool {
        self.serving == Some(false)
    }
}
