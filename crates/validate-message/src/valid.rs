//! The proof that a message is correct: only `check` makes one.

use message_schema::body::Body;
use message_schema::envelope::Envelope;
use message_schema::id::PacketPath;
use message_schema::packet::FindingsPacket;

use crate::violation::Violation;

/// A message in which every rule holds that its file and its packet can show.
#[derive(Clone, Debug)]
pub struct Valid {
    envelope: Envelope,
    body: Body,
    packet: Option<Packet>,
    warnings: Vec<Violation>,
}

/// A findings packet as it was read: once, and these are its bytes from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Where it lay in the workspace.
    pub path: PacketPath,
    /// Its exact text.
    pub text: String,
    /// What it says.
    pub findings: FindingsPacket,
}

impl Valid {
    pub(crate) fn new(
        envelope: Envelope,
        body: Body,
        packet: Option<Packet>,
        warnings: Vec<Violation>,
    ) -> Self {
        Self {
            envelope,
            body,
            packet,
            warnings,
        }
    }

    /// The envelope.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The findings packet, when the message names one and it was handed in.
    pub fn packet(&self) -> Option<&Packet> {
        self.packet.as_ref()
    }

    /// What the sender may want to know, although nothing is refused.
    pub fn warnings(&self) -> &[Violation] {
        &self.warnings
    }
}
