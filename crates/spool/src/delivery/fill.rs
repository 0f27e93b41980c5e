//! Makes the files of a mailbox, a group at a time: all are written, one note says so, all are renamed, one note says
//! so. A kill between any two steps leaves what the notes tell apart.

use super::Pass;
use super::checkpoint::Touched;
use super::cursor::Cursor;
use super::lane::{Item, Work};
use super::note::{Pos, Slot};
use super::wanted::{Ready, Wanted, withdraw};
use crate::entry::Wants;
use crate::root::Dir;
use crate::{Mailbox, SpoolError, layout};

/// So many files are written before their renames: two notes are enough for all of them, and the first one still shows
/// soon.
const TOGETHER: usize = 32;

/// A mailbox whose files are being made.
struct Filling<'a> {
    mailbox: &'a Mailbox,
    dir: Dir,
    /// Where its reader puts what it is done with.
    archives: Vec<Dir>,
    cursor: &'a Cursor<'a>,
}

impl Work {
    /// Makes the files of a mailbox.
    pub(super) fn fill(
        &mut self,
        mailbox: &Mailbox,
        cursor: &Cursor<'_>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let root = cursor.root;
        let path = layout::mailbox_dir(mailbox);
        let (dir, made) = root.dir_of_known(&path, mailbox.owner())?;
        touched.lane(&self.lane, &dir.path, made);
        let mut archives = Vec::new();
        for path in layout::resting_places(mailbox)
            .iter()
            .filter(|place| **place != path)
        {
            archives.extend(root.dir_if_there(path)?);
        }
        let filling = Filling {
            mailbox,
            dir,
            archives,
            cursor,
        };
        while let Some(next) = self.items.front() {
            if let Wants::None(digest) = next.wants()
                && Some(next.pos) > self.progress.prepared
            {
                // Never in a group with others: repeated after a kill it would take out the same bytes that a later
                // record of the group delivered under that name.
                withdraw(root, &filling.dir, next.file(), digest)?;
                let pos = next.pos;
                self.finish(pos);
                self.note_done(cursor)?;
            } else {
                self.fill_group(&filling, touched, pass)?;
            }
        }
        Ok(())
    }

    /// Makes the next files appear, those first that were prepared before.
    fn fill_group(
        &mut self,
        filling: &Filling<'_>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut made = Vec::new();
        let prepared = match self.progress.prepared {
            Some(_) => Ok(()),
            None => self.prepare(filling, &mut made, touched, pass),
        };
        if self.progress.prepared.is_none() {
            return prepared;
        }
        // What was prepared before something failed is delivered nevertheless.
        self.publish(filling, &made, touched, pass)?;
        self.note_done(filling.cursor)?;
        prepared
    }

    /// Writes the next files completely under their temporary names and notes the last of them. `made` tells which were
    /// written; the others are there already.
    fn prepare(
        &mut self,
        filling: &Filling<'_>,
        made: &mut Vec<Pos>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut last = None;
        let mut failure = Ok(());
        for item in self.items.iter().take(TOGETHER) {
            let Wants::File(bytes) = item.wants() else {
                break;
            };
            let sought = item.pos.seq <= self.progress.verify;
            match filling
                .wanted(item, bytes)
                .make_ready(sought, &filling.archives, touched, pass)
            {
                Ok(Ready::Written) => made.push(item.pos),
                Ok(Ready::There) => {}
                Err(error) => {
                    failure = Err(error);
                    break;
                }
            }
            last = Some(item.pos);
        }
        if let Some(last) = last {
            self.noted = false;
            filling
                .cursor
                .write(Slot::Prepared, &self.note(filling.cursor.root, last))?;
            self.progress.prepared = Some(last);
        }
        failure
    }

    /// Renames the prepared files to their names.
    fn publish(
        &mut self,
        filling: &Filling<'_>,
        made: &[Pos],
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        while let Some(item) = self
            .items
            .front()
            .filter(|item| Some(item.pos) <= self.progress.prepared)
        {
            let (item, root) = (item.clone(), filling.cursor.root);
            let Wants::File(bytes) = item.wants() else {
                // Done before the files behind it were prepared.
                self.finish(item.pos);
                continue;
            };
            let wanted = filling.wanted(&item, bytes);
            // A file that this turn did not write was prepared by a process that is gone. Under its temporary name it
            // still waits for its rename; gone from there, it was delivered, whoever has taken it since.
            if made.contains(&item.pos) || root.look(&filling.dir, &wanted.temporary)?.is_some() {
                let published = wanted.publish();
                if published.is_err() {
                    // The temporary file may be gone with its directory, and that must not count as a delivery.
                    self.progress.prepared = None;
                    self.noted = false;
                }
                touched.file(&filling.dir.path, &published?);
                pass.delivered += 1;
            } else {
                // Made or found by an earlier process or just now, and perhaps in memory only.
                touched.file_before(&filling.dir.path, wanted.file, item.pos.seq);
            }
            self.finish(item.pos);
        }
        Ok(())
    }
}

impl Filling<'_> {
    fn wanted<'a>(&'a self, item: &'a Item, bytes: &'a [u8]) -> Wanted<'a> {
        Wanted {
            root: self.cursor.root,
            dir: &self.dir,
            mailbox: self.mailbox,
            temporary: layout::temporary_name(item.pos.seq, item.pos.n),
            file: item.file(),
            pos: item.pos,
            bytes,
        }
    }
}
