//! Writes and removes the service's file: whole or not at all, never over a file of somebody else or of another
//! workspace, and never while the service manager still starts it.

use std::io;
use std::path::{Path, PathBuf};

use workspace::atomic_file;

use super::{Service, ServiceManager, text};

/// The file found at the service's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstalledFile {
    /// Nothing.
    Nothing,
    /// Ours, and what would be written now.
    Same,
    /// Ours, of another version, config or place of the program.
    Other,
}

/// The change that writing a file made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It was made.
    Made,
    /// It says something else now.
    Changed,
    /// It said so already.
    Unchanged,
}

/// The reason a service's file was not written or removed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A path cannot be written into such a file.
    #[error("{0}")]
    Path(String),
    /// Somebody else wrote the file.
    #[error("{} was not written by settled; nothing was changed", .0.display())]
    NotOurs(PathBuf),
    /// It serves another workspace.
    #[error("{} is for another workspace, {root}; nothing was changed", path.display())]
    OfAnother {
        /// The file.
        path: PathBuf,
        /// The workspace.
        root: String,
    },
    /// The supervisor still starts it.
    #[error("{} is still enabled; nothing was changed", .0.display())]
    Enabled(PathBuf),
    /// There is no such file.
    #[error("{} is not there", .0.display())]
    Absent(PathBuf),
    /// The disk.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Service {
    /// Reads the file at this service's path; fails if it is not ours.
    pub fn find(&self) -> Result<InstalledFile, ServiceError> {
        let path = self.path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(InstalledFile::Nothing);
            }
            Err(source) => return Err(ServiceError::Io { path, source }),
        };
        let Some(root) = text::root_of(&text) else {
            return Err(ServiceError::NotOurs(path));
        };
        if root != text::shown(self.kind, &self.root) {
            return Err(ServiceError::OfAnother {
                path,
                root: root.to_owned(),
            });
        }
        let wanted = self.text().map_err(ServiceError::Path)?;
        Ok(if wanted == text {
            InstalledFile::Same
        } else {
            InstalledFile::Other
        })
    }

    /// Writes the file, unless it says so already.
    pub fn write(&self) -> Result<FileChange, ServiceError> {
        let text = self.text().map_err(ServiceError::Path)?;
        let written = match self.find()? {
            InstalledFile::Same => return Ok(FileChange::Unchanged),
            InstalledFile::Other => FileChange::Changed,
            InstalledFile::Nothing => FileChange::Made,
        };
        let path = self.path();
        let make = std::fs::create_dir_all(&self.directory)
            .and_then(|()| atomic_file::replace(&path, &text));
        make.map(|()| written)
            .map_err(|source| ServiceError::Io { path, source })
    }

    /// Removes the file. One that the supervisor starts is disabled first: it would be missed at the next start of the
    /// machine, and nobody could stop it by name.
    pub fn remove(&self) -> Result<(), ServiceError> {
        let path = self.path();
        if self.find()? == InstalledFile::Nothing {
            return Err(ServiceError::Absent(path));
        }
        if self.is_enabled() {
            return Err(ServiceError::Enabled(path));
        }
        std::fs::remove_file(&path).map_err(|source| ServiceError::Io { path, source })
    }

    /// True if the supervisor starts it by itself. launchd does so with every file in its directory.
    pub fn is_enabled(&self) -> bool {
        match self.kind {
            ServiceManager::Systemd => self.wish().symlink_metadata().is_ok(),
            ServiceManager::Launchd => false,
        }
    }

    /// The link by which systemd notes that it is enabled.
    fn wish(&self) -> PathBuf {
        let wants = self.directory.join(format!("{}.wants", self.target()));
        wants.join(
            self.path()
                .file_name()
                .map_or(Path::new(&self.name), Path::new),
        )
    }
}
