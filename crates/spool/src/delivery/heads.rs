//! The last item of each lane up to some record. A snapshot may replace the records up to there only if every lane has
//! followed the ledger that far.

use std::collections::BTreeMap;

use super::cursor::{Progress, Trust};
use super::note::Pos;
use super::queue::LaneItem;
use super::{Cursors, Lane};

/// The last item of each lane that was ever used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heads(BTreeMap<Lane, Pos>);

impl Heads {
    /// Adds a record's items.
    pub(crate) fn note(&mut self, items: &[(Lane, LaneItem)]) {
        for (lane, item) in items {
            match self.0.get_mut(lane) {
                Some(head) => *head = item.pos.max(*head),
                None => self.insert(lane.clone(), item.pos),
            }
        }
    }

    /// Sets a lane's last item from a snapshot. Snapshots of version 0.1 have a line for each pull request.
    pub(crate) fn insert(&mut self, lane: Lane, pos: Pos) {
        let head = self.0.entry(lane).or_insert(pos);
        *head = pos.max(*head);
    }

    /// Returns the lanes and their last items, ordered by lane.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Lane, Pos)> {
        self.0.iter().map(|(lane, pos)| (lane, *pos))
    }
}

impl Cursors {
    /// Returns the item up to which a lane survives a power cut.
    pub(crate) fn durable(&self, boot: &str, lane: &Lane) -> Pos {
        Progress::read(self.of(&lane.cursor_name()), boot, u64::MAX)
            .0
            .durable
    }

    /// Returns whether a lane has done the `n`-th file of a record, given as `(seq, n)`; `None` if the cursor cannot
    /// tell.
    pub(crate) fn has_reached(
        &self,
        lane: &Lane,
        (seq, n): (u64, u32),
        boot: &str,
    ) -> Option<bool> {
        let (progress, trust) = Progress::read(self.of(&lane.cursor_name()), boot, u64::MAX);
        let has = progress.done >= Pos { seq, n };
        match trust {
            Trust::Whole => Some(has),
            Trust::NewBoot | Trust::NotesLost => has.then_some(true),
            Trust::Lost => None,
        }
    }

    /// Returns a lane that still needs records from before these heads, because its cursor is lost or has not come that
    /// far.
    pub(crate) fn behind<'a>(&self, boot: &str, heads: &'a Heads) -> Option<&'a Lane> {
        let is_behind = |lane: &Lane, head: Pos| {
            let (progress, trust) = Progress::read(self.of(&lane.cursor_name()), boot, u64::MAX);
            trust == Trust::Lost || progress.done < head
        };
        heads
            .iter()
            .find(|(lane, head)| is_behind(lane, *head))
            .map(|(lane, _)| lane)
    }
}
