//! The library's promises: all violations at once, one for each cause, in order; packets are handed in; nothing in a
//! message can break the report.

use message_schema::body::Body;
use message_schema::line::line_starts;
use message_schema::{Code, Level, Place, Report, parse};
use proptest::prelude::*;
use validate_message::{PacketInput, Source, Valid, Violations, check};

const FEEDBACK: &str = include_str!("../../../../packets/valid/review_feedback.yaml");
const PACKET: &str =
    include_str!("../../../../packets/findings/20260213_review_loop_codex_r1.yaml");
const REQUEST: &str = include_str!("../../../../packets/valid/review_request.yaml");
const ADDRESSED: &str = include_str!("../../../../packets/valid/review_addressed.yaml");
const LGTM: &str = include_str!("../../../../packets/valid/review_lgtm.yaml");

fn judge(text: &str, packet: PacketInput<'_>) -> Result<Valid, Violations> {
    check(&parse(text.as_bytes())?, packet)
}

fn codes(violations: &Violations) -> Vec<Code> {
    violations.iter().map(|violation| violation.code).collect()
}

#[test]
fn a_valid_message_carries_what_was_read() {
    let valid = judge(FEEDBACK, PacketInput::Bytes(PACKET.as_bytes())).expect("valid");
    assert_eq!(valid.envelope().from.as_str(), "codex");
    assert!(matches!(valid.body(), Body::Feedback(body) if body.blocking_count == 2));
    let packet = valid.packet().expect("handed in");
    assert_eq!(
        (
            packet.text.as_str(),
            valid.findings().map_or(0, |packet| packet.findings.len())
        ),
        (PACKET, 3)
    );
    assert_eq!(
        packet.path.as_str(),
        "packets/findings/20260213_review_loop_codex_r1.yaml"
    );
    assert!(valid.warnings().is_empty());
}

#[test]
fn a_packet_is_judged_by_what_became_of_it() {
    let code = |packet| {
        judge(FEEDBACK, packet)
            .map(|valid| valid.packet().is_some())
            .map_err(|v| codes(&v))
    };
    let unchecked = judge(FEEDBACK, PacketInput::NotLooked).expect("only warned about");
    let warned: Vec<(Code, Level)> = unchecked
        .warnings()
        .iter()
        .map(|warning| (warning.code, warning.level))
        .collect();
    assert_eq!(warned, [(Code::PacketUnchecked, Level::Warning)]);
    assert!(unchecked.packet().is_none());
    assert_eq!(code(PacketInput::NotNamed), Err(vec![Code::PacketMissing]));
    assert_eq!(code(PacketInput::Missing), Err(vec![Code::PacketMissing]));
    assert_eq!(
        code(PacketInput::Unsafe("it is a symlink".to_owned())),
        Err(vec![Code::PacketUnsafe])
    );
    assert_eq!(code(PacketInput::TooLarge), Err(vec![Code::PacketSyntax]));
    assert_eq!(
        code(PacketInput::Bytes(b"\xff")),
        Err(vec![Code::PacketSyntax])
    );
    assert_eq!(
        judge(LGTM, PacketInput::NotNamed)
            .map(|valid| valid.packet().is_some())
            .ok(),
        Some(false)
    );
}

#[test]
fn a_packet_is_judged_by_itself_as_with_its_message() {
    let alone = |text: &str| codes(&validate_message::check_packet(text.as_bytes()));
    assert_eq!(alone(PACKET), []);
    assert_eq!(alone("findings: [\n"), [Code::PacketSyntax]);
    assert_eq!(alone("finding: []\n"), [Code::PacketFieldInvalid]);
    let wrong = PACKET.replacen("severity: P", "severity: Q", 1);
    assert_eq!(alone(&wrong), [Code::FindingInvalid]);
    let is_packet =
        |text: &str| validate_message::is_packet(&parse(text.as_bytes()).expect("readable"));
    assert!(is_packet(PACKET) && is_packet("findings: []\n"));
    assert!(!is_packet(FEEDBACK) && !is_packet("a: b\n"));
    let task = include_str!("../../../../packets/handoff/handoff-pr86-2.yaml");
    assert!(!is_packet(task), "the packet of a task is the daemon's");
}

#[test]
fn an_optional_field_that_oacp_refuses_for_being_null_is_warned_of() {
    let warned = |line: &str| {
        let text = REQUEST.replacen("subject:", &format!("{line}\nsubject:"), 1);
        let valid = judge(&text, PacketInput::NotNamed).expect("it is only warned about");
        valid
            .warnings()
            .iter()
            .map(|w| w.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        warned("expires_at: null"),
        ["`expires_at` is null: Settled reads it as absent, and `oacp` refuses it"]
    );
    assert_eq!(
        warned("turns:"),
        ["`turns` is empty: Settled reads it as absent, and `oacp` refuses it"]
    );
    for silent in ["expires_at:", "channel: null", "context_keys: ~"] {
        assert_eq!(warned(silent), [""; 0], "{silent}");
    }
}

#[test]
fn a_byte_order_mark_belongs_to_no_place_but_to_the_text() {
    let with_mark = format!("\u{feff}{PACKET}");
    let valid = judge(
        &format!("\u{feff}{FEEDBACK}"),
        PacketInput::Bytes(with_mark.as_bytes()),
    )
    .expect("valid");
    assert_eq!(valid.packet().expect("handed in").text, with_mark);
}

#[test]
fn every_violation_of_message_and_packet_is_told_at_once_and_in_order() {
    let text = FEEDBACK
        .replace("P1", "P9")
        .replace("to: claude", "to: co dex")
        .replace("round: 1\n  b", "round: 0\n  b");
    let packet = PACKET
        .replace("severity: P3", "severity: P4")
        .replace("reviewer: codex", "reviewed_sha: HEAD");
    let violations = judge(&text, PacketInput::Bytes(packet.as_bytes())).expect_err("refused");
    let told: Vec<_> = violations
        .iter()
        .map(|v| (v.code, v.place.map(|place| place.line), v.field.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (Code::EnvelopeFieldInvalid, Some(3), Some("to")),
            (Code::EnvelopeFieldInvalid, Some(5), Some("priority")),
            (Code::BodyFieldInvalid, Some(11), Some("body.round")),
            (Code::PacketFieldInvalid, Some(3), Some("reviewed_sha")),
            (Code::FindingInvalid, Some(33), Some("findings[2].severity")),
        ]
    );
}

#[test]
fn an_unreadable_body_does_not_hide_the_envelope() {
    let text = REQUEST
        .replace("priority: P1", "priority: high")
        .replace("pr: 86\n  branch", "pr: [86\n  branch");
    let violations = judge(&text, PacketInput::NotNamed).expect_err("refused");
    assert_eq!(
        codes(&violations),
        [Code::EnvelopeFieldInvalid, Code::BodySyntax]
    );
    assert!(violations.iter().all(|violation| violation.place.is_some()));
}

#[test]
fn a_body_in_quotes_has_places_too_if_it_stands_on_one_line() {
    let text = "id: a\nfrom: a\nto: b\ntype: review_addressed\npriority: P1\ncreated_at_utc: 2026-02-13T10:00:00Z\n\
                subject: s\nbody: \"commit_sha: abc1234\\nchanges_summary: x\\nround: 0\"\n";
    let violations = judge(text, PacketInput::NotNamed).expect_err("refused");
    let violation = violations.first_error().expect("an error");
    assert_eq!(
        violation.place,
        Some(Place {
            line: 8,
            column: 56
        })
    );
    assert_eq!(violation.field.as_deref(), Some("body.round"));
    assert_eq!(
        (violation.found.as_deref(), violation.expected.as_deref()),
        (Some("0"), Some("a whole number, 1 or more"))
    );
    let folded = text.replace("\\nround", "\\n\n  round");
    let violations = judge(&folded, PacketInput::NotNamed).expect_err("refused");
    assert_eq!(
        violations.first_error().and_then(|first| first.place),
        Some(Place { line: 8, column: 7 })
    );
}

#[test]
fn what_a_message_holds_cannot_break_a_line_of_its_report() {
    let text = REQUEST.replace(
        "priority: P1",
        &format!("priority: \"\\e[31m\\n\\u202e{}\"", "x".repeat(300)),
    );
    let violations = judge(&text, PacketInput::NotNamed).expect_err("refused");
    let violation = violations.first_error().expect("an error");
    let found = violation.found.as_deref().expect("found");
    assert!(
        found.starts_with("\\u{1b}[31m\\n\\u{202e}xxx") && found.ends_with('…'),
        "{found}"
    );
    assert!(!found.chars().any(|c| c.is_control() || c == '\u{202e}'));
    assert_eq!(
        violation.message,
        "`priority` is a text of 307 characters, expected P0, P1, P2, P3"
    );
}

#[test]
fn a_packet_with_thousands_of_mistakes_gets_a_report_a_person_can_read() {
    let packet = format!("findings:\n{}", "- {}\n".repeat(9_000));
    let violations = judge(FEEDBACK, PacketInput::Bytes(packet.as_bytes())).expect_err("refused");
    assert_eq!((violations.iter().len(), violations.is_cut()), (200, true));
    let strange: String = (0..4_000).map(|i| format!("x{i}: y\n")).collect();
    let violations = judge(
        &format!("{strange}{FEEDBACK}"),
        PacketInput::Bytes(PACKET.as_bytes()),
    )
    .expect_err("refused");
    assert_eq!((violations.iter().len(), violations.is_cut()), (200, true));
    let packet = format!("findings:\n- {{id: F-1}}\n{strange}");
    let violations = judge(FEEDBACK, PacketInput::Bytes(packet.as_bytes())).expect_err("refused");
    let errors = violations
        .iter()
        .filter(|violation| violation.level == Level::Error)
        .count();
    assert_eq!(
        (errors, violations.iter().len(), violations.is_cut()),
        (2, 202, true)
    );
}

#[test]
fn leading_zeros_are_no_mismatch_of_pull_requests() {
    assert!(
        judge(
            &REQUEST.replace("pr: 86", "pr: 0086"),
            PacketInput::NotNamed
        )
        .is_ok()
    );
    let violations =
        judge(&REQUEST.replace("pr: 86", "pr: 860"), PacketInput::NotNamed).expect_err("refused");
    assert_eq!(codes(&violations), [Code::PrMismatch]);
}

#[test]
fn a_refusal_without_a_readable_message_is_one_violation() {
    let violations = judge("a: b: c", PacketInput::NotNamed).expect_err("refused");
    assert_eq!(codes(&violations), [Code::YamlSyntax]);
    assert_eq!(violations.as_slice()[0].file, Source::Message);
    assert_eq!(
        violations.as_slice()[0].to_text("x.yaml").lines().next(),
        Some("x.yaml:1:5: yaml_syntax: the value of `a` holds a colon, but no quotes")
    );
}

/// Generates a message with a few of its characters, or a line of it, damaged.
fn damaged() -> impl Strategy<Value = String> {
    let damage = prop_oneof![
        ".{0,3}",
        "[ \n:\\-'\"|>\\[\\]{}#&*!]{1,3}",
        prop::sample::select(vec![
            "\n",
            "\nnits: [{}]",
            "settled",
            "[",
            "{a: [b]}",
            "~",
            "''",
            "|",
            "0",
            "- x",
            "\u{202e}"
        ])
        .prop_map(str::to_owned),
    ];
    let text = prop::sample::select(vec![FEEDBACK, REQUEST, ADDRESSED, LGTM]);
    (
        text,
        prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, damage), 0..4),
    )
        .prop_map(|(text, damages)| {
            let mut chars: Vec<char> = text.chars().collect();
            for (at, length, damage) in damages {
                let start = at.index(chars.len() + 1);
                let end = (start + length).min(chars.len());
                chars.splice(start..end, damage.chars());
            }
            chars.into_iter().collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_messages_are_judged_without_panic_and_reported_whole(text in damaged(), packet in prop::option::of(damaged())) {
        let input = packet.as_ref().map_or(PacketInput::Bytes(PACKET.as_bytes()), |packet| PacketInput::Bytes(packet.as_bytes()));
        let Err(violations) = judge(&text, input) else { return Ok(()) };
        prop_assert!(violations.first_error().is_some());
        let order: Vec<_> = violations.iter().map(|v| (v.file.clone(), v.place)).collect();
        prop_assert!(order.is_sorted());
        for violation in &violations {
            let said = [&violation.field, &violation.found, &violation.fix, &violation.expected];
            for text in said.into_iter().flatten().chain([&violation.message]) {
                prop_assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{violation:?}");
            }
            prop_assert!(violation.to_text("x").lines().count() <= 2);
            let place = violation.place.unwrap_or(Place::START);
            let file = if violation.file == Source::Message { &text } else { packet.as_deref().unwrap_or(PACKET) };
            // A missing end is reported one line past the end.
            prop_assert!(usize::try_from(place.line).is_ok_and(|line| line <= line_starts(file).count() + 1), "{violation:?}");
        }
        let distinct: std::collections::BTreeSet<_> = violations
            .iter()
            .filter(|v| v.level == Level::Error && v.field.is_some())
            .map(|v| (v.file.clone(), v.field.clone(), v.code))
            .collect();
        prop_assert_eq!(distinct.len(), violations.iter().filter(|v| v.level == Level::Error && v.field.is_some()).count());
    }
}

#[test]
fn a_report_made_of_violations_is_read_back_equal() {
    let violations =
        judge(&LGTM.replace("tier: P3", "tier: P1"), PacketInput::NotNamed).expect_err("refused");
    let first = violations.first_error().expect("an error");
    let report = Report {
        schema_version: 1,
        file: "x.yaml".to_owned(),
        digest: "sha256:00".to_owned(),
        message_id: None,
        from_outbox: "codex".parse().expect("a name"),
        received_at: message_schema::envelope::Timestamp::parse("2026-02-13T10:00:00Z")
            .expect("an instant"),
        refused: first.code,
        summary: first.message.clone(),
        retryable: true,
        violations: violations
            .iter()
            .map(|violation| violation.reported("x.yaml"))
            .collect(),
        review: None,
        round: None,
        legal_next: Vec::new(),
        attempts_left: None,
        next_command: None,
    };
    assert_eq!(Report::from_yaml(report.to_yaml().as_bytes()), Ok(report));
}

#[test]
fn a_report_that_is_whole_says_so_and_is_read_in_order() {
    let message = parse(b"id: a\n").expect("readable");
    let violations = check(&message, PacketInput::NotLooked).expect_err("refused");
    assert!(!violations.is_cut());
    let read: Vec<_> = (&violations).into_iter().collect();
    assert!(!read.is_empty());
    assert_eq!(read, violations.as_slice().iter().collect::<Vec<_>>());
}

#[test]
fn the_changed_files_are_those_of_the_request() {
    let text = "id: r-1\nfrom: claude\nto: codex\ntype: review_request\npriority: P1\ncreated_at_utc: 2026-02-13T10:00:00Z\n\
        subject: a\nbody: |\n  pr: 86\n  branch: b\n  diff_summary: c\n  changed_files: [b.rs, a.rs, b.rs]\n";
    let message = parse(text.as_bytes()).expect("readable");
    let valid = check(&message, PacketInput::NotLooked).expect("valid");
    let files = valid.changed_files();
    assert_eq!(
        files.iter().map(|file| file.as_str()).collect::<Vec<_>>(),
        ["a.rs", "b.rs"]
    );
}
