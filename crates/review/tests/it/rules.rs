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
    assert_eq!(reason.to_string(), "blocker_held");
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
    assert_eq!(reason.to_string(), "protocol_violation");
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

#[test]
fn a_finding_raised_to_a_blocker_stands_in_the_way_wherever_its_thread_is() {
    let nit = "nits:\n  - {nit_id: N-1, tier: P3, summary: s, owner: claude, next_action: n, source: F-003}";
    // Open, and only restated without an action.
    let mut table = Table::default();
    table.policy.threads = ThreadMode::Explicit;
    table.request().expect("opens");
    table.feedback(1, "F-003 P3 open").expect("feedback");
    table.request().expect("round 2");
    assert_eq!(table.lgtm(nit, Some("F-003 P0 open")), refused(&["action_missing"]));

    // With a person, by its own id and by another one's.
    for raised in ["F-003 P0 open", "F-009 P0 open same_as: F-003"] {
        let mut table = Table::default();
        table.policy.rounds = Rounds::MAX;
        table.request().expect("opens");
        table.feedback(1, "F-003 P3 open").expect("feedback");
        table.request().expect("round 2");
        table.feedback(2, "F-003 P3 open action: veto").expect("feedback");
        table.request().expect("round 3");
        assert_eq!(table.lgtm("", Some(raised)), refused(&["quality_gate_violation p0"]));
    }

    // Deferred under the nit of an earlier approval.
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm(nit, Some("F-003 P3 open")).expect("approved");
    table.request_with("declared_head: fffffff").expect("a new generation");
    assert_eq!(table.feedback(2, "F-003 P0 open"), ok("fixing"));
    assert_eq!(table.review().open_blockers(), 1);
    assert_eq!(table.request(), refused(&["addressed_required"]));
}

#[test]
fn a_spent_reviewers_word_raises_a_thread_too() {
    let mut table = Table::default();
    table.policy.threads = ThreadMode::Explicit;
    table.request().expect("opens");
    table.feedback(1, "F-001 P3 open").expect("feedback");
    table.request().expect("round 2");
    table.feedback_with(2, "escalation: reviewer_budget_exceeded", "F-001 P0 open").expect("escalates");
    assert_eq!(table.review().open_blockers(), 1);
}

#[test]
fn no_way_of_saying_it_leaves_a_p0_or_p1_unfixed() {
    let mut table = second_round();
    assert_eq!(table.lgtm("", Some("F-001 P1 wont_fix action: resolve")), refused(&["action_illegal"]));
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-002 P2 open blocking: true").expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.lgtm("", Some("F-002 P0 wont_fix")), refused(&["action_illegal"]));
    assert_eq!(table.lgtm("", Some("F-002 P2 wont_fix blocking: true")), ok("approved"));
}

#[test]
fn a_named_thread_is_not_resolved_by_silence() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P0 open\nF-002 P3 open").expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    let said = table.lgtm("", Some("F-001 P0 not_fixed same_as: F-002; action: resolve"));
    assert_eq!(said, refused(&["finding_id_reused", "action_missing"]));
}

#[test]
fn all_faults_of_a_response_are_told_at_once() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P0 open").expect("feedback");
    table.addressed(1, &["F-009"]).expect("addressed");
    table.request_with("validation_commands: [make test]").expect("round 2");
    let body = "quality_gate_result: fail\nmerge_ready: false\nround: 7";
    assert_eq!(
        table.send(&Note { body, ..codex("review_lgtm") }),
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
    assert_eq!(table.send(&note), refused(&["not_for_the_daemon", "unknown_recipient", "expired"]));
}

#[test]
fn a_nit_is_not_spent_on_a_thread_the_packet_settles() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P3 open\nF-002 P3 open").expect("feedback");
    table.request().expect("round 2");
    let nit = "nits:\n  - {nit_id: N-1, tier: P3, summary: s, owner: claude, next_action: n}";
    assert_eq!(table.lgtm(nit, Some("F-001 P3 fixed")), ok("approved"));
}

#[test]
fn the_only_open_review_of_a_number_needs_no_repository() {
    let mut table = Table::default();
    table.request_with("repo: o/x").expect("opens");
    table.request_with("repo: o/y").expect("opens");
    let both = "quality_gate_result: pass\nmerge_ready: true";
    assert_eq!(table.send(&Note { body: both, ..codex("review_lgtm") }), refused(&["review_ambiguous"]));
    let first =
        Note { envelope: "related_pr: 86\nparent_message_id: msg-1\n", body: both, ..codex("review_lgtm") };
    assert_eq!(table.send(&first), ok("approved"));
    assert_eq!(table.send(&Note { body: both, ..codex("review_lgtm") }), ok("approved"));
}

#[test]
fn naming_the_repository_is_no_way_to_a_fresh_count() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback_with(1, "escalation: stuck", "F-001 P0 open").expect("escalates");
    assert_eq!(table.request_with("repo: o/x"), refused(&["review_closed"]));
    let mut table = Table::default();
    table.request_with("repo: O/X").expect("opens");
    assert_eq!(table.request_with("repo: o/x"), refused(&["request_already_open"]));
    assert_eq!(table.request(), refused(&["request_already_open"]));
}

#[test]
fn a_correction_that_cites_the_notice_is_heard() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm("", Some("F-001 P1 open")).expect_err("refused");
    let Record::Refused { notice: Notice::Sent { id, .. }, .. } = table.last_record().clone() else {
        panic!("no notice")
    };
    let envelope = format!("related_pr: 86\nparent_message_id: {id}\n");
    let body = "quality_gate_result: fail\nmerge_ready: true";
    table.send(&Note { envelope: &envelope, body, ..codex("review_lgtm") }).expect_err("refused");
    let Record::Refused { notice, .. } = table.last_record() else { panic!("not refused") };
    assert!(matches!(notice, Notice::Sent { .. }), "{notice:?}");
}

#[test]
fn a_thread_is_reopened_once_and_then_only_escalated() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open\nF-002 P1 open").expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.feedback(2, "F-001 P1 fixed\nF-002 P1 open action: reply"), ok("fixing"));
    table.addressed(2, &["F-002"]).expect("addressed");
    table.request().expect("round 3");
    // Resolved, reopened in the next generation, resolved, and raised once more after that.
    table.lgtm("", Some("F-001 P1 open\nF-002 P1 fixed")).expect_err("the gate does not pass");
    table.lgtm("", None).expect("approved");
    table.request_with("declared_head: fffffff").expect("a new generation");
    table.feedback(4, "F-001 P1 open").expect("reopened");
    table.addressed(4, &["F-001"]).expect("addressed");
    table.request().expect("round 5");
    table.lgtm("", None).expect("approved");
    table.request_with("declared_head: eeeeeee").expect("a new generation");
    assert_eq!(table.feedback(6, "F-001 P0 open"), refused(&["thread_not_open"]));
    assert_eq!(table.feedback(6, "F-001 P0 open action: escalate"), ok("escalated"));
}

#[test]
fn the_reviewers_words_are_not_the_daemons() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback_with(1, "escalation: max_rounds_exceeded", "F-001 P1 open").expect("escalates");
    assert_eq!(table.request(), refused(&["review_closed"]), "round 1 of 2 is not the last");
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback_with(1, "escalation: protocol_violation", "F-001 P1 open").expect("escalates");
    let Phase::Escalated(reason) = &table.review().phase else { panic!("not escalated") };
    assert_eq!(reason.to_string(), "the reviewer says: protocol_violation");
}

#[test]
fn what_this_very_response_hands_to_a_person_was_open_until_now() {
    let mut table = second_round();
    table.lgtm("", Some("F-001 P1 not_fixed")).expect_err("refused");
    assert_eq!(table.review().open_blockers(), 1, "a refusal changes no thread");
}

const EMPTY_DIFF: &str = "F-001 P1 open title: Empty diff is not handled; file: src/diff.rs; lines: 40-45";

/// A table of three rounds in round 2, with one finding that has a place and a title.
fn with_a_place() -> Table {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, EMPTY_DIFF).expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    table
}

#[test]
fn a_new_finding_that_repeats_an_open_thread_is_refused_and_names_it() {
    let again = "F-007 P1 open title: Handle empty diffs; file: src/diff.rs; line: 47";
    let mut table = with_a_place();
    let named = format!("F-001 P1 open action: reply\n{again}");
    assert_eq!(table.feedback(2, &named), refused(&["duplicate_finding"]));
    let settled = format!("F-001 P1 fixed\n{again}");
    assert_eq!(table.feedback(2, &settled), refused(&["duplicate_finding"]), "settling it is no way round");
    let elsewhere = "F-001 P1 fixed\nF-007 P1 open title: Handle empty diffs; file: src/diff.rs; line: 49";
    assert_eq!(table.feedback(2, elsewhere), ok("fixing"));
}

#[test]
fn a_packet_does_not_repeat_itself() {
    let mut table = Table::default();
    table.request().expect("opens");
    let twice = "F-001 P1 open title: Empty diff; file: a.rs\nF-002 P1 open title: empty diffs; file: a.rs";
    assert_eq!(table.feedback(1, twice), refused(&["duplicate_finding"]));
    let other = "F-001 P1 open title: Empty diff; file: a.rs\nF-002 P1 open title: empty diffs; file: b.rs";
    assert_eq!(table.feedback(1, other), ok("fixing"));
}

#[test]
fn a_new_finding_that_repeats_a_resolved_thread_reopens_it_with_its_counters() {
    let mut table = with_a_place();
    let reply = "F-001 P1 open action: reply";
    table.feedback(2, reply).expect("feedback");
    table.addressed(2, &[]).expect("addressed");
    table.request().expect("round 3");
    table.lgtm("", None).expect("approved");
    table.request_with("declared_head: fffffff").expect("a new generation");
    let again = "F-007 P1 open title: Empty diff not handled; file: src/diff.rs; line: 41";
    assert_eq!(table.feedback(4, again), ok("fixing"));
    assert_eq!(table.review().threads.len(), 1, "no thread of its own");
    let thread = table.review().threads.values().next().expect("a thread");
    assert_eq!((thread.state, thread.dialogue.replies), (ThreadState::Open, 1));
}

#[test]
fn a_response_raises_at_most_25_new_findings() {
    let some = |count: usize| -> String { (0..count).map(|n| format!("F-{n:03} P3 open\n")).collect() };
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(table.feedback(1, &some(26)), refused(&["too_many_findings"]));
    assert_eq!(table.feedback(1, &some(25)), ok("fixing"));
}

#[test]
fn a_late_blocker_outside_the_touched_files_is_deferred() {
    let late = |finding: &str| {
        let mut table = Table::default();
        table.policy.rounds = Rounds::MAX;
        table.request().expect("opens");
        table.feedback(1, "F-001 P1 open").expect("feedback");
        let body = "commit_sha: abc1234\nchanges_summary: s\nround: 1\ntouched_files: [src/a.rs]";
        table.send(&Note { body, ..claude("review_addressed") }).expect("addressed");
        table.request().expect("round 2");
        table.feedback(2, &format!("F-001 P1 fixed\n{finding}")).expect("feedback");
        let Record::Accepted(accepted) = table.last_record() else { panic!("not accepted") };
        let thread = table.review().threads.values().last().expect("the new thread");
        (thread.state, accepted.warnings.len())
    };
    assert_eq!(late("F-002 P1 open file: src/b.rs"), (ThreadState::Deferred, 1));
    assert_eq!(late("F-002 P1 open file: src/a.rs"), (ThreadState::Open, 0), "it lies in a touched file");
    assert_eq!(late("F-002 P1 open file: src/b.rs; introduced_by: abc1234"), (ThreadState::Open, 0));
    assert_eq!(late("F-002 P0 open file: src/b.rs"), (ThreadState::Open, 0), "a P0 always blocks");
    assert_eq!(late("F-002 P3 open file: src/b.rs"), (ThreadState::Open, 0), "it does not block anyway");
}

#[test]
fn a_late_blocker_stays_deferred_unless_it_gets_worse() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open").expect("feedback");
    let body = "commit_sha: abc1234\nchanges_summary: s\nround: 1\ntouched_files: [src/a.rs]";
    table.send(&Note { body, ..claude("review_addressed") }).expect("addressed");
    table.request().expect("round 2");
    table.feedback(2, "F-001 P1 fixed\nF-002 P1 open file: src/b.rs").expect("feedback");
    table.request().expect("round 3");
    let before = table.state.clone();
    assert_eq!(table.lgtm("", Some("F-002 P1 not_fixed file: src/b.rs")), ok("approved"));
    table.state = before;
    assert_eq!(
        table.lgtm("", Some("F-002 P0 not_fixed file: src/b.rs")),
        refused(&["quality_gate_violation p0"])
    );
}

#[test]
fn an_open_request_is_replaced_twice_at_most_and_nothing_starts_afresh() {
    let mut table = Table::default();
    table.request().expect("opens"); // msg-1
    assert_eq!(table.request_with("supersedes_message_id: msg-9"), refused(&["supersedes_unknown"]));
    table.lgtm("", Some("F-001 P1 open")).expect_err("costs an attempt");
    assert_eq!(table.request_with("supersedes_message_id: msg-1\nmax_turns_reviewer: 99"), ok("reviewing"));
    assert_eq!(table.review().attempts_left(), Some(2));
    let Phase::Reviewing(invocation) = &table.review().phase else { panic!("not reviewing") };
    assert_eq!((invocation.request.as_str(), invocation.turns.get()), ("msg-4", 8));
    assert_eq!(table.request_with("supersedes_message_id: msg-1"), refused(&["supersedes_unknown"]));
    assert_eq!(table.request_with("supersedes_message_id: msg-4"), ok("reviewing"));
    assert_eq!(table.request_with("supersedes_message_id: msg-6"), refused(&["request_already_open"]));
    assert_eq!(table.review().round, 1);
}
