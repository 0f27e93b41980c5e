//! Reports that something changed in a set of directories, for programs that only show a workspace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{Config, Error, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::{Identity, identity_of};

/// The kinds of events that are no reading.
const KINDS: EventKindMask = EventKindMask::CORE;

/// Wakes at any change in its directories, also of a file that its writer keeps open, such as the ledger.
#[derive(Debug, Default)]
pub struct Changes {
    watcher: Option<RecommendedWatcher>,
    watched: HashMap<PathBuf, Identity>,
    wakeup: Arc<Notify>,
}

impl Changes {
    /// Starts without a directory. Without events (exhausted watches, unusual file systems) it never wakes.
    pub fn start() -> Self {
        let wakeup = Arc::<Notify>::default();
        let waker = Arc::clone(&wakeup);
        let config = Config::default().with_event_kinds(KINDS);
        let watcher = RecommendedWatcher::new(move |_| waker.notify_one(), config);
        Self {
            watcher: watcher.ok(),
            watched: HashMap::new(),
            wakeup,
        }
    }

    /// Watches the directory at this path, also if another one has taken its place. One that is missing or is a link is
    /// not watched.
    pub fn keep(&mut self, directory: &Path) -> Result<(), Error> {
        let identity = identity_of(directory);
        let Some(watcher) = &mut self.watcher else {
            return Ok(());
        };
        if self.watched.get(directory) == identity.as_ref() {
            return Ok(());
        }
        if self.watched.remove(directory).is_some() {
            // One that was removed is not watched, so an error here is harmless.
            let _ = watcher.unwatch(directory);
        }
        if let Some(identity) = identity {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
            self.watched.insert(directory.to_owned(), identity);
        }
        Ok(())
    }

    /// Waits for a change.
    pub async fn changed(&self) {
        self.wakeup.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_that_stays_open_wakes_whenever_it_grows_also_in_a_directory_made_again() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("ledger");
        let mut changes = Changes::start();
        changes.keep(&directory).expect("nothing to watch");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        for _ in 0..2 {
            std::fs::create_dir(&directory).expect("a directory");
            let mut file = std::fs::File::create(directory.join("1")).expect("a file");
            changes.keep(&directory).expect("a watch");
            changes.keep(&directory).expect("the same watch");
            file.write_all(b"{}\n").expect("room");
            runtime.block_on(changes.changed());
            std::fs::remove_dir_all(&directory).expect("no directory");
            runtime.block_on(changes.changed());
        }
    }
}
