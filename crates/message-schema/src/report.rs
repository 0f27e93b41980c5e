//! The report beside a refused original: the reasons, their places, and the possible next steps.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::envelope::{Timestamp, words};
use crate::id::{AgentName, MessageId};
use crate::malformed::Malformed;

/// The version of the report's format.
pub const REPORT_VERSION: u32 = 1;

/// The report on one refused file. Its YAML form is `<stem>.report.yaml` in `dead_letter/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The refused file's name.
    pub file: String,
    /// The digest of its bytes.
    pub digest: String,
    /// The message's id, when it could be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message_id: Option<MessageId>,
    /// The owner of the outbox it was in.
    pub from_outbox: AgentName,
    /// The time at which the daemon judged it.
    pub received_at: Timestamp,
    /// The code of the first violation.
    pub refused: Code,
    /// The reason, in one sentence.
    pub summary: String,
    /// True if a corrected message can succeed.
    pub retryable: bool,
    /// Every violation, by file and place.
    pub violations: Vec<ReportedViolation>,
    /// The review the message belonged to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub review: Option<String>,
    /// The round that review is in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round: Option<u32>,
    /// The moves the sender may make next, one a line.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub legal_next: Vec<String>,
    /// The attempts left in the round, if this refusal counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempts_left: Option<u32>,
    /// A command for the next step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_command: Option<String>,
}

/// One violation as a report shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedViolation {
    /// The code of the rule.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The file it is in: the message's, or a packet's path.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u32>,
    /// The field, dotted from the document's root.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub field: Option<String>,
    /// The thread it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// The number of cycles that thread's stance has been held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round_count: Option<u32>,
    /// The number of replies on that thread.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replies: Option<u32>,
    /// The clause of the quality gate that it breaks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clause: Option<String>,
    /// The text found there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub found: Option<String>,
    /// The values that would have been accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expected: Option<String>,
    /// The way to fix it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fix: Option<String>,
    /// The level: an error refuses the message, a warning does not.
    pub level: Level,
}

words!(
    /// The weight of a violation.
    Level {
        /// The message is refused.
        Error = "error",
        /// The message is accepted; the sender may want to know.
        Warning = "warning",
    }
);

impl Report {
    /// Returns the report as YAML.
    pub fn to_yaml(&self) -> String {
        crate::render::render_document(self)
    }

    /// Reads a report written by [`Report::to_yaml`].
    pub fn from_yaml(bytes: &[u8]) -> Result<Self, NotAReport> {
        let node = crate::message::parse_packet(bytes)?;
        let value = crate::coerce::coerce(&node, crate::schema::Schema::Report.shape());
        serde_json::from_value(value).map_err(|error| NotAReport::Fields(error.to_string()))
    }
}

/// Why a file is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAReport {
    /// It is no YAML mapping.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A field is missing or breaks its rule.
    #[error("{0}")]
    Fields(String),
}
