//! The place for thousands of short-lived test files. Rooms include this file by its path, because no room depends on
//! the tests of the whole.

use std::sync::LazyLock;

use tempfile::TempDir;

/// The memory-backed directory of Linux.
const MEMORY: &str = "/dev/shm";

/// The free bytes there that tests require to use it: they need a few hundred MiB at a time.
const MEMORY_LEAST: u64 = 1 << 30;

/// Makes a temporary directory: in memory, if there is room and `TMPDIR` names no other place. On a disk each sync has
/// to wait, and the more files were removed recently, the longer ext4 searches for a free inode.
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
