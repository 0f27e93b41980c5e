//! Replaces a file atomically, renames a file to a free name, and locks files that say nothing but who works.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::Builder;

/// The mode of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// The number of attempts to lock a directory, and the pause between two.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Locks a directory for a command that reads one of its files, changes the text and replaces the file: of two such
/// commands at once, the second would undo the first. Creates the directory if it is missing, and waits up to 10 s for
/// another command. Dropping the answer unlocks it.
pub fn lock(directory: &Path) -> io::Result<File> {
    std::fs::create_dir_all(directory)?;
    let directory = File::open(directory)?;
    for _ in 0..ATTEMPTS {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "another process holds a lock on its directory for more than 10 s: end it, or try again",
    ))
}

/// Locks a file for the process that may do something alone, and creates it if it is missing; `None` if another process
/// holds the lock. The lock ends with the answer or the process. Never blocks: a link, a FIFO or anything else in the
/// file's place is an error.
pub fn try_lock_file(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let file = File::options()
        .create(true)
        .append(true)
        .custom_flags(i32::try_from(flags.bits()).expect("the flags of an opening are few"))
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file; remove it"));
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Replaces a file's text and keeps its mode; creates the file and its directory if they are missing. Replaces the
/// target of a symbolic link, not the link.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut temporary = Builder::new()
        .prefix(".settled-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(directory)?;
    temporary.write_all(text.as_bytes())?;
    if let Ok(data) = target.metadata() {
        temporary.as_file().set_permissions(data.permissions())?;
    }
    // Without the sync, a power cut can leave the new name with none of the text.
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    Ok(())
}

/// Renames a file to a free name; fails with `AlreadyExists` if the name is taken.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot do this in one call. A hard link never replaces anything, but a kill before the
        // unlink leaves the file under both names. In an outbox the daemon waits until one is gone; in an inbox the
        // file is taken again.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<std::ffi::OsString> {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect()
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_link_to_it_stays_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("deep/settings.json");
        replace(&file, "one").expect("a new file in a new directory");
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("permissions");
        let link = directory.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        replace(&link, "two").expect("a file behind a link");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).expect("a text"), "two");
        let mode = file.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(&directory.path().join("deep")), ["settings.json"]);
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(directory.path().join("taken/by")).expect("a directory");
        replace(&directory.path().join("taken"), "x").expect_err("a directory has the name");
        assert_eq!(names(directory.path()), ["taken"]);
    }

    #[test]
    fn of_two_that_change_a_file_the_second_waits_for_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let locked = directory.path().join("deep");
        let first = lock(&locked).expect("nobody else has it");
        let other = File::open(&locked).expect("the directory was made");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        other.try_lock().expect("it is free again");
    }

    #[test]
    fn a_lock_belongs_to_one_and_is_a_regular_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let held = try_lock_file(&at("lock")).expect("a directory to write to");
        assert!(held.is_some(), "nobody else has it");
        assert!(try_lock_file(&at("lock")).expect("a file").is_none());
        drop(held);
        assert!(try_lock_file(&at("lock")).expect("a file").is_some());
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, at("fifo"), rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
        std::os::unix::fs::symlink(at("lock"), at("link")).expect("a link");
        let both_ends = File::options().read(true).write(true).open(at("fifo"));
        for name in ["fifo", "link", "."] {
            try_lock_file(&at(name)).expect_err(name);
        }
        drop(both_ends);
        try_lock_file(&at("fifo")).expect_err("nobody reads from it");
    }

    #[test]
    fn a_file_is_renamed_only_to_a_free_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("a"), "one").expect("a file");
        std::fs::write(at("b"), "two").expect("a file");
        let taken = rename_new(&at("a"), &at("b")).expect_err("a file has the name");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(at("b")).expect("a text"), "two");
        rename_new(&at("a"), &at("c")).expect("a free name");
        assert_eq!(std::fs::read_to_string(at("c")).expect("a text"), "one");
        assert!(!at("a").exists());
    }
}
