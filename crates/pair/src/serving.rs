//! Runs a daemon for the duration of a pair if none serves, so that the commands' messages are judged while they wait.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runner::program;

/// The time the daemon has to start, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two checks for a serving daemon. Each check holds the lock for an instant, which could get in the
/// way of a daemon that starts.
const POLL: Duration = Duration::from_millis(50);

/// The daemon that we started, if we had to. It ends with this value and with this process.
#[derive(Debug)]
pub(super) struct Serving(Option<Child>);

impl Serving {
    /// Starts a daemon unless one serves. If that fails, each order does the daemon's work itself, or reports why it
    /// cannot.
    pub(super) fn see_to(root: &Path, log: &Path) -> Self {
        if spool::is_served(root) == Some(true) {
            return Self(None);
        }
        let mut child = match start(root, log) {
            Ok(child) => child,
            Err(error) => {
                tracing::warn!(%error, "cannot start a daemon for the pair");
                return Self(None);
            }
        };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE
            && matches!(child.try_wait(), Ok(None))
            && spool::is_served(root) != Some(true)
        {
            std::thread::sleep(POLL);
        }
        Self(Some(child))
    }
}

fn start(root: &Path, log: &Path) -> std::io::Result<Child> {
    Command::new(program::running()?)
        .args(["serve", "--until-eof"])
        .arg(root)
        // Ctrl-C at the terminal is meant for the pair, and the daemon must still record its end.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(log)?)
        .spawn()
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        // The daemon ends with its input.
        drop(child.stdin.take());
        let told = Instant::now();
        while told.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        // A kill loses nothing. Only a child that still runs is killed, because its number could otherwise belong to
        // another process.
        if matches!(child.try_wait(), Ok(None)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
