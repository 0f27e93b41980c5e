//! The result of one pass over the lanes, for the caller's log.

use super::Lane;
use crate::{FileName, Mailbox};

/// A file in a mailbox, and the record that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The mailbox that holds it.
    pub mailbox: Mailbox,
    /// The name the record gave it.
    pub file: FileName,
    /// The record's number.
    pub seq: u64,
}

/// A lane that rests for a while because its directory could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The lane that failed.
    pub lane: Lane,
    /// The failure, with its causes.
    pub why: String,
    /// The time of the next try, on the caller's monotonic clock in milliseconds.
    pub retry_at: u64,
    /// The number of files that wait in it.
    pub waiting: usize,
}

/// The outcome of one pass over the lanes.
#[derive(Debug, Default)]
pub struct Pass {
    /// The number of files made in mailboxes.
    pub delivered: usize,
    /// The number of originals put away.
    pub put_away: usize,
    /// Lanes that failed in this pass.
    pub parked: Vec<Parked>,
    /// Files in an agent's outbox that differ from the judged ones: look at them soon, they are new input.
    pub came_back: Vec<(String, FileName)>,
    /// Files that were delivered and may have been delivered before a power cut as well.
    pub redelivered: Vec<Placed>,
    /// Files that a power cut left empty or torn and that were fixed.
    pub fixed: Vec<Placed>,
}

impl Pass {
    /// Merges two passes.
    pub(crate) fn and(mut self, other: Pass) -> Pass {
        self.delivered += other.delivered;
        self.put_away += other.put_away;
        self.parked.extend(other.parked);
        self.came_back.extend(other.came_back);
        self.redelivered.extend(other.redelivered);
        self.fixed.extend(other.fixed);
        self
    }
}
