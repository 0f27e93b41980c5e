//! The envelope: its schema, and the rules across fields.

use std::collections::BTreeSet;

use message_schema::envelope::{DAEMON, Envelope, MessageType, ReviewKind, TELEMETRY, TextKind};
use message_schema::schema::{Breach, Step};
use message_schema::yaml::Node;
use message_schema::{Code, Message, Schema};

use super::document::BreachKind;
use super::{Document, MisplacedFields, nulls};
use crate::found::Found;
use crate::input::Origin;
use crate::violation::{Source, Violation};

pub(crate) fn check(
    message: &Message,
    misplaced: &MisplacedFields<'_>,
    origin: Origin,
    found: &mut Found,
) -> Option<Envelope> {
    if is_packet(message.root()) {
        let text = "this is a findings packet, not a message";
        found.push(
            Violation::new(
                Code::EnvelopeFieldMissing,
                Source::Message,
                Some(message.root().place),
                text,
            )
            .expected("the fields of an envelope: id, from, to, type and the others")
            .fix("keep it in `packets/`, and send a message that names it in `findings_packet`"),
        );
        return None;
    }
    let document = Document {
        root: message.root(),
        schema: Schema::Envelope,
        file: Source::Message,
        prefix: "",
        code,
        explained: misplaced.explained_in_envelope(),
    };
    let is_daemons = match origin {
        Origin::Outbox => false,
        Origin::Inbox => is_of_daemon(message),
    };
    let from = [Step::Key("from".to_owned())];
    let envelope = document.read_admitting(
        found,
        |breach| matches!(breach, Breach::Broken { at, .. } if is_daemons && *at == from),
    );
    misplaced.report(&document, message.meant(), found);
    recipients(&document, message.kind(), found);
    nulls::check(&document, message.kind(), found);
    if let Some(kind) = message.kind().filter(|kind| !kind.may_carry_telemetry()) {
        telemetry(&document, kind, found);
    }
    envelope
}

/// True if it is a packet that a message names: it has findings or changed files, and no field of an envelope or a
/// task's packet.
pub(crate) fn is_packet(root: &Node) -> bool {
    let has = |name: &str| root.field(name).is_some();
    (has("findings") || has("changed_files"))
        && !["id", "from", "to", "type", "subject", "body", "task_id"]
            .into_iter()
            .any(has)
}

/// True if the message has a type that the daemon writes, and exactly the daemon's name as its sender.
fn is_of_daemon(message: &Message) -> bool {
    let is_daemons = message
        .root()
        .field("from")
        .and_then(|from| from.value.text())
        == Some(DAEMON);
    let is_written_by_it = |kind| match kind {
        MessageType::Review(ReviewKind::Feedback)
        | MessageType::Text(TextKind::Notification | TextKind::Handoff) => true,
        MessageType::Review(ReviewKind::Request | ReviewKind::Addressed | ReviewKind::Lgtm)
        | MessageType::Text(
            TextKind::Question
            | TextKind::TaskRequest
            | TextKind::FollowUp
            | TextKind::HandoffComplete
            | TextKind::BrainstormRequest
            | TextKind::BrainstormFollowup,
        ) => false,
    };
    is_daemons && message.kind().is_some_and(is_written_by_it)
}

fn code(_: &[Step], kind: BreachKind) -> Code {
    match kind {
        BreachKind::Missing => Code::EnvelopeFieldMissing,
        BreachKind::Unknown => Code::EnvelopeFieldUnknown,
        BreachKind::Invalid => Code::EnvelopeFieldInvalid,
    }
}

/// Checks that recipients are distinct, that none is the sender, and that some types have exactly one.
fn recipients(document: &Document<'_>, kind: Option<MessageType>, found: &mut Found) {
    let Some(to) = document.root.field("to") else {
        return;
    };
    let sender = document.root.field_text("from");
    let listed: Vec<(Vec<Step>, &Node)> = match to.value.text() {
        Some(_) => vec![(vec![Step::Key("to".to_owned())], &to.value)],
        None => to
            .value
            .items()
            .iter()
            .enumerate()
            .map(|(i, item)| (vec![Step::Key("to".to_owned()), Step::Index(i)], item))
            .collect(),
    };
    let mut seen = BTreeSet::new();
    for (path, node) in &listed {
        let Some(name) = node.text().map(str::trim).filter(|name| !name.is_empty()) else {
            continue;
        };
        if sender == Some(name) {
            let violation = document.invalid(path, "an agent other than the sender");
            found.push(violation.fix("name the agent that should read it"));
        } else if !seen.insert(name) {
            found.push(
                document
                    .invalid(path, "each recipient once")
                    .fix("remove the repeated name"),
            );
        }
    }
    if let Some(kind) = kind.filter(|kind| listed.len() > 1 && kind.has_one_recipient()) {
        let path = [Step::Key("to".to_owned())];
        let text = format!(
            "`to` names {} recipients, expected exactly one for a {kind}",
            listed.len()
        );
        let violation = document.violation(BreachKind::Invalid, &path, to.value.place, text);
        found.push(
            violation
                .expected("exactly one recipient")
                .fix("write one message for each recipient"),
        );
    }
}

fn telemetry(document: &Document<'_>, kind: MessageType, found: &mut Found) {
    for &name in TELEMETRY {
        if let Some(field) = document
            .root
            .field(name)
            .filter(|field| !field.value.is_absent())
        {
            let path = [Step::Key(name.to_owned())];
            let text = format!("a {kind} may not have `{name}`");
            found.push(
                document
                    .violation(BreachKind::Invalid, &path, field.key_place, text)
                    .expected("telemetry only on review_feedback, review_lgtm and review_addressed")
                    .fix(format!("remove `{name}`")),
            );
        }
    }
}
