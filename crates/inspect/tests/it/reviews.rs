//! How one review is shown: its row, its threads with what happened to them, and what it waits for. Each test changes a
//! recorded review.

use std::fs;
use std::path::Path;

use chrono::TimeDelta;
use inspect::status::WorkspaceStatus;
use inspect::status::overview::{ListedReviews, Status};
use inspect::status::row::ReviewRow;
use inspect::status::threads::{Histories, ThreadView, Threads};
use inspect::status::why::{Missing, Why};
use message_schema::id::AgentName;
use message_schema::spend::Spend;
use review::{CloseReason, Phase, Policy, Record, Review, ReviewKey, State, Thread};
use serde_json::{Value, json};
use spool::Entry;

use crate::recorded_workspace::{at, workspace};

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn spelled(agent: Option<&AgentName>, words: &str) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" --agent {agent}"));
    format!("settled {words}{agent}")
}

fn read(root: &Path) -> WorkspaceStatus {
    WorkspaceStatus::read(root).expect("a workspace")
}

/// The review of a pull request.
fn review(status: &WorkspaceStatus, pr: &str) -> (ReviewKey, Review) {
    let mut reviews = status.index.state().reviews();
    let found = reviews.find(|(key, _)| key.pr.as_str() == pr);
    let (key, review) = found.expect("a review");
    (key.clone(), review.clone())
}

fn why(status: &WorkspaceStatus, pr: &str) -> Why {
    let (key, review) = review(status, pr);
    let now = at(TimeDelta::zero());
    status.why(&key, &review, &Policy::default(), now, &spelled)
}

fn thread(fields: &Value) -> Thread {
    let mut thread = json!({
        "severity": "P1", "blocking": true, "opened_in": 1, "state": "open",
        "dialogue": {"stance": "seeks_change", "round_count": 0, "replies": 0},
    });
    for (name, value) in fields.as_object().expect("fields") {
        thread[name] = value.clone();
    }
    serde_json::from_value(thread).expect("a thread")
}

fn told(review: &Review, key: &ReviewKey, histories: &Histories) -> Threads {
    histories.threads(key, review, &key.pr.to_string(), &spelled)
}

#[test]
fn granted_rounds_and_what_was_used_are_in_the_row() {
    let root = workspace();
    let mut status = read(root.path());
    let (key, mut review) = review(&status, "86");
    review.granted = 1;
    review.spent = Spend {
        tokens: 1_200,
        micro_usd: 2_500_000,
    };
    status.index.state = State::of([(&key, &review)], [], []);
    let row = ReviewRow::of(status.index.state(), &key, &review);
    let used = (row.tokens, row.cost_usd.as_deref());
    assert_eq!((row.rounds, used), (3, (Some(1_200), Some("2.50"))));
    assert_eq!(why(&status, "86").rounds, 3);
    let threads = told(&review, &key, &Histories::default());
    assert_eq!(threads.rounds, 3);
}

#[test]
fn what_came_to_rest_long_ago_is_counted_and_not_listed() {
    let root = workspace();
    let mut status = read(root.path());
    let (key, mut review) = review(&status, "88");
    review.phase = Phase::Closed(CloseReason::Merged);
    let keys: Vec<ReviewKey> = (100..166)
        .map(|pr| ReviewKey {
            pr: pr.to_string().parse().expect("a number"),
            ..key.clone()
        })
        .collect();
    status.index.state = State::of(keys.iter().map(|key| (key, &review)), [], []);
    let counts = |listed, most| {
        let mut shown = Status::of(&status, None, listed);
        shown.limit(most);
        (shown.reviews.len(), shown.unlisted())
    };
    assert_eq!(counts(ListedReviews::Current, 100), (64, 2));
    assert_eq!(counts(ListedReviews::Current, 10), (10, 2));
    assert_eq!(counts(ListedReviews::All, 100), (66, 0));
}

#[test]
fn a_reviewer_that_gets_no_mail_waits_for_the_operator_and_one_that_took_the_request_does_not() {
    let root = workspace();
    let root = root.path();
    // These come first: a file that waits to be judged, and one that its sender has to correct.
    fs::remove_file(root.join("agents/claude/outbox/n-1.yaml")).expect("a file");
    fs::remove_file(root.join("agents/codex/dead_letter/fb-86-2.yaml")).expect("a file");
    let alert = |agent: &str| json!({"kind": "unwritable", "path": root.join(format!("agents/{agent}/inbox")), "what": "it is full"});
    let alerts = json!([alert("codex"), alert("gemini")]);
    fs::write(root.join(".settled/alerts.json"), alerts.to_string()).expect("a file");
    let status = read(root);
    let undelivered = why(&status, "86");
    let inbox = root.join("agents/codex/inbox");
    let missing = format!(
        "the operator must let the daemon deliver to codex: {}: it is full",
        inbox.display()
    );
    assert_eq!(undelivered.kind, Missing::Mailbox);
    assert_eq!(undelivered.missing, Some(missing));
    let fixes = undelivered.fixes.iter().map(|fix| {
        let mut words = fix.run.split(' ');
        let first = words.by_ref().take(2).collect::<Vec<_>>();
        format!("{}: {}", fix.actor, first.join(" "))
    });
    assert_eq!(
        fixes.collect::<Vec<_>>(),
        [
            "operator: df -h",
            "codex: settled take",
            "codex: settled brief",
            "codex: settled feedback",
            "codex: settled lgtm"
        ]
    );
    assert_eq!(why(&status, "87").kind, Missing::Response);
}

#[test]
fn threads_are_ordered_by_what_they_prevent_and_say_who_wants_what() {
    let root = workspace();
    let (key, mut review) = review(&read(root.path()), "86");
    let dialogue =
        |stance: &str, count: u8| json!({"stance": stance, "round_count": count, "replies": count});
    let threads = [
        (
            "F-1",
            json!({"state": "resolved", "dialogue": dialogue("accepts", 0)}),
        ),
        (
            "F-2",
            json!({"severity": "P3", "blocking": false, "dialogue": dialogue("accepts", 1)}),
        ),
        (
            "F-3",
            json!({"state": "deferred", "severity": "P2", "blocking": false}),
        ),
        (
            "F-4",
            json!({"state": {"held": "veto"}, "dialogue": dialogue("seeks_change", 2)}),
        ),
        ("F-5", json!({"severity": "P0"})),
        ("F-6", json!({"state": {"held": "person"}})),
        (
            "F-7",
            json!({"state": {"held": "escalate"}, "severity": "P2"}),
        ),
    ];
    review.threads = threads
        .iter()
        .map(|(id, fields)| (id.parse().expect("an id"), thread(fields)))
        .collect();
    let line = |thread: &ThreadView| {
        let is_queued = |run: &str| run.starts_with("settled thread queue");
        let queue = thread.person.iter().any(|fix| is_queued(&fix.run));
        let queue = if queue { ", may be queued" } else { "" };
        let (state, stance) = (thread.state_in_words(), thread.stance_in_words());
        format!("{} {state}: {stance}{queue}", thread.id)
    };
    let threads = told(&review, &key, &Histories::default()).threads;
    assert_eq!(
        threads.iter().map(line).collect::<Vec<_>>(),
        [
            "F-5 open: the reviewer wants a change",
            "F-4 held: vetoed: the reviewer wants a change, said 3 times in a row",
            "F-6 held by a person: the reviewer wants a change",
            "F-7 held: escalated: the reviewer wants a change",
            "F-2 open: the reviewer accepts it, said 2 times in a row",
            "F-1 resolved: the reviewer accepts it",
            "F-3 deferred: the reviewer wants a change, may be queued",
        ]
    );
}

/// A response of codex that leads to this thread in the review of #86.
fn response(seq: u64, fields: &Value) -> (Entry, Record) {
    let review = json!({"pr": "86", "author": "claude", "reviewer": "codex"});
    let decision = json!({"accepted": {
        "from": "codex", "id": format!("m-{seq}"), "digest": &DIGEST["sha256:".len()..],
        "to": ["claude"], "type": "review_feedback",
        "step": {
            "review": review, "round": seq, "phase": {"fixing": {"due": "2026-02-14T10:00:00Z"}},
            "threads": {"F-1": thread(fields)},
        },
    }});
    let line = format!(
        r#"{{"v":1,"seq":{seq},"at":"2026-02-13T10:00:00.000Z","prev":"{DIGEST}","batch":{seq},"kind":"accepted","review":null,"id":null,"original":null,"deliveries":[],"decision":{decision}}}"#
    );
    let entry = Entry::from_line(line.as_bytes()).expect("a line of the ledger");
    let record = serde_json::from_str(entry.decision.get()).expect("a record");
    (entry, record)
}

#[test]
fn a_thread_s_history_names_each_act_from_when_its_review_is_followed() {
    let root = workspace();
    let (key, mut review) = review(&read(root.path()), "86");
    let mut histories = Histories::default();
    let note = |histories: &mut Histories, seq: u64, fields: &Value| {
        let (entry, record) = response(seq, fields);
        histories.note_record(&entry, &record);
    };
    note(&mut histories, 1, &json!({}));
    histories.follow(&key);
    let replied = json!({"stance": "seeks_change", "round_count": 1, "replies": 1});
    for (seq, fields) in [
        (2, json!({})),
        (3, json!({"dialogue": replied})),
        (4, json!({"dialogue": replied, "severity": "P0"})),
        (5, json!({"state": {"held": "veto"}})),
        (6, json!({"state": "open"})),
        (7, json!({"state": {"held": "escalate"}})),
        (8, json!({"state": "deferred"})),
        (9, json!({"state": {"held": "person"}})),
        (10, json!({"state": "resolved"})),
        (11, json!({"state": "resolved"})),
    ] {
        // Following a review twice loses nothing.
        histories.follow(&key);
        note(&mut histories, seq, &fields);
    }
    review.threads = [("F-1".parse().expect("an id"), thread(&json!({})))].into();
    let threads = told(&review, &key, &histories).threads;
    let acts = threads[0].history.iter();
    let acts: Vec<String> = acts.map(|act| format!("{} {}", act.seq, act.act)).collect();
    assert_eq!(
        acts,
        [
            "2 opened",
            "3 reply",
            "4 changed",
            "5 veto",
            "6 open_again",
            "7 escalate",
            "8 defer",
            "9 hold",
            "10 resolve",
            "11 changed"
        ]
    );
}
