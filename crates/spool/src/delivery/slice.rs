//! The most files that one pass makes, so that others beside a flood wait for a part of it only.

use crate::{Entry, Mailbox};

/// The files a pass may still make or put away, and those it leaves alone.
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

    /// Counts files that were made or put away. A group is made whole, so the last one may exceed the slice.
    pub(super) fn spend(&mut self, files: usize) {
        self.left = self.left.saturating_sub(files);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Says whether what this record made waits for a packet of its own.
    pub(super) fn holds(&self, entry: &Entry) -> bool {
        self.packets_owed.is_some_and(|owed| entry.seq >= owed)
            && entry
                .deliveries
                .iter()
                .any(|delivery| matches!(delivery.mailbox, Mailbox::Packets(_)))
    }
}
