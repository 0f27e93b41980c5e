//! `settled verdict`: an exported file proves an approval without a workspace, and no other file does: neither a
//! damaged one, nor one that somebody made consistent around something that was never decided.

mod forged;

use std::path::{Path, PathBuf};
use std::process::Output;

use settled_tests::approval::{HEAD, OTHER, approve, approved, ask, mailroom};
use settled_tests::mailroom::{Mailroom, said, settled};
use settled_tests::{read, seed, wait};
use tempfile::TempDir;

/// A verdict file without a workspace.
struct Paper {
    directory: TempDir,
}

impl Paper {
    fn of(mailroom: &Mailroom, more: &[&str]) -> Self {
        let paper = Self {
            directory: settled_tests::scratch(),
        };
        let path = paper.path().display().to_string();
        let output = mailroom.run(&[&["verdict", "export", "86", "-o", &path], more].concat());
        assert!(output.status.success(), "{}", said(&output));
        paper
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("verdict.txt")
    }

    fn text(&self) -> String {
        read(self.path())
    }

    fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    fn verify(&self, head: &str, more: &[&str]) -> Output {
        verify(&self.path(), head, more)
    }

    /// The exit code with other bytes in its place.
    fn with(&self, bytes: &[u8]) -> i32 {
        let path = self.directory.path().join("other.txt");
        std::fs::write(&path, bytes).expect("written");
        verify(&path, HEAD, &[])
            .status
            .code()
            .expect("it ends by itself")
    }
}

fn verify(path: &Path, head: &str, more: &[&str]) -> Output {
    settled()
        .args(["verdict", "verify"])
        .arg(path)
        .args(["--head", head])
        .args(more)
        .output()
        .expect("settled")
}

/// The header and the ledger's lines of a file.
fn parts(paper: &Paper) -> (String, Vec<String>) {
    let lines = paper.lines();
    let record = |line: &String| line.splitn(4, ' ').nth(3).expect("a record").to_owned();
    let header = lines[1]
        .strip_prefix("header ")
        .expect("a header")
        .to_owned();
    (
        header,
        lines[2..lines.len() - 1].iter().map(record).collect(),
    )
}

/// A mailroom with two rounds, a refusal that cost an attempt, an order and an approval of `HEAD`.
fn eventful() -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex", "gemini"]);
    seed::lay_packet(mailroom.root());
    let [request, feedback, addressed, again, lgtm] = seed::review();
    let post = |from: &str, file: &str, text: &str| {
        mailroom.post(from, file, text);
        mailroom.once();
    };
    post("claude", request.file, &request.text);
    assert!(mailroom.run(&["turn", "86"]).status.success());
    post(
        "codex",
        "too-early.yaml",
        &lgtm.text.replace("-002", "-000").replace("pass", "fail"),
    );
    post("codex", feedback.file, &feedback.text);
    post(
        "claude",
        "note.yaml",
        &seed::note("question", "q-1", "claude", "codex", "Which one?"),
    );
    post(
        "claude",
        addressed.file,
        &addressed.text.replace("abc1234", HEAD),
    );
    post("claude", again.file, &again.text);
    post("codex", lgtm.file, &lgtm.text);
    assert!(
        mailroom
            .run(&["pr", "synchronize", "86", "--head", HEAD])
            .status
            .success()
    );
    mailroom
}

#[test]
fn a_file_proves_its_approval_without_a_workspace() {
    let mailroom = eventful();
    let paper = Paper::of(&mailroom, &[]);
    let output = paper.verify(HEAD, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    let data = &answer["data"];
    assert_eq!(
        (&data["passes"], &data["judged"], &data["given"]),
        (&true.into(), &8.into(), &0.into())
    );
    assert_eq!(paper.verify(OTHER, &[]).status.code(), Some(8));
    // The file holds every record byte for byte as the ledger does.
    let ledger = read(&settled_tests::list(mailroom.root().join(".settled/ledger"))[0]);
    for record in parts(&paper).1 {
        assert!(ledger.lines().any(|line| line == record), "{record}");
    }
    // The anchor is the digest that `ledger verify` prints.
    let checked = String::from_utf8_lossy(&mailroom.run(&["ledger", "verify"]).stdout).into_owned();
    let last = checked
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"))
        .expect("a digest");
    assert_eq!(data["ledger"]["last"], last);
    let seal = data["seal"].as_str().expect("a seal");
    assert!(
        paper
            .verify(HEAD, &["--seal", seal, "--pr", "086"])
            .status
            .success()
    );
    // A question, which the file does not hold, came before the end: the anchor says nothing about what is before.
    let output = paper.verify(HEAD, &["--anchor", last, "--seal", seal]);
    assert_eq!(output.status.code(), Some(8), "{}", said(&output));
    assert!(
        said(&output).contains("does not hold every record"),
        "{}",
        said(&output)
    );
    for (option, value) in [("--anchor", seal), ("--seal", last), ("--pr", "87")] {
        assert_eq!(
            paper.verify(HEAD, &[option, value]).status.code(),
            Some(8),
            "{option}"
        );
    }
}

#[test]
fn an_anchor_binds_a_file_that_holds_every_record_up_to_it() {
    let mailroom = approved(HEAD);
    let anchored = |mailroom: &Mailroom| {
        let paper = Paper::of(mailroom, &[]);
        let output = paper.verify(HEAD, &["--json"]);
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("one JSON document");
        let last = answer["data"]["ledger"]["last"].as_str().expect("a digest");
        paper.verify(HEAD, &["--anchor", last])
    };
    let output = anchored(&mailroom);
    assert!(output.status.success(), "{}", said(&output));

    // The file ends before the ledger does.
    mailroom.post(
        "claude",
        "note.yaml",
        &seed::note("question", "q-1", "claude", "codex", "Which one?"),
    );
    mailroom.once();
    let output = anchored(&mailroom);
    assert_eq!(output.status.code(), Some(8), "{}", said(&output));
    assert!(
        said(&output).contains("--anchor proves nothing"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_export_and_verify_print_is_kept() {
    let mailroom = approved(HEAD);
    let steady = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let word = |word: &str| {
            if word.starts_with("sha256:") {
                "DIGEST"
            } else {
                word
            }
            .to_owned()
        };
        let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
        text.lines().map(line).collect::<String>()
    };
    let directory = settled_tests::scratch();
    let path = directory.path().join("verdict.txt");
    let shown = path.display().to_string();
    let exported = mailroom.run(&["verdict", "export", "86", "-o", &shown]);
    settled_tests::golden::check(
        "verdict-export.txt",
        &steady(&exported).replace(&shown, "FILE"),
    );
    settled_tests::golden::check("verdict-verify.txt", &steady(&verify(&path, HEAD, &[])));
    let piped = mailroom.run(&["verdict", "export", "86"]);
    assert!(
        piped.status.success()
            && String::from_utf8_lossy(&piped.stdout).starts_with("settled verdict 1\n")
    );
    assert_eq!(
        mailroom
            .run(&["verdict", "export", "86", "--json"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        mailroom.run(&["verdict", "export", "87"]).status.code(),
        Some(3)
    );
    assert_eq!(
        verify(&directory.path().join("absent.txt"), HEAD, &[])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn a_number_of_two_repositories_is_exported_of_one_that_is_named() {
    let mailroom = mailroom();
    for (repo, reviewer) in [("a/b", "codex"), ("c/d", "gemini")] {
        let body =
            format!("pr: 86\nbranch: b\ndiff_summary: d\nrepo: {repo}\ndeclared_head: \"{HEAD}\"");
        let text =
            seed::review_message("review_request", reviewer, "claude", reviewer, "86", &body);
        mailroom.post("claude", &format!("{reviewer}.yaml"), &text);
        mailroom.once();
    }
    approve(&mailroom, "codex", "merge_ready: true");
    assert_eq!(
        mailroom.run(&["verdict", "export", "86"]).status.code(),
        Some(1)
    );
    assert_eq!(
        mailroom
            .run(&["gate", "check", "--pr", "86", "--head", HEAD])
            .status
            .code(),
        Some(1)
    );
    assert_eq!(
        mailroom
            .run(&[
                "verdict",
                "export",
                "86",
                "--reviewer",
                "claude",
                "--repo",
                "a/b"
            ])
            .status
            .code(),
        Some(3)
    );
    assert_eq!(
        Paper::of(&mailroom, &["--repo", "a/b"])
            .verify(HEAD, &[])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(
        Paper::of(&mailroom, &["--repo", "c/d"])
            .verify(HEAD, &[])
            .status
            .code(),
        Some(8)
    );
}

#[test]
fn what_people_and_deadlines_did_on_the_way_is_heard_again() {
    let mailroom = mailroom();
    let body = format!(
        "pr: 86\nbranch: b\ndiff_summary: d\ndeclared_head: \"{HEAD}\"\nmax_runtime_s_reviewer: 1"
    );
    let short = seed::review_message("review_request", "short", "claude", "codex", "86", &body);
    mailroom.post("claude", "short.yaml", &short);
    assert!(mailroom.run(&["take", "--pr", "86"]).status.success());
    // A deadline, an order that does not fit, and a person who gives the review back.
    wait::until("the second to be over", || {
        mailroom.once();
        mailroom.status()["reviews"][0]["phase"] == "escalated"
    });
    assert_eq!(mailroom.run(&["turn", "86"]).status.code(), Some(3));
    let reopened = mailroom.at_terminal(&["review", "reopen", "86"], "the reviewer was cut off");
    assert!(reopened.status.success(), "{}", said(&reopened));
    assert_eq!(
        Paper::of(&mailroom, &[]).verify(HEAD, &[]).status.code(),
        Some(8)
    );
    let body = format!("pr: 86\nbranch: b\ndiff_summary: d\ndeclared_head: \"{HEAD}\"");
    let again = seed::review_message(
        "review_request",
        "ask-again",
        "claude",
        "codex",
        "86",
        &body,
    );
    mailroom.post("claude", "ask-again.yaml", &again);
    mailroom.once();
    // Three refused responses escalate the round to a person.
    for n in 0..3 {
        let text = "quality_gate_result: fail\nmerge_ready: true";
        let id = format!("wrong-{n}");
        let text = seed::review_message("review_lgtm", &id, "codex", "claude", "86", text);
        mailroom.post("codex", &format!("{id}.yaml"), &text);
        mailroom.once();
    }
    assert_eq!(
        mailroom.status()["reviews"][0]["reason"],
        "protocol_violation"
    );
    assert!(
        mailroom
            .at_terminal(&["review", "reopen", "86"], "once more")
            .status
            .success()
    );
    let again = again.replace("ask-again", "ask-once-more");
    mailroom.post("claude", "ask-once-more.yaml", &again);
    mailroom.once();
    approve(&mailroom, "codex", "merge_ready: true");
    assert!(
        mailroom
            .run(&["pr", "merged", "86", "--head", HEAD])
            .status
            .success()
    );
    let output = Paper::of(&mailroom, &[]).verify(HEAD, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(answer["data"]["judged"], 13, "{answer}");
}

#[test]
fn of_several_reviewers_the_file_says_who_counts() {
    let mailroom = approved(HEAD);
    ask(&mailroom, "gemini", HEAD);
    assert_eq!(
        Paper::of(&mailroom, &[]).verify(HEAD, &[]).status.code(),
        Some(8)
    );
    let of_codex = Paper::of(&mailroom, &["--reviewer", "codex"]);
    assert!(of_codex.verify(HEAD, &[]).status.success());
    assert_eq!(
        of_codex
            .verify(HEAD, &["--reviewer", "gemini"])
            .status
            .code(),
        Some(8)
    );
    approve(&mailroom, "gemini", "merge_ready: true");
    assert!(Paper::of(&mailroom, &[]).verify(HEAD, &[]).status.success());
}

#[test]
fn a_policy_that_was_changed_since_is_told_at_once() {
    let mailroom = approved(HEAD);
    mailroom.put("settled.toml", "[gate]\nrequire_validation = true\n");
    let directory = settled_tests::scratch();
    let path = directory.path().join("verdict.txt").display().to_string();
    let answer = mailroom.json(&["verdict", "export", "86", "-o", &path]);
    assert_eq!(answer["alerts"][0]["code"], "policy_changed");
    let output = verify(Path::new(&path), HEAD, &[]);
    assert_eq!(output.status.code(), Some(8), "{}", said(&output));
    assert!(
        said(&output).contains("record 2 does not follow"),
        "{}",
        said(&output)
    );
}

#[test]
fn escalations_deadlines_and_waiting_approvals_prove_nothing() {
    let mailroom = mailroom();
    ask(&mailroom, "codex", HEAD);
    assert_eq!(
        Paper::of(&mailroom, &[]).verify(HEAD, &[]).status.code(),
        Some(8)
    );
    approve(&mailroom, "codex", "merge_ready: false");
    let waiting = Paper::of(&mailroom, &[]);
    assert_eq!(waiting.verify(HEAD, &[]).status.code(), Some(8));
    assert!(waiting.verify(HEAD, &["--allow-waiting"]).status.success());
    assert!(
        mailroom
            .run(&["pr", "synchronize", "86", "--head", OTHER])
            .status
            .success()
    );
    let stale = Paper::of(&mailroom, &[]);
    assert_eq!(
        stale.verify(HEAD, &["--allow-waiting"]).status.code(),
        Some(8)
    );
}

/// A feedback with a P2 that does not block, on a pull request of gemini that is then merged: handed off to claude.
fn handed_off(mailroom: &Mailroom, pr: &str) {
    let packet = format!("packets/findings/{pr}.yaml");
    mailroom.put(
        &packet,
        "findings:\n  - {id: F-001, severity: P2, status: open, blocking: false, file: a.rs}\n",
    );
    let request = format!("pr: {pr}\nbranch: b\ndiff_summary: d");
    let feedback = format!("findings_packet: {packet}\nround: 1\nblocking_count: 0");
    for (kind, from, to, body) in [
        ("review_request", "gemini", "codex", request),
        ("review_feedback", "codex", "gemini", feedback),
    ] {
        let id = format!("{kind}-{pr}");
        mailroom.post(
            from,
            &format!("{id}.yaml"),
            &seed::review_message(kind, &id, from, to, pr, &body),
        );
        let output = mailroom.once();
        assert!(output.status.success(), "{}", said(&output));
    }
    let merged = mailroom.run(&["pr", "merged", pr]);
    assert!(
        merged.status.success() && said(&merged).contains("handoff-pr"),
        "{}",
        said(&merged)
    );
}

#[test]
fn a_fix_pull_request_comes_with_what_it_was_to_fix() {
    let mailroom = mailroom();
    mailroom.put(
        "settled.toml",
        "[handoff]\nmode = \"full\"\ntarget = \"claude\"\n",
    );
    handed_off(&mailroom, "84");
    handed_off(&mailroom, "85");
    let body = format!(
        "pr: 86\nbranch: b\ndiff_summary: d\ndeclared_head: \"{HEAD}\"\nhandoff_ref: handoff-pr85-2"
    );
    let text = seed::review_message("review_request", "fix-1", "claude", "codex", "86", &body);
    mailroom.post("claude", "fix-1.yaml", &text);
    mailroom.once();
    let nit = "nits:\n- {nit_id: N-1, tier: P2, summary: s, owner: claude, next_action: n, source: F-001}";
    approve(&mailroom, "codex", &format!("merge_ready: true\n{nit}"));
    let paper = Paper::of(&mailroom, &[]);
    let output = paper.verify(HEAD, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(
        (&answer["data"]["judged"], &answer["data"]["given"]),
        (&2.into(), &1.into())
    );

    // The records of one pull request do not show the task's number among all tasks.
    let path = paper.directory.path().join("85.txt").display().to_string();
    let exported = mailroom.json(&["verdict", "export", "85", "-o", &path]);
    assert_eq!(exported["alerts"], serde_json::json!([]), "{exported}");
    let output = verify(Path::new(&path), HEAD, &[]);
    assert!(
        said(&output).contains("ended without approval"),
        "{}",
        said(&output)
    );
}
