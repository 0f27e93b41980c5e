//! The meaning of each type of message, severity, status, code and cost, as tables of all of them.

use message_schema::body::Examined;
use message_schema::envelope::{MessageType, Recipients};
use message_schema::packet::{Finding, Severity, Status};
use message_schema::spend::Spend;
use message_schema::{Code, Schema};
use serde_json::{Value, json};

#[test]
fn each_type_of_message_has_its_recipients_its_telemetry_and_its_part_in_a_review() {
    // A step of the review, the end of an invocation, one recipient, telemetry.
    let expected = [
        ("review_request", [true, false, true, false]),
        ("review_feedback", [true, true, true, true]),
        ("review_addressed", [true, false, true, true]),
        ("review_lgtm", [true, true, true, true]),
        ("notification", [false, false, false, false]),
        ("question", [false, false, false, false]),
        ("task_request", [false, false, false, false]),
        ("follow_up", [false, false, false, false]),
        ("handoff", [false, false, true, false]),
        ("handoff_complete", [false, false, true, false]),
        ("brainstorm_request", [false, false, false, false]),
        ("brainstorm_followup", [false, false, false, false]),
    ];
    let meaning = |kind: MessageType| {
        let meaning = [
            kind.is_review(),
            kind.is_terminal_response(),
            kind.has_one_recipient(),
            kind.may_carry_telemetry(),
        ];
        (kind.as_str(), meaning)
    };
    assert_eq!(
        MessageType::all().map(meaning).collect::<Vec<_>>(),
        expected
    );
    for kind in MessageType::all() {
        let word = kind.as_str();
        assert_eq!(MessageType::from_word(word), Some(kind));
        let schema = Schema::of_body(kind).map(Schema::name);
        assert_eq!(schema, kind.is_review().then_some(word));
    }
}

#[test]
fn a_finding_blocks_by_its_severity_until_it_is_settled() {
    let finding = |severity: Severity, rest: Value| -> Finding {
        let mut finding = json!({"id": "F-1", "severity": severity, "status": "open"});
        for (name, value) in rest.as_object().expect("fields") {
            finding[name] = value.clone();
        }
        serde_json::from_value(finding).expect("a finding")
    };
    // Without a word of the reviewer, as `blocking: false`, and as `blocking: true`.
    for (severity, blocks) in [
        (Severity::P0, [true, true, true]),
        (Severity::P1, [true, true, true]),
        (Severity::P2, [false, false, true]),
        (Severity::P3, [false, false, false]),
    ] {
        let said = [
            json!({}),
            json!({"blocking": false}),
            json!({"blocking": true}),
        ];
        let found = said.map(|said| finding(severity, said).blocks());
        assert_eq!(found, blocks, "{severity}");
    }
    for (status, is_settled) in [
        ("open", false),
        ("fixed", true),
        ("resolved", true),
        ("wont_fix", true),
        ("not_fixed", false),
        ("needs_clarification", false),
    ] {
        let known = Status::from_word(status).expect("a status");
        assert_eq!(known.is_settled(), is_settled, "{status}");
        for (severity, action, counts) in [
            (Severity::P1, "", !is_settled),
            (Severity::P1, "veto", !is_settled),
            (Severity::P1, "escalate", !is_settled),
            (Severity::P1, "reply", !is_settled),
            (Severity::P1, "resolve", false),
            (Severity::P3, "", false),
        ] {
            let mut rest = json!({ "status": status });
            if !action.is_empty() {
                rest["action"] = action.into();
            }
            let found = finding(severity, rest).counts_as_blocking();
            assert_eq!(found, counts, "{severity} {status} {action}");
        }
    }
}

#[test]
fn a_message_is_for_each_agent_it_names() {
    let names = |to: Value| {
        let to: Recipients = serde_json::from_value(to).expect("recipients");
        let names = to.names().iter().map(|name| name.as_str().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(json!("codex")), ["codex"]);
    assert_eq!(names(json!(["codex", "gemini"])), ["codex", "gemini"]);
}

#[test]
fn a_reviewer_has_read_every_file_of_its_lists() {
    let examined: Examined = serde_json::from_value(json!({
        "declared": ["a.rs"], "served": ["b.rs", "c.rs"], "observed": ["d.rs"],
    }))
    .expect("lists");
    let files: Vec<&str> = examined.files().map(|file| file.as_str()).collect();
    assert_eq!(files, ["a.rs", "b.rs", "c.rs", "d.rs"]);
}

#[test]
fn a_code_is_its_word_and_some_promise_nothing_for_a_second_try() {
    for code in Code::ALL {
        assert_eq!(code.to_string(), code.as_str());
        let json = serde_json::to_string(code).expect("a word");
        assert_eq!(json, format!("\"{code}\""));
        assert_eq!(serde_json::from_str::<Code>(&json).expect("a code"), *code);
    }
    let error = serde_json::from_str::<Code>("\"sideways\"").expect_err("no code");
    assert!(
        error.to_string().contains("unknown code `sideways`"),
        "{error}"
    );
    let final_codes = Code::ALL.iter().filter(|code| !code.is_retryable());
    assert_eq!(
        final_codes.map(|code| code.as_str()).collect::<Vec<_>>(),
        [
            "body_field_unknown",
            "packet_unchecked",
            "packet_field_unknown",
            "text_doubtful",
            "not_for_the_daemon",
            "duplicate",
            "wrong_direction",
            "duplicate_terminal_response",
            "invocation_closed",
            "not_your_turn",
            "round_limit_exceeded",
            "iteration_limit_exceeded",
            "review_closed",
            "turn_budget_exceeded",
            "reopen_limit_exceeded",
        ]
    );
}

#[test]
fn a_cost_is_written_and_shown_without_what_it_lacks() {
    for (tokens, micro_usd, json, shown) in [
        (0, 0, "{}", "0 tokens"),
        (5, 0, r#"{"tokens":5}"#, "5 tokens"),
        (0, 7, r#"{"micro_usd":7}"#, "0 tokens, 0.000007 USD"),
        (
            5,
            500_000,
            r#"{"tokens":5,"micro_usd":500000}"#,
            "5 tokens, 0.50 USD",
        ),
    ] {
        let spend = Spend { tokens, micro_usd };
        assert_eq!(serde_json::to_string(&spend).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<Spend>(json).expect("a spend"), spend);
        assert_eq!(spend.to_string(), shown);
        assert_eq!(spend.is_nothing(), json == "{}");
    }
}
