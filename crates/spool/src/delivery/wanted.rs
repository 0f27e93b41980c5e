//! One file that a mailbox is owed: made to appear, or found where it was before a power cut.
//!
//! The order of these steps and the notes between them are `lane`'s business.

use super::checkpoint::Touched;
use super::note::Pos;
use super::place::{self, Trace};
use super::{Pass, Placed};
use crate::ground::{Dir, Ground};
use crate::{Entry, FileName, Mailbox, SpoolError, layout};

/// One file that a mailbox is owed.
pub(super) struct Wanted<'a> {
    ground: &'a Ground,
    dir: &'a Dir,
    mailbox: &'a Mailbox,
    pub(super) temporary: FileName,
    file: &'a FileName,
    pos: Pos,
    bytes: &'a [u8],
}

impl<'a> Wanted<'a> {
    /// Takes the `index`-th delivery of a record, whose place in the lane is `pos`.
    pub(super) fn new(
        ground: &'a Ground,
        mailbox: &'a Mailbox,
        dir: &'a Dir,
        pos: Pos,
        entry: &'a Entry,
        index: usize,
    ) -> Wanted<'a> {
        let delivery = &entry.deliveries[index];
        let temporary = layout::temporary_name(pos.seq, pos.n);
        Wanted { ground, dir, mailbox, temporary, file: &delivery.file, pos, bytes: entry.content(delivery) }
    }

    /// Writes the file completely under its temporary name; false if it was `sought` and is there already.
    pub(super) fn make_ready(
        &self,
        sought: bool,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<bool, SpoolError> {
        if sought && self.is_there(touched, pass)? {
            self.ground.remove(self.dir, &self.temporary)?;
            return Ok(false);
        }
        self.ground.write_new(self.dir, &self.temporary, self.bytes)?;
        Ok(true)
    }

    /// Renames the complete temporary file to its name.
    pub(super) fn publish(&self) -> Result<FileName, SpoolError> {
        place::publish(self.ground, self.dir, &self.temporary, self.file, self.pos.seq, self.bytes)
    }

    /// Looks whether a file that may have been delivered before a power cut is still there, and mends what is left of
    /// it. If nothing is, nobody can tell whether its reader took it: it is delivered again, and the pass says so.
    fn is_there(&self, touched: &mut Touched, pass: &mut Pass) -> Result<bool, SpoolError> {
        let mut places = Vec::new();
        for path in layout::resting_places(self.mailbox) {
            places.extend(self.ground.dir_if_there(&path)?);
        }
        let placed = || Placed { mailbox: self.mailbox.clone(), file: self.file.clone(), seq: self.pos.seq };
        match place::trace(self.ground, &places, self.file, self.pos.seq, self.bytes)? {
            Trace::Whole => Ok(true),
            Trace::Damaged(at, name) => {
                place::mend(self.ground, &places[at], &self.temporary, &name, self.bytes)?;
                touched.dir(&places[at].path);
                touched.file(&places[at].path, &name);
                pass.mended.push(placed());
                Ok(true)
            }
            Trace::Absent => {
                pass.redelivered.push(placed());
                Ok(false)
            }
        }
    }
}
