//! One message in, its verdict out: its bytes are read once, its packet beside them.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use message_schema::{Message, line, parse};
use validate_message::{PacketInput, Violation, Violations, check, check_delivered};

use super::packet::{self, Found};
use super::place;
use super::severity::Severities;
use super::staged::Staged;
use super::subject::Subject;
use super::verdict::{Outcome, Texts, Verdict};
use crate::file::READ_MAX;

/// Where messages and packets are looked for.
pub(crate) struct Lookup {
    pub(crate) root: Option<PathBuf>,
    pub(crate) packet: Option<PathBuf>,
    pub(crate) staged: Option<Staged>,
    pub(crate) severities: Severities,
}

/// Reads and checks one message.
pub(crate) fn judge(subject: &Subject, lookup: &Lookup) -> Verdict {
    let mut texts = Texts::default();
    let outcome = match outcome(subject, lookup, &mut texts) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Unreadable(error.to_string()),
    };
    Verdict {
        file: line::escaped(&subject.name()),
        outcome,
        texts,
    }
}

fn outcome(subject: &Subject, lookup: &Lookup, texts: &mut Texts) -> io::Result<Outcome> {
    texts.message = bytes(subject, lookup)?;
    let (mut violations, is_cut) = match parse(&texts.message) {
        Ok(message) => {
            let packet = packet(subject, &message, lookup)?;
            let found = violations(subject, &message, packet.as_ref());
            if let Some(Found::Bytes(bytes, place)) = packet {
                texts.packet = Some((bytes, place));
            }
            found
        }
        Err(malformed) => (Violations::from(malformed).into_vec(), false),
    };
    lookup.severities.weigh(subject, &mut violations);
    Ok(Outcome::Judged { violations, is_cut })
}

fn bytes(subject: &Subject, lookup: &Lookup) -> io::Result<Vec<u8>> {
    match (subject, &lookup.staged) {
        (Subject::Stdin(_), _) => read(io::stdin().lock()),
        (Subject::File(path), _) => read(File::open(path)?),
        (Subject::Lost(_, why), _) => Err(io::Error::other(why.clone())),
        (Subject::Staged(blob), Some(staged)) => staged.read(blob),
        (Subject::Staged(_), None) => unreachable!("a blob comes out of the index"),
    }
}

fn violations(
    subject: &Subject,
    message: &Message,
    packet: Option<&Found>,
) -> (Vec<Violation>, bool) {
    let input = packet.map_or(PacketInput::NotNamed, Found::input);
    // Standard input without a name may be either side's.
    let is_delivered = subject.place().is_none_or(place::is_behind_the_daemon);
    let check = if is_delivered { check_delivered } else { check };
    match check(message, input) {
        Ok(valid) => (valid.warnings().to_vec(), false),
        Err(violations) => {
            let is_cut = violations.is_cut();
            (violations.into_vec(), is_cut)
        }
    }
}

/// Reads to the end, but no more than tells that it is too large.
pub(crate) fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(READ_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn packet(subject: &Subject, message: &Message, lookup: &Lookup) -> io::Result<Option<Found>> {
    let Some(path) = message.packet_path() else {
        return Ok(None);
    };
    if let Some(packet) = &lookup.packet {
        return read(File::open(packet)?).map(|bytes| Some(packet::sized(bytes, packet.clone())));
    }
    if let (Subject::Staged(blob), Some(staged)) = (subject, &lookup.staged) {
        return staged.packet(blob, lookup.root.as_deref(), &path).map(Some);
    }
    match lookup
        .root
        .clone()
        .or_else(|| subject.place().and_then(packet::workspace_of))
    {
        Some(root) => packet::open_beneath(&root, &path).map(Some),
        None => Ok(Some(Found::NotLooked)),
    }
}
