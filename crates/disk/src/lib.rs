//! The few verbs that the spool needs from a disk, so that a test can stop or fail at each, and what the times of a file
//! or a directory prove. Knows no mailbox, no ledger and no message.
//!
//! All names are relative to an open directory. Directories are opened beneath the root without following any symbolic
//! link; everything else is one path component in an open directory.

mod directory_stamp;
mod name;
mod os;
pub mod path_text;
mod steady_clock;
mod text;
mod time;

#[cfg(feature = "faulty")]
mod faulty;
#[cfg(feature = "faulty")]
mod notes;
#[cfg(feature = "faulty")]
mod volatile;

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use os_calls::Writer;

pub use crate::directory_stamp::DirectoryStamp;
#[cfg(feature = "faulty")]
pub use crate::faulty::{DiskFault, FaultyDisk};
pub use crate::name::{FileName, NotAFileName};
#[cfg(feature = "faulty")]
pub use crate::notes::{Arrival, Notes};
pub use crate::os::Os;
pub use crate::steady_clock::SteadyClock;
pub use crate::text::{from_text, long_text, long_text_if_any};
pub use crate::time::Now;
#[cfg(feature = "faulty")]
pub use crate::volatile::VolatileDisk;

/// The names in a directory, listed one after the other.
pub type Names = Box<dyn Iterator<Item = io::Result<FileName>> + Send>;

/// An open file or directory; closed when dropped.
pub type Handle = OwnedFd;

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, a socket or a device.
    Special,
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The type of the file.
    pub kind: FileKind,
    /// The number of its file system.
    pub dev: u64,
    /// The number of its inode.
    pub ino: u64,
    /// The user it belongs to.
    pub uid: u32,
    /// The number of its names (hard links).
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The time of the last change to its content, in nanoseconds since 1970, UTC.
    pub mtime_ns: i64,
    /// The time of the last change to anything about it, in nanoseconds since 1970, UTC.
    pub ctime_ns: i64,
}

/// The mode in which a file is opened. Never through a symbolic link, never blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading.
    Read,
    /// For reading and writing; the file must exist.
    Write,
    /// For reading and writing; the file must not exist yet.
    New,
}

/// The operations on a disk. The ones that change something come last.
pub trait Disk: Send + Sync {
    /// Opens the root directory of a workspace, the only path that is resolved as given.
    fn open_root(&self, path: &Path) -> io::Result<Handle>;
    /// Opens a directory beneath another one, following no symbolic link.
    fn open_dir(&self, at: &Handle, path: &Path) -> io::Result<Handle>;
    /// Opens a file beneath a directory for reading, following no symbolic link on the way.
    fn open_beneath(&self, at: &Handle, path: &Path) -> io::Result<Handle>;
    /// Opens a file for reading or writing.
    fn open(&self, dir: &Handle, name: &Path, how: OpenMode) -> io::Result<Handle>;
    /// Returns the metadata of an open file.
    fn stat(&self, file: &Handle) -> io::Result<Stat>;
    /// Returns the metadata of a directory entry, without following a symbolic link.
    fn stat_at(&self, dir: &Handle, name: &Path) -> io::Result<Stat>;
    /// Lists the names in a directory, in no particular order; a name that is renamed meanwhile may be missing.
    fn list(&self, dir: &Handle) -> io::Result<Vec<FileName>>;
    /// Begins to list the names in a directory, so that a directory of a million files costs no memory and the caller
    /// may pause. The names that are there all the while come once each.
    fn names(&self, dir: &Handle) -> io::Result<Names> {
        Ok(Box::new(self.list(dir)?.into_iter().map(Ok)))
    }
    /// Reads up to `buffer.len()` bytes at `offset`; 0 is the end.
    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Returns whether any process has a file open for writing; `file` must be open for reading only.
    fn writer(&self, file: &Handle) -> io::Result<Writer>;
    /// Takes the exclusive lock of an open file without waiting; false if another process has it.
    fn lock(&self, file: &Handle) -> io::Result<bool>;
    /// Names the time in which the kernel keeps what is written below `root`, synced or not: a boot, and where the kernel
    /// numbers the mounts of a file system, one of these. In another one, unsynced bytes and names may be gone. The name
    /// of a boot is followed by a full stop and the mount, if it is known; at most 36 bytes count.
    fn boot_id(&self, root: &Handle) -> io::Result<String>;

    /// Makes a directory; its parent must exist.
    fn make_dir(&self, at: &Handle, path: &Path) -> io::Result<()>;
    /// Writes at `offset` and returns the number of bytes it took.
    fn write_at(&self, file: &Handle, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts a file to `len` bytes.
    fn truncate(&self, file: &Handle, len: u64) -> io::Result<()>;
    /// Renames and fails with `AlreadyExists` if the new name is taken.
    fn rename_new(&self, from: &Handle, old: &Path, to: &Handle, new: &Path) -> io::Result<()>;
    /// Renames and replaces what has the new name.
    fn rename_over(&self, dir: &Handle, old: &Path, new: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, dir: &Handle, name: &Path) -> io::Result<()>;
    /// Makes a file's bytes and size durable.
    fn sync_data(&self, file: &Handle) -> io::Result<()>;
    /// Makes a directory's entries durable.
    fn sync_dir(&self, dir: &Handle) -> io::Result<()>;
    /// Makes a whole file system durable; false if the system has no such call.
    fn sync_file_system(&self, on: &Handle) -> io::Result<bool>;
}

/// Writes all of `bytes` at `offset`.
pub fn write_all(
    disk: &dyn Disk,
    file: &Handle,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = disk.write_at(file, bytes, offset)?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[taken..];
        offset += taken as u64;
    }
    Ok(())
}

/// Reads a file from its beginning, but at most `limit` bytes; `hint` is its expected size.
pub fn read_up_to(disk: &dyn Disk, file: &Handle, hint: u64, limit: u64) -> io::Result<Vec<u8>> {
    // One byte more than expected, so that the first call also finds the end.
    let room =
        usize::try_from(hint.saturating_add(1).min(limit)).expect("a limit on memory fits memory");
    let mut bytes = vec![0; room];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled as u64 >= limit {
                return Ok(bytes);
            }
            let more = usize::try_from(limit)
                .expect("a limit on memory fits memory")
                .min(filled.max(512) * 2);
            bytes.resize(more, 0);
        }
        match disk.read_at(file, &mut bytes[filled..], filled as u64)? {
            0 => {
                bytes.truncate(filled);
                return Ok(bytes);
            }
            taken => filled += taken,
        }
        if filled as u64 == hint {
            // As many bytes as expected: the call had room for one more and found none, or this is the limit. No further
            // call is needed.
            bytes.truncate(filled);
            return Ok(bytes);
        }
    }
}

/// Reads `len` bytes from `offset` on, or fewer if the file ends before.
pub fn read_part(disk: &dyn Disk, file: &Handle, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut filled) = (vec![0; len], 0);
    while filled < bytes.len() {
        match disk.read_at(file, &mut bytes[filled..], offset + filled as u64)? {
            0 => bytes.truncate(filled),
            taken => filled += taken,
        }
    }
    Ok(bytes)
}

/// An open file as a stream, from an offset on.
pub struct FileStream<'a> {
    disk: &'a dyn Disk,
    file: &'a Handle,
    offset: u64,
}

impl<'a> FileStream<'a> {
    /// Begins at this offset.
    pub fn new(disk: &'a dyn Disk, file: &'a Handle, offset: u64) -> Self {
        Self { disk, file, offset }
    }
}

impl Read for FileStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.disk.read_at(self.file, buffer, self.offset)?;
        self.offset += taken as u64;
        Ok(taken)
    }
}

/// Turns a missing file into `None`.
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_to_the_limit_whatever_size_it_was_expected_to_have() {
        let directory = tempfile::tempdir().expect("a directory");
        let text: Vec<u8> = (0..2_000_u32).flat_map(u32::to_be_bytes).collect();
        std::fs::write(directory.path().join("file"), &text).expect("a file");
        let root = Os.open_root(directory.path()).expect("the root");
        let file = Os.open(&root, Path::new("file"), OpenMode::Read);
        let file = file.expect("the file");
        let whole = text.len() as u64;
        for hint in [0, 1, 600, 7_999, 8_000, 8_001, 20_000] {
            for limit in [0, 1, 513, 7_999, 8_000, 8_001, 100_000] {
                let read = read_up_to(&Os, &file, hint, limit).expect("bytes");
                assert!(text.starts_with(&read), "{hint} of {limit}");
                assert_eq!(read.len() as u64, whole.min(limit), "{hint} of {limit}");
            }
        }
        for (offset, len) in [(0, 8_000), (7_990, 10), (7_990, 11), (8_000, 1), (9_000, 5)] {
            let read = read_part(&Os, &file, offset, len).expect("bytes");
            let begin = text.len().min(offset as usize);
            let expected = &text[begin..text.len().min(begin + len)];
            assert_eq!(read, expected, "{len} from {offset}");
        }
    }
}
