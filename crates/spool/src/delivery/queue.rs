//! One lane: the files that its directory is still owed, in ledger order, and the cursor that follows them.
//!
//! `group` makes the files of a mailbox; `dispose` puts the originals of an outbox away. A lane that is owed much keeps
//! only the first records; it reads the others from the ledger when it gets to them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use super::checkpoint::Touched;
use super::cursor::{Cursor, Progress};
use super::note::{CursorNote, Pos, Slot};
use super::slice::Slice;
use super::{Lane, Pass};
use crate::ledger::read::LedgerPosition;
use crate::root::OpenRoot;
use crate::view::JudgedOriginals;
use crate::{Delivery, Entry, FileName, Mailbox, SpoolError, dirs};
use ledger_records::ExpectedContent;

/// The most bytes of records that a lane keeps in memory, about; without this limit, a mailbox that cannot be written would
/// fill the memory.
const HELD_MAX: u64 = 4 << 20;
/// The bytes of records that a lane reads at once, about: a millisecond of work.
const READ_MAX: u64 = 256 * 1024;

/// One file to make or put away.
#[derive(Clone)]
pub(crate) struct LaneItem {
    pub(crate) pos: Pos,
    pub(crate) entry: Arc<Entry>,
    /// The index in the record's deliveries; 0 and meaningless for an original.
    pub(crate) index: usize,
}

impl LaneItem {
    fn delivery(&self) -> &Delivery {
        &self.entry.deliveries[self.index]
    }

    /// Returns the content that the mailbox must hold under this name once the item is done.
    pub(super) fn expected(&self) -> ExpectedContent<'_> {
        self.entry.expected(self.delivery())
    }

    /// Returns the mailbox that the file goes to.
    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.delivery().mailbox
    }

    /// Returns the name the record gave the file.
    pub(super) fn file(&self) -> &FileName {
        &self.delivery().file
    }
}

/// Lists a record's items with their lanes, numbered within each lane.
pub(crate) fn items_of(entry: &Arc<Entry>) -> Vec<(Lane, LaneItem)> {
    let mut items: Vec<(Lane, LaneItem)> = Vec::with_capacity(entry.deliveries.len() + 1);
    for (index, delivery) in entry.deliveries.iter().enumerate() {
        let lane = Lane::of(&delivery.mailbox);
        let before = items.iter().filter(|(earlier, _)| *earlier == lane).count();
        let n = u32::try_from(before).expect("a record has few deliveries");
        let pos = Pos { seq: entry.seq, n };
        items.push((
            lane,
            LaneItem {
                pos,
                entry: Arc::clone(entry),
                index,
            },
        ));
    }
    if let Some(original) = &entry.original {
        let pos = Pos {
            seq: entry.seq,
            n: 0,
        };
        items.push((
            Lane::Outbox(original.outbox.clone()),
            LaneItem {
                pos,
                entry: Arc::clone(entry),
                index: 0,
            },
        ));
    }
    items
}

/// Why a parked lane rests, and the time of its next try.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    pub(crate) why: String,
    pub(crate) until: u64,
    pub(crate) pause: u64,
}

/// A lane, its progress and what it still has to do.
pub(crate) struct LaneQueue {
    pub(crate) lane: Lane,
    pub(crate) progress: Progress,
    /// The next items.
    pub(super) items: VecDeque<LaneItem>,
    /// The bytes of records that were added since there were none.
    held: u64,
    /// The items behind them, whose records are read again.
    later: VecDeque<(Pos, Arc<LedgerPosition>)>,
    /// The number of all these items, by the outbox whose message caused them.
    pub(super) owed_of: BTreeMap<String, usize>,
    pub(crate) backoff: Option<Backoff>,
    /// True if the notes in the cursor file are of this boot and match `progress`.
    pub(crate) noted: bool,
}

impl LaneQueue {
    pub(crate) fn new(lane: Lane, progress: Progress) -> LaneQueue {
        LaneQueue {
            lane,
            progress,
            items: VecDeque::new(),
            held: 0,
            later: VecDeque::new(),
            owed_of: BTreeMap::new(),
            backoff: None,
            noted: false,
        }
    }

    /// Adds an item of the record at `place`.
    pub(super) fn push(&mut self, item: LaneItem, place: &Arc<LedgerPosition>) {
        if let Some(original) = &item.entry.original {
            match self.owed_of.get_mut(&original.outbox) {
                Some(owed) => *owed += 1,
                None => drop(self.owed_of.insert(original.outbox.clone(), 1)),
            }
        }
        if self.later.is_empty() && self.held < HELD_MAX {
            self.hold(item, place);
        } else {
            self.later.push_back((item.pos, Arc::clone(place)));
        }
    }

    fn hold(&mut self, item: LaneItem, place: &LedgerPosition) {
        self.held += place.bytes();
        self.items.push_back(item);
    }

    /// Reads the next records if no item is left in memory.
    fn read_on(&mut self, root: &OpenRoot) -> Result<(), SpoolError> {
        if !self.items.is_empty() || self.later.is_empty() {
            return Ok(());
        }
        let dir = root.dir(dirs::LEDGER.as_ref())?;
        while self.held < READ_MAX
            && let Some((next, place)) = self.later.front().cloned()
        {
            let entry = place.entry(&*root.disk, &dir.handle);
            let entry =
                entry.map_err(|why| root.error("read", &dir.path, io::Error::other(why)))?;
            // A record's files in this lane were queued together.
            let mut items = items_of(&Arc::new(entry));
            items.retain(|(lane, item)| *lane == self.lane && item.pos >= next);
            assert!(
                !items.is_empty(),
                "the record has the digest of the queued one"
            );
            for (_, item) in items {
                self.later.pop_front();
                self.hold(item, &place);
            }
        }
        Ok(())
    }

    /// Returns whether the lane is owed anything.
    pub(super) fn has_work(&self) -> bool {
        self.first_owed().is_some()
    }

    /// Returns the number of files it is owed.
    pub(super) fn owed(&self) -> usize {
        self.items.len() + self.later.len()
    }

    /// Returns the number of the first record whose file is still owed.
    pub(super) fn first_owed(&self) -> Option<u64> {
        let held = self.items.front().map(|item| item.pos.seq);
        held.or_else(|| self.later.front().map(|(pos, _)| pos.seq))
    }

    /// Does the lane's work in order until the slice is spent. Stops at the first item that fails and keeps it.
    pub(super) fn turn(
        &mut self,
        root: &OpenRoot,
        judged: &JudgedOriginals,
        slice: &mut Slice,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        loop {
            self.read_on(root)?;
            let cursor = self.open_cursor(root, touched)?;
            match self.lane.clone() {
                Lane::Mailbox(mailbox) => self.deliver(&mailbox, &cursor, slice, touched, pass)?,
                Lane::Pulls => {
                    while let Some(item) = self.next_within(slice) {
                        let mailbox = item.mailbox().clone();
                        self.deliver(&mailbox, &cursor, slice, touched, pass)?;
                    }
                }
                // Putting an original away twice is harmless, so one note for all of them is enough. After an error
                // the next turn writes it first.
                Lane::Outbox(agent) => {
                    self.dispose(&agent, root, judged, slice, touched, pass)?;
                    self.note_done(&cursor)?;
                }
            }
            if slice.is_spent() || !self.items.is_empty() || self.later.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the next item if the slice has room for it.
    pub(super) fn next_within(&self, slice: &Slice) -> Option<&LaneItem> {
        let next = self.items.front().filter(|_| !slice.is_spent());
        next.filter(|next| !slice.holds(&next.entry))
    }

    /// Opens the cursor's file, and makes it again if it was removed.
    pub(super) fn open_cursor_file<'a>(
        &self,
        root: &'a OpenRoot,
        touched: &mut Touched,
    ) -> Result<Cursor<'a>, SpoolError> {
        let name = self.lane.cursor_name();
        let (cursor, made) = Cursor::open(root, &name, &self.progress)?;
        touched.cursors_made |= made;
        Ok(cursor)
    }

    fn open_cursor<'a>(
        &mut self,
        root: &'a OpenRoot,
        touched: &mut Touched,
    ) -> Result<Cursor<'a>, SpoolError> {
        let cursor = self.open_cursor_file(root, touched)?;
        if !self.noted {
            // A `prepared` ahead of `delivered` promises that each temporary file between them is complete or was
            // renamed. After a failed rename neither is certain, and a start that believed the note would count an
            // undelivered file as taken. So both notes are reset before anything else changes.
            cursor.write(Slot::Delivered, &self.note(root, self.progress.done))?;
            let prepared = self.progress.prepared.unwrap_or(self.progress.done);
            cursor.write(Slot::Prepared, &self.note(root, prepared))?;
            self.noted = true;
        }
        Ok(cursor)
    }

    pub(super) fn note(&self, root: &OpenRoot, pos: Pos) -> CursorNote {
        CursorNote {
            pos,
            verify: self.progress.verify,
            boot: root.boot.clone(),
        }
    }

    /// Marks everything up to `pos` as done, in memory only.
    pub(super) fn finish(&mut self, pos: Pos) {
        self.progress.done = pos;
        self.progress.prepared = self.progress.prepared.filter(|last| *last > pos);
        self.noted = false;
        let item = self.items.pop_front();
        if self.items.is_empty() {
            self.held = 0;
        }
        if let Some(original) = item.as_ref().and_then(|item| item.entry.original.as_ref())
            && let Some(owed) = self.owed_of.get_mut(&original.outbox)
        {
            *owed -= 1;
            if *owed == 0 {
                self.owed_of.remove(&original.outbox);
            }
        }
    }

    /// Writes the lane's progress to the cursor. If that fails, the next turn writes it.
    pub(super) fn note_done(&mut self, cursor: &Cursor<'_>) -> Result<(), SpoolError> {
        cursor.write(Slot::Delivered, &self.note(cursor.root, self.progress.done))?;
        self.noted = true;
        Ok(())
    }
}
