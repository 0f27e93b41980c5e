//! Puts judged originals away from an outbox without losing what a writer wrote after the daemon read them.
//!
//! Renames first and compares afterwards: in the outbox the file could still change after a comparison. In `sent/` or
//! `dead_letter/` the writer no longer reaches it by its name.

use std::io;
use std::sync::Arc;

use super::checkpoint::Touched;
use super::queue::LaneQueue;
use super::slice::Slice;
use super::{Pass, create};
use crate::root::{Dir, DirState, OpenRoot};
use crate::view::JudgedOriginals;
use crate::{Away, Digest, FileName, Original, SpoolError, dirs, layout};
use disk::{FileKind, Stat};

impl LaneQueue {
    /// Puts away the originals that wait in this outbox, up to the end of the slice.
    pub(super) fn dispose(
        &mut self,
        agent: &str,
        root: &OpenRoot,
        judged: &JudgedOriginals,
        slice: &mut Slice,
        touched: &mut Touched,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        // Never recreate an outbox here: its owner proves who sent a message, and an outbox of ours would prove
        // nothing.
        let outbox = root.dir(&layout::agent_dir(agent, dirs::OUTBOX))?;
        touched.lane(&self.lane, &outbox.path, DirState::Found);
        let mut sent = None;
        let mut dead_letter = None;
        while let Some(item) = self.next_within(slice) {
            let (pos, entry) = (item.pos, Arc::clone(&item.entry));
            let original = entry
                .original
                .as_ref()
                .expect("an item of an outbox has an original");
            let (slot, name, file) = match &original.away {
                Away::Sent(file) => (&mut sent, dirs::SENT, file),
                Away::DeadLetter(file) => (&mut dead_letter, dirs::DEAD_LETTER, file),
            };
            let away = match slot {
                Some(dir) => &*dir,
                None => {
                    let (dir, state) =
                        root.dir_of_known(&layout::agent_dir(agent, name), Some(agent))?;
                    touched.lane(&self.lane, &dir.path, state);
                    slot.insert(dir)
                }
            };
            let verify = pos.seq <= self.progress.verify;
            match (Disposal {
                root,
                outbox: &outbox,
                away,
                seq: pos.seq,
                original,
                verify,
            })
            .put_away()?
            {
                Disposition::Away(name) => {
                    touched.file(&away.path, &name);
                    pass.put_away += 1;
                }
                // An earlier process put it away, or this one just wrote it from the ledger.
                Disposition::Gone => touched.file_before(&away.path, file, pos.seq),
                Disposition::New(name) => {
                    touched.file_before(&away.path, file, pos.seq);
                    pass.came_back.push((agent.to_owned(), name));
                }
                Disposition::Left => {
                    self.finish(pos);
                    slice.spend(1);
                    continue;
                }
            }
            judged.release(agent, &original.file);
            self.finish(pos);
            slice.spend(1);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It was put away under this name.
    Away(FileName),
    /// It had already left the outbox.
    Gone,
    /// The outbox holds other bytes under this name: new input.
    New(FileName),
    /// The original is another user's directory that this user may not move. It stays, and nothing waits for it.
    Left,
}

/// One original on its way from the outbox to where the record puts it.
pub(crate) struct Disposal<'a> {
    pub(crate) root: &'a OpenRoot,
    pub(crate) outbox: &'a Dir,
    pub(crate) away: &'a Dir,
    pub(crate) seq: u64,
    pub(crate) original: &'a Original,
    /// A power cut may have undone or torn what was done before the reboot.
    pub(crate) verify: bool,
}

impl Disposal<'_> {
    /// Puts the original away. Every step can be repeated after a kill.
    pub(crate) fn put_away(&self) -> Result<Disposition, SpoolError> {
        let Some(there) = self.root.stat(self.outbox, &self.original.file)? else {
            return self.already_gone();
        };
        if self.is_original(&there)? {
            return self.move_away(there.kind);
        }
        self.keep_accepted()?;
        if self.is_torn_original()? {
            self.root.remove(self.outbox, &self.original.file)?;
            return Ok(Disposition::Away(self.away_name().clone()));
        }
        Ok(Disposition::New(self.original.file.clone()))
    }

    fn away_name(&self) -> &FileName {
        match &self.original.away {
            Away::Sent(file) | Away::DeadLetter(file) => file,
        }
    }

    /// Returns whether the file in the outbox is the one that was judged.
    fn is_original(&self, there: &Stat) -> Result<bool, SpoolError> {
        Ok(self.has_stamp(there) || self.has_judged(self.outbox, &self.original.file)?)
    }

    /// Returns whether a file has the judged bytes.
    fn has_judged(&self, dir: &Dir, name: &FileName) -> Result<bool, SpoolError> {
        let (original, root) = (self.original, self.root);
        let same = |digest| root.has_digest(dir, name, digest, original.size_max());
        original.digest.as_ref().map_or(Ok(false), same)
    }

    fn has_stamp(&self, there: &Stat) -> bool {
        self.original.stamp.is_some_and(|stamp| {
            stamp.ino == there.ino && stamp.size == there.size && stamp.mtime_ns == there.mtime_ns
        })
    }

    /// Returns whether a power cut tore the original of an accepted message, whose bytes are in the ledger.
    fn is_torn_original(&self) -> Result<bool, SpoolError> {
        let Some(text) = self.original.text.as_ref().filter(|_| self.verify) else {
            return Ok(false);
        };
        let found = self
            .root
            .bytes(self.outbox, &self.original.file, text.len() as u64)?;
        Ok(found.is_some_and(|found| create::is_remains(&found, text.as_bytes())))
    }

    fn move_away(&self, kind: FileKind) -> Result<Disposition, SpoolError> {
        for name in self.away_name().variants(self.seq) {
            let root = self.root;
            let (outbox, away) = (&self.outbox.handle, &self.away.handle);
            match root
                .disk
                .rename_new(outbox, self.original.file.as_ref(), away, name.as_ref())
            {
                // A kill here leaves the file in its final place but not yet compared; `already_gone` recognizes it by
                // its inode.
                Ok(()) => return self.compare(&name),
                Err(source) if source.kind() == io::ErrorKind::NotFound => {
                    // Its new directory may be what is gone, if somebody replaces it: then it is put away later.
                    return match root.stat(self.outbox, &self.original.file)? {
                        None => self.already_gone(),
                        Some(_) => Err(root.error_at("put away", self.away, &name, source)),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // The outbox may hold other bytes by now.
                    if self.has_judged(self.away, &name)?
                        && self.has_judged(self.outbox, &self.original.file)?
                    {
                        root.remove(self.outbox, &self.original.file)?;
                        return Ok(Disposition::Away(name));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    return self.carry_away();
                }
                // To move a directory, one must be able to write into it.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && kind == FileKind::Directory =>
                {
                    return Ok(Disposition::Left);
                }
                Err(source) => {
                    return Err(root.error_at(
                        "put away",
                        self.outbox,
                        &self.original.file,
                        source,
                    ));
                }
            }
        }
        Err(self.root.no_free_name(self.away, self.away_name()))
    }

    /// Compares a file that was just put away with what was judged, unless its stamp already proves it.
    fn compare(&self, name: &FileName) -> Result<Disposition, SpoolError> {
        let (Some(_), Some(there)) = (&self.original.digest, self.root.stat(self.away, name)?)
        else {
            return Ok(Disposition::Away(name.clone()));
        };
        let proven =
            self.has_stamp(&there) && self.original.stamp.is_some_and(|stamp| !stamp.fresh);
        if proven || self.has_judged(self.away, name)? {
            return Ok(Disposition::Away(name.clone()));
        }
        self.writer_came_back(name)
    }

    /// Moves the writer's new bytes back to the outbox and keeps the accepted ones.
    fn writer_came_back(&self, name: &FileName) -> Result<Disposition, SpoolError> {
        for back in self.original.file.variants(self.seq) {
            let (outbox, away) = (&self.outbox.handle, &self.away.handle);
            match self
                .root
                .disk
                .rename_new(away, name.as_ref(), outbox, back.as_ref())
            {
                Ok(()) => {
                    self.keep_accepted()?;
                    return Ok(Disposition::New(back));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(self.root.error_at("give back", self.away, name, source));
                }
            }
        }
        Err(self.root.no_free_name(self.outbox, &self.original.file))
    }

    /// Handles a name that is no longer in the outbox: an earlier process put the file away, or its writer took it
    /// back.
    fn already_gone(&self) -> Result<Disposition, SpoolError> {
        if let Some(stamp) = self.original.stamp {
            for name in self.away_name().variants(self.seq) {
                let there = self.root.stat(self.away, &name)?;
                if there.is_some_and(|there| there.ino == stamp.ino && there.kind == FileKind::File)
                    && !self.verify
                {
                    return self.compare(&name);
                }
            }
        }
        if self.verify {
            self.keep_accepted()?;
        }
        Ok(Disposition::Gone)
    }

    /// Ensures that `sent/` holds the accepted bytes. Does nothing for other originals: nobody kept their bytes.
    fn keep_accepted(&self) -> Result<(), SpoolError> {
        let Some(text) = self.original.text.as_ref() else {
            return Ok(());
        };
        let bytes = text.as_bytes();
        let temporary = layout::away_temporary(self.seq);
        match create::find(
            self.root,
            std::slice::from_ref(self.away),
            self.away_name(),
            self.seq,
            bytes,
        )? {
            // A power cut may have kept both names of the renamed file.
            create::Remains::Whole if self.verify => self.root.remove(self.away, &temporary),
            create::Remains::Whole => Ok(()),
            create::Remains::Damaged(_, name) if self.verify => {
                create::repair(self.root, self.away, &temporary, &name, bytes)
            }
            create::Remains::Damaged(..) | create::Remains::Absent => {
                self.write_away(&temporary, bytes).map(drop)
            }
        }
    }

    fn write_away(&self, temporary: &FileName, bytes: &[u8]) -> Result<FileName, SpoolError> {
        let (root, away, name) = (self.root, self.away, self.away_name());
        root.write_new(away, temporary, bytes)?;
        create::publish(root, away, temporary, name, self.seq, bytes)
    }

    /// Copies and then removes the file if the two directories are separate mounts, where a rename fails.
    fn carry_away(&self) -> Result<Disposition, SpoolError> {
        let file = &self.original.file;
        let (limit, digest) = (self.original.size_max(), self.original.digest.as_ref());
        let found = self.root.bytes(self.outbox, file, limit)?;
        let (Some(bytes), Some(digest)) = (found, digest) else {
            let source = io::ErrorKind::CrossesDevices.into();
            return Err(self.root.error_at("put away", self.outbox, file, source));
        };
        if Digest::of(&bytes) != *digest {
            self.keep_accepted()?;
            return Ok(Disposition::New(file.clone()));
        }
        let temporary = layout::away_temporary(self.seq);
        let name = self.write_away(&temporary, &bytes);
        let name = name.inspect_err(|_| {
            // At the next try both directories may be on one file system, and no new copy would replace this one.
            let _ = self.root.remove(self.away, &temporary);
        })?;
        self.root.remove(self.outbox, file)?;
        Ok(Disposition::Away(name))
    }
}
