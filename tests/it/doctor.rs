//! `settled doctor`: it names each problem with its fix, and applies a fix only where nothing can be lost.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said};
use settled_tests::{seed, write};

/// The findings of one check, each with its state and its sentence.
fn of(mailroom: &Mailroom, check: &str, args: &[&str]) -> Vec<(String, String)> {
    let answer = mailroom.json(&[&["doctor"], args].concat());
    let findings = answer["data"]["findings"]
        .as_array()
        .unwrap_or_else(|| panic!("no findings: {answer}"));
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings
        .iter()
        .filter(|finding| finding["check"] == check)
        .map(|finding| (word(finding, "state"), word(finding, "what")))
        .collect()
}

fn state(mailroom: &Mailroom, check: &str, args: &[&str]) -> String {
    let found = of(mailroom, check, args);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].0.clone()
}

fn exit(mailroom: &Mailroom, args: &[&str]) -> Option<i32> {
    mailroom.run(&[&["doctor"], args].concat()).status.code()
}

/// The checks whose state does not depend on the machine of the tests.
const STEADY: [&str; 9] = [
    "workspace",
    "config",
    "access",
    "users",
    "leftovers",
    "clock",
    "ledger",
    "snapshot",
    "alerts",
];

fn wrong(mailroom: &Mailroom) -> Vec<&'static str> {
    STEADY
        .into_iter()
        .filter(|check| {
            of(mailroom, check, &[])
                .iter()
                .any(|(state, _)| state == "wrong")
        })
        .collect()
}

#[test]
fn a_new_workspace_is_all_right() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    assert_eq!(wrong(&mailroom), [""; 0]);
    let daemon = mailroom.serve();
    assert_eq!(state(&mailroom, "serving", &[]), "ok");
    assert_eq!(wrong(&mailroom), [""; 0]);
    assert!(daemon.terminate().success(), "a look disturbs no daemon");
    assert_eq!(state(&mailroom, "access", &["--agent", "claude"]), "ok");
}

#[test]
fn every_finding_that_is_wrong_has_a_fix_and_a_line() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    std::fs::remove_dir(mailroom.agent("codex", "archive")).expect("an empty directory");
    let output = mailroom.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!(
        "wrong   workspace    missing: agents/codex/archive\n{:21}fix: settled doctor --fix --root {}\n",
        "",
        mailroom.root().display()
    );
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn a_missing_directory_is_made_again() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    std::fs::remove_dir(mailroom.agent("codex", "archive")).expect("an empty directory");
    assert_eq!(state(&mailroom, "workspace", &[]), "wrong");
    assert!(
        !mailroom.agent("codex", "archive").exists(),
        "without --fix nothing is changed"
    );
    assert_eq!(
        of(&mailroom, "workspace", &["--fix"]),
        [("fixed".to_owned(), "made agents/codex/archive".to_owned())]
    );
    assert_eq!(state(&mailroom, "workspace", &[]), "ok");
}

#[test]
fn a_wrong_config_is_told_with_its_line() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[rounds]\nmax = 9\n");
    let found = of(&mailroom, "config", &[]);
    assert!(
        found[0].0 == "wrong" && found[0].1.contains("settled.toml:2:7: config_invalid"),
        "{found:?}"
    );
    assert_eq!(exit(&mailroom, &[]), Some(6));
}

/// A temporary file in an inbox, two days old.
fn leave(mailroom: &Mailroom, directory: &str, name: &str) {
    let path = mailroom.agent("codex", directory).join(name);
    write(&path, "text\n");
    let old = SystemTime::now() - Duration::from_secs(48 * 3600);
    File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_modified(old))
        .expect("an older file");
}

#[test]
fn a_temporary_file_goes_only_if_nothing_depends_on_it() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.once();
    // Of a delivered record, of an undelivered one, of a killed retry and a killed send, and of somebody else.
    leave(&mailroom, "inbox", ".settled-1.tmp");
    leave(&mailroom, "inbox", ".settled-9.tmp");
    leave(&mailroom, "outbox", ".settled-retry-7.tmp");
    leave(&mailroom, "dead_letter", ".settled-send-01abc.tmp");
    leave(&mailroom, "outbox", ".theirs.tmp");
    write(
        mailroom
            .agent("codex", "outbox")
            .join(".settled-retry-8.tmp"),
        "young\n",
    );
    assert_eq!(state(&mailroom, "leftovers", &[]), "wrong");
    let mended = of(&mailroom, "leftovers", &["--fix"]);
    let removed = "removed agents/codex/outbox/.settled-retry-7.tmp, agents/codex/inbox/.settled-1.tmp, agents/codex/dead_letter/.settled-send-01abc.tmp";
    assert_eq!(mended, [("fixed".to_owned(), removed.to_owned())]);
    assert!(
        mailroom
            .agent("codex", "inbox")
            .join(".settled-9.tmp")
            .exists(),
        "its record may still be delivered"
    );
    assert!(
        mailroom
            .agent("codex", "outbox")
            .join(".theirs.tmp")
            .exists()
    );
    assert!(
        mailroom
            .agent("codex", "outbox")
            .join(".settled-retry-8.tmp")
            .exists()
    );
}

#[test]
fn a_damaged_ledger_is_wrong_and_a_torn_one_is_not() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    for (file, id) in [("a.yaml", "q-1"), ("b.yaml", "q-2"), ("c.yaml", "q-3")] {
        mailroom.post(
            "claude",
            file,
            &seed::note("question", id, "claude", "codex", "?"),
        );
        mailroom.once();
    }
    let segment = mailroom
        .root()
        .join(".settled/ledger/00000000000000000001.jsonl");
    let whole = settled_tests::read(&segment);
    write(&segment, &format!("{whole}{{\"v\":1"));
    let torn = of(&mailroom, "ledger", &[]);
    assert!(
        torn[0].0 == "note" && torn[0].1.starts_with("3 records, then 6 bytes"),
        "{torn:?}"
    );
    write(&segment, &whole.replacen("q-1", "q-9", 1));
    assert_eq!(state(&mailroom, "ledger", &[]), "wrong");
}

#[test]
fn mail_that_waits_for_no_daemon_is_told() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    assert_eq!(state(&mailroom, "serving", &[]), "note");
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    assert_eq!(state(&mailroom, "serving", &[]), "wrong");
}

#[test]
fn a_clock_behind_the_last_record_is_told() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "a.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.once();
    let segment = mailroom
        .root()
        .join(".settled/ledger/00000000000000000001.jsonl");
    let text = settled_tests::read(&segment);
    let at = text.find("\"at\":\"").expect("a time") + "\"at\":\"".len();
    write(&segment, &format!("{}2999{}", &text[..at], &text[at + 4..]));
    let found = of(&mailroom, "clock", &[]);
    assert!(
        found[0].0 == "wrong" && found[0].1.contains("behind the last record"),
        "{found:?}"
    );
}

#[test]
fn an_outbox_of_another_user_is_told() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.put("settled.toml", "[agents.claude]\nuid = 54321\n");
    let found = of(&mailroom, "users", &[]);
    let is_told =
        |(state, what): &(String, String)| state == "wrong" && what.contains("expected uid 54321");
    assert!(found.iter().any(is_told), "{found:?}");
}

#[test]
fn an_agent_nobody_knows_and_a_workspace_that_is_none_are_told_apart() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    assert_eq!(exit(&mailroom, &["--agent", "gemini"]), Some(5));
    assert_eq!(exit(&Mailroom::absent(), &[]), Some(3));
}

#[test]
fn a_ledger_that_is_gone_is_not_made_anew() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    mailroom.post(
        "claude",
        "q.yaml",
        &seed::note("question", "q-1", "claude", "codex", "?"),
    );
    mailroom.once();
    std::fs::remove_dir_all(mailroom.root().join(".settled/ledger")).expect("a ledger");
    assert_eq!(state(&mailroom, "workspace", &["--fix"]), "wrong");
    assert!(!mailroom.root().join(".settled/ledger").exists());
}
