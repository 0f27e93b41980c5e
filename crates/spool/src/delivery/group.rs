//! Makes the files of a mailbox, a group at a time: write all, note `prepared`, rename all, note `delivered`.
//!
//! A group costs two writes to the cursor whatever its size. After a kill between any two steps, those notes tell which
//! of its files were prepared and which were renamed. It is not called a batch: a batch is what the ledger commits.

use super::Pass;
use super::checkpoint::Touched;
use super::cursor::Cursor;
use super::expected::{ExpectedFile, Ready, withdraw};
use super::note::{Pos, Slot};
use super::queue::{LaneItem, LaneQueue};
use super::slice::Slice;
use crate::root::Dir;
use crate::{Mailbox, SpoolError, layout};
use ledger_records::ExpectedContent;

/// The most files in a group: so many that its two notes cost little, so few that the first file shows soon.
pub(super) const GROUP_MAX: usize = 32;

/// The mailbox whose files are being made, opened.
struct OpenMailbox<'a> {
    mailbox: &'a Mailbox,
    dir: Dir,
    /// The directories to which the reader moves finished messages.
    archives: Vec<Dir>,
    cursor: &'a Cursor<'a>,
}

impl LaneQueue {
    /// Makes the next files of the lane that belong to this mailbox, up to the end of the slice.
    pub(super) fn deliver(
        &mut self,
        mailbox: &Mailbox,
        cursor: &Cursor<'_>,
        slice: &mut Slice,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let root = cursor.root;
        let path = layout::mailbox_dir(mailbox);
        let (dir, state) = root.dir_of_known(&path, mailbox.owner())?;
        touched.lane(&self.lane, &dir.path, state);
        let mut archives = Vec::new();
        for path in layout::resting_places(mailbox)
            .iter()
            .filter(|place| **place != path)
        {
            archives.extend(root.dir_if_there(path)?);
        }
        let target = OpenMailbox {
            mailbox,
            dir,
            archives,
            cursor,
        };
        while let Some(next) = self
            .next_within(slice)
            .filter(|next| next.mailbox() == mailbox)
        {
            let before = self.items.len();
            if let ExpectedContent::Absent(digest) = next.expected()
                && Some(next.pos) > self.progress.prepared
            {
                // Never in a group with others: after a kill a start repeats the withdrawal, and would remove the same
                // bytes again if a later record of the group had delivered them under that name.
                withdraw(root, &target.dir, next.file(), digest)?;
                let pos = next.pos;
                self.finish(pos);
                self.note_done(cursor)?;
            } else {
                self.deliver_group(&target, slice, touched, pass)?;
            }
            slice.spend(before - self.items.len());
        }
        Ok(())
    }

    /// Delivers one group; files that an earlier process prepared come first, in a group of their own.
    fn deliver_group(
        &mut self,
        target: &OpenMailbox<'_>,
        slice: &Slice,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut made = Vec::new();
        let prepared = match self.progress.prepared {
            Some(_) => Ok(()),
            None => self.prepare(target, slice, &mut made, touched, pass),
        };
        if self.progress.prepared.is_none() {
            return prepared;
        }
        // After a failure, deliver what was prepared before it.
        self.publish(target, &made, touched, pass)?;
        self.note_done(target.cursor)?;
        prepared
    }

    /// Writes the next files under their temporary names, then notes the last of them. `made` collects the files it
    /// wrote; the reader has or had the others.
    fn prepare(
        &mut self,
        target: &OpenMailbox<'_>,
        slice: &Slice,
        made: &mut Vec<Pos>,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let mut last = None;
        let mut failure = Ok(());
        let is_ready =
            |item: &&LaneItem| item.mailbox() == target.mailbox && !slice.holds(&item.entry);
        for item in self.items.iter().take(GROUP_MAX).take_while(is_ready) {
            let ExpectedContent::File(bytes) = item.expected() else {
                break;
            };
            let expected = target.expected(item, bytes);
            let ready = if item.pos.seq <= self.progress.verify {
                expected.find_or_make_ready(&target.archives, touched, pass)
            } else {
                expected.make_ready(&target.archives)
            };
            match ready {
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
            target
                .cursor
                .write(Slot::Prepared, &self.note(target.cursor.root, last))?;
            self.progress.prepared = Some(last);
        }
        failure
    }

    /// Renames the prepared files to their names.
    fn publish(
        &mut self,
        target: &OpenMailbox<'_>,
        made: &[Pos],
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        while let Some(item) = self
            .items
            .front()
            .filter(|item| Some(item.pos) <= self.progress.prepared)
        {
            let (item, root) = (item.clone(), target.cursor.root);
            let ExpectedContent::File(bytes) = item.expected() else {
                // A withdrawal is done before the files behind it are prepared.
                self.finish(item.pos);
                continue;
            };
            let expected = target.expected(&item, bytes);
            // If this turn did not write the file, an earlier process prepared it. If its temporary name still exists,
            // the file waits for its rename; if not, it was delivered, and its reader may have taken it.
            if made.contains(&item.pos) || root.stat(&target.dir, &expected.temporary)?.is_some() {
                let published = expected.publish();
                if published.is_err() {
                    // The temporary file may have vanished with its directory. That must not count as a delivery.
                    self.progress.prepared = None;
                    self.noted = false;
                }
                touched.file(&target.dir.path, &published?);
                pass.delivered += 1;
            } else {
                // An earlier process made it or this one found it; it may not be on the disk yet.
                touched.file_before(&target.dir.path, expected.file, item.pos.seq);
            }
            self.finish(item.pos);
        }
        Ok(())
    }
}

impl OpenMailbox<'_> {
    fn expected<'a>(&'a self, item: &'a LaneItem, bytes: &'a [u8]) -> ExpectedFile<'a> {
        ExpectedFile {
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
