//! Detects from a directory's times whether its names may have changed since it was listed, so that repeated looks list
//! it only then.

use std::io;

use crate::{Disk, Handle, Now};

/// Times younger than this prove nothing, in milliseconds: the next change could leave the same times. The coarsest
/// file systems count in steps of two seconds.
const SETTLED_MS: i64 = 3_000;

/// The state of a directory before it was listed. Any name that is added or removed changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryStamp {
    dev: u64,
    ino: u64,
    mtime_ns: i64,
    /// Unlike `mtime`, no program can set this one.
    ctime_ns: i64,
}

impl DirectoryStamp {
    /// Returns the stamp of an open directory if an equal stamp will prove that no name was added or removed since.
    pub fn settled(disk: &dyn Disk, dir: &Handle, now: Now) -> io::Result<Option<DirectoryStamp>> {
        let stat = disk.stat(dir)?;
        let changed_ms = stat.mtime_ns.max(stat.ctime_ns) / 1_000_000;
        let stamp = DirectoryStamp {
            dev: stat.dev,
            ino: stat.ino,
            mtime_ns: stat.mtime_ns,
            ctime_ns: stat.ctime_ns,
        };
        Ok((now.wall.saturating_sub(changed_ms) >= SETTLED_MS).then_some(stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Os;

    #[test]
    fn a_stamp_proves_something_three_seconds_after_the_last_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Os.open_root(directory.path()).expect("the root");
        let stat = Os.stat(&root).expect("a directory");
        let changed_ms = stat.ctime_ns / 1_000_000;
        let stamp = |after_ms: i64| {
            let wall = changed_ms + after_ms;
            DirectoryStamp::settled(&Os, &root, Now { mono: 0, wall }).expect("a directory")
        };
        assert_eq!(stamp(2_999), None);
        let expected = DirectoryStamp {
            dev: stat.dev,
            ino: stat.ino,
            mtime_ns: stat.mtime_ns,
            ctime_ns: stat.ctime_ns,
        };
        assert_eq!([stamp(3_000), stamp(100_000)], [Some(expected); 2]);
    }
}
