//! The model of a recorded workspace, the whole mailroom and each review, against `golden/`; `UPDATE=1` rewrites it.
//! Following the ledger record by record gives the same model as reading it at once.

#[path = "../../../tests/recorded_workspace.rs"]
mod recorded_workspace;

use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use cockpit::Follower;
use message_schema::id::AgentName;
use review::{ReviewKey, Which};
use serde::Serialize;
use serde_json::{Value, json};
use spool::Digest;
use tempfile::TempDir;

use self::recorded_workspace::{at, check, workspace};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// The ledger's only segment.
const LEDGER: &str = ".settled/ledger/00000000000000000001.jsonl";

fn spelled(_: Option<&AgentName>, words: &str) -> String {
    format!("settled {words}")
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain values are JSON") + "\n"
}

fn keys(follower: &Follower) -> Vec<ReviewKey> {
    let reviews = follower.status().index.state().reviews();
    reviews.map(|(key, _)| key.clone()).collect()
}

fn details(follower: &Follower, now: DateTime<Utc>) -> String {
    let mut text = String::new();
    for key in keys(follower) {
        let detail = follower.review(&key, now, &spelled);
        text += &pretty(&detail.expect("it is in the state"));
    }
    text
}

/// The overview without the name of the directory, which differs between copies.
fn overview(follower: &Follower, now: DateTime<Utc>) -> String {
    let mut overview = follower.overview(now, &spelled);
    "mailroom".clone_into(&mut overview.mailroom);
    pretty(&overview)
}

#[test]
fn the_mailroom_shows_who_must_move_and_what_became_of_reviews() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let mut text = String::new();
    for hours in [0, 1_000] {
        let now = at(TimeDelta::hours(hours));
        text += &format!("after {hours} h: {}", overview(&follower, now));
    }
    check(GOLDEN, "overview.json", root.path(), &text);
}

#[test]
fn each_review_shows_its_gate_its_rounds_and_what_was_said() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let text = details(&follower, at(TimeDelta::zero()));
    check(GOLDEN, "reviews.json", root.path(), &text);
    for key in keys(&follower) {
        assert_eq!(follower.key_of(&key.to_string()), Some(&key));
    }
    assert_eq!(follower.key_of("#1 claude -> codex"), None);
}

#[test]
fn each_review_shows_what_the_config_asks_and_what_it_allows() {
    let root = workspace();
    let config = "[gate]\nvalidation_commands = [\"cargo test\"]\n\
                  [budget]\nper_review = { tokens = 1000, usd = 2.5 }\n";
    fs::write(root.path().join("settled.toml"), config).expect("a config");
    let follower = Follower::open(root.path()).expect("a workspace");
    let now = at(TimeDelta::zero());
    let budgets = [
        json!({"of": "tokens", "left": 1_000, "whole": 1_000}),
        json!({"of": "cents", "left": 250, "whole": 250}),
    ];
    for key in keys(&follower) {
        assert_eq!(follower.keys_of(&Which::of(&key)), [&key]);
        let detail = follower.review(&key, now, &spelled);
        let detail = serde_json::to_value(detail).expect("plain values are JSON");
        let told = detail["budgets"].as_array().expect("budgets");
        for budget in &budgets {
            assert!(told.contains(budget), "{key}: {told:?}");
        }
        let clauses = detail["gate"]["clauses"].as_array().expect("clauses");
        let mut clauses = clauses.iter();
        let validation = clauses.find(|clause| clause["clause"] == "validation");
        let what = validation.expect("the clause")["what"].as_str();
        let expected = match detail["row"]["phase"].as_str() {
            Some("approved") => "recorded as passing",
            _ => "to be recorded as passing: cargo test",
        };
        assert_eq!(what, Some(expected), "{key}");
    }
}

/// Later records of the workspace: two validation commands ran for #87 on no known commit, the first failed; an order
/// reported that the request of #88 was taken, and was declined; the deadlines of #86 and #87 passed.
const LATER: &str = include_str!("later.jsonl");

/// A workspace with the first `records` records of what happened afterwards.
fn later(records: usize) -> TempDir {
    let root = workspace();
    let config = "[gate]\nvalidation_commands = [\"true\", \"test -e nothing\"]\n";
    fs::write(root.path().join("settled.toml"), config).expect("a config");
    let ledger = root.path().join(LEDGER);
    let mut text = fs::read_to_string(&ledger).expect("a ledger");
    text.extend(LATER.split_inclusive('\n').take(records));
    fs::write(&ledger, text).expect("a ledger");
    root
}

fn detail(follower: &Follower, name: &str, now: DateTime<Utc>) -> serde_json::Value {
    let key = follower.key_of(name).expect("a review");
    let detail = follower.review(key, now, &spelled);
    serde_json::to_value(detail).expect("plain values are JSON")
}

#[test]
fn a_run_on_no_known_commit_leaves_the_gate_as_it_was() {
    let now = at(TimeDelta::zero());
    let what = "to be recorded as passing: test -e nothing, true";
    for records in [0, 1, 2] {
        let root = later(records);
        let follower = Follower::open(root.path()).expect("a workspace");
        let detail = detail(&follower, "#87 claude -> gemini", now);
        let clauses = detail["gate"]["clauses"].as_array().expect("clauses");
        let mut clauses = clauses.iter();
        let clause = clauses.find(|clause| clause["clause"] == "validation");
        let expected = json!({"clause": "validation", "is": "pending", "what": what});
        assert_eq!(clause, Some(&expected), "{records}");
    }
}

#[test]
fn what_was_declined_is_told_with_the_review_that_it_was_about() {
    let root = later(3);
    let follower = Follower::open(root.path()).expect("a workspace");
    for name in keys(&follower).iter().map(ToString::to_string) {
        let detail = detail(&follower, &name, at(TimeDelta::zero()));
        let rounds = detail["rounds"].as_array().expect("rounds").iter();
        let events = rounds.flat_map(|round| round["events"].as_array().expect("events"));
        let declined = events.filter(|event| event["kind"] == "declined");
        let expected = usize::from(name == "#88 codex -> claude");
        assert_eq!(declined.count(), expected, "{name}");
    }
}

#[test]
fn reviews_that_were_handed_to_a_person_are_counted_on_their_day() {
    let root = later(5);
    let follower = Follower::open(root.path()).expect("a workspace");
    let now = at(TimeDelta::days(2));
    let overview = serde_json::to_value(follower.overview(now, &spelled)).expect("JSON");
    assert_eq!(
        overview["history"]["days"],
        json!([
            {"day": "2026-11-23", "opened": 3, "approved": 1, "escalated": 0, "closed": 0},
            {"day": "2026-11-25", "opened": 0, "approved": 0, "escalated": 2, "closed": 0},
        ])
    );
    let detail = detail(&follower, "#86 claude -> codex", now);
    let stops = detail["rounds"][1]["stops"].as_array().expect("stops");
    let stops: Vec<_> = stops.iter().map(|stop| &stop["stop"]).collect();
    assert_eq!(stops, ["request", "escalated", "decision"]);
}

#[test]
fn a_review_names_who_must_move_and_the_mailroom_what_it_needs() {
    let root = workspace();
    let follower = Follower::open(root.path()).expect("a workspace");
    let now = at(TimeDelta::zero());
    let overview = follower.overview(now, &spelled);
    for (name, mover) in [
        // Mail waits, and no daemon serves.
        ("#86 claude -> codex", "operator"),
        ("#87 claude -> gemini", "gemini (reviewer)"),
        // Its approval names no commit.
        ("#88 codex -> claude", "codex (author)"),
    ] {
        let key = follower.key_of(name).expect("a review");
        let detail = follower.review(key, now, &spelled).expect("a review");
        assert_eq!(detail.mover().as_deref(), Some(mover), "{name}");
        let need = overview.need_of(name);
        let need = need.and_then(|need| need.review.as_deref());
        assert_eq!(need, Some(name));
    }
    assert!(overview.need_of("#1 claude -> codex").is_none());
}

/// The workspace of these records, each with a kind, deliveries and a decision, after the first ones recorded.
fn continued(records: usize, more: &[Value]) -> TempDir {
    let root = workspace();
    let ledger = root.path().join(LEDGER);
    let text = fs::read_to_string(&ledger).expect("a ledger");
    let lines = text.lines().take(records).map(str::to_owned);
    let mut lines: Vec<String> = lines.collect();
    for record in more {
        let last = lines.last().map_or("", String::as_str);
        let mut entry = json!({
            "seq": lines.len() + 1, "at": "2026-11-23T08:05:00.000Z", "batch": lines.len() + 1,
            "prev": Digest::of(last.as_bytes()).to_string(), "rules": 2, "review": null, "id": null, "original": null,
        });
        let fields = record.as_object().expect("fields").clone();
        entry.as_object_mut().expect("fields").extend(fields);
        // A line begins with its version.
        lines.push(entry.to_string().replacen('{', "{\"v\":1,", 1));
    }
    fs::write(&ledger, lines.join("\n") + "\n").expect("a ledger");
    root
}

#[test]
fn findings_that_wait_for_a_person_or_for_the_merge_are_listed() {
    let thread = |state: Value, fate: Value| {
        json!({
            "severity": "P1", "blocking": true, "title": "it loops", "opened_in": 1, "state": state, "fate": fate,
            "dialogue": {"stance": "seeks_change", "round_count": 0, "replies": 0},
        })
    };
    let key = json!({"pr": "86", "author": "claude", "reviewer": "codex"});
    let event = json!({"deadline": {"review": key, "which": "pick_up"}});
    let threads = json!({
        "F-1": thread(json!({"held": "veto"}), json!({})),
        "F-2": thread(json!("open"), json!({"queued": true})),
        "F-3": thread(json!("open"), json!({"left": true})),
        "F-4": thread(json!("open"), json!({})),
    });
    let phase = json!({"escalated": "reviewer_timeout"});
    let steps = json!([{"review": key, "phase": phase, "round": 2, "threads": threads}]);
    let decision = json!({"happened": {"event": event, "steps": steps}});
    let record = json!({"kind": "deadline", "deliveries": [], "decision": decision});
    let root = continued(12, &[record]);
    let follower = Follower::open(root.path()).expect("a workspace");
    let now = at(TimeDelta::zero());
    let overview = serde_json::to_value(follower.overview(now, &spelled)).expect("JSON");
    let finding = |id: &str, state: &str| {
        json!({
            "review": "#86 claude -> codex", "id": id, "severity": "P1", "title": "it loops", "state": state,
            "fix": {
                "actor": "person", "run": "settled threads 86", "effect": "shows it with what a person may do",
            },
        })
    };
    let expected = [("F-1", "held"), ("F-2", "queued"), ("F-3", "left")];
    let expected = expected.map(|(id, state)| finding(id, state));
    assert_eq!(overview["queue"], json!(expected));
}

#[test]
fn a_refused_message_is_told_with_the_review_that_its_report_names() {
    let report = "schema_version: 1\nfile: fb.yaml\ndigest: sha256:00\nfrom_outbox: codex\n\
                  received_at: '2026-11-23T08:05:00Z'\nrefused: action_illegal\nsummary: no\nretryable: true\n\
                  violations: []\nreview: '#88 codex -> claude'\n";
    let notice = json!({"sent": {"id": "settled-01M83PS7K7T88FYTW03KY9P238", "summed_up": 0}});
    let refused = json!({"from": "codex", "code": "action_illegal", "notice": notice});
    let record = json!({
        "kind": "refused", "decision": {"refused": refused}, "deliveries": [{
            "mailbox": "codex/dead_letter", "file": "fb.report.yaml", "content": {"text": report},
        }],
    });
    let root = continued(12, &[record]);
    let follower = Follower::open(root.path()).expect("a workspace");
    for name in keys(&follower).iter().map(ToString::to_string) {
        let detail = detail(&follower, &name, at(TimeDelta::zero()));
        let rounds = detail["rounds"].as_array().expect("rounds").iter();
        let events = rounds.flat_map(|round| round["events"].as_array().expect("events"));
        let mut refused = events.filter(|event| event["seq"] == 13);
        let expected = (name == "#88 codex -> claude").then_some("refused");
        let kind = refused.next().and_then(|event| event["kind"].as_str());
        assert_eq!(kind, expected, "{name}");
    }
}

#[test]
fn an_agent_owes_the_moves_of_its_reviews() {
    for (records, owed) in [
        // Three requests. The fourth record approves the second one.
        (3, [("claude", 1), ("codex", 1), ("gemini", 1)]),
        (4, [("claude", 0), ("codex", 1), ("gemini", 1)]),
        // Feedback on the first.
        (6, [("claude", 1), ("codex", 0), ("gemini", 1)]),
    ] {
        let root = continued(records, &[]);
        let follower = Follower::open(root.path()).expect("a workspace");
        let overview = follower.overview(at(TimeDelta::zero()), &spelled);
        let agents = overview.agents.iter();
        let told: Vec<_> = agents.map(|row| (row.agent.as_str(), row.owed)).collect();
        assert_eq!(told, owed, "{records} records");
    }
}

/// Writes the folder of a run of `codex` with these files.
fn run(root: &Path, id: &str, files: &[(&str, &str)]) {
    let folder = root.join(".settled/runs").join(id);
    fs::create_dir_all(&folder).expect("a folder");
    let run = json!({
        "review": {"pr": "86", "author": "claude", "reviewer": "codex"}, "command": ["codex", "exec"], "workdir": "/",
        "reads_prompt": false, "output": "text", "seconds_max": 600,
    });
    fs::write(folder.join("run.json"), run.to_string()).expect("a file");
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
}

/// The newest run of `codex`: its id, whether it runs, its end, its turns and its last words.
fn newest(follower: &Follower) -> Value {
    let overview = follower.overview(at(TimeDelta::zero()), &spelled);
    let runs = overview.agents.iter().map(|row| row.run.as_ref());
    let [None, Some(codex), None] = runs.collect::<Vec<_>>()[..] else {
        panic!("{:?}", overview.agents);
    };
    assert_eq!(codex.review, "#86 claude -> codex");
    assert_eq!(codex.program, "codex");
    json!([
        codex.id,
        codex.is_running,
        codex.ended,
        codex.turns,
        codex.last_words
    ])
}

#[test]
fn an_agent_is_shown_with_its_newest_run_and_the_last_words_of_that() {
    let root = workspace();
    let root = root.path();
    let end = |how: Value| {
        let said = json!({"text": "all read\nPASS\n", "unreadable": null, "turns": 3});
        json!({"how": how, "said": said}).to_string()
    };
    run(root, "1", &[("end.json", &end(json!({"code": 0})))]);
    let mut follower = Follower::open(root).expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["1", false, "exit code 0", 3, "PASS"])
    );
    // One without a process is no running one; its output, then its errors, tell what it does.
    run(root, "2", &[("stderr", "warning\n")]);
    follower.refresh().expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["2", false, null, null, "warning"])
    );
    run(root, "2", &[("stdout", "reading\n")]);
    follower.refresh().expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["2", false, null, null, "reading"])
    );
    // An ended run is not read again.
    run(root, "2", &[("end.json", &end(json!({"signal": 9})))]);
    follower.refresh().expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["2", false, "signal 9", 3, "PASS"])
    );
    run(root, "2", &[("end.json", &end(json!("ended")))]);
    follower.refresh().expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["2", false, "signal 9", 3, "PASS"])
    );
    // Old folders are removed.
    fs::remove_dir_all(root.join(".settled/runs/2")).expect("a folder");
    follower.refresh().expect("a workspace");
    assert_eq!(
        newest(&follower),
        json!(["1", false, "exit code 0", 3, "PASS"])
    );
    for (id, how, told) in [
        ("3", json!("ended"), "ended by settled"),
        (
            "4",
            json!({"not_started": "no file"}),
            "not started: no file",
        ),
        (
            "5",
            json!({"unprepared": "no space"}),
            "not started: no space",
        ),
    ] {
        run(root, id, &[("end.json", &end(how))]);
        follower.refresh().expect("a workspace");
        assert_eq!(newest(&follower), json!([id, false, told, 3, "PASS"]));
    }
}

#[test]
fn a_mailroom_has_the_name_of_its_directory() {
    let root = workspace();
    let place = root.path().join("mail");
    for mailbox in [".settled", "agents"] {
        fs::create_dir_all(&place).expect("a directory");
        fs::rename(root.path().join(mailbox), place.join(mailbox)).expect("a move");
    }
    let follower = Follower::open(&place.join("agents/..")).expect("a workspace");
    let overview = follower.overview(at(TimeDelta::zero()), &spelled);
    assert_eq!(overview.mailroom, "mail");
}

#[test]
fn who_follows_the_ledger_knows_what_one_knows_who_reads_it_whole() {
    let root = workspace();
    let ledger = root.path().join(LEDGER);
    let whole = fs::read_to_string(&ledger).expect("a ledger");
    let put = |path: &Path, text: &str| fs::write(path, text).expect("a ledger");
    put(&ledger, "");
    let now = at(TimeDelta::zero());
    let mut follower = Follower::open(root.path()).expect("an empty workspace");
    assert_eq!(follower.seq(), 0);
    let mut written = String::new();
    for (seq, line) in (1..).zip(whole.split_inclusive('\n')) {
        written += line;
        put(&ledger, &written);
        assert!(follower.refresh().expect("one more record"), "{seq}");
        assert_eq!(follower.seq(), seq);
        let reader = Follower::open(root.path()).expect("a workspace");
        assert_eq!(overview(&follower, now), overview(&reader, now), "{seq}");
        assert_eq!(details(&follower, now), details(&reader, now), "{seq}");
        assert!(!follower.refresh().expect("nothing new"), "{seq}");
    }
}
