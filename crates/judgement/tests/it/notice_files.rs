//! Events whose records go through a real spool: the resulting files in inboxes and folders, and whether they keep the
//! rules. These tests write the notices in `packets/valid/inbox/`.
use std::path::Path;

use review::{Act, Event, EventRecord, HandoffMode, PullAction, Record};

use crate::room::{ADDRESSED, FEEDBACK, REQUEST, Room, agent, finding, read, which};

/// Compares a text with the example of the corpus; `UPDATE=1` rewrites it.
fn is_example(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packets")
        .join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("a file to write");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{}; UPDATE=1 rewrites it", path.display());
}

#[test]
fn a_spent_budget_becomes_the_feedback_its_reviewer_did_not_give() {
    let mut room = Room::in_round_two();
    room.overrun();
    let (text, valid) = room.message("claude");
    assert_eq!(
        valid.envelope().parent_message_id.as_deref(),
        Some("msg-20260213T1000Z-claude-003")
    );
    is_example("valid/inbox/feedback_budget_spent.yaml", &text);
    let packet = "findings/pr86_r2_settled-1.yaml";
    is_example(packet, &read(&room.path(&format!("packets/{packet}"))));
    assert_eq!(room.names("agents/codex/inbox").len(), 0);
}

#[test]
fn a_spent_budget_without_open_threads_is_an_empty_packet() {
    let mut room = Room::new();
    room.post(REQUEST, None);
    room.hear(&Event::Turns {
        which: which(),
        count: 8,
    });
    let (text, _) = room.message("claude");
    assert!(text.contains("blocking_count: 0\n"), "{text}");
    let packet = read(&room.path("packets/findings/pr86_r1_settled-1.yaml"));
    assert!(
        packet.ends_with("findings: []\n") && packet.contains("within 8 turns"),
        "{packet}"
    );
}

/// Returns a packet of 25 findings, each in its own file and with a long recommendation.
fn long_packet(prefix: &str, before: &str) -> String {
    let mut packet = format!("findings:\n{before}");
    for n in 0..25 {
        let text = "word ".repeat(1_800);
        packet += &format!(
            "  - id: {prefix}-{n}\n    severity: P1\n    status: open\n    title: {prefix} {n}\n    file: src/{prefix}{n}.rs\n    recommendation: {text}\n"
        );
    }
    packet
}

#[test]
fn a_packet_larger_than_a_packet_may_be_is_carried_in_brief() {
    // Without touched files, a late finding is not deferred.
    let addressed = ADDRESSED.split_once("  touched_files").expect("a field").0;
    let mut room = Room::new();
    room.under(|policy| {
        policy.rounds = message_schema::limit::Rounds::new(3).expect("a limit");
    });
    room.post(REQUEST, None);
    room.post(
        &FEEDBACK.replace("count: 2", "count: 25"),
        Some(&long_packet("A", "")),
    );
    room.post(addressed, None);
    room.post(&REQUEST.replace("-001", "-003"), None);
    let replies: String = (0..25)
        .map(|n| format!("  - id: A-{n}\n    severity: P1\n    status: open\n    action: reply\n"))
        .collect();
    let feedback = FEEDBACK
        .replace("round: 1", "round: 2")
        .replace("count: 2", "count: 50");
    room.post(
        &feedback.replace("codex-001", "codex-002"),
        Some(&long_packet("B", &replies)),
    );
    room.post(
        &addressed
            .replace("round: 1", "round: 2")
            .replace("-002", "-004"),
        None,
    );
    room.post(&REQUEST.replace("-001", "-005"), None);
    room.overrun();
    let packet = read(&room.path("packets/findings/pr86_r3_settled-1.yaml"));
    assert!(packet.len() <= 256 * 1024, "{} bytes", packet.len());
    assert_eq!(packet.matches("- id: ").count(), 50);
    room.message("claude");
}

#[test]
fn a_merge_hands_the_findings_of_a_file_to_their_agent_as_a_message_and_a_packet() {
    let mut room = Room::in_round_two();
    room.under(|policy| {
        policy.handoff.mode = HandoffMode::Full;
        policy.handoff.target = Some(agent("gemini"));
    });
    room.person(Act::Hold(finding("F-003")));
    room.pull(PullAction::Merged);
    assert_eq!(
        room.names("agents/gemini/inbox").len(),
        2,
        "one task for each of two files"
    );
    assert_eq!(
        room.names("packets/handoff"),
        ["handoff-pr86-1.yaml", "handoff-pr86-2.yaml"]
    );
    let (text, valid) = room.message("gemini");
    assert_eq!(
        valid.envelope().related_packet.as_deref(),
        Some("packets/handoff/handoff-pr86-2.yaml")
    );
    is_example("valid/inbox/handoff.yaml", &text);
    is_example(
        "handoff/handoff-pr86-2.yaml",
        &read(&room.path("packets/handoff/handoff-pr86-2.yaml")),
    );

    let (text, _) = room.message("codex");
    is_example("valid/inbox/closed.yaml", &text);
    room.pull(PullAction::Merged);
    assert_eq!(
        room.names("agents/gemini/inbox").len(),
        2,
        "a repeated event hands nothing off"
    );
    let snapshots: Vec<String> = room.names("events/pr/86");
    assert_eq!(
        snapshots,
        [
            "20260213100006_merged_2.yaml",
            "20260213100007_merged_3.yaml"
        ]
    );
}

#[test]
fn a_task_longer_than_a_body_is_cut_behind_what_must_be_known() {
    let mut room = Room::new();
    room.under(|policy| {
        policy.handoff.mode = HandoffMode::Full;
        policy.handoff.target = Some(agent("gemini"));
    });
    room.post(REQUEST, None);
    // One file, and titles that share no word, so that none is a duplicate.
    let packet = long_packet("A", "")
        .replace("src/A", "src/same.rs # ")
        .replace("A 1", "A");
    let packet: String = packet
        .lines()
        .map(|line| match line.trim().strip_prefix("title: A ") {
            Some(n) => format!("    title: word{n}only\n"),
            None => format!("{line}\n"),
        })
        .collect();
    room.post(&FEEDBACK.replace("count: 2", "count: 25"), Some(&packet));
    room.pull(PullAction::Merged);
    let (text, _) = room.message("gemini");
    assert!(
        text.contains("must carry `handoff_ref: handoff-pr86-1`"),
        "{text}"
    );
    assert!(
        text.contains("(cut: see packets/handoff/handoff-pr86-1.yaml for the rest)"),
        "{text}"
    );
    let packet = read(&room.path("packets/handoff/handoff-pr86-1.yaml"));
    assert_eq!(packet.matches("- id: ").count(), 25);
}

#[test]
fn a_person_s_decision_is_told_with_name_and_reason_and_what_comes_next() {
    let mut room = Room::in_round_two();
    room.overrun();
    room.person(Act::Reopen);
    let (text, _) = room.message("claude");
    is_example("valid/inbox/decided.yaml", &text);
}

#[test]
fn a_missed_deadline_is_told_to_both_sides() {
    let mut room = Room::in_round_two();
    let (at, key) = room.tentative.state().next_deadline().expect("a deadline");
    let event = Event::Deadline {
        review: key.clone(),
        which: review::Deadline::PickUp,
    };
    room.now = at;
    room.hear(&event);
    let (text, _) = room.message("claude");
    is_example("valid/inbox/escalated.yaml", &text);
    let (text, _) = room.message("codex");
    assert!(
        text.contains("codex has nothing to do until then"),
        "{text}"
    );
}

#[test]
fn a_review_that_a_person_s_hold_ends_is_told_with_the_hold() {
    let mut room = Room::in_round_two();
    room.person(Act::Hold(finding("F-001")));
    let (text, _) = room.message("codex");
    assert!(text.contains("alice holds F-001 for people"), "{text}");
    room.person(Act::Hold(finding("F-002")));
    let (text, _) = room.message("claude");
    assert!(
        text.contains("blocker_held") && text.contains("alice holds F-002"),
        "{text}"
    );
    assert!(
        text.contains("The reason: the release waits for it\n"),
        "{text}"
    );
}

#[test]
fn findings_a_person_had_queued_are_counted_when_nothing_lands() {
    let mut room = Room::in_round_two();
    room.person(Act::Queue(finding("F-002")));
    room.pull(PullAction::Closed);
    let (text, _) = room.message("codex");
    assert!(text.contains("closed without being merged"), "{text}");
    assert!(text.contains("Not handed off (not_merged): 3.\n"), "{text}");
    assert!(text.contains("nobody gets now: 1.\n"), "{text}");
}

#[test]
fn several_messages_of_one_record_to_one_agent_have_names_of_their_own() {
    let mut room = Room::new();
    for (n, reviewer) in ["codex", "gemini", "gpt"].iter().enumerate() {
        room.post(
            &REQUEST
                .replace("codex", reviewer)
                .replace("-001", &format!("-{n}")),
            None,
        );
        let feedback = FEEDBACK
            .replace("codex", reviewer)
            .replace("count: 2", "count: 0");
        let packet = "findings: [{id: F-001, severity: P3, status: open}]\n";
        room.post(&feedback, Some(packet));
    }
    room.pull(PullAction::Merged);
    let names = ["_1-1.yaml", "_1-2.yaml", "_1.yaml"]
        .map(|end| format!("20260213100007_settled_closed{end}"));
    assert_eq!(room.names("agents/claude/inbox"), names);
}

#[test]
fn a_message_to_an_agent_that_is_gone_holds_up_nothing() {
    let mut room = Room::in_round_two();
    room.under(|policy| drop(policy.agents.remove(&agent("claude"))));
    std::fs::remove_dir_all(room.path("agents/claude")).expect("an agent to remove");
    room.overrun();
    assert!(!room.path("agents/claude").exists());
    let (at, key) = (
        room.spool.waiting(),
        room.tentative
            .state()
            .reviews()
            .next()
            .expect("a review")
            .1
            .phase
            .word(),
    );
    assert_eq!((at, key), (0, "escalated"));
}

#[test]
fn a_declined_event_leaves_no_file() {
    let mut room = Room::in_round_two();
    let record = room.person(Act::Resolve(finding("F-999")));
    assert!(matches!(record, Record::Event(EventRecord::Declined(_))));
    assert_eq!(
        room.names("agents/claude/inbox").len() + room.names("agents/codex/inbox").len(),
        0
    );
}
