//! Applies all rules to one message: each group of rules adds its violations, and only a message without errors becomes
//! `Valid`.

use message_schema::{Level, Message};

use crate::found::Found;
use crate::input::{Origin, PacketInput};
use crate::rules::{self, MisplacedFields};
use crate::valid::Valid;
use crate::violation::{Source, Violations};

/// Checks a message with its packet. The error holds *all* violations, including warnings.
pub fn check(message: &Message, packet: PacketInput<'_>) -> Result<Valid, Violations> {
    judge(message, packet, Origin::Outbox)
}

/// Checks a message found in an inbox, where a `notification`, a `review_feedback` or a `handoff` may be the daemon's
/// own (`from: settled`). All other rules are those of [`check`].
pub fn check_delivered(message: &Message, packet: PacketInput<'_>) -> Result<Valid, Violations> {
    judge(message, packet, Origin::Inbox)
}

/// Checks a findings packet alone, without the fields that must agree with the message that names it. Each violation names
/// the packet as its file, and a place in it.
pub fn check_packet(bytes: &[u8]) -> Violations {
    let mut found = Found::default();
    rules::packet::check_alone(bytes, Source::Message, &mut found);
    Violations::sorted(found)
}

/// Tells a findings packet from a message: it has findings, and no field of an envelope or a task.
pub fn is_packet(message: &Message) -> bool {
    rules::envelope::is_packet(message.root())
}

fn judge(message: &Message, packet: PacketInput<'_>, origin: Origin) -> Result<Valid, Violations> {
    let mut found = Found::default();
    let misplaced = MisplacedFields::of(message);
    let envelope = rules::envelope::check(message, &misplaced, origin, &mut found);
    let body = rules::body::check(message, &misplaced, &mut found);
    let packet = rules::packet::check(message, packet, &mut found);
    rules::consistency::check(message, body.as_ref(), packet.as_ref(), &mut found);
    rules::gate::foresee(message, body.as_ref(), packet.as_ref(), &mut found);
    let violations = Violations::sorted(found);
    if violations.first_error().is_some() {
        return Err(violations);
    }
    let warnings = violations.into_vec();
    assert!(
        warnings
            .iter()
            .all(|violation| violation.level == Level::Warning),
        "what is no error is a warning"
    );
    match (envelope, body) {
        (Some(envelope), Some(body)) => Ok(Valid::new(
            envelope,
            body,
            packet.map(|read| read.packet),
            warnings,
        )),
        (None, _) | (_, None) => unreachable!("a part that cannot be read leaves an error behind"),
    }
}
