//! The conformance suite on a bare repository for each case: a host that is killed reopens its copy, and a host that is
//! cut off finds the repository moved away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use log_suite::{Bench, Patient};
use settled_host::Git;
use spool::log::{Appended, Head, Log, LogError, OnChange, Signed};
use tempfile::TempDir;

use super::{remote_in, sh, until};

log_suite::conformance!(RepositoryBench::default());

/// Short, so that no case waits for a poll.
const POLL: Duration = Duration::from_millis(300);

struct RepositoryBench {
    directory: TempDir,
    /// The hosts, each with the directory of its copy.
    hosts: Vec<(PathBuf, Reopened)>,
    is_cut: Arc<AtomicBool>,
}

/// A handle of a host that is killed and started again. None while it is away.
#[derive(Clone)]
struct Reopened(Arc<Mutex<Option<Git>>>);

impl Reopened {
    fn git(&self) -> MutexGuard<'_, Option<Git>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Git) -> T) -> T {
        ask(self.git().as_mut().expect("it was started"))
    }
}

impl Log for Reopened {
    fn head(&mut self) -> Result<Head, LogError> {
        self.with(Git::head)
    }

    fn append(&mut self, batch: &Signed) -> Result<Appended, LogError> {
        self.with(|git| git.append(batch))
    }

    fn follow(&mut self, from: Head) -> Result<Vec<Signed>, LogError> {
        self.with(|git| git.follow(from))
    }

    fn on_change(&mut self, on_change: OnChange) {
        self.with(|git| git.on_change(on_change));
    }

    fn poll_ms(&self) -> u64 {
        self.with(|git| git.poll_ms())
    }
}

impl Default for RepositoryBench {
    fn default() -> Self {
        let directory = remote_in();
        RepositoryBench {
            directory,
            hosts: Vec::new(),
            is_cut: Arc::default(),
        }
    }
}

impl RepositoryBench {
    fn remote(&self) -> PathBuf {
        self.directory.path().join("remote.git")
    }

    fn open(&self, copy: &Path) -> Git {
        let remote = self.remote();
        let remote = remote.to_str().expect("a path in UTF-8");
        Git::polling(copy, remote, "w", POLL).expect("a log")
    }

    /// Starts one more host.
    fn start(&mut self) -> Reopened {
        let name = format!("host-{}", self.hosts.len());
        let copy = self.directory.path().join(name);
        let host = Reopened(Arc::new(Mutex::new(Some(self.open(&copy)))));
        self.hosts.push((copy, host.clone()));
        host
    }

    fn in_remote(&self, script: &str) {
        sh(&self.remote(), script);
    }
}

impl Bench for RepositoryBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Patient::with(self.start(), &self.is_cut)
    }

    fn restart(&mut self) {
        // No process but the hosts' own has the log.
        for (copy, host) in &self.hosts {
            let mut git = host.git();
            *git = None;
            *git = Some(self.open(copy));
        }
    }

    fn cut_off(&mut self) {
        sh(self.directory.path(), "mv remote.git away.git");
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn join(&mut self) {
        sh(self.directory.path(), "mv away.git remote.git");
        self.is_cut.store(false, Ordering::SeqCst);
    }

    fn batch_bytes_max(&self) -> usize {
        Git::BATCH_BYTES_MAX
    }

    fn lose_tail(&mut self, batches: usize) {
        self.in_remote(&format!(
            "git update-ref refs/settled/w refs/settled/w~{batches} 2>/dev/null || git update-ref -d refs/settled/w"
        ));
    }

    fn lose_one(&mut self, batch: usize) {
        self.in_remote(&format!(
            "parent=; count=0
             for commit in $(git rev-list --reverse refs/settled/w); do
               if [ $count != {batch} ]; then
                 parent=$(git cat-file commit $commit | sed '/^parent /d' |
                   sed \"1a\\\\parent $parent\" | sed '/^parent $/d' | git hash-object -w -t commit --stdin)
               fi
               count=$((count + 1))
             done
             git update-ref refs/settled/w $parent"
        ));
    }

    fn replace_last(&mut self, with: &Signed) {
        self.lose_tail(1);
        let mut log = self.start();
        until("the other batch to be there", || {
            log.append(with) == Ok(Appended::Committed)
        });
    }
}
