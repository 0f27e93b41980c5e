//! One file that a mailbox must hold: written and renamed, or found where it was before a power cut.
//!
//! `group` orders these steps and writes the notes between them.

use super::checkpoint::Touched;
use super::create::{self, Remains};
use super::note::Pos;
use super::{Pass, Placed};
use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, Mailbox, SpoolError, layout};
use ledger_records::MESSAGE_FILE_MAX;

/// Removes a file from a mailbox if it holds exactly these bytes. Can be repeated after a kill.
pub(super) fn withdraw(
    root: &OpenRoot,
    dir: &Dir,
    file: &FileName,
    digest: &Digest,
) -> Result<(), SpoolError> {
    if root.has_digest(dir, file, digest, MESSAGE_FILE_MAX)? {
        root.remove(dir, file)?;
    }
    Ok(())
}

/// One file that a mailbox is owed.
pub(super) struct ExpectedFile<'a> {
    pub(super) root: &'a OpenRoot,
    pub(super) dir: &'a Dir,
    pub(super) mailbox: &'a Mailbox,
    pub(super) temporary: FileName,
    pub(super) file: &'a FileName,
    pub(super) pos: Pos,
    pub(super) bytes: &'a [u8],
}

/// The result of preparing one file.
pub(super) enum Ready {
    /// The file is complete under its temporary name.
    Written,
    /// Its reader has or had the file; nothing is under its temporary name.
    There,
}

impl ExpectedFile<'_> {
    /// Writes the complete file under its temporary name unless it is in one of the `archives`: then the sender put it
    /// into the mailbox itself, and the reader was faster than we are.
    pub(super) fn make_ready(&self, archives: &[Dir]) -> Result<Ready, SpoolError> {
        if self.is_archived(archives)? {
            return self.leave_there();
        }
        self.root.write_new(self.dir, &self.temporary, self.bytes)?;
        Ok(Ready::Written)
    }

    /// Does the same for a file that may have been delivered before a power cut: looks for it in the mailbox first.
    pub(super) fn find_or_make_ready(
        &self,
        archives: &[Dir],
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<Ready, SpoolError> {
        if self.is_there(touched, pass)? {
            return self.leave_there();
        }
        self.make_ready(archives)
    }

    /// A kill may have left a part of the file; removes it, or a start would mistake it for a prepared one.
    fn leave_there(&self) -> Result<Ready, SpoolError> {
        self.root.remove(self.dir, &self.temporary)?;
        Ok(Ready::There)
    }

    /// Renames the complete temporary file to its name.
    pub(super) fn publish(&self) -> Result<FileName, SpoolError> {
        create::publish(
            self.root,
            self.dir,
            &self.temporary,
            self.file,
            self.pos.seq,
            self.bytes,
        )
    }

    /// Returns whether the same bytes have the same name where the reader puts finished files. The ledger never gives a
    /// mailbox one name twice, so only a copy that the sender delivered itself can be there.
    fn is_archived(&self, archives: &[Dir]) -> Result<bool, SpoolError> {
        for dir in archives {
            if let Some(stat) = self.root.stat(dir, self.file)?
                && stat.size == self.bytes.len() as u64
                && self.root.holds(dir, self.file, self.bytes)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a file that may have been delivered before a power cut is still there, and repairs a damaged
    /// one. If nothing is left, its reader may or may not have taken it: the file is delivered again, and the pass
    /// reports that.
    fn is_there(&self, touched: &mut Touched, pass: &mut Pass) -> Result<bool, SpoolError> {
        let mut places = Vec::new();
        for path in layout::resting_places(self.mailbox) {
            places.extend(self.root.dir_if_there(&path)?);
        }
        let placed = || Placed {
            mailbox: self.mailbox.clone(),
            file: self.file.clone(),
            seq: self.pos.seq,
        };
        match create::find(self.root, &places, self.file, self.pos.seq, self.bytes)? {
            Remains::Whole => Ok(true),
            Remains::Damaged(at, name) => {
                create::repair(self.root, &places[at], &self.temporary, &name, self.bytes)?;
                touched.dir(&places[at].path);
                touched.file(&places[at].path, &name);
                pass.fixed.push(placed());
                Ok(true)
            }
            Remains::Absent => {
                pass.redelivered.push(placed());
                Ok(false)
            }
        }
    }
}
