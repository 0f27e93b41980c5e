//! One agent that floods and one that does not: the cost of each to the other, counted in passes rather than time.
use std::time::Duration;

use daemon::mailroom::Mailroom as Served;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, seed};
use workspace::clock::{self, Moment};

/// Files of the flood: many batches.
const FLOOD: usize = 3_000;

/// Files in a batch.
const BATCH: usize = 256;

fn flood(mailroom: &Mailroom) {
    for number in 0..FLOOD {
        mailroom.post("gemini", &format!("{number:06}.yaml"), "no: message\n");
    }
}

/// An hour after the files were written, so that all of them count as finished.
fn moment(mono: u64) -> Moment {
    Moment {
        mono,
        utc: clock::now() + Duration::from_secs(3_600),
    }
}

#[test]
fn a_flood_in_one_outbox_delays_a_message_in_another_by_no_pass() {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    flood(&mailroom);
    let (mut served, _) = Served::open(mailroom.root()).expect("a start");
    served.sweep().expect("a sweep");
    for pass in 1..=3 {
        let done = served.pass(moment(10_000 * pass)).expect("a pass");
        assert_eq!(done.refused, BATCH, "the flood has the mailroom to itself");
    }
    mailroom.post(
        "claude",
        "q.yaml",
        &seed::note("question", "q-1", "claude", "codex", "which?"),
    );
    served.sweep().expect("a sweep");
    let done = served.pass(moment(100_000)).expect("a pass");
    assert_eq!(
        (done.accepted, done.refused),
        (1, BATCH - 1),
        "its turn comes in the next pass"
    );
    served.pass(moment(110_000)).expect("a pass");
    assert_eq!(names(mailroom.agent("codex", "inbox")), ["q.yaml"]);
}

#[test]
fn an_agent_over_its_limit_finishes_its_reviews_and_begins_none() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[limits]\nfiles_per_hour = 4\n");
    seed::lay_packet(mailroom.root());
    let [request, feedback, addressed, again, lgtm] = seed::review();
    mailroom.post("claude", request.file, &request.text);
    assert_eq!(mailroom.once().status.code(), Some(0));
    for number in 0..4 {
        mailroom.post("claude", &format!("{number}.yaml"), "no: message\n");
        mailroom.post("codex", &format!("{number}.yaml"), "no: message\n");
    }
    assert_eq!(mailroom.once().status.code(), Some(7));
    let question = seed::note("question", "q-1", "claude", "codex", "which?");
    mailroom.post("claude", "question.yaml", &question);
    let text = request
        .text
        .replace("86", "87")
        .replace(seed::id(&request.text), "r-87");
    mailroom.post("claude", "new.yaml", &text);
    assert_eq!(mailroom.once().status.code(), Some(7));
    for file in ["question.yaml", "new.yaml"] {
        let report = mailroom.refused("claude", file);
        assert_eq!(report["refused"], "too_many_messages", "{file}: {report}");
        assert!(
            report["violations"][0]["fix"]
                .as_str()
                .is_some_and(|fix| fix.contains("after 20")),
            "{report}"
        );
        assert_eq!(
            report["violations"][0]["expected"],
            "fewer than 4 an hour, refused ones included"
        );
    }
    for post in [feedback, addressed, again, lgtm] {
        mailroom.post(post.from, post.file, &post.text);
        let output = mailroom.once();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {}",
            post.file,
            said(&output)
        );
    }
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "approved");
}
