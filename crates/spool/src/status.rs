//! What an onlooker can tell without the lock: whether somebody serves a workspace, and what waits.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::delivery::Cursors;
use crate::disk::Os;
use crate::root::OpenRoot;
use crate::{FileName, Lane, Layout, Mailbox, layout};

/// Says whether a process holds the workspace's lock; `None` if that cannot be seen, as by other users than the
/// daemon's. A workspace that was never served is not served.
pub fn is_served(root: &Path) -> Option<bool> {
    let file = match std::fs::File::open(root.join(layout::LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(false),
        Err(_) => return None,
    };
    // A shared lock is refused while the daemon has its exclusive one, and is gone with the file.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(false),
        Err(Errno::WOULDBLOCK) => Some(true),
        Err(_) => None,
    }
}

/// Lists the files in an agent's outbox that are meant as messages and were not put away yet, by name.
pub fn waiting(root: &Path, agent: &str) -> Vec<FileName> {
    let Ok(listed) = std::fs::read_dir(Layout::new(root).outbox(agent)) else {
        return Vec::new();
    };
    let names =
        listed.filter_map(|entry| FileName::new(entry.ok()?.file_name().into_encoded_bytes()).ok());
    let mut names: Vec<FileName> = names.filter(layout::is_candidate).collect();
    names.sort_unstable();
    names
}

/// Counts them.
pub fn count_waiting(root: &Path, agent: &str) -> usize {
    waiting(root, agent).len()
}

/// Says whether the `n`-th file (from 0) that record `seq` makes in this mailbox was delivered, as the mailbox's cursor
/// has it; `None` if no cursor says so or the contrary, as after a new start of the machine.
pub fn has_delivered(root: &Path, mailbox: &Mailbox, seq: u64, n: u32) -> Option<bool> {
    let root = OpenRoot::look_at(root, Arc::new(Os)).ok()?;
    Cursors::read(&root)
        .ok()?
        .has_reached(&Lane::Mailbox(mailbox.clone()), (seq, n), &root.boot)
}
