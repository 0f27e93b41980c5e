//! The points at which a call can fail: every call of a run without a fault, from the first that names the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::call::{CALLS, Call, Errno};

/// One call that can fail.
#[derive(Clone, Debug)]
pub struct Point {
    /// The call.
    pub call: Call,
    /// The number of the call among those of its name in its thread, from 1.
    pub n: u32,
    /// The traced call, for a report.
    pub shown: String,
}

impl Point {
    /// Returns the errors that the call can return here.
    pub fn errnos(&self) -> Vec<Errno> {
        let making: &[Errno] = if self.shown.contains("O_CREAT") {
            self.call.making
        } else {
            &[]
        };
        self.call.errnos.iter().chain(making).copied().collect()
    }
}

/// Finds the points of a trace. Calls before the workspace is first named belong to the loader. Calls of later threads
/// that share a number with one of those are left out too: `strace` counts in each thread, and the program would not
/// start.
pub(super) fn points(trace: &str, root: &Path) -> Vec<Point> {
    let root = root
        .to_str()
        .expect("temporary directories have names of text");
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let mut known: BTreeSet<(&str, u32)> = BTreeSet::new();
    let mut points = Vec::new();
    let mut loaders: BTreeMap<&str, u32> = BTreeMap::new();
    let mut is_begun = false;
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let Some((name, _)) = rest.split_once('(') else {
            continue;
        };
        let Some(call) = CALLS.iter().find(|call| call.name == name) else {
            continue;
        };
        let n = counts.entry((thread, call.name)).or_default();
        *n += 1;
        is_begun |= rest.contains(root);
        if !is_begun {
            loaders.insert(call.name, *n);
        }
        if *n > loaders.get(call.name).copied().unwrap_or_default() && known.insert((call.name, *n))
        {
            points.push(Point {
                call: *call,
                n: *n,
                shown: rest.to_owned(),
            });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_counted_by_thread_from_the_first_call_on_the_workspace() {
        let trace = "7 openat(AT_FDCWD, \"/lib/libc.so\", O_RDONLY) = 3\n\
                     7 statx(AT_FDCWD, \"/tmp/w/agents\") = 0\n\
                     7 openat(3, \"x\", O_RDWR|O_CREAT) = 4\n\
                     8 openat(3, \"y\", O_RDONLY <unfinished ...>\n\
                     8 <... openat resumed>) = 5\n";
        let points = points(trace, Path::new("/tmp/w"));
        let found: Vec<_> = points
            .iter()
            .map(|point| (point.call.name, point.n))
            .collect();
        assert_eq!(found, [("statx", 1), ("openat", 2)]);
        assert!(
            points[1].errnos().contains(&Errno::NoSpace)
                && !points[0].errnos().contains(&Errno::NoSpace)
        );
    }
}
