//! The outcome of a message that an agent sent.

use std::path::Path;

use mailbox::compose::draft::{MessageDraft, PacketGiven};
use mailbox::compose::forecast::Forecast;
use mailbox::compose::review_status::ReviewStatus;
use mailbox::compose::words_from::{self, WordsFrom};
use message_schema::envelope::{MessageType, ReviewKind};
use message_schema::id::MessageId;
use message_schema::line::escaped;
use message_schema::{Code, Level, Report, ReportedViolation};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// The outcome of a message. Fields are added, never changed.
#[derive(Debug, Default, Serialize)]
pub struct Posted {
    /// The message's id.
    pub id: String,
    /// `accepted`, `refused`, `waiting`, `written` (nobody waited), `invalid` or `dry_run` (nothing was written).
    pub outcome: &'static str,
    /// The message's path now; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// True if it was sent before and nothing was written now.
    pub again: bool,
    /// The path of a packet that was written with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<String>,
    /// The review's status now, if the ledger can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewStatus>,
    /// The report of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// The violations that kept it from being written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ReportedViolation>,
    /// True if a daemon serves; present while the message waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Only for a dry run: what the daemon would decide now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Only for a dry run: the text of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_text: Option<String>,
    /// Only for a dry run: the text of its packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_text: Option<String>,
}

impl Posted {
    /// An outcome without details.
    pub fn new(id: &MessageId, outcome: &'static str, file: Option<&Path>) -> Self {
        Self {
            id: id.to_string(),
            outcome,
            file: file.map(|path| path.display().to_string()),
            ..Self::default()
        }
    }

    /// Formats an accepted message, with the findings of its draft.
    pub fn accepted(&self, draft: &MessageDraft) -> String {
        let before = if self.again {
            "accepted before, nothing was sent"
        } else {
            "accepted"
        };
        let moved = self.review.as_ref().map_or_else(String::new, |review| {
            format!("  {}\n{}", escaped(&review.phrase()), review.approval())
        });
        format!("{before}: {}\n{moved}{}", self.id, findings(draft))
    }

    /// Formats a dry run: the files that would be written, the message at `path`, and the daemon's decision.
    pub fn dry(&self, path: &str) -> String {
        let mut text = String::new();
        if let (Some(packet), Some(written)) = (&self.packet, &self.packet_text) {
            text += &format!("# {packet}\n{written}");
        }
        text += &format!(
            "# {path}\n{}",
            self.message_text.as_deref().unwrap_or_default()
        );
        let foreseen = self.forecast.iter().flat_map(Forecast::lines);
        foreseen.for_each(|line| text += &format!("# {line}\n"));
        text
    }
}

/// The findings of a packet that was written for the message, with the ids they were given.
fn findings(draft: &MessageDraft) -> String {
    let is_feedback = draft.kind == MessageType::Review(ReviewKind::Feedback);
    let (PacketGiven::Text(text), true) = (&draft.packet, is_feedback) else {
        return String::new();
    };
    let Ok(packet) = message_schema::parse_packet(text.as_bytes()) else {
        return String::new();
    };
    let findings = packet.field("findings").map(|field| field.value.items());
    let line = |finding: &message_schema::yaml::Node| {
        let text = |key| finding.field_text(key).map(escaped).unwrap_or_default();
        let (id, severity, title) = (text("id"), text("severity"), text("title"));
        format!("  {id} {severity} {title}\n")
    };
    findings.unwrap_or_default().iter().map(line).collect()
}

/// The failure for a message that the validator refuses with these violations; nothing was written.
pub fn invalid(id: &MessageId, violations: Vec<ReportedViolation>) -> Failure {
    let told: Vec<String> = violations.iter().map(words_from::line).collect();
    let message = format!("nothing was written:\n{}", told.join("\n"));
    let error = violations
        .iter()
        .find(|violation| violation.level == Level::Error);
    let code = error.expect("what is invalid has an error").code;
    let data = Posted {
        violations,
        ..Posted::new(id, "invalid", None)
    };
    Failure::plain(Exit::InvalidMessage, message)
        .data(&data)
        .code(code.as_str())
}

/// The exit code for a refused message.
pub fn exit_of(code: Code) -> Exit {
    if matches!(
        code,
        Code::QualityGateViolation | Code::ApprovalWithoutEvidence
    ) {
        Exit::GateRefused
    } else if code == Code::IdCollision {
        Exit::Failed
    } else {
        Exit::InvalidMessage
    }
}

/// A refusal for its sender: every violation with its fix, the legal next messages, and what it cost.
pub fn refusal_text(report: &Report, origin: WordsFrom<'_>, flags: &[(String, String)]) -> String {
    let violations: Vec<ReportedViolation> = report
        .violations
        .iter()
        .map(|violation| origin.translate(violation.clone(), &report.file, flags))
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
    use mailbox::compose::forecast::ForecastVerdict;
    use serde_json::json;

    use super::*;

    fn posted(outcome: &'static str) -> Posted {
        let id = "fb-86".parse().expect("an id");
        Posted::new(&id, outcome, Some(Path::new("outbox/fb-86.yaml")))
    }

    #[test]
    fn an_accepted_message_is_told_with_its_review_and_the_ids_of_its_findings() {
        let mut draft = MessageDraft::new(MessageType::Review(ReviewKind::Feedback));
        let findings = "findings:\n- {id: F-1, severity: P1, title: \"a\\u202Eb\"}\n- {id: F-2, severity: P2}\n";
        draft.packet = PacketGiven::Text(findings.to_owned());
        let mut posted = posted("accepted");
        let listed = "  F-1 P1 a\\u{202e}b\n  F-2 P2 \n";
        assert_eq!(
            posted.accepted(&draft),
            format!("accepted: fb-86\n{listed}")
        );
        posted.again = true;
        posted.review = Some(ReviewStatus {
            review: "#86 claude -> codex".to_owned(),
            phase: "fixing",
            round: 1,
            mover: Some("claude".to_owned()),
            approved_commit: None,
        });
        let review = "  #86 claude -> codex: fixing, round 1; claude moves\n";
        let before = "accepted before, nothing was sent: fb-86\n";
        assert_eq!(posted.accepted(&draft), format!("{before}{review}{listed}"));
        for (kind, packet) in [
            (ReviewKind::Lgtm, PacketGiven::Text(findings.to_owned())),
            (ReviewKind::Feedback, PacketGiven::None),
            (ReviewKind::Feedback, PacketGiven::Text("[".to_owned())),
        ] {
            let draft = MessageDraft {
                packet,
                ..MessageDraft::new(MessageType::Review(kind))
            };
            let told = posted.accepted(&draft);
            assert_eq!(told, format!("{before}{review}"), "{draft:?}");
        }
    }

    #[test]
    fn a_dry_run_shows_each_file_and_the_forecast() {
        let mut posted = posted("dry_run");
        posted.message_text = Some("id: fb-86\n".to_owned());
        let message = "# outbox/fb-86.yaml\nid: fb-86\n";
        assert_eq!(posted.dry("outbox/fb-86.yaml"), message);
        posted.packet = Some("packets/findings/f.yaml".to_owned());
        posted.packet_text = Some("findings: []\n".to_owned());
        posted.forecast = Some(Forecast {
            verdict: ForecastVerdict::Accepted,
            why: None,
            review: None,
            head: None,
            gate: Some(Vec::new()),
            alerts: Vec::new(),
            report: None,
        });
        let packet = "# packets/findings/f.yaml\nfindings: []\n";
        let forecast = "# the daemon would accept it now\n# gate: passes\n";
        assert_eq!(
            posted.dry("outbox/fb-86.yaml"),
            format!("{packet}{message}{forecast}")
        );
    }

    #[test]
    fn an_invalid_message_fails_with_every_violation_and_the_code_of_the_first_error() {
        let violation = |code: Code, level: Level| {
            let value = json!({
                "code": code, "message": "no", "file": "--pr", "fix": "give it", "level": level,
            });
            serde_json::from_value::<ReportedViolation>(value).expect("a violation")
        };
        let violations = vec![
            violation(Code::PacketFieldUnknown, Level::Warning),
            violation(Code::ActionMissing, Level::Error),
            violation(Code::ActionIllegal, Level::Error),
        ];
        let failure = invalid(&"fb-86".parse().expect("an id"), violations.clone());
        assert_eq!(failure.exit, Exit::InvalidMessage);
        assert_eq!(failure.code, Some("action_missing"));
        assert_eq!(
            failure.message,
            "nothing was written:\n\
             --pr: packet_field_unknown (warning): no\n    fix: give it\n\
             --pr: action_missing: no\n    fix: give it\n\
             --pr: action_illegal: no\n    fix: give it"
        );
        let data = json!({
            "id": "fb-86", "outcome": "invalid", "again": false, "violations": violations,
        });
        assert_eq!(failure.data.as_deref(), Some(&data));
    }

    #[test]
    fn a_refusal_is_by_the_gate_or_of_the_message_or_of_its_id() {
        for (code, exit) in [
            (Code::QualityGateViolation, Exit::GateRefused),
            (Code::ApprovalWithoutEvidence, Exit::GateRefused),
            (Code::IdCollision, Exit::Failed),
            (Code::ActionMissing, Exit::InvalidMessage),
        ] {
            assert_eq!(exit_of(code), exit, "{code}");
        }
    }
}
