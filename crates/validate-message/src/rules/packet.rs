//! The packet that a message names: whether it could be read, its schema, and the rules across its findings.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::envelope::MessageType;
use message_schema::id::PacketPath;
use message_schema::line::escaped;
use message_schema::schema::Step;
use message_schema::yaml::Node;
use message_schema::{Code, Message, Schema, parse_packet};

use super::Document;
use super::consistency::body_place;
use super::document::BreachKind;
use crate::found::Found;
use crate::input::PacketInput;
use crate::valid::{Packet, PacketContent};
use crate::violation::{Source, Violation, shown};

/// A packet without errors of its own, with its tree for the rules across files.
pub(crate) struct ReadPacket {
    pub(crate) packet: Packet,
    pub(crate) root: Node,
}

pub(crate) fn check(
    message: &Message,
    input: PacketInput<'_>,
    found: &mut Found,
) -> Option<ReadPacket> {
    // If no packet is named, or not by a packet path, the rules of the body report that.
    let (path, field) = (message.packet_path()?, message.packet_field()?);
    let shown = escaped(path.as_str());
    let lost = |code, text: String, expected: &str| {
        Violation::new(code, Source::Message, body_place(message, field), text)
            .field(format!("body.{field}"))
            .found(path.as_str())
            .expected(expected)
    };
    found.push(match input {
        PacketInput::NotLooked => lost(
            Code::PacketUnchecked,
            format!("the packet `{shown}` is not checked: there is no workspace to find it in"),
            "a message in its workspace, the directory that holds `agents/` and `packets/`",
        )
        .fix("name the workspace with `--root DIR`, or the packet with `--packet FILE`")
        .warning(),
        PacketInput::Bytes(bytes) => return read(message, path, bytes, found),
        PacketInput::Missing | PacketInput::NotNamed => lost(
            Code::PacketMissing,
            format!("there is no findings packet `{shown}`"),
            "a packet in the workspace",
        )
        .fix("write the packet before the message that names it"),
        PacketInput::Unsafe(why) => lost(
            Code::PacketUnsafe,
            format!("the packet `{shown}` may not be read: {}", escaped(&why)),
            "a regular file inside the workspace, with no symlink in the path",
        )
        .fix(if path.as_str().contains('\\') {
            format!("write `{}`", escaped(&path.as_str().replace('\\', "/")))
        } else {
            format!("name a file below `packets/`, as in `{field}: packets/findings/pr86_r1.yaml`")
        }),
        PacketInput::TooLarge => lost(
            Code::PacketSyntax,
            format!("the packet `{shown}` is too large"),
            "at most 256 KiB",
        )
        .fix("name the packet itself, or shorten it"),
    });
    None
}

fn read(
    message: &Message,
    path: PacketPath,
    bytes: &[u8],
    found: &mut Found,
) -> Option<ReadPacket> {
    let is_of_response = message
        .kind()
        .is_some_and(MessageType::is_terminal_response);
    let schema = match is_of_response {
        true => Schema::FindingsPacket,
        false => Schema::ChangesPacket,
    };
    let file = Source::Packet(path.as_str().to_owned());
    let (content, root) = read_as(|_| schema, bytes, file, found)?;
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    Some(ReadPacket {
        packet: Packet {
            path,
            text,
            content,
        },
        root,
    })
}

/// Checks a packet without the message that names it; `file` is the file of its violations.
pub(crate) fn check_alone(bytes: &[u8], file: Source, found: &mut Found) {
    let schema = |root: &Node| {
        let is_of_changes = root.field("changed_files").is_some();
        match is_of_changes && root.field("findings").is_none() {
            true => Schema::ChangesPacket,
            false => Schema::FindingsPacket,
        }
    };
    read_as(schema, bytes, file, found);
}

fn read_as(
    schema: impl Fn(&Node) -> Schema,
    bytes: &[u8],
    file: Source,
    found: &mut Found,
) -> Option<(PacketContent, Node)> {
    let root = match parse_packet(bytes) {
        Ok(root) => root,
        Err(malformed) => {
            found.push(Violation::malformed(malformed, Code::PacketSyntax, file));
            return None;
        }
    };
    let errors_before = found.errors();
    let document = Document {
        root: &root,
        schema: schema(&root),
        file,
        prefix: "",
        code,
        explained: BTreeSet::new(),
    };
    let content = if document.schema == Schema::ChangesPacket {
        document.read(found).map(PacketContent::Changes)
    } else {
        let findings = document.read(found).map(PacketContent::Findings);
        rules(&document, found);
        findings
    };
    let content = content.filter(|_| found.errors() == errors_before)?;
    Some((content, root))
}

fn code(path: &[Step], kind: BreachKind) -> Code {
    let in_finding = path.len() > 1 && path[0] == Step::Key("findings".to_owned());
    let is_action = path.last() == Some(&Step::Key("action".to_owned()));
    match kind {
        BreachKind::Unknown => Code::PacketFieldUnknown,
        BreachKind::Missing | BreachKind::Invalid if in_finding && is_action => Code::ActionUnknown,
        BreachKind::Missing | BreachKind::Invalid if in_finding => Code::FindingInvalid,
        BreachKind::Missing | BreachKind::Invalid => Code::PacketFieldInvalid,
    }
}

/// Checks that ids are unique, that no thread is acted on twice, and that `blocking` fits the severity.
fn rules(document: &Document<'_>, found: &mut Found) {
    let Some(findings) = document.root.field("findings") else {
        return;
    };
    let mut ids = BTreeSet::new();
    let mut acted = BTreeMap::new();
    for (index, finding) in findings.value.items().iter().enumerate() {
        let path = |key: &str| {
            [
                Step::Key("findings".to_owned()),
                Step::Index(index),
                Step::Key(key.to_owned()),
            ]
        };
        if let Some(expected) = contradicted(finding) {
            let right = expected.split(',').next().unwrap_or(expected);
            found.push(
                document
                    .invalid(&path("blocking"), expected)
                    .fix(format!("write `{right}`, or leave it out")),
            );
        }
        let id = text(finding, "id");
        let thread = text(finding, "action").and(text(finding, "same_as").or(id));
        let first = thread.and_then(|thread| acted.insert(thread, index));
        let is_repeated = id.is_some_and(|id| !ids.insert(id));
        if let (Some(thread), Some(first)) = (thread, first) {
            let name = shown(thread);
            let text = format!(
                "thread `{name}` is given an action by findings[{first}] and findings[{index}]"
            );
            let violation = document.invalid(&path("action"), "one action for each thread");
            let violation = Violation {
                code: Code::ActionMultiple,
                message: text,
                ..violation
            };
            found.push(violation.fix("keep one of the two"));
        } else if is_repeated {
            let violation =
                document.invalid(&path("id"), "an id no other finding of this packet has");
            found.push(violation.fix("give each finding its own id"));
        }
    }
}

/// Returns the text of a field that exists and is not empty.
fn text<'n>(finding: &'n Node, key: &str) -> Option<&'n str> {
    finding
        .field(key)
        .filter(|field| !field.value.is_absent())?
        .value
        .text()
        .map(str::trim)
}

/// Returns the value that `blocking` must have, if it contradicts the severity.
fn contradicted(finding: &Node) -> Option<&'static str> {
    match (text(finding, "severity")?, text(finding, "blocking")?) {
        ("P0", "false") => Some("true, because a P0 always blocks"),
        ("P1", "false") => Some("true, because a P1 always blocks"),
        ("P3", "true") => Some("false, because a P3 never blocks"),
        (_, _) => None,
    }
}
