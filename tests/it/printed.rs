//! Every printed command works: in common situations, each runs as printed, in a shell, on a copy of the workspace.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use settled_tests::approval::{self, HEAD, OTHER};
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{seed, write};

/// The exit codes of a wrong command: the usage, the agent or the workspace.
const WRONG: [i32; 2] = [2, 5];

/// The commands whose output is read in every situation.
const ASKED: &[&[&str]] = &[
    &["status"],
    &["why", "86"],
    &["why", "404"],
    &["threads", "86"],
    &["threads", "404"],
    &["problems"],
    &["doctor"],
    &["dead-letter", "list"],
    &["dead-letter", "show", "again"],
    &["dead-letter", "show", "404"],
    &["trace", "404"],
    &["trace", "again"],
    &["gate", "check", "--pr", "86", "--head", OTHER],
    &["gate", "check", "--pr", "404", "--head", OTHER],
    &["verdict", "export", "86"],
    &["robot", "triage", "--agent", "claude"],
    &["robot", "triage", "--agent", "codex"],
    &["inbox", "--agent", "codex"],
    &["brief", "--agent", "codex"],
    &["wait", "--timeout", "0", "--agent", "claude"],
];

/// A printed command, and whether a person has to decide at a terminal.
fn printed(answer: &Value, found: &mut BTreeSet<(String, bool)>) {
    match answer {
        Value::Object(keys) => {
            if let Some(run) = keys.get("run").and_then(Value::as_str) {
                found.insert((run.to_owned(), is_for_a_person(run)));
            }
            let fix = keys
                .get("fix")
                .and_then(Value::as_str)
                .filter(|fix| fix.starts_with("settled "));
            found.extend(fix.map(|fix| (fix.to_owned(), false)));
            keys.values().for_each(|value| printed(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| printed(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_for_a_person(run: &str) -> bool {
    let decisions = ["review", "thread"];
    run.split(' ')
        .nth(1)
        .is_some_and(|word| decisions.contains(&word))
}

/// The command with its placeholders filled in, changed to end by itself.
fn filled(run: &str, findings: &str) -> String {
    let words = run.split(' ').map(|word| match word {
        "FILE" => findings,
        "SHA" => HEAD,
        "TEXT" | "BRANCH" => "parser",
        word => word,
    });
    let run = words.collect::<Vec<_>>().join(" ");
    let more = match run.split(' ').nth(1) {
        Some("serve") if !run.contains("--once") => " --once",
        Some("wait" | "send" | "feedback" | "lgtm") => " --timeout 0",
        _ => "",
    };
    run + more
}

/// Runs everything printed for a workspace in this state, except what already ran in an earlier situation of the test.
fn all_can_be_run(situation: &str, mailroom: &Mailroom, known: &mut BTreeSet<String>) {
    let mut found = BTreeSet::new();
    for asked in ASKED {
        let output = mailroom.run(&[asked, &["--json"][..]].concat());
        // `verdict export` prints a file of its own form, unless there is no verdict.
        if let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) {
            assert_eq!(answer["schema_version"], 1, "{situation}: {asked:?}");
            printed(&answer, &mut found);
        }
        assert_ne!(
            output.status.code(),
            None,
            "{situation}: {asked:?} was killed: {}",
            said(&output)
        );
    }
    let paper = settled_tests::scratch();
    let findings = paper.path().join("findings.yaml");
    write(&findings, "findings: []\n");
    for (number, (run, is_for_a_person)) in found.into_iter().enumerate() {
        let root = mailroom.root().display().to_string();
        assert!(
            !run.starts_with("settled ") || run.contains(&root),
            "{situation}: `{run}` says not where"
        );
        if !known.insert(run.replace(&root, "ROOT")) {
            continue;
        }
        let copy = paper.path().join(number.to_string());
        let copied = Command::new("cp")
            .arg("-a")
            .arg(mailroom.root())
            .arg(&copy)
            .status();
        assert!(copied.expect("cp can be run").success());
        let line = filled(&run, &findings.display().to_string())
            .replace(&root, &copy.display().to_string());
        let output = mailroom.shell(&line);
        let code = output.status.code().expect("it ends by itself");
        let is_right = if is_for_a_person {
            code != 2
        } else {
            !WRONG.contains(&code) && code < 126
        };
        assert!(
            is_right,
            "{situation}: `{run}`\nas `{line}`\n{}",
            said(&output)
        );
    }
}

/// A review after the first messages of the seed.
fn after(count: usize) -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    seed::lay_packet(mailroom.root());
    for post in seed::review().iter().take(count) {
        mailroom.post(post.from, post.file, &post.text);
        assert!(mailroom.once().status.success());
    }
    mailroom
}

#[test]
fn what_is_printed_while_a_review_goes_on_can_be_run() {
    let mut known = BTreeSet::new();
    all_can_be_run("nothing was asked yet", &after(0), &mut known);
    let unjudged = after(0);
    unjudged.post("claude", "request.yaml", &seed::review()[0].text);
    all_can_be_run("the request waits to be judged", &unjudged, &mut known);
    for (count, phase) in [
        (1, "reviewing"),
        (2, "fixing"),
        (3, "addressed"),
        (4, "the last round"),
    ] {
        all_can_be_run(phase, &after(count), &mut known);
    }
}

#[test]
fn what_is_printed_at_the_end_of_a_review_can_be_run() {
    let mut known = BTreeSet::new();
    all_can_be_run("approved", &after(5), &mut known);
    let stale = approval::approved(HEAD);
    all_can_be_run("approved at another commit", &stale, &mut known);
    assert!(
        stale
            .run(&["pr", "synchronize", "86", "--head", OTHER])
            .status
            .success()
    );
    all_can_be_run("stale", &stale, &mut known);
    let spent = after(1);
    assert!(spent.run(&["turn", "86", "--count", "8"]).status.success());
    all_can_be_run("escalated", &spent, &mut known);
    let unbound = approval::mailroom();
    approval::ask(&unbound, "codex", HEAD);
    approval::approve(&unbound, "codex", "merge_ready: false");
    all_can_be_run("it waits", &unbound, &mut known);
    assert!(spent.run(&["pr", "closed", "86"]).status.success());
    all_can_be_run("closed", &spent, &mut known);
}

/// With one number in two repositories, printed commands name the repository.
#[test]
fn what_is_printed_of_one_of_two_repositories_means_that_one() {
    let mailroom = after(0);
    for repo in ["ours/here", "ours/there"] {
        let request = seed::review()[0]
            .text
            .replace("  pr: 86\n", &format!("  pr: 86\n  repo: {repo}\n"));
        assert!(request.contains(repo), "{request}");
        let id = format!("ask-{}", &repo[5..]);
        mailroom.post(
            "claude",
            &format!("{id}.yaml"),
            &request.replace(seed::id(&request), &id),
        );
        let output = mailroom.once();
        assert!(output.status.success(), "{}", said(&output));
    }
    let mends = mailroom.json(&["why", "86"])["data"]["reviews"][0]["fixes"].take();
    let brief = mends.as_array().expect("a list").iter().find_map(|mend| {
        mend["run"]
            .as_str()
            .filter(|run| run.starts_with("settled brief 86 --repo ours/"))
    });
    let asked =
        mailroom.shell(brief.unwrap_or_else(|| panic!("no brief of one repository: {mends}")));
    assert!(asked.status.success(), "{}", said(&asked));
    for repo in ["ours/here", "ours/there"] {
        assert!(
            mailroom
                .run(&["turn", "86", "--repo", repo, "--count", "8"])
                .status
                .success()
        );
        let reopened = mailroom.at_terminal(
            &["review", "reopen", "86", "--repo", repo, "--by", "ann"],
            "again",
        );
        assert!(reopened.status.success(), "{}", said(&reopened));
    }
    let why = mailroom.json(&["why", "86"]);
    for review in why["data"]["reviews"].as_array().expect("a list") {
        let (of, run) = (
            review["review"].as_str(),
            review["fixes"][0]["run"].as_str(),
        );
        let repo = if of.is_some_and(|of| of.contains("here"))
            && of.is_some_and(|of| !of.contains("there"))
        {
            "--repo ours/here "
        } else {
            "--repo ours/there "
        };
        assert!(run.is_some_and(|run| run.contains(repo)), "{review}");
    }
}

#[test]
fn what_is_printed_where_something_is_wrong_can_be_run() {
    let mut known = BTreeSet::new();
    let refused = after(1);
    let again = seed::review()[0]
        .text
        .replace(seed::id(&seed::review()[0].text), "again");
    refused.post("claude", "again and again.yaml", &again);
    assert_eq!(refused.once().status.code(), Some(7));
    all_can_be_run("a dead letter", &refused, &mut known);
    refused.put(
        "agents/codex/inbox/stray.yaml",
        &seed::note("question", "s-1", "claude", "codex", "?"),
    );
    let mended = refused.once();
    assert!(mended.status.success(), "{}", said(&mended));
    std::fs::remove_dir_all(refused.agent("codex", "archive")).expect("only receipts are there");
    all_can_be_run(
        "a directory is missing, and mail nobody sent",
        &refused,
        &mut known,
    );
    let held = after(2);
    assert!(
        held.at_terminal(&["thread", "hold", "86", "F-001", "--by", "ann"], "mine")
            .status
            .success()
    );
    all_can_be_run("a thread is with a person", &held, &mut known);
}
