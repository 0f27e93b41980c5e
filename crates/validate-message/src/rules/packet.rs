//! The findings packet: that it could be read at all, its schema, and what its findings say
//! together.

use std::collections::BTreeMap;

use message_schema::id::PacketPath;
use message_schema::packet::FindingsPacket;
use message_schema::schema::Step;
use message_schema::yaml::Node;
use message_schema::{Code, Message, Place, ReadBody, Schema, parse_packet};

use super::Document;
use super::document::Kind;
use crate::check::PacketInput;
use crate::valid::Packet;
use crate::violation::{Source, Violation};

/// A packet without errors of its own, with its tree for the rules across files.
pub(crate) struct ReadPacket {
    pub(crate) packet: Packet,
    pub(crate) root: Node,
}

pub(crate) fn check(
    message: &Message,
    input: PacketInput<'_>,
    found: &mut Vec<Violation>,
) -> Option<ReadPacket> {
    // A packet that is not named, or not by a packet path, is the body's violation, not ours.
    let path = message.packet_path()?;
    let lost = match input {
        PacketInput::NotLooked => return None,
        PacketInput::Bytes(bytes) => return read(path, bytes, found),
        PacketInput::Missing | PacketInput::NotNamed => {
            Violation::new(Code::PacketMissing, Source::Message, None, format!("there is no packet `{path}`"))
                .expected("a findings packet in the workspace")
                .fix("write the packet before the message that names it")
        }
        PacketInput::Unsafe(why) => Violation::new(
            Code::PacketUnsafe,
            Source::Message,
            None,
            format!("the packet `{path}` may not be read: {why}"),
        )
        .expected("a regular file inside the workspace, no symlink on the way"),
        PacketInput::TooLarge => Violation::new(
            Code::PacketSyntax,
            Source::Message,
            None,
            format!("the packet `{path}` is too large"),
        )
        .expected("at most 256 KiB"),
    };
    let lost = Violation { place: place_of_name(message), ..lost };
    found.push(lost.field("body.findings_packet").found(path.as_str()));
    None
}

fn place_of_name(message: &Message) -> Option<Place> {
    match message.read_body() {
        ReadBody::Mapping(mapping) => mapping.field("findings_packet").map(|field| field.value.place),
        ReadBody::Unread | ReadBody::Malformed(_) => None,
    }
}

fn read(path: PacketPath, bytes: &[u8], found: &mut Vec<Violation>) -> Option<ReadPacket> {
    let file = Source::Packet(path.as_str().to_owned());
    let root = match parse_packet(bytes) {
        Ok(root) => root,
        Err(malformed) => {
            found.push(Violation::malformed(malformed, Code::PacketSyntax, file));
            return None;
        }
    };
    let before = found.len();
    let document = Document { root: &root, schema: Schema::FindingsPacket, file, prefix: "", code };
    let findings = document.read::<FindingsPacket>(found);
    rules(&document, found);
    let is_clean = !found[before..].iter().any(|violation| violation.level == message_schema::Level::Error);
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let findings = findings.filter(|_| is_clean)?;
    Some(ReadPacket { packet: Packet { path, text, findings }, root })
}

fn code(path: &[Step], kind: Kind) -> Code {
    let in_finding = path.len() > 1 && path[0] == Step::Key("findings".to_owned());
    let is_action = path.last() == Some(&Step::Key("action".to_owned()));
    match kind {
        Kind::Unknown => Code::PacketFieldUnknown,
        Kind::Missing | Kind::Invalid if in_finding && is_action => Code::ActionUnknown,
        Kind::Missing | Kind::Invalid if in_finding => Code::FindingInvalid,
        Kind::Missing | Kind::Invalid => Code::PacketFieldInvalid,
    }
}

/// Ids are unique, no thread is acted on twice, and `blocking` does not contradict the severity.
fn rules(document: &Document<'_>, found: &mut Vec<Violation>) {
    let Some(findings) = document.root.field("findings") else { return };
    let mut ids = BTreeMap::new();
    let mut acted = BTreeMap::new();
    for (index, finding) in findings.value.items().iter().enumerate() {
        let path =
            |key: &str| [Step::Key("findings".to_owned()), Step::Index(index), Step::Key(key.to_owned())];
        let text = |key| finding.field_text(key).filter(|text| !text.is_empty());
        if let (Some(severity), Some(blocking)) = (text("severity"), text("blocking")) {
            match (severity, blocking) {
                ("P0" | "P1", "false") => {
                    found.push(
                        document.invalid(&path("blocking"), &format!("true, for a {severity} always blocks")),
                    );
                }
                ("P3", "true") => {
                    found.push(document.invalid(&path("blocking"), "false, for a P3 never blocks"));
                }
                (_, _) => {}
            }
        }
        let id = text("id");
        let thread = text("action").and(text("same_as").or(id));
        if let Some(first) = thread.and_then(|thread| acted.insert(thread, index)) {
            let name = thread.unwrap_or_default();
            let violation = document.invalid(&path("action"), "one action for each thread");
            found.push(Violation {
                code: Code::ActionMultiple,
                message: format!(
                    "thread `{name}` is given an action by findings[{first}] and findings[{index}]"
                ),
                ..violation
            });
        } else if id.is_some_and(|id| ids.contains_key(id)) {
            found.push(document.invalid(&path("id"), "an id no other finding of this packet has"));
        }
        if let Some(id) = id {
            ids.insert(id, index);
        }
    }
}
