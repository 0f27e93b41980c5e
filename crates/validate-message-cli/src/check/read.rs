//! Judges one message: reads its bytes and those of its packet once, and hands both to the rules. A findings packet
//! given in place of a message is judged alone.

use std::io;
use std::path::PathBuf;

use message_schema::{Code, Message, line, parse};
use validate_message::{
    Level, PacketInput, Source, Violation, Violations, check, check_delivered, check_packet,
    is_packet,
};

use super::packet::{self, FoundPacket};
use super::place;
use super::severity::Severities;
use super::staged::Staged;
use super::subject::Subject;
use super::verdict::{Outcome, Texts, Verdict};
use crate::limited_read::{read, read_file};

/// The options of the command, and git's index if that is checked.
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
    if matches!(subject, Subject::Staged(blob) if blob.is_link) {
        let violations = vec![link_in_place_of_mail()];
        let is_cut = false;
        return Ok(Outcome::Judged { violations, is_cut });
    }
    texts.message = bytes(subject, lookup)?;
    let (mut violations, is_cut) = match parse(&texts.message) {
        Ok(message) if is_packet_alone(subject, &message) => alone(&texts.message),
        Err(_) if subject.place().is_some_and(place::is_among_findings) => alone(&texts.message),
        Ok(message) => {
            let packet = packet(subject, &message, lookup)?;
            let found = violations(subject, &message, packet.as_ref());
            if let Some(FoundPacket::Bytes(bytes, place)) = packet {
                texts.packet = Some((bytes, place));
            }
            found
        }
        Err(malformed) => (Violations::from(malformed).into_vec(), false),
    };
    lookup.severities.weigh(subject, &mut violations);
    Ok(Outcome::Judged { violations, is_cut })
}

/// The daemon follows no link to a message or in the path of a mailbox.
fn link_in_place_of_mail() -> Violation {
    Violation {
        code: Code::NotAFile,
        level: Level::Error,
        file: Source::Message,
        place: None,
        field: None,
        message: "a symbolic link is in place of a message or of a mailbox".to_owned(),
        found: None,
        expected: Some("a regular file below real directories".to_owned()),
        fix: Some("stage the file itself in place of the link".to_owned()),
    }
}

/// True if the file is a findings packet rather than a message. Its fields decide, or its place if it has none of id,
/// from, to and type. A packet in a mailbox is a mistake, not a packet to check.
fn is_packet_alone(subject: &Subject, message: &Message) -> bool {
    let says_nothing = || {
        ["id", "from", "to", "type"]
            .iter()
            .all(|name| message.root().field(name).is_none())
    };
    let is_of_a_packet = is_packet(message);
    // Nearly every file is a message, and its place need not be found out.
    if !is_of_a_packet && !says_nothing() {
        return false;
    }
    let place = subject
        .place()
        .and_then(|place| place::absolute(place).ok());
    let is_mail = place
        .as_deref()
        .is_some_and(|place| place::workspace_around_mailbox(place).is_some());
    !is_mail && (is_of_a_packet || place.as_deref().is_some_and(place::is_among_findings))
}

fn alone(packet: &[u8]) -> (Vec<Violation>, bool) {
    let violations = check_packet(packet);
    let is_cut = violations.is_cut();
    (violations.into_vec(), is_cut)
}

fn bytes(subject: &Subject, lookup: &Lookup) -> io::Result<Vec<u8>> {
    match (subject, &lookup.staged) {
        (Subject::Stdin(_), _) => read(io::stdin().lock()),
        (Subject::File(path), _) => read_file(path).map_err(with_advice),
        (Subject::Lost(_, why), _) => Err(io::Error::other(why.clone())),
        (Subject::Staged(blob), Some(staged)) => staged.read(blob),
        (Subject::Staged(_), None) => unreachable!("a blob comes out of the index"),
    }
}

fn with_advice(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::IsADirectory {
        return error;
    }
    io::Error::other("it is a directory; a `/` after its name checks the messages in it")
}

fn violations(
    subject: &Subject,
    message: &Message,
    packet: Option<&FoundPacket>,
) -> (Vec<Violation>, bool) {
    let input = packet.map_or(PacketInput::NotNamed, FoundPacket::input);
    // Standard input without a name may come from either side of the daemon.
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

fn packet(
    subject: &Subject,
    message: &Message,
    lookup: &Lookup,
) -> io::Result<Option<FoundPacket>> {
    let Some(path) = message.packet_path() else {
        return Ok(None);
    };
    if let Some(packet) = &lookup.packet {
        let bytes = read_file(packet).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("its packet {}: {error}", packet.display()),
            )
        })?;
        return Ok(Some(packet::sized(bytes, packet.clone())));
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
        None => Ok(Some(FoundPacket::NotLooked)),
    }
}
