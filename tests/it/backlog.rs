//! A backlog large enough for several batches and for two threads to share the deliveries.

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{ledger, list, names, read, seed};

const REVIEWS: usize = 600;

fn request(number: usize) -> String {
    let (id, pr) = (format!("r-{number}"), number.to_string());
    let body = format!("pr: {pr}\nbranch: b\ndiff_summary: s\n");
    seed::review_message("review_request", &id, "claude", "codex", &pr, &body)
}

fn fill(mailroom: &Mailroom) {
    for number in 1..=REVIEWS {
        mailroom.post("claude", &format!("{number}.yaml"), &request(number));
    }
}

#[test]
fn a_large_backlog_arrives_whole_and_once() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    fill(&mailroom);
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for directory in [
        mailroom.agent("codex", "inbox"),
        mailroom.agent("claude", "sent"),
    ] {
        assert_eq!(names(&directory).len(), REVIEWS, "{}", directory.display());
        for number in 1..=REVIEWS {
            assert_eq!(
                read(directory.join(format!("{number}.yaml"))),
                request(number)
            );
        }
    }
    assert!(list(mailroom.agent("claude", "outbox")).is_empty());
    let accepted = ledger::accepted(&ledger::records(mailroom.root()));
    assert!(accepted.len() == REVIEWS && accepted.values().all(|count| *count == 1));
}

#[test]
fn an_inbox_that_cannot_be_written_holds_up_no_original() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let inbox = mailroom.agent("codex", "inbox");
    std::fs::remove_dir(&inbox).expect("an empty inbox");
    std::fs::write(&inbox, "in the way").expect("a file in its place");
    fill(&mailroom);
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    assert_eq!(names(mailroom.agent("claude", "sent")).len(), REVIEWS);
    std::fs::remove_file(&inbox).expect("the file in the way");
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(names(&inbox).len(), REVIEWS);
}
