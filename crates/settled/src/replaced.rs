//! Replacing a small file of somebody else's whole or not at all.

use std::io;
use std::path::Path;

/// Writes the text in place of what the file holds, with its mode; makes the file and its directory where they are
/// missing. A link stays one, and what it leads to is replaced.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(name);
    let written = std::fs::write(&temporary, text).and_then(|()| {
        if let Ok(data) = target.metadata() {
            std::fs::set_permissions(&temporary, data.permissions())?;
        }
        std::fs::rename(&temporary, &target)
    });
    if written.is_err() {
        // The first error is the one that says something.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
