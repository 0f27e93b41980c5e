//! The last item of each lane up to some record, and the records that lanes still need from before it. A snapshot may
//! replace the records up to there only for a lane that needs none of them, or none that the snapshot does not list.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::cursor::{Progress, Trust};
use super::note::Pos;
use super::queue::LaneItem;
use super::{Cursors, Lane};
use crate::ledger::read::LedgerPosition;
use crate::root::OpenRoot;
use crate::{Entry, dirs};

/// One lane, as a snapshot knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneHead {
    /// The lane's last item.
    pub(crate) last: Pos,
    /// The lane needs no item up to here: those survive a power cut.
    pub(crate) owed_after: Pos,
    /// All later items, each with the place of its record.
    pub(crate) owed: BTreeMap<Pos, LedgerPosition>,
}

impl LaneHead {
    /// Returns the item that a lane must have reached to need at most the listed records.
    pub(crate) fn complete_after(&self) -> Pos {
        self.owed_after.min(self.last)
    }
}

/// Every lane that was ever used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heads(BTreeMap<Lane, LaneHead>);

impl Heads {
    /// Adds the items of the record at `place`; for a new lane, `durable` returns the last item that survives a power cut.
    pub(crate) fn note(
        &mut self,
        items: &[(Lane, LaneItem)],
        place: &LedgerPosition,
        durable: &mut dyn FnMut(&Lane) -> Pos,
    ) {
        for (lane, LaneItem { pos, .. }) in items {
            if !self.0.contains_key(lane) {
                self.insert(lane.clone(), *pos, durable(lane));
            }
            let head = self.0.get_mut(lane).expect("it was just added");
            head.last = head.last.max(*pos);
            if *pos > head.owed_after {
                head.owed.insert(*pos, place.clone());
            }
        }
    }

    /// Drops the items that survive a power cut by now.
    pub(crate) fn renew(&mut self, durable: &mut dyn FnMut(&Lane) -> Pos) {
        for (lane, head) in &mut self.0 {
            // `owed` holds no item up to `complete_after`, so `owed_after` must not fall below it.
            head.owed_after = durable(lane).max(head.complete_after());
            head.owed.retain(|pos, _| *pos > head.owed_after);
        }
    }

    /// Adds a lane from a snapshot. Snapshots of version 0.1 have a line for each pull request.
    pub(crate) fn insert(&mut self, lane: Lane, last: Pos, owed_after: Pos) {
        let head = self.0.entry(lane).or_insert(LaneHead {
            last,
            owed_after,
            owed: BTreeMap::new(),
        });
        head.last = last.max(head.last);
        head.owed_after = owed_after.max(head.owed_after);
    }

    /// Adds a record that a lane still needs, from a snapshot.
    pub(crate) fn owe(&mut self, lane: &Lane, pos: Pos, place: LedgerPosition) {
        if let Some(head) = self.0.get_mut(lane) {
            head.owed.insert(pos, place);
        }
    }

    /// Returns the lanes, ordered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Lane, &LaneHead)> {
        self.0.iter()
    }

    /// Returns a lane that needs a record which is neither listed nor after these heads. `done` tells up to where a lane
    /// needs none; `None` if it needs all.
    pub(crate) fn lacking(&self, done: &dyn Fn(&Lane) -> Option<Pos>) -> Option<&Lane> {
        let lacks = |(lane, head): &(&Lane, &LaneHead)| {
            done(lane).is_none_or(|done| done < head.complete_after())
        };
        self.iter().find(lacks).map(|(lane, _)| lane)
    }

    /// Returns whether these are the heads that `all` gives, which lists as many items or more.
    pub(crate) fn agree_with(&self, all: &Heads) -> bool {
        let agrees = |(lane, head): (&Lane, &LaneHead)| {
            let found = all.0.get(lane).filter(|found| found.last == head.last);
            let after = (Bound::Excluded(head.owed_after), Bound::Unbounded);
            found.is_some_and(|found| found.owed.range(after).eq(&head.owed))
        };
        self.0.len() == all.0.len() && self.iter().all(agrees)
    }

    /// Reads the records that lanes still need, in order and one at a time. An error names the record that is missing.
    pub(crate) fn read_owed(
        &self,
        root: &OpenRoot,
        visit: &mut dyn FnMut(Entry, &LedgerPosition),
    ) -> Result<(), String> {
        let owed = self.0.values().flat_map(|head| head.owed.values());
        let places: BTreeMap<u64, &LedgerPosition> = owed.map(|place| (place.seq, place)).collect();
        let dir = root.dir(dirs::LEDGER.as_ref());
        let dir = dir.map_err(|error| error.chain())?;
        for place in places.into_values() {
            visit(place.entry(&*root.disk, &dir.handle)?, place);
        }
        Ok(())
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

    /// Returns the item up to which a lane needs no record; `None` if its cursor is lost, so that it needs all.
    pub(crate) fn done(&self, boot: &str, lane: &Lane) -> Option<Pos> {
        let (progress, trust) = Progress::read(self.of(&lane.cursor_name()), boot, u64::MAX);
        (trust != Trust::Lost).then_some(progress.done)
    }
}
