//! Looks once at one file of an outbox: whether it is finished and fit, and its content.

use std::fmt;
use std::io;

use os_calls::Writer;
use rustix::io::Errno;

use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, Now, SpoolError, Stamp};
use disk::{self, FileKind, OpenMode, Stat};

/// The wait after each change for a writer that has the file open, in milliseconds.
const WRITER_MS: u64 = 30_000;
/// The quiet time, in milliseconds, for a file without an event whose writers the kernel does not report.
const UNKNOWN_MS: u64 = 2_000;
/// The pause before the next look at a file that a writer has open, in milliseconds.
pub(super) const OPEN_MS: u64 = 250;
/// A file that is unchanged for this many milliseconds has no writer that comes back to it.
const ABANDONED_MS: u64 = 60_000;
/// The time for which a second name is tolerated, in milliseconds: some writers link the finished file in and unlink
/// the first.
const LINK_MS: u64 = 2_000;
/// A change within this many milliseconds before the read may not show in the modification time.
const FRESH_MS: u64 = 50;

/// The reason a file cannot be read as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is a symbolic link.
    Symlink,
    /// It is a directory.
    Directory,
    /// It is a FIFO, a socket or a device.
    Special,
    /// It has more than one name.
    HardLink,
    /// It has this many bytes, which is more than allowed.
    TooLarge(u64),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Symlink => f.write_str("a symbolic link"),
            Unfit::Directory => f.write_str("a directory"),
            Unfit::Special => f.write_str("a FIFO, socket or device"),
            Unfit::HardLink => f.write_str("a file with several names"),
            Unfit::TooLarge(size) => write!(f, "a file of {size} bytes"),
        }
    }
}

/// The content of a file, or the reason it was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A finished file, read once: from here on these bytes are the message.
    Message {
        /// All its bytes, at most as many as the limit allows.
        bytes: Vec<u8>,
        /// Their digest.
        digest: Digest,
    },
    /// A file that must not be read.
    Unfit(Unfit),
}

impl Body {
    /// Returns the content of a finished file.
    pub fn message(bytes: Vec<u8>) -> Body {
        let digest = Digest::of(&bytes);
        Body::Message { bytes, digest }
    }

    /// Returns the number of bytes that were read.
    pub fn bytes_read(&self) -> usize {
        match self {
            Body::Message { bytes, .. } => bytes.len(),
            Body::Unfit(_) => 0,
        }
    }
}

/// The intake's memory of a file between two looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// The time of the first look that found a second name, in milliseconds of the monotonic clock.
    pub(super) first: Option<u64>,
    /// The file at the last look, and since when it has not changed, by the same clock.
    pub(super) still: Option<(Stat, u64)>,
    /// A watcher saw a writer close it, or saw it renamed into the outbox: it is finished, unless another writer has it open.
    pub(super) is_closed: bool,
    /// A writer had it open at an earlier look.
    pub(super) was_open: bool,
    /// The caller wants to see the file again only once it differs from this, or at that time.
    pub(super) given: Option<(Stamp, u64)>,
    /// The pause after the last failure to read it, in milliseconds.
    pub(super) pause: u64,
}

pub(super) enum Readiness {
    /// Judge it.
    Take(FinishedFile),
    /// Look again at this time.
    Wait(u64),
    /// A writer has it open: ask again, and take it at this time even so.
    Open(u64),
    Gone,
}

/// A file as the intake hands it over.
pub(super) struct FinishedFile {
    pub(super) stamp: Stamp,
    /// The user it belongs to.
    pub(super) owner: u32,
    pub(super) body: Body,
    pub(super) may_grow: bool,
    /// The milliseconds since its last change.
    pub(super) age_ms: u64,
    /// The time of its last change, in milliseconds since 1970, UTC.
    pub(super) changed_ms: i64,
}

/// The result of opening and reading a file.
enum ReadOutcome {
    Bytes {
        bytes: Vec<u8>,
        may_grow: bool,
    },
    /// Its writer may not be done.
    Unfinished(Readiness),
    /// It changed during the read, or became another file.
    Changed,
}

/// The limits of a look: the largest size in bytes and the quiet time in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) size_max: u64,
    pub(super) quiet_ms: u64,
}

/// Looks at a file and reads it if it is finished and fit.
pub(super) fn read_if_finished(
    root: &OpenRoot,
    dir: &Dir,
    name: &FileName,
    memory: &mut Memory,
    rules: Rules,
    now: Now,
) -> Result<Readiness, SpoolError> {
    let Some(stat) = root.stat(dir, name)? else {
        return Ok(Readiness::Gone);
    };
    let stamp = stamp(&stat, now);
    let unfit = |unfit| {
        Readiness::Take(FinishedFile {
            stamp,
            owner: stat.uid,
            body: Body::Unfit(unfit),
            may_grow: false,
            age_ms: now.age_ms(&stat),
            changed_ms: now.last_change_ms(&stat),
        })
    };
    if let Some(kind) = unfit_kind(stat.kind) {
        return Ok(unfit(kind));
    }
    if let Some(until) = wait_until(&stat, memory, rules, now) {
        return Ok(Readiness::Wait(until));
    }
    if stat.links > 1 {
        let first = *memory.first.get_or_insert(now.mono);
        let until = first.saturating_add(LINK_MS);
        return Ok(if now.mono < until {
            Readiness::Wait(until)
        } else {
            unfit(Unfit::HardLink)
        });
    }
    if stat.size > rules.size_max {
        return Ok(unfit(Unfit::TooLarge(stat.size)));
    }
    let file = Opening {
        root,
        dir,
        name,
        seen: &stat,
    };
    match file.read(memory, rules.size_max, now) {
        Ok(ReadOutcome::Bytes { bytes, may_grow }) => {
            let digest = Digest::of(&bytes);
            Ok(Readiness::Take(FinishedFile {
                stamp,
                owner: stat.uid,
                body: Body::Message { bytes, digest },
                may_grow,
                age_ms: now.age_ms(&stat),
                changed_ms: now.last_change_ms(&stat),
            }))
        }
        Ok(ReadOutcome::Unfinished(readiness)) => Ok(readiness),
        // The file changed during the read, so earlier conclusions about it are out of date.
        Ok(ReadOutcome::Changed) => {
            memory.is_closed = false;
            memory.still = None;
            Ok(Readiness::Wait(now.mono.saturating_add(rules.quiet_ms)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Readiness::Gone),
        Err(source) => Err(root.error_at("read", dir, name, source)),
    }
}

/// A file that looked finished and fit, about to be opened.
struct Opening<'a> {
    root: &'a OpenRoot,
    dir: &'a Dir,
    name: &'a FileName,
    seen: &'a Stat,
}

impl Opening<'_> {
    /// Opens the file once, asks for a writer, reads once, and ensures that it was the same unchanged file throughout.
    fn read(&self, memory: &mut Memory, size_max: u64, now: Now) -> io::Result<ReadOutcome> {
        let disk = &*self.root.disk;
        let file = match disk.open(&self.dir.handle, self.name.as_ref(), OpenMode::Read) {
            // A link took its place; the next look sees that.
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Ok(ReadOutcome::Changed);
            }
            result => result?,
        };
        // The opened file may not be the one looked at, and be larger.
        if disk.stat(&file)? != *self.seen {
            return Ok(ReadOutcome::Changed);
        }
        let writer = disk.writer(&file)?;
        if let Some(readiness) = readiness_of(writer, self.seen, memory, now) {
            return Ok(ReadOutcome::Unfinished(readiness));
        }
        let may_grow = writer != Writer::Absent && now.age_ms(self.seen) < ABANDONED_MS;
        let bytes = disk::read_up_to(disk, &file, self.seen.size, size_max.saturating_add(1))?;
        let same = disk.stat(&file)? == *self.seen && bytes.len() as u64 == self.seen.size;
        Ok(if same {
            ReadOutcome::Bytes { bytes, may_grow }
        } else {
            ReadOutcome::Changed
        })
    }
}

/// Returns whether to leave a file alone, from what the kernel says of its writers. Another program than its writer may
/// have closed it, or renamed it into the outbox, so a writer that has it open outweighs what was seen.
fn readiness_of(writer: Writer, seen: &Stat, memory: &mut Memory, now: Now) -> Option<Readiness> {
    match writer {
        Writer::Absent => None,
        Writer::Unknown if memory.is_closed => None,
        Writer::Present => still_until(seen, memory, WRITER_MS, now).map(Readiness::Open),
        Writer::Unknown => still_until(seen, memory, UNKNOWN_MS, now).map(Readiness::Wait),
    }
}

/// Returns until when to leave a file alone because it may not be finished.
fn wait_until(seen: &Stat, memory: &mut Memory, rules: Rules, now: Now) -> Option<u64> {
    if let Some((given, until)) = memory.given {
        let is_same = same_file(&given, &stamp(seen, now));
        if is_same && now.mono < until {
            return Some(until);
        }
        memory.given = None;
        if is_same {
            return None;
        }
    }
    if memory.is_closed {
        return None;
    }
    still_until(seen, memory, rules.quiet_ms, now)
}

/// Returns until when to leave a file alone so that it was unchanged for this long.
fn still_until(seen: &Stat, memory: &mut Memory, quiet: u64, now: Now) -> Option<u64> {
    if now.age_ms(seen) >= quiet {
        return None;
    }
    // Too young, or dated in the future: only two looks without a change between them prove that it was still.
    let since = match memory.still {
        Some((before, since)) if before == *seen => since,
        Some(_) | None => now.mono,
    };
    memory.still = Some((*seen, since));
    let until = since.saturating_add(quiet);
    (now.mono < until).then_some(until)
}

fn same_file(one: &Stamp, other: &Stamp) -> bool {
    (one.ino, one.size, one.mtime_ns) == (other.ino, other.size, other.mtime_ns)
}

fn stamp(stat: &Stat, now: Now) -> Stamp {
    Stamp {
        ino: stat.ino,
        size: stat.size,
        mtime_ns: stat.mtime_ns,
        fresh: now.age_ms(stat) < FRESH_MS,
    }
}

fn unfit_kind(kind: FileKind) -> Option<Unfit> {
    match kind {
        FileKind::File => None,
        FileKind::Directory => Some(Unfit::Directory),
        FileKind::Symlink => Some(Unfit::Symlink),
        FileKind::Special => Some(Unfit::Special),
    }
}
