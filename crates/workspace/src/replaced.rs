//! Putting a file where it belongs: in place of another one, whole or not at all; or under a name that nobody has.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Writes the text in place of what the file holds, with its mode; makes the file and its directory where they are
/// missing. A link stays one, and what it leads to is replaced.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
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

/// Renames a file to a name that nobody has; `AlreadyExists` where somebody has it.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise it in one call. A link never replaces anything; a kill before the unlink leaves
        // the file under both names. In an outbox the daemon gives it time to lose one, from an inbox it is taken again.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}
