//! Decisions of people: each starts a new count, and none is unbounded.

use super::{fixing, ok, refused, second_round};
use crate::table::Table;
use chrono::TimeDelta;
use review::{Act, EscalationReason, Phase, ThreadState};

fn id(text: &str) -> message_schema::id::FindingId {
    text.parse().expect("an id")
}

fn done(word: &str) -> Result<String, String> {
    Ok(word.to_owned())
}

fn declined(code: &str) -> Result<String, String> {
    Err(code.to_owned())
}

/// Returns a review that ended because its two rounds were over, with the P1 still open.
fn rounds_over() -> Table {
    let mut table = second_round();
    let packet = "F-001 P1 open action: veto\nF-002 P1 open title: another; file: b.rs";
    assert_eq!(table.feedback(2, packet), ok("escalated"));
    table
}

#[test]
fn a_reopened_review_goes_on_in_the_next_generation_with_what_was_held() {
    let mut table = rounds_over();
    assert_eq!(table.person(Act::Reopen), done("awaiting"));
    let review = table.review();
    assert_eq!(
        (review.generation, review.round, review.first_round),
        (2, 3, 3)
    );
    let thread = &review.threads[&id("F-001")];
    assert!(thread.is_open());
    assert_eq!(thread.dialogue.round_count, 1, "its counters go on");
    assert_eq!(
        table.feedback(3, "F-001 P1 fixed"),
        refused(&["duplicate_terminal_response"])
    );
    let message = &table.faults[0].message;
    assert_eq!(
        message, "the last request already has its one response",
        "round 3 was not asked for yet"
    );
    assert_eq!(table.addressed(2, &[]), refused(&["round_mismatch"]));
    assert_eq!(table.request_with("max_rounds: 1"), ok("reviewing"));
    assert_eq!((table.review().round, table.review().rounds.get()), (3, 1));
}

#[test]
fn only_what_ended_is_reopened() {
    let mut table = fixing();
    assert_eq!(table.person(Act::Reopen), declined("decision_invalid"));
    let mut table = Table::default();
    assert_eq!(table.person(Act::Reopen), declined("no_open_request"));
    table.request().expect("opens");
    table.lgtm("", None).expect("approved");
    assert_eq!(table.person(Act::Reopen), done("awaiting"));
}

#[test]
fn three_times_a_day_and_no_more() {
    let mut table = rounds_over();
    for _ in 0..3 {
        assert_eq!(table.person(Act::Reopen), done("awaiting"));
        table.request().expect("opens");
        table
            .feedback_with(
                table.review().round,
                "escalation: stuck",
                "F-001 P1 open action: veto\nF-002 P1 open action: veto",
            )
            .expect("escalates");
    }
    assert_eq!(table.person(Act::Reopen), declined("reopen_limit_exceeded"));
    let (key, review) = table.state.reviews().next().expect("a review");
    let again = review.given_back[0] + TimeDelta::hours(24);
    let moment = TimeDelta::nanoseconds(1);
    for (at, found) in [(again - moment, Some((3, again))), (again, None)] {
        assert_eq!(table.state.given_back_too_often(key, at), found, "{at}");
    }
    table.wait(TimeDelta::hours(24));
    assert_eq!(table.person(Act::Reopen), done("awaiting"), "a day later");
    table.wait(TimeDelta::days(7));
    assert_eq!(table.review().generation, 5);
    assert_eq!(
        table.person(Act::Reopen),
        declined("iteration_limit_exceeded")
    );
}

#[test]
fn a_granted_round_is_one_more() {
    let mut table = rounds_over();
    assert_eq!(
        table.person(Act::Grant { rounds: 2 }),
        declined("decision_invalid")
    );
    assert_eq!(table.person(Act::Grant { rounds: 1 }), done("fixing"));
    assert_eq!(table.addressed(2, &[]), ok("addressed"));
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(
        table.feedback(3, "F-001 P1 fixed\nF-002 P1 open action: veto"),
        ok("escalated")
    );
    assert_eq!(table.request(), refused(&["round_limit_exceeded"]));
}

#[test]
fn a_granted_round_can_end_in_approval() {
    let mut table = rounds_over();
    assert!(table.review().threads.values().any(review::Thread::is_held));
    table.person(Act::Grant { rounds: 1 }).expect("granted");
    assert!(
        table.review().threads.values().all(review::Thread::is_open),
        "what was held is open again"
    );
    table.addressed(2, &[]).expect("addressed");
    table.request().expect("round 3");
    assert_eq!(table.lgtm("", None), ok("approved"));
}

#[test]
fn a_round_is_granted_only_where_rounds_are_the_limit() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback_with(1, "escalation: stuck", "")
        .expect("escalates");
    assert_eq!(
        table.person(Act::Grant { rounds: 1 }),
        declined("decision_invalid")
    );
    let mut table = fixing();
    assert_eq!(table.person(Act::Grant { rounds: 1 }), done("fixing"));
    assert_eq!(table.review().last_round(), 3);
}

#[test]
fn a_thread_a_person_resolved_can_only_be_escalated_again() {
    let mut table = fixing();
    assert_eq!(table.person(Act::Resolve(id("F-001"))), done("fixing"));
    assert_eq!(table.request(), ok("reviewing"), "nothing blocks any more");
    assert_eq!(
        table.feedback(2, "F-001 P1 open"),
        refused(&["thread_not_open"])
    );
    assert_eq!(
        table.feedback(2, "F-001 P1 open action: escalate"),
        ok("escalated")
    );
}

#[test]
fn a_person_may_decide_what_the_state_of_a_thread_admits() {
    let mut table = Table::default();
    table.request().expect("opens");
    let findings = "F-001 P1 open title: One; file: a.rs\nF-002 P1 open title: Two; file: b.rs";
    table.feedback(1, findings).expect("feedback");
    table.person(Act::Hold(id("F-002"))).expect("held");
    for (act, open, held, resolved) in [
        (Act::Resolve as fn(_) -> _, true, true, false),
        (Act::WontFix, true, true, false),
        (Act::Queue, true, true, false),
        (Act::Drop, false, false, false),
        (Act::Hold, true, false, false),
        (Act::Release, false, true, false),
    ] {
        let allows = |of: &str| table.review().allows(&act(id(of)));
        let word = act(id("F-001"));
        assert_eq!((allows("F-001"), allows("F-002")), (open, held), "{word:?}");
        assert!(!allows("F-009"), "{word:?} of no thread");
        let mut table = fixing();
        table.person(Act::Resolve(id("F-001"))).expect("resolved");
        assert_eq!(table.review().allows(&word), resolved, "{word:?}");
    }
    assert!(
        !table.review().allows(&Act::Reopen),
        "it is about no thread"
    );
}

#[test]
fn an_order_counts_once_whether_its_event_happened_or_not() {
    let mut table = fixing();
    let order = |id: &str| message_schema::id::MessageId::new(id).expect("an id");
    for (name, act, said) in [
        ("ada-1", Act::Grant { rounds: 1 }, done("fixing")),
        ("ada-2", Act::Reopen, declined("decision_invalid")),
    ] {
        let before = table.state.has_order(&order(name));
        table.order = Some(order(name));
        assert_eq!(table.person(act), said);
        let event = match table.last_record() {
            review::Record::Event(event) => event.order(),
            review::Record::Judged(_) => None,
        };
        assert_eq!(event, Some(&order(name)));
        assert_eq!((before, table.state.has_order(&order(name))), (false, true));
    }
}

#[test]
fn what_a_person_will_not_fix_blocks_nothing() {
    let mut table = fixing();
    assert_eq!(table.person(Act::WontFix(id("F-001"))), done("fixing"));
    table.request().expect("round 2");
    assert_eq!(table.lgtm("", None), ok("approved"));
    assert_eq!(
        table.person(Act::WontFix(id("F-001"))),
        declined("thread_not_open")
    );
    assert_eq!(
        table.person(Act::Resolve(id("F-009"))),
        declined("thread_unknown")
    );
}

#[test]
fn a_held_blocker_alone_hands_the_review_to_the_person() {
    let mut table = fixing();
    assert_eq!(table.person(Act::Hold(id("F-001"))), done("escalated"));
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::BlockerHeld)
    );
    assert_eq!(
        table.person(Act::Hold(id("F-001"))),
        declined("thread_not_open")
    );
    assert_eq!(
        table.person(Act::Release(id("F-001"))),
        done("escalated"),
        "a thread is given back, not the review"
    );
    assert_eq!(
        table.review().threads[&id("F-001")].state,
        ThreadState::Open
    );
    assert_eq!(
        table.person(Act::Release(id("F-001"))),
        declined("thread_not_open")
    );
}

#[test]
fn a_held_thread_beside_an_open_one_holds_nothing_up() {
    let mut table = Table::default();
    table.request().expect("opens");
    table
        .feedback(1, "F-001 P1 open\nF-002 P1 open title: another; file: b.rs")
        .expect("feedback");
    assert_eq!(table.person(Act::Hold(id("F-001"))), done("fixing"));
    assert_eq!(table.person(Act::Resolve(id("F-002"))), done("escalated"));
}
