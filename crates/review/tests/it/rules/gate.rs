//! The clauses of the quality gate.

use super::{ok, refused};
use crate::table::{Note, Table, codex};
use message_schema::limit::Rounds;
use review::{ThreadMode, ThreadState};

#[test]
fn the_gate_names_every_broken_clause() {
    let mut table = Table::default();
    table
        .request_with("validation_commands: [make test]")
        .expect("opens");
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
    let said = table.send(&Note {
        body,
        ..codex("review_lgtm")
    });
    assert_eq!(said, refused(&["quality_gate_violation contradiction"]));
}

#[test]
fn nits_defer_open_findings_by_source_or_one_for_one() {
    let nit = |id: &str, more: &str| {
        format!("  - {{nit_id: {id}, tier: P3, summary: s, owner: claude, next_action: n{more}}}\n")
    };
    for nits in [
        nit("N-1", ", source: F-001") + &nit("N-2", ""),
        nit("N-1", "") + &nit("N-2", ""),
    ] {
        let mut table = Table::default();
        table.request().expect("opens");
        let said = table.lgtm(
            &format!("nits:\n{nits}"),
            Some("F-001 P3 open\nF-002 P3 open"),
        );
        assert_eq!(said, ok("approved"));
        assert!(
            table
                .review()
                .threads
                .values()
                .all(|thread| thread.state == ThreadState::Deferred)
        );
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
    table
        .request_with("validation_commands: [make test]")
        .expect("opens");
    assert_eq!(
        table.lgtm("", Some("ran warn make test")),
        refused(&["quality_gate_violation validation"])
    );
    assert_eq!(
        table.lgtm("", Some("ran fail make test\nran pass make test")),
        ok("approved")
    );
}

#[test]
fn a_project_can_insist_on_validation() {
    let mut table = Table::default();
    table.policy.gate.require_validation = true;
    table.request().expect("opens");
    assert_eq!(
        table.lgtm("", None),
        refused(&["quality_gate_violation validation"])
    );
    assert_eq!(table.lgtm("", Some("ran warn make test")), ok("approved"));
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
    assert_eq!(
        table.lgtm(nit, Some("F-003 P0 open")),
        refused(&["action_missing"])
    );

    // Escalated to a person, by its own id and by another one's.
    for raised in ["F-003 P0 open", "F-009 P0 open same_as: F-003"] {
        let mut table = Table::default();
        table.policy.rounds = Rounds::MAX;
        table.request().expect("opens");
        table.feedback(1, "F-003 P3 open").expect("feedback");
        table.request().expect("round 2");
        table
            .feedback(2, "F-003 P3 open action: veto")
            .expect("feedback");
        table.request().expect("round 3");
        assert_eq!(
            table.lgtm("", Some(raised)),
            refused(&["quality_gate_violation p0"])
        );
    }

    // Deferred under the nit of an earlier approval.
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm(nit, Some("F-003 P3 open")).expect("approved");
    table
        .request_with("declared_head: fffffff")
        .expect("a new generation");
    assert_eq!(table.feedback(2, "F-003 P0 open"), ok("fixing"));
    assert_eq!(table.review().open_blockers(), 1);
    assert_eq!(table.request(), refused(&["addressed_required"]));
}

#[test]
fn a_nit_is_not_spent_on_a_thread_the_packet_settles() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P3 open\nF-002 P3 open")
        .expect("feedback");
    table.request().expect("round 2");
    let nit = "nits:\n  - {nit_id: N-1, tier: P3, summary: s, owner: claude, next_action: n}";
    assert_eq!(table.lgtm(nit, Some("F-001 P3 fixed")), ok("approved"));
}
