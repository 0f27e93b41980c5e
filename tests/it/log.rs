//! `settled log` as it grows, and filtered: the last records, one pull request, one agent, one verdict.

use std::fs::File;
use std::process::{Child, Stdio};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{read, seed, wait};

/// The first round of a review, a refused message and a note about another pull request: five records.
fn mailroom() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    seed::lay_packet(mailroom.root());
    let [request, feedback, ..] = seed::review();
    for post in [&request, &feedback] {
        mailroom.post(post.from, post.file, &post.text);
        mailroom.once();
    }
    mailroom.post(
        "claude",
        "lost.yaml",
        &seed::note("question", "q-1", "claude", "nobody", "?"),
    );
    mailroom.once();
    let note = seed::review_message("question", "q-2", "claude", "gemini", "87", "?");
    mailroom.post("claude", "note.yaml", &note);
    mailroom.once();
    mailroom.post(
        feedback.from,
        "again.yaml",
        &feedback.text.replace("codex-001", "codex-009"),
    );
    mailroom.once();
    mailroom
}

fn numbers(text: &str) -> Vec<u64> {
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an envelope a line"));
    lines
        .map(|line| line["data"]["seq"].as_u64().expect("a number"))
        .collect()
}

fn shown(mailroom: &Mailroom, args: &[&str]) -> Vec<u64> {
    let output = mailroom.run(&[&["log", "--json"], args].concat());
    assert!(output.status.success(), "{}", said(&output));
    numbers(&String::from_utf8_lossy(&output.stdout))
}

/// A running `settled log --follow`; dropping the value kills it.
struct Following {
    child: Child,
    out: tempfile::NamedTempFile,
}

impl Following {
    fn start(mailroom: &Mailroom, args: &[&str]) -> Self {
        let out = tempfile::NamedTempFile::new().expect("a file");
        let stdout = File::create(out.path()).expect("a file for the output");
        let mut command = settled();
        command
            .args(["log", "--follow", "--json", "--root"])
            .arg(mailroom.root())
            .args(args)
            .stdout(stdout);
        Self {
            child: command
                .stderr(Stdio::null())
                .spawn()
                .expect("settled can be run"),
            out,
        }
    }

    fn waits_for(&self, expected: &[u64]) {
        wait::until(&format!("records {expected:?}"), || {
            numbers(&self.whole()) == expected
        });
    }

    /// The complete lines of its output.
    fn whole(&self) -> String {
        let text = read(self.out.path());
        text[..text.rfind('\n').map_or(0, |at| at + 1)].to_owned()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_what_is_asked_for_is_shown() {
    let mailroom = mailroom();
    let cases: &[(&[&str], &[u64])] = &[
        (&[], &[1, 2, 3, 4, 5]),
        (&["-n", "2"], &[4, 5]),
        (&["-n", "0"], &[]),
        (&["-n", "99"], &[1, 2, 3, 4, 5]),
        (&["--pr", "86"], &[1, 2, 5]),
        (&["--pr", "087"], &[4]),
        (&["--pr", "86", "-n", "2"], &[2, 5]),
        (&["--verdict", "refused"], &[3, 5]),
        (&["--of", "gemini"], &[4]),
        (&["--of", "codex"], &[1, 2, 5]),
        (&["--of", "claude", "--verdict", "refused"], &[3, 5]),
    ];
    for (args, expected) in cases {
        assert_eq!(shown(&mailroom, args), *expected, "{args:?}");
    }
}

#[test]
fn a_verdict_nobody_gives_is_a_usage_error() {
    let output = mailroom().run(&["log", "--verdict", "lost"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn what_comes_is_shown_as_it_comes() {
    let mailroom = mailroom();
    let following = Following::start(&mailroom, &["-n", "1"]);
    let refusals = Following::start(&mailroom, &["-n", "0", "--verdict", "refused"]);
    following.waits_for(&[5]);
    let daemon = mailroom.serve();
    mailroom.post(
        "claude",
        "one.yaml",
        &seed::note("question", "q-3", "claude", "codex", "?"),
    );
    following.waits_for(&[5, 6]);
    mailroom.post(
        "claude",
        "two.yaml",
        &seed::note("question", "q-4", "claude", "nobody", "?"),
    );
    following.waits_for(&[5, 6, 7]);
    refusals.waits_for(&[7]);
    assert!(
        daemon.terminate().success(),
        "a follower holds up no daemon"
    );
}

#[test]
fn it_ends_when_its_reader_has_gone_away() {
    let mailroom = mailroom();
    let mut command = settled();
    command
        .args(["log", "--follow", "--root"])
        .arg(mailroom.root());
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("settled can be run");
    drop(child.stdout.take());
    let status = wait::for_some("the end of the command", || {
        child.try_wait().expect("it is our child")
    });
    assert!(status.success(), "{status}");
}

#[test]
fn a_ledger_put_back_while_it_is_followed_is_told() {
    let mailroom = mailroom();
    let segment = mailroom
        .root()
        .join(".settled/ledger/00000000000000000001.jsonl");
    let mut following = Following::start(&mailroom, &[]);
    following.waits_for(&[1, 2, 3, 4, 5]);
    let first = read(&segment)
        .split_inclusive('\n')
        .next()
        .expect("a record")
        .to_owned();
    std::fs::write(&segment, first).expect("an older ledger");
    let end = wait::for_some("its end", || {
        following.child.try_wait().expect("it is our child")
    });
    assert_eq!(end.code(), Some(1));
}

#[test]
fn no_character_that_reorders_a_line_is_printed_as_it_is() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let file = "a\u{202e}lmay.yaml";
    let text = seed::note("question", "q-1", "claude", "codex", "?");
    mailroom.post("claude", file, &text);
    assert!(mailroom.once().status.success());
    for command in [
        &["log"][..],
        &["log", "--json"],
        &["trace", "q-1", "--json"],
    ] {
        let output = mailroom.run(command);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("a%E2%80%AElmay"), "{command:?}: {printed}");
        assert!(!printed.contains('\u{202e}'), "{command:?}: {printed}");
    }
    let line = mailroom.run(&["log", "--json"]).stdout;
    let line: Value = serde_json::from_slice(&line).expect("one document");
    assert_eq!(line["data"]["file"], "a%E2%80%AElmay.yaml");
}
