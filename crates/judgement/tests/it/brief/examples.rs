//! The content of a brief and the fate of responses written after it, case by case.

use chrono::TimeDelta;
use message_schema::body::Body;
use message_schema::limit::Rounds;
use message_schema::packet::{Action, Status};
use review::{Act, Event, ReportedEvent, ThreadMode, ThreadState, Which, apply, on_event};
use serde_json::{Value, json};

use super::{Asked, Fate, deal, decide, fate, feedback, lgtm, post, write};
use crate::files::is_page;
use crate::table::{Note, Table, claude};

const PLACED: &str = "F-001 P1 open title: Empty diff; file: src/diff.rs; lines: 40-45\n\
                      F-002 P3 open title: Typo; file: docs/a.md";

/// A table in round 2 of 3 with a blocking thread and one that does not block.
fn second_round() -> Table {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    table.feedback(1, PLACED).expect("feedback");
    let body = "commit_sha: abc1234\nchanges_summary: s\nround: 1\ntouched_files: [src/diff.rs, src/main.rs]";
    table
        .send(&Note {
            body,
            ..claude("review_addressed")
        })
        .expect("addressed");
    table
        .request_with("validation_commands: [make test, make lint]")
        .expect("round 2");
    table
}

/// Returns one response's answers to both threads.
fn both(deals: [Value; 2]) -> Value {
    ["F-001", "F-002"]
        .into_iter()
        .map(str::to_owned)
        .zip(deals)
        .collect()
}

fn settled(table: &mut Table, response: &Value) -> String {
    let written = write(table, response).expect("it has words");
    let packet = written.packet.as_ref().map(message_schema::render_packet);
    post(table, &written.body, packet.as_deref()).expect("it is accepted")
}

#[test]
fn a_brief_says_what_is_asked_what_is_open_and_what_is_left() {
    let mut table = second_round();
    table.policy.gate.validation_commands = vec!["make lint".to_owned(), "make docs".to_owned()];
    let brief = Asked::of(&table).brief;
    let said = serde_json::to_value(&brief).expect("a brief is JSON");
    let expected = json!({
        "schema_version": 1,
        "pr": "86", "author": "claude", "reviewer": "codex", "request": "msg-4", "priority": "P1",
        "round": 2, "round_of_generation": 2, "rounds_of_generation": 3, "last_round": false, "head": "abc1234",
        "budget": {
            "turns_left": 8, "runtime_s_left": 600, "take_by": "2026-02-14T10:00:04Z", "attempts_left": 3,
        },
        "lgtm_possible": true,
        "open_threads": [
            {
                "id": "F-001", "severity": "P1", "blocking": true, "title": "Empty diff",
                "file": "src/diff.rs", "lines": "40-45", "stance": "seeks_change", "round_count": 0, "replies": 0,
                "legal": {
                    "seeks_change": ["resolve", "veto", "escalate", "reply"],
                    "accepts": ["resolve", "veto", "escalate", "reply"],
                },
            },
            {
                "id": "F-002", "severity": "P3", "blocking": false, "title": "Typo", "file": "docs/a.md",
                "stance": "seeks_change", "round_count": 0, "replies": 0,
                "legal": {
                    "seeks_change": ["resolve", "veto", "escalate", "reply"],
                    "accepts": ["resolve", "veto", "escalate", "reply"],
                },
            },
        ],
        "look_first": ["src/diff.rs", "src/main.rs"],
        "validation_commands": ["make docs", "make lint", "make test"],
    });
    assert_eq!(said, expected);
}

#[test]
fn a_brief_counts_what_the_round_has_used() {
    let mut table = second_round();
    assert!(table.feedback(2, "F-009 P1 open action: reply").is_err());
    let event = Event::Turns {
        which: Which::of(table.state.reviews().next().expect("one").0),
        count: 3,
    };
    let mut ids = || "settled-1".parse().expect("an id");
    let told = ReportedEvent {
        order: None,
        event: &event,
    };
    let record = on_event(&table.state, &table.policy, told, table.now, &mut ids);
    apply(&mut table.state, &record.into(), table.now);
    let taken = table.now;
    table.now += TimeDelta::seconds(100);
    table.supersede().expect("replaced");
    let brief = Asked::of(&table).brief;
    let budget = &brief.budget;
    assert_eq!(
        (
            budget.turns_left,
            budget.runtime_s_left,
            budget.attempts_left
        ),
        (5, 499, 2)
    );
    assert_eq!(budget.take_by, None);
    assert_eq!(
        budget.answer_by.map(|at| at.utc()),
        Some(taken + TimeDelta::seconds(600))
    );
    assert_eq!(brief.request.as_str(), "msg-6", "the request that stands");
    table.now += TimeDelta::hours(1);
    assert_eq!(Asked::of(&table).brief.budget.runtime_s_left, 0);
}

#[test]
fn a_blocker_with_a_person_leaves_no_lgtm_and_is_named() {
    let mut table = second_round();
    let all = both([deal("resolve", "accepts"), deal("resolve", "accepts")]);
    assert!(Asked::of(&table).admits(&lgtm(&all)));
    let mut other = Table::default();
    other.policy.rounds = Rounds::MAX;
    other.request().expect("opens");
    other
        .feedback(1, "F-001 P1 open title: one\nF-002 P1 open title: two")
        .expect("feedback");
    other.addressed(1, &[]).expect("addressed");
    other.request().expect("round 2");
    decide(&mut other, Act::Hold("F-001".parse().expect("an id")));
    let asked = Asked::of(&other);
    assert!(!asked.brief.lgtm_possible);
    assert_eq!(
        (
            asked.brief.held_threads[0].id.as_str(),
            &*asked.brief.held_threads[0].state
        ),
        ("F-001", "held (person)")
    );
    let rest = json!({ "F-002": deal("resolve", "accepts") });
    assert!(asked.admits(&feedback(&rest)) && !asked.admits(&lgtm(&rest)));
    assert_eq!(
        fate(&mut other, &lgtm(&rest)),
        Fate::Refused(vec!["quality_gate_violation blocking".to_owned()])
    );

    // A held thread that does not block bars nothing.
    decide(&mut table, Act::Hold("F-002".parse().expect("an id")));
    assert!(Asked::of(&table).brief.lgtm_possible);
}

#[test]
fn where_the_gate_only_advises_an_lgtm_may_leave_a_blocker() {
    let vetoed = both([deal("veto", "seeks_change"), deal("defer", "")]);
    let mut table = second_round();
    assert!(!Asked::of(&table).admits(&lgtm(&vetoed)));
    table.policy.profile = review::Profile::Advisory;
    assert!(Asked::of(&table).admits(&lgtm(&vetoed)));
    assert_eq!(settled(&mut table, &lgtm(&vetoed)), "approved");
}

#[test]
fn deferring_a_thread_makes_its_nit_in_both_thread_modes() {
    for mode in [ThreadMode::Inferred, ThreadMode::Explicit] {
        let mut table = second_round();
        table.policy.threads = mode;
        let later = json!({ "action": "defer", "owner": "", "next_action": "mend it" });
        let mut response = lgtm(&both([deal("resolve", "accepts"), later]));
        let ran = |command| json!({ "command": command, "result": "pass", "notes": "" });
        response["response"]["commands_run"] = json!([ran("make test"), ran("make lint")]);
        response["response"]["nits"] =
            json!([{ "tier": "P2", "summary": "Test gap", "owner": "gemini", "next_action": "" }]);
        assert!(Asked::of(&table).admits(&response));
        let Body::Lgtm(body) = write(&table, &response).expect("it has words").body else {
            panic!("no lgtm")
        };
        let nits: Vec<_> = body
            .nits
            .iter()
            .map(|nit| {
                (
                    nit.nit_id.as_str(),
                    nit.summary.as_str(),
                    nit.owner.as_str(),
                    nit.next_action.as_str(),
                )
            })
            .collect();
        let expected = [
            ("NIT-001", "Typo", "claude", "mend it"),
            (
                "NIT-002",
                "Test gap",
                "gemini",
                "look at it after the merge",
            ),
        ];
        assert_eq!(nits, expected);
        assert_eq!(
            body.nits[0].source.as_ref().map(|id| id.as_str()),
            Some("F-002")
        );
        assert_eq!(settled(&mut table, &response), "approved");
        let states: Vec<_> = table
            .review()
            .threads
            .values()
            .map(|thread| thread.state)
            .collect();
        assert_eq!(states, [ThreadState::Resolved, ThreadState::Deferred]);
    }
}

#[test]
fn only_an_lgtm_defers_and_only_what_does_not_block() {
    let mut table = second_round();
    let of_blocker = both([deal("defer", ""), deal("resolve", "accepts")]);
    let in_feedback = both([deal("resolve", "accepts"), deal("defer", "")]);
    for response in [
        lgtm(&of_blocker),
        feedback(&of_blocker),
        feedback(&in_feedback),
    ] {
        assert!(!Asked::of(&table).admits(&response));
        assert!(
            matches!(fate(&mut table, &response), Fate::Unwritable(_)),
            "{response}"
        );
    }
}

#[test]
fn an_action_is_written_with_the_status_a_plain_reader_understands() {
    let table = second_round();
    let response = feedback(&both([
        deal("resolve", "accepts"),
        deal("reply", "seeks_change"),
    ]));
    let packet = write(&table, &response)
        .expect("it has words")
        .packet
        .expect("a packet");
    let said: Vec<_> = packet
        .findings
        .iter()
        .map(|finding| (finding.status, finding.action))
        .collect();
    assert_eq!(
        said,
        [
            (Status::Fixed, Some(Action::Resolve)),
            (Status::NotFixed, Some(Action::Reply))
        ]
    );
}

#[test]
fn a_problem_that_is_back_opens_its_thread_again_once_and_then_goes_to_a_person() {
    let mut table = second_round();
    let all = both([deal("resolve", "accepts"), deal("reply", "accepts")]);
    let with = |field: &str| {
        let mut response = feedback(&json!({ "F-002": deal("resolve", "accepts") }));
        response["response"][field] = json!(["F-001"]);
        response
    };
    settled(&mut table, &feedback(&all));
    table.request().expect("round 3");
    assert!(
        !Asked::of(&table).admits(&with("escalate")),
        "it can still be opened again"
    );
    assert!(matches!(
        fate(&mut table, &with("escalate")),
        Fate::Unwritable(_)
    ));
    assert!(Asked::of(&table).admits(&with("reopen")));
    assert_eq!(
        settled(&mut table, &with("reopen")),
        "escalated",
        "the last round"
    );
    let thread = table.review().threads.values().next().expect("a thread");
    assert!(thread.is_open() && thread.was_reopened());

    decide(&mut table, Act::Resolve("F-001".parse().expect("an id")));
    decide(&mut table, Act::Reopen);
    table.request().expect("round 4");
    let mut again = with("escalate");
    again["response"]["reopen"] = json!([]);
    again["response"]["threads"] = json!({});
    assert!(Asked::of(&table).admits(&again));
    settled(&mut table, &again);
    assert!(
        table
            .review()
            .threads
            .values()
            .next()
            .expect("a thread")
            .is_held()
    );
}

#[test]
fn a_new_finding_gets_an_id_that_is_free() {
    let table = second_round();
    let mut response = feedback(&both([
        deal("resolve", "accepts"),
        deal("resolve", "accepts"),
    ]));
    response["response"]["findings"] =
        json!([{ "severity": "P0" }, { "severity": "P2", "blocking": true }]);
    let packet = write(&table, &response)
        .expect("it has words")
        .packet
        .expect("a packet");
    let ids: Vec<_> = packet
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect();
    assert_eq!(ids, ["F-001", "F-002", "F-003", "F-004"]);
}

#[test]
fn a_text_that_is_not_what_its_field_holds_is_told_with_its_place() {
    let table = second_round();
    let right = feedback(&both([
        deal("resolve", "accepts"),
        deal("resolve", "accepts"),
    ]));
    let cases = [
        (
            json!({ "severity": "P0", "file": "/etc/passwd" }),
            "findings[0].file",
        ),
        (
            json!({ "severity": "P0", "lines": "45-40" }),
            "findings[0].lines",
        ),
    ];
    for (finding, field) in cases {
        let mut wrong = right.clone();
        wrong["response"]["findings"] = json!([finding]);
        let said = write(&table, &wrong).expect_err("it is wrong");
        assert!(said.starts_with(&format!("`{field}` is ")), "{said}");
    }
    for (field, text) in [("validated_head", "HEAD"), ("escalation", "two\nlines")] {
        let mut wrong = right.clone();
        wrong["response"][field] = text.into();
        let said = write(&table, &wrong).expect_err("it is wrong");
        assert!(said.starts_with(&format!("`{field}` is ")), "{said}");
    }
}

/// Returns what travels, for a page.
fn sent(table: &Table, title: &str, response: &Value) -> String {
    let written = write(table, response).expect("it has words");
    let body = match &written.body {
        Body::Feedback(body) => json!(body),
        Body::Lgtm(body) => json!(body),
        Body::Request(_) | Body::Addressed(_) | Body::Text(_) => unreachable!("no response"),
    };
    let packet = written.packet.as_ref().map(message_schema::render_packet);
    let packet = packet.unwrap_or_else(|| "no packet\n".to_owned());
    format!("# {title}\n\n{body:#}\n\n{packet}\n")
}

#[test]
fn the_page_of_responses_has_every_word_that_travels() {
    let mut table = Table::default();
    table.policy.rounds = Rounds::MAX;
    table.request().expect("opens");
    let ran = json!([
        { "command": "make", "result": "pass", "notes": " fine " },
        { "command": "lint", "result": "fail", "notes": "" },
        { "command": " ", "result": "pass", "notes": "of nothing" },
    ]);
    let examined = json!({
        "diff_digest": format!("sha256:{}", "a".repeat(64)), "declared": ["a.rs", " "],
    });
    let mut page = String::new();
    let mut response = lgtm(&json!({}));
    page += &sent(&table, "An approval", &response);
    response["response"]["commands_run"] = ran.clone();
    page += &sent(&table, "An approval after commands", &response);
    response["response"]["commands_run"] = json!([]);
    response["response"]["examined"] = examined.clone();
    page += &sent(&table, "An approval of what was read", &response);

    let more = "F-003 P2 open blocking: false; file: c.rs\nF-004 P2 open blocking: true; title: d; file: d.rs";
    table
        .feedback(1, &format!("{PLACED}\n{more}"))
        .expect("feedback");
    table.addressed(1, &[]).expect("addressed");
    table.request().expect("round 2");
    let schema = Asked::of(&table).schema;
    let names = schema["$defs"].as_object().expect("definitions").keys();
    let names: Vec<&str> = names.map(String::as_str).collect();
    page += &format!("# The choices of a schema\n\n{}\n\n", names.join("\n"));
    let resolved = json!({ "action": "resolve", "stance": "accepts", "evidence": " it is gone " });
    let mut threads = json!({
        "F-001": resolved,
        "F-002": { "action": "defer", "owner": "gemini", "next_action": " " },
        "F-003": { "action": "defer", "owner": "", "next_action": "mend it" },
        "F-004": deal("resolve", "accepts"),
    });
    let mut response = lgtm(&threads);
    response["response"]["nits"] = json!([
        { "tier": "P3", "summary": " ", "owner": "", "next_action": "" },
        { "tier": "P3", "summary": "A word", "owner": "", "next_action": "" },
    ]);
    response["response"]["validated_head"] = "abc1234".into();
    page += &sent(&table, "An approval with nits", &response);
    threads["F-004"] = deal("defer", "");
    let said = write(&table, &lgtm(&threads)).expect_err("it blocks");
    page += &format!("# A blocker is not deferred\n\n{said}\n\n");

    threads["F-001"] = json!({
        "action": "reply", "stance": "seeks_change", "evidence": "still there",
    });
    for thread in ["F-002", "F-003", "F-004"] {
        threads[thread] = deal("veto", "seeks_change");
    }
    let mut response = feedback(&threads);
    response["response"]["findings"] = json!([
        {
            "severity": "P2", "blocking": true, "title": "A", "file": "a.rs", "lines": "3-4",
            "category": "style", "evidence": "line 3", "recommendation": "Cut it.",
            "introduced_by": "abc1234",
        },
        { "severity": "P1", "blocking": false, "title": " " },
    ]);
    response["response"]["commands_run"] = ran;
    response["response"]["examined"] = examined;
    response["response"]["escalation"] = "scope_disagreement".into();
    response["response"]["validated_head"] = "abc1234".into();
    page += &sent(&table, "A feedback", &response);
    is_page("brief/responses.txt", &page);
}
