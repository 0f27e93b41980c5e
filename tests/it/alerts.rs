//! Alerts: what the daemon changes, limits or notices in an accepted message appears in the acceptance, beside the
//! message and in the brief.

use std::process::Output;

use serde_json::Value;
use settled_tests::mailroom::{Mailroom, said, settled};

fn run(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Output {
    settled()
        .args(args)
        .env("SETTLED_ROOT", mailroom.root())
        .env("SETTLED_AGENT", agent)
        .output()
        .expect("settled can be run")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("we print UTF-8")
}

/// The codes of the alerts in a command's JSON, without the command's own about the missing git repository.
fn codes(mailroom: &Mailroom, agent: &str, args: &[&str]) -> Vec<String> {
    let output = run(mailroom, agent, &[args, &["--json"]].concat());
    let answer: Value = serde_json::from_str(&text(&output)).expect("one JSON document");
    let alerts = answer["alerts"].as_array().expect("a list of alerts");
    alerts
        .iter()
        .map(|alert| alert["code"].as_str().expect("a code").to_owned())
        .filter(|code| code != "no_diff_digest")
        .collect()
}

const OLD: &str = "0123456789012345678901234567890123456789";
const NEW: &str = "9876543210987654321098765432109876543210";

fn request<'a>(id: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let plain = [
        "send",
        "review_request",
        "--to",
        "codex",
        "--pr",
        "86",
        "--branch",
        "b",
        "--body",
        "A parser.",
        "--declared-head",
        OLD,
        "--id",
        id,
    ];
    [&plain[..], more].concat()
}

#[test]
fn both_sides_are_told_in_the_acceptance_beside_the_message_and_in_the_brief() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    let asked = request("req-1", &["--max-rounds", "3"]);
    assert_eq!(codes(&mailroom, "claude", &asked), ["rounds_limited"]);
    // A repeated message is accepted once, and the acceptance says the same.
    let again = text(&run(&mailroom, "claude", &asked));
    assert!(
        again.contains("note: max_rounds: the request asks for 3, this project allows 2"),
        "{again}"
    );
    assert_eq!(
        codes(&mailroom, "codex", &["show", "req-1"]),
        ["rounds_limited"]
    );
    assert_eq!(codes(&mailroom, "codex", &["brief"]), ["rounds_limited"]);

    text(&run(
        &mailroom,
        "claude",
        &["pr", "synchronize", "86", "--head", NEW],
    ));
    let approves = ["lgtm", "86", "--head", OLD, "--id", "ok-1"];
    assert_eq!(
        codes(&mailroom, "codex", &approves),
        ["evidence_missing", "approval_stale"]
    );
    let shown = text(&run(&mailroom, "claude", &["show", "ok-1"]));
    let stale =
        format!("note: the approval of `{OLD}` is stale: the head of the pull request is `{NEW}`");
    assert!(shown.contains(&stale), "{shown}");
    let log = text(&mailroom.run(&["log"]));
    assert!(log.contains(&stale), "{log}");
}

#[test]
fn where_nothing_is_changed_nobody_is_told_anything() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    assert!(codes(&mailroom, "claude", &request("req-1", &[])).is_empty());
    assert!(codes(&mailroom, "codex", &["show", "req-1"]).is_empty());
    assert!(codes(&mailroom, "codex", &["brief"]).is_empty());
    let briefs = settled_tests::names(mailroom.root().join("packets/briefs"));
    assert_eq!(briefs, ["86_claude_codex_r1.yaml"]);
    let approves = ["lgtm", "86", "--head", OLD, "--id", "ok-1"];
    // The approval does not say what its reviewer read, which always causes this warning.
    assert_eq!(codes(&mailroom, "codex", &approves), ["evidence_missing"]);
}

#[test]
fn a_warning_about_a_packet_is_shown_to_its_sender() {
    let mailroom = Mailroom::new(&["claude", "codex"]);
    let _daemon = mailroom.serve();
    codes(&mailroom, "claude", &request("req-1", &[]));
    let findings = mailroom.root().join("findings.yaml");
    settled_tests::write(
        &findings,
        "packet_id: 86_codex_claude_r1\nround: 1\nfindings:\n- {id: F-1-001, severity: P1, blocking: true, area: logic, \
         title: The last line is lost, file: a.rs, line: 3, status: open, advice: flush before close}\n",
    );
    let findings = findings.display().to_string();
    let send = |more| {
        let args = [
            "send",
            "review_feedback",
            "--pr",
            "86",
            "--findings-packet",
            &findings,
            more,
        ];
        codes(&mailroom, "codex", &args)
    };
    assert!(send("--dry-run").contains(&"packet_field_unknown".to_owned()));
    assert!(send("--no-wait").contains(&"packet_field_unknown".to_owned()));
}
