//! Limits the files of one pass, so that mail beside a flood waits for only a part of it.

use crate::{Entry, Mailbox};

/// The files that a pass may still make or put away, and those that it must hold back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    left: usize,
    /// The first record whose packet is still owed. A message does not overtake the packet it names.
    packets_owed: Option<u64>,
}

impl Slice {
    pub(super) fn new(files_max: usize, packets_owed: Option<u64>) -> Slice {
        Slice {
            left: files_max,
            packets_owed,
        }
    }

    /// Counts files that were made or put away. The last group is made whole, so it may exceed the slice.
    pub(super) fn spend(&mut self, files: usize) {
        self.left = self.left.saturating_sub(files);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns whether the files of this record wait for its packet.
    pub(super) fn holds(&self, entry: &Entry) -> bool {
        self.packets_owed.is_some_and(|owed| entry.seq >= owed)
            && entry
                .deliveries
                .iter()
                .any(|delivery| matches!(delivery.mailbox, Mailbox::Packets(_)))
    }
}
