//! What a record of an event says to people: as the outcome of an order, and as one line of the log.

use inspect::{log, outcome::OrderOutcome};
use review::{EventRecord, Record};
use serde_json::{Value, json};
use spool::Entry;

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// The outcome of the order `order-1` whose record has this decision, and the line of the log.
fn told(happened: &Value) -> (String, String) {
    let line = format!(
        r#"{{"v":1,"seq":9,"at":"2026-02-13T10:00:00.000Z","prev":"{DIGEST}","batch":9,"kind":"pull","review":null,"id":null,"original":null,"deliveries":[{{"mailbox":"qwen/inbox","file":"task.yaml","content":{{"text":"x"}}}}],"decision":{{"happened":{happened}}}}}"#
    );
    let entry = Entry::from_line(line.as_bytes()).expect("a line of the ledger");
    let record: Record = serde_json::from_str(entry.decision.get()).expect("a record");
    let what = log::what(&record);
    let Record::Event(record @ EventRecord::Happened(_)) = record else {
        panic!("{record:?}");
    };
    let id = "order-1".parse().expect("an id");
    (OrderOutcome::of(&id, &entry, &record).text(), what)
}

fn step(reviewer: &str, phase: &Value) -> Value {
    json!({
        "review": {"pr": "86", "author": "claude", "reviewer": reviewer},
        "phase": phase, "round": 2,
    })
}

fn thread(state: &str) -> Value {
    json!({
        "severity": "P1", "blocking": true, "opened_in": 1, "state": state,
        "dialogue": {"stance": "seeks_change", "round_count": 0, "replies": 0},
    })
}

#[test]
fn an_order_that_moves_reviews_says_where_each_is_now_and_what_was_handed_off() {
    let mut closed = step("codex", &json!({"closed": "not_merged"}));
    closed["threads"] = json!({"F-1": thread("resolved"), "F-2": thread("open")});
    let approved = json!({"merge_ready": true, "stale": true, "at": "2026-02-13T09:00:00Z"});
    let open = json!({
        "request": "q-1", "priority": "P1", "turns": 8, "runtime_s": 600,
        "pick_up_by": "2026-02-14T10:00:00Z", "attempts_left": 3, "supersessions_left": 2,
    });
    let review = &closed["review"];
    let (outcome, line) = told(&json!({
        "event": {"pull": {"pr": "86", "action": "closed"}},
        "handoff": {
            "tasks": [{
                "id": "handoff-pr86-1", "target": "qwen", "pr": "86", "file": "a.rs",
                "findings": [
                    {"review": review, "id": "F-1", "thread": thread("open")},
                    {"review": review, "id": "F-3", "thread": thread("open")},
                ],
            }],
            "left": [{"review": review, "id": "F-2", "why": "mode_off"}],
            "dropped": 2,
        },
        "steps": [
            closed,
            step("gemini", &json!({"approved": approved})),
            step("pi", &json!({"reviewing": open})),
        ],
    }));
    assert_eq!(
        outcome,
        r#"pull request 86 closed
  #86 claude -> codex: closed (not_merged), round 2
    F-1: resolved
    F-2: open
  #86 claude -> gemini: approved, round 2, stale
  #86 claude -> pi: reviewing, round 2, 8 turns left
  handed off as handoff-pr86-1 to qwen: F-1, F-3
  not handed off: F-2 of #86 claude -> codex: `[handoff] mode` is "off" in settled.toml
  2 queued findings were dropped
  wrote qwen/inbox/task.yaml
"#
    );
    assert_eq!(
        line,
        "pull request 86 closed; #86 claude -> codex -> closed (not_merged) round 2, F-1 resolved, F-2 open; \
         #86 claude -> gemini -> approved round 2; #86 claude -> pi -> reviewing round 2, 8 turns left; \
         handoff-pr86-1 -> qwen; 2 queued findings dropped"
    );
}

#[test]
fn an_order_that_moves_one_review_or_none_says_no_more_than_that() {
    let approved = json!({"merge_ready": true, "at": "2026-02-13T09:00:00Z"});
    let (outcome, line) = told(&json!({
        "event": {"pull": {"pr": "86", "action": "merged"}},
        "steps": [step("codex", &json!({"approved": approved}))],
        "handoff": {},
    }));
    assert_eq!(
        outcome,
        "pull request 86 merged\n  #86 claude -> codex: approved, round 2\n  wrote qwen/inbox/task.yaml\n"
    );
    assert_eq!(line, "pull request 86 merged -> approved round 2");

    let (outcome, line) = told(&json!({"event": {"pull": {"pr": "86", "action": "opened"}}}));
    assert_eq!(
        outcome,
        "pull request 86 opened\n  noted; no review changes\n  wrote qwen/inbox/task.yaml\n"
    );
    assert_eq!(line, "pull request 86 opened");
}
