//! The queue of the events of all directories but those that are kept apart.
//!
//! On Linux a thread of ours reads it. A program that opens and closes files makes half a million events a second; `notify`
//! reads fewer, and the events of others would wait behind 16 384 of these. `notify` also answers a request for a watch only once
//! its queue is empty, which it never is beside such a program.

#[cfg(target_os = "linux")]
pub(crate) use self::linux::Queue;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::Queue;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::ffi::OsStr;
    use std::io::{self, PipeReader, PipeWriter};
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use inotify::{Event, EventMask, Events, Inotify, WatchDescriptor, WatchMask, Watches};
    use notify::Error;
    use rustix::event::{PollFd, PollFlags, poll};

    use crate::{Collected, Collector, IsWanted, News, Wake};

    /// The bytes of events that are read and noted in one go: about 300 events.
    const READ_BYTES: usize = 16 * 1024;

    /// The pause after events that are news. Without it the daemon, which takes the hints under the same lock, would wait for
    /// as long as a flood goes on.
    const PAUSE: Duration = Duration::from_micros(100);

    const EVENTS: WatchMask = WatchMask::CLOSE_WRITE
        .union(WatchMask::MOVED_TO)
        .union(WatchMask::DELETE)
        .union(WatchMask::ONLYDIR)
        .union(WatchMask::DONT_FOLLOW);

    type Directories = HashMap<WatchDescriptor, PathBuf>;

    /// A queue, and the thread that reads it until this is dropped.
    pub(crate) struct Queue {
        watches: Watches,
        watched: HashMap<PathBuf, WatchDescriptor>,
        directories: Arc<Mutex<Directories>>,
        /// Its end tells the thread to end.
        _end: PipeWriter,
    }

    impl Queue {
        pub(crate) fn start(collector: &Arc<Collector>) -> Result<Self, Error> {
            let inotify = Inotify::init().map_err(Error::io)?;
            let (end, _end) = io::pipe().map_err(Error::io)?;
            let directories = Arc::<Mutex<Directories>>::default();
            let queue = Self {
                watches: inotify.watches(),
                watched: HashMap::new(),
                directories: Arc::clone(&directories),
                _end,
            };
            let collector = Arc::clone(collector);
            let thread = std::thread::Builder::new().name("file-events".to_owned());
            let read = move || read(inotify, &directories, &collector, &end);
            thread.spawn(read).map_err(Error::io)?;
            Ok(queue)
        }

        /// Watches the directory; never waits for the thread.
        pub(crate) fn watch(&mut self, directory: &Path) -> Result<(), Error> {
            if let Some(descriptor) = self.watched.remove(directory) {
                let mut directories = lock(&self.directories);
                // One that was renamed to the path of another is watched as that by now.
                if directories
                    .get(&descriptor)
                    .is_some_and(|of| of == directory)
                {
                    directories.remove(&descriptor);
                    // A directory that was renamed away is still watched under its old name. One that was removed is not,
                    // so an error here is harmless.
                    let _ = self.watches.remove(descriptor);
                }
            }
            let descriptor = self.watches.add(directory, EVENTS).map_err(Error::io)?;
            // An event that is read before this is of a file that the caller is about to list.
            lock(&self.directories).insert(descriptor.clone(), directory.to_owned());
            self.watched.insert(directory.to_owned(), descriptor);
            Ok(())
        }
    }

    fn lock(directories: &Mutex<Directories>) -> MutexGuard<'_, Directories> {
        directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the queue until the other end of `end` is closed.
    fn read(
        mut inotify: Inotify,
        directories: &Mutex<Directories>,
        collector: &Collector,
        end: &PipeReader,
    ) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let mut waits = [
                PollFd::new(&inotify, PollFlags::IN),
                PollFd::new(end, PollFlags::IN),
            ];
            let polled = poll(&mut waits, None);
            if !waits[1].revents().is_empty() {
                return;
            }
            if polled.is_err() {
                continue;
            }
            let wake = match inotify.read_events(&mut buffer) {
                Ok(events) => collector.note(|collected| {
                    let mut directories = lock(directories);
                    note_all(events, &mut directories, collected, collector.is_wanted)
                }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Wake::No,
                Err(_) => collector.note(Collected::lost_events),
            };
            if wake != Wake::No {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Notes events. A flood is of few files, and a file that was finished once more since its last event is no news.
    fn note_all(
        events: Events<'_>,
        directories: &mut Directories,
        collected: &mut Collected,
        is_wanted: IsWanted,
    ) -> Wake {
        let mut finished = HashSet::new();
        let mut wake = Wake::No;
        for event in events {
            if event.mask.contains(EventMask::DELETE) {
                finished.clear();
            } else if !finished.insert((event.wd.get_watch_descriptor_id(), event.name)) {
                continue;
            }
            wake = wake.max(note(&event, directories, collected, is_wanted));
        }
        wake
    }

    fn note(
        event: &Event<&OsStr>,
        directories: &mut Directories,
        collected: &mut Collected,
        is_wanted: IsWanted,
    ) -> Wake {
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            return collected.lost_events();
        }
        if event.mask.contains(EventMask::IGNORED) {
            let directory = directories.remove(&event.wd);
            return directory.map_or(Wake::No, |directory| collected.note_end(&directory));
        }
        let news = if event.mask.contains(EventMask::DELETE) {
            News::Removed
        } else {
            News::Finished
        };
        match (directories.get(&event.wd), event.name) {
            (Some(directory), Some(name)) if is_wanted(directory, name) => {
                collected.note(directory, name, news)
            }
            _ => Wake::No,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::path::Path;
    use std::sync::Arc;

    use notify::{Error, RecommendedWatcher};

    use crate::Collector;

    /// A watcher with a queue of its own.
    pub(crate) struct Queue(RecommendedWatcher);

    impl Queue {
        pub(crate) fn start(collector: &Arc<Collector>) -> Result<Self, Error> {
            let collect = |collector: &Collector, event| drop(collector.collect(event));
            collector.watcher(collect).map(Self)
        }

        pub(crate) fn watch(&mut self, directory: &Path) -> Result<(), Error> {
            crate::watch(&mut self.0, directory)
        }
    }
}
