//! One lane: the files one directory is still owed, in the order of the ledger, and the cursor that follows them.
//!
//! How the files of a mailbox are made is `fill`'s business.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::Pass;
use super::away::{Desk, Outcome};
use super::checkpoint::Touched;
use super::cursor::{Cursor, Progress};
use super::note::{Note, Pos, Slot};
use crate::entry::Wants;
use crate::root::OpenRoot;
use crate::view::InHand;
use crate::{Away, Delivery, Entry, FileName, Mailbox, SpoolError, layout};

/// A directory that follows the ledger with a cursor of its own: one that cannot be written holds up no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Files are made in this mailbox.
    Mailbox(Mailbox),
    /// Judged originals are put away from this agent's outbox.
    Outbox(String),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Mailbox(mailbox) => mailbox.fmt(f),
            Lane::Outbox(agent) => write!(f, "{agent}/outbox"),
        }
    }
}

impl Lane {
    /// Reads what is shown of a lane: a mailbox, or `<agent>/outbox`.
    pub(crate) fn read(text: &str) -> Option<Lane> {
        match text.strip_suffix("/outbox") {
            Some(agent) if layout::is_agent_name(agent) => Some(Lane::Outbox(agent.to_owned())),
            Some(_) | None => text.parse().map(Lane::Mailbox).ok(),
        }
    }

    /// Gives the name of the lane's cursor file.
    pub(crate) fn cursor_name(&self) -> FileName {
        layout::cursor_name(&self.to_string())
    }
}

/// One thing to do in a lane.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) pos: Pos,
    pub(crate) entry: Arc<Entry>,
    /// Which of the record's deliveries; of no meaning for an original.
    pub(crate) index: usize,
}

impl Item {
    fn delivery(&self) -> &Delivery {
        &self.entry.deliveries[self.index]
    }

    /// What the mailbox is to hold.
    pub(super) fn wants(&self) -> Wants<'_> {
        self.entry.wants(self.delivery())
    }

    /// The name the record gave it.
    pub(super) fn file(&self) -> &FileName {
        &self.delivery().file
    }
}

/// Why and until when a lane is left alone.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub(crate) why: String,
    pub(crate) until: u64,
    pub(crate) pause: u64,
}

/// A lane and all it has to do.
pub(crate) struct Work {
    pub(crate) lane: Lane,
    pub(crate) progress: Progress,
    pub(crate) items: VecDeque<Item>,
    pub(crate) rest: Option<Rest>,
    /// Says that the notes in the cursor file are those of this boot and as far as `progress`.
    pub(crate) noted: bool,
}

impl Work {
    pub(crate) fn new(lane: Lane, progress: Progress) -> Work {
        Work {
            lane,
            progress,
            items: VecDeque::new(),
            rest: None,
            noted: false,
        }
    }

    /// Adds what a record wants done here.
    pub(crate) fn push(&mut self, item: Item) {
        self.items.push_back(item);
    }

    /// Does all there is to do, in order; stops at the first thing that fails and keeps it.
    pub(crate) fn turn(
        &mut self,
        root: &OpenRoot,
        in_hand: &InHand,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let cursor = self.open_cursor(root)?;
        match self.lane.clone() {
            Lane::Mailbox(mailbox) => self.fill(&mailbox, &cursor, touched, pass),
            // Putting away may be done twice without harm, so one note at the end is enough. After an error the next
            // turn begins with it.
            Lane::Outbox(agent) => {
                self.clear(&agent, root, in_hand, touched, pass)?;
                self.note_done(&cursor)
            }
        }
    }

    fn open_cursor<'a>(&mut self, root: &'a OpenRoot) -> Result<Cursor<'a>, SpoolError> {
        let cursor = Cursor::open(root, &self.lane.cursor_name(), &self.progress)?;
        if !self.noted {
            // A `prepared` that is ahead of `delivered` would say that the temporary file is whole or was renamed. Once
            // a rename failed neither is sure any more, so the note is taken back before anything is touched again.
            cursor.write(Slot::Delivered, &self.note(root, self.progress.done))?;
            let prepared = self.progress.prepared.unwrap_or(self.progress.done);
            cursor.write(Slot::Prepared, &self.note(root, prepared))?;
            self.noted = true;
        }
        Ok(cursor)
    }

    pub(super) fn note(&self, root: &OpenRoot, pos: Pos) -> Note {
        Note {
            pos,
            verify: self.progress.verify,
            boot: root.boot.clone(),
        }
    }

    /// Notes in memory that everything up to `pos` is done.
    pub(super) fn finish(&mut self, pos: Pos) {
        self.progress.done = pos;
        self.progress.prepared = self.progress.prepared.filter(|last| *last > pos);
        self.noted = false;
        self.items.pop_front();
    }

    /// Notes in the file what is done. If it cannot be written, the next turn does it.
    pub(super) fn note_done(&mut self, cursor: &Cursor<'_>) -> Result<(), SpoolError> {
        cursor.write(Slot::Delivered, &self.note(cursor.root, self.progress.done))?;
        self.noted = true;
        Ok(())
    }

    /// Puts the originals of an outbox away.
    fn clear(
        &mut self,
        agent: &str,
        root: &OpenRoot,
        in_hand: &InHand,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        // An outbox is never made here: owning it is what proves the sender.
        let outbox = root.dir(&layout::agent_dir(agent, "outbox"))?;
        touched.lane(&self.lane, &outbox.path, false);
        let mut sent = None;
        let mut dead_letter = None;
        while let Some(item) = self.items.front() {
            let (pos, entry) = (item.pos, Arc::clone(&item.entry));
            let original = entry
                .original
                .as_ref()
                .expect("an item of an outbox has an original");
            let (slot, name, file) = match &original.away {
                Away::Sent(file) => (&mut sent, "sent", file),
                Away::DeadLetter(file) => (&mut dead_letter, "dead_letter", file),
            };
            let away = match slot {
                Some(dir) => &*dir,
                None => {
                    let (dir, made) =
                        root.dir_of_known(&layout::agent_dir(agent, name), Some(agent))?;
                    touched.lane(&self.lane, &dir.path, made);
                    slot.insert(dir)
                }
            };
            let verify = pos.seq <= self.progress.verify;
            match (Desk {
                root,
                outbox: &outbox,
                away,
                seq: pos.seq,
                original,
                verify,
            })
            .put_away()?
            {
                Outcome::Away(name) => {
                    touched.file(&away.path, &name);
                    pass.put_away += 1;
                }
                // Put away by an earlier process, or kept from the ledger just now.
                Outcome::Gone => touched.file_before(&away.path, file, pos.seq),
                Outcome::New(name) => {
                    touched.file_before(&away.path, file, pos.seq);
                    pass.came_back.push((agent.to_owned(), name));
                }
            }
            in_hand.release(agent, &original.file);
            self.finish(pos);
        }
        Ok(())
    }
}
