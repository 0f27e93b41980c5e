//! The advisory profile: on pull requests of people the gate's result is attached but refuses nothing.

use super::{ok, refused, second_round};
use crate::table::Table;
use review::{Clause, CloseReason, Phase, Profile, PullAction};

fn advised(mut table: Table) -> Table {
    table.policy.profile = Profile::Advisory;
    table
}

#[test]
fn the_gate_is_attached_and_refuses_nothing() {
    let mut table = advised(Table::default());
    table.request().expect("opens");
    assert_eq!(table.lgtm("", Some("F-001 P1 open")), ok("approved"));
    let Phase::Approved(approval) = &table.review().phase else {
        unreachable!()
    };
    assert_eq!(
        approval.broken.iter().copied().collect::<Vec<_>>(),
        [Clause::Blocking]
    );
}

#[test]
fn what_passes_the_gate_has_nothing_attached() {
    let mut table = advised(Table::default());
    table.request().expect("opens");
    table.lgtm("", None).expect("approved");
    assert!(
        matches!(&table.review().phase, Phase::Approved(approval) if approval.broken.is_empty())
    );
}

#[test]
fn the_actions_on_threads_are_no_advice() {
    let mut table = advised(second_round());
    let said = table.lgtm("", Some("F-001 P1 open action: reply"));
    assert_eq!(said, refused(&["action_illegal"]));
}

#[test]
fn the_last_round_ends_as_a_comment() {
    let mut table = advised(second_round());
    assert_eq!(
        table.feedback(2, "F-001 P1 open action: veto"),
        ok("closed")
    );
    assert_eq!(table.review().phase, Phase::Closed(CloseReason::Commented));
    assert_eq!(table.request(), refused(&["review_closed"]));
}

#[test]
fn a_reviewer_that_asks_for_a_person_gets_one() {
    let mut table = advised(second_round());
    assert_eq!(
        table.feedback_with(2, "escalation: stuck", "F-001 P1 open action: veto"),
        ok("escalated")
    );
}

#[test]
fn on_pull_requests_of_bots_the_gate_decides() {
    let mut table = advised(Table::default());
    table.policy.handoff.bots.insert("fixer[bot]".to_owned());
    table.request().expect("opens");
    table
        .pull_by("fixer[bot]", PullAction::Opened, None)
        .expect("noted");
    assert_eq!(
        table.lgtm("", Some("F-001 P1 open")),
        refused(&["quality_gate_violation blocking"])
    );
}
