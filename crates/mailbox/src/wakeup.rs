//! Waits for changes in directories that others write to: by file system events if there are any, and by regular looks,
//! which make it certain. The caller finds out what has changed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// The length of a wait without events, and so the longest delay of a change without an event.
const TICK: Duration = Duration::from_secs(1);

/// Wakes its owner when something changes in one of some directories.
#[derive(Debug)]
pub struct Wakeup {
    directories: Vec<PathBuf>,
    /// None if the system offers no events; then only the clock wakes the caller.
    watcher: Option<RecommendedWatcher>,
    events: Receiver<()>,
}

impl Wakeup {
    /// Watches directories. Checks once a second those that it cannot watch.
    pub fn at(directories: &[&Path]) -> Self {
        let (send, events) = channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An event that could not be reported may be anything.
            if event.map_or(true, |event| event.need_rescan() || is_news(&event.kind)) {
                // The waiting caller may be gone, and the watcher with it.
                let _ = send.send(());
            }
        });
        let directories = directories
            .iter()
            .map(|directory| (*directory).to_owned())
            .collect();
        let mut wakeup = Self {
            directories,
            watcher: watcher.ok(),
            events,
        };
        wakeup.watch();
        wakeup
    }

    /// Waits for a change, at most a second.
    pub fn wait(&mut self) {
        self.wait_at_most(TICK);
    }

    /// Calls `look` at once, after each wakeup, and when the time is up, until it finds something. An error ends the
    /// wait.
    pub fn until<T, E>(
        mut self,
        patience: Duration,
        mut look: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let start = Instant::now();
        loop {
            // The watch began before this look, so nothing is missed between the two.
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            let Some(left) = patience.checked_sub(start.elapsed()) else {
                return Ok(None);
            };
            self.wait_at_most(left.min(TICK));
        }
    }

    fn wait_at_most(&mut self, time: Duration) {
        match self.events.recv_timeout(time) {
            // Events in a burst need one look: a batch is one write and several events.
            Ok(()) => while self.events.try_recv().is_ok() {},
            // Watch a directory that was replaced or created meanwhile, so that its next change is an event.
            Err(RecvTimeoutError::Timeout) => self.watch(),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(time),
        }
    }

    fn watch(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for directory in &self.directories {
            // An error is harmless: the directory is not watched yet or does not exist, and the regular looks continue.
            let _ = watcher.unwatch(directory);
            let _ = watcher.watch(directory, RecursiveMode::NonRecursive);
        }
    }
}

/// True if a file was created, removed or finished. Opening one is no news: our own looks do it, and would never end.
fn is_news(kind: &EventKind) -> bool {
    match kind {
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => true,
        EventKind::Access(kind) => *kind == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_file_that_comes_is_seen_by_its_event_and_not_by_a_look_a_second_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.yaml");
        let mut looks = 0;
        let found = Wakeup::at(&[directory.path()]).until(Duration::from_secs(60), || {
            looks += 1;
            if looks == 1 {
                let (temporary, file) = (file.with_extension("tmp"), file.clone());
                std::thread::spawn(move || {
                    std::fs::write(&temporary, "x")
                        .and_then(|()| std::fs::rename(&temporary, &file))
                });
            }
            Ok::<_, Infallible>(file.exists().then_some(()))
        });
        assert_eq!(found, Ok(Some(())));
    }

    #[test]
    fn looking_is_no_news_and_the_time_ends_the_wait() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_owned();
        let mut looks = 0;
        let found = Wakeup::at(&[&path]).until(Duration::from_millis(300), || {
            looks += 1;
            Ok::<Option<()>, Infallible>(std::fs::read_dir(&path).map(|_| None).unwrap_or_default())
        });
        assert_eq!(found, Ok(None));
        assert!(
            looks < 10,
            "{looks} looks within 0.3 s: each look wakes the next"
        );
    }

    #[test]
    fn a_directory_that_is_made_later_rings_from_its_first_second_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let mut wakeup = Wakeup::at(&[&one, &other]);
        std::fs::create_dir(&other).expect("a directory");
        // Nothing is watched yet; after this second it is.
        wakeup.wait();
        std::fs::write(other.join("a.yaml"), "x").expect("a file");
        assert_eq!(wakeup.events.recv_timeout(Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn a_file_that_is_written_is_news_when_its_writer_closes_it() {
        use notify::event::CreateKind;
        for (kind, is_news) in [
            (EventKind::Create(CreateKind::File), true),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Write)),
                true,
            ),
            (
                EventKind::Access(AccessKind::Close(AccessMode::Read)),
                false,
            ),
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (EventKind::Other, false),
        ] {
            assert_eq!(super::is_news(&kind), is_news, "{kind:?}");
        }
    }
}
