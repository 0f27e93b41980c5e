//! The processes below one, and their end: all of them, whatever group or session they have moved to. Answers for
//! signals and for telling a process from another that was given its number later; when a tree is to end is the
//! callers' to say.
//!
//! What is below a process is read from `/proc`. The asking process has made itself the reaper of what it started
//! (`become_reaper`), so that a process whose parent ends stays below. Without `/proc` only the group is reached.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use serde::{Deserialize, Serialize};

/// The interval between two looks at a tree that is to end.
const POLL: Duration = Duration::from_millis(20);

/// The most looks for new processes before the stopped ones are killed: a later look finds one that forked during an
/// earlier look.
const LOOKS_MAX: usize = 50;

/// A process that no other is mistaken for: a number is given again, at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The start time, in ticks since the machine started; 0 if it cannot be known.
    pub start: u64,
}

/// The facts that `/proc` gives about a process.
struct Stat {
    parent: i32,
    session: i32,
    is_over: bool,
    start: u64,
}

impl Process {
    /// The process of that number, if it runs.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = stat(pid).filter(|stat| !stat.is_over)?;
        Some(Self {
            pid,
            start: stat.start,
        })
    }

    /// True if this very process still runs.
    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends it a signal; nothing happens if it is gone.
    #[cfg(target_os = "linux")]
    pub fn signal(self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        // The descriptor is taken before the look: the signal goes to the process that it means then.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if self.is_running() {
            // It may be over by now, which is what is wanted.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Sends it a signal; nothing happens if it is gone.
    #[cfg(not(target_os = "linux"))]
    pub fn signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_running()) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Makes this process the parent of whatever below it loses its own. Only Linux can; elsewhere a process that left
/// its group is out of reach.
pub(crate) fn become_reaper() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::warn!(%error, "processes that leave the tree of an agent cannot be kept below");
    }
}

/// Every process below that one, without itself.
pub fn below(root: i32) -> Vec<Process> {
    Snapshot::take().below(vec![root])
}

/// One look at all processes. A comparison of two looks mistakes what was forked in between.
struct Snapshot {
    /// The processes that run, with their session, by their parent.
    children: BTreeMap<i32, Vec<(Process, i32)>>,
}

impl Snapshot {
    fn take() -> Self {
        let mut children: BTreeMap<i32, Vec<(Process, i32)>> = BTreeMap::new();
        for pid in running() {
            if let Some(stat) = stat(pid)
                && !stat.is_over
            {
                let start = stat.start;
                let of_parent = children.entry(stat.parent).or_default();
                of_parent.push((Process { pid, start }, stat.session));
            }
        }
        Self { children }
    }

    fn below(mut self, mut parents: Vec<i32>) -> Vec<Process> {
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            for (child, _) in self.children.remove(&parent).unwrap_or_default() {
                parents.push(child.pid);
                found.push(child);
            }
        }
        found
    }

    /// The children of a process that are in another session than it and are none of these, and all that is below
    /// them. It never descends below one of these, so it cannot find anything that such a process forks
    /// meanwhile.
    fn strays(mut self, root: i32, session: i32, keepers: &[i32]) -> Vec<Process> {
        let children = self.children.remove(&root).unwrap_or_default();
        let strays = children
            .into_iter()
            .filter(|(child, of_child)| *of_child != session && !keepers.contains(&child.pid));
        let mut strays: Vec<Process> = strays.map(|(child, _)| child).collect();
        let below = self.below(strays.iter().map(|stray| stray.pid).collect());
        strays.extend(below);
        strays
    }
}

/// Ends everything that `members` names: asks first, then kills what is left after `grace`. Says whether nothing is
/// left.
pub fn end(members: impl Fn() -> Vec<Process>, group: Option<Pid>, grace: Duration) -> bool {
    let start = Instant::now();
    signal_group(group, Signal::TERM);
    members()
        .into_iter()
        .for_each(|process| process.signal(Signal::TERM));
    while start.elapsed() < grace && !(members().is_empty() && is_group_gone(group)) {
        std::thread::sleep(POLL);
    }
    signal_group(group, Signal::KILL);
    let mut stopped: Vec<Process> = Vec::new();
    for _ in 0..LOOKS_MAX {
        let new: Vec<Process> = members()
            .into_iter()
            .filter(|process| !stopped.contains(process))
            .collect();
        if new.is_empty() {
            break;
        }
        new.iter().for_each(|process| process.signal(Signal::STOP));
        stopped.extend(new);
    }
    for _ in 0..LOOKS_MAX {
        let left = members();
        // What was stopped and is no member any more was stopped by mistake.
        let is_mistaken = |process: &&Process| !left.contains(process);
        let mistaken = stopped.iter().filter(is_mistaken);
        mistaken.for_each(|process| process.signal(Signal::CONT));
        if left.is_empty() {
            return true;
        }
        left.into_iter()
            .for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(POLL);
    }
    members().is_empty()
}

/// Ends what is below this process and below none of these keepers: what agents left behind whose keeper was
/// killed. A keeper has a session of its own, so nothing of an agent is in ours; what else our parent may have left
/// us is.
pub fn end_strays(keepers: &[i32]) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(session) = stat(own).map(|stat| stat.session) else {
        return;
    };
    let strays = || Snapshot::take().strays(own, session, keepers);
    if !strays().is_empty() {
        end(strays, None, Duration::ZERO);
    }
    reap(keepers);
}

/// Takes away what is over of the children of this process that nobody else waits for; `kept` are waited for.
pub(crate) fn reap(kept: &[i32]) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for pid in running().filter(|pid| !kept.contains(pid)) {
        if stat(pid).is_some_and(|stat| stat.is_over && stat.parent == own) {
            // Nothing is left to do about one that cannot be waited for.
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        }
    }
}

/// The processes, as far as they can be seen, whose environment says this.
pub fn saying(assignment: &str) -> Vec<Process> {
    let says = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == assignment.as_bytes())
    };
    running()
        .filter(|pid| says(*pid))
        .filter_map(Process::of)
        .collect()
}

/// The id of this boot of the machine; empty if it cannot be known.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn signal_group(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // A group nobody is in any more is ended already.
        let _ = kill_process_group(group, signal);
    }
}

fn is_group_gone(group: Option<Pid>) -> bool {
    group.is_none_or(|group| rustix::process::test_kill_process_group(group).is_err())
}

fn running() -> impl Iterator<Item = i32> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name in the line is in brackets and may hold anything, brackets too: the fields come after the last one.
fn stat(pid: i32) -> Option<Stat> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let line = String::from_utf8_lossy(&line);
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Stat {
        parent,
        session,
        is_over: matches!(state, "Z" | "X" | "x"),
        start,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_told_from_another_that_got_its_number() {
        let mut child = Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep can be run");
        let process = Process::of(child.id().cast_signed()).expect("it runs");
        let other = Process {
            start: process.start + 1,
            ..process
        };
        other.signal(Signal::KILL);
        assert!(process.is_running() && !other.is_running());
        assert!(below(std::process::id().cast_signed()).contains(&process));
        process.signal(Signal::KILL);
        child.wait().expect("it is our child");
        assert!(!process.is_running());
    }

    #[test]
    fn a_process_that_was_stopped_and_is_no_member_goes_on() {
        let mut child = Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep can be run");
        let process = Process::of(child.id().cast_signed()).expect("it runs");
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid));
            let stat = stat.expect("it runs");
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.trim().chars().next())
        };
        let is_stopped = || state() == Some('T');
        let within = |condition: &dyn Fn() -> bool| {
            let deadline = Instant::now() + Duration::from_secs(10);
            while !condition() && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
            condition()
        };
        // No member while it could be asked to end, a member where it is stopped, and none of those that are left.
        let looks = std::cell::Cell::new(0);
        let members = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                assert!(within(&is_stopped));
            }
            Vec::from_iter([2, 3].contains(&looks.get()).then_some(process))
        };
        let is_ended = end(members, None, Duration::ZERO);
        let goes_on = within(&|| !is_stopped());
        // Before anything fails: nobody else would end what is stopped.
        process.signal(Signal::KILL);
        child.wait().expect("it is our child");
        assert!(is_ended && goes_on);
    }
}
