//! Writes the log to standard error. A reader that falls behind loses lines and holds up no message.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::logs::{self, LogFormat};

/// The longest wait for a reader that has kept up so far, in nanoseconds.
const PATIENCE_NS: i64 = 100_000_000;

/// The number of lines lost since the last one that was written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes whole lines. A line that finds no room in the pipe is lost, and the next line that is written comes after a
/// count of the lost ones. Callers ignore errors: a log ends no daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    form: LogFormat,
}

impl Log {
    /// A log that writes its own lines in this format.
    pub(crate) fn of(form: LogFormat) -> Self {
        Self { form }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        // Once a reader has not read in time, nothing waits for it until it reads again.
        let patience = if LOST.load(Ordering::Relaxed) == 0 {
            PATIENCE_NS
        } else {
            0
        };
        if !has_room(&stderr, patience) {
            LOST.fetch_add(1, Ordering::Relaxed);
            return Ok(line.len());
        }
        let lost = LOST.swap(0, Ordering::Relaxed);
        if lost > 0 {
            stderr.write_all(logs::lost(self.form, lost).as_bytes())?;
        }
        stderr.write_all(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// True if a write of one page would not block, even if it would fail.
fn has_room(stderr: &io::StderrLock<'_>, patience_ns: i64) -> bool {
    let mut polled = [PollFd::new(stderr, PollFlags::OUT)];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: patience_ns,
    };
    // A stream that cannot be polled is written without a check.
    poll(&mut polled, Some(&patience)).map_or(true, |ready| ready > 0)
}
