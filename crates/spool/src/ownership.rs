//! Whose a directory or file of a workspace is and who may do what with it: looked at and changed on the very entry
//! that was opened beneath the root, so that no link leads a change made by root elsewhere.
//!
//! Which users there are and what they are to have is the caller's business.

use std::io;
use std::path::Path;

use rustix::fs::{Gid, Mode, Uid};

use crate::disk::{self, Disk, Handle, Kind, Os};
use crate::{FileName, SpoolError};

/// An owner, a group and the permissions of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The twelve bits of permission.
    pub mode: u32,
}

/// A workspace whose entries are given to users.
#[derive(Debug)]
pub struct Grounds {
    root: Handle,
}

impl Grounds {
    /// Opens the workspace at `root`.
    pub fn open(root: &Path) -> Result<Grounds, SpoolError> {
        Ok(Grounds {
            root: Os.open_root(root).map_err(SpoolError::io("open", root))?,
        })
    }

    /// Gives what a directory or file has now; nothing if there is none. The root is the empty path. A file with several
    /// names, and whatever is neither file nor directory, is an error: it may be something else as well.
    pub fn tenure(&self, path: &Path) -> Result<Option<Tenure>, SpoolError> {
        let found = disk::if_there(self.entry(path)).map_err(SpoolError::io("look at", path))?;
        found
            .map(|entry| tenure(&entry).map_err(SpoolError::io("look at", path)))
            .transpose()
    }

    /// Gives a directory or file to a user, and says whether anything was changed.
    pub fn grant(&self, path: &Path, to: Tenure) -> Result<bool, SpoolError> {
        let grant = || {
            let entry = self.entry(path)?;
            let before = tenure(&entry)?;
            if (before.uid, before.gid) != (to.uid, to.gid) {
                rustix::fs::fchown(
                    &entry,
                    Some(Uid::from_raw(to.uid)),
                    Some(Gid::from_raw(to.gid)),
                )?;
            }
            // Changing the owner can take permissions away, so they come last.
            if before != to {
                rustix::fs::fchmod(&entry, Mode::from_raw_mode(to.mode))?;
            }
            Ok(before != to)
        };
        grant().map_err(SpoolError::io("change the owner of", path))
    }

    /// Lists the names in a directory; none if there is no such directory.
    pub fn names(&self, path: &Path) -> Result<Vec<FileName>, SpoolError> {
        let listed = disk::if_there(self.entry(path).and_then(|dir| Os.list(&dir)));
        Ok(listed
            .map_err(SpoolError::io("list", path))?
            .unwrap_or_default())
    }

    /// Says whether it is a directory, and not only a link to one.
    pub fn is_dir(&self, path: &Path) -> bool {
        Os.open_dir(&self.root, path).is_ok()
    }

    fn entry(&self, path: &Path) -> io::Result<Handle> {
        if path.as_os_str().is_empty() {
            return self.root.try_clone();
        }
        let entry = Os.open_beneath(&self.root, path)?;
        let stat = Os.stat(&entry)?;
        match stat.kind {
            Kind::Directory => Ok(entry),
            Kind::File if stat.links == 1 => Ok(entry),
            Kind::File => Err(io::Error::other(
                "it has several names, and the others may lie anywhere",
            )),
            Kind::Symlink | Kind::Special => {
                Err(io::Error::other("it is neither a file nor a directory"))
            }
        }
    }
}

fn tenure(entry: &Handle) -> io::Result<Tenure> {
    let stat = rustix::fs::fstat(entry)?;
    Ok(Tenure {
        uid: stat.st_uid,
        gid: stat.st_gid,
        mode: stat.st_mode & 0o7777,
    })
}
