//! The packet a message names: looked for beneath the workspace only, through no symlink.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use message_schema::id::PacketPath;
use validate_message::PacketInput;

use super::read::read;
use crate::file::READ_MAX;

/// A packet as it was found.
pub(crate) enum Found {
    NotLooked,
    Missing,
    Unsafe(String),
    TooLarge,
    /// The bytes, and the file they are of.
    Bytes(Vec<u8>, PathBuf),
}

impl Found {
    /// Gives it to the rules.
    pub(crate) fn input(&self) -> PacketInput<'_> {
        match self {
            Found::NotLooked => PacketInput::NotLooked,
            Found::Missing => PacketInput::Missing,
            Found::Unsafe(why) => PacketInput::Unsafe(why.clone()),
            Found::TooLarge => PacketInput::TooLarge,
            Found::Bytes(bytes, _) => PacketInput::Bytes(bytes),
        }
    }
}

/// Gives the nearest directory above the file that looks like a workspace.
pub(crate) fn workspace_of(file: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(file).ok()?;
    let is_workspace = |dir: &&Path| dir.join("agents").is_dir() && dir.join("packets").is_dir();
    absolute
        .ancestors()
        .skip(1)
        .find(is_workspace)
        .map(Path::to_owned)
}

/// Opens a packet without following a symlink below the root. The path's type keeps it from
/// climbing; what another process swaps in between is no danger to a check that only prints.
pub(crate) fn open_beneath(root: &Path, path: &PacketPath) -> io::Result<Found> {
    if let Some(refused) = outside_of_packets(path) {
        return Ok(refused);
    }
    let mut at = root.to_owned();
    for part in path.as_str().split('/') {
        at.push(part);
        match at.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return Ok(symlink(part)),
            Ok(_) => {}
            Err(error) if is_absent(&error) => return Ok(Found::Missing),
            Err(error) => return Err(error),
        }
    }
    if !at.symlink_metadata()?.is_file() {
        return Ok(Found::Unsafe("it is not a regular file".to_owned()));
    }
    read(File::open(&at)?).map(|bytes| sized(bytes, at))
}

/// Refuses what lies elsewhere: the daemon opens nothing outside of `packets/`, and what lies in
/// mailboxes is nobody's packet.
pub(crate) fn outside_of_packets(path: &PacketPath) -> Option<Found> {
    let first = path
        .as_str()
        .split('/')
        .find(|part| !part.is_empty() && *part != ".");
    (first != Some("packets")).then(|| Found::Unsafe("it does not lie in packets/".to_owned()))
}

/// Refuses a symlink on the way.
pub(crate) fn symlink(part: &str) -> Found {
    Found::Unsafe(format!("`{part}` is a symlink"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// Tells bytes from the beginning of too many.
pub(crate) fn sized(bytes: Vec<u8>, place: PathBuf) -> Found {
    if u64::try_from(bytes.len()).is_ok_and(|len| len < READ_MAX) {
        Found::Bytes(bytes, place)
    } else {
        Found::TooLarge
    }
}
