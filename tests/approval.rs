//! Reviews of pull request 86 that end in an approval of a commit chosen by the test.

use crate::mailroom::{Mailroom, said};
use crate::seed;

/// A full commit.
pub const HEAD: &str = "9b2f41c07de1a3b85c6f2e94d1a07b3c5e8f6a21";

/// Another one.
pub const OTHER: &str = "1d2c3b4a5f6e7d8c9b0a1f2e3d4c5b6a7f8e9d0c";

/// Makes a mailroom without requests.
pub fn mailroom() -> Mailroom {
    Mailroom::new(&["claude", "codex", "gemini"])
}

/// Requests a review of a head from this reviewer.
pub fn ask(mailroom: &Mailroom, reviewer: &str, head: &str) {
    let body =
        format!("pr: 86\nbranch: parser\ndiff_summary: A parser.\ndeclared_head: \"{head}\"");
    let id = format!("ask-{reviewer}-{}", &head[..7]);
    let text = seed::review_message("review_request", &id, "claude", reviewer, "86", &body);
    send(mailroom, "claude", &id, &text);
}

/// Approves as this reviewer, with `more` lines in the body.
pub fn approve(mailroom: &Mailroom, reviewer: &str, more: &str) {
    let body = format!("quality_gate_result: pass\n{more}");
    let id = format!("lgtm-{reviewer}-{}", more.len());
    let text = seed::review_message(
        "review_lgtm",
        &id,
        reviewer,
        "claude",
        "86",
        body.trim_end(),
    );
    send(mailroom, reviewer, &id, &text);
}

/// Makes a mailroom in which codex approved this head.
pub fn approved(head: &str) -> Mailroom {
    let mailroom = mailroom();
    ask(&mailroom, "codex", head);
    approve(
        &mailroom,
        "codex",
        &format!("merge_ready: true\nvalidated_head: \"{head}\""),
    );
    mailroom
}

fn send(mailroom: &Mailroom, agent: &str, id: &str, text: &str) {
    mailroom.post(agent, &format!("{id}.yaml"), text);
    let output = mailroom.once();
    assert!(output.status.success(), "{}", said(&output));
}
