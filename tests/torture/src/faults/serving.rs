//! A daemon that serves while its surroundings change, started by any command.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use settled_tests::{binaries, read, wait};
use tempfile::TempDir;

/// A running daemon and its log; dropping the value kills it.
pub struct Serving {
    child: Child,
    root: PathBuf,
    log: PathBuf,
    _directory: TempDir,
}

/// Makes the command `settled serve ROOT` behind these words: a program that runs another one, and its options.
pub fn serve(before: &[&str], root: &Path) -> Command {
    let program = binaries::settled();
    let mut command = match before.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    };
    command
        .arg("serve")
        .arg(root)
        .env_remove("SETTLED_ROOT")
        .env_remove("SETTLED_LOG");
    // Cargo's library paths would add calls of the loader, in a number that differs between machines.
    command
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

impl Serving {
    /// Starts it, with its log in a temporary file.
    pub fn start(root: &Path, mut command: Command) -> Serving {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let file = File::create(&log).expect("a file for the log");
        let child = command
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Serving {
            child,
            root: root.to_owned(),
            log,
            _directory: directory,
        }
    }

    /// Starts it and waits until it serves.
    pub fn at(root: &Path) -> Serving {
        let serving = Serving::start(root, serve(&[], root));
        serving.says("serving");
        serving
    }

    /// Returns its log so far.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until the log contains this text; fails at once if the daemon ended without it.
    pub fn says(&self, text: &str) {
        wait::until(&format!("the daemon to say `{text}`"), || {
            let is_said = self.log().contains(text);
            assert!(
                is_said || !self.is_over(),
                "it ended and never said `{text}`:\n{}",
                self.log()
            );
            is_said
        });
    }

    /// Asks it to read its config again.
    pub fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).expect("it runs");
    }

    /// True if it ended but nobody has waited for it yet.
    fn is_over(&self) -> bool {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_none_or(|(_, state)| state.starts_with('Z'))
    }

    /// Sends a signal to the daemon itself, not to the program that started it.
    pub fn signal(&self, signal: Signal) {
        let pid = read(self.root.join(".settled/lock"))
            .trim()
            .parse()
            .ok()
            .and_then(Pid::from_raw);
        kill_process(pid.expect("the lock names the daemon"), signal).expect("the daemon runs");
    }

    /// Waits until it ends by itself; returns its exit code and its log.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let status = wait::for_some(
            &format!("the daemon to end; it said\n{}", self.log()),
            || self.child.try_wait().expect("it is our child"),
        );
        (status.code(), self.log())
    }

    /// Ends it as an operator does; returns its exit code and its log.
    pub fn terminate(self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.ended()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended, or a test failed: then neither the daemon nor the program around it may outlive the test.
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = std::fs::read_to_string(self.root.join(".settled/lock")).ok();
            if let Some(pid) = pid
                .and_then(|text| text.trim().parse().ok())
                .and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::CONT);
                let _ = kill_process(pid, Signal::KILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
