//! Entries of an outbox besides finished messages: unfinished files, files that are not messages, entries that are not
//! files; and outboxes that come and go.

use std::process::Output;

use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{names, seed, wait, write};

fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn an_empty_file_is_refused_only_after_its_writer_had_time() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    mailroom.post("claude", "slow.yaml", "");
    // Once the daemon has delivered this one, it has seen everything that was there before.
    mailroom.post(
        "claude",
        "other.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.delivered("codex", "other.yaml");
    let outbox = mailroom.agent("claude", "outbox");
    wait::until("the other file to be put away", || {
        names(&outbox) == ["slow.yaml"]
    });
    assert_eq!(mailroom.status()["refused"], 0);
    let text = seed::note("question", "q-2", "claude", "codex", "now it is written");
    mailroom.post("claude", "slow.yaml", &text);
    assert_eq!(mailroom.delivered("codex", "slow.yaml"), text);

    mailroom.post("claude", "never.yaml", "");
    assert_eq!(mailroom.refused("claude", "never.yaml")["refused"], "empty");
}

#[test]
fn once_waits_for_an_unfinished_file_before_it_says_that_one_was_refused() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post("claude", "empty.yaml", "");
    let output = mailroom.once();
    assert_exit(&output, 7);
    assert_eq!(last_line(&output), "0 accepted, 1 refused, 0 duplicates");
    assert_eq!(mailroom.refused("claude", "empty.yaml")["refused"], "empty");
}

#[test]
fn temporary_and_hidden_files_are_left_alone() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let text = seed::note("question", "q-1", "claude", "codex", "?");
    for file in [".a.yaml", "a.yaml.tmp", "a.txt", "README"] {
        mailroom.post("claude", file, &text);
    }
    assert_exit(&mailroom.once(), 0);
    assert_eq!(
        names(mailroom.agent("claude", "outbox")),
        [".a.yaml", "README", "a.txt", "a.yaml.tmp"]
    );
    assert_eq!(names(mailroom.agent("codex", "inbox")), [""; 0]);
}

#[test]
fn json_and_yml_are_messages_too() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let json = r#"{"id": "j-1", "from": "claude", "to": "codex", "type": "question", "priority": "P2",
        "created_at_utc": "2026-02-13T10:00:00Z", "subject": "JSON is YAML", "body": "?"}"#;
    mailroom.post("claude", "a.json", json);
    mailroom.post(
        "claude",
        "b.yml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    assert_exit(&mailroom.once(), 0);
    assert_eq!(names(mailroom.agent("codex", "inbox")), ["a.json", "b.yml"]);
}

#[test]
fn what_is_no_regular_file_is_refused_unread() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let secret = mailroom.root().join("packets/secret");
    write(
        &secret,
        &seed::note("question", "q-1", "claude", "codex", "the secret"),
    );
    let outbox = mailroom.agent("claude", "outbox");
    std::os::unix::fs::symlink(&secret, outbox.join("link.yaml")).expect("a link");
    std::fs::create_dir(outbox.join("directory.yaml")).expect("a directory");
    assert_exit(&mailroom.once(), 7);
    for file in ["link.yaml", "directory.yaml"] {
        assert_eq!(
            mailroom.refused("claude", file)["refused"],
            "not_a_file",
            "{file}"
        );
    }
    assert_eq!(names(mailroom.agent("codex", "inbox")), [""; 0]);
    assert!(secret.exists(), "what a link points to stays where it is");
}

#[test]
fn more_than_256_kib_are_refused_unread() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post("claude", "huge.yaml", &"x".repeat(256 * 1024 + 1));
    assert_exit(&mailroom.once(), 7);
    assert_eq!(
        mailroom.refused("claude", "huge.yaml")["refused"],
        "too_large"
    );
}

#[test]
fn an_agent_added_while_the_daemon_runs_is_served() {
    let mailroom = Mailroom::new(&["claude"]);
    let _daemon = mailroom.serve();
    assert_exit(&mailroom.run(&["init", "--agents", "codex"]), 0);
    let text = seed::note("question", "q-1", "codex", "claude", "new here");
    mailroom.post("codex", "hello.yaml", &text);
    assert_eq!(mailroom.delivered("claude", "hello.yaml"), text);
    wait::until("the original in sent/", || {
        mailroom.agent("codex", "sent").join("hello.yaml").exists()
    });
}

#[test]
fn directories_an_agent_removed_are_made_again() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for directory in ["sent", "dead_letter", "archive"] {
        std::fs::remove_dir(mailroom.agent("claude", directory)).expect("an empty directory");
    }
    mailroom.post(
        "claude",
        "good.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.post(
        "claude",
        "bad.yaml",
        &seed::note("question", "q-2", "claude", "nobody", "?"),
    );
    assert_exit(&mailroom.once(), 7);
    assert_eq!(names(mailroom.agent("claude", "sent")), ["good.yaml"]);
    assert_eq!(
        names(mailroom.agent("claude", "dead_letter")),
        ["bad.report.yaml", "bad.yaml"]
    );
}

#[test]
fn an_outbox_made_anew_while_the_daemon_runs_is_still_served() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let outbox = mailroom.agent("claude", "outbox");
    std::fs::remove_dir(&outbox).expect("an empty outbox");
    std::fs::create_dir(&outbox).expect("a new outbox");
    for n in 1..3 {
        let text = seed::note("question", &format!("q-{n}"), "claude", "codex", "?");
        mailroom.post("claude", &format!("{n}.yaml"), &text);
        assert_eq!(mailroom.delivered("codex", &format!("{n}.yaml")), text);
    }
}
