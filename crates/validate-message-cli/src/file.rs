//! Changes a file atomically: a daemon or an editor that reads it meanwhile sees the old bytes or the new ones, and a
//! kill leaves the old ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::limited_read;

/// Reads a file, or standard input for `-`, up to the size limit of a message plus one byte.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file == Path::new("-") {
        limited_read::read(io::stdin().lock())
    } else {
        limited_read::read_file(file)
    }
}

/// Replaces the bytes that were read with others. Fails without a change if the file has changed since.
pub(crate) fn replace(file: &Path, before: &[u8], after: &[u8]) -> io::Result<()> {
    // Replace the file behind a symbolic link, not the link.
    let file = file.canonicalize()?;
    let temporary = temporary(&file)?;
    let written = write(&file, &temporary, before, after);
    if written.is_err() {
        // The daemon ignores hidden files, so a leftover would be harmless clutter.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns a name beside the file that neither the daemon nor a reader of mailboxes looks at.
fn temporary(file: &Path) -> io::Result<PathBuf> {
    let name = file
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    Ok(file.with_file_name(format!(".{name}.{}.tmp", std::process::id())))
}

fn write(file: &Path, temporary: &Path, before: &[u8], after: &[u8]) -> io::Result<()> {
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(temporary)?;
    out.write_all(after)?;
    let metadata = file.metadata()?;
    out.set_permissions(metadata.permissions())?;
    keep_owner(&out, &metadata)?;
    out.sync_all()?;
    if read(file)? != before {
        return Err(io::Error::other(
            "it was changed meanwhile; nothing was written",
        ));
    }
    fs::rename(temporary, file)
}

/// Gives the new file the owner of the old one. The owner proves who sent a message, so root, who may fix anybody's
/// files, must not become the owner.
#[cfg(unix)]
fn keep_owner(out: &File, of: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let own = out.metadata()?;
    if (own.uid(), own.gid()) == (of.uid(), of.gid()) {
        return Ok(());
    }
    fchown(out, Some(of.uid()), Some(of.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}
