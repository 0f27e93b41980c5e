//! One message in, its verdict out: its bytes are read once, its packet beside them.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use message_schema::{Message, line, parse};
use validate_message::{PacketInput, Violations, check, check_delivered};

use super::packet::{self, Found};
use super::place;
use super::staged::Staged;
use super::subject::Subject;
use super::verdict::{Outcome, Verdict};

/// One byte more than a message may have: enough to tell that it is too large.
pub(crate) const READ_MAX: u64 = 256 * 1024 + 1;

/// Where messages and packets are looked for.
pub(crate) struct Lookup {
    pub(crate) root: Option<PathBuf>,
    pub(crate) packet: Option<PathBuf>,
    pub(crate) staged: Option<Staged>,
}

/// Reads and checks one message.
pub(crate) fn judge(subject: &Subject, lookup: &Lookup) -> Verdict {
    let outcome = match outcome(subject, lookup) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Unreadable(error.to_string()),
    };
    Verdict { file: line::escaped(&subject.name()), outcome }
}

fn outcome(subject: &Subject, lookup: &Lookup) -> io::Result<Outcome> {
    let bytes = match (subject, &lookup.staged) {
        (Subject::Stdin(_), _) => read(io::stdin().lock())?,
        (Subject::File(path), _) => read(File::open(path)?)?,
        (Subject::Staged(blob), Some(staged)) => staged.read(blob)?,
        (Subject::Staged(_), None) => unreachable!("a blob comes out of the index"),
    };
    let message = match parse(&bytes) {
        Ok(message) => message,
        Err(malformed) => return Ok(Outcome::Refused(Violations::from(malformed))),
    };
    let packet = packet(subject, &message, lookup)?;
    let input = packet.as_ref().map_or(PacketInput::NotNamed, Found::input);
    // Standard input without a name may be either side's.
    let is_delivered = subject.place().is_none_or(place::is_behind_the_daemon);
    let check = if is_delivered { check_delivered } else { check };
    Ok(match check(&message, input) {
        Ok(valid) => Outcome::Valid(valid.warnings().to_vec()),
        Err(violations) => Outcome::Refused(violations),
    })
}

/// Reads to the end, but no more than tells that it is too large.
pub(crate) fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn packet(subject: &Subject, message: &Message, lookup: &Lookup) -> io::Result<Option<Found>> {
    let Some(path) = message.packet_path() else { return Ok(None) };
    if let Some(packet) = &lookup.packet {
        return read(File::open(packet)?).map(|bytes| Some(packet::sized(bytes)));
    }
    if let (Subject::Staged(blob), Some(staged)) = (subject, &lookup.staged) {
        return staged.packet(blob, lookup.root.as_deref(), &path).map(Some);
    }
    match lookup.root.clone().or_else(|| subject.place().and_then(packet::workspace_of)) {
        Some(root) => packet::open_beneath(&root, &path).map(Some),
        None => Ok(Some(Found::NotLooked)),
    }
}
