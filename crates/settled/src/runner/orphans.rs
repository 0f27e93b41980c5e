//! What an earlier daemon left: agents whose keeper was killed with it, and runs that ended unheard. The first are
//! ended, each known by its number and the time it was started, or by the run's name in its environment; the second
//! are settled.

use std::time::Duration;

use super::folder::{self, Folder, Run};
use super::settle::Settling;
use super::tree::{self, Process};
use crate::clock::Moment;
use crate::mailroom::{Mailroom, chain};

/// How long a keeper that lost its daemon may take to end its agent by itself.
const GRACE: Duration = Duration::from_secs(6);

/// Ends what still runs, and gives the runs whose end is still to be settled.
pub(super) fn see_to(mailroom: &Mailroom, now: Moment) -> Vec<Settling> {
    let folders = folder::all(mailroom.root()).unwrap_or_else(|error| {
        tracing::warn!(error = %chain(&error), "the runs of earlier daemons cannot be listed");
        Vec::new()
    });
    for folder in folders.iter().filter(|folder| folder.end().is_none()) {
        end(folder, folder.id());
    }
    let settling = folders.iter().filter_map(|folder| {
        let run = folder.run().ok().filter(|run| is_last(mailroom, run))?;
        let end = folder.end();
        // Its turns may be counted already; which were is not known, and none is counted twice.
        let counted = end.as_ref().map_or(0, |end| end.said.turns);
        Some(Settling::of(run, end, counted, now))
    });
    settling.collect()
}

/// Whether the run is the last that was started for a request that is open.
fn is_last(mailroom: &Mailroom, run: &Run) -> bool {
    let open = mailroom
        .review(&run.review)
        .and_then(|review| review.phase.invocation());
    open.is_some_and(|open| open.request == run.request && open.starts == run.start)
}

/// Ends whatever of a run still runs: what its folder says, and what says the run's name.
pub(crate) fn end(folder: &Folder, run: &str) {
    let processes = folder.processes();
    let is_same_boot = processes.boot == tree::boot();
    let known = [processes.keeper, processes.agent]
        .into_iter()
        .flatten()
        .filter(|_| is_same_boot);
    let known: Vec<Process> = known.collect();
    let marker = format!("SETTLED_RUN={run}");
    let members = || {
        let mut members = tree::saying(&marker);
        let running: Vec<Process> = known
            .iter()
            .copied()
            .filter(|process| process.is_running())
            .collect();
        members.extend(running.iter().flat_map(|process| tree::below(process.pid)));
        members.extend(running);
        members.sort_unstable();
        members.dedup();
        members
    };
    if members().is_empty() {
        return;
    }
    tracing::warn!(run, "an agent of an earlier daemon still runs; it is ended");
    if !tree::end(members, None, GRACE) {
        tracing::error!(run, "an agent of an earlier daemon cannot be ended");
    }
}
