//! Our reader and the reference reader read rendered documents back equal.

use message_schema::body::{
    Body, Escalation, Examined, GateResult, Nit, NitTier, ReviewAddressed, ReviewFeedback,
    ReviewLgtm, ReviewRequest, Telemetry,
};
use message_schema::envelope::{
    Envelope, MessageType, Priority, Recipients, ReviewKind, TextKind, Timestamp,
};
use message_schema::id::{AgentName, CommitSha, FindingId, PacketPath, PrNumber, RepoPath};
use message_schema::packet::{
    CommandResult, CommandRun, Finding, FindingsPacket, QaValidation, Severity, Status,
};
use message_schema::{
    Code, Message, ReadBody, Schema, coerce, double_quoted, json_for_yaml, parse, parse_packet,
    read_document, render_document, render_draft, render_lines, render_message, render_packet,
    stands_in_a_block,
};
use message_schema::{Level, Report, ReportedViolation};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Generates trimmed texts of the kinds over which YAML readers stumble.
fn text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        "no",
        "Yes",
        "on",
        "y",
        "~",
        "null",
        "Null",
        "true",
        "12345e7",
        "1e10",
        "0017",
        "0x1F",
        "0b1_0",
        "1_000",
        "12:30:45",
        "-.5_",
        "2026-02-13",
        "2026-02-13T10:00:00Z",
        "=",
        "<<",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "'",
        "\"",
        "{a",
        "[a",
        "|",
        ">",
        "? a",
        ":",
        "---",
        "...",
        "a\nb",
        "a\n\nb",
        "a\n  b\n c",
        "a \nb",
        "a\n\tb",
        "a\tb",
        "a\r\nb",
        "a\rb",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{2029}b\nc",
        "a\u{feff}b",
        "a\u{7f}b",
        "a\u{1b}[0m",
        "gro\u{df}e \u{1f600}",
        "a\u{a0}b",
        ".inf",
        "+1",
        "--- a\nb",
        "a\n---\nb",
        "a\n# b",
        "a\n- b: c",
        "\u{fffe}x",
    ]);
    prop_oneof![
        2 => tricky.prop_map(str::to_owned),
        1 => "[ -~]{1,30}",
        1 => "[a-c \n\t:#'\"|>-]{1,40}",
        1 => "\\PC{1,20}",
        1 => any::<String>(),
    ]
    .prop_map(|text| text.trim().replace('\0', ""))
    .prop_filter("an empty text means absent", |text| {
        !text.trim().is_empty() && text.trim() == text
    })
}

fn line() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace(|c: char| c.is_control(), "_"))
}

fn envelope(kind: MessageType, subject: String, extra: Option<String>) -> Envelope {
    let name = |text| AgentName::new(text).expect("a name");
    Envelope {
        id: "msg-1".parse().expect("an id"),
        from: name("claude"),
        to: Recipients::One(name("codex")),
        kind,
        priority: Priority::P1,
        created_at_utc: Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant"),
        related_pr: Some(PrNumber::new("0086").expect("a number")),
        subject,
        related_packet: extra.clone(),
        conversation_id: None,
        parent_message_id: None,
        context_keys: extra,
        expires_at: None,
        channel: None,
        autonomy_hint: None,
        model: None,
        turns: None,
        input_tokens: None,
        output_tokens: None,
        wall_time_s: None,
        est_cost_usd: None,
        body: String::new(),
        auth: None,
    }
}

fn free() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![
        text().prop_map(Value::from),
        prop::collection::vec(text(), 1..3).prop_map(Value::from),
        (text(), text()).prop_map(|(a, b)| json!({ "who": a, "scope": [b] })),
    ])
}

fn body() -> impl Strategy<Value = (MessageType, Body)> {
    let request = (
        text(),
        text(),
        prop::option::of(text()),
        prop::collection::vec(text(), 0..3),
        free(),
    )
        .prop_map(|(branch, diff_summary, handoff_ref, commands, direction)| {
            let mut body: ReviewRequest = serde_json::from_value(
                json!({ "pr": "86", "branch": branch, "diff_summary": diff_summary }),
            )
            .expect("a body");
            body.handoff_ref = handoff_ref;
            body.validation_commands = commands;
            body.human_direction = direction;
            (
                MessageType::Review(ReviewKind::Request),
                Body::Request(body),
            )
        });
    let feedback = (line(), prop::option::of(text()), any::<u32>(), 1..u32::MAX).prop_map(
        |(path, escalation, blocking_count, round)| {
            let findings_packet =
                PacketPath::new(path).unwrap_or_else(|_| PacketPath::new("no").expect("a path"));
            let escalation = escalation.and_then(|text| Escalation::try_from(text).ok());
            let telemetry = Some(Telemetry {
                turns: Some(round.into()),
                ..Telemetry::default()
            });
            let body = ReviewFeedback {
                findings_packet,
                round,
                blocking_count,
                escalation,
                validated_head: None,
                examined: None,
                withheld_side_effects: None,
                telemetry,
            };
            (
                MessageType::Review(ReviewKind::Feedback),
                Body::Feedback(body),
            )
        },
    );
    let addressed = (
        text(),
        "[0-9]{7}|[0-9]{5}e[0-9]{1,3}",
        prop::collection::vec(line(), 0..3),
        prop::collection::vec(line(), 0..3),
    )
        .prop_map(|(summary, sha, files, ids)| {
            let body = ReviewAddressed {
                commit_sha: CommitSha::new(sha).expect("a commit"),
                changes_summary: summary,
                round: 1,
                touched_files: files
                    .into_iter()
                    .filter_map(|f| RepoPath::new(f).ok())
                    .collect(),
                addressed_finding_ids: ids
                    .into_iter()
                    .filter_map(|f| FindingId::new(f).ok())
                    .collect(),
                validated_head: None,
                human_direction: None,
                telemetry: None,
            };
            (
                MessageType::Review(ReviewKind::Addressed),
                Body::Addressed(body),
            )
        });
    let lgtm = (text(), text(), prop::option::of(line()), any::<bool>()).prop_map(
        |(nit_id, summary, source, merge_ready)| {
            let nit = Nit {
                nit_id,
                tier: NitTier::P3,
                summary,
                owner: "no".to_owned(),
                next_action: "1:30".to_owned(),
                tracking_ref: None,
                source: source.and_then(|s| FindingId::new(s).ok()),
                expires_at_utc: None,
            };
            let body = ReviewLgtm {
                quality_gate_result: GateResult::Pass,
                merge_ready,
                nits: vec![nit],
                findings_packet: None,
                round: None,
                validated_head: None,
                unbound: merge_ready,
                examined: Some(Examined::default()),
                follow_ups: None,
                withheld_side_effects: None,
                telemetry: None,
            };
            (MessageType::Review(ReviewKind::Lgtm), Body::Lgtm(body))
        },
    );
    let free_text =
        text().prop_map(|text| (MessageType::Text(TextKind::Notification), Body::Text(text)));
    prop_oneof![request, feedback, addressed, lgtm, free_text]
}

fn read_envelope(message: &Message) -> Envelope {
    serde_json::from_value(coerce(message.root(), Schema::Envelope.shape())).expect("an envelope")
}

fn read_body(message: &Message) -> Body {
    fn typed<T: DeserializeOwned>(message: &Message, schema: Schema) -> T {
        let ReadBody::Mapping(mapping) = message.read_body() else {
            panic!("{:?}", message.read_body())
        };
        serde_json::from_value(coerce(mapping, schema.shape())).expect("a body")
    }
    match Schema::of_body(message.kind().expect("a type")) {
        Some(Schema::ReviewRequest) => Body::Request(typed(message, Schema::ReviewRequest)),
        Some(Schema::ReviewFeedback) => Body::Feedback(typed(message, Schema::ReviewFeedback)),
        Some(Schema::ReviewAddressed) => Body::Addressed(typed(message, Schema::ReviewAddressed)),
        Some(Schema::ReviewLgtm) => Body::Lgtm(typed(message, Schema::ReviewLgtm)),
        Some(
            Schema::Envelope | Schema::FindingsPacket | Schema::ChangesPacket | Schema::Report,
        ) => {
            unreachable!("no schema of a body")
        }
        None => Body::Text(read_envelope(message).body),
    }
}

/// Asserts that the texts of a document are texts to another reader too.
fn assert_texts_stay_texts(rendered: &str, value: &Value) {
    let theirs: Value = serde_yaml::from_str(rendered).expect("the reference reader reads it");
    assert_eq!(&theirs, value, "{rendered}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rendered_message_is_read_back_equal((kind, body) in body(), subject in line(), extra in prop::option::of(text())) {
        let envelope = envelope(kind, subject, extra);
        let rendered = render_message(&envelope, &body);
        let message = parse(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        let read = read_envelope(&message);
        prop_assert_eq!(&Envelope { body: String::new(), ..read.clone() }, &envelope, "{}", rendered);
        prop_assert_eq!(read_body(&message), body, "{}", rendered);
        let theirs: Value = serde_yaml::from_str(&rendered).expect("the reference reader reads it");
        prop_assert_eq!(theirs["body"].as_str().map(str::trim), Some(read.body.as_str()), "{}", rendered);
    }

    #[test]
    fn lines_of_json_are_read_back_equal(title in text(), items in prop::collection::vec(text(), 0..3)) {
        let document = json!({ "items": items, "count": 2, "nested": { "title": title }, "title": title });
        let rendered = render_lines(&document);
        let theirs: Value = serde_yaml::from_str(&rendered).expect("the reference reader reads it");
        prop_assert_eq!(&theirs, &document, "{}", rendered);
        let root = parse_packet(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        prop_assert_eq!(root.field_text("title"), Some(title.as_str()), "{}", rendered);
        prop_assert!(!rendered.contains(['\u{85}', '\u{2028}', '\u{2029}', '\r']), "{}", rendered);
    }

    #[test]
    fn a_rendered_packet_is_read_back_equal(title in text(), note in text(), id in line(), verdict in prop::option::of(text())) {
        let mut finding: Finding = serde_json::from_value(json!({ "id": "F-1", "severity": "P2", "status": "open", "blocking": true, "lines": "40-45" })).expect("a finding");
        finding.id = FindingId::new(id).unwrap_or_else(|_| FindingId::new("1e5").expect("an id"));
        finding.title = Some(title);
        let packet = FindingsPacket {
            packet_id: verdict,
            source_review_packet: None,
            reviewer: None,
            round: Some(2),
            created_at_utc: Timestamp::parse("2026-02-13T10:00:00Z"),
            reviewed_sha: CommitSha::new("1234567").ok(),
            summary: None,
            findings: vec![finding.clone(), Finding { severity: Severity::P0, status: Status::Fixed, ..finding }],
            qa_validation: Some(QaValidation { commands_run: vec![CommandRun { command: "make".into(), result: CommandResult::Warn, notes: Some(note) }] }),
            examined: None,
        };
        let rendered = render_packet(&packet);
        let node = parse_packet(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        let read: FindingsPacket = serde_json::from_value(coerce(&node, Schema::FindingsPacket.shape())).expect("a packet");
        prop_assert_eq!(&read, &packet, "{}", rendered);
        assert_texts_stay_texts(&rendered, &serde_json::to_value(&packet).expect("a value"));
    }

    #[test]
    fn a_report_is_read_back_equal(file in line(), found in text(), fix in prop::option::of(text()), line in prop::option::of(1..u32::MAX)) {
        let violation = ReportedViolation {
            code: Code::BodySyntax, message: found.clone(), file: file.clone(), line, column: line, field: None,
            thread: None, round_count: None, replies: None, clause: None,
            found: Some(found.clone()), expected: None, fix: fix.clone(), level: Level::Error,
        };
        let report = Report {
            schema_version: 1, file, digest: "sha256:00".into(), message_id: None,
            from_outbox: AgentName::new("claude").expect("a name"),
            received_at: Timestamp::parse("2026-02-13T10:00:00Z").expect("an instant"),
            refused: Code::BodySyntax, summary: found.clone(), retryable: true,
            violations: vec![violation], review: fix, round: None, legal_next: vec![found], attempts_left: Some(0), next_command: None,
        };
        let rendered = report.to_yaml();
        let read = Report::from_yaml(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        prop_assert_eq!(read, report, "{}", rendered);
    }
}

#[test]
fn a_rendered_message_reads_like_one_written_by_hand() {
    let request = json!({ "pr": "86", "branch": "no", "diff_summary": "First line.\nSecond line.", "max_turns_reviewer": 8, "declared_head": "0012345" });
    let body = Body::Request(serde_json::from_value(request).expect("a body"));
    let envelope = envelope(
        MessageType::Review(ReviewKind::Request),
        "Review: loop (#86)".to_owned(),
        None,
    );
    let expected = "\
id: msg-1
from: claude
to: codex
type: review_request
priority: P1
created_at_utc: '2026-02-13T10:00:00Z'
related_pr: '0086'
subject: 'Review: loop (#86)'
body: |
  pr: '86'
  branch: 'no'
  diff_summary: |-
    First line.
    Second line.
  max_turns_reviewer: 8
  declared_head: '0012345'
";
    assert_eq!(render_message(&envelope, &body), expected);
}

#[test]
fn the_signature_trailer_is_the_last_line() {
    let envelope = Envelope {
        auth: Some("eyJhIjoxfQ".to_owned()),
        ..envelope(MessageType::Text(TextKind::Question), "Hm".to_owned(), None)
    };
    let rendered = render_message(&envelope, &Body::Text("Is it?".to_owned()));
    assert!(
        rendered.ends_with("body: |\n  Is it?\nauth: \"eyJhIjoxfQ\"\n"),
        "{rendered}"
    );
}

#[test]
fn a_text_that_begins_with_spaces_does_not_set_the_block_s_indentation() {
    let envelope = envelope(MessageType::Text(TextKind::Question), "Hm".to_owned(), None);
    for text in ["    code\nprose", "\n\n  a\nb\n\n", "\ta\nb"] {
        let rendered = render_message(&envelope, &Body::Text(text.to_owned()));
        let message =
            parse(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        assert_eq!(read_envelope(&message).body, text.trim(), "{rendered}");
    }
}

#[test]
fn a_draft_is_written_as_given_with_its_body_and_its_trailer() {
    let draft = render_draft(
        &json!({"id": "a b", "round": 0}),
        "One.\nTwo.\n",
        Some("x\"y"),
    );
    assert_eq!(
        draft,
        "id: a b\nround: 0\nbody: |\n  One.\n  Two.\nauth: \"x\\\"y\"\n"
    );
    assert_eq!(
        render_draft(&json!({"id": "a"}), "", None),
        "id: a\nbody: ''\n"
    );
}

#[test]
fn what_some_reader_would_not_take_is_escaped_and_the_rest_stays_as_it_is() {
    // In a literal block, in double quotes, and as a field of a document.
    for (c, stands_in_block, quoted, written) in [
        ('a', true, "a", "a"),
        ('ä', true, "ä", "ä"),
        ('\u{1f600}', true, "\u{1f600}", "\u{1f600}"),
        ('\u{a0}', true, "\u{a0}", "\u{a0}"),
        ('\n', true, "\\n", "\n"),
        ('\t', true, "\\t", "\t"),
        ('\r', false, "\\r", "\r"),
        ('\u{1b}', false, "\\u001b", "\\u001b"),
        ('\u{7f}', false, "\\u007f", "\\u007f"),
        ('\u{85}', false, "\\u0085", "\\u0085"),
        ('\u{9f}', false, "\\u009f", "\\u009f"),
        ('\u{2028}', false, "\\u2028", "\\u2028"),
        ('\u{2029}', false, "\\u2029", "\\u2029"),
        ('\u{feff}', false, "\\ufeff", "\\ufeff"),
        ('\u{fffe}', false, "\\ufffe", "\\ufffe"),
        ('\u{ffff}', false, "\\uffff", "\\uffff"),
    ] {
        assert_eq!(stands_in_a_block(c), stands_in_block, "{c:?}");
        assert_eq!(double_quoted(&c.to_string()), format!("\"{quoted}\""));
        let escaped = match c {
            '\r' => "\\u000d",
            '\t' => "\\u0009",
            _ => written,
        };
        assert_eq!(json_for_yaml(&format!("ä{c}b")), format!("ä{escaped}b"));
    }
    assert_eq!(json_for_yaml("{\n \"a\": 1\n}"), "{\n \"a\": 1\n}");
}

#[test]
fn a_document_is_written_in_blocks_and_in_lines_where_blocks_would_not_come_back() {
    let plain = json!({"a": "b", "none": [], "list": ["no", "0x1F", "12:30", "=", "1e3"], "n": 8, "sub": {"Y": "on"}});
    let trap = "x\u{2028}y";
    let rare =
        json!({"a": "no", "key": {trap: 1}, "list": [1, trap], "text": "a\rb", "map": {"k": trap}});
    for (document, blocks, lines) in [
        (
            &plain,
            "a: b\nlist:\n- 'no'\n- '0x1F'\n- '12:30'\n- '='\n- '1e3'\nn: 8\nnone: []\nsub:\n  Y: 'on'\n",
            "a: \"b\"\nlist:\n- \"no\"\n- \"0x1F\"\n- \"12:30\"\n- \"=\"\n- \"1e3\"\nn: 8\nnone: []\nsub: {\"Y\":\"on\"}\n",
        ),
        (
            &rare,
            "a: 'no'\nkey: {\"x\\u2028y\":1}\nlist: [1,\"x\\u2028y\"]\nmap: {\"k\":\"x\\u2028y\"}\ntext: \"a\\rb\"\n",
            "a: \"no\"\nkey: {\"x\\u2028y\":1}\nlist:\n- 1\n- \"x\\u2028y\"\nmap: {\"k\":\"x\\u2028y\"}\ntext: \"a\\rb\"\n",
        ),
    ] {
        assert_eq!(render_document(document), blocks);
        assert_eq!(render_lines(document), lines);
        for written in [blocks, lines] {
            assert_eq!(read_document(written.as_bytes()).as_ref(), Some(document));
        }
    }
    assert_eq!(render_document(&json!({"a": "b"})), "a: b\n");
    assert_eq!(read_document(b"a: [b"), None);
}
