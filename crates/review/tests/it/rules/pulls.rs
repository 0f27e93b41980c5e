//! Pull request events: open reviews end with their pull request, approvals do not outlive their commit.

use super::{fixing, ok, refused};
use crate::table::Table;
use review::{CloseReason, Phase, PullAction};

fn done(word: &str) -> Result<String, String> {
    Ok(word.to_owned())
}

fn is_stale(table: &Table) -> bool {
    matches!(&table.review().phase, Phase::Approved(approval) if approval.stale)
}

/// Approved at abc1234.
fn approved() -> Table {
    let mut table = Table::default();
    table.request_with("declared_head: abc1234").expect("opens");
    assert_eq!(table.lgtm("", None), ok("approved"));
    table
}

#[test]
fn an_open_review_ends_with_its_pull_request() {
    for (action, reason) in [
        (PullAction::Closed, CloseReason::NotMerged),
        (PullAction::Merged, CloseReason::Merged),
    ] {
        let mut table = fixing();
        assert_eq!(table.pull(action, None), done("closed"));
        assert_eq!(table.review().phase, Phase::Closed(reason));
        assert_eq!(table.addressed(1, &[]), refused(&["review_closed"]));
        assert_eq!(table.request(), refused(&["review_closed"]));
    }
}

#[test]
fn a_response_after_the_end_of_the_pull_request_finds_its_invocation_closed() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.pull(PullAction::Merged, None).expect("merged");
    assert_eq!(table.lgtm("", None), refused(&["invocation_closed"]));
}

#[test]
fn opened_again_a_request_opens_the_next_generation() {
    let mut table = fixing();
    table.pull(PullAction::Closed, None).expect("closed");
    assert_eq!(table.pull(PullAction::Reopened, None), done("closed"));
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!((table.review().generation, table.review().round), (2, 2));
}

#[test]
fn events_of_an_open_pull_request_leave_an_open_review_alone() {
    for action in [
        PullAction::Opened,
        PullAction::Synchronize,
        PullAction::Reopened,
    ] {
        let mut table = fixing();
        assert_eq!(table.pull(action, Some("fffffff")), done("fixing"));
    }
}

#[test]
fn an_approval_is_stale_while_the_last_event_names_another_head() {
    let mut table = approved();
    table
        .pull(PullAction::Synchronize, Some("ABC12345"))
        .expect("the same commit, longer");
    assert!(!is_stale(&table));
    table
        .pull(PullAction::Synchronize, Some("def5678"))
        .expect("another");
    assert!(is_stale(&table));
    table
        .pull(PullAction::Synchronize, Some("abc1234"))
        .expect("back again");
    assert!(!is_stale(&table), "the approved commit is the head again");
    table.pull(PullAction::Merged, None).expect("no head");
    assert!(!is_stale(&table));
}

#[test]
fn after_a_stale_approval_any_request_opens_the_next_generation() {
    let mut table = approved();
    assert_eq!(
        table.request_with("declared_head: abc1234"),
        refused(&["already_approved"])
    );
    table
        .pull(PullAction::Synchronize, Some("def5678"))
        .expect("another head");
    assert_eq!(table.request(), ok("reviewing"));
    assert_eq!(table.review().generation, 2);
}

#[test]
fn what_is_final_stays_what_it_is_when_its_pull_request_ends() {
    let mut table = approved();
    assert_eq!(
        table.pull(PullAction::Merged, Some("abc1234")),
        done("approved")
    );
    assert!(!is_stale(&table));
    table
        .pull(PullAction::Merged, Some("def5678"))
        .expect("again");
    assert!(
        is_stale(&table),
        "merged at another commit than the approved one"
    );
}

#[test]
fn an_approval_of_no_commit_cannot_be_compared() {
    let mut table = Table::default();
    table.request().expect("opens");
    table.lgtm("", None).expect("approved");
    table
        .pull(PullAction::Synchronize, Some("def5678"))
        .expect("a head");
    assert!(!is_stale(&table));
}

#[test]
fn an_event_of_an_unknown_pull_request_is_noted_and_moves_nothing() {
    let mut table = Table::default();
    assert_eq!(
        table.pull(PullAction::Opened, Some("abc1234")),
        done("none")
    );
    assert!(
        table
            .state
            .pull(None, &"086".parse().expect("a number"))
            .is_some_and(|pull| pull.is_open())
    );
}
