//! Remembers what was touched since the last checkpoint, and makes it durable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Lane;
use crate::root::{Dir, DirState, OpenRoot};
use crate::{FileName, SpoolError, dirs, layout};
use disk::{self, FileKind, Handle, OpenMode};

/// The number of touched files after which a power cut would make the next start slow.
const TOUCHED_MAX: usize = 32_768;

/// Above this many files, one sync of the whole file system is cheaper than one per file. Systems without such a call
/// keep the whole list.
const FILES_MAX: usize = if cfg!(target_os = "linux") {
    64
} else {
    1 << 30
};

/// The files, directories and lanes that a power cut could still undo.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    files: Vec<(PathBuf, FileName)>,
    count: usize,
    /// The value of `count` when the last checkpoint began to sync.
    tried: usize,
    dirs: BTreeSet<PathBuf>,
    pub(crate) lanes: BTreeSet<Lane>,
}

/// A directory that could not be opened, and the error: changes in it are not durable.
type Closed = (PathBuf, SpoolError);

impl Touched {
    /// Notes that a lane works in this directory.
    pub(crate) fn lane(&mut self, lane: &Lane, dir: &Path, state: DirState) {
        if !self.lanes.contains(lane) {
            self.lanes.insert(lane.clone());
        }
        self.dir(dir);
        if state == DirState::Made {
            // Its parents, up to the root, may be new as well.
            dir.ancestors().skip(1).for_each(|above| self.dir(above));
        }
    }

    /// Notes that names in this directory changed.
    pub(crate) fn dir(&mut self, dir: &Path) {
        if !self.dirs.contains(dir) {
            self.dirs.insert(dir.to_owned());
        }
    }

    /// Notes a new file.
    pub(crate) fn file(&mut self, dir: &Path, name: &FileName) {
        self.count += 1;
        if self.count <= FILES_MAX {
            self.files.push((dir.to_owned(), name.clone()));
        }
    }

    /// Notes a file that an earlier process made or found and may not have synced, under every name it may have.
    pub(crate) fn file_before(&mut self, dir: &Path, file: &FileName, seq: u64) {
        self.count += 1;
        if self.count <= FILES_MAX {
            self.files
                .extend(file.variants(seq).map(|name| (dir.to_owned(), name)));
        }
    }

    /// Adds what another thread touched.
    pub(crate) fn merge(&mut self, other: Touched) {
        self.count += other.count;
        // Above this number files are not synced one by one, so their names are not needed.
        if self.count <= FILES_MAX {
            self.files.extend(other.files);
        }
        self.dirs.extend(other.dirs);
        self.lanes.extend(other.lanes);
    }

    /// Returns whether a checkpoint is due even without a quiet moment.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.count >= self.tried + TOUCHED_MAX
    }

    /// Returns whether one sync of the whole file system is cheaper than one per file.
    pub(super) fn is_many(&self) -> bool {
        self.count > FILES_MAX
    }

    /// Makes everything durable except in directories that cannot be opened, and returns those: their owner may have
    /// closed them, and no other mail waits for that. After an error that is not retryable, bytes may be lost, and only
    /// a new start looks for them.
    pub(super) fn sync(&mut self, root: &OpenRoot) -> Result<Vec<Closed>, SpoolError> {
        self.tried = self.count;
        let mut dirs = Vec::new();
        let mut closed = Vec::new();
        for path in &self.dirs {
            match root.dir_if_there(path) {
                Ok(dir) => dirs.extend(dir.map(|dir| (path, dir))),
                Err(error) => closed.push((path.clone(), error)),
            }
        }
        if self.is_many() {
            sync_file_systems(root, dirs)?;
            return Ok(closed);
        }
        for (path, name) in &self.files {
            let Some((_, dir)) = dirs.iter().find(|(known, _)| *known == path) else {
                continue;
            };
            sync_file(root, dir, name)?;
        }
        for (path, dir) in &dirs {
            root.disk
                .sync_dir(&dir.handle)
                .map_err(SpoolError::fatal("sync", root.path(path)))?;
        }
        Ok(closed)
    }

    /// Keeps what is still not durable after a sync: everything in the lanes that `is_held` names.
    pub(super) fn left(self, is_held: &dyn Fn(&Lane) -> bool) -> Touched {
        let lanes: BTreeSet<Lane> = self.lanes.into_iter().filter(is_held).collect();
        let places: Vec<PathBuf> = lanes.iter().flat_map(dirs_of).collect();
        let is_in = |dir: &Path| places.iter().any(|place| dir.starts_with(place));
        let is_left = |dir: &Path| is_in(dir) || places.iter().any(|place| place.starts_with(dir));
        let dirs = self.dirs.into_iter().filter(|dir| is_left(dir)).collect();
        let files: Vec<_> = self
            .files
            .into_iter()
            .filter(|(dir, _)| is_in(dir))
            .collect();
        // Above this number the names were not noted, so the next sync covers the whole file system again.
        let count = if self.count > FILES_MAX {
            FILES_MAX + 1
        } else {
            files.len()
        };
        Touched {
            files,
            count,
            tried: 0,
            dirs,
            lanes,
        }
    }
}

/// Syncs each file system of these directories once; an agent's directory may be a mount of its own.
fn sync_file_systems(root: &OpenRoot, dirs: Vec<(&PathBuf, Dir)>) -> Result<(), SpoolError> {
    let mut file_systems: BTreeMap<u64, (Handle, &Path)> = BTreeMap::new();
    for (path, dir) in dirs {
        let stat = root
            .disk
            .stat(&dir.handle)
            .map_err(|source| root.error("look at", path, source))?;
        file_systems.entry(stat.dev).or_insert((dir.handle, path));
    }
    for (handle, path) in file_systems.values() {
        root.disk
            .sync_file_system(handle)
            .map_err(SpoolError::fatal("sync", root.path(path)))?;
    }
    Ok(())
}

/// Returns whether a lane works in this directory, below it, or in one above it.
pub(super) fn works_at(lane: &Lane, dir: &Path) -> bool {
    dirs_of(lane)
        .iter()
        .any(|place| place.starts_with(dir) || dir.starts_with(place))
}

/// Returns the directories below which a lane works.
fn dirs_of(lane: &Lane) -> Vec<PathBuf> {
    match lane {
        Lane::Mailbox(mailbox) => vec![layout::mailbox_dir(mailbox)],
        Lane::Pulls => vec![dirs::PULLS.into()],
        Lane::Outbox(agent) => [dirs::OUTBOX, dirs::SENT, dirs::DEAD_LETTER]
            .map(|name| layout::agent_dir(agent, name))
            .into(),
    }
}

/// Syncs one file. If it is missing, its reader took it and no sync is needed. A link, a FIFO or a directory that was
/// put away has no bytes of ours; syncing the parent directory covers its name. For a file that cannot be opened, syncs
/// its whole file system: nothing may be noted as durable that was not synced.
fn sync_file(root: &OpenRoot, dir: &Dir, name: &FileName) -> Result<(), SpoolError> {
    let fatal = || SpoolError::fatal("sync", root.path(&dir.path.join(name)));
    match disk::if_there(root.disk.open(&dir.handle, name.as_ref(), OpenMode::Read)) {
        Ok(None) => Ok(()),
        Ok(Some(file)) => {
            let stat = root
                .disk
                .stat(&file)
                .map_err(|source| root.error_at("look at", dir, name, source))?;
            if stat.kind == FileKind::File {
                root.disk.sync_data(&file).map_err(fatal())
            } else {
                Ok(())
            }
        }
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::LOOP | Errno::NXIO)
            ) =>
        {
            Ok(())
        }
        Err(source) => match root.disk.sync_file_system(&dir.handle) {
            Ok(true) => Ok(()),
            Ok(false) => Err(root.error_at("open", dir, name, source)),
            Err(error) => Err(fatal()(error)),
        },
    }
}
