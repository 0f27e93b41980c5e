//! One lane: the files one directory is still owed, in the order of the ledger, and the cursor that follows them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::Pass;
use super::away::{Desk, Outcome};
use super::checkpoint::Touched;
use super::cursor::{Cursor, Progress};
use super::note::{Note, Pos, Slot};
use super::wanted::Wanted;
use crate::ground::{Dir, Ground};
use crate::{Away, Entry, FileName, Mailbox, SpoolError, layout};

/// So many files are written before their renames: two notes are enough for all of them, and the first one still shows
/// soon.
const TOGETHER: usize = 32;

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
    /// Gives the name of the lane's cursor file.
    pub(crate) fn cursor_name(&self) -> FileName {
        layout::cursor_name(&self.to_string())
    }
}

/// One thing to do in a lane.
pub(crate) struct Item {
    pub(crate) pos: Pos,
    pub(crate) entry: Arc<Entry>,
    /// Which of the record's deliveries; of no meaning for an original.
    pub(crate) index: usize,
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
    /// How many of the items are about an outbox file of this name.
    pub(crate) in_hand: HashMap<FileName, usize>,
    /// Says that the notes in the cursor file are those of this boot and as far as `progress`.
    pub(crate) noted: bool,
}

impl Work {
    pub(crate) fn new(lane: Lane, progress: Progress) -> Work {
        Work { lane, progress, items: VecDeque::new(), rest: None, in_hand: HashMap::new(), noted: false }
    }

    /// Adds what a record wants done here.
    pub(crate) fn push(&mut self, item: Item) {
        if let (Lane::Outbox(_), Some(original)) = (&self.lane, &item.entry.original) {
            *self.in_hand.entry(original.file.clone()).or_default() += 1;
        }
        self.items.push_back(item);
    }

    /// Does all there is to do, in order; stops at the first thing that fails and keeps it.
    pub(crate) fn turn(
        &mut self,
        ground: &Ground,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let cursor = self.open_cursor(ground)?;
        match self.lane.clone() {
            Lane::Mailbox(mailbox) => self.fill(&mailbox, &cursor, touched, pass),
            // Putting away may be done twice without harm, so one note at the end is enough. After an error the next
            // turn begins with it.
            Lane::Outbox(agent) => {
                self.clear(&agent, ground, touched, pass)?;
                self.note_done(&cursor)
            }
        }
    }

    fn open_cursor<'a>(&mut self, ground: &'a Ground) -> Result<Cursor<'a>, SpoolError> {
        let cursor = Cursor::open(ground, &self.lane.cursor_name(), &self.progress)?;
        if !self.noted {
            // A `prepared` that is ahead of `delivered` would say that the temporary file is whole or was renamed. Once
            // a rename failed neither is sure any more, so the note is taken back before anything is touched again.
            cursor.write(Slot::Delivered, &self.note(ground, self.progress.done))?;
            let prepared = self.progress.prepared.unwrap_or(self.progress.done);
            cursor.write(Slot::Prepared, &self.note(ground, prepared))?;
            self.noted = true;
        }
        Ok(cursor)
    }

    fn note(&self, ground: &Ground, pos: Pos) -> Note {
        Note { pos, verify: self.progress.verify, boot: ground.boot.clone() }
    }

    /// Notes in memory that everything up to `pos` is done.
    fn finish(&mut self, pos: Pos) {
        self.progress.done = pos;
        self.progress.prepared = self.progress.prepared.filter(|last| *last > pos);
        self.noted = false;
        let item = self.items.pop_front();
        if let Some(original) = item.as_ref().and_then(|item| item.entry.original.as_ref())
            && let Some(count) = self.in_hand.get_mut(&original.file)
        {
            *count -= 1;
            if *count == 0 {
                self.in_hand.remove(&original.file);
            }
        }
    }

    /// Notes in the file what is done. If it cannot be written, the next turn does it.
    fn note_done(&mut self, cursor: &Cursor<'_>) -> Result<(), SpoolError> {
        cursor.write(Slot::Delivered, &self.note(cursor.ground, self.progress.done))?;
        self.noted = true;
        Ok(())
    }

    /// Makes the files of a mailbox.
    fn fill(
        &mut self,
        mailbox: &Mailbox,
        cursor: &Cursor<'_>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let ground = cursor.ground;
        let path = layout::mailbox_dir(mailbox);
        let (dir, made) = ground.dir_of_known(&path, mailbox.owner())?;
        touched.lane(&self.lane, &dir.path, made);
        while !self.items.is_empty() {
            let mut made = Vec::new();
            let prepared = match self.progress.prepared {
                Some(_) => Ok(()),
                None => self.prepare(mailbox, &dir, cursor, &mut made, touched, pass),
            };
            if self.progress.prepared.is_none() {
                return prepared;
            }
            // What was prepared before something failed is delivered nevertheless.
            self.publish(mailbox, &dir, ground, &made, touched, pass)?;
            self.note_done(cursor)?;
            prepared?;
        }
        Ok(())
    }

    /// Writes the next files completely under their temporary names and notes the last of them. `made` tells which were
    /// written; the others are there already.
    fn prepare(
        &mut self,
        mailbox: &Mailbox,
        dir: &Dir,
        cursor: &Cursor<'_>,
        made: &mut Vec<Pos>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut last = None;
        let mut failure = Ok(());
        for item in self.items.iter().take(TOGETHER) {
            let wanted = Wanted::new(cursor.ground, mailbox, dir, item.pos, &item.entry, item.index);
            let sought = item.pos.seq <= self.progress.verify;
            match wanted.make_ready(sought, touched, pass) {
                Ok(true) => made.push(item.pos),
                Ok(false) => {}
                Err(error) => {
                    failure = Err(error);
                    break;
                }
            }
            last = Some(item.pos);
        }
        if let Some(last) = last {
            self.noted = false;
            cursor.write(Slot::Prepared, &self.note(cursor.ground, last))?;
            self.progress.prepared = Some(last);
        }
        failure
    }

    /// Renames the prepared files to their names.
    fn publish(
        &mut self,
        mailbox: &Mailbox,
        dir: &Dir,
        ground: &Ground,
        made: &[Pos],
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        while let Some(item) = self.items.front()
            && self.progress.prepared.is_some_and(|last| item.pos <= last)
        {
            let (pos, index, entry) = (item.pos, item.index, Arc::clone(&item.entry));
            let wanted = Wanted::new(ground, mailbox, dir, pos, &entry, index);
            // A file that this turn did not write was prepared by a process that is gone. Under its temporary name it
            // still waits for its rename; gone from there, it was delivered, whoever has taken it since.
            if made.contains(&pos) || ground.look(dir, &wanted.temporary)?.is_some() {
                let published = wanted.publish();
                if published.is_err() {
                    // The temporary file may be gone with its directory, and that must not count as a delivery.
                    self.progress.prepared = None;
                    self.noted = false;
                }
                touched.file(&dir.path, &published?);
                pass.delivered += 1;
            }
            self.finish(pos);
        }
        Ok(())
    }

    /// Puts the originals of an outbox away.
    fn clear(
        &mut self,
        agent: &str,
        ground: &Ground,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        // An outbox is never made here: owning it is what proves the sender.
        let outbox = ground.dir(&layout::agent_dir(agent, "outbox"))?;
        touched.lane(&self.lane, &outbox.path, false);
        let mut sent = None;
        let mut dead_letter = None;
        while let Some(item) = self.items.front() {
            let (pos, entry) = (item.pos, Arc::clone(&item.entry));
            let original = entry.original.as_ref().expect("an item of an outbox has an original");
            let (slot, name) = match &original.away {
                Away::Sent(_) => (&mut sent, "sent"),
                Away::DeadLetter(_) => (&mut dead_letter, "dead_letter"),
            };
            let away = match slot {
                Some(dir) => &*dir,
                None => {
                    let (dir, made) = ground.dir_of_known(&layout::agent_dir(agent, name), Some(agent))?;
                    touched.lane(&self.lane, &dir.path, made);
                    slot.insert(dir)
                }
            };
            let verify = pos.seq <= self.progress.verify;
            match (Desk { ground, outbox: &outbox, away, seq: pos.seq, original, verify }).put_away()? {
                Outcome::Away(name) => {
                    touched.file(&away.path, &name);
                    pass.put_away += 1;
                }
                Outcome::Gone => {}
                Outcome::New(name) => pass.came_back.push((agent.to_owned(), name)),
            }
            self.finish(pos);
        }
        Ok(())
    }
}
