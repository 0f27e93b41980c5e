//! `settled gate check`: exit code 0 for an approval of exactly the given head, and for nothing else.

use std::process::Output;

use settled_tests::approval::{HEAD, OTHER, approve, approved, ask, mailroom};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{golden, list, read};

fn check(mailroom: &Mailroom, head: &str, more: &[&str]) -> Output {
    mailroom.run(&[&["gate", "check", "--pr", "86", "--head", head], more].concat())
}

/// The exit code and the first reason.
fn verdict(mailroom: &Mailroom, head: &str, more: &[&str]) -> (i32, String) {
    let output = check(mailroom, head, &[more, &["--json"]].concat());
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    let reviews = answer["data"]["reviews"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let reasons = reviews
        .iter()
        .filter_map(|review| review["reasons"][0].as_str());
    let code = output.status.code().expect("it ends by itself");
    assert_eq!(answer["ok"], code == 0, "{answer}");
    (code, reasons.collect::<Vec<_>>().join(" "))
}

fn no(reason: &str) -> (i32, String) {
    (8, reason.to_owned())
}

fn yes() -> (i32, String) {
    (0, String::new())
}

#[test]
fn an_approval_holds_for_exactly_its_commit() {
    let mailroom = approved(HEAD);
    golden::check(
        "gate-check.txt",
        &String::from_utf8_lossy(&check(&mailroom, HEAD, &[]).stdout),
    );
    assert_eq!(verdict(&mailroom, HEAD, &[]), yes());
    assert_eq!(verdict(&mailroom, &HEAD.to_uppercase(), &[]), yes());
    assert_eq!(verdict(&mailroom, OTHER, &[]), no("other_commit"));
    // Two commits have the same prefix; only one of them was approved.
    let near = format!("{}0", &HEAD[..39]);
    assert_eq!(verdict(&mailroom, &near, &[]), no("other_commit"));
    let output = check(&mailroom, OTHER, &[]);
    let told = String::from_utf8_lossy(&output.stderr)
        .replace(&mailroom.root().display().to_string(), "ROOT");
    golden::check("gate-check-other.txt", &told);
    for bad in ["9b2f41", "", "main"] {
        assert_eq!(
            check(&mailroom, bad, &[]).status.code(),
            Some(2),
            "{bad:?} is not a commit"
        );
    }
}

/// The commands in the answer work as printed, once their placeholders are filled in.
#[test]
fn the_command_that_mends_another_commit_is_taken_as_it_is_printed() {
    let mailroom = approved(HEAD);
    let answer = mailroom.json(&["gate", "check", "--pr", "86", "--head", OTHER]);
    let run = answer["next"][0]["run"].as_str().expect("a command");
    assert!(
        run.starts_with("settled send review_request --to codex --pr 86 "),
        "{run}"
    );
    let daemon = mailroom.serve();
    let sent = mailroom.shell(&run.replace("BRANCH", "parser").replace("TEXT", "again"));
    assert!(sent.status.success(), "{run}\n{}", said(&sent));
    daemon.terminate();
    approve(
        &mailroom,
        "codex",
        &format!("merge_ready: true\nround: 2\nvalidated_head: \"{OTHER}\""),
    );
    assert_eq!(verdict(&mailroom, OTHER, &[]), yes());
}

#[test]
fn an_abbreviated_commit_passes_no_gate() {
    let mailroom = approved(HEAD);
    let cut = &HEAD[..12];
    assert_eq!(verdict(&mailroom, cut, &[]), no("abbreviated"));
    assert_eq!(verdict(&approved(cut), HEAD, &[]), no("abbreviated"));
    assert_eq!(verdict(&approved(cut), cut, &[]), no("abbreviated"));
    assert_eq!(verdict(&approved(cut), OTHER, &[]), no("other_commit"));
    assert!(
        mailroom.json(&["gate", "check", "--pr", "86", "--head", HEAD])["alerts"]
            == serde_json::json!([])
    );
}

#[test]
fn the_keys_of_the_answer_are_kept() {
    let data = approved(HEAD).json(&["gate", "check", "--pr", "86", "--head", HEAD])["data"].take();
    let keys = |value: &serde_json::Value| {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys(&data), "head passes pr reviews");
    assert_eq!(
        keys(&data["reviews"][0]),
        "approved_at approved_commit author evidence passes phase reasons review reviewer summary"
    );
}

#[test]
fn an_approval_without_a_commit_holds_for_none() {
    let mailroom = mailroom();
    let body = "pr: 86\nbranch: parser\ndiff_summary: A parser.";
    let text =
        settled_tests::seed::review_message("review_request", "r-1", "claude", "codex", "86", body);
    mailroom.post("claude", "r-1.yaml", &text);
    mailroom.once();
    approve(&mailroom, "codex", "merge_ready: true");
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("unbound"));
}

#[test]
fn an_approval_that_waits_counts_only_where_that_is_allowed() {
    let mailroom = mailroom();
    ask(&mailroom, "codex", HEAD);
    approve(&mailroom, "codex", "merge_ready: false");
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("waiting"));
    assert_eq!(verdict(&mailroom, HEAD, &["--allow-waiting"]), yes());
    assert_eq!(
        verdict(&mailroom, OTHER, &["--allow-waiting"]),
        no("other_commit")
    );
}

#[test]
fn an_approval_is_stale_until_an_event_names_its_commit_again() {
    let mailroom = approved(HEAD);
    // The job of an older push, run again, and then the newer one.
    for (head, expected) in [(OTHER, no("stale")), (HEAD, yes())] {
        let told = mailroom.run(&["pr", "synchronize", "86", "--head", head]);
        assert!(told.status.success(), "{}", said(&told));
        assert_eq!(verdict(&mailroom, HEAD, &[]), expected, "{head}");
        assert_eq!(verdict(&mailroom, OTHER, &[]), no("other_commit"));
    }
}

#[test]
fn what_is_not_approved_is_told_with_what_comes_next() {
    let mailroom = mailroom();
    assert_eq!(
        verdict(&mailroom, HEAD, &[]),
        (3, String::new()),
        "no review"
    );
    ask(&mailroom, "codex", HEAD);
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("no_approval"));
    let said_so = said(&check(&mailroom, HEAD, &[]));
    assert!(
        said_so.contains("codex moves") && said_so.contains("try: settled status --root"),
        "{said_so}"
    );

    assert!(
        mailroom
            .run(&["turn", "86", "--count", "8"])
            .status
            .success()
    );
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("escalated"));
    let said_so = said(&check(&mailroom, HEAD, &[]));
    assert!(
        said_so.contains("reviewer_budget_exceeded")
            && said_so.contains("reopen 86 --reviewer codex")
    );

    let mailroom = self::mailroom();
    ask(&mailroom, "codex", HEAD);
    assert!(mailroom.run(&["pr", "closed", "86"]).status.success());
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("closed"));
    assert_eq!(
        mailroom
            .run(&["gate", "check", "--pr", "87", "--head", HEAD])
            .status
            .code(),
        Some(3)
    );
}

#[test]
fn an_approval_against_the_gate_is_none() {
    let mailroom = mailroom();
    mailroom.put(
        "settled.toml",
        "profile = \"advisory\"\n[gate]\nrequire_validation = true\n",
    );
    assert!(
        mailroom
            .run(&["pr", "opened", "86", "--author", "octocat"])
            .status
            .success()
    );
    ask(&mailroom, "codex", HEAD);
    approve(&mailroom, "codex", "merge_ready: true");
    assert_eq!(mailroom.status()["reviews"][0]["phase"], "approved");
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("gate_broken"));
}

#[test]
fn of_several_reviewers_all_have_to_approve_or_those_that_are_named() {
    let mailroom = approved(HEAD);
    ask(&mailroom, "gemini", HEAD);
    assert_eq!(verdict(&mailroom, HEAD, &[]), no("no_approval"));
    assert_eq!(verdict(&mailroom, HEAD, &["--reviewer", "codex"]), yes());
    assert_eq!(
        verdict(
            &mailroom,
            HEAD,
            &["--reviewer", "codex", "--reviewer", "gemini"]
        )
        .0,
        8
    );
    assert_eq!(verdict(&mailroom, HEAD, &["--reviewer", "claude"]).0, 3);
    approve(&mailroom, "gemini", "merge_ready: true");
    assert_eq!(verdict(&mailroom, HEAD, &[]), yes());
    assert_eq!(
        verdict(&mailroom, HEAD, &["--repo", "owner/name"]),
        yes(),
        "no repository was ever named"
    );
}

#[test]
fn a_check_changes_nothing_and_needs_no_lock() {
    let mailroom = approved(HEAD);
    let segment = || read(&list(mailroom.root().join(".settled/ledger"))[0]);
    let before = segment();
    let daemon = mailroom.serve();
    assert_eq!(verdict(&mailroom, HEAD, &[]), yes());
    assert!(daemon.interrupt().success());
    assert_eq!(verdict(&mailroom, HEAD, &[]), yes());
    assert_eq!(segment(), before);
}

/// A review of this commit in this repository, up to the open request.
fn ask_in(mailroom: &Mailroom, repo: &str, head: &str) {
    let sent = mailroom.run(&[
        "send",
        "review_request",
        "--agent",
        "claude",
        "--to",
        "codex",
        "--pr",
        "86",
        "--branch",
        "parser",
        "--diff-summary",
        "A parser.",
        "--repo",
        repo,
        "--declared-head",
        head,
        "--no-wait",
    ]);
    assert!(sent.status.success(), "{}", said(&sent));
    assert!(mailroom.once().status.success());
}

/// An answer of the reviewer in this repository.
fn answer_in(mailroom: &Mailroom, repo: &str, words: &str) {
    let answer = format!("{words} --no-wait");
    for words in ["brief 86", &answer] {
        let words: Vec<&str> = words.split(' ').collect();
        let said_here = mailroom.run(&[&words[..], &["--repo", repo, "--agent", "codex"]].concat());
        assert!(said_here.status.success(), "{}", said(&said_here));
    }
    let judged = mailroom.once();
    assert!(judged.status.success(), "{}", said(&judged));
}

/// The words that send a finding which blocks.
fn blocked(mailroom: &Mailroom) -> String {
    let text = "findings:\n- {severity: P0, title: It runs what it reads}\n";
    mailroom.put("finding.yaml", text);
    let file = mailroom.root().join("finding.yaml");
    format!("feedback 86 --findings {}", file.display())
}

#[test]
fn another_spelling_of_the_repository_gives_no_second_opinion() {
    let mailroom = mailroom();
    ask_in(&mailroom, "owner/nome", HEAD);
    answer_in(&mailroom, "owner/nome", &blocked(&mailroom));
    ask_in(&mailroom, "owner/name", HEAD);
    answer_in(&mailroom, "owner/name", &format!("lgtm 86 --head {HEAD}"));
    let here = ["--repo", "owner/name"];
    assert_eq!(verdict(&mailroom, HEAD, &here), no("blocked_elsewhere"));
    let next = said(&check(&mailroom, HEAD, &here));
    assert!(
        next.contains("settled threads 86 --repo owner/nome"),
        "{next}"
    );
    // The clone's address is the same repository: its review is known, and so is the approval.
    assert_eq!(
        verdict(&mailroom, HEAD, &["--repo", "Owner/Name.git"]),
        no("blocked_elsewhere")
    );
    let resolve = "thread resolve 86 F-1-001 --repo owner/nome --by ann";
    let resolve: Vec<&str> = resolve.split(' ').collect();
    let settled = mailroom.at_terminal(&resolve, "it is intended");
    assert!(settled.status.success(), "{}", said(&settled));
    assert_eq!(verdict(&mailroom, HEAD, &here), yes());
}

#[test]
fn another_commit_under_the_same_number_elsewhere_bars_nothing() {
    let mailroom = mailroom();
    ask_in(&mailroom, "other/fork", OTHER);
    answer_in(&mailroom, "other/fork", &blocked(&mailroom));
    ask_in(&mailroom, "owner/name", HEAD);
    answer_in(&mailroom, "owner/name", &format!("lgtm 86 --head {HEAD}"));
    assert_eq!(verdict(&mailroom, HEAD, &["--repo", "owner/name"]), yes());
}
