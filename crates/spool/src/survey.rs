//! What an onlooker can tell without the lock: whether somebody serves a workspace, and what waits.

use std::path::Path;

use rustix::fs::FlockOperation;

use crate::{FileName, Layout, layout};

/// Says whether a process holds the workspace's lock. A workspace that was never served is not.
pub fn is_served(root: &Path) -> bool {
    let Ok(file) = std::fs::File::open(root.join(layout::LOCK)) else { return false };
    // A shared lock is refused while the daemon has its exclusive one, and is gone with the file.
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Counts the files in an agent's outbox that are meant as messages and were not put away yet.
pub fn count_waiting(root: &Path, agent: &str) -> usize {
    let Ok(listed) = std::fs::read_dir(Layout::new(root).outbox(agent)) else { return 0 };
    let names = listed.filter_map(|entry| FileName::new(entry.ok()?.file_name().into_encoded_bytes()).ok());
    names.filter(layout::is_candidate).count()
}
