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
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    group_in(&groups, &mounts)
}

/// The directory of the group that a process's list names, where the whole tree of version 2 is mounted.
fn group_in(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // `36 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw`: the fifth field is the mount point.
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let is_whole = fields.next()? == "/" && kind.starts_with("cgroup2 ");
        is_whole.then(|| fields.next())?
    })?;
    Some(Path::new(mount).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_where_the_whole_tree_of_version_2_is_mounted() {
        const V2: &str = "36 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        const V1: &str = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        const PART: &str = "40 25 0:31 /other /mnt rw - cgroup2 cgroup2 rw\n";
        let both = format!("{V1}{PART}{V2}");
        for (groups, mounts, group) in [
            ("0::/a.slice/b\n", V2, Some("/sys/fs/cgroup/a.slice/b")),
            ("4:cpu:/x\n0::/\n", &*both, Some("/sys/fs/cgroup/")),
            ("0::/a\n", V1, None),
            ("0::/a\n", PART, None),
            ("4:cpu:/x\n", V2, None),
        ] {
            let group = group.map(PathBuf::from);
            assert_eq!(group_in(groups, mounts), group, "{groups} {mounts}");
        }
    }

    /// A plain directory takes the place of a control group, which a process enters by writing 0 to its list.
    #[test]
    fn a_command_is_started_in_its_group_and_the_keeper_leaves_it_again() {
        let above = tempfile::tempdir().expect("a directory");
        let group = ControlGroup(above.path().join("group"));
        std::fs::create_dir(&group.0).expect("a directory");
        let list = |of: &Path| std::fs::read_to_string(of.join("cgroup.procs")).ok();
        let before = group.around(|| (list(&group.0), list(above.path())));
        assert_eq!(before, (Some("0".to_owned()), None));
        assert_eq!(list(above.path()).as_deref(), Some("0"));

        let own = std::process::id();
        let text = format!("{own}\n2147483647\n");
        std::fs::write(group.0.join("cgroup.procs"), text).expect("a file");
        assert_eq!(
            group.members(),
            Vec::from_iter(Process::of(own.cast_signed()))
        );
        group.remove();
        assert!(group.0.exists(), "it still has a member");
        std::fs::remove_file(group.0.join("cgroup.procs")).expect("the list");
        group.remove();
        assert!(!group.0.exists() && group.members().is_empty());
    }
}
