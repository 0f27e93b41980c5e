//! Properties of every value of our types: the schemas accept it, and rendering it gives a message without a violation.

use message_schema::body::{
    Body, Escalation, Examined, GateResult, Nit, NitTier, ReviewAddressed, ReviewFeedback,
    ReviewLgtm, ReviewRequest, RunTrigger, Telemetry,
};
use message_schema::envelope::{
    Envelope, MessageType, Priority, Recipients, ReviewKind, TextKind, Timestamp,
};
use message_schema::id::{
    AgentName, CommitSha, DiffDigest, FindingId, MessageId, PacketPath, PrNumber, Repo, RepoPath,
};
use message_schema::limit::{Rounds, RuntimeBudget, TurnBudget};
use message_schema::packet::{
    Action, Finding, FindingsPacket, LineRange, Severity, Stance, Status,
};
use message_schema::{Schema, parse, render_message, render_packet};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Serialize;
use validate_message::{PacketInput, check};

/// Generates a non-empty text with characters over which readers stumble.
fn text() -> impl Strategy<Value = String> {
    let tricky = select(vec![
        "no",
        "~",
        "a: b",
        "# a",
        "- a",
        "'",
        "\"",
        "a\n\n  b",
        "\u{1f600}",
        "*a",
        "1e3",
        "“a”",
    ]);
    prop_oneof![tricky.prop_map(str::to_owned), "[ -~]{1,30}", "\\PC{1,12}"]
        .prop_map(|text| text.trim().to_owned())
        .prop_filter("a text", |text| !text.is_empty())
}

fn line() -> impl Strategy<Value = String> {
    text()
        .prop_map(|text| text.replace('\n', " "))
        .prop_filter("one line", |text| {
            Escalation::try_from(text.clone()).is_ok()
        })
}

fn commit() -> impl Strategy<Value = CommitSha> {
    "[0-9a-fA-F]{7,64}".prop_map(|text| CommitSha::new(text).expect("a commit"))
}

fn name() -> impl Strategy<Value = AgentName> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,63}".prop_map(|text| AgentName::new(text).expect("a name"))
}

fn finding_id() -> impl Strategy<Value = FindingId> {
    line().prop_map(|text| FindingId::new(text).expect("an id"))
}

fn instant() -> impl Strategy<Value = Timestamp> {
    (1..28u32, 0..24u32, 0..60u32).prop_map(|(d, h, s)| {
        Timestamp::parse(&format!("2026-02-{d:02}T{h:02}:59:{s:02}Z")).expect("an instant")
    })
}

fn telemetry() -> impl Strategy<Value = Option<Telemetry>> {
    of(any::<u64>().prop_map(|turns| Telemetry {
        turns: Some(turns),
        ..Telemetry::default()
    }))
}

fn request() -> impl Strategy<Value = Body> {
    let commits = (
        of(commit()),
        of(commit()),
        of(1..=1000u32),
        of(1..=86400u32),
        of(1..=3u8),
        of(1..u32::MAX),
    );
    (
        "[0-9]{1,20}",
        text(),
        text(),
        commits,
        prop::collection::vec(text(), 0..3),
        of(text()),
        any::<bool>(),
        prop::collection::vec(
            "[a-z #:]{0,8}[a-z]".prop_map(|file| file.trim().to_owned()),
            0..3,
        ),
    )
        .prop_map(
            |(
                pr,
                branch,
                diff_summary,
                (base_sha, declared_head, turns, seconds, rounds, round),
                commands,
                reason,
                verify,
                changed,
            )| {
                Body::Request(ReviewRequest {
                    pr: PrNumber::new(pr).expect("a number"),
                    branch,
                    diff_summary,
                    handoff_ref: reason.clone(),
                    max_turns_reviewer: turns.map(|n| TurnBudget::new(n.into()).expect("a budget")),
                    max_runtime_s_reviewer: seconds
                        .map(|n| RuntimeBudget::new(n.into()).expect("a budget")),
                    round,
                    max_rounds: rounds.map(|n| Rounds::new(n.into()).expect("rounds")),
                    repo: verify.then(|| Repo::new("owner/name").expect("a repository")),
                    base_sha,
                    declared_head,
                    diff_digest: verify.then(digest),
                    changed_files: changed
                        .into_iter()
                        .map(|file| RepoPath::new(file).expect("a path"))
                        .collect(),
                    changed_files_packet: None,
                    validation_commands: commands.clone(),
                    run_trigger: verify.then_some(RunTrigger::Verify),
                    side_effects: commands,
                    human_direction: reason.clone().map(Into::into),
                    supersedes_message_id: verify.then(|| MessageId::new("m@1").expect("an id")),
                    supersede_reason: reason,
                })
            },
        )
}

fn digest() -> DiffDigest {
    DiffDigest::new(format!("sha256:{}", "0a".repeat(32))).expect("a digest")
}

fn examined(number: u32) -> Option<Examined> {
    let path = |text: &str| vec![RepoPath::new(text).expect("a path")];
    number.is_multiple_of(2).then(|| Examined {
        diff_digest: number.is_multiple_of(4).then(digest),
        declared: path("src/a b.rs"),
        served: path("no"),
        observed: Vec::new(),
    })
}

fn feedback() -> impl Strategy<Value = Body> {
    (
        1..u32::MAX,
        any::<u32>(),
        of(line()),
        of(commit()),
        telemetry(),
    )
        .prop_map(
            |(round, blocking_count, escalation, validated_head, telemetry)| {
                Body::Feedback(ReviewFeedback {
                    findings_packet: PacketPath::new("packets/findings/a b.yaml").expect("a path"),
                    round,
                    blocking_count,
                    escalation: escalation
                        .map(|text| Escalation::try_from(text).expect("an escalation")),
                    validated_head,
                    examined: examined(round),
                    withheld_side_effects: None,
                    telemetry,
                })
            },
        )
}

fn addressed() -> impl Strategy<Value = Body> {
    (
        commit(),
        text(),
        1..u32::MAX,
        prop::collection::vec("[a-z #:]{0,8}[a-z]", 0..3),
        prop::collection::vec(finding_id(), 0..3),
        telemetry(),
    )
        .prop_map(
            |(commit_sha, changes_summary, round, files, addressed_finding_ids, telemetry)| {
                Body::Addressed(ReviewAddressed {
                    commit_sha,
                    changes_summary,
                    round,
                    touched_files: files
                        .into_iter()
                        .map(|f| RepoPath::new(f.trim()).expect("a path"))
                        .collect(),
                    addressed_finding_ids,
                    validated_head: None,
                    human_direction: None,
                    telemetry,
                })
            },
        )
}

fn lgtm() -> impl Strategy<Value = Body> {
    let nit = (
        text(),
        text(),
        any::<bool>(),
        of(finding_id()),
        of(instant()),
    )
        .prop_map(|(summary, owner, is_p2, source, expires_at_utc)| Nit {
            nit_id: String::new(),
            tier: if is_p2 { NitTier::P2 } else { NitTier::P3 },
            summary: summary.clone(),
            owner,
            next_action: summary.clone(),
            tracking_ref: Some(summary),
            source,
            expires_at_utc,
        });
    (
        any::<bool>(),
        prop::collection::vec(nit, 0..4),
        of(1..u32::MAX),
        of(commit()),
        telemetry(),
    )
        .prop_map(|(merge_ready, nits, round, validated_head, telemetry)| {
            let numbered = nits.into_iter().enumerate().map(|(at, nit)| Nit {
                nit_id: format!("N {at}"),
                ..nit
            });
            Body::Lgtm(ReviewLgtm {
                quality_gate_result: GateResult::Pass,
                merge_ready,
                nits: numbered.collect(),
                findings_packet: None,
                round,
                validated_head,
                unbound: false,
                examined: examined(round.unwrap_or(0)),
                follow_ups: None,
                withheld_side_effects: None,
                telemetry,
            })
        })
}

fn message() -> impl Strategy<Value = (Envelope, Body)> {
    let others = text().prop_map(Body::Text);
    let body = prop_oneof![request(), feedback(), addressed(), lgtm(), others];
    let ids = (
        "[A-Za-z0-9._:@+-]{1,200}",
        name(),
        select(Priority::ALL.to_vec()),
    );
    (
        ids,
        line(),
        instant(),
        of(instant()),
        of(text()),
        of(0..u64::MAX),
        body,
    )
        .prop_map(
            |((id, from, priority), subject, created_at_utc, expires_at, extra, turns, body)| {
                let kind = match &body {
                    Body::Request(_) => MessageType::Review(ReviewKind::Request),
                    Body::Feedback(_) => MessageType::Review(ReviewKind::Feedback),
                    Body::Addressed(_) => MessageType::Review(ReviewKind::Addressed),
                    Body::Lgtm(_) => MessageType::Review(ReviewKind::Lgtm),
                    Body::Text(_) => MessageType::Text(TextKind::Question),
                };
                let turns = turns.filter(|_| kind.may_carry_telemetry());
                let envelope = Envelope {
                    id: MessageId::new(id).expect("an id"),
                    to: Recipients::One(
                        AgentName::new(if from.as_str() == "b" { "c" } else { "b" })
                            .expect("a name"),
                    ),
                    from,
                    kind,
                    priority,
                    created_at_utc,
                    related_pr: None,
                    subject,
                    related_packet: extra.clone(),
                    conversation_id: None,
                    parent_message_id: None,
                    context_keys: extra.clone(),
                    expires_at,
                    channel: None,
                    autonomy_hint: None,
                    model: extra.filter(|_| kind.may_carry_telemetry()),
                    turns,
                    input_tokens: turns,
                    output_tokens: None,
                    wall_time_s: turns.map(|_| 0.5),
                    est_cost_usd: None,
                    body: "text".to_owned(),
                    auth: None,
                };
                (envelope, body)
            },
        )
}

fn packet() -> impl Strategy<Value = FindingsPacket> {
    let words = (
        select(Severity::ALL.to_vec()),
        select(Status::ALL.to_vec()),
        of(select(Stance::ALL.to_vec())),
        of(select(Action::ALL.to_vec())),
    );
    let finding = (words, of(text()), of(1..u32::MAX)).prop_map(|((severity, status, stance, action), title, line)| {
        let json = serde_json::json!({ "id": "F", "severity": severity, "status": status, "blocking": severity < Severity::P2 });
        let finding: Finding = serde_json::from_value(json).expect("a finding");
        Finding { title: title.clone(), evidence: title, line, lines: line.map(LineRange::line), stance, action, ..finding }
    });
    (
        prop::collection::vec(finding, 0..5),
        of(1..u32::MAX),
        of(text()),
    )
        .prop_map(|(findings, round, reviewer)| {
            let number = |(at, finding)| Finding {
                id: FindingId::new(format!("F-{at}")).expect("an id"),
                ..finding
            };
            FindingsPacket {
                packet_id: None,
                source_review_packet: None,
                reviewer,
                round,
                created_at_utc: None,
                reviewed_sha: None,
                summary: None,
                findings: findings.into_iter().enumerate().map(number).collect(),
                qa_validation: None,
                examined: examined(round.unwrap_or(1)),
            }
        })
}

fn accepted(schema: Schema, value: &impl Serialize) -> Result<(), TestCaseError> {
    let value = serde_json::to_value(value).expect("our types are JSON");
    prop_assert_eq!(schema.breaches(&value), [], "{:#}", value);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_types_hold_the_schemas_accept((envelope, body) in message(), packet in packet()) {
        accepted(Schema::Envelope, &envelope)?;
        accepted(Schema::FindingsPacket, &packet)?;
        match &body {
            Body::Request(body) => accepted(Schema::ReviewRequest, body)?,
            Body::Feedback(body) => accepted(Schema::ReviewFeedback, body)?,
            Body::Addressed(body) => accepted(Schema::ReviewAddressed, body)?,
            Body::Lgtm(body) => accepted(Schema::ReviewLgtm, body)?,
            Body::Text(_) => {}
        }
    }

    #[test]
    fn whatever_is_rendered_is_a_correct_message((envelope, body) in message(), packet in packet()) {
        let mut packet = packet;
        let body = match body {
            Body::Feedback(feedback) => {
                packet.round = Some(feedback.round);
                let blocking = packet.findings.iter().filter(|finding| finding.counts_as_blocking()).count();
                Body::Feedback(ReviewFeedback { blocking_count: u32::try_from(blocking).expect("few"), ..feedback })
            }
            Body::Request(_) | Body::Addressed(_) | Body::Lgtm(_) | Body::Text(_) => body,
        };
        let rendered = render_message(&envelope, &body);
        let of_packet = render_packet(&packet);
        let message = parse(rendered.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{rendered}"));
        let valid = check(&message, PacketInput::Bytes(of_packet.as_bytes()));
        let valid = valid.unwrap_or_else(|violations| panic!("{violations:#?} in\n{rendered}\n{of_packet}"));
        prop_assert!(valid.warnings().is_empty(), "{:?} in\n{}", valid.warnings(), rendered);
    }
}
