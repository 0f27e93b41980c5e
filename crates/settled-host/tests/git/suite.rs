//! The conformance suite on a bare repository for each case: a host that is killed reopens its copy, and a host that is
//! cut off finds the repository moved away.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use log_suite::{Bench, Patient};
use settled_host::Git;
use spool::log::{Appended, Log, Signed};
use tempfile::TempDir;

use super::{remote_in, sh, until};

log_suite::conformance!(RepositoryBench::default());

/// Short, so that no case waits for a poll.
const POLL: Duration = Duration::from_millis(300);

struct RepositoryBench {
    directory: TempDir,
    hosts: usize,
    is_cut: Arc<AtomicBool>,
}

impl Default for RepositoryBench {
    fn default() -> Self {
        let directory = remote_in();
        RepositoryBench {
            directory,
            hosts: 0,
            is_cut: Arc::default(),
        }
    }
}

impl RepositoryBench {
    fn remote(&self) -> PathBuf {
        self.directory.path().join("remote.git")
    }

    fn open(&mut self) -> Git {
        self.hosts += 1;
        let copy = self.directory.path().join(format!("host-{}", self.hosts));
        let remote = self.remote();
        let remote = remote.to_str().expect("a path in UTF-8");
        Git::polling(&copy, remote, "w", POLL).expect("a log")
    }

    fn in_remote(&self, script: &str) {
        sh(&self.remote(), script);
    }
}

impl Bench for RepositoryBench {
    fn connect(&mut self) -> Box<dyn Log> {
        Patient::with(self.open(), &self.is_cut)
    }

    fn restart(&mut self) {
        // No process has the log. A crash of the machine with the repository can only leave a lock on the ref.
        self.in_remote(
            "mkdir -p refs/settled && touch refs/settled/w.lock && rm refs/settled/w.lock",
        );
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
        let mut log = self.open();
        until("the other batch to be there", || {
            log.append(with) == Ok(Appended::Committed)
        });
    }
}
