//! Tests whether the reviews of a recorded ledger approve a commit, and every reason against: each case changes words of
//! its records.

use std::collections::BTreeSet;
use std::path::Path;

use git::Changes;
use inspect::verdict::{ApprovalQuestion, ApprovalVerdict, Comparison, EvidenceSummary};
use message_schema::id::{DiffDigest, RepoPath};
use review::HumanPaths;
use workspace::index::LedgerIndex;

use crate::recorded_workspace::workspace;
use crate::rewritten::rewrite;

const ASKED: &str = "1111111111111111111111111111111111111111";
const OTHER: &str = "2222222222222222222222222222222222222222";

/// The record of the approval of #88 by claude.
const APPROVAL: usize = 4;

/// A question in words: the pull request, the commit, and options.
fn question(words: &str) -> ApprovalQuestion {
    let mut words = words.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let mut question = ApprovalQuestion {
        pr: next().parse().expect("a number"),
        head: next().parse().expect("a commit"),
        repo: None,
        reviewers: Vec::new(),
        allow_waiting: false,
    };
    for option in words {
        match option.split_once('=') {
            Some(("by", name)) => question.reviewers.push(name.parse().expect("a name")),
            Some(("repo", name)) => question.repo = Some(name.parse().expect("a repository")),
            Some(_) => panic!("{option}"),
            None => question.allow_waiting = option == "waiting",
        }
    }
    question
}

fn verdict(root: &Path, asked: &ApprovalQuestion) -> Result<ApprovalVerdict, String> {
    let (index, _) = LedgerIndex::read(root).expect("a ledger");
    ApprovalVerdict::of(index.state(), asked).map_err(|error| error.to_string())
}

/// The whole answer on one line, commits by their names.
fn told(verdict: &Result<ApprovalVerdict, String>) -> String {
    let text = match verdict {
        Ok(verdict) => {
            let said = verdict.reviews.iter().map(|review| {
                assert_eq!(review.passes, review.reasons.is_empty(), "{review:?}");
                review.summary.clone()
            });
            let passes = if verdict.passes { "yes" } else { "no" };
            format!("{passes}: {}", said.collect::<Vec<_>>().join(" | "))
        }
        Err(error) => format!("error: {error}"),
    };
    text.replace(ASKED, "ASKED").replace(OTHER, "OTHER")
}

/// Replaces words in the record of the approval.
fn approved(change: &str) -> tempfile::TempDir {
    let root = workspace();
    if !change.is_empty() {
        let ready = r#""merge_ready":true"#;
        rewrite(
            root.path(),
            APPROVAL,
            ready,
            &change.replace("READY", ready),
        );
    }
    root
}

/// The approval is for this commit.
fn of_commit(commit: &str) -> String {
    format!(r#""commit":"{commit}",READY"#)
}

#[test]
fn every_reason_against_an_approval_is_in_the_answer() {
    let [asked, other] = [ASKED, OTHER].map(of_commit);
    for (change, question_words, expected) in [
        ("", "88 ASKED", "no: approved without naming a commit"),
        (&*asked, "88 ASKED", "yes: approved ASKED"),
        (&asked, "088 ASKED by=claude", "yes: approved ASKED"),
        (
            &asked,
            "88 ASKED by=gemini",
            "error: no review of pull request 88 with gemini",
        ),
        (&asked, "89 ASKED", "error: no review of pull request 89"),
        (
            &asked,
            "89 ASKED repo=o/r",
            "error: no review of pull request 89 of o/r",
        ),
        (&other, "88 ASKED", "no: approved OTHER, which is not ASKED"),
        (
            &asked,
            "88 1111111",
            "no: approved ASKED, asked about 1111111: --repo-dir and --base expand it",
        ),
        (
            &asked,
            "88 2222222",
            "no: approved ASKED, which is not 2222222",
        ),
        (
            r#""commit":"1111111",READY"#,
            "88 ASKED",
            "no: approved 1111111, asked about ASKED: an abbreviated approval holds for none, because several commits may begin so",
        ),
        (
            &format!(r#""commit":"{ASKED}","stale":true,READY"#),
            "88 ASKED",
            "no: the approval of ASKED is stale: the last event of the pull request named another head",
        ),
        (
            &format!(r#""commit":"{ASKED}","broken":["nits","evidence"],READY"#),
            "88 ASKED",
            "no: approved against the gate, advisory only (nits, evidence)",
        ),
        (
            &format!(r#""commit":"{ASKED}","merge_ready":false"#),
            "88 ASKED",
            "no: approved, but the reviewer says that it is not ready to merge (merge_ready: false)",
        ),
        (
            &format!(r#""commit":"{ASKED}","merge_ready":false"#),
            "88 ASKED waiting",
            "yes: approved ASKED",
        ),
        (
            "",
            "86 ASKED",
            "no: no approval yet (reviewing, round 2: codex moves)",
        ),
    ] {
        let root = approved(change);
        let asked = question(&question_words.replace("ASKED", ASKED));
        let text = told(&verdict(root.path(), &asked));
        assert_eq!(text, expected, "{change} {question_words}");
    }
}

#[test]
fn a_review_that_ended_otherwise_says_how() {
    for (phase, expected) in [
        (
            r#""closed":"merged""#,
            "no: ended without approval (its pull request was merged)",
        ),
        (
            r#""closed":"not_merged""#,
            "no: ended without approval (its pull request was closed)",
        ),
        (
            r#""closed":"commented""#,
            "no: ended without approval (its last feedback was a comment)",
        ),
        (
            r#""escalated":{"reviewer":"ask Ann"}"#,
            "no: escalated to a person (the reviewer says: ask Ann)",
        ),
    ] {
        let root = workspace();
        let before = r#""approved":{"merge_ready":true,"at":"2026-11-23T08:01:28.292Z","evidence":{"digest_matches":false,"declared":0,"served":0,"observed":0}}"#;
        rewrite(root.path(), APPROVAL, before, phase);
        let text = told(&verdict(root.path(), &question(&format!("88 {ASKED}"))));
        assert_eq!(text, expected);
    }
}

#[test]
fn an_approval_moves_to_another_commit_only_where_the_change_is_the_same() {
    let same = || Comparison::Same {
        patch_id: "f00".to_owned(),
    };
    let void = || Comparison::Void {
        why: "they differ in a.rs".to_owned(),
        fetch: None,
    };
    let stale = format!(r#""commit":"{ASKED}","stale":true,READY"#);
    let waits = format!(r#""commit":"{OTHER}","merge_ready":false"#);
    for (change, words, found, expected) in [
        (
            of_commit(OTHER),
            "88 ASKED",
            Some(same()),
            "yes: approved OTHER; ASKED makes the same change (patch f00)",
        ),
        (
            of_commit(OTHER),
            "88 ASKED",
            Some(void()),
            "no: approved OTHER, which is not ASKED; they differ in a.rs",
        ),
        (
            of_commit(ASKED),
            "88 1111111",
            Some(Comparison::Itself),
            "yes: approved ASKED, which is 1111111",
        ),
        (
            stale,
            "88 ASKED",
            Some(Comparison::Itself),
            "yes: approved ASKED, which is ASKED",
        ),
        (
            waits,
            "88 ASKED",
            Some(same()),
            "no: approved, but the reviewer says that it is not ready to merge (merge_ready: false); approved OTHER; ASKED makes the same change (patch f00)",
        ),
        // Nothing is compared where nothing else is asked, or where the approval names no whole commit.
        (of_commit(ASKED), "88 ASKED", None, "yes: approved ASKED"),
        (
            of_commit("2222222"),
            "88 ASKED",
            None,
            "no: approved 2222222, which is not ASKED",
        ),
        (
            String::new(),
            "88 ASKED",
            None,
            "no: approved without naming a commit",
        ),
    ] {
        let root = approved(&change);
        let asked = question(&words.replace("ASKED", ASKED));
        let mut verdict = verdict(root.path(), &asked).expect("an answer");
        let mut found = found;
        let compared = verdict.remap(|_| found.take().ok_or("nothing to compare"));
        assert_eq!(compared, Ok(()), "{change}");
        assert!(found.is_none(), "{change}: it is compared");
        assert_eq!(told(&Ok(verdict)), expected, "{change}");
    }
}

#[test]
fn an_agent_that_was_shown_another_change_has_not_approved_this_one() {
    const BASE: &str = "3333333333333333333333333333333333333333";
    let person = format!(r#""commit":"{ASKED}","by_person":"ann",READY"#);
    for (base, change, hidden, expected) in [
        (
            true,
            of_commit(ASKED),
            Some("2 of 3 files"),
            "no: approved another change: 2 of 3 files",
        ),
        (true, of_commit(ASKED), None, "yes: approved ASKED"),
        (
            false,
            of_commit(ASKED),
            Some("never asked"),
            "yes: approved ASKED",
        ),
        (true, person, Some("never asked"), "yes: approved ASKED"),
        (
            true,
            of_commit(OTHER),
            Some("never asked"),
            "no: approved OTHER, which is not ASKED",
        ),
    ] {
        let root = approved(&change);
        if base {
            let asked = format!(r#","reading":{{"asked":{{"base":"{BASE}"}}}},"round":1"#);
            rewrite(root.path(), APPROVAL, r#","round":1"#, &asked);
        }
        let mut verdict =
            verdict(root.path(), &question(&format!("88 {ASKED}"))).expect("an answer");
        let compared = verdict.bar_other_changes(|from, to| {
            assert_eq!((from.as_str(), to.as_str()), (BASE, ASKED));
            Ok::<_, ()>(hidden.map(str::to_owned))
        });
        assert_eq!(compared, Ok(()));
        assert_eq!(told(&Ok(verdict)), expected, "{change}");
    }
}

#[test]
fn a_file_that_only_a_person_may_approve_bars_an_agent() {
    let path = |path: &&str| RepoPath::new(*path).expect("a path");
    let changes = |files: &[&str], links: &[&str]| Changes {
        digest: DiffDigest::new(format!("sha256:{}", "0".repeat(64))).expect("a digest"),
        files: files.iter().map(path).collect(),
        links: links.iter().map(path).collect::<BTreeSet<_>>(),
    };
    let of_person = format!(r#""commit":"{ASKED}","by_person":"ann",READY"#);
    let barred = "no: approved by an agent, but only a person may approve a change of .github/x";
    let nothing = "no: the branch already has ASKED, so git cannot show whether it changes a file that only a person may approve";
    let free = "yes: approved ASKED";
    for (change, patterns, changes, expected) in [
        (
            of_commit(ASKED),
            vec![".github/"],
            Some(changes(&["a", ".github/x"], &[])),
            barred,
        ),
        (
            of_commit(ASKED),
            vec![".github/"],
            Some(changes(&["a", "b"], &["a"])),
            free,
        ),
        // A link may lead to such files.
        (
            of_commit(ASKED),
            vec!["**/migrations/"],
            Some(changes(&["a", "db"], &["db"])),
            "no: approved by an agent, but only a person may approve a change of db",
        ),
        (
            of_commit(ASKED),
            vec!["**/migrations/"],
            Some(changes(&["a", "db"], &[])),
            free,
        ),
        (of_commit(ASKED), vec![".github/"], None, nothing),
        (of_commit(ASKED), vec![], None, free),
        (of_person.clone(), vec![".github/"], None, free),
        (
            of_person,
            vec![".github/"],
            Some(changes(&[".github/x"], &[])),
            free,
        ),
    ] {
        let root = approved(&change);
        let mut verdict =
            verdict(root.path(), &question(&format!("88 {ASKED}"))).expect("an answer");
        let patterns = patterns.into_iter().map(str::to_owned).collect();
        verdict.bar_human_paths(
            changes.as_ref(),
            &HumanPaths::new(patterns).expect("patterns"),
        );
        assert_eq!(told(&Ok(verdict)), expected, "{changes:?}");
    }
}

/// A workspace in which the review of #86, with its open blocker and the commit `0badcafe`, is one of #88 in the
/// repository `x/y`, and that of #88 one in `o/r`.
fn two_repositories() -> tempfile::TempDir {
    let root = workspace();
    for record in [1, 6, 8, 9, 11] {
        rewrite(
            root.path(),
            record,
            r#""pr":"86""#,
            r#""repo":"x/y","pr":"88""#,
        );
    }
    for record in [2, APPROVAL] {
        rewrite(
            root.path(),
            record,
            r#""pr":"88""#,
            r#""repo":"o/r","pr":"88""#,
        );
    }
    root
}

#[test]
fn a_blocker_in_another_repository_bars_the_approval_of_the_same_change() {
    const SAME: &str = "0badcafe00000000000000000000000000000000";
    let root = two_repositories();
    rewrite(
        root.path(),
        APPROVAL,
        r#""merge_ready":true"#,
        &format!(r#""commit":"{SAME}","merge_ready":true"#),
    );
    let of = |words: &str| verdict(root.path(), &question(words));
    let verdict = of(&format!("88 {SAME} repo=o/r")).expect("an answer");
    let other = verdict.reviews[0].blocked_by().map(ToString::to_string);
    assert_eq!(other.as_deref(), Some("x/y#88 claude -> codex"));
    assert_eq!(
        told(&Ok(verdict)),
        "no: x/y#88 claude -> codex is about the same change, and a finding there blocks it"
    );
    // It is about the approved commit, whatever is asked.
    assert_eq!(
        told(&of(&format!("88 {ASKED} repo=o/r"))),
        format!(
            "no: approved {SAME}, which is not ASKED; x/y#88 claude -> codex is about the same change, and a finding there blocks it"
        )
    );
    assert_eq!(
        told(&of(&format!("88 {SAME} repo=x/y"))),
        "no: no approval yet (reviewing, round 2: codex moves)"
    );
    assert_eq!(
        told(&of(&format!("88 {SAME}"))),
        "error: review_ambiguous: pull request 88 exists in several repositories: o/r, x/y; name one with --repo"
    );
    rewrite(root.path(), APPROVAL, SAME, ASKED);
    assert_eq!(
        told(&of(&format!("88 {ASKED} repo=o/r"))),
        "yes: approved ASKED"
    );
    // Without a blocker it bars nothing.
    rewrite(root.path(), APPROVAL, ASKED, SAME);
    for state in ["open", "open"] {
        rewrite(
            root.path(),
            6,
            &format!(r#""state":"{state}""#),
            r#""state":"resolved""#,
        );
    }
    assert_eq!(
        told(&of(&format!("88 {SAME} repo=o/r"))),
        format!("yes: approved {SAME}")
    );
}

#[test]
fn evidence_is_told_in_lines_that_name_five_files() {
    let evidence = |json: &str| {
        serde_json::from_str::<EvidenceSummary>(json)
            .expect("evidence")
            .lines()
    };
    let none = r#""declared":1,"served":2,"observed":3"#;
    let numbers = "evidence: files 1 declared, 2 served, 3 observed";
    let run = r#"{"command":"make","exit":0,"duration_ms":1,"output":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}"#;
    for (json, expected) in [
        ("{}".to_owned(), vec![]),
        (
            format!(r#"{{"evidence":{{"digest_matches":true,{none}}}}}"#),
            vec![numbers.to_owned()],
        ),
        (
            format!(r#"{{"evidence":{{"digest_matches":false,{none},"missing":["a","b"]}}}}"#),
            vec![format!(
                "{numbers}; not examined: a, b; no diff_digest that matches the request"
            )],
        ),
        (
            format!(
                r#"{{"evidence":{{"digest_matches":true,{none},"commands_declared":["make","x"],"commands_observed":[{run}]}}}}"#
            ),
            vec![format!("{numbers}; commands 2 declared, 1 observed")],
        ),
        (
            format!(
                r#"{{"evidence":{{"digest_matches":true,{none},"commands_observed":[{run}]}}}}"#
            ),
            vec![format!("{numbers}; commands 0 declared, 1 observed")],
        ),
        (
            r#"{"edits_tests":["a","b","c","d","e"]}"#.to_owned(),
            vec!["edits_tests: a, b, c, d, e".to_owned()],
        ),
        (
            r#"{"edits_tests":["a","b","c","d","e","f","g"]}"#.to_owned(),
            vec!["edits_tests: a, b, c, d, e and 2 more".to_owned()],
        ),
    ] {
        assert_eq!(evidence(&json), expected, "{json}");
    }
}

#[test]
fn two_commits_with_one_digest_make_the_same_change() {
    let shown = |digit: &str| {
        let digest = format!("sha256:{}", digit.repeat(64));
        format!(r#","reading":{{"asked":{{"digest":"{digest}"}}}},"round":"#)
    };
    let barred =
        "no: x/y#88 claude -> codex is about the same change, and a finding there blocks it";
    for (here, there, expected) in [
        (Some("a"), Some("a"), barred),
        (Some("a"), Some("b"), "yes: approved ASKED"),
        (Some("a"), None, "yes: approved ASKED"),
        (None, None, "yes: approved ASKED"),
    ] {
        let root = two_repositories();
        let ready = r#""merge_ready":true"#;
        let of_asked = format!(r#""commit":"{ASKED}",{ready}"#);
        rewrite(root.path(), APPROVAL, ready, &of_asked);
        for (record, digest) in [(APPROVAL, here), (11, there)] {
            if let Some(digest) = digest {
                rewrite(root.path(), record, r#","round":"#, &shown(digest));
            }
        }
        let asked = question(&format!("88 {ASKED} repo=o/r"));
        let text = told(&verdict(root.path(), &asked));
        assert_eq!(text, expected, "{here:?} {there:?}");
    }
}

#[test]
fn an_approval_names_what_silence_resolved() {
    let root = approved(&of_commit(ASKED));
    let thread = |id: &str, resolution: &str| {
        format!(
            r#""{id}":{{"severity":"P1","blocking":true,"opened_in":1,"state":"resolved","resolution":"{resolution}","dialogue":{{"stance":"accepts","round_count":0,"replies":0}}}}"#
        )
    };
    let threads = [
        thread("F-1", "silence"),
        thread("F-2", "word"),
        thread("F-3", "silence"),
    ];
    let threads = format!(r#","threads":{{{}}},"round":"#, threads.join(","));
    rewrite(root.path(), APPROVAL, r#","round":"#, &threads);
    let text = told(&verdict(root.path(), &question(&format!("88 {ASKED}"))));
    assert_eq!(text, "yes: approved ASKED; resolved by silence: F-1, F-3");
}
