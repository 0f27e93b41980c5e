//! Counts what one pass did.

use review::{Judgement, Record};

/// The results of one pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages archived as duplicates.
    pub duplicates: usize,
    /// Deadlines, decisions and other events recorded.
    pub events: usize,
    /// Files made in mailboxes.
    pub delivered: usize,
}

impl Pass {
    /// True if nothing happened.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts a record that this host judged.
    pub(super) fn count(&mut self, record: &Record) {
        match record {
            Record::Judged(Judgement::Accepted(_)) => self.accepted += 1,
            Record::Judged(Judgement::Duplicate(_)) => self.duplicates += 1,
            Record::Judged(Judgement::Refused(_)) => self.refused += 1,
            Record::Event(_) => self.events += 1,
        }
    }
}
