//! The rules of a review, each with a case on either side.

use crate::table::{Note, Table, agent, claude, codex};
use message_schema::limit::Rounds;
use review::{Hold, Notice, Phase, Record, Role, ThreadMode, ThreadState};

type Said = Result<String, Vec<String>>;

fn ok(word: &str) -> Said {
    Ok(word.to_owned())
}

fn refused(codes: &[&str]) -> Said {
    Err(codes.iter().map(|&code| code.to_owned()).collect())
}

/// A table with a P1 raised in round 1.
fn fixing() -> Table {
    let mut table = Table::default();
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(table.feedback(1, "F-001 P1 open"), ok("fixing"));
    table
}

/// A table in round 2, the P1 reported as addressed.
fn second_round() -> Table {
    let mut table = fixing();
    assert_eq!(table.addressed(1, &["F-001"]), ok("addressed"));
    assert_eq!(table.request(), ok("reviewing"));
    table
}

#[test]
fn the_review_of_the_seed_ends_in_approval() {
    let mut table = second_round();
    assert_eq!(table.lgtm("", None), ok("approved"));
    let Phase::Approved(approval) = &table.review().phase else { panic!("{:?}", table.review()) };
    assert_eq!(approval.commit.as_ref().map(|sha| sha.as_str()), Some("abc1234"));
    assert_eq!(table.replayed(), table.state);
}

#[test]
fn an_invocation_has_one_response() {
    let mut table = fixing();
    assert_eq!(table.feedback(1, "F-002 P1 open"), refused(&["duplicate_terminal_response"]));
    assert_eq!(table.lgtm("", None), refused(&["duplicate_terminal_response"]));
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
    assert_eq!(table.feedback(2, "F-001 P1 open"), refused(&["round_mismatch"]));
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
fn a_held_blocker_with_nothing_else_open_escalates_at_once() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open").expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.feedback(2, "F-001 P1 open action: veto"), ok("escalated"));
    let Phase::Escalated(reason) = &table.review().phase else { panic!("not escalated") };
    assert_eq!(reason.as_str(), "blocker_held");
}

#[test]
fn a_request_may_ask_for_fewer_rounds_and_is_clamped_at_the_projects() {
    let mut table = Table::default();
    table.request_with("max_rounds: 1").expect("opens");
    assert_eq!(table.review().rounds.get(), 1);
    assert_eq!(table.feedback(1, "F-001 P1 open"), ok("escalated"));

    let mut table = Table::default();
    table.request_with("max_rounds: 3").expect("opens");
    assert_eq!(table.review().rounds.get(), 2);
    let Record::Accepted(accepted) = table.last_record() else { panic!("not accepted") };
    assert_eq!(accepted.warnings.len(), 1, "{:?}", accepted.warnings);
}

#[test]
fn roles_do_not_swap_and_no_third_agent_joins() {
    let mut table = Table::default();
    table.request().expect("opens");
    let body = "pr: 86\nbranch: b\ndiff_summary: s";
    let swapped = Note { from: "codex", to: "claude", body, ..claude("review_request") };
    assert_eq!(table.send(&swapped), refused(&["wrong_direction"]));
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    let own = Note { from: "claude", to: "codex", body: lgtm, ..codex("review_lgtm") };
    assert_eq!(table.send(&own), refused(&["wrong_direction"]));
    let third = Note { from: "gemini", to: "claude", body: lgtm, ..codex("review_lgtm") };
    assert_eq!(table.send(&third), refused(&["wrong_direction"]));
    let other_author = Note { from: "gemini", to: "codex", body, ..claude("review_request") };
    assert_eq!(table.send(&other_author), refused(&["wrong_direction"]));
}

#[test]
fn a_configured_role_is_judged_first() {
    let mut table = Table::default();
    table.policy.agents.insert(agent("codex"), [Role::Author].into());
    assert_eq!(table.request(), refused(&["wrong_direction"]));
    table.policy.agents.insert(agent("codex"), [Role::Reviewer].into());
    assert_eq!(table.request(), ok("reviewing"));
}

#[test]
fn a_message_without_a_pull_request_finds_its_review() {
    let mut table = Table::default();
    table.request().expect("opens");
    let lgtm = "quality_gate_result: pass\nmerge_ready: true";
    assert_eq!(table.send(&Note { envelope: "", body: lgtm, ..codex("review_lgtm") }), ok("approved"));
}

#[test]
fn between_two_open_reviews_the_parent_decides() {
    let mut table = Table::default();
    table.request().expect("opens"); // msg-1
    let other = Note {
        envelope: "related_pr: 87\n",
        body: "pr: 87\nbranch: b\ndiff_summary: s",
        ..claude("review_request")
    };
    table.send(&other).expect("opens");
    let body = "quality_gate_result: pass\nmerge_ready: true";
    let lgtm = |envelope| Note { envelope, body, ..codex("review_lgtm") };
    assert_eq!(table.send(&lgtm("")), refused(&["review_ambiguous"]));
    assert_eq!(table.send(&lgtm("parent_message_id: msg-1\n")), ok("approved"));
    assert_eq!(table.review().phase.word(), "approved", "the review of pull request 86");
}

#[test]
fn three_refused_responses_end_the_round_with_a_person() {
    let mut table = Table::default();
    table.request().expect("opens");
    for left in [2, 1] {
        assert_eq!(table.lgtm("", Some("F-001 P1 open")), refused(&["quality_gate_violation blocking"]));
        assert_eq!(table.review().attempts_left(), Some(left));
    }
    assert_eq!(table.lgtm("", Some("F-001 P1 open")), refused(&["quality_gate_violation blocking"]));
    let Phase::Escalated(reason) = &table.review().phase else { panic!("not escalated") };
    assert_eq!(reason.as_str(), "protocol_violation");
    assert_eq!(table.feedback(1, "F-001 P1 open"), refused(&["invocation_closed"]));
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
fn the_gate_names_every_broken_clause() {
    let mut table = Table::default();
    table.request_with("validation_commands: [make test]").expect("opens");
    let findings = "F-001 P0 open\nF-002 P2 open blocking: true\nF-003 P3 open\nran fail make lint";
    assert_eq!(
        table.lgtm("", Some(findings)),
        refused(&[
            "quality_gate_violation p0",
            "quality_gate_violation blocking",
            "quality_gate_violation nits",
            "quality_gate_violation validation",
            "quality_gate_violation validation",
        ])
    );
}

#[test]
fn an_approval_that_says_fail_contradicts_itself() {
    let mut table = Table::default();
    table.request().expect("opens");
    let body = "quality_gate_result: fail\nmerge_ready: false";
    let said = table.send(&Note { body, ..codex("review_lgtm") });
    assert_eq!(said, refused(&["quality_gate_violation contradiction"]));
}

#[test]
fn nits_defer_open_findings_by_source_or_one_for_one() {
    let nit = |id: &str, more: &str| {
        format!("  - {{nit_id: {id}, tier: P3, summary: s, owner: claude, next_action: n{more}}}\n")
    };
    for nits in [nit("N-1", ", source: F-001") + &nit("N-2", ""), nit("N-1", "") + &nit("N-2", "")] {
        let mut table = Table::default();
        table.request().expect("opens");
        let said = table.lgtm(&format!("nits:\n{nits}"), Some("F-001 P3 open\nF-002 P3 open"));
        assert_eq!(said, ok("approved"));
        assert!(table.review().threads.values().all(|thread| thread.state == ThreadState::Deferred));
    }
    let mut table = Table::default();
    table.request().expect("opens");
    let one = format!("nits:\n{}", nit("N-1", ""));
    let said = table.lgtm(&one, Some("F-001 P3 open\nF-002 P3 open"));
    assert_eq!(said, refused(&["quality_gate_violation nits"]));
}

#[test]
fn a_command_counts_by_its_last_result() {
    let mut table = Table::default();
    table.request_with("validation_commands: [make test]").expect("opens");
    assert_eq!(table.lgtm("", Some("ran warn make test")), refused(&["quality_gate_violation validation"]));
    assert_eq!(table.lgtm("", Some("ran fail make test\nran pass make test")), ok("approved"));
}

#[test]
fn a_project_can_insist_on_validation() {
    let mut table = Table::default();
    table.policy.gate.require_validation = true;
    table.request().expect("opens");
    assert_eq!(table.lgtm("", None), refused(&["quality_gate_violation validation"]));
    assert_eq!(table.lgtm("", Some("ran warn make test")), ok("approved"));
}

#[test]
fn silence_resolves_what_the_author_reported_and_nothing_else() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open\nF-002 P1 open").expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.lgtm("", None), refused(&["action_missing"]));
    assert_eq!(table.lgtm("", Some("F-002 P1 fixed")), ok("approved"));
}

#[test]
fn explicit_threads_infer_nothing() {
    let mut table = second_round();
    table.policy.threads = ThreadMode::Explicit;
    assert_eq!(table.lgtm("", None), refused(&["action_missing"]));
    assert_eq!(table.lgtm("", Some("F-001 P1 fixed")), refused(&["action_missing"]));
    assert_eq!(table.lgtm("", Some("F-001 P1 fixed action: resolve")), ok("approved"));
}

#[test]
fn an_action_needs_an_open_thread() {
    let mut table = second_round();
    table.policy.rounds = Rounds::MAX;
    let said = table.feedback(2, "F-001 P1 open action: resolve\nF-009 P1 open action: reply");
    assert_eq!(said, refused(&["thread_unknown"]));
    let said = table.feedback(2, "F-001 P1 open\nF-009 P1 open same_as: F-001; action: veto");
    assert_eq!(said, refused(&["action_multiple"]));
}

#[test]
fn the_last_round_takes_no_reply_on_a_thread() {
    let mut table = second_round();
    assert_eq!(table.feedback(2, "F-001 P1 open action: reply"), refused(&["action_illegal"]));
}

#[test]
fn wont_fix_on_a_p1_is_a_persons_word() {
    let mut table = second_round();
    assert_eq!(table.lgtm("", Some("F-001 P1 wont_fix")), refused(&["action_illegal"]));
    let mut fresh = Table::default();
    fresh.request().expect("opens");
    assert_eq!(fresh.lgtm("", Some("F-001 P1 wont_fix")), refused(&["action_illegal"]));
}

#[test]
fn a_known_id_keeps_its_finding() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open title: empty diff; file: a.rs").expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    let said = table.feedback(2, "F-001 P1 open title: leaks a handle; file: b.rs");
    assert_eq!(said, refused(&["finding_id_reused"]));
}

#[test]
fn a_spent_reviewer_may_leave_threads_without_action() {
    let mut table = second_round();
    let said = table.feedback_with(2, "escalation: reviewer_budget_exceeded", "F-002 P1 open");
    assert_eq!(said, ok("escalated"));
    assert!(table.review().threads.values().all(|thread| thread.is_open()));
}

#[test]
fn only_a_new_head_opens_a_generation_after_approval() {
    let mut table = second_round();
    table.lgtm("validated_head: abc1234def", None).expect("approved");
    assert_eq!(table.request(), refused(&["already_approved"]));
    assert_eq!(table.request_with("declared_head: ABC1234"), refused(&["already_approved"]));
    assert_eq!(table.request_with("declared_head: fffffff"), ok("reviewing"));
    assert_eq!((table.review().generation, table.review().round), (2, 3));
    assert_eq!(table.review().round_of_generation(), 1);
}

#[test]
fn a_pull_request_has_five_generations() {
    let mut table = Table::default();
    for generation in 1..=5 {
        assert_eq!(table.request_with(&format!("declared_head: aaaaaa{generation}")), ok("reviewing"));
        assert_eq!(table.lgtm("", None), ok("approved"));
    }
    assert_eq!(table.request_with("declared_head: bbbbbbb"), refused(&["iteration_limit_exceeded"]));
}

#[test]
fn the_same_bytes_are_a_duplicate_and_other_bytes_a_collision() {
    let mut table = Table::default();
    let note = Note { body: "hello", ..claude("question") };
    let text = crate::table::text(&note, "msg-x");
    assert_eq!(table.post("claude", &text, None), ok("delivered"));
    let before = table.state.clone();
    assert_eq!(table.post("claude", &text, None), ok("duplicate"));
    assert_eq!(table.state, before);
    let other = crate::table::text(&Note { body: "hello again", ..note }, "msg-x");
    assert_eq!(table.post("claude", &other, None), refused(&["id_collision"]));
}

#[test]
fn the_id_of_a_refused_message_stays_free() {
    let mut table = Table::default();
    let wrong = crate::table::text(&Note { body: "hello", to: "nobody", ..claude("question") }, "msg-x");
    assert_eq!(table.post("claude", &wrong, None), refused(&["unknown_recipient"]));
    let right = crate::table::text(&Note { body: "hello", ..claude("question") }, "msg-x");
    assert_eq!(table.post("claude", &right, None), ok("delivered"));
}

#[test]
fn the_outbox_proves_the_sender() {
    let mut table = Table::default();
    let text = crate::table::text(&Note { body: "hello", ..claude("question") }, "msg-x");
    assert_eq!(table.post("gemini", &text, None), refused(&["sender_mismatch"]));
}

#[test]
fn an_expired_message_is_refused() {
    let mut table = Table::default();
    let note = |envelope| Note { envelope, body: "hello", ..claude("question") };
    assert_eq!(table.send(&note("expires_at: 2026-02-13T10:00:00Z\n")), refused(&["expired"]));
    assert_eq!(table.send(&note("expires_at: 2026-02-13T11:00:00Z\n")), ok("delivered"));
}

#[test]
fn a_pair_exchanges_sixty_messages_an_hour_outside_the_loop() {
    let mut table = Table::default();
    let note = Note { body: "hello", ..claude("question") };
    for _ in 0..60 {
        assert_eq!(table.send(&note), ok("delivered"));
    }
    assert_eq!(table.send(&note), refused(&["rate_limited"]));
    assert_eq!(table.request(), ok("reviewing"), "the review loop has its own limits");
    table.now += chrono::TimeDelta::hours(1);
    assert_eq!(table.send(&note), ok("delivered"));
}

#[test]
fn thirty_notices_a_minute_and_then_a_sum() {
    let mut table = Table::default();
    let note = Note { to: "nobody", body: "hello", ..claude("question") };
    let mut notices = Vec::new();
    for _ in 0..33 {
        table.send(&note).expect_err("refused");
        table.now -= chrono::TimeDelta::seconds(1);
        let Record::Refused { notice, .. } = table.last_record() else { panic!("not refused") };
        notices.push(notice.clone());
    }
    assert!(notices[..30].iter().all(|notice| matches!(notice, Notice::Sent { summed_up: 0, .. })));
    assert!(notices[30..].iter().all(|notice| *notice == Notice::Withheld));
    table.now += chrono::TimeDelta::minutes(1);
    table.send(&note).expect_err("refused");
    let Record::Refused { notice, .. } = table.last_record() else { panic!("not refused") };
    assert!(matches!(notice, Notice::Sent { summed_up: 3, .. }), "{notice:?}");
}

#[test]
fn an_answer_to_a_notice_gets_no_notice() {
    let mut table = Table::default();
    table.send(&Note { to: "nobody", body: "hello", ..claude("question") }).expect_err("refused");
    let Record::Refused { notice: Notice::Sent { id, .. }, .. } = table.last_record().clone() else {
        panic!("no notice")
    };
    let envelope = format!("parent_message_id: {id}\n");
    let answer = Note { to: "nobody", body: "why?", envelope: &envelope, ..claude("question") };
    table.send(&answer).expect_err("refused");
    let Record::Refused { notice, .. } = table.last_record() else { panic!("not refused") };
    assert_eq!(*notice, Notice::Never);
}
