//! Proves at every start that the limit on open files leaves room for all that a daemon ever has open at once. Otherwise the
//! runtime would panic, a pass would deliver nothing, or a snapshot would fail months later and the next start with it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use rustix::io::{Errno, fcntl_dupfd_cloexec};

/// The files of the runtime, the signals, the watchers, the lock and the ledger.
const SERVING: i32 = 19;

/// A pass over one agent's mail, and a checkpoint beside it.
const PASS: i32 = 11;

/// A snapshot in the making: the files with the rows of the last one, at most 8, are open in the state and again in the fold,
/// and in the end those of the new one as well, beside the root, a directory and the file that is written or read.
const SNAPSHOT: i32 = 3 * 8 + 5;

/// The metrics, and the pipes of a command that starts.
const SPARE: i32 = 18;

/// The most files open at once, without those that the process was started with.
const FILES: i32 = SERVING + PASS + SNAPSHOT + SPARE;

/// The error when the limit is too low.
#[derive(Debug, thiserror::Error)]
#[error("the limit on open files is too low, expected at least {needed} (`ulimit -n {needed}`)")]
struct TooFewFiles {
    needed: i32,
    source: Errno,
}

/// Fails unless [`FILES`] more files can be open at once; the error names the limit that allows it.
pub(super) fn prove_room_for_files() -> io::Result<()> {
    let first = File::open("/dev/null")?;
    // The system gives out the lowest free number.
    let needed = first.as_raw_fd() + FILES;
    match fcntl_dupfd_cloexec(&first, needed - 1) {
        Ok(_) => Ok(()),
        Err(Errno::INVAL | Errno::MFILE) => {
            let source = Errno::MFILE;
            Err(io::Error::other(TooFewFiles { needed, source }))
        }
        Err(error) => Err(error.into()),
    }
}
