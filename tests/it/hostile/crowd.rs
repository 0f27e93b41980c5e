//! Many files at once, and large ones: they take turns with everybody else's, in batches of bounded size.

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{ledger, names, seed, settle};

/// The number of files that one agent writes at once; `cargo xtask bench waiting --messages 100000` writes more.
const CROWD: usize = 3_000;

/// A message of the largest size that is refused only after it was read.
fn large(number: usize) -> String {
    let text = seed::note(
        "question",
        &format!("big-{number}"),
        "mallory",
        "claude",
        "?",
    );
    let line = "  all work and no play makes jack a dull boy\n";
    text.clone() + &line.repeat((256 * 1024 - text.len()) / line.len())
}

fn outbox_of(record: &Value) -> &str {
    record["original"]["outbox"].as_str().unwrap_or_default()
}

#[test]
fn of_three_thousand_files_none_is_lost_and_the_others_mail_goes_first_in_turn() {
    let mailroom = Mailroom::new(&["mallory", "claude", "codex"]);
    let outbox = mailroom.agent("mallory", "outbox");
    for number in 0..CROWD {
        let at = outbox.join(format!("{number:05}.yaml"));
        match number % 6 {
            0 => std::fs::write(&at, ""),
            1 => std::fs::create_dir(&at),
            2 => std::os::unix::fs::symlink("/etc/passwd", &at),
            3 => std::fs::write(&at, [b'['; 5_000]),
            4 => std::fs::write(&at, "\u{feff}# nothing\r\n"),
            _ => std::fs::write(
                &at,
                seed::note(
                    "question",
                    "same-id",
                    "mallory",
                    "claude",
                    &number.to_string(),
                ),
            ),
        }
        .expect("room");
    }
    for number in 0..3 {
        let (file, id) = (format!("{number}.yaml"), format!("c-{number}"));
        let text = seed::note("question", &id, "codex", "claude", "?");
        mailroom.post("codex", &file, &text);
        settle(mailroom.agent("codex", "outbox").join(&file));
    }
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(names(&outbox), [""; 0]);
    let records = ledger::records(mailroom.root());
    let of = |agent: &str| {
        records
            .iter()
            .filter(|record| outbox_of(record) == agent)
            .count()
    };
    assert_eq!((of("mallory"), of("codex")), (CROWD, 3));
    let first = records
        .iter()
        .take(8)
        .filter(|record| outbox_of(record) == "codex")
        .count();
    assert_eq!(first, 3, "in turn: one of each outbox");
    // The notices are bounded, however many messages are refused.
    assert!(names(mailroom.agent("mallory", "inbox")).len() <= 40);
}

#[test]
fn large_messages_fill_a_batch_by_their_bytes() {
    let mailroom = Mailroom::new(&["mallory", "claude"]);
    for number in 0..40 {
        mailroom.post("mallory", &format!("{number}.yaml"), &large(number));
    }
    let output = mailroom.once();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let records = ledger::records(mailroom.root());
    let batch = |record: &Value| record["batch"].as_u64().expect("a batch");
    let largest = records.iter().map(|record| {
        records
            .iter()
            .filter(|other| batch(other) == batch(record))
            .count()
    });
    let largest = largest.max().expect("records");
    assert!(
        (2..=20).contains(&largest),
        "{largest} files of 256 KiB in one batch"
    );
}
