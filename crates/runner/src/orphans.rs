//! The end of a run whose keeper was killed: its agent is known by its number and the time it was started, by the
//! run's name in its environment, or by the control group that nothing of it can leave.

use std::time::Duration;

use crate::cgroup::ControlGroup;
use crate::folder::Folder;
use crate::tree::{self, Process};

/// The time that a keeper that lost its daemon has to end its agent by itself.
const GRACE: Duration = Duration::from_secs(6);

/// Ends whatever of a run still runs: what its folder says, and what says the run's name.
pub fn end(folder: &Folder, run: &str) {
    let processes = folder.processes();
    let is_same_boot = processes.boot == tree::boot();
    let known = [processes.keeper, processes.agent]
        .into_iter()
        .flatten()
        .filter(|_| is_same_boot);
    let known: Vec<Process> = known.collect();
    let group = processes.group.as_ref().filter(|_| is_same_boot);
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
        members.extend(group.into_iter().flat_map(ControlGroup::members));
        members.sort_unstable();
        members.dedup();
        members
    };
    if !members().is_empty() {
        tracing::warn!(run, "an agent of an earlier daemon still runs; it is ended");
        if !tree::end(members, None, GRACE) {
            tracing::error!(run, "an agent of an earlier daemon cannot be ended");
        }
    }
    if let Some(group) = group {
        group.remove();
    }
}
