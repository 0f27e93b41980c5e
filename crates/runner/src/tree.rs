//! Finds the processes below one and ends all of them, whatever group or session they have moved to. It sends signals,
//! and tells a process from a later one with the same number; callers decide when a tree ends.
//!
//! It reads from `/proc` what is below a process. The calling process has made itself the reaper of what it started
//! (`become_reaper`), so that a process whose parent ends stays below it. Without `/proc` it reaches only the group.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use serde::{Deserialize, Serialize};

/// The pause between two looks at a tree that is ending.
const POLL: Duration = Duration::from_millis(20);

/// The most looks for new processes before the stopped ones are killed: a later look finds what a process forked during
/// an earlier one.
const LOOKS_MAX: usize = 50;

/// A process, distinguished from later ones with the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Process {
    /// The process number.
    pub pid: i32,
    /// The start time, in ticks since boot; 0 if it is unknown.
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
    /// The process with this number, if it runs.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = stat(pid).filter(|stat| !stat.is_over)?;
        Some(Self {
            pid,
            start: stat.start,
        })
    }

    /// True if this process, and not a later one with its number, still runs.
    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal; does nothing if the process is gone.
    #[cfg(target_os = "linux")]
    pub fn signal(self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        // Opened before the check, so that the signal goes to the process that was checked.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if self.is_running() {
            // If the process has ended meanwhile, that is the goal.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Sends a signal; does nothing if the process is gone.
    #[cfg(not(target_os = "linux"))]
    pub fn signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_running()) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Makes this process the parent of every orphan below it. Only Linux can; elsewhere nothing reaches a process outside
/// its group.
pub(crate) fn become_reaper() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::warn!(%error, "cannot adopt orphans; processes an agent detaches may be missed");
    }
}

/// Every process below this one, without itself.
pub fn below(root: i32) -> Vec<Process> {
    Snapshot::take().below(vec![root])
}

/// One look at all processes; comparing two looks would misjudge a process forked in between.
struct Snapshot {
    /// The running processes with their sessions, by parent.
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

    /// The children of a process in another session that are none of the keepers, and everything below them. It never
    /// descends below a keeper, so it cannot find what a keeper's agent forks meanwhile.
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

/// Ends everything that `members` names: first asks, then kills what is left after `grace`. True if nothing is left.
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
        // A stopped process that is no longer a member was stopped by mistake.
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

/// Ends what is below this process but below no keeper: what agents left behind when their keeper was killed. Every
/// keeper has a session of its own, so processes in our session, which our parent may have left us, belong to no agent.
pub fn end_strays(keepers: &[i32]) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(session) = stat(own).map(|stat| stat.session) else {
        return;
    };
    let strays = || Snapshot::take().strays(own, session, keepers);
    if !strays().is_empty() {
        end(strays, None, Duration::ZERO);
    }
    // Other threads wait for programs of our session, such as git; without their exit status these would have failed.
    let is_stray = |pid: &i32| {
        !keepers.contains(pid)
            && stat(*pid).is_some_and(|stat| stat.parent == own && stat.session != session)
    };
    running().filter(is_stray).for_each(reap_one);
}

/// Reaps all ended children of this process.
pub(crate) fn reap() {
    running().for_each(reap_one);
}

/// Does nothing to a process that runs or is not our child.
fn reap_one(pid: i32) {
    let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

/// The visible processes whose environment has this assignment.
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

/// The id of this boot; empty if it is unknown.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn signal_group(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // An empty group has already ended.
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

/// Reads a process's line. The name in brackets may contain brackets, so the fields begin after the last one.
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
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

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
    fn one_that_is_asked_to_end_has_its_time_and_only_what_is_left_is_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let last_words = "trap 'echo > \"$0\"; exit' TERM; echo; read line";
        for (script, is_asked_in_its_group, is_done) in [
            (last_words, true, true),
            (last_words, false, true),
            ("trap '' TERM; echo; read line", true, false),
        ] {
            let child = Command::new("sh")
                .args(["-c", script])
                .arg(&done)
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn();
            let mut child = child.expect("a shell");
            let mut ready = [0];
            let out = child.stdout.as_mut().expect("it was piped");
            out.read_exact(&mut ready).expect("a line");
            let (group, pid) = (Pid::from_child(&child), child.id().cast_signed());
            let child = std::cell::RefCell::new(child);
            let members = || {
                let _ = child.borrow_mut().try_wait();
                Vec::from_iter(Process::of(pid))
            };
            let start = Instant::now();
            let grace = Duration::from_secs(if is_done { 600 } else { 0 });
            let group = is_asked_in_its_group.then_some(group);
            assert!(end(members, group, grace));
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "it is over earlier"
            );
            assert_eq!(std::fs::remove_file(&done).is_ok(), is_done);
        }
    }

    #[test]
    fn a_group_is_signalled_as_a_whole() {
        let child = Command::new("sleep").arg("60").process_group(0).spawn();
        let mut child = child.expect("sleep can be run");
        let group = Pid::from_child(&child);
        assert!(!is_group_gone(Some(group)) && is_group_gone(None));
        end(Vec::new, Some(group), Duration::ZERO);
        let status = child.wait().expect("it is our child");
        assert!(!status.success() && is_group_gone(Some(group)));
    }

    #[test]
    fn a_process_is_found_by_a_variable_in_its_environment() {
        let value = format!("SETTLED_TREE_TEST={}", std::process::id());
        let (name, number) = value.split_once('=').expect("an assignment");
        let child = Command::new("cat")
            .env(name, number)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("cat can be run");
        // A copied byte shows that `cat` runs, with its own environment.
        let (mut to, out) = (child.stdin.take(), child.stdout.as_mut());
        let to_it = to.as_mut().expect("it was piped");
        to_it.write_all(b"x").expect("it reads");
        let mut ready = [0];
        out.expect("it was piped")
            .read_exact(&mut ready)
            .expect("a copy");
        let process = Process::of(child.id().cast_signed());
        assert_eq!(saying(&value), Vec::from_iter(process));
        drop(to);
        child.wait().expect("it is our child");
        assert_eq!(saying(&value), []);
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
        // A member only while processes are stopped: neither when they are asked to end nor when the rest is killed.
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
        // Before any assertion can fail, because nobody else would end the stopped process.
        process.signal(Signal::KILL);
        child.wait().expect("it is our child");
        assert!(is_ended && goes_on);
    }
}
