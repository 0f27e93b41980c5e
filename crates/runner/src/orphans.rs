//! Ends a run whose keeper was killed. It finds the agent by its number and start time, by the run's name in its
//! environment, or in the control group that it cannot leave.

use std::time::Duration;

use crate::cgroup::ControlGroup;
use crate::folder::Folder;
use crate::tree::{self, Process};

/// The time that a keeper without a daemon may take to end its agent.
const GRACE: Duration = Duration::from_secs(6);

/// Ends every process of a run: those in its folder and those with the run's name in their environment.
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
        tracing::warn!(run, "ending an agent that an earlier daemon left running");
        if !tree::end(members, None, GRACE) {
            tracing::error!(
                run,
                "cannot end an agent that an earlier daemon left running"
            );
        }
    }
    if let Some(group) = group {
        group.remove();
    }
}
