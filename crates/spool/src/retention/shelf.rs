//! One shelf: what lies in it, what of it is old, and the removal of single files.

use std::path::Path;

use rustix::fs::AtFlags;

use super::known::{Known, Mark};
use super::{Cutoff, Removal, Shelf, Shelved};
use crate::delivery::{Lane, Pos};
use crate::disk::{Kind, Stat};
use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, SpoolError, layout};

/// No file that we made, and none whose bytes we ever read, is larger than this, in bytes.
const READ_MAX: u64 = 4 * 1024 * 1024;

/// A file that was not changed for a long time.
pub(super) struct OldFile {
    name: FileName,
    stat: Stat,
    /// When its name or owner was last changed, too: a reader that moved it here did so.
    ctime_ns: i64,
    digest: Option<Digest>,
}

impl OldFile {
    /// What it may be known by.
    pub(super) fn marks(&self) -> impl Iterator<Item = Mark> + use<'_> {
        let unread = Mark::Unread(self.name.clone(), self.stat.ino);
        self.digest.map(Mark::Digest).into_iter().chain([unread])
    }
}

/// What lies in a shelf, and the old files among it.
pub(super) struct Lying {
    pub(super) shelved: Shelved,
    pub(super) old: Vec<OldFile>,
    dir: Option<Dir>,
    cutoff: Option<Cutoff>,
}

impl Lying {
    /// Looks through a shelf. What cannot be looked at is named in it.
    pub(super) fn look(
        root: &OpenRoot,
        agent: &str,
        shelf: Shelf,
        cutoff: Option<&Cutoff>,
    ) -> Result<Lying, SpoolError> {
        let shelved = Shelved {
            agent: agent.to_owned(),
            shelf,
            there: super::Count::default(),
            oldest_ns: None,
            gone: super::Count::default(),
            uncertain: super::Count::default(),
            unknown: super::Count::default(),
            failed: Vec::new(),
        };
        let mut lying = Lying {
            shelved,
            old: Vec::new(),
            dir: None,
            cutoff: cutoff.cloned(),
        };
        let path = layout::agent_dir(agent, shelf.directory());
        // A link in its place leads elsewhere and is not followed.
        let dir = match root.dir_if_there(&path) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(lying),
            Err(error) => {
                lying.shelved.failed.push(error.chain());
                return Ok(lying);
            }
        };
        match root.disk.list(&dir.handle) {
            Ok(mut names) => {
                names.sort_unstable();
                for name in names
                    .into_iter()
                    .filter(|name| !name.as_bytes().starts_with(b"."))
                {
                    lying.see(root, &dir, name);
                }
            }
            Err(source) => lying
                .shelved
                .failed
                .push(root.error("list", &path, source).chain()),
        }
        lying.dir = Some(dir);
        Ok(lying)
    }

    fn see(&mut self, root: &OpenRoot, dir: &Dir, name: FileName) {
        let stat = match root.look(dir, &name) {
            Ok(Some(stat)) => stat,
            Ok(None) => return,
            Err(error) => return self.shelved.failed.push(error.chain()),
        };
        if stat.kind != Kind::File {
            return;
        }
        self.shelved.there.add(stat.size);
        let oldest = self
            .shelved
            .oldest_ns
            .map_or(stat.mtime_ns, |oldest| oldest.min(stat.mtime_ns));
        self.shelved.oldest_ns = Some(oldest);
        let Some(cutoff) = self
            .cutoff
            .as_ref()
            .filter(|cutoff| stat.mtime_ns < cutoff.wall_ns)
        else {
            return;
        };
        let Some(ctime_ns) = ctime_ns(dir, &name).filter(|ctime| *ctime < cutoff.wall_ns) else {
            return;
        };
        match root.bytes(dir, &name, READ_MAX) {
            Ok(bytes) => {
                let digest = bytes.map(|bytes| Digest::of(&bytes));
                self.old.push(OldFile {
                    name,
                    stat,
                    ctime_ns,
                    digest,
                });
            }
            Err(error) => self.shelved.failed.push(error.chain()),
        }
    }

    /// Removes what is old and done with, or counts it.
    pub(super) fn tidy(
        self,
        root: &OpenRoot,
        known: &Known,
        durable: &dyn Fn(&Lane) -> Pos,
        removal: Removal,
    ) -> Shelved {
        let Lying {
            mut shelved,
            old,
            dir,
            cutoff,
        } = self;
        let (Some(dir), Some(cutoff)) = (dir, cutoff) else {
            return shelved;
        };
        for file in old {
            let brought = file
                .marks()
                .find_map(|mark| known.of(&shelved.agent, shelved.shelf, &mark).cloned());
            let bytes = file.stat.size;
            match brought {
                None => shelved.unknown.add(bytes),
                // Its record is younger than the file.
                Some(brought) if brought.at >= cutoff.at => {}
                Some(brought) if durable(&brought.lane) < brought.pos => {
                    shelved.uncertain.add(bytes);
                }
                Some(_) => match removed(root, &dir, &file, removal) {
                    Ok(true) => shelved.gone.add(bytes),
                    Ok(false) => {}
                    Err(error) => shelved.failed.push(error.chain()),
                },
            }
        }
        shelved
    }
}

/// Removes a file, unless it is another one by now.
fn removed(
    root: &OpenRoot,
    dir: &Dir,
    file: &OldFile,
    removal: Removal,
) -> Result<bool, SpoolError> {
    let is_same = root
        .look(dir, &file.name)?
        .is_some_and(|now| now == file.stat)
        && ctime_ns(dir, &file.name) == Some(file.ctime_ns);
    match removal {
        Removal::Now if is_same => root.remove(dir, &file.name).map(|()| true),
        Removal::Now | Removal::Pretended => Ok(is_same),
    }
}

/// When a file's name, owner or content was last changed, in nanoseconds since 1970; nothing if that cannot be seen.
fn ctime_ns(dir: &Dir, name: &FileName) -> Option<i64> {
    let name: &Path = name.as_ref();
    let stat = rustix::fs::statat(&dir.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let seconds: i64 = wide(stat.st_ctime)?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(wide(stat.st_ctime_nsec)?)
}

/// Widens a number whose type differs from system to system.
fn wide(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}
