//! Where tests put files that come and go by the thousand. Rooms take this file in by its path, because no room depends on
//! the tests of the whole.

use std::sync::LazyLock;

use tempfile::TempDir;

/// The directory that is kept in memory on Linux.
const MEMORY: &str = "/dev/shm";

/// The free bytes there from which tests use it: they need a few hundred MiB at a time.
const MEMORY_LEAST: u64 = 1 << 30;

/// A temporary directory: in memory, if there is room and `TMPDIR` names no other place. On a disk each sync is waited for,
/// and the more files were removed lately, the longer ext4 looks for a number that it may give to a new one.
pub(crate) fn scratch() -> TempDir {
    static IN_MEMORY: LazyLock<bool> = LazyLock::new(|| {
        let room = rustix::fs::statvfs(MEMORY).map_or(0, |place| place.f_bavail * place.f_frsize);
        std::env::var_os("TMPDIR").is_none() && room >= MEMORY_LEAST
    });
    let made = match *IN_MEMORY {
        true => tempfile::tempdir_in(MEMORY),
        false => tempfile::tempdir(),
    };
    made.expect("a temporary directory")
}
