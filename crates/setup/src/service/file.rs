//! Writes and removes the service's file: whole or not at all, never over another program's file or one for another
//! workspace, and never while the service manager still starts it.

use std::io;
use std::path::{Path, PathBuf};

use workspace::atomic_file;

use super::{Service, ServiceManager, text};

/// The file found at the service's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstalledFile {
    /// There is no file.
    Nothing,
    /// Our file, identical to what would be written now.
    Same,
    /// Our file, written by another version, for another config, or for another path of the program.
    Other,
}

/// The change that writing a file made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file was created.
    Made,
    /// The file was changed.
    Changed,
    /// The file was already up to date.
    Unchanged,
}

/// The reason a service's file was not written or removed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A path contains characters that the file cannot.
    #[error("{0}")]
    Path(String),
    /// Somebody else wrote the file.
    #[error("{} was not written by settled; nothing was changed", .0.display())]
    NotOurs(PathBuf),
    /// The file serves another workspace.
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
    #[error("{} does not exist", .0.display())]
    Absent(PathBuf),
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Service {
    /// Examines the file at this service's path; fails if it is not ours.
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

    /// Writes the file, unless it is up to date.
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

    /// Removes the file. An enabled service must be disabled first: the machine's next start would miss the file, and
    /// nobody could stop the service by name.
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

    /// True if the service manager starts it by itself; launchd does so with every file in its directory.
    pub fn is_enabled(&self) -> bool {
        match self.kind {
            ServiceManager::Systemd => self.wish().symlink_metadata().is_ok(),
            ServiceManager::Launchd => false,
        }
    }

    /// The link by which systemd knows that the service is enabled.
    fn wish(&self) -> PathBuf {
        let wants = self.directory.join(format!("{}.wants", self.target()));
        wants.join(
            self.path()
                .file_name()
                .map_or(Path::new(&self.name), Path::new),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Scope, ServiceRequest, Work};
    use super::*;

    #[test]
    fn a_service_is_enabled_while_its_target_wants_it() {
        let home = tempfile::tempdir().expect("a directory");
        let (root, units) = (home.path().join("room"), home.path().join("units"));
        fs::create_dir_all(root.join("agents")).expect("a workspace");
        let request = ServiceRequest {
            scope: Some(Scope::User),
            kind: ServiceManager::Systemd,
            name: "room".to_owned(),
            directory: Some(units.clone()),
            work: Work::MailOnly,
        };
        let service = Service::resolve(&root, request).expect("a service");
        let wants = units.join("default.target.wants");
        fs::create_dir_all(&wants).expect("a place for links");
        assert!(!service.is_enabled());
        std::os::unix::fs::symlink("../room.service", wants.join("room.service")).expect("a link");
        assert!(service.is_enabled());
    }
}
