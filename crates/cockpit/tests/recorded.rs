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
use serde_json::json;
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
    let reviews = follower.standing().index.state().reviews();
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
        let expected = json!({"clause": "validation", "is": "to_come", "what": what});
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
