//! What was touched since the last checkpoint, and how it becomes durable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Lane;
use crate::disk::{self, Handle, Kind, Open};
use crate::ground::{Dir, Ground};
use crate::{FileName, SpoolError};

/// Beyond this many files one call for the whole file system is cheaper than one for each of them. Where there is no
/// such call the list is kept whole.
const FILES_MAX: usize = if cfg!(target_os = "linux") { 64 } else { 1 << 30 };

/// The files, directories and lanes that a power cut could still undo.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    files: Vec<(PathBuf, FileName)>,
    count: usize,
    dirs: BTreeSet<PathBuf>,
    pub(crate) lanes: BTreeSet<Lane>,
}

impl Touched {
    /// Notes that a lane works in this directory, and whether the directory was made for it.
    pub(crate) fn lane(&mut self, lane: &Lane, dir: &Path, made: bool) {
        if !self.lanes.contains(lane) {
            self.lanes.insert(lane.clone());
        }
        self.dir(dir);
        if made {
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
            self.files.extend(file.variants(seq).map(|name| (dir.to_owned(), name)));
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

    /// How many files were touched.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Makes all of it durable. An error that is not retryable means that bytes may be lost and must be looked for.
    pub(crate) fn sync(&self, ground: &Ground) -> Result<(), SpoolError> {
        let mut dirs = Vec::new();
        if self.count > FILES_MAX {
            return self.sync_file_systems(ground);
        }
        for path in &self.dirs {
            dirs.extend(ground.dir_if_there(path)?.map(|dir| (path, dir)));
        }
        for (path, name) in &self.files {
            let Some((_, dir)) = dirs.iter().find(|(known, _)| *known == path) else { continue };
            sync_file(ground, dir, name)?;
        }
        for (path, dir) in &dirs {
            ground.disk.sync_dir(&dir.handle).map_err(SpoolError::fatal("sync", ground.path(path)))?;
        }
        Ok(())
    }

    /// Syncs each file system that was touched once; an agent's directory may be a mount of its own.
    fn sync_file_systems(&self, ground: &Ground) -> Result<(), SpoolError> {
        let mut file_systems: BTreeMap<u64, (Handle, &Path)> = BTreeMap::new();
        for path in &self.dirs {
            let Some(dir) = ground.dir_if_there(path)? else { continue };
            let stat =
                ground.disk.stat(&dir.handle).map_err(|source| ground.error("look at", path, source))?;
            file_systems.entry(stat.dev).or_insert((dir.handle, path));
        }
        for (handle, path) in file_systems.values() {
            ground.disk.sync_file_system(handle).map_err(SpoolError::fatal("sync", ground.path(path)))?;
        }
        Ok(())
    }
}

/// Syncs one file. One that is gone was taken by its reader and needs no help any more; a link, a FIFO or a directory
/// that was put away has no bytes of ours, and its name is synced with the directory. One that cannot be opened is synced
/// with its whole file system: what was not synced must not be noted as durable.
fn sync_file(ground: &Ground, dir: &Dir, name: &FileName) -> Result<(), SpoolError> {
    let fatal = || SpoolError::fatal("sync", ground.path(&dir.path.join(name)));
    match disk::if_there(ground.disk.open(&dir.handle, name.as_ref(), Open::Read)) {
        Ok(None) => Ok(()),
        Ok(Some(file)) => {
            let stat =
                ground.disk.stat(&file).map_err(|source| ground.error_at("look at", dir, name, source))?;
            if stat.kind == Kind::File { ground.disk.sync_data(&file).map_err(fatal()) } else { Ok(()) }
        }
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NXIO)) => Ok(()),
        Err(source) => match ground.disk.sync_file_system(&dir.handle) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ground.error_at("open", dir, name, source)),
            Err(error) => Err(fatal()(error)),
        },
    }
}
