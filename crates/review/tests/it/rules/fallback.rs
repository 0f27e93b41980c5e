//! The next reviewer of a request whose reviewer cannot work.

use review::{Event, FailureCause, Record, RunFailure, Which};

use crate::table::{Table, agent, which};

fn not_logged_in(reviewer: &str) -> Event {
    Event::Failed {
        which: Which {
            reviewer: Some(agent(reviewer)),
            ..which()
        },
        failure: RunFailure {
            cause: FailureCause::NotLoggedIn,
            why: "log in first".to_owned(),
            retry_after: None,
            run: None,
        },
    }
}

/// The word by which the ledger's entry is found, and the reviewer to whom it gives the request.
fn found_as(record: &Record) -> (&'static str, Option<&str>) {
    let happened = record.happened().expect("it happened");
    let to = happened.reassigned_to();
    (record.word(), to.map(|name| name.as_str()))
}

#[test]
fn a_request_passes_to_each_next_reviewer_and_after_the_last_to_a_person() {
    let mut table = Table::default();
    table.policy.reviewers = ["codex", "gemini", "gpt"].map(agent).into();
    table.request().expect("opens");
    for (fails, phase, word, to) in [
        ("codex", "reviewing", "reassigned", Some("gemini")),
        ("gemini", "reviewing", "reassigned", Some("gpt")),
        ("gpt", "escalated", "failed", None),
    ] {
        assert_eq!(table.on_event(&not_logged_in(fails)), Ok(phase.to_owned()));
        assert_eq!(found_as(table.last_record()), (word, to), "{fails} fails");
    }
    assert_eq!(table.replayed(), table.state);
}
