//! Stances, actions, silence, and reopened threads.

use super::{fixing, ok, refused, second_round};
use crate::table::Table;
use message_schema::limit::Rounds;
use review::{Phase, ThreadMode};

#[test]
fn a_held_blocker_with_nothing_else_open_escalates_at_once() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open").expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(
        table.feedback(2, "F-001 P1 open action: veto"),
        ok("escalated")
    );
    let Phase::Escalated(reason) = &table.review().phase else {
        panic!("not escalated")
    };
    assert_eq!(reason.to_string(), "blocker_held");
}

#[test]
fn silence_resolves_what_the_author_reported_and_nothing_else() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P1 open\nF-002 P1 open")
        .expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.lgtm("", None), refused(&["action_missing"]));
    assert_eq!(table.lgtm("", Some("F-002 P1 fixed")), ok("approved"));
}

#[test]
fn what_is_advised_on_a_fixed_p0_that_nobody_named_leads_to_approval() {
    let fix = |table: &Table| table.faults[0].fix.clone().expect("an advice");
    let mut table = Table::default();
    table.request().expect("opens");
    table.feedback(1, "F-001 P0 open").expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(table.lgtm("", None), refused(&["action_missing"]));
    assert_eq!(
        fix(&table),
        "name a findings packet in `findings_packet`, and in it `F-001` with `action:` one of resolve, veto, escalate"
    );
    let fixed = "F-001 P0 fixed";
    assert_eq!(table.feedback(2, fixed), refused(&["feedback_empty"]));
    assert_eq!(
        fix(&table),
        "send review_lgtm with this findings_packet, or raise what is wrong as a finding"
    );
    assert_eq!(table.lgtm("", Some(fixed)), ok("approved"));
}

#[test]
fn explicit_threads_infer_nothing() {
    let mut table = second_round();
    table.policy.threads = ThreadMode::Explicit;
    assert_eq!(table.lgtm("", None), refused(&["action_missing"]));
    assert_eq!(
        table.lgtm("", Some("F-001 P1 fixed")),
        refused(&["action_missing"])
    );
    assert_eq!(
        table.lgtm("", Some("F-001 P1 fixed action: resolve")),
        ok("approved")
    );
}

#[test]
fn an_action_needs_an_open_thread() {
    let mut table = second_round();
    table.policy.rounds = Rounds::MAX;
    let said = table.feedback(
        2,
        "F-001 P1 open action: resolve\nF-009 P1 open action: reply",
    );
    assert_eq!(said, refused(&["thread_unknown"]));
    let said = table.feedback(
        2,
        "F-001 P1 open\nF-009 P1 open same_as: F-001; action: veto",
    );
    assert_eq!(said, refused(&["action_multiple"]));
}

#[test]
fn the_last_round_takes_no_reply_on_a_thread() {
    let mut table = second_round();
    assert_eq!(
        table.feedback(2, "F-001 P1 open action: reply"),
        refused(&["action_illegal"])
    );
}

#[test]
fn wont_fix_on_a_p1_is_a_persons_word() {
    let mut table = second_round();
    assert_eq!(
        table.lgtm("", Some("F-001 P1 wont_fix")),
        refused(&["action_illegal"])
    );
    let mut fresh = Table::default();
    fresh.request().expect("opens");
    assert_eq!(
        fresh.lgtm("", Some("F-001 P1 wont_fix")),
        refused(&["action_illegal"])
    );
}

#[test]
fn a_known_id_keeps_its_finding() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P1 open title: empty diff; file: a.rs")
        .expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    let said = table.feedback(2, "F-001 P1 open title: leaks a handle; file: b.rs");
    assert_eq!(said, refused(&["finding_id_reused", "action_missing"]));
}

#[test]
fn a_spent_reviewer_may_leave_threads_without_action() {
    let mut table = second_round();
    let said = table.feedback_with(2, "escalation: reviewer_budget_exceeded", "F-002 P1 open");
    assert_eq!(said, ok("escalated"));
    assert!(
        table
            .review()
            .threads
            .values()
            .all(|thread| thread.is_open())
    );
}

#[test]
fn a_spent_reviewers_word_raises_a_thread_too() {
    let mut table = Table::default();
    table.policy.threads = ThreadMode::Explicit;
    table.request().expect("opens");
    table.feedback(1, "F-001 P3 open").expect("feedback");
    table.request().expect("round 2");
    table
        .feedback_with(2, "escalation: reviewer_budget_exceeded", "F-001 P0 open")
        .expect("escalates");
    assert_eq!(table.review().open_blockers(), 1);
}

#[test]
fn no_way_of_saying_it_leaves_a_p0_or_p1_unfixed() {
    let mut table = second_round();
    assert_eq!(
        table.lgtm("", Some("F-001 P1 wont_fix action: resolve")),
        refused(&["action_illegal"])
    );
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback(1, "F-002 P2 open blocking: true")
        .expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(
        table.lgtm("", Some("F-002 P0 wont_fix")),
        refused(&["action_illegal"])
    );
    assert_eq!(
        table.lgtm("", Some("F-002 P2 wont_fix blocking: true")),
        ok("approved")
    );
}

#[test]
fn a_named_thread_is_not_resolved_by_silence() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P0 open\nF-002 P3 open")
        .expect("feedback");
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    let said = table.lgtm(
        "",
        Some("F-001 P0 not_fixed same_as: F-002; action: resolve"),
    );
    assert_eq!(said, refused(&["finding_id_reused", "action_missing"]));
}

#[test]
fn a_thread_is_reopened_once_and_then_only_escalated() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P1 open\nF-002 P1 open")
        .expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    assert_eq!(
        table.feedback(2, "F-001 P1 fixed\nF-002 P1 open action: reply"),
        ok("fixing")
    );
    table.addressed(2, &["F-002"]).expect("addressed");
    table.request().expect("round 3");
    // Resolved, reopened in the next generation, resolved, and raised again after that.
    table
        .lgtm("", Some("F-001 P1 open\nF-002 P1 fixed"))
        .expect_err("the gate does not pass");
    table.lgtm("", None).expect("approved");
    table
        .request_with("declared_head: fffffff")
        .expect("a new generation");
    table.feedback(4, "F-001 P1 open").expect("reopened");
    table.addressed(4, &["F-001"]).expect("addressed");
    table.request().expect("round 5");
    table.lgtm("", None).expect("approved");
    table
        .request_with("declared_head: eeeeeee")
        .expect("a new generation");
    assert_eq!(
        table.feedback(6, "F-001 P0 open"),
        refused(&["thread_not_open"])
    );
    assert_eq!(
        table.feedback(6, "F-001 P0 open action: escalate"),
        ok("escalated")
    );
}

#[test]
fn what_this_very_response_hands_to_a_person_was_open_until_now() {
    let mut table = second_round();
    table
        .lgtm("", Some("F-001 P1 not_fixed"))
        .expect_err("refused");
    assert_eq!(
        table.review().open_blockers(),
        1,
        "a refusal changes no thread"
    );
}

#[test]
fn two_findings_about_one_thread_do_not_undo_each_other() {
    for packet in [
        "F-009 P1 open same_as: F-001; action: veto\nF-001 P1 open",
        "F-001 P1 open\nF-009 P1 open same_as: F-001; action: veto",
    ] {
        let mut table = second_round();
        table.policy.threads = ThreadMode::Explicit;
        assert_eq!(table.feedback(2, packet), ok("escalated"));
        assert!(
            table.review().threads.values().all(review::Thread::is_held),
            "{packet}"
        );
    }
    let mut table = second_round();
    table.policy.rounds = Rounds::new(3).expect("in range");
    table
        .feedback(2, "F-001 P1 fixed\nF-003 P3 open")
        .expect("resolved");
    let again = "F-002 P0 open title: Empty diff; file: a.rs\nF-001 P1 fixed";
    assert_ne!(table.lgtm("", Some(again)), ok("approved"));
}

#[test]
fn a_packet_of_hundreds_of_faults_is_refused_for_the_first_two_hundred() {
    let mut table = fixing();
    table.addressed(1, &["F-001"]).expect("addressed");
    table.request().expect("round 2");
    let packet: String = (0..900)
        .map(|n| format!("X-{n} P3 open action: reply\n"))
        .collect();
    assert!(table.feedback(2, packet.trim_end()).is_err());
    assert_eq!(table.faults.len(), 200);
}

#[test]
fn hundreds_of_new_findings_are_one_fault() {
    let mut table = Table::default();
    table.request().expect("opens");
    let packet: String = (0..900).map(|n| format!("X-{n} P3 open\n")).collect();
    assert_eq!(
        table.feedback(1, packet.trim_end()),
        refused(&["too_many_findings"])
    );
    assert_eq!(table.faults[0].found.as_deref(), Some("900"));
}
