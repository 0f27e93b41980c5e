//! What became of a message, as JSON and in words.

use std::path::Path;

use mailbox::compose::forecast::Forecast;
use mailbox::compose::outbox::file_name;
use mailbox::compose::review_status::ReviewStatus;
use message_schema::id::MessageId;
use message_schema::line::escaped;
use message_schema::{Level, Report, ReportedViolation};
use serde::Serialize;
use validate_message::Violations;

use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// What became of a message. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub(super) struct Posted {
    pub(super) id: String,
    /// `accepted`, `refused`, `waiting`, `written` (nobody waited), `invalid` or `dry_run` (nothing was written).
    pub(super) outcome: &'static str,
    /// Where the message lies now; absent where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// Whether it had been sent before and nothing was written now.
    pub(super) again: bool,
    /// The packet it names, if it was written with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packet: Option<String>,
    /// Where the review stands now, if the ledger can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) review: Option<ReviewStatus>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<Report>,
    /// Why it was not written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) violations: Vec<ReportedViolation>,
    /// Whether a daemon serves, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) serving: Option<bool>,
    /// Of a dry run: what the daemon would say now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forecast: Option<Forecast>,
    /// Of a dry run: the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_text: Option<String>,
    /// Of a dry run: its packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packet_text: Option<String>,
}

impl Posted {
    pub(super) fn new(id: &MessageId, outcome: &'static str, file: Option<&Path>) -> Self {
        Self {
            id: id.to_string(),
            outcome,
            file: file.map(|path| path.display().to_string()),
            again: false,
            packet: None,
            review: None,
            report: None,
            violations: Vec::new(),
            serving: None,
            forecast: None,
            message_text: None,
            packet_text: None,
        }
    }
}

/// A message the validator refuses; nothing was written.
pub(super) fn invalid(context: &Context, id: &MessageId, violations: &Violations) -> Failure {
    let file = file_name(id);
    let told: Vec<String> = violations
        .iter()
        .map(|violation| violation.told(&file))
        .collect();
    let message = format!("nothing was written:\n{}", told.join("\n"));
    let violations = violations
        .iter()
        .map(|violation| violation.reported(&file))
        .collect::<Vec<_>>();
    let code = violations
        .iter()
        .find(|violation| violation.level == Level::Error)
        .map(|violation| violation.code);
    let data = Posted {
        violations,
        ..Posted::new(id, "invalid", None)
    };
    let failure = Failure::plain(Exit::InvalidMessage, message).data(&data);
    let code = code.expect("what is invalid has an error");
    failure
        .code(code.as_str())
        .next(context.command(&format!("explain {code}")))
}

/// A refusal as its sender needs it: every violation with its fix, what may come next, and what it cost.
pub(super) fn told(report: &Report) -> String {
    let mut lines = vec![format!(
        "refused, {}: {}",
        report.refused,
        escaped(&report.summary)
    )];
    for violation in &report.violations {
        let place = violation
            .line
            .zip(violation.column)
            .map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        lines.push(format!(
            "{}{place}: {}: {}",
            escaped(&violation.file),
            violation.code,
            escaped(&violation.message)
        ));
        lines.extend(
            violation
                .fix
                .iter()
                .map(|fix| format!("    fix: {}", escaped(fix))),
        );
    }
    lines.extend(
        report
            .attempts_left
            .map(|left| format!("{left} attempts are left in this round")),
    );
    lines.extend(
        report
            .legal_next
            .iter()
            .map(|next| format!("legal: {}", escaped(next))),
    );
    if !report.retryable {
        lines.push("sending it again cannot succeed".to_owned());
    }
    lines.join("\n")
}
