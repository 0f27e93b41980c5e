//! Asks the kernel whether any process has a file open for writing.
//!
//! Linux answers through a read lease, which it grants only while nobody has the file open for writing. The lease is
//! given back at once.

use std::os::fd::BorrowedFd;

/// Chooses the signal that reports a broken lease; `libc` lacks the number, which is the same on all systems that Rust
/// knows.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

/// The kernel's answer about the writers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// No process has it open for writing.
    Absent,
    /// A process has it open for writing, or mapped it writable.
    Present,
    /// The kernel does not say: only a file's owner and a process with `CAP_LEASE` may ask, and not every system and
    /// file system can answer.
    Unknown,
}

/// Returns whether any process has this file open for writing. It must itself be open for reading only.
///
/// A writer that opens the file at the same instant waits for microseconds, or gets `EWOULDBLOCK` if it opens the file
/// with `O_NONBLOCK`.
#[cfg(target_os = "linux")]
pub fn writer(file: BorrowedFd<'_>) -> Writer {
    // The kernel reports a lease that is broken before it is given back with a signal: SIGIO, which ends a process,
    // unless another one is chosen. SIGURG is ignored by default.
    if fcntl(file, F_SETSIG, libc::SIGURG).is_err() {
        return Writer::Unknown;
    }
    match fcntl(file, libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            // If this fails, the lease ends when the file is closed.
            let _ = fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
            Writer::Absent
        }
        Err(libc::EAGAIN) => Writer::Present,
        Err(_) => Writer::Unknown,
    }
}

/// Only Linux has leases.
#[cfg(not(target_os = "linux"))]
pub fn writer(_file: BorrowedFd<'_>) -> Writer {
    Writer::Unknown
}

/// Calls `fcntl` with a command that takes a number; the error is `errno`.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "neither rustix nor nix wraps F_SETLEASE and F_SETSIG"
)]
fn fcntl(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    argument: libc::c_int,
) -> Result<(), libc::c_int> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: the descriptor stays open as long as it is borrowed, and the commands given here take an `int` and touch
    // no memory of ours.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if answer == -1 {
        let error = std::io::Error::last_os_error();
        return Err(error.raw_os_error().unwrap_or(libc::EINVAL));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_writer_is_seen_until_it_closes_the_file() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a");
        let writing = File::create(&path).expect("a file");
        let reading = File::open(&path).expect("the file");
        assert_eq!(writer(reading.as_fd()), Writer::Present);
        let other = writing.try_clone().expect("a second handle");
        drop(writing);
        assert_eq!(
            writer(reading.as_fd()),
            Writer::Present,
            "one is still open"
        );
        drop(other);
        assert_eq!(writer(reading.as_fd()), Writer::Absent);
    }

    #[test]
    fn the_question_keeps_no_lease() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a");
        std::fs::write(&path, "text").expect("a file");
        let reading = File::open(&path).expect("the file");
        assert_eq!(writer(reading.as_fd()), Writer::Absent);
        let began = std::time::Instant::now();
        File::options().write(true).open(&path).expect("the file");
        // With a held lease an opener would wait for `fs.lease-break-time`.
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn a_question_that_a_writer_interrupts_ends_nobody() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a");
        std::fs::write(&path, "text").expect("a file");
        let end = std::time::Instant::now() + std::time::Duration::from_millis(300);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while std::time::Instant::now() < end {
                    drop(File::options().write(true).open(&path).expect("the file"));
                }
            });
            let reading = File::open(&path).expect("the file");
            while std::time::Instant::now() < end {
                assert_ne!(writer(reading.as_fd()), Writer::Unknown);
            }
        });
    }

    #[test]
    fn whoever_may_not_ask_gets_no_answer() {
        // Another user's file; root may ask about any file.
        if rustix::process::geteuid().is_root() {
            return;
        }
        let reading = File::open("/etc/passwd").expect("the file");
        assert_eq!(writer(reading.as_fd()), Writer::Unknown);
    }
}
