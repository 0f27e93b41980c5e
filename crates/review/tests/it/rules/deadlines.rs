//! Every wait ends at a deadline that the daemon owns.

use super::{fixing, ok, refused, second_round};
use crate::table::{Table, which};
use chrono::TimeDelta;
use review::{Act, Deadline, EscalationReason, Event, Phase, RuntimeClock, Says, patience};

fn reason(table: &Table) -> &EscalationReason {
    let phase = &table.review().phase;
    let Phase::Escalated(reason) = phase else {
        panic!("{phase:?} is not escalated")
    };
    reason
}

#[test]
fn a_request_nobody_takes_goes_to_a_person_after_its_priority_s_time() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(
        table.wait(TimeDelta::hours(24) - TimeDelta::seconds(1)),
        "reviewing"
    );
    assert_eq!(table.wait(TimeDelta::seconds(1)), "escalated");
    assert_eq!(*reason(&table), EscalationReason::ReviewerTimeout);
    assert_eq!(
        table.feedback(1, "F-001 P1 open"),
        refused(&["invocation_closed"])
    );
}

#[test]
fn once_taken_the_runtime_counts_and_its_end_is_the_daemon_s_feedback() {
    let mut table = Table::default();
    table
        .request_with("max_runtime_s_reviewer: 90")
        .expect("opens");
    table.wait(TimeDelta::hours(20));
    table.on_event(&Event::Taken(which())).expect("taken");
    assert_eq!(table.wait(TimeDelta::seconds(89)), "reviewing");
    assert_eq!(table.wait(TimeDelta::seconds(1)), "escalated");
    assert_eq!(*reason(&table), EscalationReason::ReviewerBudgetExceeded);
    let Some(happened) = table.last_record().happened() else {
        panic!("a deadline is an event")
    };
    assert!(matches!(
        happened.messages[0].says,
        Says::BudgetSpent { round: 1, .. }
    ));
    assert_eq!(happened.messages[0].to.as_str(), "claude");
    assert_eq!(table.lgtm("", None), refused(&["invocation_closed"]));
}

#[test]
fn a_request_taken_twice_starts_one_clock() {
    let mut table = Table::default();
    table
        .request_with("max_runtime_s_reviewer: 60")
        .expect("opens");
    table.on_event(&Event::Taken(which())).expect("taken");
    let before = table.review().clone();
    table.wait(TimeDelta::seconds(30));
    table.on_event(&Event::Taken(which())).expect("taken again");
    assert_eq!(*table.review(), before);
}

#[test]
fn where_the_project_says_so_the_clock_starts_at_delivery() {
    let mut table = Table::default();
    table.policy.runtime_clock = RuntimeClock::Delivery;
    table
        .request_with("max_runtime_s_reviewer: 60")
        .expect("opens");
    assert_eq!(table.wait(TimeDelta::seconds(60)), "escalated");
}

#[test]
fn a_replaced_request_goes_on_with_the_same_clock() {
    let mut table = Table::default();
    table
        .request_with("max_runtime_s_reviewer: 60")
        .expect("opens");
    table.on_event(&Event::Taken(which())).expect("taken");
    table.wait(TimeDelta::seconds(50));
    table.supersede().expect("replaced");
    assert_eq!(table.wait(TimeDelta::seconds(10)), "escalated");
}

#[test]
fn one_deadline_covers_all_the_author_owes_in_a_round() {
    let mut table = fixing();
    let due = table.review().deadline().expect("a deadline");
    assert_eq!(due.1, Deadline::Author);
    table.wait(TimeDelta::hours(23));
    assert_eq!(table.addressed(1, &["F-001"]), ok("addressed"));
    assert_eq!(
        table.review().deadline(),
        Some(due),
        "what is accepted does not renew it"
    );
    assert_eq!(table.wait(TimeDelta::hours(1)), "escalated");
    assert_eq!(*reason(&table), EscalationReason::AuthorTimeout);
}

#[test]
fn each_round_has_its_own_time() {
    let mut table = second_round();
    table.wait(TimeDelta::hours(23));
    assert_eq!(table.review().phase.word(), "reviewing");
    let Phase::Reviewing(open) = &table.review().phase else {
        unreachable!()
    };
    assert_eq!(
        open.pick_up_by,
        table.review().since + patience(open.priority)
    );
}

#[test]
fn nothing_final_has_a_deadline() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm("", None).expect("approved");
    assert_eq!(table.review().deadline(), None);
    assert_eq!(table.wait(TimeDelta::days(100)), "approved");
}

#[test]
fn a_reopened_review_waits_no_longer_than_any_other() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.wait(TimeDelta::hours(24));
    assert_eq!(table.person(Act::Reopen), ok_word("awaiting"));
    assert_eq!(table.wait(TimeDelta::hours(24)), "escalated");
}

#[test]
fn a_deadline_that_is_not_armed_does_nothing() {
    let mut table = fixing();
    let review = table.state.reviews().next().expect("one").0.clone();
    let event = Event::Deadline {
        review,
        which: Deadline::Runtime,
    };
    assert_eq!(table.on_event(&event), Err("review_closed".to_owned()));
    assert_eq!(table.review().phase.word(), "fixing");
}

fn ok_word(word: &str) -> Result<String, String> {
    Ok(word.to_owned())
}
