//! A failed start as people see it: the cause, the program's last words and the folder, the same everywhere.

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::Value;
use settled_tests::ledger;
use settled_tests::mailroom::said;

use super::Room;

/// A used-up quota, as Claude Code prints it.
const QUOTA: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":WHEN}}
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}"#;

/// A rejected key, as Codex prints it.
const KEY: &str = r#"{"type":"turn.failed","error":{"message":"{\"status\": 401, \"error\": {\"message\": \"no such key\"}}"}}"#;

/// The failure in `status --json` after the review was escalated.
fn failed(room: &Room) -> Value {
    let daemon = room.serve();
    room.ask("86", "request-1", 20, 8);
    let (review, _) = room.end();
    assert_eq!(review["reason"], "invocation_failed");
    drop(daemon);
    review["failed"].clone()
}

#[test]
fn each_cause_is_told_with_the_programs_words() {
    // A time more than a month away would not be believed.
    let tomorrow = Utc::now() + TimeDelta::days(1);
    let quota = QUOTA.replace("WHEN", &tomorrow.timestamp().to_string());
    for (behaviour, output, cause, why) in [
        (
            ["print", "", "no route to host", "3"],
            "text",
            "crashed",
            "it ended with code 3: no route to host",
        ),
        (
            ["print", &quota, "", "1"],
            "claude",
            "quota",
            "it ended with code 1, its quota is used up: You have hit your limit",
        ),
        (
            ["print", KEY, "", "0"],
            "codex",
            "not_logged_in",
            "it is not logged in: no such key",
        ),
        (
            ["print", "I like it.", "a warning", "0"],
            "text",
            "unreadable",
            "it ended without a verdict",
        ),
    ] {
        let room = Room::new(&behaviour, &format!("output = \"{output}\""));
        let failed = failed(&room);
        assert_eq!(
            (&failed["cause"], &failed["why"], &failed["reviewer"]),
            (&cause.into(), &why.into(), &"codex".into()),
            "{failed}"
        );
        let retry = (cause == "quota").then(|| tomorrow.to_rfc3339_opts(SecondsFormat::Secs, true));
        assert_eq!(failed["retry_after"].as_str(), retry.as_deref(), "{failed}");
        let folder = failed["folder"].as_str().expect("a folder");
        assert!(room.mailroom.root().join(folder).join("stderr").exists());
        // Each failed start has its record.
        let records = ledger::records(room.mailroom.root());
        let recorded: Vec<&Value> = records
            .iter()
            .filter(|record| record["kind"] == "failed")
            .map(|record| &record["decision"]["happened"]["event"]["failed"]["cause"])
            .collect();
        assert_eq!(recorded, [cause, cause]);
    }
}

#[test]
fn a_program_that_is_not_there_is_missing() {
    let room = Room::with_command("'/no/such/program'", "");
    let failed = failed(&room);
    assert_eq!(failed["cause"], "missing", "{failed}");
}

#[test]
fn a_workdir_that_is_not_there_is_not_taken_for_a_missing_program() {
    let room = Room::new(&["print", "", "", "0"], "workdir = \"/no/such/directory\"");
    let failed = failed(&room);
    assert_eq!(failed["cause"], "crashed", "{failed}");
    let why = "it cannot be prepared: its workdir /no/such/directory is not a directory";
    assert_eq!(failed["why"], why);
}

#[test]
fn why_problems_and_the_notice_show_the_last_line_escaped_and_the_folder() {
    let room = Room::new(&["print", "", r"first\n\033[31mred\007 line", "3"], "");
    let failed = failed(&room);
    let folder = failed["folder"].as_str().expect("a folder").to_owned();
    let words = r"it ended with code 3: \u{1b}[31mred\u{7} line";
    let whole = format!("{words} ({folder})");
    for command in [&["why", "86"][..], &["problems"]] {
        let shown = said(&room.mailroom.run(command));
        // Long lines are wrapped for people.
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&whole), "{command:?}: {shown}");
    }
    let why = room.mailroom.json(&["why", "86"]);
    assert_eq!(why["data"]["reviews"][0]["failed"]["why"], words, "{why}");
    // The daemon was killed once the review showed its end, perhaps before it delivered the notice; the next start
    // does.
    room.mailroom.run(&["serve", "--once"]);
    let inbox = room.mailroom.agent("claude", "inbox");
    let notices: Vec<String> = settled_tests::list(&inbox)
        .iter()
        .map(settled_tests::read)
        .collect();
    let told = notices.iter().any(|notice| notice.contains(&folder));
    assert!(told, "{notices:?}");
}
