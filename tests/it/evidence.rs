//! Evidence of reading: what a request says about its change, what a reviewer gets to see, and what an approval without
//! either is worth. With real git in a real repository.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled, yaml};
use settled_tests::{list, read, sh};
use tempfile::TempDir;

/// A repository with a branch `main`, and `fix/login` that changes two files and a test.
fn repository() -> TempDir {
    let directory = settled_tests::scratch();
    sh(
        directory.path(),
        "git init -q -b main .
         mkdir src tests; echo 1 > src/a.rs; echo 1 > b.txt; git add -A; git commit -qm base
         git checkout -qb fix/login; echo 2 >> src/a.rs; echo 2 >> b.txt; echo t > tests/a.rs
         git add -A; git commit -qm login; git checkout -q main; echo 3 > c; git add -A; git commit -qm on",
    );
    directory
}

fn run(mailroom: &Mailroom, agent: &str, directory: &Path, args: &[&str]) -> Output {
    settled()
        .args(args)
        .args(["--agent", agent, "--root"])
        .arg(mailroom.root())
        .current_dir(directory)
        .output()
        .expect("settled can be run")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// Sends a request for `fix/login` from this repository.
fn request(mailroom: &Mailroom, directory: &Path, more: &[&str]) -> Output {
    let args = [
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--diff-summary",
        "It logs in.",
        "--id",
        "req-1",
        "--branch",
        "fix/login",
        "--json",
    ];
    run(mailroom, "claude", directory, &[&args[..], more].concat())
}

/// The body of the sent request.
fn body(mailroom: &Mailroom) -> Value {
    let sent = yaml(&mailroom.agent("claude", "sent").join("req-1.yaml"));
    serde_yaml::from_str(sent["body"].as_str().expect("a text")).expect("a mapping")
}

/// The digest computed from the definition in `docs/protocol.md`, without our code.
fn by_definition(directory: &Path, base: &str, head: &str) -> String {
    let page = read(settled_tests::repository().join("docs/protocol.md"));
    let start = page.find("git diff-tree -r ");
    let line = &page[start.expect("the definition")..];
    let line = &line[..line.find("```").expect("its end")];
    let script = format!("BASE={base}; HEAD={head}; {line}");
    let sum = sh(directory, &script);
    format!("sha256:{}", sum.split(' ').next().expect("a sum"))
}

#[test]
fn a_request_out_of_a_repository_says_what_differs() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let repository = repository();
    let output = request(&mailroom, repository.path(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let body = body(&mailroom);
    let head = sh(repository.path(), "git rev-parse fix/login");
    let base = sh(repository.path(), "git merge-base main fix/login");
    assert_eq!(body["declared_head"], Value::from(head.as_str()));
    assert_eq!(body["base_sha"], Value::from(base.as_str()));
    assert_eq!(
        body["changed_files"],
        serde_json::json!(["b.txt", "src/a.rs", "tests/a.rs"])
    );
    assert_eq!(
        body["diff_digest"],
        Value::from(by_definition(repository.path(), &base, &head))
    );
}

#[test]
fn more_than_two_hundred_files_go_into_a_packet() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let repository = repository();
    sh(
        repository.path(),
        "git checkout -q fix/login; for n in $(seq 198); do echo $n > $n.txt; done; git add -A; git commit -qm many",
    );
    let output = request(&mailroom, repository.path(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let body = body(&mailroom);
    assert_eq!(body.get("changed_files"), None);
    let path = body["changed_files_packet"].as_str().expect("a path");
    let packet = yaml(&mailroom.root().join(path));
    let files = packet["changed_files"].as_array().expect("a list");
    assert_eq!(files.len(), 201);
    let ledger = list(mailroom.root().join(".settled/ledger"));
    assert!(
        ledger
            .iter()
            .any(|segment| read(segment).contains("197.txt")),
        "the ledger has no text of the packet"
    );

    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    sh(repository.path(), "git rm -q 1.txt; git commit -qm less");
    let output = request(&mailroom, repository.path(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let files = self::body(&mailroom)["changed_files"].take();
    assert_eq!(files.as_array().map(Vec::len), Some(200));
}

#[test]
fn what_git_cannot_tell_is_left_out_and_named() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let repository = repository();
    let outside = settled_tests::scratch();
    let told = |directory: &Path, more: &[&str]| {
        let output = request(&mailroom, directory, &[more, &["--dry-run"]].concat());
        assert!(output.status.success(), "{}", said(&output));
        let answer = json(&output);
        let text = answer["data"]["message_text"].as_str().expect("a text");
        assert!(!text.contains("diff_digest"), "{text}");
        answer["alerts"].to_string()
    };
    assert!(!told(outside.path(), &[]).contains("no_diff_digest"));
    assert!(told(repository.path(), &["--head", "abcdef0"]).contains("abcdef0 is not in"));
    let nothing = told(repository.path(), &["--head", "main", "--base", "main"]);
    assert!(nothing.contains("adds nothing to its base"), "{nothing}");
    sh(repository.path(), "git branch -m main trunk");
    let unknown = told(repository.path(), &[]);
    assert!(unknown.contains("name it with --base"), "{unknown}");
}

/// A workspace in which evidence is required, with a request for `fix/login` that names a validation command.
fn strict(directory: &Path) -> Mailroom {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[gate]\nevidence = \"require\"\n");
    let more = ["--validation-commands", "test -e b.txt"];
    let output = request(&mailroom, directory, &[&more[..], &["--no-wait"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    assert!(mailroom.once().status.success());
    mailroom
}

fn review(mailroom: &Mailroom) -> Value {
    mailroom.status()["reviews"][0].take()
}

#[test]
fn what_settled_diff_printed_is_what_an_approval_says_was_served() {
    let repository = repository();
    let clone = settled_tests::scratch();
    let from = repository.path().display();
    sh(clone.path(), &format!("git clone -q {from} ."));
    let mailroom = strict(repository.path());
    let _daemon = mailroom.serve();
    let lgtm = |more: &[&str]| {
        let args = ["lgtm", "86", "--ran", "test -e b.txt=pass"];
        run(
            &mailroom,
            "codex",
            clone.path(),
            &[&args[..], more].concat(),
        )
    };
    let refused = lgtm(&[]);
    assert_eq!(refused.status.code(), Some(8), "{}", said(&refused));
    assert!(
        said(&refused).contains("approval_without_evidence"),
        "{}",
        said(&refused)
    );

    let names = run(&mailroom, "codex", clone.path(), &["diff", "86", "--names"]);
    assert_eq!(
        String::from_utf8_lossy(&names.stdout)
            .matches("-       ")
            .count(),
        3
    );
    let some = run(
        &mailroom,
        "codex",
        clone.path(),
        &["diff", "--file", "b.txt", "src/a.rs"],
    );
    let text = String::from_utf8_lossy(&some.stdout).into_owned();
    assert!(
        text.contains("+2") && !text.contains("tests/a.rs"),
        "{text}"
    );
    let approved = lgtm(&["--examined", "tests/a.rs"]);
    assert!(approved.status.success(), "{}", said(&approved));
    let approval = &review(&mailroom);
    assert_eq!(approval["phase"], "approved", "{approval:#}");
    let ledger: String = list(mailroom.root().join(".settled/ledger"))
        .iter()
        .map(read)
        .collect();
    assert!(
        ledger
            .contains(r#""evidence":{"digest_matches":true,"declared":1,"served":2,"observed":0"#),
        "{ledger}"
    );
}

#[test]
fn a_checkout_with_another_change_serves_nothing() {
    let repository = repository();
    let mailroom = strict(repository.path());
    let outside = settled_tests::scratch();
    sh(outside.path(), "git init -q .");
    let output = run(&mailroom, "codex", outside.path(), &["diff", "86"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        output.stdout.is_empty() && said(&output).contains("git -C . fetch origin"),
        "{}",
        said(&output)
    );
}

/// An author that leaves a file out of its list would hide it from the patterns of `human_paths`.
#[test]
fn a_request_that_lists_other_files_than_differ_is_served_nothing() {
    let repository = repository();
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let shown = json(&request(&mailroom, repository.path(), &["--dry-run"]));
    let text = shown["data"]["message_text"].as_str().expect("a message");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("b.txt"))
        .collect();
    assert_eq!(lines.len() + 1, text.lines().count(), "{text}");
    mailroom.post("claude", "req-1.yaml", &(lines.join("\n") + "\n"));
    assert!(mailroom.once().status.success());
    let output = run(&mailroom, "codex", repository.path(), &["diff", "86"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        output.stdout.is_empty() && said(&output).contains("the 3 files that differ here"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_command_that_was_run_is_recorded_as_observed() {
    let repository = repository();
    sh(repository.path(), "git checkout -q fix/login");
    let mailroom = strict(repository.path());
    let _daemon = mailroom.serve();
    let ran = run(
        &mailroom,
        "claude",
        repository.path(),
        &["validate-run", "86", "--json"],
    );
    assert!(ran.status.success(), "{}", said(&ran));
    let answer = json(&ran);
    let head = sh(repository.path(), "git rev-parse HEAD");
    let record = &answer["data"]["runs"][0];
    assert_eq!(
        (record["exit"].as_i64(), record["head"].as_str()),
        (Some(0), Some(head.as_str()))
    );
    let printed = run(&mailroom, "codex", repository.path(), &["diff"]);
    assert!(printed.status.success(), "{}", said(&printed));
    // The command is required, and only its own runner reports that it ran.
    let sent = [
        "send",
        "review_lgtm",
        "--pr",
        "86",
        "--body",
        "examined: {}",
        "--json",
    ];
    let refused = run(&mailroom, "codex", repository.path(), &sent);
    assert!(
        said(&refused).contains("approval_without_evidence"),
        "{}",
        said(&refused)
    );
    assert!(!said(&refused).contains("test -e"), "{}", said(&refused));
    let dirty = sh(repository.path(), "echo x >> b.txt; git rev-parse HEAD");
    let again = run(
        &mailroom,
        "claude",
        repository.path(),
        &["validate-run", "86", "--json"],
    );
    assert_eq!(
        json(&again)["data"]["runs"][0]["head"],
        Value::Null,
        "{dirty}"
    );
    sh(
        repository.path(),
        "git update-index --skip-worktree b.txt; test -z \"$(git status --short)\"",
    );
    let hidden = run(
        &mailroom,
        "claude",
        repository.path(),
        &["validate-run", "86", "--json"],
    );
    let answer = json(&hidden);
    assert_eq!(answer["data"]["runs"][0]["head"], Value::Null);
    assert_eq!(answer["alerts"][0]["code"], "head_unknown", "{answer}");
}

/// The lines of `tests/fixtures/stream/claude.jsonl`, with these files and this end.
fn stream(files: &[&str], end: &str) -> String {
    let page = read(settled_tests::repository().join("tests/fixtures/stream/claude.jsonl"));
    let mut lines: Vec<Value> = page
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of the stream"))
        .collect();
    let mut result = lines.pop().expect("its end");
    let (call, answer) = (lines[2].clone(), lines[3].clone());
    let mut said = vec![lines[0].clone()];
    for (number, file) in files.iter().enumerate() {
        let (mut call, mut answer) = (call.clone(), answer.clone());
        let id = format!("toolu_{number}");
        call["message"]["content"][0]["id"] = id.as_str().into();
        call["message"]["content"][0]["input"]["file_path"] = (*file).into();
        answer["message"]["content"][0]["tool_use_id"] = id.as_str().into();
        said.extend([call, answer]);
    }
    result["structured_output"] = serde_json::from_str(end).expect("an answer");
    said.push(result);
    said.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_the_runner_sees_its_agent_read_reaches_the_verdict() {
    let repository = repository();
    let directory = repository.path();
    sh(directory, "git checkout -q fix/login");
    let mailroom = strict(directory);
    let digest = body(&mailroom)["diff_digest"].clone();
    let answer = serde_json::json!({ "response": {
        "type": "review_lgtm", "threads": {}, "nits": [], "merge_ready": true,
        "validated_head": sh(directory, "git rev-parse HEAD"),
        "commands_run": [{ "command": "test -e b.txt", "result": "pass", "notes": "" }],
        "examined": { "diff_digest": digest, "declared": ["tests/a.rs"] },
    } });
    let place = settled_tests::scratch();
    let said = place.path().join("said.jsonl");
    // One file of the change by its absolute path, one by its relative path, and one outside of any request. The run's
    // worktree exists only once it starts.
    settled_tests::write(
        &said,
        &stream(
            &["TREE/b.txt", "src/a.rs", "brief.yaml"],
            &answer.to_string(),
        ),
    );
    let config = format!(
        "[gate]\nevidence = \"require\"\n[agents.codex]\ncommand = ['sed', 's|TREE|{{tree}}|', '{}']\noutput = \"claude\"\nworkdir = '{}'\n",
        said.display(),
        directory.display()
    );
    mailroom.put("settled.toml", &config);
    let daemon = mailroom.serve();
    settled_tests::wait::until("the review to end", || {
        review(&mailroom)["phase"] == "approved"
    });
    drop(daemon);
    let observed: Vec<Value> = settled_tests::ledger::records(mailroom.root())
        .into_iter()
        .filter(|record| record["kind"] == "observed")
        .collect();
    assert!(
        !observed.is_empty()
            && observed.iter().all(|record| {
                let record = record.to_string();
                !record.contains("brief.yaml") && !record.contains("tests/a.rs")
            }),
        "{observed:#?}"
    );

    let file = place.path().join("verdict.txt");
    let path = file.display().to_string();
    let exported = mailroom.run(&["verdict", "export", "86", "-o", &path]);
    let head = sh(directory, "git rev-parse HEAD");
    let verify = |more: &[&str]| {
        let args = ["verdict", "verify", &path, "--head", &head];
        mailroom.run(&[&args[..], more].concat())
    };
    for output in [&exported, &verify(&[])] {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in [
            "    evidence: files 1 declared, 0 served, 2 observed; commands 1 declared, 0 observed\n",
            "    edits_tests: tests/a.rs\n",
        ] {
            assert!(
                text.contains(line),
                "{}",
                settled_tests::mailroom::said(output)
            );
        }
    }
    let shown = json(&verify(&["--json"]))["data"]["reviews"][0].take();
    assert_eq!(shown["edits_tests"], serde_json::json!(["tests/a.rs"]));
    assert_eq!(shown["evidence"]["observed"], 2, "{shown:#}");
}

#[test]
fn a_request_that_hides_a_file_of_people_passes_no_gate_that_looks_into_a_clone() {
    let repository = repository();
    let head = sh(repository.path(), "git rev-parse fix/login");
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[gate]\nhuman_paths = [\"b.txt\"]\n");
    let shown = json(&request(&mailroom, repository.path(), &["--dry-run"]));
    let text = shown["data"]["message_text"].as_str().expect("a message");
    let hidden: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("b.txt") && !line.contains("base_sha"))
        .collect();
    mailroom.post("claude", "req-1.yaml", &(hidden.join("\n") + "\n"));
    assert!(mailroom.once().status.success());
    let approved = run(
        &mailroom,
        "codex",
        repository.path(),
        &["lgtm", "86", "--no-wait"],
    );
    assert!(approved.status.success(), "{}", said(&approved));
    assert!(mailroom.once().status.success());

    let check = |more: &[&str]| {
        let args = ["gate", "check", "--pr", "86", "--head", &head, "--json"];
        run(
            &mailroom,
            "codex",
            repository.path(),
            &[&args[..], more].concat(),
        )
    };
    assert!(check(&[]).status.success(), "the list hides it");
    let looked = check(&["--repo-dir", ".", "--base", "main"]);
    assert_eq!(looked.status.code(), Some(8), "{}", said(&looked));
    let reasons = |looked: &Output| json(looked)["data"]["reviews"][0]["reasons"].take();
    assert_eq!(reasons(&looked), serde_json::json!(["human_paths"]));
    // After the merge nothing is left to compare, which is no reason to pass.
    let merged = check(&["--repo-dir", ".", "--base", "fix/login"]);
    assert_eq!(merged.status.code(), Some(8), "{}", said(&merged));
    let listed = reasons(&merged);
    let listed = listed.as_array().expect("a list");
    assert!(listed.contains(&"nothing_to_compare".into()), "{listed:?}");
    // A folder's name guards what is in it, and a pattern of any other file bars nothing.
    let barred = serde_json::json!(["human_paths"]);
    let passes = serde_json::json!([]);
    for (pattern, expected) in [("src", &barred), ("doc", &passes), ("b.tx?/deep", &passes)] {
        let config = format!("[gate]\nhuman_paths = [\"{pattern}\"]\n");
        mailroom.put("settled.toml", &config);
        let looked = check(&["--repo-dir", ".", "--base", "main"]);
        assert_eq!(&reasons(&looked), expected, "{pattern}: {}", said(&looked));
    }
}
