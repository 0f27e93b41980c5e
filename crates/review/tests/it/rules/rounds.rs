//! Phases, rounds, generations, attempts and replacements.

use super::{fixing, ok, refused, second_round};
use crate::table::{Note, Table, claude, codex};
use review::{Hold, Phase, ThreadState};

#[test]
fn feedback_a_fix_and_a_second_round_end_in_approval() {
    let mut table = second_round();
    assert_eq!(table.lgtm("", None), ok("approved"));
    let Phase::Approved(approval) = &table.review().phase else {
        panic!("{:?}", table.review())
    };
    assert_eq!(
        approval.commit.as_ref().map(|sha| sha.as_str()),
        Some("abc1234")
    );
    assert_eq!(table.replayed(), table.state);
}

#[test]
fn an_invocation_has_one_response() {
    let mut table = fixing();
    assert_eq!(
        table.feedback(1, "F-002 P1 open"),
        refused(&["duplicate_terminal_response"])
    );
    assert_eq!(
        table.lgtm("", None),
        refused(&["duplicate_terminal_response"])
    );
}

#[test]
fn a_response_needs_a_request() {
    let mut table = Table::default();
    assert_eq!(table.lgtm("", None), refused(&["no_open_request"]));
    assert_eq!(table.addressed(1, &[]), refused(&["no_open_request"]));
}

#[test]
fn a_round_in_a_message_is_the_daemons() {
    let mut table = Table::default();
    assert_eq!(table.request_with("round: 2"), refused(&["round_mismatch"]));
    assert_eq!(table.request_with("round: 1"), ok("reviewing"));
    assert_eq!(
        table.feedback(2, "F-001 P1 open"),
        refused(&["round_mismatch"])
    );
    assert_eq!(table.feedback(1, "F-001 P1 open"), ok("fixing"));
    assert_eq!(table.addressed(2, &[]), refused(&["round_mismatch"]));
    assert_eq!(table.addressed(1, &[]), ok("addressed"));
    assert_eq!(table.addressed(1, &[]), refused(&["round_mismatch"]));
    assert_eq!(table.request_with("round: 2"), ok("reviewing"));
}

#[test]
fn blocking_findings_are_addressed_before_the_next_request() {
    let mut table = fixing();
    assert_eq!(table.request(), refused(&["addressed_required"]));
}

#[test]
fn without_blocking_findings_the_next_request_may_come_at_once() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(table.feedback(1, "F-001 P3 open"), ok("fixing"));
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(table.review().round, 2);
}

#[test]
fn an_open_request_admits_no_other() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(table.request(), refused(&["request_already_open"]));
}

#[test]
fn the_last_round_ends_with_a_person_and_takes_no_third_request() {
    let mut table = second_round();
    assert_eq!(table.feedback(2, "F-001 P1 not_fixed"), ok("escalated"));
    assert_eq!(table.request(), refused(&["round_limit_exceeded"]));
    assert_eq!(table.addressed(2, &[]), refused(&["review_closed"]));
    assert_eq!(
        table.review().threads.values().next().map(|t| t.state),
        Some(ThreadState::Held(Hold::Escalate))
    );
}

#[test]
fn an_escalation_ends_the_review_with_a_person() {
    let mut table = Table::default();
    table.request().expect("opens");
    let said = table.feedback_with(1, "escalation: needs_design_review", "F-001 P1 open");
    assert_eq!(said, ok("escalated"));
    assert_eq!(table.request(), refused(&["review_closed"]));
}

#[test]
fn a_request_may_ask_for_fewer_rounds_and_is_clamped_at_the_projects() {
    let mut table = Table::default();
    table.request_with("max_rounds: 1").expect("opens");
    assert_eq!(table.review().rounds.get(), 1);
    assert_eq!(table.feedback(1, "F-001 P1 open"), ok("escalated"));

    for (asked, rounds, alerts) in [(1, 1, 0), (2, 2, 0), (3, 2, 1)] {
        let mut table = Table::default();
        let fields = format!("max_rounds: {asked}");
        table.request_with(&fields).expect("opens");
        assert_eq!(table.review().rounds.get(), rounds, "{asked} asked");
        let Some(accepted) = table.last_record().accepted() else {
            panic!("not accepted")
        };
        assert_eq!(accepted.alerts.len(), alerts, "{:?}", accepted.alerts);
    }
}

#[test]
fn three_refused_responses_end_the_round_with_a_person() {
    let mut table = Table::default();
    table.request().expect("opens");
    for left in [2, 1] {
        assert_eq!(
            table.lgtm("", Some("F-001 P1 open")),
            refused(&["quality_gate_violation blocking"])
        );
        assert_eq!(table.review().attempts_left(), Some(left));
    }
    assert_eq!(
        table.lgtm("", Some("F-001 P1 open")),
        refused(&["quality_gate_violation blocking"])
    );
    let Phase::Escalated(reason) = &table.review().phase else {
        panic!("not escalated")
    };
    assert_eq!(reason.to_string(), "protocol_violation");
    assert_eq!(
        table.feedback(1, "F-001 P1 open"),
        refused(&["invocation_closed"])
    );
    assert_eq!(table.replayed(), table.state);
}

#[test]
fn a_refusal_outside_the_invocation_costs_no_attempt() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(table.request(), refused(&["request_already_open"]));
    assert_eq!(table.review().attempts_left(), Some(3));
}

#[test]
fn only_a_new_head_opens_a_generation_after_approval() {
    let mut table = second_round();
    table
        .lgtm("validated_head: abc1234def", None)
        .expect("approved");
    assert_eq!(table.request(), refused(&["already_approved"]));
    assert_eq!(
        table.request_with("declared_head: ABC1234"),
        refused(&["already_approved"])
    );
    assert_eq!(
        table.request_with("declared_head: fffffff"),
        ok("reviewing")
    );
    assert_eq!((table.review().generation, table.review().round), (2, 3));
    assert_eq!(table.review().round_of_generation(), 1);
}

#[test]
fn a_pull_request_has_five_generations() {
    let mut table = Table::default();
    for generation in 1..=5 {
        assert_eq!(
            table.request_with(&format!("declared_head: aaaaaa{generation}")),
            ok("reviewing")
        );
        assert_eq!(table.lgtm("", None), ok("approved"));
    }
    assert_eq!(
        table.request_with("declared_head: bbbbbbb"),
        refused(&["iteration_limit_exceeded"])
    );
}

#[test]
fn all_faults_of_a_response_are_told_at_once() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P0 open").expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table
        .request_with("validation_commands: [make test]")
        .expect("round 2");
    let body = "quality_gate_result: fail\nmerge_ready: false\nround: 7";
    assert_eq!(
        table.send(&Note {
            body,
            ..codex("review_lgtm")
        }),
        refused(&[
            "round_mismatch",
            "action_missing",
            "quality_gate_violation validation",
            "quality_gate_violation contradiction",
        ])
    );
    let note = Note {
        to: "[zed, settled]",
        envelope: "expires_at: 2020-01-01T00:00:00Z\n",
        body: "x",
        ..claude("question")
    };
    assert_eq!(
        table.send(&note),
        refused(&["not_for_the_daemon", "unknown_recipient", "expired"])
    );
}

#[test]
fn the_reviewers_words_are_not_the_daemons() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback_with(1, "escalation: max_rounds_exceeded", "F-001 P1 open")
        .expect("escalates");
    assert_eq!(
        table.request(),
        refused(&["review_closed"]),
        "round 1 of 2 is not the last"
    );
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback_with(1, "escalation: protocol_violation", "F-001 P1 open")
        .expect("escalates");
    let Phase::Escalated(reason) = &table.review().phase else {
        panic!("not escalated")
    };
    assert_eq!(reason.to_string(), "the reviewer says: protocol_violation");
}

#[test]
fn an_open_request_is_replaced_twice_at_most_and_nothing_starts_afresh() {
    let mut table = Table::default();
    table.request().expect("opens"); // msg-1
    assert_eq!(
        table.request_with("supersedes_message_id: msg-9"),
        refused(&["supersedes_unknown"])
    );
    table
        .lgtm("", Some("F-001 P1 open"))
        .expect_err("costs an attempt");
    assert_eq!(
        table.request_with("supersedes_message_id: msg-1\nmax_turns_reviewer: 99"),
        ok("reviewing")
    );
    assert_eq!(table.review().attempts_left(), Some(2));
    let Phase::Reviewing(invocation) = &table.review().phase else {
        panic!("not reviewing")
    };
    assert_eq!(
        (invocation.request.as_str(), invocation.turns.get()),
        ("msg-4", 8)
    );
    assert_eq!(
        table.request_with("supersedes_message_id: msg-1"),
        refused(&["supersedes_unknown"])
    );
    assert_eq!(
        table.request_with("supersedes_message_id: msg-4"),
        ok("reviewing")
    );
    assert_eq!(
        table.request_with("supersedes_message_id: msg-6"),
        refused(&["request_already_open"])
    );
    assert_eq!(table.review().round, 1);
}
