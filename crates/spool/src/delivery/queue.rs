//! One lane: the files that its directory is still owed, in ledger order, and the cursor that follows them.
//!
//! `group` makes the files of a mailbox; `dispose` puts the originals of an outbox away.

use std::collections::VecDeque;
use std::sync::Arc;

use super::checkpoint::Touched;
use super::cursor::{Cursor, Progress};
use super::note::{CursorNote, Pos, Slot};
use super::slice::Slice;
use super::{Lane, Pass};
use crate::root::OpenRoot;
use crate::view::JudgedOriginals;
use crate::{Delivery, Entry, FileName, Mailbox, SpoolError};
use ledger_records::ExpectedContent;

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
    pub(crate) items: VecDeque<LaneItem>,
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
            backoff: None,
            noted: false,
        }
    }

    pub(crate) fn push(&mut self, item: LaneItem) {
        self.items.push_back(item);
    }

    /// Returns the number of the first record whose file is still owed.
    pub(super) fn first_owed(&self) -> Option<u64> {
        self.items.front().map(|item| item.pos.seq)
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
        let cursor = self.open_cursor(root)?;
        match self.lane.clone() {
            Lane::Mailbox(mailbox) => self.deliver(&mailbox, &cursor, slice, touched, pass),
            Lane::Pulls => {
                while let Some(mailbox) = self.next_within(slice).map(|item| item.mailbox().clone())
                {
                    self.deliver(&mailbox, &cursor, slice, touched, pass)?;
                }
                Ok(())
            }
            // Putting an original away twice is harmless, so one note for all of them is enough. After an error the
            // next turn writes it first.
            Lane::Outbox(agent) => {
                self.dispose(&agent, root, judged, slice, touched, pass)?;
                self.note_done(&cursor)
            }
        }
    }

    /// Returns the next item if the slice has room for it.
    pub(super) fn next_within(&self, slice: &Slice) -> Option<&LaneItem> {
        let next = self.items.front().filter(|_| !slice.is_spent());
        next.filter(|next| !slice.holds(&next.entry))
    }

    fn open_cursor<'a>(&mut self, root: &'a OpenRoot) -> Result<Cursor<'a>, SpoolError> {
        let cursor = Cursor::open(root, &self.lane.cursor_name(), &self.progress)?;
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
        self.items.pop_front();
    }

    /// Writes the lane's progress to the cursor. If that fails, the next turn writes it.
    pub(super) fn note_done(&mut self, cursor: &Cursor<'_>) -> Result<(), SpoolError> {
        cursor.write(Slot::Delivered, &self.note(cursor.root, self.progress.done))?;
        self.noted = true;
        Ok(())
    }
}
