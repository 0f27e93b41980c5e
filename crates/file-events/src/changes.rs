//! Reports that something changed in a set of directories, for programs that only show a workspace.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::{Identity, identity_of};

/// The kinds of events that are no reading.
const KINDS: EventKindMask = EventKindMask::CORE;

/// Wakes at any change in its directories, also of a file that its writer keeps open, such as the ledger.
#[derive(Debug)]
pub struct Changes {
    asked: SyncSender<Vec<PathBuf>>,
    wakeup: Arc<Notify>,
}

impl Changes {
    /// Starts without a directory. Without events (exhausted watches, unusual file systems) it never wakes.
    pub fn start() -> Self {
        let wakeup = Arc::<Notify>::default();
        let waker = Arc::clone(&wakeup);
        let (asked, requests) = sync_channel(1);
        // If the thread cannot start, this never wakes, as without events.
        let thread = std::thread::Builder::new().name("changes".to_owned());
        let _ = thread.spawn(move || watch(&requests, &waker));
        Self { asked, wakeup }
    }

    /// Soon watches exactly the directories at these paths, also if others have taken their places, and wakes once it
    /// watches them. It skips a missing directory and a link. A request that comes while two wait is dropped.
    pub fn keep(&self, directories: Vec<PathBuf>) {
        let _ = self.asked.try_send(directories);
    }

    /// Waits for a change.
    pub async fn changed(&self) {
        self.wakeup.notified().await;
    }
}

/// Serves the requests until the last sender is dropped. Runs on a thread of its own, because `notify` answers once it has
/// read its queue, and beside a program that writes without a pause the queue is never empty.
fn watch(requests: &Receiver<Vec<PathBuf>>, wakeup: &Arc<Notify>) {
    let waker = Arc::clone(wakeup);
    let config = Config::default().with_event_kinds(KINDS);
    let Ok(mut watcher) = RecommendedWatcher::new(move |_| waker.notify_one(), config) else {
        return;
    };
    let mut watched: HashMap<PathBuf, Identity> = HashMap::new();
    for directories in requests {
        let identities = directories.iter().map(|directory| identity_of(directory));
        let found: HashMap<&PathBuf, Identity> = identities
            .zip(&directories)
            .filter_map(|(identity, directory)| Some((directory, identity?)))
            .collect();
        watched.retain(|directory, identity| {
            let is_same = found.get(directory) == Some(identity);
            if !is_same {
                // A removed directory has no watch any more, so an error here is harmless.
                let _ = watcher.unwatch(directory);
            }
            is_same
        });
        for (directory, identity) in found {
            if !watched.contains_key(directory)
                && watcher
                    .watch(directory, RecursiveMode::NonRecursive)
                    .is_ok()
            {
                watched.insert(directory.clone(), identity);
                // Nothing reported the changes before this watch, so wake for them.
                wakeup.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_file_that_stays_open_wakes_whenever_it_grows_also_in_a_directory_made_again() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("ledger");
        let changes = Changes::start();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(changes.changed()).poll(&mut context).is_pending());
        for _ in 0..2 {
            std::fs::create_dir(&directory).expect("a directory");
            let mut file = std::fs::File::create(directory.join("1")).expect("a file");
            changes.keep(vec![root.path().join("missing"), directory.clone()]);
            runtime.block_on(changes.changed());
            let other = tempfile::tempdir().expect("a directory");
            changes.keep(vec![directory.clone(), other.path().to_owned()]);
            runtime.block_on(changes.changed());
            file.write_all(b"{}\n").expect("room");
            runtime.block_on(changes.changed());
            std::fs::remove_dir_all(&directory).expect("no directory");
            runtime.block_on(changes.changed());
        }
    }
}
