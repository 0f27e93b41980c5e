//! Remembers what was touched since the last checkpoint, and makes it durable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Lane;
use crate::root::{Dir, DirState, OpenRoot};
use crate::{FileName, SpoolError, dirs, layout};
use disk::{self, FileKind, Handle, OpenMode};

/// So many touched files that a power cut would make the next start slow.
const TOUCHED_MAX: usize = 32_768;

/// Beyond this many files one call for the whole file system is cheaper than one for each of them. Where there is no
/// such call the list is kept whole.
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

/// A directory that could not be opened, and why: what was done in it is not durable.
type Closed = (PathBuf, SpoolError);

impl Touched {
    /// Notes that a lane works in this directory.
    pub(crate) fn lane(&mut self, lane: &Lane, dir: &Path, state: DirState) {
        if !self.lanes.contains(lane) {
            self.lanes.insert(lane.clone());
        }
        self.dir(dir);
        if state == DirState::Made {
            // Those above it may be new as well, up to the root.
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

    /// Notes a file that an earlier process made or found and may not have synced, under any name it may have got.
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
        // Beyond that many the files are not synced one by one.
        if self.count <= FILES_MAX {
            self.files.extend(other.files);
        }
        self.dirs.extend(other.dirs);
        self.lanes.extend(other.lanes);
    }

    /// Says whether so much was touched that a checkpoint should not wait for a quiet moment.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.count >= self.tried + TOUCHED_MAX
    }

    /// Says whether one call for the whole file system is cheaper than one for each file.
    pub(super) fn is_many(&self) -> bool {
        self.count > FILES_MAX
    }

    /// Makes all of it durable except what is in directories that cannot be opened, and returns those: their owner may
    /// have closed them, and nobody else's mail waits for that. After an error that is not retryable, bytes may be lost,
    /// and only a new start looks for them.
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

    /// Keeps what still has to be made durable once every lane is, except those held up.
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
        // Beyond that many the names were not noted, so it takes the whole file system again.
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

/// Says whether a lane works in this directory, below it, or in one that is below its own.
pub(super) fn works_at(lane: &Lane, dir: &Path) -> bool {
    dirs_of(lane)
        .iter()
        .any(|place| place.starts_with(dir) || dir.starts_with(place))
}

/// The directories a lane works in, or in whose folders.
fn dirs_of(lane: &Lane) -> Vec<PathBuf> {
    match lane {
        Lane::Mailbox(mailbox) => vec![layout::mailbox_dir(mailbox)],
        Lane::Pulls => vec![dirs::PULLS.into()],
        Lane::Outbox(agent) => [dirs::OUTBOX, dirs::SENT, dirs::DEAD_LETTER]
            .map(|name| layout::agent_dir(agent, name))
            .into(),
    }
}

/// Syncs one file. A missing file was taken by its reader and no longer needs a sync; a link, a FIFO or a directory
/// that was put away has no bytes of ours, and its name is synced with the directory. One that cannot be opened is
/// synced with its whole file system: what was not synced must not be noted as durable.
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
