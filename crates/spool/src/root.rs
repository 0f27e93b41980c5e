//! The open workspace that every part of the spool works on: its disk, its root directory and the boot id; and the safe
//! ways to open a directory or look at a file beneath that root.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::layout::{self, Layout};
use crate::{Digest, DirectoryStamp, FileName, Now, SpoolError, dirs};
use disk::{self, Disk, FileKind, Handle, OpenMode, Stat};

/// The open root directory of a workspace. Everything in the spool is opened beneath its handle, so that moving the
/// root or placing a link in a path cannot redirect a write.
pub(crate) struct OpenRoot {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) handle: Handle,
    pub(crate) boot: String,
}

/// The origin of an open directory: it existed, or this call made it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirState {
    Found,
    Made,
}

/// An open directory of the workspace and its name, for errors.
pub(crate) struct Dir {
    pub(crate) handle: Handle,
    /// Relative to the root.
    pub(crate) path: PathBuf,
}

/// The names in a directory, listed one after the other; the caller may pause.
pub type NameListing = Box<dyn Iterator<Item = Result<FileName, SpoolError>> + Send>;

impl OpenRoot {
    /// Opens the workspace at `path` and makes the daemon's own directories.
    pub(crate) fn open(path: &Path, disk: Arc<dyn Disk>) -> Result<OpenRoot, SpoolError> {
        let root = OpenRoot::look_at(path, disk)?;
        for dir in [dirs::OWN, dirs::LEDGER, dirs::CURSORS, dirs::TORN] {
            root.make_dir(dir.as_ref())?;
        }
        // The directories exist, but may not be durable yet.
        let own = root.dir(dirs::OWN.as_ref())?;
        for handle in [&own.handle, &root.handle] {
            root.disk
                .sync_dir(handle)
                .map_err(SpoolError::fatal("sync", path))?;
        }
        Ok(root)
    }

    /// Opens the workspace at `path` for reading: makes nothing.
    pub(crate) fn look_at(path: &Path, disk: Arc<dyn Disk>) -> Result<OpenRoot, SpoolError> {
        let handle = disk.open_root(path).map_err(SpoolError::io("open", path))?;
        let boot = disk
            .boot_id(&handle)
            .map_err(SpoolError::io("read the boot id for", path))?;
        Ok(OpenRoot {
            disk,
            layout: Layout::new(path),
            handle,
            boot,
        })
    }

    /// Returns the same directory for another thread, even if something else has its path now.
    pub(crate) fn try_clone(&self) -> Result<OpenRoot, SpoolError> {
        let handle = self.handle.try_clone();
        Ok(OpenRoot {
            disk: Arc::clone(&self.disk),
            layout: self.layout.clone(),
            handle: handle.map_err(SpoolError::io("open", self.layout.root()))?,
            boot: self.boot.clone(),
        })
    }

    /// Returns the full path, for errors.
    pub(crate) fn path(&self, relative: &Path) -> PathBuf {
        self.layout.root().join(relative)
    }

    /// Opens a directory beneath the root.
    pub(crate) fn dir(&self, path: &Path) -> Result<Dir, SpoolError> {
        let handle = self
            .disk
            .open_dir(&self.handle, path)
            .map_err(|source| self.error("open", path, source))?;
        Ok(Dir {
            handle,
            path: path.to_owned(),
        })
    }

    /// Opens a directory beneath the root, or the root itself for an empty path; `None` if it does not exist.
    pub(crate) fn dir_if_there(&self, path: &Path) -> Result<Option<Dir>, SpoolError> {
        let opened = if path.as_os_str().is_empty() {
            self.handle.try_clone().map(Some)
        } else {
            disk::if_there(self.disk.open_dir(&self.handle, path))
        };
        let handle = opened.map_err(|source| self.error("open", path, source))?;
        Ok(handle.map(|handle| Dir {
            handle,
            path: path.to_owned(),
        }))
    }

    /// Opens a mailbox's directory, or another directory of an agent. Recreates it if it is missing, but only for a
    /// known agent: one that still has an outbox or an inbox.
    pub(crate) fn dir_of_known(
        &self,
        path: &Path,
        agent: Option<&str>,
    ) -> Result<(Dir, DirState), SpoolError> {
        if let Some(dir) = self.dir_if_there(path)? {
            return Ok((dir, DirState::Found));
        }
        if let Some(agent) = agent {
            let known = [dirs::OUTBOX, dirs::INBOX]
                .iter()
                .map(|directory| layout::agent_dir(agent, directory));
            let mut known = known.map(|path| self.dir_if_there(&path));
            if !known.any(|found| matches!(found, Ok(Some(_)))) {
                return Err(self.error(
                    "deliver to the unknown agent of",
                    path,
                    io::ErrorKind::NotFound.into(),
                ));
            }
        } else {
            let above: Vec<&Path> = path.ancestors().skip(1).collect();
            let mut beneath_root = above
                .into_iter()
                .rev()
                .filter(|path| !path.as_os_str().is_empty());
            beneath_root.try_for_each(|path| self.make_dir(path))?;
        }
        self.make_dir(path)?;
        Ok((self.dir(path)?, DirState::Made))
    }

    /// Makes a directory unless it exists, in a parent that is not reached through a link.
    fn make_dir(&self, path: &Path) -> Result<(), SpoolError> {
        let parent = self.dir_if_there(path.parent().unwrap_or(Path::new("")))?;
        let parent =
            parent.ok_or_else(|| self.error("make", path, io::ErrorKind::NotFound.into()))?;
        let name = path.file_name().map_or(path, Path::new);
        match self.disk.make_dir(&parent.handle, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result.map_err(|source| self.error("make", path, source)),
        }
    }

    /// Returns the stamp of a directory if an equal one will prove that no name was added or removed since.
    pub(crate) fn settled_stamp(
        &self,
        dir: &Dir,
        now: Now,
    ) -> Result<Option<DirectoryStamp>, SpoolError> {
        DirectoryStamp::settled(&*self.disk, &dir.handle, now)
            .map_err(|source| self.error("look at", &dir.path, source))
    }

    /// Begins to list the names in a directory.
    pub(crate) fn names(&self, dir: &Dir) -> Result<NameListing, SpoolError> {
        let path = self.path(&dir.path);
        let names = self.disk.names(&dir.handle);
        let names = names.map_err(SpoolError::io("list", &path))?;
        Ok(Box::new(names.map(move |name| {
            name.map_err(SpoolError::io("list", &path))
        })))
    }

    /// Returns the metadata of a directory entry, if it exists.
    pub(crate) fn stat(&self, dir: &Dir, name: &FileName) -> Result<Option<Stat>, SpoolError> {
        disk::if_there(self.disk.stat_at(&dir.handle, name.as_ref()))
            .map_err(|source| self.error_at("look at", dir, name, source))
    }

    /// Reads a regular file if there is one of at most `limit` bytes; anything else under that name is `None`.
    pub(crate) fn bytes(
        &self,
        dir: &Dir,
        name: &FileName,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, SpoolError> {
        let fits = |stat: &Stat| stat.kind == FileKind::File && stat.size <= limit;
        if !self.stat(dir, name)?.as_ref().is_some_and(fits) {
            return Ok(None);
        }
        let read = || {
            let Some(file) =
                disk::if_there(self.disk.open(&dir.handle, name.as_ref(), OpenMode::Read))?
            else {
                return Ok(None);
            };
            let stat = self.disk.stat(&file)?;
            if !fits(&stat) {
                return Ok(None);
            }
            let bytes = disk::read_up_to(&*self.disk, &file, stat.size, limit.saturating_add(1))?;
            Ok(if bytes.len() as u64 <= limit {
                Some(bytes)
            } else {
                None
            })
        };
        read().map_err(|source| self.error_at("read", dir, name, source))
    }

    /// Returns whether a regular file with exactly these bytes has that name.
    pub(crate) fn holds(
        &self,
        dir: &Dir,
        name: &FileName,
        bytes: &[u8],
    ) -> Result<bool, SpoolError> {
        Ok(self
            .bytes(dir, name, bytes.len() as u64)?
            .is_some_and(|found| found == bytes))
    }

    /// Returns whether a regular file of at most `limit` bytes with this digest has that name.
    pub(crate) fn has_digest(
        &self,
        dir: &Dir,
        name: &FileName,
        digest: &Digest,
        limit: u64,
    ) -> Result<bool, SpoolError> {
        Ok(self
            .bytes(dir, name, limit)?
            .is_some_and(|found| Digest::of(&found) == *digest))
    }

    /// Writes a new file whole, replacing any entry of that name. A kill leaves a partial file, so no reader may look for
    /// the name.
    pub(crate) fn write_new(
        &self,
        dir: &Dir,
        name: &FileName,
        bytes: &[u8],
    ) -> Result<(), SpoolError> {
        let create = || match self.disk.open(&dir.handle, name.as_ref(), OpenMode::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.clear(dir, name)?;
                self.disk.open(&dir.handle, name.as_ref(), OpenMode::New)
            }
            result => result,
        };
        let written = create().and_then(|file| {
            let written = disk::write_all(&*self.disk, &file, bytes, 0);
            if written.is_err() {
                // The room is needed more than the partial file; if even this fails, the next try removes it.
                let _ = self.disk.remove(&dir.handle, name.as_ref());
            }
            written
        });
        written.map_err(|source| self.error_at("write", dir, name, source))
    }

    pub(crate) fn no_free_name(&self, dir: &Dir, name: &FileName) -> SpoolError {
        let taken = io::ErrorKind::AlreadyExists.into();
        self.error_at("find a free name for", dir, name, taken)
    }

    /// Frees a name for a file of ours. A directory there, which may be another user's, moves to an unpredictable name.
    fn clear(&self, dir: &Dir, name: &FileName) -> io::Result<()> {
        match self.disk.remove(&dir.handle, name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
                let aside = PathBuf::from(format!(".settled-aside-{}", now.as_nanos()));
                let (at, name) = (&dir.handle, name.as_ref());
                self.disk.rename_new(at, name, at, &aside)
            }
            removed => removed,
        }
    }

    /// Removes a file if it is there.
    pub(crate) fn remove(&self, dir: &Dir, name: &FileName) -> Result<(), SpoolError> {
        disk::if_there(self.disk.remove(&dir.handle, name.as_ref()))
            .map(|_| ())
            .map_err(|source| self.error_at("remove", dir, name, source))
    }

    /// Returns an error that names the operation and a path beneath the root.
    pub(crate) fn error(
        &self,
        operation: &'static str,
        path: &Path,
        source: io::Error,
    ) -> SpoolError {
        SpoolError::Io {
            operation,
            path: self.path(path),
            source,
        }
    }

    /// Returns an error that names the operation and a file of a directory.
    pub(crate) fn error_at(
        &self,
        operation: &'static str,
        dir: &Dir,
        name: &FileName,
        source: io::Error,
    ) -> SpoolError {
        self.error(operation, &dir.path.join(name), source)
    }
}
