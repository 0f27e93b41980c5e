//! The messages of the first review, from `packets/`, and messages made like them.

use std::path::Path;

use crate::{read, repository};

/// The path of the first feedback's packet in a workspace.
pub const PACKET: &str = "packets/findings/20260213_review_loop_codex_r1.yaml";

/// One message, with its sender and its file name.
#[derive(Clone, Debug)]
pub struct Post {
    /// The agent whose outbox it goes into.
    pub from: &'static str,
    /// The recipient.
    pub to: &'static str,
    /// The file's name.
    pub file: &'static str,
    /// The text.
    pub text: String,
    /// The phase of the review once it is accepted.
    pub phase: &'static str,
}

/// Returns the five messages of the review of pull request 86, in order.
pub fn review() -> [Post; 5] {
    let [request, feedback, addressed, lgtm] = ["request", "feedback", "addressed", "lgtm"]
        .map(|word| read(repository().join(format!("packets/valid/review_{word}.yaml"))));
    let again = request
        .replace(
            "msg-20260213T1000Z-claude-001",
            "msg-20260213T1110Z-claude-003",
        )
        .replace("2026-02-13T10:00:00Z", "2026-02-13T11:10:00Z");
    assert_ne!(again, request, "the second request has an id of its own");
    let post = |from, to, file, text, phase| Post {
        from,
        to,
        file,
        text,
        phase,
    };
    [
        post("claude", "codex", "request-1.yaml", request, "reviewing"),
        post("codex", "claude", "feedback-1.yaml", feedback, "fixing"),
        post(
            "claude",
            "codex",
            "addressed-1.yaml",
            addressed,
            "addressed",
        ),
        post("claude", "codex", "request-2.yaml", again, "reviewing"),
        post("codex", "claude", "lgtm.yaml", lgtm, "approved"),
    ]
}

/// Copies the findings packet of the first round to the path that the feedback names.
pub fn lay_packet(root: &Path) {
    crate::write(root.join(PACKET), &read(repository().join(PACKET)));
}

/// Returns the id with which a message's text begins.
pub fn id(text: &str) -> &str {
    let id = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("id: \""));
    id.and_then(|id| id.strip_suffix('"'))
        .expect("the messages made here open with their id")
}

/// Makes a message outside of reviews.
pub fn note(kind: &str, id: &str, from: &str, to: &str, body: &str) -> String {
    format!(
        "id: \"{id}\"\nfrom: {from}\nto: {to}\ntype: {kind}\npriority: P2\n\
         created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"{kind}\"\nbody: |\n  {}\n",
        body.replace('\n', "\n  ")
    )
}

/// Makes a message of a review; the body's lines are given without indentation.
pub fn review_message(kind: &str, id: &str, from: &str, to: &str, pr: &str, body: &str) -> String {
    note(kind, id, from, to, body).replace("subject:", &format!("related_pr: \"{pr}\"\nsubject:"))
}
