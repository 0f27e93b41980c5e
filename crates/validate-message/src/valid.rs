//! The proof that a message is correct: only `check` makes one.

use std::collections::BTreeSet;

use message_schema::body::{Body, Examined};
use message_schema::envelope::Envelope;
use message_schema::id::{PacketPath, RepoPath};
use message_schema::packet::{ChangesPacket, FindingsPacket};

use crate::violation::Violation;

/// A message that keeps every rule which its file and its packet can show.
#[derive(Clone, Debug)]
pub struct Valid {
    envelope: Envelope,
    body: Body,
    packet: Option<Packet>,
    warnings: Vec<Violation>,
}

/// A packet that was read once, with the bytes read then.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Its path in the workspace.
    pub path: PacketPath,
    /// Its exact text.
    pub text: String,
    /// Its content.
    pub content: PacketContent,
}

/// The content of a packet, by the type of the message that names it.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketContent {
    /// The findings of a response.
    Findings(Box<FindingsPacket>),
    /// The files that the change of a request touches.
    Changes(ChangesPacket),
}

impl Packet {
    /// Returns the findings, if it is a packet of findings.
    pub fn findings(&self) -> Option<&FindingsPacket> {
        match &self.content {
            PacketContent::Findings(findings) => Some(findings),
            PacketContent::Changes(_) => None,
        }
    }
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

    /// Returns the envelope.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Returns the body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the packet, if the message names one and it was handed in.
    pub fn packet(&self) -> Option<&Packet> {
        self.packet.as_ref()
    }

    /// Returns the findings of its packet.
    pub fn findings(&self) -> Option<&FindingsPacket> {
        self.packet.as_ref()?.findings()
    }

    /// Returns the files that a request says its change touches, from its body and its packet.
    pub fn changed_files(&self) -> Vec<RepoPath> {
        let listed = match &self.body {
            Body::Request(request) => request.changed_files.as_slice(),
            Body::Feedback(_) | Body::Addressed(_) | Body::Lgtm(_) | Body::Text(_) => &[],
        };
        let in_packet = match self.packet.as_ref().map(|packet| &packet.content) {
            Some(PacketContent::Changes(changes)) => changes.changed_files.as_slice(),
            Some(PacketContent::Findings(_)) | None => &[],
        };
        let all: BTreeSet<&RepoPath> = listed.iter().chain(in_packet).collect();
        all.into_iter().cloned().collect()
    }

    /// Returns the lists of files that its reviewer has read, from a response's body and its packet.
    pub fn examined(&self) -> impl Iterator<Item = &Examined> {
        let in_body = match &self.body {
            Body::Feedback(feedback) => feedback.examined.as_ref(),
            Body::Lgtm(lgtm) => lgtm.examined.as_ref(),
            Body::Request(_) | Body::Addressed(_) | Body::Text(_) => None,
        };
        let in_packet = self.findings().and_then(|packet| packet.examined.as_ref());
        in_body.into_iter().chain(in_packet)
    }

    /// Returns the warnings: the message is valid, but its sender may want to know them.
    pub fn warnings(&self) -> &[Violation] {
        &self.warnings
    }
}
