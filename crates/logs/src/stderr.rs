//! Writes the log to standard error. A reader that falls behind loses lines and holds up no message.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LogFormat;

/// The longest wait for a reader that has kept up so far, in nanoseconds.
const PATIENCE_NS: i64 = 100_000_000;

/// The number of lines lost since the last one that was written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// True if the last line that was written has no end.
static IS_CUT: AtomicBool = AtomicBool::new(false);

/// The size of a write that does not block if there is room, in bytes.
const PAGE: usize = 4096;

/// Writes whole lines. A line that finds no room in the pipe is lost, as is the rest of a line above one page, and the
/// next line that is written comes after a count of the lost ones. Callers ignore errors, because a failing log must not
/// stop the daemon.
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
        let lost = LOST.load(Ordering::Relaxed);
        // Once a reader has not read in time, nothing waits for it until it reads again.
        let patience = if lost == 0 { PATIENCE_NS } else { 0 };
        let mut text = Vec::new();
        if lost > 0 {
            text.extend(IS_CUT.load(Ordering::Relaxed).then_some(b'\n'));
            text.extend(crate::lost(self.form, lost).as_bytes());
        }
        text.extend(line);
        for (page, bytes) in text.chunks(PAGE).enumerate() {
            let is_first = page == 0;
            if !has_room(&stderr, patience) {
                let before = if is_first { lost } else { 0 };
                LOST.store(before + 1, Ordering::Relaxed);
                IS_CUT.fetch_or(!is_first, Ordering::Relaxed);
                return Ok(line.len());
            }
            stderr.write_all(bytes)?;
            LOST.store(0, Ordering::Relaxed);
            IS_CUT.store(false, Ordering::Relaxed);
        }
        Ok(line.len())
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
