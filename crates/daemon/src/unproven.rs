//! Files in inboxes that nothing accounts for: no record made them, and no outbox holds their original. Whoever
//! put them there is not proven to be anybody. They are told and never touched, and they move no review.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use message_schema::id::AgentName;
use spool::{FileName, Layout, SpoolError, View};
use workspace::known_deliveries::KnownDeliveries;
use workspace::operator_alerts::{Alert, AlertKind, Alerts};

/// So many files of one inbox are read in one sweep; the others have their turn in the next ones.
const READS_PER_SWEEP: usize = 256;

/// So many names of one inbox are looked at. Beyond, whoever reads it has other problems.
const NAMES_MAX: usize = 65_536;

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What is known of the files in inboxes.
#[derive(Debug, Default)]
pub(crate) struct Unproven(BTreeMap<AgentName, Inbox>);

/// One inbox.
#[derive(Debug, Default)]
struct Inbox {
    /// Files that were looked into and need no second look, by the hash of their name.
    known: HashSet<u64>,
    /// Files nothing accounted for at the last look.
    suspects: HashSet<FileName>,
}

impl Unproven {
    /// Looks through the inboxes of these agents. What nothing accounts for now, nor did at the look before, is told.
    pub(crate) fn look(
        &mut self,
        agents: &[AgentName],
        view: &View<'_>,
        layout: &Layout,
        desk: &mut Desk<'_>,
    ) {
        self.0.retain(|agent, _| agents.contains(agent));
        for agent in agents {
            let inbox = self.0.entry(agent.clone()).or_default();
            if let Err(error) = inbox.look(agent, agents, view, layout, desk)
                && !desk.alerts.raise_unreadable(&error)
            {
                tracing::debug!(%agent, error = %workspace::error::chain(&error), "an inbox cannot be looked through");
            }
        }
    }
}

/// What a look compares with, and where it tells.
pub(crate) struct Desk<'a> {
    pub(crate) known_deliveries: &'a KnownDeliveries,
    pub alerts: &'a mut Alerts,
}

impl Inbox {
    fn look(
        &mut self,
        agent: &AgentName,
        agents: &[AgentName],
        view: &View<'_>,
        layout: &Layout,
        desk: &mut Desk<'_>,
    ) -> Result<(), SpoolError> {
        let names = view.inbox(agent.as_str(), NAMES_MAX)?;
        let present: HashMap<u64, FileName> =
            names.into_iter().map(|name| (hash(&name), name)).collect();
        self.known.retain(|name| present.contains_key(name));
        let before = std::mem::take(&mut self.suspects);
        let unknown: Vec<_> = present
            .into_iter()
            .filter(|(name, _)| !self.known.contains(name))
            .collect();
        for (key, name) in unknown.into_iter().take(READS_PER_SWEEP) {
            let Some(digest) = view.inbox_digest(agent.as_str(), &name)? else {
                continue;
            };
            if desk.known_deliveries.contains(agent.as_str(), &digest) {
                self.known.insert(key);
            } else if !before.contains(&name) || has_original(agents, layout, &name) {
                self.suspects.insert(name);
            } else {
                let path = layout.inbox(agent.as_str()).join(&name);
                let what = "sender_unproven: no outbox held this file, so nobody is proven to have sent it; it moves no \
                            review. Whoever wants to send something writes it into its own outbox"
                    .to_owned();
                desk.alerts.raise(Alert {
                    kind: AlertKind::SenderUnproven,
                    path,
                    what,
                });
                self.known.insert(key);
            }
        }
        Ok(())
    }
}

/// Whether an outbox holds a file of this name: a peer of ours puts the copy into the recipient's inbox first.
fn has_original(agents: &[AgentName], layout: &Layout, name: &FileName) -> bool {
    agents.iter().any(|agent| {
        layout
            .outbox(agent.as_str())
            .join(name)
            .symlink_metadata()
            .is_ok()
    })
}
