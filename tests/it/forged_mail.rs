//! Mail that no record accounts for: reported once, never touched, and it moves no review.

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{ledger, names, read, seed, wait};

fn note(id: &str) -> String {
    seed::note("question", id, "codex", "claude", "which?")
}

fn unproven(mailroom: &Mailroom) -> Vec<String> {
    let status = mailroom.status();
    let alerts = status["alerts"].as_array().cloned().unwrap_or_default();
    let unproven = alerts
        .iter()
        .filter(|trouble| trouble["kind"] == "sender_unproven");
    unproven
        .map(|trouble| trouble["path"].as_str().expect("a path").to_owned())
        .collect()
}

#[test]
fn a_file_that_was_put_into_an_inbox_is_told_once_and_left_alone() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let daemon = mailroom.serve();
    mailroom.post("codex", "proven.yaml", &note("q-1"));
    mailroom.delivered("claude", "proven.yaml");
    mailroom.post("claude", "bad.yaml", "no: message\n");
    mailroom.refused("claude", "bad.yaml");
    wait::until("the notice", || {
        names(mailroom.agent("claude", "inbox")).len() == 2
    });
    let forged = mailroom.agent("claude", "inbox").join("forged.yaml");
    let text = seed::review()[1].text.clone();
    std::fs::write(&forged, &text).expect("anybody who shares the user can");
    wait::until("the status to tell", || !unproven(&mailroom).is_empty());
    let told = || daemon.log().matches("sender_unproven").count();
    assert_eq!(
        unproven(&mailroom),
        [forged.to_string_lossy()],
        "and no other"
    );
    assert_eq!(told(), 1, "{}", daemon.log());
    assert_eq!(read(&forged), text);
    assert!(daemon.terminate().success());

    let daemon = mailroom.serve();
    // The daemon reports a file at the second sweep that finds it, so once it reports the second one, it has seen the
    // first twice.
    let other = forged.with_file_name("other.yaml");
    std::fs::write(&other, note("q-9")).expect("a file");
    wait::until("the second to be told", || unproven(&mailroom).len() == 2);
    let log = daemon.log();
    assert_eq!(
        log.matches("sender_unproven").count(),
        1,
        "the first was told before the restart: {log}"
    );
    assert_eq!(
        ledger::accepted(&ledger::records(mailroom.root())).len(),
        1,
        "it moved nothing"
    );
    std::fs::remove_file(&forged).expect("its reader takes it");
    wait::until("the status to forget", || {
        unproven(&mailroom) == [other.to_string_lossy()]
    });
}

#[test]
fn a_copy_of_what_lies_in_an_outbox_waits_for_its_judgement() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    // Another tool writes the copy into the inbox first and is slow with the original.
    let original = mailroom.agent("codex", "outbox").join("direct.yaml");
    let copy = mailroom.agent("claude", "inbox").join("direct.yaml");
    std::fs::write(&copy, note("q-1")).expect("a copy");
    std::os::unix::fs::symlink("nowhere", &original).expect("something that is refused");
    let forged = mailroom.agent("claude", "inbox").join("forged.yaml");
    std::fs::write(&forged, note("q-2")).expect("a file");
    let daemon = mailroom.serve();
    mailroom.cleared("codex");
    std::fs::write(&original, note("q-1")).expect("the original");
    wait::until("the forged one to be told", || {
        !unproven(&mailroom).is_empty()
    });
    assert_eq!(
        unproven(&mailroom),
        [forged.to_string_lossy()],
        "{}",
        daemon.log()
    );
    let output = mailroom.run(&["status"]);
    assert!(
        said(&output).contains("sender_unproven"),
        "{}",
        said(&output)
    );
}
