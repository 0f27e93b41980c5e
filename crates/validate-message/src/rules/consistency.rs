//! Checks that envelope, body and packet agree.

use message_schema::body::Body;
use message_schema::id::PrNumber;
use message_schema::packet::Finding;
use message_schema::schema::Step;
use message_schema::{Code, Message, Place, ReadBody};

use super::packet::ReadPacket;
use crate::found::Found;
use crate::violation::{Source, Violation, shown};

/// The most findings named if their number is wrong.
const NAMED_MAX: usize = 10;

pub(crate) fn check(
    message: &Message,
    body: Option<&Body>,
    packet: Option<&ReadPacket>,
    found: &mut Found,
) {
    pull_request(message, found);
    if let (Some(body), Some(packet)) = (body, packet) {
        round(body, packet, found);
        blocking_count(message, body, packet, found);
    }
}

fn pull_request(message: &Message, found: &mut Found) {
    let number = |text: &str| PrNumber::new(text).ok();
    let Some(envelope) = message.root().field("related_pr") else {
        return;
    };
    let Some(body_pr) = body_text(message, "pr").and_then(number) else {
        return;
    };
    let Some(envelope_pr) = envelope.value.text().map(str::trim).and_then(number) else {
        return;
    };
    if !envelope_pr.same_pr(&body_pr) {
        let text = format!("`related_pr` is {envelope_pr}, but the body's `pr` is {body_pr}");
        found.push(
            Violation::new(
                Code::PrMismatch,
                Source::Message,
                Some(envelope.value.place),
                text,
            )
            .field("related_pr")
            .found(envelope_pr.as_str())
            .expected(body_pr.as_str())
            .fix("write the same number in both, or leave `related_pr` out"),
        );
    }
}

fn round(body: &Body, read: &ReadPacket, found: &mut Found) {
    let said = match body {
        Body::Feedback(feedback) => Some(feedback.round),
        Body::Lgtm(lgtm) => lgtm.round,
        Body::Request(_) | Body::Addressed(_) | Body::Text(_) => None,
    };
    let packet = read.packet.findings().and_then(|packet| packet.round);
    let (Some(said), Some(packet)) = (said, packet) else {
        return;
    };
    if said != packet {
        let place = read.root.field("round").map(|field| field.value.place);
        let file = Source::Packet(read.packet.path.as_str().to_owned());
        found.push(
            Violation::new(
                Code::PacketMismatch,
                file,
                place,
                format!("the packet names round {packet}, the message round {said}"),
            )
            .field("round")
            .found(&packet.to_string())
            .expected(said.to_string())
            .fix("name the packet of this round, or write its round into it"),
        );
    }
}

fn blocking_count(message: &Message, body: &Body, read: &ReadPacket, found: &mut Found) {
    let (Body::Feedback(feedback), Some(packet)) = (body, read.packet.findings()) else {
        return;
    };
    let blocking: Vec<&Finding> = packet
        .findings
        .iter()
        .filter(|finding| finding.counts_as_blocking())
        .collect();
    if usize::try_from(feedback.blocking_count) != Ok(blocking.len()) {
        let count = feedback.blocking_count;
        let right = blocking.len();
        let text = format!(
            "`blocking_count` is {count}, but {right} of the packet's findings block{}",
            named(&blocking)
        );
        found.push(
            Violation::new(
                Code::BlockingCountMismatch,
                Source::Message,
                body_place(message, "blocking_count"),
                text,
            )
            .field("body.blocking_count")
            .found(&count.to_string())
            .expected(right.to_string())
            .fix(format!("write {right}")),
        );
    }
}

/// Returns the ids of the first few findings, in brackets, for a person.
pub(super) fn named(findings: &[&Finding]) -> String {
    let ids: Vec<String> = findings
        .iter()
        .take(NAMED_MAX)
        .map(|finding| shown(finding.id.as_str()))
        .collect();
    match (ids.is_empty(), findings.len() > NAMED_MAX) {
        (true, _) => String::new(),
        (false, false) => format!(" ({})", ids.join(", ")),
        (false, true) => format!(" ({}, …)", ids.join(", ")),
    }
}

fn body_text<'m>(message: &'m Message, key: &str) -> Option<&'m str> {
    match message.read_body() {
        ReadBody::Mapping(mapping) => mapping.field_text(key),
        ReadBody::Unread | ReadBody::Malformed(_) => None,
    }
}

pub(super) fn body_place(message: &Message, key: &str) -> Option<Place> {
    match message.read_body() {
        ReadBody::Mapping(mapping) => mapping
            .at(&[Step::Key(key.to_owned())])
            .map(|node| node.place),
        ReadBody::Unread | ReadBody::Malformed(_) => None,
    }
}
