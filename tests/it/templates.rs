//! The templates of `validate-message new` pass the real daemon unchanged: those of a review, sent in order, end in an
//! approval.

use std::process::Command;

use message_schema::envelope::TextKind;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{binaries, names};

fn template(kind: &str, flags: &[&str]) -> String {
    let mut command = Command::new(binaries::validate_message());
    let output = command
        .args(["new", kind])
        .args(flags)
        .output()
        .expect("validate-message can be run");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_templates_of_a_review_end_in_an_approval() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let packet = template("findings_packet", &["--from", "codex", "--pr", "86"]);
    mailroom.put("packets/findings/pr86_r1.yaml", &packet);
    for (kind, from, to, round, phase) in [
        ("review_request", "claude", "codex", "1", "reviewing"),
        ("review_feedback", "codex", "claude", "1", "fixing"),
        ("review_addressed", "claude", "codex", "1", "addressed"),
        ("review_request", "claude", "codex", "2", "reviewing"),
        ("review_lgtm", "codex", "claude", "2", "approved"),
    ] {
        let text = template(
            kind,
            &["--from", from, "--to", to, "--pr", "86", "--round", round],
        );
        mailroom.post(from, &format!("{kind}-{round}.yaml"), &text);
        let output = mailroom.once();
        assert!(output.status.success(), "{kind}: {}\n{text}", said(&output));
        assert_eq!(mailroom.status()["reviews"][0]["phase"], phase, "{kind}");
    }
}

#[test]
fn the_template_of_every_other_type_is_delivered() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for kind in TextKind::ALL {
        let text = template(kind.as_str(), &["--from", "claude", "--to", "codex"]);
        mailroom.post("claude", &format!("{kind}.yaml"), &text);
    }
    let output = mailroom.once();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        names(mailroom.agent("codex", "inbox")).len(),
        TextKind::ALL.len()
    );
}
