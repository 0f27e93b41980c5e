//! Puts one judged original away, without ever losing what its writer wrote after it was read.
//!
//! The rename comes first and the comparison after it, where the writer cannot reach the file by its name any more.

use std::io;

use super::place;
use crate::disk::{Kind, Stat};
use crate::root::{Dir, OpenRoot};
use crate::{Away, Digest, FileName, Original, SpoolError, layout};

/// What became of an original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It lies under this name where it belongs.
    Away(FileName),
    /// It was gone from the outbox already.
    Gone,
    /// Other bytes lie in the outbox under this name: they are new input.
    New(FileName),
}

/// The two directories and the record at hand.
pub(crate) struct Desk<'a> {
    pub(crate) root: &'a OpenRoot,
    pub(crate) outbox: &'a Dir,
    pub(crate) away: &'a Dir,
    pub(crate) seq: u64,
    pub(crate) original: &'a Original,
    /// A power cut may have undone or torn what was done before.
    pub(crate) verify: bool,
}

impl Desk<'_> {
    /// Puts the original away. Each step may be repeated after a kill.
    pub(crate) fn put_away(&self) -> Result<Outcome, SpoolError> {
        let Some(there) = self.root.look(self.outbox, &self.original.file)? else {
            return self.already_gone();
        };
        if self.is_original(&there)? {
            return self.move_away(&there);
        }
        self.keep_accepted()?;
        if self.is_torn_original()? {
            self.root.remove(self.outbox, &self.original.file)?;
            return Ok(Outcome::Away(self.away_name().clone()));
        }
        Ok(Outcome::New(self.original.file.clone()))
    }

    fn away_name(&self) -> &FileName {
        match &self.original.away {
            Away::Sent(file) | Away::DeadLetter(file) => file,
        }
    }

    /// Says whether what lies in the outbox is what was judged.
    fn is_original(&self, there: &Stat) -> Result<bool, SpoolError> {
        if self.has_stamp(there) {
            return Ok(true);
        }
        let size = self.original.stamp.map(|stamp| stamp.size);
        match &self.original.digest {
            Some(digest) if size.is_none_or(|size| size == there.size) => {
                self.root
                    .has_digest(self.outbox, &self.original.file, digest, there.size)
            }
            Some(_) | None => Ok(false),
        }
    }

    fn has_stamp(&self, there: &Stat) -> bool {
        self.original.stamp.is_some_and(|stamp| {
            stamp.ino == there.ino && stamp.size == there.size && stamp.mtime_ns == there.mtime_ns
        })
    }

    /// Says whether a power cut tore the original of an accepted message, whose bytes are in the ledger.
    fn is_torn_original(&self) -> Result<bool, SpoolError> {
        let Some(text) = self.original.text.as_ref().filter(|_| self.verify) else {
            return Ok(false);
        };
        let found = self
            .root
            .bytes(self.outbox, &self.original.file, text.len() as u64)?;
        Ok(found.is_some_and(|found| place::is_remains(&found, text.as_bytes())))
    }

    fn move_away(&self, there: &Stat) -> Result<Outcome, SpoolError> {
        for name in self.away_name().variants(self.seq) {
            let root = self.root;
            let (outbox, away) = (&self.outbox.handle, &self.away.handle);
            match root
                .disk
                .rename_new(outbox, self.original.file.as_ref(), away, name.as_ref())
            {
                // A kill here leaves the file where it belongs but not yet compared; `already_gone` knows it by its
                // inode.
                Ok(()) => return self.compare(&name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return self.already_gone();
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.is_copy(&name, there)? {
                        root.remove(self.outbox, &self.original.file)?;
                        return Ok(Outcome::Away(name));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    return self.carry_away();
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
        let taken = io::ErrorKind::AlreadyExists.into();
        Err(self
            .root
            .error_at("find a free name for", self.away, self.away_name(), taken))
    }

    /// Says whether the name is taken by the same bytes, and the outbox still holds them, too.
    fn is_copy(&self, name: &FileName, there: &Stat) -> Result<bool, SpoolError> {
        let Some(digest) = &self.original.digest else {
            return Ok(false);
        };
        Ok(self.root.has_digest(self.away, name, digest, there.size)?
            && self
                .root
                .has_digest(self.outbox, &self.original.file, digest, there.size)?)
    }

    /// Compares a file that was just put away with what was judged, unless its stamp is proof enough.
    fn compare(&self, name: &FileName) -> Result<Outcome, SpoolError> {
        let (Some(digest), Some(there)) = (&self.original.digest, self.root.look(self.away, name)?)
        else {
            return Ok(Outcome::Away(name.clone()));
        };
        let proven =
            self.has_stamp(&there) && self.original.stamp.is_some_and(|stamp| !stamp.fresh);
        if proven || self.root.has_digest(self.away, name, digest, there.size)? {
            return Ok(Outcome::Away(name.clone()));
        }
        self.writer_came_back(name)
    }

    /// Gives the writer's new bytes back to the outbox and keeps the accepted ones.
    fn writer_came_back(&self, name: &FileName) -> Result<Outcome, SpoolError> {
        for back in self.original.file.variants(self.seq) {
            let (outbox, away) = (&self.outbox.handle, &self.away.handle);
            match self
                .root
                .disk
                .rename_new(away, name.as_ref(), outbox, back.as_ref())
            {
                Ok(()) => {
                    self.keep_accepted()?;
                    return Ok(Outcome::New(back));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(self.root.error_at("give back", self.away, name, source));
                }
            }
        }
        let taken = io::ErrorKind::AlreadyExists.into();
        Err(self.root.error_at(
            "find a free name for",
            self.outbox,
            &self.original.file,
            taken,
        ))
    }

    /// The outbox holds nothing under that name: it was put away before a kill, or its writer took it back.
    fn already_gone(&self) -> Result<Outcome, SpoolError> {
        if let Some(stamp) = self.original.stamp {
            for name in self.away_name().variants(self.seq) {
                let there = self.root.look(self.away, &name)?;
                if there.is_some_and(|there| there.ino == stamp.ino && there.kind == Kind::File)
                    && !self.verify
                {
                    return self.compare(&name);
                }
            }
        }
        if self.verify {
            self.keep_accepted()?;
        }
        Ok(Outcome::Gone)
    }

    /// Makes sure that the accepted bytes lie in `sent/`; for anything but an accepted message there is nothing to do.
    fn keep_accepted(&self) -> Result<(), SpoolError> {
        let Some(text) = self.original.text.as_ref() else {
            return Ok(());
        };
        let bytes = text.as_bytes();
        let temporary = layout::away_temporary(self.seq);
        match place::trace(
            self.root,
            std::slice::from_ref(self.away),
            self.away_name(),
            self.seq,
            bytes,
        )? {
            // A power cut may have left both names of a rename.
            place::Trace::Whole if self.verify => self.root.remove(self.away, &temporary),
            place::Trace::Whole => Ok(()),
            place::Trace::Damaged(_, name) if self.verify => {
                place::mend(self.root, self.away, &temporary, &name, bytes)
            }
            place::Trace::Damaged(..) | place::Trace::Absent => {
                self.root.write_new(self.away, &temporary, bytes)?;
                place::publish(
                    self.root,
                    self.away,
                    &temporary,
                    self.away_name(),
                    self.seq,
                    bytes,
                )
                .map(|_| ())
            }
        }
    }

    /// Copies and removes, where a rename between the two directories is not possible (each a mount of its own).
    fn carry_away(&self) -> Result<Outcome, SpoolError> {
        let crosses = || io::ErrorKind::CrossesDevices.into();
        let limit = self
            .original
            .stamp
            .map_or(u64::from(u32::MAX), |stamp| stamp.size);
        let digest = self.original.digest.as_ref();
        let found = self.root.bytes(self.outbox, &self.original.file, limit)?;
        let (Some(bytes), Some(digest)) = (found, digest) else {
            return Err(self.root.error_at(
                "put away",
                self.outbox,
                &self.original.file,
                crosses(),
            ));
        };
        if Digest::of(&bytes) != *digest {
            self.keep_accepted()?;
            return Ok(Outcome::New(self.original.file.clone()));
        }
        let temporary = layout::away_temporary(self.seq);
        self.root.write_new(self.away, &temporary, &bytes)?;
        let name = place::publish(
            self.root,
            self.away,
            &temporary,
            self.away_name(),
            self.seq,
            &bytes,
        );
        let name = name.inspect_err(|_| {
            // The next try may find both names on one file system, and make no copy that would replace this one.
            let _ = self.root.remove(self.away, &temporary);
        })?;
        self.root.remove(self.outbox, &self.original.file)?;
        Ok(Outcome::Away(name))
    }
}
