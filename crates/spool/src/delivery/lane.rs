//! One lane: the files one directory is still owed, in the order of the ledger, and the cursor that follows them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Pass;
use super::away::{Desk, Outcome};
use super::checkpoint::Touched;
use super::cursor::{self, Progress};
use super::note::{Note, Pos, Slot};
use super::wanted::{Wanted, withdraw};
use crate::disk::{self, Handle, Open};
use crate::entry::Wants;
use crate::ground::Ground;
use crate::view::InHand;
use crate::{Away, Entry, FileName, Mailbox, SpoolError, layout};

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
    /// Says that the notes in the cursor file are those of this boot and as far as `progress`.
    pub(crate) noted: bool,
}

/// The lane's cursor file, open.
struct Cursor<'a> {
    ground: &'a Ground,
    file: Handle,
    path: PathBuf,
}

impl Cursor<'_> {
    fn write(&self, slot: Slot, note: &Note) -> Result<(), SpoolError> {
        disk::write_all(&*self.ground.disk, &self.file, &note.line(slot), slot.offset())
            .map_err(|source| self.ground.error("write", &self.path, source))
    }
}

impl Work {
    pub(crate) fn new(lane: Lane, progress: Progress) -> Work {
        Work { lane, progress, items: VecDeque::new(), rest: None, noted: false }
    }

    /// Adds what a record wants done here.
    pub(crate) fn push(&mut self, item: Item) {
        self.items.push_back(item);
    }

    /// Does all there is to do, in order; stops at the first thing that fails and keeps it.
    pub(crate) fn turn(
        &mut self,
        ground: &Ground,
        in_hand: &InHand,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let cursor = self.open_cursor(ground)?;
        match self.lane.clone() {
            Lane::Mailbox(mailbox) => self.fill(&mailbox, &cursor, touched, pass),
            // Putting away may be done twice without harm, so one note at the end is enough. After an error the next
            // turn begins with it.
            Lane::Outbox(agent) => {
                self.clear(&agent, ground, in_hand, touched, pass)?;
                self.note_done(&cursor)
            }
        }
    }

    fn open_cursor<'a>(&mut self, ground: &'a Ground) -> Result<Cursor<'a>, SpoolError> {
        let name = self.lane.cursor_name();
        let dir = ground.dir(layout::CURSORS.as_ref())?;
        let open = || disk::if_there(ground.disk.open(&dir.handle, name.as_ref(), Open::Write));
        let path = dir.path.join(&name);
        let opened = match open() {
            // Somebody removed it while we run; what it said is known here.
            Ok(None) => {
                cursor::make(ground, &dir, &name, &self.progress)?;
                open().and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()))
            }
            Ok(Some(file)) => Ok(file),
            Err(error) => Err(error),
        };
        let file = opened.map_err(|source| ground.error("open", &path, source))?;
        let cursor = Cursor { ground, file, path };
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
        self.progress.prepared = None;
        self.noted = false;
        self.items.pop_front();
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
        let mut archives = Vec::new();
        for path in layout::resting_places(mailbox).iter().filter(|place| **place != path) {
            archives.extend(ground.dir_if_there(path)?);
        }
        while let Some(item) = self.items.front() {
            let (pos, index, entry) = (item.pos, item.index, Arc::clone(&item.entry));
            let delivery = &entry.deliveries[index];
            let bytes = match entry.wants(delivery) {
                Wants::File(bytes) => bytes,
                Wants::None(digest) => {
                    withdraw(ground, &dir, &delivery.file, digest)?;
                    self.finish(pos);
                    self.note_done(cursor)?;
                    continue;
                }
            };
            let temporary = layout::temporary_name(pos.seq, pos.n);
            let wanted = Wanted {
                ground,
                dir: &dir,
                mailbox,
                temporary: &temporary,
                file: &delivery.file,
                pos,
                bytes,
            };
            if self.progress.prepared.take() == Some(pos) {
                self.noted = false;
                // The process ended between the two notes. Under its temporary name the file still waits for its
                // rename; gone from there, it was delivered, whoever has taken it since.
                if ground.look(&dir, &temporary)?.is_some() {
                    let name = wanted.publish()?;
                    touched.file(&dir.path, &name);
                    pass.delivered += 1;
                } else {
                    touched.file_before(&dir.path, &delivery.file, pos.seq);
                }
            } else if pos.seq <= self.progress.verify && wanted.is_there(touched, pass)? {
                // In memory perhaps, since a recovery that was killed.
                touched.file_before(&dir.path, &delivery.file, pos.seq);
                ground.remove(&dir, &temporary)?;
            } else if wanted.is_archived(&archives)? {
                // Its sender put it into the mailbox itself, and its reader was quicker than we.
            } else {
                ground.write_new(&dir, &temporary, bytes)?;
                self.noted = false;
                cursor.write(Slot::Prepared, &self.note(ground, pos))?;
                let name = wanted.publish()?;
                touched.file(&dir.path, &name);
                pass.delivered += 1;
            }
            self.finish(pos);
            self.note_done(cursor)?;
        }
        Ok(())
    }

    /// Puts the originals of an outbox away.
    fn clear(
        &mut self,
        agent: &str,
        ground: &Ground,
        in_hand: &InHand,
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
            let (slot, name, file) = match &original.away {
                Away::Sent(file) => (&mut sent, "sent", file),
                Away::DeadLetter(file) => (&mut dead_letter, "dead_letter", file),
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
