//! Lists an outbox in slices, so that a full one holds up the daemon for no longer than a slice.

use super::{File, Intake, WINDOW, push_back};
use crate::root::{Dir, NameListing};
use crate::{FileName, SpoolError, View, dirs, layout};

/// A listing of one agent's outbox. It finds every file that was there when it began.
pub struct OutboxListing {
    agent: String,
    dir: Dir,
    /// The names to come; `None` once all were seen, or as many as the window has room for.
    names: Option<NameListing>,
    /// Files that the intake does not know, and then those with the time of their last change.
    strangers: Vec<FileName>,
    dated: Vec<(i64, FileName)>,
}

impl OutboxListing {
    /// Returns the owner of the outbox.
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

impl Intake {
    /// Begins to list one agent's outbox; `None` if the agent has none.
    pub fn list(
        &mut self,
        view: &View<'_>,
        agent: &str,
    ) -> Result<Option<OutboxListing>, SpoolError> {
        if !dirs::is_agent_name(agent) {
            return Ok(None);
        }
        if let Some(outbox) = self.outboxes.get_mut(agent) {
            // An outbox that cannot be listed waits for the next sweep.
            outbox.has_more = false;
        }
        let path = layout::agent_dir(agent, dirs::OUTBOX);
        let Some(dir) = view.root.dir_if_there(&path)? else {
            self.outboxes.remove(agent);
            return Ok(None);
        };
        Ok(Some(OutboxListing {
            agent: agent.to_owned(),
            names: Some(view.root.names(&dir)?),
            dir,
            strangers: Vec::new(),
            dated: Vec::new(),
        }))
    }

    /// Continues a listing until `is_over`, which is asked after each name, and queues what it found once it has seen
    /// every name; true if that is done.
    pub fn list_on(
        &mut self,
        view: &View<'_>,
        listing: &mut OutboxListing,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, SpoolError> {
        while let Some(name) = listing.names.as_mut().and_then(Iterator::next) {
            self.see(view, listing, name?);
            if is_over() {
                return Ok(false);
            }
        }
        listing.names = None;
        while let Some(name) = listing.strangers.pop() {
            let stat = view.root.stat(&listing.dir, &name)?;
            listing.dated.extend(stat.map(|stat| (stat.mtime_ns, name)));
            if is_over() {
                return Ok(false);
            }
        }
        self.queue_found(listing);
        Ok(true)
    }

    fn see(&mut self, view: &View<'_>, listing: &mut OutboxListing, name: FileName) {
        if !layout::is_candidate(&name) {
            return;
        }
        let agent = &listing.agent;
        let outbox = self.outboxes.get_mut(agent);
        let known = outbox.as_ref().map_or(0, |outbox| outbox.files.len());
        if let Some(outbox) = outbox
            && let Some(file) = outbox.files.get_mut(&name)
        {
            // The intake looks early at a file that was given time, because only a look tells whether it changed.
            if file.memory.given.is_some()
                && let Some(wake) = file.wake.take()
            {
                self.sleeping.remove(&(wake, agent.clone(), name.clone()));
                push_back(&mut outbox.queue, &mut self.queued, name);
            }
        } else if !view.is_judged(agent, &name) {
            if known + listing.strangers.len() < WINDOW {
                listing.strangers.push(name);
            } else {
                self.outboxes.entry(agent.clone()).or_default().has_more = true;
                listing.names = None;
            }
        }
    }

    /// Queues the files that a listing found, the oldest first.
    fn queue_found(&mut self, listing: &mut OutboxListing) {
        listing.dated.sort_unstable();
        let outbox = self.outboxes.entry(listing.agent.clone()).or_default();
        for (_, name) in listing.dated.drain(..) {
            // Hints may have named it, or filled the window, meanwhile.
            if outbox.is_full() {
                outbox.has_more = true;
                break;
            }
            if !outbox.files.contains_key(&name) {
                outbox.files.insert(name.clone(), File::default());
                push_back(&mut outbox.queue, &mut self.queued, name);
            }
        }
        if outbox.files.is_empty() && outbox.queue.is_empty() && !outbox.has_more {
            // Every `take` looks at each outbox that is kept.
            self.outboxes.remove(&listing.agent);
        }
    }
}
