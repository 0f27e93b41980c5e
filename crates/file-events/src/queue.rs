//! The kernel's queue of events, and the thread that reads it.
//!
//! On Linux it is a thread of ours. A program that opens and closes files makes half a million events a second; `notify`
//! reads fewer, and the events of others would wait behind 16 384 of these. `notify` also answers a request for a watch only once
//! its queue is empty, which it never is beside such a program.

#[cfg(target_os = "linux")]
pub(crate) use self::linux::Queue;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::Queue;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::io::{self, PipeReader, PipeWriter};
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
    use notify::Error;
    use rustix::event::{PollFd, PollFlags, poll};

    use crate::hints::{Hints, News};
    use crate::{Collector, IsWanted};

    /// The bytes of events that are read and noted in one go: about 1 000 events.
    const READ_BYTES: usize = 65_536;

    /// The pause after a read for each of its events, up to the maximum. Without it the daemon, which takes the hints under the
    /// same lock, would wait for as long as a flood goes on, and the kernel would wake the thread for every few of its events.
    const PAUSE: Duration = Duration::from_micros(10);
    const PAUSE_MAX: Duration = Duration::from_micros(300);

    /// The events of finished files. Opens are left out because an agent that only reads its files would fill the queue, and
    /// writes because a program makes a million of them a second.
    const EVENTS: WatchMask = WatchMask::CLOSE_WRITE
        .union(WatchMask::MOVED_TO)
        .union(WatchMask::ONLYDIR)
        .union(WatchMask::DONT_FOLLOW);

    /// The directories by the numbers of their watches.
    type Directories = HashMap<i32, PathBuf>;

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

        /// Watches the directory, in place of one that was there before; never waits for the thread.
        pub(crate) fn watch(&mut self, directory: &Path) -> Result<(), Error> {
            self.forget(directory);
            let descriptor = self.watches.add(directory, EVENTS).map_err(Error::io)?;
            // An event that is read before this is of a file that the caller is about to list.
            let watch = descriptor.get_watch_descriptor_id();
            lock(&self.directories).insert(watch, directory.to_owned());
            self.watched.insert(directory.to_owned(), descriptor);
            Ok(())
        }

        /// Ends the watch of a directory that is not at this path any more.
        pub(crate) fn forget(&mut self, directory: &Path) {
            let Some(descriptor) = self.watched.remove(directory) else {
                return;
            };
            let watch = descriptor.get_watch_descriptor_id();
            let mut directories = lock(&self.directories);
            // If the directory was renamed to another watched path, its watch belongs to that path by now.
            if directories.get(&watch).is_some_and(|of| of == directory) {
                directories.remove(&watch);
                // A renamed directory still has its watch. A removed one has none, so an error here is harmless.
                let _ = self.watches.remove(descriptor);
            }
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
            let mut count = 0;
            let noted = polled.map_err(io::Error::from).and_then(|_| {
                let events = inotify.read_events(&mut buffer)?;
                let events = events.inspect(|_| count += 1);
                collector.note(|hints| {
                    note_all(events, &mut lock(directories), hints, collector.is_wanted)
                });
                Ok(())
            });
            let pause = match noted {
                Ok(()) => pause_after(count),
                Err(error) => {
                    if is_loss(error.kind()) {
                        collector.note(Hints::lost_events);
                    }
                    PAUSE_MAX
                }
            };
            std::thread::sleep(pause);
        }
    }

    fn pause_after(events: u32) -> Duration {
        (PAUSE * events).min(PAUSE_MAX)
    }

    /// False if the next read gets the same events.
    fn is_loss(error: io::ErrorKind) -> bool {
        !matches!(
            error,
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        )
    }

    /// Notes events. Those of a flood follow each other, so the hints of their directory are looked up once.
    fn note_all<'e>(
        events: impl Iterator<Item = Event<&'e OsStr>>,
        directories: &mut Directories,
        hints: &mut Hints,
        is_wanted: IsWanted,
    ) -> News {
        let mut events = events.peekable();
        let mut news = News::Waits;
        while let Some(event) = events.next() {
            let watch = event.wd.get_watch_descriptor_id();
            let noted = if event.mask.contains(EventMask::Q_OVERFLOW) {
                hints.lost_events()
            } else if event.mask.contains(EventMask::IGNORED) {
                let directory = directories.remove(&watch);
                directory.map_or(News::Waits, |directory| hints.note_end(&directory))
            } else if let Some(directory) = directories.get(&watch) {
                let is_next = |next: &Event<&OsStr>| {
                    next.wd.get_watch_descriptor_id() == watch
                        && !next.mask.contains(EventMask::IGNORED)
                };
                let next = std::iter::from_fn(|| events.next_if(is_next));
                let names = std::iter::once(event).chain(next);
                let names = names.filter_map(|event| event.name);
                hints.note(directory, names, is_wanted)
            } else {
                News::Waits
            };
            news = news.max(noted);
        }
        news
    }

    #[cfg(test)]
    mod tests {
        use std::collections::HashSet;

        use super::*;

        #[test]
        fn events_of_several_directories_in_one_read_are_noted_each_for_its_own() {
            let mut inotify = Inotify::init().expect("events");
            let root = tempfile::tempdir().expect("a directory");
            let [one, other] = ["one", "other"].map(|name| root.path().join(name));
            let mut directories = Directories::new();
            let mut hints = Hints::default();
            let [watch_of_one, _] = [&one, &other].map(|directory| {
                std::fs::create_dir(directory).expect("a directory");
                let watch = inotify.watches().add(directory, EVENTS).expect("a watch");
                directories.insert(watch.get_watch_descriptor_id(), directory.clone());
                hints.is_new(directory, Some((1, 1, None)));
                watch
            });
            for file in [
                one.join("a"),
                other.join("b"),
                one.join("junk"),
                one.join("c"),
            ] {
                std::fs::write(file, "text").expect("a file");
            }
            // A removed directory ends its watch as well, but only once nothing holds it: a command that another test
            // starts meanwhile may, for a moment.
            inotify.watches().remove(watch_of_one).expect("a watch");
            let mut buffer = vec![0; READ_BYTES];
            let events = inotify.read_events(&mut buffer).expect("events");
            let news = note_all(events, &mut directories, &mut hints, |_, name| {
                name != "junk"
            });
            assert_eq!(news, News::Wakes);
            assert!(directories.into_values().eq([other.clone()]));
            let seen = hints.take(usize::MAX, HashSet::new());
            let of_one = ["a", "c"].map(Into::into);
            assert_eq!(
                seen.hints,
                [(one, of_one.into()), (other, vec!["b".into()])]
            );
            assert!(seen.sweep, "one of them ended");
        }

        #[test]
        fn the_pause_after_a_read_grows_with_its_events_up_to_a_limit() {
            let pauses = [0, 1, 30, 1_000].map(|events| pause_after(events).as_micros());
            assert_eq!(pauses, [0, 10, 300, 300]);
        }

        #[test]
        fn only_a_read_that_can_be_repeated_loses_nothing() {
            use io::ErrorKind::{Interrupted, InvalidInput, WouldBlock};
            let lost = [WouldBlock, Interrupted, InvalidInput].map(is_loss);
            assert_eq!(lost, [false, false, true]);
        }
    }
}

/// The tests try it on Linux as well.
#[cfg(any(test, not(target_os = "linux")))]
mod other {
    use std::path::Path;
    use std::sync::Arc;

    use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RemoveKind, RenameMode};
    use notify::{Config, Error, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

    use crate::Collector;
    use crate::hints::{Hints, News};

    /// A watcher with a thread of its own.
    pub(crate) struct Queue(RecommendedWatcher);

    impl Queue {
        pub(crate) fn start(collector: &Arc<Collector>) -> Result<Self, Error> {
            let collector = Arc::clone(collector);
            let note = move |event| collector.note(|hints| note(&event, hints, &collector));
            RecommendedWatcher::new(note, Config::default()).map(Self)
        }

        pub(crate) fn watch(&mut self, directory: &Path) -> Result<(), Error> {
            self.forget(directory);
            self.0.watch(directory, RecursiveMode::NonRecursive)
        }

        pub(crate) fn forget(&mut self, directory: &Path) {
            // Usually it is not watched, so an error here is harmless.
            let _ = self.0.unwatch(directory);
        }
    }

    fn note(event: &Result<Event, Error>, hints: &mut Hints, collector: &Collector) -> News {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            Ok(_) | Err(_) => return hints.lost_events(),
        };
        let mut news = News::Waits;
        for path in &event.paths {
            let noted = match (event.kind, path.parent(), path.file_name()) {
                (EventKind::Remove(RemoveKind::Folder), ..) => hints.note_end(path),
                (
                    EventKind::Access(AccessKind::Close(AccessMode::Write))
                    | EventKind::Modify(ModifyKind::Name(RenameMode::To)),
                    Some(directory),
                    Some(name),
                ) => hints.note(directory, [name], collector.is_wanted),
                _ => News::Waits,
            };
            news = news.max(noted);
        }
        news
    }

    #[cfg(test)]
    mod tests {
        use std::collections::HashSet;
        use std::ffi::OsString;

        use tokio::runtime::Builder;

        use notify::event::{CreateKind, DataChange, Flag};

        use super::*;

        fn seen(events: &[Result<Event, Error>]) -> crate::Seen {
            let collector = Collector::new(|_, name| name != "junk");
            let mut hints = Hints::default();
            hints.is_new(Path::new("/o"), Some((1, 1, None)));
            for event in events {
                note(event, &mut hints, &collector);
            }
            hints.take(usize::MAX, HashSet::new())
        }

        #[test]
        fn only_a_finished_file_that_is_wanted_is_a_hint_and_only_the_end_of_a_directory_asks_for_a_sweep()
         {
            let close = EventKind::Access(AccessKind::Close(AccessMode::Write));
            let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
            let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
            let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
            let of = |kind, path: &str| Ok(Event::new(kind).add_path(path.into()));
            let found = seen(&[
                of(close, "/o/b"),
                of(EventKind::Create(CreateKind::File), "/o/c"),
                of(written, "/o/c"),
                of(renamed, "/o/a"),
                of(close, "/o/junk"),
                of(open, "/o/d"),
                of(EventKind::Remove(RemoveKind::Folder), "/o/child"),
                Ok(Event::new(close)),
            ]);
            let names = ["b", "a"].map(OsString::from);
            assert_eq!(found.hints, [("/o".into(), names.into())]);
            assert!(!found.sweep);
            assert!(seen(&[of(EventKind::Remove(RemoveKind::Folder), "/o")]).sweep);
            assert!(seen(&[Ok(Event::new(close).set_flag(Flag::Rescan))]).sweep);
            assert!(seen(&[Err(Error::generic("lost"))]).sweep);
        }

        #[test]
        fn a_file_that_is_closed_in_a_watched_directory_is_seen_and_in_a_forgotten_one_is_not() {
            let directory = tempfile::tempdir().expect("a directory");
            let forgotten = tempfile::tempdir().expect("a directory");
            let collector = Arc::new(Collector::new(|_, _| true));
            let mut queue = Queue::start(&collector).expect("events");
            queue.watch(forgotten.path()).expect("a watch");
            queue.forget(forgotten.path());
            queue.watch(directory.path()).expect("a watch");
            std::fs::write(forgotten.path().join("b"), "text").expect("a file");
            std::fs::write(directory.path().join("a"), "text").expect("a file");
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(collector.wakeup.notified());
            let seen = collector.hints().take(usize::MAX, HashSet::new());
            assert_eq!(seen.hints, [(directory.path().into(), vec!["a".into()])]);
        }
    }
}
