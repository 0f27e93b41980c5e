//! Reads a file that a message points to, without leaving the workspace by any way a path can.

use std::io;
use std::path::{Component, Path};

use rustix::io::Errno;

use crate::disk::{self, Kind};
use crate::ground::Ground;
use crate::{Now, SpoolError, layout};

/// A packet that changed within this many milliseconds may still be growing.
const QUIET_MS: i64 = 50;

/// What a packet path led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketRead {
    /// The file's bytes.
    Bytes(Vec<u8>),
    /// There is no such file.
    Missing,
    /// The file was changed while it was read or just before: look again.
    Growing,
    /// The path or what it leads to is not to be read; the reason in one phrase.
    Unsafe(&'static str),
    /// The file is larger than the limit.
    TooLarge,
}

pub(crate) fn read(ground: &Ground, path: &Path, limit: u64, now: Now) -> Result<PacketRead, SpoolError> {
    if let Err(reason) = check(path) {
        return Ok(PacketRead::Unsafe(reason));
    }
    let file = match ground.disk.open_beneath(&ground.root, path) {
        Ok(file) => file,
        Err(error) => return refused(error).map_err(|source| ground.error("open", path, source)),
    };
    let look = || ground.disk.stat(&file).map_err(|source| ground.error("look at", path, source));
    let before = look()?;
    if before.kind != Kind::File {
        return Ok(PacketRead::Unsafe("it is not a regular file"));
    }
    if before.size > limit {
        return Ok(PacketRead::TooLarge);
    }
    let bytes = disk::read_up_to(&*ground.disk, &file, before.size, limit.saturating_add(1))
        .map_err(|source| ground.error("read", path, source))?;
    let age = now.wall.saturating_sub(before.mtime_ns / 1_000_000);
    let still = before == look()? && bytes.len() as u64 == before.size && !(0..QUIET_MS).contains(&age);
    Ok(if still { PacketRead::Bytes(bytes) } else { PacketRead::Growing })
}

fn check(path: &Path) -> Result<(), &'static str> {
    let mut first = true;
    for component in path.components() {
        match component {
            Component::Normal(name) if first && name == layout::OWN => return Err("it is the daemon's own"),
            Component::Normal(_) => first = false,
            Component::CurDir => {}
            Component::ParentDir => return Err("it has `..` in it"),
            Component::RootDir | Component::Prefix(_) => return Err("it is not relative"),
        }
    }
    if first { Err("it is empty") } else { Ok(()) }
}

/// Sorts what the system says about a path that it does not open.
fn refused(error: io::Error) -> io::Result<PacketRead> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => Ok(PacketRead::Missing),
        Some(Errno::LOOP) => Ok(PacketRead::Unsafe("a symbolic link is on the way")),
        Some(Errno::XDEV) => Ok(PacketRead::Unsafe("it leaves the workspace")),
        Some(Errno::NOTDIR) => Ok(PacketRead::Unsafe("a part of it is no directory")),
        Some(Errno::NAMETOOLONG | Errno::INVAL) => Ok(PacketRead::Unsafe("it is no possible path")),
        // What a socket or a device without a driver answers.
        Some(Errno::NXIO) => Ok(PacketRead::Unsafe("it is not a regular file")),
        Some(_) | None => Err(error),
    }
}
