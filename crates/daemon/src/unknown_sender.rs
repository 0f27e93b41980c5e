//! Finds files of unknown senders in inboxes: no record delivered them, and no outbox holds their original. Alerts the
//! operator and never touches the files, which move no review.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use message_schema::id::AgentName;
use spool::{DirectoryStamp, FileName, Layout, NameListing, Now, SpoolError, View};
use workspace::known_deliveries::KnownDeliveries;
use workspace::operator_alerts::{Alert, AlertKind, Alerts};

use crate::step::StepEnd;

/// The most files of one inbox that a scan reads; later scans read the others. Reading more would cost an idle daemon
/// beside a full inbox more than a thousandth of a core.
const READS_PER_SWEEP: usize = 64;

/// The most names of one inbox that a scan lists; an inbox with more has other problems.
const NAMES_MAX: usize = 65_536;

/// The most names of one inbox that wait to be read; further listings find the others. Keeping every name of a full inbox
/// would take more memory than everything else the daemon keeps about it.
const UNREAD_MAX: usize = 1_024;

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The results of earlier scans of the inboxes.
#[derive(Default)]
pub(crate) struct UnknownSenders {
    inboxes: BTreeMap<AgentName, ScannedInbox>,
    /// The last inbox that was scanned; the next scan continues after it.
    last: Option<AgentName>,
    /// A listing that did not end within a scan. There is one at a time, because it keeps its directory open.
    unfinished: Option<(AgentName, InboxListing)>,
}

/// A listing of an inbox that has begun.
struct InboxListing {
    /// The directory's stamp when it began.
    stamp: Option<DirectoryStamp>,
    names: NameListing,
    /// The number of names seen, and the hashes of those of messages.
    seen: u64,
    present: HashSet<u64>,
    /// By their hashes, the first files that need a look; more were found if it is cut.
    unread: BTreeMap<u64, FileName>,
    is_cut: bool,
}

/// An inbox whose files were all read rests for this many milliseconds per name in it. However full inboxes are, the
/// scans then take less than a thousandth of a core.
const REST_PER_NAME_MS: u64 = 2;

/// The rest of an inbox that looks unchanged, in milliseconds. It is listed again then because some file systems do not
/// keep the times of directories.
const UNCHANGED_MS: u64 = 300_000;

/// The results for one inbox.
#[derive(Debug, Default)]
struct ScannedInbox {
    /// The directory's stamp before the last listing, and true once every file of that listing is judged.
    listed: Option<DirectoryStamp>,
    is_judged: bool,
    /// The files of the last listing that no scan has read yet. The inbox is listed again once all are read.
    unread: Vec<FileName>,
    /// The hash up to which earlier listings chose files, while they were cut: files that cannot be judged would
    /// otherwise be chosen again and again before all others.
    chosen_to: Option<u64>,
    /// The monotonic time before which the inbox is not scanned, and the one for an inbox that looks unchanged.
    rest_until: u64,
    unchanged_until: u64,
    /// The length of its rest, in milliseconds.
    rest_ms: u64,
    /// The hashes of the names of files that need no further look.
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
        self.inboxes
            .retain(|agent, _| agents.binary_search(agent).is_ok());
        let first = self
            .last
            .as_ref()
            .map_or(0, |last| agents.partition_point(|agent| agent <= last));
        let (before, after) = agents.split_at(first);
        for agent in after.iter().chain(before) {
            self.last = Some(agent.clone());
            let inbox = self.inboxes.entry(agent.clone()).or_default();
            let going = &mut self.unfinished;
            if let Err(error) = inbox.scan((agent, agents), going, view, layout, context)
                && !context.alerts.raise_unreadable(&error)
            {
                tracing::debug!(%agent, error = %workspace::error::chain(&error), "cannot scan an inbox for unknown senders");
            }
            if context.end.has_come() {
                break;
            }
        }
    }
}

/// The deliveries that a scan compares with, and the alerts it raises.
pub(crate) struct ScanContext<'a> {
    pub(crate) known_deliveries: &'a KnownDeliveries,
    pub alerts: &'a mut Alerts,
    pub now: Now,
    /// Inboxes that are not reached by then wait for the next scan.
    pub end: StepEnd,
}

impl ScannedInbox {
    fn scan(
        &mut self,
        (agent, agents): (&AgentName, &[AgentName]),
        unfinished: &mut Option<(AgentName, InboxListing)>,
        view: &View<'_>,
        layout: &Layout,
        context: &mut ScanContext<'_>,
    ) -> Result<(), SpoolError> {
        let now = context.now;
        if now.mono < self.rest_until {
            return Ok(());
        }
        if self.unread.is_empty() && !self.list(agent, unfinished, view, context)? {
            return Ok(());
        }
        // Set before anything can fail, so that an inbox that cannot be read also rests.
        self.rest_until = now.mono + self.rest_ms;
        let known_before = self.known.len();
        // Suspects are read first: a second scan in a row confirms or clears them.
        let mut due: Vec<(FileName, bool)> =
            self.suspects.drain().map(|name| (name, true)).collect();
        let room = READS_PER_SWEEP.saturating_sub(due.len());
        let left = self.unread.len().saturating_sub(room);
        due.extend(self.unread.drain(left..).map(|name| (name, false)));
        for (name, was_suspect) in due {
            if context.end.has_come() {
                // A suspect stays one until it is read.
                if was_suspect {
                    self.suspects.insert(name);
                } else {
                    self.unread.push(name);
                }
                continue;
            }
            let digest = view.inbox_digest(agent.as_str(), &name);
            let Some(digest) = digest.inspect_err(|_| self.is_judged = false)? else {
                // Something else may replace it under the same name.
                self.is_judged = false;
                continue;
            };
            if context.known_deliveries.contains(agent.as_str(), &digest) {
                self.known.insert(hash(&name));
            } else if !was_suspect || has_original(agents, layout, &name) {
                self.suspects.insert(name);
            } else {
                let path = layout.inbox(agent.as_str()).join(&name);
                let what = "sender_unproven: no outbox held this file, so nobody is proven to have sent it; it moves no \
                            review. To send something, write it into your own outbox"
                    .to_owned();
                let is_raised = context.alerts.raise(Alert {
                    kind: AlertKind::SenderUnproven,
                    path,
                    what,
                });
                if !is_raised {
                    // The inbox has as many alerts as it may have. It rests, and its other files stay unknown: it is
                    // listed again, and they are reported once there is room.
                    self.is_judged = false;
                    self.unread.clear();
                    self.suspects.clear();
                    break;
                }
                self.known.insert(hash(&name));
            }
        }
        if !self.unread.is_empty() && (self.known.len() > known_before || !self.suspects.is_empty())
        {
            // The next sweep continues: if it rested, a forged file in a full inbox could stay unnoticed for hours. A
            // scan that could judge nothing rests.
            self.rest_until = now.mono;
        }
        Ok(())
    }

    /// Lists the inbox, unless all its files were judged and it looks unchanged; true if it has listed it to its end.
    fn list(
        &mut self,
        agent: &AgentName,
        unfinished: &mut Option<(AgentName, InboxListing)>,
        view: &View<'_>,
        context: &ScanContext<'_>,
    ) -> Result<bool, SpoolError> {
        let now = context.now;
        let going = unfinished.take_if(|(owner, _)| owner == agent);
        let mut listing = match going {
            Some((_, listing)) => listing,
            None => {
                let stamp = view.inbox_stamp(agent.as_str(), now)?;
                let is_judged = self.is_judged && self.suspects.is_empty();
                let is_unchanged = stamp.is_some() && stamp == self.listed;
                if is_judged && is_unchanged && now.mono < self.unchanged_until {
                    return Ok(false);
                }
                self.listed = None;
                let Some(names) = view.inbox(agent.as_str())? else {
                    self.known.clear();
                    return Ok(false);
                };
                InboxListing {
                    stamp,
                    names,
                    seen: 0,
                    present: HashSet::new(),
                    unread: BTreeMap::new(),
                    is_cut: false,
                }
            }
        };
        while listing.present.len() < NAMES_MAX
            && let Some(name) = listing.names.next()
        {
            listing.seen += 1;
            if let Some(name) = Some(name?).filter(spool::is_candidate) {
                self.note(&mut listing, name);
            }
            if context.end.has_come() {
                unfinished.get_or_insert((agent.clone(), listing));
                return Ok(false);
            }
        }
        self.rest_ms = REST_PER_NAME_MS * listing.seen;
        self.unchanged_until = now.mono + UNCHANGED_MS;
        self.known.retain(|name| listing.present.contains(name));
        // A listing that continues behind `chosen_to` skips new files with lower hashes, so it cannot judge the whole inbox.
        (self.listed, self.is_judged) =
            (listing.stamp, self.chosen_to.is_none() && !listing.is_cut);
        let last = listing.unread.last_key_value();
        self.chosen_to = last.map(|(hash, _)| *hash).filter(|_| listing.is_cut);
        self.unread = listing.unread.into_values().collect();
        Ok(true)
    }

    /// Adds a name to the listing, and to the unread files unless it is known, a suspect, or was chosen before.
    fn note(&self, listing: &mut InboxListing, name: FileName) {
        let hash = hash(&name);
        listing.present.insert(hash);
        let was_chosen = self.chosen_to.is_some_and(|to| hash <= to);
        if was_chosen || self.known.contains(&hash) || self.suspects.contains(&name) {
            return;
        }
        listing.unread.insert(hash, name);
        if listing.unread.len() > UNREAD_MAX {
            listing.unread.pop_last();
            listing.is_cut = true;
        }
    }
}

/// True if an outbox holds a file of this name: a compatible sender delivers the copy before the original is judged.
fn has_original(agents: &[AgentName], layout: &Layout, name: &FileName) -> bool {
    agents.iter().any(|agent| {
        layout
            .outbox(agent.as_str())
            .join(name)
            .symlink_metadata()
            .is_ok()
    })
}
