//! Kills the daemon at the n-th system call of a run, in whichever thread it happens.
//!
//! `strace -e inject=…:when=N` counts in each thread separately and cannot reach the calls of a second thread that
//! makes fewer of them than the first. So this module counts over all threads, with the same kernel interface. The
//! killed call has not begun; the calls that other threads were in are finished.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use settled_tests::binaries;

use super::call::{Call, Calls};

/// The call at which to kill a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The calls that count.
    pub calls: Calls,
    /// The number of the call among them, from 1 over all threads, counted from the one that opens the root; 0 for
    /// none.
    pub nth: usize,
}

impl Aim {
    /// A run that is only counted, not killed.
    pub const NOWHERE: Aim = Aim {
        calls: Calls::All,
        nth: 0,
    };
}

/// The end of a run.
#[derive(Debug)]
pub struct Ran {
    /// The call at which it was killed; `None` if it ended by itself first.
    pub killed_at: Option<&'static str>,
    /// Its exit code if it was not killed.
    pub code: Option<i32>,
    /// The names of the counted calls, in order.
    pub calls: Vec<&'static str>,
    /// Its standard error.
    pub log: String,
}

/// Runs `settled serve ROOT --once` to its end or to the aim.
pub fn run(root: &Path, aim: Aim) -> Ran {
    let mut log = tempfile::tempfile().expect("a file for the log");
    let child = held(root, &log);
    let main = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    let mut trace = Trace {
        root,
        aim,
        main,
        is_settled: false,
        is_open: false,
        killed_at: None,
        calls: Vec::new(),
    };
    let code = trace.follow(child);
    log.rewind().expect("a log can be read again");
    let mut said = String::new();
    log.read_to_string(&mut said).expect("the log is text");
    let Trace {
        killed_at, calls, ..
    } = trace;
    Ran {
        killed_at,
        code,
        calls,
        log: said,
    }
}

/// A shell that becomes the daemon once it reads a line.
fn held(root: &Path, log: &File) -> Child {
    Command::new("sh")
        .args(["-c", "read -r go && exec \"$@\" </dev/null", "sh"])
        .arg(binaries::settled())
        .arg("serve")
        .arg(root)
        .arg("--once")
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log.try_clone().expect("a second handle"))
        .spawn()
        .expect("a shell can be run")
}

struct Trace<'a> {
    root: &'a Path,
    aim: Aim,
    main: Pid,
    is_settled: bool,
    is_open: bool,
    killed_at: Option<&'static str>,
    calls: Vec<&'static str>,
}

impl Trace<'_> {
    /// Follows the process from stop to stop until it is gone; returns its exit code if it was not killed.
    fn follow(&mut self, mut child: Child) -> Option<i32> {
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(self.main, options)
            .and_then(|()| ptrace::interrupt(self.main))
            .unwrap_or_else(|error| {
                panic!("a child cannot be traced here (kernel.yama.ptrace_scope?): {error}")
            });
        let mut gate = child.stdin.take().expect("it was piped");
        gate.write_all(b"go\n").expect("the shell reads a line");
        drop(gate);
        loop {
            // Only children of this thread: other threads may be tracing too.
            let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
            let status = match waitpid(None, Some(flags)) {
                Err(Errno::EINTR) => continue,
                status => status.expect("the daemon is our child"),
            };
            if let WaitStatus::Exited(pid, code) = status
                && pid == self.main
            {
                return Some(code);
            }
            if let WaitStatus::Signaled(pid, signal, _) = status
                && pid == self.main
            {
                assert!(
                    self.killed_at.is_some(),
                    "the daemon ended by {signal} that nobody sent"
                );
                return None;
            }
            self.go_on(status);
        }
    }

    /// Handles a stop and lets the thread continue.
    fn go_on(&mut self, status: WaitStatus) {
        let mut signal = None;
        if let WaitStatus::PtraceSyscall(pid) = status {
            self.at_call(pid);
        }
        if let WaitStatus::PtraceEvent(_, _, event) = status
            && event == libc::PTRACE_EVENT_EXEC
        {
            self.is_settled = true;
        }
        if let WaitStatus::Stopped(_, sent) = status {
            signal = Some(sent);
        }
        let Some(pid) = status
            .pid()
            .filter(|_| !matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
        else {
            return;
        };
        // This fails for a thread that was killed meanwhile.
        let _ = ptrace::syscall(pid, signal);
    }

    /// Counts a call that begins, and kills the process at the aim.
    fn at_call(&mut self, pid: Pid) {
        let begins =
            ptrace::syscall_info(pid).is_ok_and(|info| info.op == libc::PTRACE_SYSCALL_INFO_ENTRY);
        if !begins || !self.is_settled || self.killed_at.is_some() {
            return;
        }
        let Some(call) = Call::of(pid) else { return };
        self.is_open = self.is_open || self.opens_root(pid, &call);
        if !self.is_open || !self.aim.calls.has(&call) {
            return;
        }
        self.calls.push(call.name());
        if self.calls.len() == self.aim.nth {
            self.killed_at = Some(call.name());
            kill(self.main, Signal::SIGKILL).expect("it is stopped here");
        }
    }

    fn opens_root(&self, pid: Pid, call: &Call) -> bool {
        let Some(address) = call.path() else {
            return false;
        };
        let root = self.root.as_os_str().as_encoded_bytes();
        let mut found = vec![0; root.len()];
        File::open(format!("/proc/{pid}/mem"))
            .and_then(|memory| memory.read_exact_at(&mut found, address))
            .is_ok()
            && found == root
    }
}
