//! Documents that are expensive to process: each as large as a file may be, and the worst of its kind that we know.
//! `cargo xtask bench hostile` measures their cost, and the suite bounds it.

mod packets;
mod room;
mod shapes;

use std::path::Path;

use crate::seed;

pub use room::Room;
pub use shapes::SIZE_MAX;

/// One file for an outbox, perhaps with its packet.
pub struct Hostile {
    /// The kind of file, in a few words.
    pub name: &'static str,
    /// The message.
    pub message: Vec<u8>,
    /// The packet that the message names, if any.
    pub packet: Option<Vec<u8>>,
}

/// The agent whose outbox gets them: a reviewer, because responses name packets.
pub const AGENT: &str = "codex";

/// The name of the file in the outbox.
pub const FILE: &str = "hostile.yaml";

/// The packet's path in a workspace.
const PACKET: &str = "packets/findings/f.yaml";

/// Returns a plain message first, then the hostile ones.
pub fn documents() -> Vec<Hostile> {
    let normal = seed::note(
        "question",
        "q-1",
        AGENT,
        "claude",
        &"What was changed, and why?\n".repeat(30),
    );
    let plain = Hostile {
        name: "a normal message",
        message: normal.into_bytes(),
        packet: None,
    };
    let of_message = shapes::all().into_iter().map(|(name, message)| Hostile {
        name,
        message,
        packet: None,
    });
    let of_packet = packets::all().into_iter().map(|(name, packet)| Hostile {
        name,
        message: response().into_bytes(),
        packet: Some(packet),
    });
    [plain]
        .into_iter()
        .chain(of_message)
        .chain(of_packet)
        .collect()
}

/// Returns the request that the responses answer.
pub fn request() -> String {
    let body = "pr: 86\nbranch: b\ndiff_summary: s\n";
    seed::review_message("review_request", "r-1", "claude", AGENT, "86", body)
}

fn response() -> String {
    let body = format!("findings_packet: {PACKET}\nround: 1\nblocking_count: 0\n");
    seed::review_message("review_feedback", "f-1", AGENT, "claude", "86", &body)
}

/// Writes the document into a workspace.
pub fn lay(root: &Path, document: &Hostile) {
    let files = [
        (
            root.join("agents").join(AGENT).join("outbox").join(FILE),
            Some(&document.message),
        ),
        (root.join(PACKET), document.packet.as_ref()),
    ];
    for (path, bytes) in files {
        let Some(bytes) = bytes else { continue };
        std::fs::write(&path, bytes).expect("room");
    }
}
