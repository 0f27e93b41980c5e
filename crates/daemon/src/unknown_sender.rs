//! Finds files in inboxes whose sender is unknown: no record delivered them and no outbox holds their original. Alerts the
//! operator and never touches the files; they move no review.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use message_schema::id::AgentName;
use spool::{FileName, Layout, SpoolError, View};
use workspace::known_deliveries::KnownDeliveries;
use workspace::operator_alerts::{Alert, AlertKind, Alerts};

/// The most files of one inbox that one scan reads; the next scans read the others.
const READS_PER_SWEEP: usize = 256;

/// The most names of one inbox that a scan lists; an inbox with more has other problems.
const NAMES_MAX: usize = 65_536;

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The results of earlier scans of the inboxes.
#[derive(Debug, Default)]
pub(crate) struct UnknownSenders(BTreeMap<AgentName, ScannedInbox>);

/// The results for one inbox.
#[derive(Debug, Default)]
struct ScannedInbox {
    /// The hashes of the names of files that need no second look.
    known: HashSet<u64>,
    /// Files whose sender was unknown at the last scan.
    suspects: HashSet<FileName>,
}

impl UnknownSenders {
    /// Scans the inboxes of these agents. Raises an alert for each file whose sender is unknown for the second time.
    pub(crate) fn scan(
        &mut self,
        agents: &[AgentName],
        view: &View<'_>,
        layout: &Layout,
        context: &mut ScanContext<'_>,
    ) {
        self.0.retain(|agent, _| agents.contains(agent));
        for agent in agents {
            let inbox = self.0.entry(agent.clone()).or_default();
            if let Err(error) = inbox.scan(agent, agents, view, layout, context)
                && !context.alerts.raise_unreadable(&error)
            {
                tracing::debug!(%agent, error = %workspace::error::chain(&error), "cannot scan an inbox for unknown senders");
            }
        }
    }
}

/// The deliveries a scan compares with and the alerts it raises.
pub(crate) struct ScanContext<'a> {
    pub(crate) known_deliveries: &'a KnownDeliveries,
    pub alerts: &'a mut Alerts,
}

impl ScannedInbox {
    fn scan(
        &mut self,
        agent: &AgentName,
        agents: &[AgentName],
        view: &View<'_>,
        layout: &Layout,
        context: &mut ScanContext<'_>,
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
            if context.known_deliveries.contains(agent.as_str(), &digest) {
                self.known.insert(key);
            } else if !before.contains(&name) || has_original(agents, layout, &name) {
                self.suspects.insert(name);
            } else {
                let path = layout.inbox(agent.as_str()).join(&name);
                let what = "sender_unproven: no outbox held this file, so nobody is proven to have sent it; it moves no \
                            review. Whoever wants to send something writes it into its own outbox"
                    .to_owned();
                context.alerts.raise(Alert {
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

/// Whether an outbox holds a file of this name, as a compatible sender delivers the copy before the original is judged.
fn has_original(agents: &[AgentName], layout: &Layout, name: &FileName) -> bool {
    agents.iter().any(|agent| {
        layout
            .outbox(agent.as_str())
            .join(name)
            .symlink_metadata()
            .is_ok()
    })
}
