//! New findings that repeat old ones, are too many, or come too late.

use super::{ok, refused};
use crate::table::{Note, Table, claude};
use message_schema::limit::Rounds;
use review::LateFindings::{self, Block, Defer};
use review::ThreadState;

const EMPTY_DIFF: &str =
    "F-001 P1 open title: Empty diff is not handled; file: src/diff.rs; lines: 40-45";

/// Returns a table of three rounds, in round 2, with one finding that has a place and a title.
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
fn the_same_bytes_are_a_duplicate_and_other_bytes_a_collision() {
    let mut table = Table::default();
    let note = Note {
        body: "hello",
        ..claude("question")
    };
    let text = crate::table::text(&note, "msg-x");
    assert_eq!(table.post("claude", &text, None), ok("delivered"));
    let before = table.state.clone();
    assert_eq!(table.post("claude", &text, None), ok("duplicate"));
    assert_eq!(table.state, before);
    let other = crate::table::text(
        &Note {
            body: "hello again",
            ..note
        },
        "msg-x",
    );
    assert_eq!(
        table.post("claude", &other, None),
        refused(&["id_collision"])
    );
}

#[test]
fn a_new_finding_that_repeats_an_open_thread_is_refused_and_names_it() {
    let again = "F-007 P1 open title: Handle empty diffs; file: src/diff.rs; line: 47";
    let mut table = with_a_place();
    let named = format!("F-001 P1 open action: reply\n{again}");
    assert_eq!(table.feedback(2, &named), refused(&["duplicate_finding"]));
    let settled = format!("F-001 P1 fixed\n{again}");
    assert_eq!(
        table.feedback(2, &settled),
        refused(&["duplicate_finding"]),
        "settling it is no way round"
    );
    let elsewhere =
        "F-001 P1 fixed\nF-007 P1 open title: Handle empty diffs; file: src/diff.rs; line: 49";
    assert_eq!(table.feedback(2, elsewhere), ok("fixing"));
}

#[test]
fn what_is_advised_on_a_repeated_finding_is_accepted() {
    let fix = |table: &Table| table.faults[0].fix.clone().expect("an advice");
    let again = "F-007 P1 open title: Handle empty diffs; file: src/diff.rs; line: 47";

    let mut open = with_a_place();
    open.feedback(2, &format!("F-001 P1 open action: reply\n{again}"))
        .expect_err("repeats an open thread");
    assert_eq!(
        fix(&open),
        "write the finding under the id `F-001`, with an action"
    );
    assert_eq!(
        open.feedback(2, "F-001 P1 open action: reply"),
        ok("fixing")
    );

    let mut held = Table::default();
    held.policy.rounds = Rounds::MAX;
    held.request().expect("opens");
    held.feedback(1, &format!("{EMPTY_DIFF}\nF-002 P1 open"))
        .expect("feedback");
    held.addressed(1, &[]).expect("addressed");
    held.request().expect("round 2");
    held.feedback(2, "F-001 P1 open action: veto\nF-002 P1 open action: reply")
        .expect("feedback");
    held.addressed(2, &[]).expect("addressed");
    held.request().expect("round 3");
    held.feedback(3, again).expect_err("repeats a held thread");
    assert_eq!(
        fix(&held),
        "leave `F-007` out; put the rest into `F-001`, without an action"
    );
    assert_eq!(
        held.feedback(3, "F-001 P0 open\nF-002 P1 fixed"),
        ok("escalated")
    );

    let mut twice = Table::default();
    twice.request().expect("opens");
    twice
        .feedback(1, &format!("{EMPTY_DIFF}\n{again}"))
        .expect_err("repeats itself");
    assert!(
        fix(&twice).starts_with("leave `F-007` out;"),
        "{}",
        fix(&twice)
    );
    assert_eq!(twice.feedback(1, EMPTY_DIFF), ok("fixing"));
}

#[test]
fn a_packet_does_not_repeat_itself() {
    let mut table = Table::default();
    table.request().expect("opens");
    let twice =
        "F-001 P1 open title: Empty diff; file: a.rs\nF-002 P1 open title: empty diffs; file: a.rs";
    assert_eq!(table.feedback(1, twice), refused(&["duplicate_finding"]));
    let other =
        "F-001 P1 open title: Empty diff; file: a.rs\nF-002 P1 open title: empty diffs; file: b.rs";
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
    table
        .request_with("declared_head: fffffff")
        .expect("a new generation");
    let again = "F-007 P1 open title: Empty diff not handled; file: src/diff.rs; line: 41";
    assert_eq!(table.feedback(4, again), ok("fixing"));
    assert_eq!(table.review().threads.len(), 1, "no thread of its own");
    let thread = table.review().threads.values().next().expect("a thread");
    assert_eq!(
        (thread.state, thread.dialogue.replies),
        (ThreadState::Open, 1)
    );
}

#[test]
fn a_response_raises_at_most_25_new_findings() {
    let some =
        |count: usize| -> String { (0..count).map(|n| format!("F-{n:03} P3 open\n")).collect() };
    let mut table = Table::default();
    table.request().expect("opens");
    assert_eq!(
        table.feedback(1, &some(26)),
        refused(&["too_many_findings"])
    );
    assert_eq!(table.feedback(1, &some(25)), ok("fixing"));
}

#[test]
fn a_late_blocker_outside_the_touched_files_is_deferred_where_the_config_says_so() {
    let addressed = |late_findings: LateFindings, touched: &str| {
        let mut table = Table::default();
        table.policy.late_findings = late_findings;
        table.policy.rounds = Rounds::MAX;
        table.request().expect("opens");
        table.feedback(1, "F-001 P1 open").expect("feedback");
        let body = format!("commit_sha: abc1234\nchanges_summary: s\nround: 1\n{touched}");
        table
            .send(&Note {
                body: &body,
                ..claude("review_addressed")
            })
            .expect("addressed");
        table.request().expect("round 2");
        table
    };
    let late_beside = |touched: &str, late_findings: LateFindings, finding: &str| {
        let mut table = addressed(late_findings, touched);
        table
            .feedback(2, &format!("F-001 P1 fixed\n{finding}"))
            .expect("feedback");
        let Some(accepted) = table.last_record().accepted() else {
            panic!("not accepted")
        };
        let thread = table
            .review()
            .threads
            .values()
            .last()
            .expect("the new thread");
        (thread.state, accepted.alerts.len())
    };
    let late =
        |late_findings, finding| late_beside("touched_files: [src/a.rs]", late_findings, finding);
    assert_eq!(
        late_beside("", Defer, "F-002 P1 open file: src/b.rs"),
        (ThreadState::Open, 0),
        "without a list nobody can tell what was touched"
    );
    let finding = "F-001 P1 fixed\nF-002 P1 open file: src/b.rs";
    assert_eq!(
        addressed(Defer, "touched_files: [src/a.rs]").lgtm("", Some(finding)),
        refused(&["quality_gate_violation blocking"]),
        "an approval cannot raise what blocks"
    );
    assert_eq!(
        late(Defer, "F-002 P1 open file: src/b.rs"),
        (ThreadState::Deferred, 1)
    );
    assert_eq!(
        late(Block, "F-002 P1 open file: src/b.rs"),
        (ThreadState::Open, 0),
        "it blocks unless the config says otherwise"
    );
    assert_eq!(
        late(Defer, "F-002 P1 open file: src/a.rs"),
        (ThreadState::Open, 0),
        "it is in a touched file"
    );
    assert_eq!(
        late(
            Defer,
            "F-002 P1 open file: src/b.rs; introduced_by: abc1234"
        ),
        (ThreadState::Open, 0)
    );
    assert_eq!(
        late(Defer, "F-002 P0 open file: src/b.rs"),
        (ThreadState::Open, 0),
        "a P0 always blocks"
    );
    assert_eq!(
        late(Defer, "F-002 P3 open file: src/b.rs"),
        (ThreadState::Open, 0),
        "it does not block anyway"
    );
}

#[test]
fn a_late_blocker_stays_deferred_unless_it_gets_worse() {
    let mut table = Table::default();
    table.policy.late_findings = Defer;
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, "F-001 P1 open").expect("feedback");
    let body = "commit_sha: abc1234\nchanges_summary: s\nround: 1\ntouched_files: [src/a.rs]";
    table
        .send(&Note {
            body,
            ..claude("review_addressed")
        })
        .expect("addressed");
    table.request().expect("round 2");
    table
        .feedback(2, "F-001 P1 fixed\nF-002 P1 open file: src/b.rs")
        .expect("feedback");
    table.request().expect("round 3");
    let before = table.state.clone();
    assert_eq!(
        table.lgtm("", Some("F-002 P1 not_fixed file: src/b.rs")),
        ok("approved")
    );
    table.state = before;
    assert_eq!(
        table.lgtm("", Some("F-002 P0 not_fixed file: src/b.rs")),
        refused(&["quality_gate_violation p0"])
    );
}
