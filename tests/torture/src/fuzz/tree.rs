//! The writers' files, with the time of the case as their own.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

/// Gives a file the time of the case.
pub(super) fn stamp(file: &File, at: DateTime<Utc>) {
    file.set_modified(SystemTime::from(at))
        .expect("a file's time can be set");
}

/// Writes a file in place and closes it.
pub(super) fn write(path: &Path, bytes: &[u8], at: DateTime<Utc>) {
    let file = begin(path, bytes, at);
    drop(file);
}

/// Writes the beginning of a file and leaves it open.
pub(super) fn begin(path: &Path, bytes: &[u8], at: DateTime<Utc>) -> File {
    let mut file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    append(&mut file, bytes, at);
    file
}

/// Writes more into an open file.
pub(super) fn append(file: &mut File, bytes: &[u8], at: DateTime<Utc>) {
    file.write_all(bytes).expect("room");
    stamp(file, at);
}

/// Reopens a file to append to it; `None` if it is gone.
pub(super) fn reopen(path: &Path) -> Option<File> {
    File::options().append(true).open(path).ok()
}

/// Writes a file under another name and renames it to this one, replacing any file there.
pub(super) fn rename_in(path: &Path, bytes: &[u8], at: DateTime<Utc>) {
    let part = beside(path);
    write(&part, bytes, at);
    std::fs::rename(&part, path).expect("both names lie in one directory");
}

/// A name in the same directory that no message has.
pub(super) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().expect("a name").to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

/// Copies a tree with everything but devices.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory can be made");
    for path in settled_tests::list(from) {
        let target = to.join(path.file_name().expect("an entry has a name"));
        let Ok(data) = path.symlink_metadata() else {
            continue;
        };
        if data.is_dir() {
            copy(&path, &target);
        } else if data.is_symlink() {
            let to = std::fs::read_link(&path).expect("it is a link");
            std::os::unix::fs::symlink(to, &target).expect("a link can be made");
        } else if data.is_file() {
            std::fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}
