//! A thread that scans directories whenever a file appears in them.

use std::io::PipeWriter;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The nanoseconds between two scans where the system reports no events.
const PAUSE_NS: i64 = 200_000;

/// A running onlooker. It sleeps until an event, so it takes no processor from the daemon, and still scans as soon as a
/// busy loop would.
pub(crate) struct Onlooker<T> {
    /// Closed to end the thread.
    over: PipeWriter,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Onlooker<T> {
    /// Starts to scan, now and whenever a file appears in one of the directories. Each scan adds to `seen`.
    pub(crate) fn start(
        directories: Vec<PathBuf>,
        mut seen: T,
        mut look: impl FnMut(&mut T) + Send + 'static,
    ) -> Self {
        let (told, over) = std::io::pipe().expect("a pipe");
        let thread = std::thread::spawn(move || {
            let events = events(&directories);
            let no_event = Timespec {
                tv_sec: 0,
                tv_nsec: PAUSE_NS,
            };
            let longest = events.is_none().then_some(&no_event);
            loop {
                look(&mut seen);
                let mut ready = vec![PollFd::new(&told, PollFlags::IN)];
                ready.extend(events.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
                // A signal only causes one more scan.
                let _ = poll(&mut ready, longest);
                if !ready[0].revents().is_empty() {
                    break;
                }
                events.iter().for_each(pass_over);
            }
            look(&mut seen);
            seen
        });
        Self { over, thread }
    }

    /// Scans a last time and returns everything seen.
    pub(crate) fn stop(self) -> T {
        drop(self.over);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Returns a descriptor that becomes readable when a file appears in one of the directories or is closed after writing;
/// `None` if the system has no events left, or none at all.
#[cfg(target_os = "linux")]
fn events(directories: &[PathBuf]) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let shows = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE;
    for directory in directories {
        add_watch(&events, directory, shows).ok()?;
    }
    Some(events)
}

#[cfg(not(target_os = "linux"))]
fn events(_: &[PathBuf]) -> Option<OwnedFd> {
    None
}

/// Discards the events: the scan finds the files itself.
fn pass_over(events: &OwnedFd) {
    let mut buffer = [0; 4096];
    while rustix::io::read(events.as_fd(), &mut buffer).is_ok_and(|read| read > 0) {}
}
