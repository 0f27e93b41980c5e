//! One message to check: its name, its path, and the source of its bytes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::staged::Blob;

/// One message to check.
pub(crate) enum Subject {
    /// Standard input, and the file to treat it as.
    Stdin(Option<PathBuf>),
    /// A file on the disk.
    File(PathBuf),
    /// A file in git's index.
    Staged(Blob),
    /// An entry of a directory that could not be listed, with the reason.
    Lost(PathBuf, String),
}

impl Subject {
    /// Returns its name for output, not yet escaped.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.place()
            .map_or(Cow::Borrowed("-"), Path::to_string_lossy)
    }

    /// Returns the file that could be changed; `-` for standard input.
    pub(crate) fn on_disk(&self) -> Option<&Path> {
        match self {
            Subject::Stdin(_) => Some(Path::new("-")),
            Subject::File(path) => Some(path),
            Subject::Staged(_) | Subject::Lost(..) => None,
        }
    }

    /// Returns its path, real or assumed; standard input without a name has none.
    pub(crate) fn place(&self) -> Option<&Path> {
        match self {
            Subject::Stdin(place) => place.as_deref(),
            Subject::File(path) | Subject::Lost(path, _) => Some(path),
            Subject::Staged(blob) => Some(Path::new(&blob.shown)),
        }
    }
}
