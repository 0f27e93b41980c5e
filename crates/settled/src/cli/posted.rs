//! Shows the outcome of a message, as JSON and as text.

use std::path::Path;

use mailbox::compose::forecast::Forecast;
use mailbox::compose::outbox::file_name;
use mailbox::compose::review_status::ReviewStatus;
use mailbox::compose::words_from::{self, WordsFrom};
use message_schema::id::MessageId;
use message_schema::line::escaped;
use message_schema::{Level, Report, ReportedViolation};
use serde::Serialize;
use validate_message::Violations;

use super::context::Context;
use super::failure::Failure;
use crate::exit::Exit;

/// The outcome of a message. Fields are added, never changed.
#[derive(Debug, Serialize)]
pub(super) struct Posted {
    pub(super) id: String,
    /// `accepted`, `refused`, `waiting`, `written` (nobody waited), `invalid` or `dry_run` (nothing was written).
    pub(super) outcome: &'static str,
    /// The message's path now; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    /// True if it was sent before and nothing was written now.
    pub(super) again: bool,
    /// The path of a packet that was written with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) packet: Option<String>,
    /// The review's status now, if the ledger can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) review: Option<ReviewStatus>,
    /// The report of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<Report>,
    /// The violations that kept it from being written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) violations: Vec<ReportedViolation>,
    /// True if a daemon serves; present while the message waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) serving: Option<bool>,
    /// Only for a dry run: what the daemon would decide now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forecast: Option<Forecast>,
    /// Only for a dry run: the text of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_text: Option<String>,
    /// Only for a dry run: the text of its packet.
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

/// The failure for a message that the validator refuses; nothing was written.
pub(super) fn invalid(
    context: &Context,
    id: &MessageId,
    violations: &Violations,
    origin: WordsFrom<'_>,
) -> Failure {
    let (file, flags) = (file_name(id), flags(&(context.command_line)(), origin));
    let violations: Vec<ReportedViolation> = violations
        .iter()
        .map(|violation| origin.told(violation.reported(&file), &file, &flags))
        .collect();
    let told: Vec<String> = violations.iter().map(words_from::line).collect();
    let message = format!("nothing was written:\n{}", told.join("\n"));
    let has_fix = violations.iter().any(|violation| violation.fix.is_some());
    let code = violations
        .iter()
        .find(|violation| violation.level == Level::Error)
        .map(|violation| violation.code);
    let data = Posted {
        violations,
        ..Posted::new(id, "invalid", None)
    };
    let code = code.expect("what is invalid has an error");
    let failure = Failure::plain(Exit::InvalidMessage, message)
        .data(&data)
        .code(code.as_str());
    // A fix says more than the explanation of the code.
    if has_fix {
        return failure;
    }
    failure.next(context.command(&format!("explain {code}")))
}

/// The options of the command that was run, each after the field that it sets.
fn flags(command_line: &clap::Command, origin: WordsFrom<'_>) -> Vec<(String, String)> {
    let name = match origin {
        WordsFrom::Flags | WordsFrom::Yaml(_) | WordsFrom::Packet(_) => "send",
        WordsFrom::Response | WordsFrom::Findings { .. } => "feedback",
    };
    let sent = command_line.find_subcommand(name).into_iter();
    let options = sent.flat_map(clap::Command::get_arguments);
    options
        .filter_map(|option| {
            let field = match option.get_id().as_str() {
                "head" => "validated_head",
                field => field,
            };
            Some((field.to_owned(), format!("--{}", option.get_long()?)))
        })
        .collect()
}

/// A refusal for its sender: every violation with its fix, the legal next messages, and what it cost.
pub(super) fn told(context: &Context, report: &Report, origin: WordsFrom<'_>) -> String {
    let flags = flags(&(context.command_line)(), origin);
    let violations: Vec<ReportedViolation> = report
        .violations
        .iter()
        .map(|violation| origin.told(violation.clone(), &report.file, &flags))
        .collect();
    // A single violation already says everything in the summary.
    let mut lines = match violations.as_slice() {
        [_] => vec!["refused:".to_owned()],
        [] | [_, ..] => vec![format!(
            "refused, {}: {}",
            report.refused,
            escaped(&report.summary)
        )],
    };
    lines.extend(violations.iter().map(words_from::line));
    lines.extend(
        report
            .attempts_left
            .map(|left| format!("{left} attempts are left in this round")),
    );
    // A fix says what to send; without one, the rules do.
    let has_fix = violations.iter().all(|violation| violation.fix.is_some());
    lines.extend(
        report
            .legal_next
            .iter()
            .filter(|_| !has_fix || !report.retryable)
            .map(|next| format!("legal: {}", escaped(next))),
    );
    if !report.retryable {
        lines.push("no correction of this message can succeed".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::SettledCli;
    use super::*;

    #[test]
    fn a_field_is_called_by_the_flag_of_the_command_that_was_run() {
        let named = |origin, flag: &str| {
            let pair = ("validated_head".to_owned(), flag.to_owned());
            flags(&SettledCli::command(), origin).contains(&pair)
        };
        assert!(named(WordsFrom::Flags, "--validated-head"));
        assert!(named(WordsFrom::Response, "--head"));
    }
}
