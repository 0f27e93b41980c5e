//! One look at one file of an outbox: is it finished, is it fit, and what does it say?

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::disk::{self, FileKind, OpenMode, Stat};
use crate::root::{Dir, OpenRoot};
use crate::{Digest, FileName, Now, SpoolError, Stamp};

/// How long a file that was made in place and not closed yet is waited for, in milliseconds. It may have been linked in,
/// whole, and then nobody ever closes it.
const MADE_MS: u64 = 2_000;
/// How long a writer that was seen to write and not to close is waited for, in milliseconds, whatever its pauses: the
/// word that it closed is exact, and this long only if it was lost.
const WRITER_MS: u64 = 30_000;
/// How long a second name is tolerated, in milliseconds: some writers link the finished file in and unlink the first.
const LINK_MS: u64 = 2_000;
/// A change within so many milliseconds before the reading does not show in the time of the last change for sure.
const FRESH_MS: i64 = 50;

/// Why a file cannot be read as a message.
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

/// What a watcher saw happen to a file. A hint may be missing or late; it only saves time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// A writer closed it, or it was renamed in: it is finished.
    Finished,
    /// It was made and its writer may still be at work.
    Created,
    /// Its writer is at work and has not closed it.
    Growing,
}

/// What a file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A finished file, read once: from here on these bytes are the message.
    Message {
        /// All its bytes, at most as many as the limit allows.
        bytes: Vec<u8>,
        /// Their digest.
        digest: Digest,
    },
    /// A file that is not to be read.
    Unfit(Unfit),
}

/// What intake remembers of a file between two looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// When the file was first seen, and since when it has not changed; milliseconds of the monotonic clock.
    pub(super) first: Option<u64>,
    pub(super) still: Option<(Stamp, u64)>,
    pub(super) hint: Option<Hint>,
    /// The caller wants to see it again only when it changed from this, or at that time.
    pub(super) given: Option<(Stamp, u64)>,
    /// The pause after the last failure to read it, in milliseconds.
    pub(super) pause: u64,
}

/// What to do with a file after a look.
pub(super) enum Readiness {
    /// It is to be judged; the number is the user it belongs to.
    Take(Stamp, u32, Body),
    /// Look again at this time.
    Wait(u64),
    Gone,
}

/// How to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) size_max: u64,
    pub(super) quiet_ms: u64,
}

/// Looks at a file and reads it if it is finished and fit.
pub(super) fn look(
    root: &OpenRoot,
    dir: &Dir,
    name: &FileName,
    memory: &mut Memory,
    rules: Rules,
    now: Now,
) -> Result<Readiness, SpoolError> {
    let Some(stat) = root.look(dir, name)? else {
        return Ok(Readiness::Gone);
    };
    let stamp = stamp(&stat, now);
    if let Some(unfit) = unfit_kind(stat.kind) {
        return Ok(Readiness::Take(stamp, stat.uid, Body::Unfit(unfit)));
    }
    if let Some(until) = wait_until(&stamp, memory, rules, now) {
        return Ok(Readiness::Wait(until));
    }
    if stat.links > 1 {
        let first = *memory.first.get_or_insert(now.mono);
        let until = first.saturating_add(LINK_MS);
        let linked = Readiness::Take(stamp, stat.uid, Body::Unfit(Unfit::HardLink));
        return Ok(if now.mono < until {
            Readiness::Wait(until)
        } else {
            linked
        });
    }
    if stat.size > rules.size_max {
        return Ok(Readiness::Take(
            stamp,
            stat.uid,
            Body::Unfit(Unfit::TooLarge(stat.size)),
        ));
    }
    let read = read(root, dir, name, &stat, rules.size_max);
    match read {
        Ok(Some(bytes)) => {
            let digest = Digest::of(&bytes);
            Ok(Readiness::Take(
                stamp,
                stat.uid,
                Body::Message { bytes, digest },
            ))
        }
        // It was changed, or became another file, between the look and the reading; whatever was said about it before
        // was said too early.
        Ok(None) => {
            memory.hint = None;
            memory.still = None;
            Ok(Readiness::Wait(now.mono.saturating_add(rules.quiet_ms)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Readiness::Gone),
        Err(source) => Err(root.error_at("read", dir, name, source)),
    }
}

/// Opens once, reads once, and makes sure that it was the same unchanged file all the time.
fn read(
    root: &OpenRoot,
    dir: &Dir,
    name: &FileName,
    seen: &Stat,
    size_max: u64,
) -> io::Result<Option<Vec<u8>>> {
    let disk = &*root.disk;
    let file = match disk.open(&dir.handle, name.as_ref(), OpenMode::Read) {
        // A link took its place; the next look sees it.
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(None),
        result => result?,
    };
    // What was opened may be another file than the one looked at, and larger than was thought.
    if disk.stat(&file)? != *seen {
        return Ok(None);
    }
    let bytes = disk::read_up_to(disk, &file, seen.size, size_max.saturating_add(1))?;
    let same = disk.stat(&file)? == *seen && bytes.len() as u64 == seen.size;
    Ok(same.then_some(bytes))
}

/// Says until when a file is to be left alone because it may not be finished.
fn wait_until(stamp: &Stamp, memory: &mut Memory, rules: Rules, now: Now) -> Option<u64> {
    if let Some((given, until)) = memory.given {
        if same_file(&given, stamp) && now.mono < until {
            return Some(until);
        }
        memory.given = None;
        if same_file(&given, stamp) {
            return None;
        }
    }
    let quiet = match memory.hint {
        Some(Hint::Finished) => return None,
        Some(Hint::Created) => MADE_MS.max(rules.quiet_ms),
        Some(Hint::Growing) => WRITER_MS.max(rules.quiet_ms),
        None => rules.quiet_ms,
    };
    let age = now.wall.saturating_sub(stamp.mtime_ns / 1_000_000);
    if u64::try_from(age).is_ok_and(|age| age >= quiet) {
        return None;
    }
    // Too young, or from the future: then only two looks with nothing changed between them tell.
    let since = match memory.still {
        Some((before, since)) if same_file(&before, stamp) => since,
        Some(_) | None => now.mono,
    };
    memory.still = Some((*stamp, since));
    let until = since.saturating_add(quiet);
    (now.mono < until).then_some(until)
}

fn same_file(one: &Stamp, other: &Stamp) -> bool {
    (one.ino, one.size, one.mtime_ns) == (other.ino, other.size, other.mtime_ns)
}

fn stamp(stat: &Stat, now: Now) -> Stamp {
    let age = now.wall.saturating_sub(stat.mtime_ns / 1_000_000);
    Stamp {
        ino: stat.ino,
        size: stat.size,
        mtime_ns: stat.mtime_ns,
        fresh: age < FRESH_MS,
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
