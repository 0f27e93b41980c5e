//! Answers what can be seen without the lock: whether the workspace is served, and whether a file was delivered.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::delivery::Cursors;
use crate::root::OpenRoot;
use crate::{Lane, Mailbox, dirs};
use disk::{Disk as _, OpenMode, Os};

/// Returns whether a process holds the workspace's lock; `None` if the caller's user, who is not the daemon's, may not
/// see that, or if something else is in the lock's place. A workspace without a lock file was never served.
pub fn is_served(root: &Path) -> Option<bool> {
    // Opens the lock as the daemon does: follows no link, and never waits at a pipe.
    let opened = Os
        .open_root(root)
        .and_then(|root| Os.open(&root, dirs::LOCK.as_ref(), OpenMode::Read));
    let file = match opened {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(false),
        Err(_) => return None,
    };
    // The kernel refuses a shared lock while the daemon holds its exclusive one; dropping `file` releases ours.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        // The daemon may hold the lock file that was there before.
        Ok(()) => file.metadata().ok()?.is_file().then_some(false),
        Err(Errno::WOULDBLOCK) => Some(true),
        Err(_) => None,
    }
}

/// Returns whether the mailbox got the `n`-th file (from 0) of record `seq`, according to its cursor; `None` if the
/// cursor cannot tell, as after a reboot.
pub fn has_delivered(root: &Path, mailbox: &Mailbox, seq: u64, n: u32) -> Option<bool> {
    let root = OpenRoot::look_at(root, Arc::new(Os)).ok()?;
    Cursors::read(&root)
        .ok()?
        .has_reached(&Lane::of(mailbox), (seq, n), &root.boot)
}
