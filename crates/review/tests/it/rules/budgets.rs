//! Turns: those that are counted, and those that a response declares.

use super::{ok, refused};
use crate::table::{Note, Table, claude, codex, packet, which};
use review::{EscalationReason, Event, FailureCause, Phase, RefusedMessage, RunFailure, Says};

fn turns(table: &mut Table, count: u16) -> Result<String, String> {
    table.on_event(&Event::Turns {
        which: which(),
        count,
    })
}

#[test]
fn the_last_counted_turn_without_a_response_ends_the_invocation() {
    let mut table = Table::default();
    table.request_with("max_turns_reviewer: 3").expect("opens");
    assert_eq!(turns(&mut table, 2), Ok("reviewing".to_owned()));
    assert!(
        matches!(&table.review().phase, Phase::Reviewing(open) if open.taken_at.is_some()),
        "a turn is a take"
    );
    assert_eq!(turns(&mut table, 1), Ok("escalated".to_owned()));
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::ReviewerBudgetExceeded)
    );
    assert_eq!(
        table.feedback(1, "F-001 P1 open"),
        refused(&["invocation_closed"])
    );
    assert_eq!(turns(&mut table, 1), Err("no_open_request".to_owned()));
}

#[test]
fn a_replaced_request_gives_no_turn_back() {
    let mut table = Table::default();
    table.request_with("max_turns_reviewer: 3").expect("opens");
    turns(&mut table, 2).expect("counted");
    table.supersede().expect("replaced");
    assert_eq!(turns(&mut table, 1), Ok("escalated".to_owned()));
}

#[test]
fn no_turn_is_no_count() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(turns(&mut table, 0), Err("decision_invalid".to_owned()));
}

/// Sends an lgtm that declares its turns in the envelope.
fn lgtm_after(table: &mut Table, turns: u32) -> Result<String, Vec<String>> {
    let envelope = format!("related_pr: 86\nturns: {turns}\n");
    let body = "quality_gate_result: pass\nmerge_ready: true";
    table.send(&Note {
        envelope: &envelope,
        body,
        ..codex("review_lgtm")
    })
}

#[test]
fn an_approval_within_its_turns_is_one() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(lgtm_after(&mut table, 8), ok("approved"));
}

#[test]
fn an_approval_beyond_its_turns_closes_the_invocation() {
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(
        lgtm_after(&mut table, 9),
        refused(&["turn_budget_exceeded"])
    );
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::ReviewerBudgetExceeded)
    );
    let Some(RefusedMessage {
        cost: Some(cost), ..
    }) = table.last_record().refused()
    else {
        panic!("it costs the invocation")
    };
    assert!(matches!(cost.messages[0].says, Says::BudgetSpent { .. }));
    assert_eq!(table.lgtm("", None), refused(&["invocation_closed"]));
}

#[test]
fn feedback_beyond_its_turns_is_heard_and_goes_to_a_person() {
    let mut table = Table::default();
    table.request().expect("opens");
    let said = table.feedback_with(1, "telemetry: {turns: 9}", "F-001 P1 open");
    assert_eq!(said, ok("escalated"));
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::ReviewerBudgetExceeded)
    );
    assert_eq!(table.review().threads.len(), 1, "its findings are kept");
}

#[test]
fn a_reviewer_that_says_its_budget_is_spent_may_leave_threads_as_they_are() {
    let mut table = super::fixing();
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    let said = table.feedback_with(2, "escalation: reviewer_budget_exceeded", "");
    assert_eq!(said, ok("escalated"));
    assert_eq!(table.review().open_threads().count(), 1);
}

#[test]
fn turns_in_the_packet_s_place_do_not_count() {
    let mut table = Table::default();
    table.request().expect("opens");
    let body = "findings_packet: packets/findings/p.yaml\nround: 1\nblocking_count: 0";
    let packet = packet("F-001 P3 open");
    let note = Note {
        body,
        packet: Some(&packet),
        ..codex("review_feedback")
    };
    assert_eq!(table.send(&note), ok("fixing"));
    let request = "pr: 86\nbranch: b\ndiff_summary: s\nmax_turns_reviewer: 1";
    assert_eq!(
        table.send(&Note {
            body: request,
            ..claude("review_request")
        }),
        ok("reviewing")
    );
}

#[test]
fn a_command_is_started_twice_and_once_more_for_each_replacement() {
    let mut table = Table::default();
    table.request().expect("opens");
    let start = |table: &mut Table| table.on_event(&Event::Started(which()));
    assert_eq!(start(&mut table), Ok("reviewing".to_owned()));
    assert!(
        matches!(&table.review().phase, Phase::Reviewing(open) if open.taken_at.is_some()),
        "a start is a take"
    );
    assert_eq!(start(&mut table), Ok("reviewing".to_owned()));
    assert_eq!(start(&mut table), Err("decision_invalid".to_owned()));
    table.supersede().expect("replaced");
    assert_eq!(start(&mut table), Ok("reviewing".to_owned()));
    assert_eq!(start(&mut table), Err("decision_invalid".to_owned()));
}

fn failed(cause: FailureCause) -> Event {
    let failure = RunFailure {
        cause,
        why: "it ended with code 1".to_owned(),
        retry_after: None,
        run: None,
    };
    Event::Failed {
        which: which(),
        failure,
    }
}

#[test]
fn a_failure_is_noted_once_and_the_one_after_the_last_start_is_a_persons() {
    let mut table = Table::default();
    table.request().expect("opens");
    let crashed = failed(FailureCause::Crashed);
    // Without a start, there is no failed start.
    let none = Err("decision_invalid".to_owned());
    assert_eq!(table.on_event(&crashed), none);
    table.on_event(&Event::Started(which())).expect("started");
    assert_eq!(table.on_event(&crashed), Ok("reviewing".to_owned()));
    let noted = table.review().failed.clone().expect("it failed");
    assert_eq!(noted.failure.cause, FailureCause::Crashed);
    assert_eq!(table.on_event(&crashed), none, "told twice");
    table.on_event(&Event::Started(which())).expect("started");
    assert_eq!(table.on_event(&crashed), Ok("escalated".to_owned()));
    let kept = table.review().failed.clone().expect("a person reads it");
    assert_eq!(kept.reviewer.as_str(), "codex");
}

#[test]
fn a_command_that_fails_hands_the_review_to_a_person_and_is_never_a_pass() {
    let mut table = Table::default();
    table.request().expect("opens");
    let failed = failed(FailureCause::GaveUp);
    assert_eq!(table.on_event(&failed), Ok("escalated".to_owned()));
    assert_eq!(
        table.review().phase,
        Phase::Escalated(EscalationReason::InvocationFailed)
    );
    assert_eq!(table.on_event(&failed), Err("no_open_request".to_owned()));
    assert_eq!(
        table.feedback(1, "F-001 P1 open"),
        refused(&["invocation_closed"])
    );
}
