//! Puts the agent of a run into a control group. The kernel keeps every descendant in it, whatever session, parent or
//! environment it chooses, so the processes of a run are known even after its keeper was killed.
//!
//! Only some machines allow it: the daemon's own group must be of version 2 and writable for its user (root, or a unit
//! or scope with `Delegate=yes`). Elsewhere `tree` finds what it can.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tree::Process;

/// The control group of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes a group for the run below this process's own, if that is possible here and no other run has the name.
    pub fn make(run: &str) -> Option<Self> {
        let group = own()?.join(format!("settled-{run}"));
        std::fs::create_dir(&group).ok()?;
        Some(Self(group))
    }

    /// Calls `start` while this process is in the group, so that whatever it starts is born there and can fork nothing
    /// outside. A kill in between leaves this process in the group, where it is found.
    pub(crate) fn around<T>(&self, start: impl FnOnce() -> T) -> T {
        let has_entered = enter(&self.0).is_ok();
        let started = start();
        if has_entered && let Some(own) = self.0.parent() {
            // If this process cannot leave, it stays a member, which the keeper does not end.
            let _ = enter(own);
        }
        started
    }

    /// The processes in the group; none if it is gone.
    pub fn members(&self) -> Vec<Process> {
        let listed = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let numbers = listed.lines().filter_map(|line| line.parse().ok());
        numbers.filter_map(Process::of).collect()
    }

    /// Removes the group if it is empty.
    pub fn remove(&self) {
        // The next daemon finds a group that is not empty in the folder of its run.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn enter(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.procs"), "0")
}

/// The directory of this process's group.
fn own() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    // `36 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw`: the fifth field is the mount point.
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let is_whole = fields.next()? == "/" && kind.starts_with("cgroup2 ");
        is_whole.then(|| fields.next())?
    })?;
    Some(Path::new(mount).join(path))
}
