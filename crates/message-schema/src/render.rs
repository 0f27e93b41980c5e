//! Messages and packets as text, such that our reader, OACP's and YAML 1.1's read the same back.

use serde::Serialize;

use crate::body::Body;
use crate::envelope::Envelope;
use crate::packet::FindingsPacket;

/// Writes a message as YAML, the body of review types as a literal block. The body of the
/// envelope is not used: `body` is what is written.
pub fn render_message(envelope: &Envelope, body: &Body) -> String {
    let text = match body {
        Body::Request(body) => render(body),
        Body::Feedback(body) => render(body),
        Body::Addressed(body) => render(body),
        Body::Lgtm(body) => render(body),
        Body::Text(text) => text.clone(),
    };
    render(&Envelope { body: text, ..envelope.clone() })
}

/// Writes a findings packet as YAML.
pub fn render_packet(packet: &FindingsPacket) -> String {
    render(packet)
}

pub(crate) fn render(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).expect("our types are mappings with text keys, which YAML can hold")
}
