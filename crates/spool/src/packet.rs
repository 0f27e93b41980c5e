//! Reads a file that a message points to without leaving the workspace by any path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::io;
use std::path::{Component, Path};
use std::sync::{Mutex, PoisonError};

use os_calls::Writer;
use rustix::io::Errno;

use crate::root::OpenRoot;
use crate::{Now, SpoolError, dirs};
use disk::{self, FileKind, Stat};

/// The quiet time after which a packet counts as finished without an event for its closing, in milliseconds.
const STILL_MS: u64 = 500;
/// The number of packets in each of two generations that are remembered. A forgotten one costs `STILL_MS` at most, once.
/// It is seven eighths of a power of two: the tables would be twice as large with one more, and took 940 KB with 2 048.
const KNOWN_MAX: usize = 1_792;

/// The result of reading the file at a packet path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketRead {
    /// The file's bytes.
    Bytes(Vec<u8>),
    /// There is no such file.
    Missing,
    /// Its writer may still be at work: look again.
    Growing,
    /// A writer has it open, so what it has now may be half of it: look again.
    Open,
    /// It has another name, perhaps outside the workspace. Look again: some writers link the finished file in and
    /// unlink the first name.
    Linked,
    /// The path or its target must not be read; the reason in one phrase.
    Unsafe(Cow<'static, str>),
    /// The file is larger than the limit.
    TooLarge,
    /// It belongs to this user, who is neither the expected one nor the daemon's; it was not read.
    OfAnother(u32),
}

/// The watched packets that changed last, the newer generation first. This only saves time.
///
/// A packet is known by the hash of its path: thousands of paths, each in a block of its own, would be spread over the
/// pages of all that lives longer. A note is about a file of one inode, size and time, so two paths with one hash cost a
/// wait at most.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    hasher: RandomState,
    seen: Mutex<[HashMap<u64, SeenPacket>; 2]>,
}

#[derive(Debug, Default)]
struct SeenPacket {
    /// An event says that a writer closed it, and the spool has not looked since.
    unlooked: bool,
    /// The file as its writer left it.
    closed: Option<Stat>,
    /// Since when it has not changed, in milliseconds of the monotonic clock.
    still: Option<(Stat, u64)>,
}

impl Packets {
    /// Notes that a watcher saw the packet at `path`, relative to the root, finished; `closed` is the file as it is now, if
    /// the caller looked.
    pub(crate) fn hint(&self, path: &Path, closed: Option<Stat>) {
        let known = SeenPacket {
            unlooked: closed.is_none(),
            closed,
            still: None,
        };
        self.change(path, |before| *before = known);
    }

    /// Returns whether the file, in its current state, counts as finished. Unless the kernel says that no writer has it
    /// open, that is unknown.
    fn is_finished(&self, path: &Path, stat: &Stat, now: Now, writer: Writer) -> bool {
        self.change(path, |known| {
            if known.closed.as_ref() == Some(stat) {
                return true;
            }
            if std::mem::take(&mut known.unlooked) && writer == Writer::Absent {
                known.closed = Some(*stat);
                return true;
            }
            // Too young, or dated in the future: only two looks without a change between them prove that it was still.
            let since = match known.still {
                Some((before, since)) if before == *stat => since,
                Some(_) | None => now.mono,
            };
            known.still = Some((*stat, since));
            now.age_ms(stat) >= STILL_MS || now.mono.saturating_sub(since) >= STILL_MS
        })
    }

    fn change<T>(&self, path: &Path, change: impl FnOnce(&mut SeenPacket) -> T) -> T {
        let packet = self.id_of(path);
        let [newer, older] = &mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if newer.len() >= KNOWN_MAX && !newer.contains_key(&packet) {
            *older = std::mem::take(newer);
        }
        let known = || older.remove(&packet).unwrap_or_default();
        change(newer.entry(packet).or_insert_with(known))
    }

    /// Hashes the path of a packet: `a/./b` and `a//b` name the same one.
    fn id_of(&self, path: &Path) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        path.components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .for_each(|part| part.hash(&mut hasher));
        hasher.finish()
    }
}

pub(crate) fn read(
    root: &OpenRoot,
    packets: &Packets,
    path: &Path,
    limit: u64,
    owner: Option<u32>,
    now: Now,
) -> Result<PacketRead, SpoolError> {
    if let Err(reason) = check_packet_path(path) {
        return Ok(PacketRead::Unsafe(reason.into()));
    }
    match kind(root, path) {
        Ok(FileKind::File) => {}
        Ok(FileKind::Symlink) => {
            return Ok(PacketRead::Unsafe("a symbolic link is in the path".into()));
        }
        Ok(FileKind::Directory | FileKind::Special) => {
            return Ok(PacketRead::Unsafe("it is not a regular file".into()));
        }
        Err(error) => {
            return refused(error).map_err(|source| root.error("look at", path, source));
        }
    }
    let file = match root.disk.open_beneath(&root.handle, path) {
        Ok(file) => file,
        Err(error) => return refused(error).map_err(|source| root.error("open", path, source)),
    };
    let look = || {
        root.disk
            .stat(&file)
            .map_err(|source| root.error("look at", path, source))
    };
    let before = look()?;
    // Another file may have replaced it since.
    if before.kind != FileKind::File {
        return Ok(PacketRead::Unsafe("it is not a regular file".into()));
    }
    if before.links > 1 {
        return Ok(PacketRead::Linked);
    }
    if owner.is_some_and(|owner| {
        before.uid != owner && before.uid != rustix::process::geteuid().as_raw()
    }) {
        return Ok(PacketRead::OfAnother(before.uid));
    }
    if before.size > limit {
        return Ok(PacketRead::TooLarge);
    }
    // Somebody else may have closed it, or renamed it into place, while its writer is at work: only the kernel knows.
    let writer = root.disk.writer(&file).unwrap_or(Writer::Unknown);
    if writer == Writer::Present {
        return Ok(PacketRead::Open);
    }
    let bytes = disk::read_up_to(&*root.disk, &file, before.size, limit.saturating_add(1))
        .map_err(|source| root.error("read", path, source))?;
    let same = before == look()? && bytes.len() as u64 == before.size;
    let finished = same && packets.is_finished(path, &before, now, writer);
    Ok(if finished {
        PacketRead::Bytes(bytes)
    } else {
        PacketRead::Growing
    })
}

/// Returns the kind of file at a path without opening it: opening a device or a FIFO may have effects.
fn kind(root: &OpenRoot, path: &Path) -> io::Result<FileKind> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(FileKind::Directory);
    };
    let at = match parent.components().next() {
        None => return Ok(root.disk.stat_at(&root.handle, name.as_ref())?.kind),
        Some(_) => root.disk.open_dir(&root.handle, parent)?,
    };
    Ok(root.disk.stat_at(&at, name.as_ref())?.kind)
}

/// Refuses a path that does not lead into `packets/`: the daemon may be able to read more than the agent that names a
/// path, and it passes on what it reads.
pub fn check_packet_path(path: &Path) -> Result<(), &'static str> {
    let mut first = true;
    for component in path.components() {
        match component {
            Component::Normal(name) if first && name != dirs::PACKETS => {
                return Err("it is not in packets/");
            }
            Component::Normal(_) => first = false,
            Component::CurDir => {}
            Component::ParentDir => return Err("it has `..` in it"),
            Component::RootDir | Component::Prefix(_) => return Err("it is not relative"),
        }
    }
    if first { Err("it is empty") } else { Ok(()) }
}

/// Sorts the system's errors for a path that it does not open.
fn refused(error: io::Error) -> io::Result<PacketRead> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => Ok(PacketRead::Missing),
        Some(Errno::LOOP) => Ok(PacketRead::Unsafe("a symbolic link is in the path".into())),
        Some(Errno::XDEV) => Ok(PacketRead::Unsafe("it leaves the workspace".into())),
        Some(Errno::NOTDIR) => Ok(PacketRead::Unsafe("a part of it is not a directory".into())),
        Some(Errno::NAMETOOLONG | Errno::INVAL) => {
            Ok(PacketRead::Unsafe("it is not a valid path".into()))
        }
        // The sender can fix that, so the report says it.
        Some(Errno::ACCESS) => Ok(PacketRead::Unsafe(
            "the daemon may not read it: `chmod a+r` it".into(),
        )),
        // The error for a socket or a device without a driver.
        Some(Errno::NXIO) => Ok(PacketRead::Unsafe("it is not a regular file".into())),
        Some(_) | None => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_that_changed_last_are_remembered_and_no_more_than_two_generations() {
        let packets = Packets::default();
        let path = |number| format!("packets/findings/{number}.yaml");
        let all = 5 * KNOWN_MAX;
        for number in 0..all {
            packets.hint(path(number).as_ref(), None);
        }
        let [newer, older] = &*packets.seen.lock().expect("no other thread");
        assert!(newer.len() + older.len() <= 2 * KNOWN_MAX);
        let known = |number| {
            let packet = packets.id_of(path(number).as_ref());
            newer.contains_key(&packet) || older.contains_key(&packet)
        };
        assert!((all - KNOWN_MAX..all).all(known));
    }
}
