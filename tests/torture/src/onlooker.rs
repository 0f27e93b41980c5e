//! An onlooker on a thread of its own, who looks at directories whenever something shows in them.

use std::io::PipeWriter;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The nanoseconds between two looks where no event tells of what shows.
const PAUSE_NS: i64 = 200_000;

/// The onlooker at work. With events a look costs nothing between two of them, and comes as soon after one as a look that
/// never rests would; that one took a processor for itself from the daemon that it looks at.
pub(crate) struct Onlooker<T> {
    /// Closed to say that it is over.
    over: PipeWriter,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Onlooker<T> {
    /// Looks now and whenever something shows in one of the directories; `seen` is what each look adds to.
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
                // Interrupted by a signal, it looks once more.
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

    /// Looks a last time, and gives all that was seen.
    pub(crate) fn stop(self) -> T {
        drop(self.over);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What becomes readable when a file shows in one of the directories, or was written there; none where there are no
/// events, or no more of them.
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

/// Empties it: which files they were is for the look to find.
fn pass_over(events: &OwnedFd) {
    let mut buffer = [0; 4096];
    while rustix::io::read(events.as_fd(), &mut buffer).is_ok_and(|read| read > 0) {}
}
