//! A structured response as its reviewer gave it: what stands in the JSON, and why a text is none.
//! The form is that of the schema in a brief; whether the actions are legal is judged by `decide`.

use std::collections::BTreeMap;

use message_schema::id::FindingId;
use message_schema::packet::{Action, CommandRun, Severity, Stance};
use serde::Deserialize;
use serde_json::Value;

/// The response to one request, as a brief's schema describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructuredResponse {
    /// The verdict; one level down, because structured outputs want an object at the root.
    pub response: TerminalResponse,
}

/// Which of the two terminal responses it is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type")]
pub enum TerminalResponse {
    /// Findings.
    #[serde(rename = "review_feedback")]
    Feedback(FeedbackAnswer),
    /// Approved.
    #[serde(rename = "review_lgtm")]
    Lgtm(LgtmAnswer),
}

/// A feedback. Texts that are empty mean none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackAnswer {
    /// One deal for each open thread.
    pub threads: BTreeMap<FindingId, ThreadAnswer>,
    /// Problems no thread is about.
    #[serde(rename = "findings")]
    pub new_findings: Vec<NewFinding>,
    /// What was run to check the change.
    #[serde(default)]
    pub commands_run: Vec<CommandRun>,
    /// What was read of the change.
    #[serde(default)]
    pub examined: ExaminedAnswer,
    /// Why a person should go on; empty if none need.
    #[serde(default)]
    pub escalation: String,
    /// The commit that was reviewed.
    #[serde(default)]
    pub validated_head: String,
    /// Resolved threads whose problem is back: they open again, with their counters.
    #[serde(default)]
    pub reopen: Vec<FindingId>,
    /// Threads resolved for good whose problem is back: a person is to look.
    #[serde(default)]
    pub escalate: Vec<FindingId>,
}

/// An approval. Texts that are empty mean none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LgtmAnswer {
    /// One deal for each open thread.
    pub threads: BTreeMap<FindingId, ThreadAnswer>,
    /// What is left for later and is no thread's.
    pub nits: Vec<NitAnswer>,
    /// What was run to check the change.
    #[serde(default)]
    pub commands_run: Vec<CommandRun>,
    /// What was read of the change.
    #[serde(default)]
    pub examined: ExaminedAnswer,
    /// Whether the pull request may be merged now.
    pub merge_ready: bool,
    /// The commit the approval is bound to.
    #[serde(default)]
    pub validated_head: String,
}

/// What the reviewer says it has read. Nothing is filled in for it: left out, it has read nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExaminedAnswer {
    /// The digest of the diff that was read.
    pub diff_digest: String,
    /// The files that were read.
    pub declared: Vec<String>,
}

/// What is done with one open thread.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadAnswer {
    /// Exactly one.
    pub action: Deal,
    /// What the reviewer wants now; left out, what it wanted last.
    #[serde(default)]
    pub stance: Option<Stance>,
    /// What shows it.
    #[serde(default)]
    pub evidence: String,
    /// Of a deferred thread: who takes it; the author, if it is empty.
    #[serde(default)]
    pub owner: String,
    /// Of a deferred thread: what happens next.
    #[serde(default)]
    pub next_action: String,
}

/// The four actions and, in an lgtm, leaving a thread for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// An action of the protocol.
    Act(Action),
    /// Nothing is done now: a nit covers the thread.
    Defer,
}

impl<'de> Deserialize<'de> for Deal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let action = Action::from_word(&word).map(Self::Act);
        action
            .or_else(|| (word == "defer").then_some(Self::Defer))
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "`{word}` is not an action, expected resolve, veto, escalate, reply or defer"
                ))
            })
    }
}

/// A problem no thread is about. It has no id: it gets one that is free.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFinding {
    /// How bad it is.
    pub severity: Severity,
    /// Whether it blocks; counts for a P2 alone.
    #[serde(default)]
    pub blocking: Option<bool>,
    /// One line on what it is.
    #[serde(default)]
    pub title: String,
    /// The file it is in, relative to the repository.
    #[serde(default)]
    pub file: String,
    /// The lines it covers, `40` or `40-45`.
    #[serde(default)]
    pub lines: String,
    /// Kind of problem; routes handoffs.
    #[serde(default)]
    pub category: String,
    /// What shows it.
    #[serde(default)]
    pub evidence: String,
    /// What to do about it.
    #[serde(default)]
    pub recommendation: String,
    /// The commit or fix that brought it.
    #[serde(default)]
    pub introduced_by: String,
}

/// Something left for later that is no thread's; without a summary it is none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NitAnswer {
    /// How much it matters: P2 or P3.
    pub tier: message_schema::body::NitTier,
    /// What it is.
    pub summary: String,
    /// Who takes it; the author, if it is empty.
    #[serde(default)]
    pub owner: String,
    /// What happens next.
    #[serde(default)]
    pub next_action: String,
}

/// Why a value is no response to the open request, or cannot be written as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAResponse {
    /// It has not the form of one.
    #[error("{0}")]
    Form(String),
    /// An open thread has no action; silence would not say which.
    #[error("open thread `{0}` has no action")]
    Missing(FindingId),
    /// A thread is acted on that is not open, or not there.
    #[error("`{0}` is not an open thread of this review")]
    NotOpen(FindingId),
    /// A thread is to be opened or escalated again that was not resolved like that.
    #[error("`{0}` cannot be reopened or escalated like this")]
    NotResolved(FindingId),
    /// Only an lgtm defers, and only what does not block.
    #[error("`{0}` cannot be deferred: only an lgtm can, and only a thread that does not block")]
    NotDeferrable(FindingId),
    /// A text is not what its field holds.
    #[error("`{field}` is {found:?}, expected {expected}")]
    Field {
        /// The field, dotted from the verdict.
        field: String,
        /// What stands there.
        found: String,
        /// What would have been accepted.
        expected: &'static str,
    },
}

impl StructuredResponse {
    /// Reads a value of the form of the schema; fields whose text would be empty may be left out.
    /// Fails with [`NotAResponse::Form`] on any other.
    pub fn read(value: &Value) -> Result<Self, NotAResponse> {
        Self::deserialize(value).map_err(|error| NotAResponse::Form(error.to_string()))
    }
}
