//! Answers what can be seen without the lock: whether the workspace is served, and whether a file was delivered.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::delivery::Cursors;
use crate::root::OpenRoot;
use crate::{Lane, Mailbox, dirs};
use disk::Os;

/// Returns whether a process holds the workspace's lock; `None` if the caller's user, who is not the daemon's, may not
/// see that. A workspace without a lock file was never served.
pub fn is_served(root: &Path) -> Option<bool> {
    let file = match std::fs::File::open(root.join(dirs::LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(false),
        Err(_) => return None,
    };
    // The kernel refuses a shared lock while the daemon holds its exclusive one; dropping `file` releases ours.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(false),
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
