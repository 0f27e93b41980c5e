//! The promises of each reader for any bytes: it does not panic, it ends, and its answer is correct. The fuzz targets
//! in `fuzz` and their twins in the suite check them.

mod disk;
use std::path::Path;

pub use disk::{cursor, ledger, seeds};
use message_schema::REPORT_VERSION;
use message_schema::envelope::Envelope;
use message_schema::{Malformed, Place, Report, parse, parse_packet, render_message};
use validate_message::{PacketInput, Source, Valid, Violations, check};
use workspace::config::{Config, ConfigError};

/// The most violations in a report: 200 errors and as many warnings.
const VIOLATIONS_MAX: usize = 400;

/// The most bytes of a report: each violation is a few short lines.
const REPORT_BYTES_MAX: usize = 1024 * 1024;

/// A feedback that names a packet.
const FEEDBACK: &str = "id: f-1\nfrom: codex\nto: claude\ntype: review_feedback\npriority: P1\n\
    created_at_utc: \"2026-02-13T10:00:00Z\"\nrelated_pr: \"86\"\nsubject: round 1\nbody: |\n  \
    findings_packet: packets/findings/f.yaml\n  round: 1\n  blocking_count: 0\n";

/// Reads the bytes as a message and checks it.
pub fn message(bytes: &[u8]) {
    let message = match parse(bytes) {
        Ok(message) => message,
        Err(malformed) => return refused_at(bytes, &malformed),
    };
    match check(&message, PacketInput::NotLooked) {
        Ok(valid) => {
            let again = render_message(valid.envelope(), valid.body());
            let read = parse(again.as_bytes()).unwrap_or_else(|error| panic!("{error} in {again}"));
            let read = check(&read, PacketInput::NotLooked)
                .unwrap_or_else(|violations| panic!("{violations:?} in {again}"));
            // The body of a review message is rendered again and must mean the same.
            let envelope = |valid: &Valid| Envelope {
                body: String::new(),
                ..valid.envelope().clone()
            };
            assert_eq!(
                (envelope(&read), read.body()),
                (envelope(&valid), valid.body()),
                "{again}"
            );
        }
        Err(violations) => told_at(bytes, &violations, &Source::Message),
    }
}

/// Reads the bytes as a findings packet and checks it with a message that names it.
pub fn packet(bytes: &[u8]) {
    if let Err(malformed) = parse_packet(bytes) {
        refused_at(bytes, &malformed);
    }
    let message = parse(FEEDBACK.as_bytes()).expect("a message");
    if let Err(violations) = check(&message, PacketInput::Bytes(bytes)) {
        told_at(
            bytes,
            &violations,
            &Source::Packet("packets/findings/f.yaml".to_owned()),
        );
    }
}

/// Reads the bytes as a config.
pub fn config(bytes: &[u8]) {
    match Config::from_bytes(bytes, Path::new("settled.toml")) {
        Ok(config) => drop(config.policy([])),
        Err(ConfigError::Invalid {
            line,
            column,
            message,
            ..
        }) => {
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{message:?}"
            );
            let place = |number| u32::try_from(number).expect("a small file");
            is_inside(
                bytes,
                Place {
                    line: place(line),
                    column: place(column),
                },
            );
        }
        Err(error @ ConfigError::Unreadable { .. }) => panic!("nothing was to be opened: {error}"),
    }
}

/// Checks that the reader's refusal has a place, unless it concerns the file as a whole.
fn refused_at(bytes: &[u8], malformed: &Malformed) {
    use message_schema::Code::{Empty, TooLarge};
    assert!(!malformed.message.is_empty() && !malformed.expected.is_empty());
    match malformed.place {
        Some(place) => is_inside(bytes, place),
        None => assert!(
            [Empty, TooLarge].contains(&malformed.code),
            "{malformed:?} has no place"
        ),
    }
    let violations = Violations::from(malformed.clone());
    told_at(bytes, &violations, &Source::Message);
}

/// Checks that every violation has a place inside the file, and that their report is short and readable.
fn told_at(bytes: &[u8], violations: &Violations, file: &Source) {
    assert!(violations.first_error().is_some(), "refused for nothing");
    assert!(
        violations.as_slice().len() <= VIOLATIONS_MAX,
        "{} violations",
        violations.as_slice().len()
    );
    for violation in violations
        .iter()
        .filter(|violation| violation.file == *file)
    {
        if let Some(place) = violation.place {
            is_inside(bytes, place);
        }
    }
    let report = report(violations);
    let text = report.to_yaml();
    assert!(
        text.len() <= REPORT_BYTES_MAX,
        "a report of {} bytes",
        text.len()
    );
    let read =
        Report::from_yaml(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in {text}"));
    let told = |report: &Report| {
        let violations = report.violations.iter();
        violations
            .map(|one| {
                (
                    one.code,
                    one.level,
                    one.line,
                    one.column,
                    one.message.clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&read), told(&report), "{text}");
}

/// The report that the sender would get.
fn report(violations: &Violations) -> Report {
    let first = violations.first_error().expect("it was asked for before");
    Report {
        schema_version: REPORT_VERSION,
        file: "a.yaml".to_owned(),
        digest: "unread".to_owned(),
        message_id: None,
        from_outbox: message_schema::id::AgentName::new("codex").expect("a name"),
        received_at: message_schema::envelope::Timestamp::parse("2026-02-13T10:00:00Z")
            .expect("an instant"),
        refused: first.code,
        summary: first.message.clone(),
        retryable: true,
        violations: violations
            .iter()
            .map(|violation| violation.reported("a.yaml"))
            .collect(),
        review: None,
        round: None,
        legal_next: Vec::new(),
        attempts_left: None,
        next_command: None,
    }
}

/// True if the place is a character of the file, or directly after a line's last one.
fn is_inside(bytes: &[u8], place: Place) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines: Vec<&str> = text.split('\n').flat_map(|line| line.split('\r')).collect();
    assert!(
        (1..=lines.len()).contains(&(place.line as usize)),
        "{place} of {} lines",
        lines.len()
    );
    let longest = text
        .split('\n')
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default();
    assert!(
        (1..=longest + 1).contains(&(place.column as usize)),
        "{place}, the longest line has {longest}"
    );
}
