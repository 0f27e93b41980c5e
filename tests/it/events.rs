//! Events without a message: the daemon ends a wait, and writes the message that nobody else will write. Real files,
//! the real daemon, the real peer.

use std::path::PathBuf;
use std::process::Command;

use settled_tests::mailroom::{Mailroom, said, yaml};
use settled_tests::{binaries, ledger, list, names, peer, read, repository, seed, wait};

/// A request whose reviewer has one second from the delivery.
fn hurried() -> (Mailroom, String) {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "runtime_clock = \"delivery\"\n");
    let [request, ..] = seed::review();
    let request = request
        .text
        .replace("max_runtime_s_reviewer: 600", "max_runtime_s_reviewer: 1");
    (mailroom, request)
}

/// The feedback in the author's inbox that the daemon wrote, if any.
fn feedback(mailroom: &Mailroom) -> Option<PathBuf> {
    let is_feedback = |path: &PathBuf| path.to_string_lossy().contains("_settled_feedback_");
    list(mailroom.agent("claude", "inbox"))
        .into_iter()
        .find(is_feedback)
}

/// Checks that both validators accept the message, ours with its packet.
fn keeps_the_rules(message: &PathBuf) {
    peer::validates(message).unwrap_or_else(|said| panic!("{}{said}", read(message)));
    let output = Command::new(binaries::validate_message())
        .arg(message)
        .output();
    let output = output.expect("validate-message can be run");
    assert!(
        output.status.success(),
        "{}{}",
        read(message),
        said(&output)
    );
}

#[test]
fn a_reviewer_over_its_time_is_answered_for_by_the_daemon() {
    let (mailroom, request) = hurried();
    let _daemon = mailroom.serve();
    mailroom.post("claude", "request.yaml", &request);
    let file = wait::for_some("the daemon's feedback", || feedback(&mailroom));
    keeps_the_rules(&file);

    let message = yaml(&file);
    assert_eq!(
        (&message["from"], &message["type"]),
        (&"settled".into(), &"review_feedback".into())
    );
    assert_eq!(
        message["parent_message_id"],
        "msg-20260213T1000Z-claude-001"
    );
    let body = message["body"].as_str().expect("a text");
    assert!(
        body.contains("escalation: reviewer_budget_exceeded"),
        "{body}"
    );
    let packet = mailroom
        .root()
        .join(message["related_packet"].as_str().expect("a packet"));
    let packet = yaml(&packet);
    assert_eq!(
        (
            &packet["round"],
            packet["findings"].as_array().map(Vec::len)
        ),
        (&1.into(), Some(0))
    );
    let review = &mailroom.status()["reviews"][0];
    assert_eq!(
        (&review["phase"], &review["reason"]),
        (&"escalated".into(), &"reviewer_budget_exceeded".into())
    );
}

#[test]
fn a_deadline_that_came_while_nobody_served_is_kept_at_the_next_start_once() {
    let (mailroom, request) = hurried();
    mailroom.post("claude", "request.yaml", &request);
    wait::until("the daemon's feedback", || {
        let output = mailroom.once();
        assert!(output.status.success(), "{}", said(&output));
        feedback(&mailroom).is_some()
    });
    mailroom.once();
    assert_eq!(names(mailroom.agent("claude", "inbox")).len(), 1);
    let kinds: Vec<String> = ledger::records(mailroom.root())
        .iter()
        .map(|record| record["kind"].as_str().expect("a word").to_owned())
        .collect();
    assert_eq!(kinds, ["accepted", "deadline"]);
}

#[test]
fn a_review_whose_author_is_gone_ends_without_a_message_that_could_never_arrive() {
    let (mailroom, request) = hurried();
    mailroom.post("claude", "request.yaml", &request);
    assert!(mailroom.once().status.success());
    std::fs::remove_dir_all(mailroom.agent("claude", "")).expect("an agent to remove");
    wait::until("the deadline", || {
        let output = mailroom.once();
        assert!(
            output.status.success(),
            "nothing waits for a mailbox: {}",
            said(&output)
        );
        mailroom.status()["reviews"][0]["phase"] == "escalated"
    });
    assert!(!mailroom.agent("claude", "").exists());
}

#[test]
fn an_approval_that_took_more_turns_than_there_were_is_answered_for_by_the_daemon() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let [request, feedback_1, addressed, again, _] = seed::review();
    seed::lay_packet(mailroom.root());
    for post in [&request, &feedback_1, &addressed, &again] {
        mailroom.post(post.from, post.file, &post.text);
        assert!(mailroom.once().status.success());
    }
    let lgtm = seed::review_message(
        "review_lgtm",
        "l-1",
        "codex",
        "claude",
        "86",
        "quality_gate_result: pass\nmerge_ready: true",
    );
    mailroom.post(
        "codex",
        "lgtm.yaml",
        &lgtm.replace("subject:", "turns: 9\nsubject:"),
    );
    mailroom.once();
    assert_eq!(
        mailroom.refused("codex", "lgtm.yaml")["refused"],
        "turn_budget_exceeded"
    );
    let file = feedback(&mailroom).expect("the daemon's feedback");
    keeps_the_rules(&file);
    let message = yaml(&file);
    assert_eq!(
        message["parent_message_id"],
        "msg-20260213T1110Z-claude-003"
    );
    let body = message["body"].as_str().expect("a text");
    assert!(
        body.contains("round: 2") && body.contains("blocking_count: 2"),
        "{body}"
    );
    let packet = yaml(
        &mailroom
            .root()
            .join(message["related_packet"].as_str().expect("a packet")),
    );
    assert_eq!(
        packet["findings"].as_array().map(Vec::len),
        Some(3),
        "every thread is carried as it stands"
    );
}

#[test]
fn every_kind_of_message_of_the_daemon_in_the_corpus_passes_oacp_validate() {
    let messages = list(repository().join("packets/valid/inbox"));
    assert!(
        messages.len() >= 5,
        "feedback, handoff, and three kinds of word: {messages:?}"
    );
    for message in messages {
        peer::validates(&message).unwrap_or_else(|said| panic!("{}{said}", read(&message)));
    }
}
