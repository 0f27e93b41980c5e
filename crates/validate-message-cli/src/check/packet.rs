//! Finds the packet that a message names: beneath the workspace only, and through no symlink.

use std::io;
use std::path::{Path, PathBuf};

use message_schema::id::PacketPath;
use validate_message::PacketInput;

use crate::limited_read::{READ_MAX, read_file};

/// A packet as it was found.
pub(crate) enum FoundPacket {
    NotLooked,
    Missing,
    Unsafe(String),
    TooLarge,
    /// The bytes and their file.
    Bytes(Vec<u8>, PathBuf),
}

impl FoundPacket {
    /// Converts it to the input of the rules.
    pub(crate) fn input(&self) -> PacketInput<'_> {
        match self {
            FoundPacket::NotLooked => PacketInput::NotLooked,
            FoundPacket::Missing => PacketInput::Missing,
            FoundPacket::Unsafe(why) => PacketInput::Unsafe(why.clone()),
            FoundPacket::TooLarge => PacketInput::TooLarge,
            FoundPacket::Bytes(bytes, _) => PacketInput::Bytes(bytes),
        }
    }
}

/// Returns the nearest directory above the file that looks like a workspace.
pub(crate) fn workspace_of(file: &Path) -> Option<PathBuf> {
    let absolute = super::place::absolute(file).ok()?;
    let is_workspace = |dir: &&Path| dir.join("agents").is_dir() && dir.join("packets").is_dir();
    absolute
        .ancestors()
        .skip(1)
        .find(is_workspace)
        .map(Path::to_owned)
}

/// Opens a packet without following a symlink below the root. The path's type prevents climbing; a swap by another
/// process in between is no danger to a check that only prints.
pub(crate) fn open_beneath(root: &Path, path: &PacketPath) -> io::Result<FoundPacket> {
    if let Some(refused) = outside_of_packets(path) {
        return Ok(refused);
    }
    let mut at = root.to_owned();
    for part in path.as_str().split('/') {
        at.push(part);
        match at.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return Ok(symlink(part)),
            Ok(_) => {}
            Err(error) if is_absent(&error) => return Ok(FoundPacket::Missing),
            Err(error) => return Err(error),
        }
    }
    if !at.symlink_metadata()?.is_file() {
        return Ok(FoundPacket::Unsafe("it is not a regular file".to_owned()));
    }
    read_file(&at).map(|bytes| sized(bytes, at))
}

/// Refuses a path outside of `packets/`: the daemon opens nothing else, and a file in a mailbox is no packet.
pub(crate) fn outside_of_packets(path: &PacketPath) -> Option<FoundPacket> {
    let first = path
        .as_str()
        .split('/')
        .find(|part| !part.is_empty() && *part != ".");
    (first != Some("packets")).then(|| FoundPacket::Unsafe("it is not in packets/".to_owned()))
}

/// Refuses a path that contains a symlink.
pub(crate) fn symlink(part: &str) -> FoundPacket {
    FoundPacket::Unsafe(format!("`{part}` is a symlink"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// Distinguishes complete bytes from the beginning of a file that is too large.
pub(crate) fn sized(bytes: Vec<u8>, place: PathBuf) -> FoundPacket {
    if u64::try_from(bytes.len()).is_ok_and(|len| len < READ_MAX) {
        FoundPacket::Bytes(bytes, place)
    } else {
        FoundPacket::TooLarge
    }
}
