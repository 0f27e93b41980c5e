//! Waiting for something to come to a directory: by events of the file system, and by looking now and then where
//! events do not come. What came is the caller's to look at.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// How long a wait without events lasts: so late is something seen at the latest that no event told.
const TICK: Duration = Duration::from_secs(1);

/// Rings when something changes in one directory.
#[derive(Debug)]
pub(crate) struct Bell {
    directory: PathBuf,
    /// Nothing where events are not to be had: then it rings by the clock alone.
    watcher: Option<RecommendedWatcher>,
    rings: Receiver<()>,
}

impl Bell {
    /// Watches a directory. One that cannot be watched is looked at once a second.
    pub(crate) fn at(directory: &Path) -> Self {
        let (send, rings) = channel();
        let watcher = notify::recommended_watcher(move |event: Result<notify::Event, notify::Error>| {
            // Our own reading is an event as well.
            if event.is_ok_and(|event| event.need_rescan() || !event.kind.is_access()) {
                // Whoever waited is gone, and the watcher with it.
                let _ = send.send(());
            }
        });
        let mut watcher = watcher.ok();
        if watcher.as_mut().is_some_and(|it| it.watch(directory, RecursiveMode::NonRecursive).is_err()) {
            watcher = None;
        }
        Self { directory: directory.to_owned(), watcher, rings }
    }

    /// Waits until something changed, or for a second.
    pub(crate) fn wait(&mut self) {
        match self.rings.recv_timeout(TICK) {
            // A batch is one write and several events.
            Ok(()) => while self.rings.try_recv().is_ok() {},
            // A directory that was exchanged is watched anew, so that the next change rings again.
            Err(RecvTimeoutError::Timeout) => {
                if let Some(watcher) = &mut self.watcher {
                    let _ = watcher.unwatch(&self.directory);
                    let _ = watcher.watch(&self.directory, RecursiveMode::NonRecursive);
                }
            }
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
    }
}
