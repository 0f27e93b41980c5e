//! Says what one pass over the lanes did, for the caller's log.

use super::Lane;
use crate::{FileName, Mailbox};

/// A file in a mailbox, and the record that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub mailbox: Mailbox,
    /// The name the record gave it.
    pub file: FileName,
    /// The record's number.
    pub seq: u64,
}

/// A lane that is left alone for a while because its directory could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Which lane.
    pub lane: Lane,
    /// What failed, with its causes.
    pub why: String,
    /// When it is tried again, on the caller's monotonic clock in milliseconds.
    pub retry_at: u64,
    /// How many files wait in it.
    pub waiting: usize,
}

/// What one pass over the lanes did.
#[derive(Debug, Default)]
pub struct Pass {
    /// How many files were made in mailboxes.
    pub delivered: usize,
    /// How many originals were put away.
    pub put_away: usize,
    /// Lanes that failed in this pass.
    pub parked: Vec<Parked>,
    /// Files in an agent's outbox that hold other bytes than were judged: look at them soon, they are new input.
    pub came_back: Vec<(String, FileName)>,
    /// Files that were delivered although they may have been delivered before a power cut.
    pub redelivered: Vec<Placed>,
    /// Files that a power cut had left empty or torn and that are whole again.
    pub mended: Vec<Placed>,
}

impl Pass {
    /// Both passes as one.
    pub(super) fn and(mut self, other: Pass) -> Pass {
        self.delivered += other.delivered;
        self.put_away += other.put_away;
        self.parked.extend(other.parked);
        self.came_back.extend(other.came_back);
        self.redelivered.extend(other.redelivered);
        self.mended.extend(other.mended);
        self
    }
}
