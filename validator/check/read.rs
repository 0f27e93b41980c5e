//! Files in: the message, and the packet it names, looked for beneath the workspace only.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use message_schema::id::PacketPath;
use message_schema::{Message, line, parse};
use validate_message::{PacketInput, Violations, check, check_delivered};

use super::verdict::{Outcome, Verdict};

/// One byte more than a message may have: enough to tell that it is too large.
const READ_MAX: u64 = 256 * 1024 + 1;

/// Where packets are looked for.
pub(crate) struct Lookup {
    pub(crate) root: Option<PathBuf>,
    pub(crate) packet: Option<PathBuf>,
}

/// A packet as it was found.
enum Found {
    NotLooked,
    Missing,
    Unsafe(String),
    TooLarge,
    Bytes(Vec<u8>),
}

/// Reads and checks one message.
pub(crate) fn judge(file: &Path, lookup: &Lookup) -> Verdict {
    let name = line::escaped(&file.to_string_lossy());
    let outcome = match outcome(file, lookup) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Unreadable(error.to_string()),
    };
    Verdict { file: name, outcome }
}

fn outcome(file: &Path, lookup: &Lookup) -> io::Result<Outcome> {
    let bytes = if file == Path::new("-") { read(io::stdin().lock())? } else { read(File::open(file)?)? };
    let message = match parse(&bytes) {
        Ok(message) => message,
        Err(malformed) => return Ok(Outcome::Refused(Violations::from(malformed))),
    };
    let packet = packet(file, &message, lookup)?;
    let input = match &packet {
        None => PacketInput::NotNamed,
        Some(Found::NotLooked) => PacketInput::NotLooked,
        Some(Found::Missing) => PacketInput::Missing,
        Some(Found::Unsafe(why)) => PacketInput::Unsafe(why.clone()),
        Some(Found::TooLarge) => PacketInput::TooLarge,
        Some(Found::Bytes(bytes)) => PacketInput::Bytes(bytes),
    };
    let check = if may_be_from_the_daemon(file) { check_delivered } else { check };
    Ok(match check(&message, input) {
        Ok(valid) => Outcome::Valid(valid.warnings().to_vec()),
        Err(violations) => Outcome::Refused(violations),
    })
}

/// Whether the file lies where the daemon delivers, or where its reader puts what it is done with.
/// Standard input has no place and may be either side's.
fn may_be_from_the_daemon(file: &Path) -> bool {
    if file == Path::new("-") {
        return true;
    }
    let Ok(absolute) = std::path::absolute(file) else { return false };
    let directory = absolute.parent().and_then(Path::file_name);
    directory.is_some_and(|name| name == "inbox" || name == "archive")
}

fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn packet(file: &Path, message: &Message, lookup: &Lookup) -> io::Result<Option<Found>> {
    let Some(path) = message.packet_path() else { return Ok(None) };
    if let Some(packet) = &lookup.packet {
        return read(File::open(packet)?).map(|bytes| Some(sized(bytes)));
    }
    match lookup.root.clone().or_else(|| workspace_of(file)) {
        Some(root) => open_beneath(&root, &path).map(Some),
        None => Ok(Some(Found::NotLooked)),
    }
}

/// The nearest directory above the file that looks like a workspace.
fn workspace_of(file: &Path) -> Option<PathBuf> {
    if file == Path::new("-") {
        return None;
    }
    let absolute = std::path::absolute(file).ok()?;
    let is_workspace = |dir: &&Path| dir.join("agents").is_dir() && dir.join("packets").is_dir();
    absolute.ancestors().skip(1).find(is_workspace).map(Path::to_owned)
}

/// Opens a packet without following a symlink below the root. The path's type keeps it from
/// climbing; what another process swaps in between is no danger to a check that only prints.
fn open_beneath(root: &Path, path: &PacketPath) -> io::Result<Found> {
    // The daemon opens nothing else: what lies in mailboxes is nobody's packet.
    if path.as_str().split('/').find(|part| !part.is_empty() && *part != ".") != Some("packets") {
        return Ok(Found::Unsafe("it does not lie in packets/".to_owned()));
    }
    let mut at = root.to_owned();
    for part in path.as_str().split('/') {
        at.push(part);
        match at.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                return Ok(Found::Unsafe(format!("`{part}` is a symlink")));
            }
            Ok(_) => {}
            Err(error) if is_absent(&error) => return Ok(Found::Missing),
            Err(error) => return Err(error),
        }
    }
    if !at.symlink_metadata()?.is_file() {
        return Ok(Found::Unsafe("it is not a regular file".to_owned()));
    }
    read(File::open(&at)?).map(sized)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

fn sized(bytes: Vec<u8>) -> Found {
    if u64::try_from(bytes.len()).is_ok_and(|len| len < READ_MAX) {
        Found::Bytes(bytes)
    } else {
        Found::TooLarge
    }
}
