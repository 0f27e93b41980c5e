//! A daemon for the time of a pair, if none serves: it judges the commands' messages while they wait for the result.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runner::program;

/// The most time the daemon may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval of checks whether a daemon serves. Each check holds the lock for an instant, which must not get in its
/// way.
const POLL: Duration = Duration::from_millis(50);

/// Our own daemon, if we had to start one. It ends with the value, and with this process.
#[derive(Debug)]
pub(super) struct Serving(Option<Child>);

impl Serving {
    /// Starts a daemon unless one serves. If that fails, each order runs in the daemon's place, or reports why it
    /// cannot.
    pub(super) fn see_to(root: &Path, log: &Path) -> Self {
        if spool::is_served(root) == Some(true) {
            return Self(None);
        }
        let mut child = match start(root, log) {
            Ok(child) => child,
            Err(error) => {
                tracing::warn!(%error, "no daemon can be started for the pair");
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
        // A terminal's Ctrl-C is for the pair, whose end the daemon still has to hear of.
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
        // The end of its input is what it waits for.
        drop(child.stdin.take());
        let told = Instant::now();
        while told.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        // A daemon loses nothing by it. The number of one that is gone may be another's by now.
        if matches!(child.try_wait(), Ok(None)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
