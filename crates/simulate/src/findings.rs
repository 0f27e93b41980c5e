//! Expands threads and findings in shorthand (`F-001: P1`) into the packet that a reviewer would have written, and
//! checks it. For profiles that begin with threads or have no messages.

use std::collections::BTreeMap;

use message_schema::id::FindingId;
use message_schema::packet::FindingsPacket;
use message_schema::yaml::{Content, Field, Node};
use review::{HandoffState, Hold, Origin, Thread, ThreadState};
use validate_message::{PacketInput, Valid};

use super::compose::{PacketEntry, blocking_count, findings_path};
use super::facts::{self, Fact};
use super::reader::{ParseError, Parsed, optional, text, value};
use super::yaml::Writer;

/// Fields of a finding that the scenario omits, with the values filled in.
pub(super) type Filled = Vec<(&'static str, String)>;

/// A finding of a packet under construction.
pub(super) struct FindingDraft<'a> {
    pub(super) id: &'a str,
    /// The fields the scenario gives.
    pub(super) fields: &'a [Field],
    /// The fields it omits.
    pub(super) filled: Filled,
}

/// Writes the findings of a packet.
pub(super) fn packet(lines: &[FindingDraft<'_>]) -> String {
    let mut out = Writer::default();
    if lines.is_empty() {
        out.plain("findings", "[]");
        return out.into_text();
    }
    out.plain("findings", "");
    for line in lines {
        let has = |key: &str| line.fields.iter().any(|field| field.key == key);
        out.plain("  - id", line.id);
        for (key, text) in line.filled.iter().filter(|(key, _)| !has(key)) {
            out.plain(&format!("    {key}"), text);
        }
        for field in line
            .fields
            .iter()
            .filter(|field| !OURS.contains(&field.key.as_str()))
        {
            out.field(2, &field.key, &field.value);
        }
    }
    out.into_text()
}

/// Keys of a thread that are not fields of a finding.
const OURS: [&str; 3] = ["state", "verify_run", "queued"];

/// The given and filled-in fields of a new finding. A bare P2 does not block.
pub(super) fn opened(node: &Node) -> Parsed<(&[Field], Filled)> {
    let mut filled = vec![("status", "open".to_owned())];
    match &node.content {
        Content::Map(fields) => Ok((fields, filled)),
        Content::Scalar(_) => {
            let severity = text(node)?.trim();
            if severity == "P2" {
                filled.push(("blocking", "false".to_owned()));
            }
            filled.push(("severity", severity.to_owned()));
            Ok((&[], filled))
        }
        Content::List(_) => Err(ParseError::at(
            node.place,
            "expected a severity, or the fields of a finding",
        )),
    }
}

/// Checks a packet as part of a feedback message.
pub(super) fn check(packet: &str) -> Result<FindingsPacket, Vec<Fact>> {
    let count = blocking_count(Some(&PacketEntry::Text(packet.to_owned())));
    let path = findings_path(1);
    let body = format!("findings_packet: {path}\nround: 1\nblocking_count: {count}\n");
    let valid = check_message("review_feedback", &body, Some(packet))?;
    let packet = valid
        .findings()
        .expect("a feedback was checked with its packet");
    Ok(packet.clone())
}

/// Checks a body as part of a message.
pub(super) fn check_message(
    kind: &str,
    body: &str,
    packet: Option<&str>,
) -> Result<Valid, Vec<Fact>> {
    let mut out = Writer::default();
    for (key, text) in [
        ("id", "msg-1"),
        ("from", "codex"),
        ("to", "claude"),
        ("type", kind),
    ] {
        out.plain(key, text);
    }
    out.plain("priority", "P2");
    out.plain("created_at_utc", "2026-02-13T10:00:00Z");
    out.plain("subject", kind);
    out.literal("body", body);
    let text = out.into_text();
    let message = message_schema::parse(text.as_bytes()).expect("a mapping of texts is readable");
    let packet = match (packet, message.packet_path()) {
        (Some(text), Some(_)) => PacketInput::Bytes(text.as_bytes()),
        (None, Some(_)) => PacketInput::Missing,
        (_, None) => PacketInput::NotNamed,
    };
    validate_message::check(&message, packet).map_err(|violations| {
        let told = violations
            .iter()
            .map(|violation| violation.reported("message.yaml"));
        told.map(|violation| facts::violation(&violation, None))
            .collect()
    })
}

/// The threads with which a scenario begins.
pub(super) fn threads(node: &Node) -> Parsed<BTreeMap<FindingId, Thread>> {
    let Content::Map(all) = &node.content else {
        return Err(ParseError::at(
            node.place,
            "expected threads by their id, such as F-001: P1",
        ));
    };
    let lines: Parsed<Vec<FindingDraft<'_>>> = all
        .iter()
        .map(|field| {
            let (fields, filled) = opened(&field.value)?;
            Ok(FindingDraft {
                id: &field.key,
                fields,
                filled,
            })
        })
        .collect();
    let packet = check(&packet(&lines?)).map_err(|facts| {
        let said: Vec<&str> = facts
            .iter()
            .filter_map(|outcome| outcome.message.as_deref())
            .collect();
        ParseError::at(node.place, said.join("; "))
    })?;
    packet
        .findings
        .iter()
        .zip(all)
        .map(|(finding, field)| {
            let mut thread = Thread::opened_by(finding, 1);
            if let Some(state) = value(&field.value, "state") {
                thread.state = state_of(state)?;
            }
            if optional(&field.value, "verify_run")?.unwrap_or(false) {
                thread.origin = Origin::VerifyRun;
            }
            if optional(&field.value, "queued")?.unwrap_or(false) {
                thread.handoff = HandoffState::Queued;
            }
            Ok((finding.id.clone(), thread))
        })
        .collect()
}

fn state_of(node: &Node) -> Parsed<ThreadState> {
    Ok(match text(node)?.trim() {
        "open" => ThreadState::Open,
        "resolved" => ThreadState::Resolved,
        "deferred" => ThreadState::Deferred,
        "veto" => ThreadState::Held(Hold::Veto),
        "escalate" => ThreadState::Held(Hold::Escalate),
        "person" => ThreadState::Held(Hold::Person),
        other => {
            let expected = "open, resolved, deferred, or held by veto, escalate or person";
            return Err(ParseError::at(
                node.place,
                format!("`{other}`: expected {expected}"),
            ));
        }
    })
}
