//! A structured response as its reviewer gave it: the content of the JSON, or why a text is no response. Its form is
//! that of the schema in a brief; `decide` judges whether the actions are legal.

use std::collections::BTreeMap;

use message_schema::id::FindingId;
use message_schema::line;
use message_schema::packet::{Action, CommandRun, Severity, Stance};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

/// The most characters that an error shows of a wrong value.
const FOUND_MAX: usize = 40;

/// The most characters of the expectation in an error: a list of fields may be long.
const EXPECTED_MAX: usize = 240;

/// The response to one request, as a brief's schema describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredResponse {
    /// The verdict, one level down because structured outputs require an object at the root.
    pub response: TerminalResponse,
}

/// One of the two terminal responses.
#[derive(Clone, Debug, PartialEq)]
pub enum TerminalResponse {
    /// Findings: `review_feedback`.
    Feedback(FeedbackAnswer),
    /// Approved: `review_lgtm`.
    Lgtm(LgtmAnswer),
}

/// A feedback. An empty text means none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackAnswer {
    /// One deal for each open thread.
    pub threads: BTreeMap<FindingId, ThreadAnswer>,
    /// Problems that no thread covers.
    #[serde(rename = "findings")]
    pub new_findings: Vec<NewFinding>,
    /// The commands that checked the change.
    #[serde(default)]
    pub commands_run: Vec<CommandRun>,
    /// The parts of the change that the reviewer read.
    #[serde(default)]
    pub examined: ExaminedAnswer,
    /// Why a person should continue; empty if not needed.
    #[serde(default)]
    pub escalation: String,
    /// The commit that was reviewed.
    #[serde(default)]
    pub validated_head: String,
    /// Resolved threads whose problem is back: they reopen with their counters.
    #[serde(default)]
    pub reopen: Vec<FindingId>,
    /// Threads that can no longer be reopened and whose problem is back: a person has to decide.
    #[serde(default)]
    pub escalate: Vec<FindingId>,
}

/// An approval. An empty text means none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LgtmAnswer {
    /// One deal for each open thread.
    pub threads: BTreeMap<FindingId, ThreadAnswer>,
    /// Deferred problems that have no thread.
    pub nits: Vec<NitAnswer>,
    /// The commands that checked the change.
    #[serde(default)]
    pub commands_run: Vec<CommandRun>,
    /// The parts of the change that the reviewer read.
    #[serde(default)]
    pub examined: ExaminedAnswer,
    /// True if the pull request may be merged now.
    pub merge_ready: bool,
    /// The commit the approval is bound to.
    #[serde(default)]
    pub validated_head: String,
}

/// The reviewer's claim of what it has read. A field that is left out claims nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExaminedAnswer {
    /// The digest of the diff that was read.
    pub diff_digest: String,
    /// The files that were read.
    pub declared: Vec<String>,
}

/// The reviewer's answer to one open thread.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadAnswer {
    /// Exactly one.
    pub action: Deal,
    /// The stance the reviewer takes now; if left out, its last one.
    #[serde(default)]
    pub stance: Option<Stance>,
    /// The evidence for it.
    #[serde(default)]
    pub evidence: String,
    /// The agent that takes a deferred thread; empty means the author.
    #[serde(default)]
    pub owner: String,
    /// The next step for a deferred thread.
    #[serde(default)]
    pub next_action: String,
}

/// The four actions and, in an lgtm, deferring a thread.
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

/// A problem that no thread covers. It gets a free id.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFinding {
    /// The finding's severity.
    pub severity: Severity,
    /// True if it blocks; only a P2 uses this.
    #[serde(default)]
    pub blocking: Option<bool>,
    /// A one-line title.
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
    /// The evidence for it.
    #[serde(default)]
    pub evidence: String,
    /// The reviewer's proposal for a fix.
    #[serde(default)]
    pub recommendation: String,
    /// The commit or fix that introduced it.
    #[serde(default)]
    pub introduced_by: String,
}

/// A follow-up that belongs to no thread; one without a summary is ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NitAnswer {
    /// The nit's severity: P2 or P3.
    pub tier: message_schema::body::NitTier,
    /// A one-line description of the problem.
    pub summary: String,
    /// The agent that takes it; empty means the author.
    #[serde(default)]
    pub owner: String,
    /// The next step.
    #[serde(default)]
    pub next_action: String,
}

/// Why a value is no response to the open request, or cannot be written as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAResponse {
    /// It does not have the form of a response: the first field that differs, its value, and what would have been
    /// accepted.
    #[error("{0}")]
    Form(String),
    /// An open thread has no action, and silence could mean any.
    #[error("open thread `{0}` has no action")]
    Missing(FindingId),
    /// The response acts on a thread that is not open or does not exist.
    #[error("`{0}` is not an open thread of this review")]
    NotOpen(FindingId),
    /// The response reopens or escalates a thread that is not resolved in a way that allows it.
    #[error("`{0}` cannot be reopened or escalated like this")]
    NotResolved(FindingId),
    /// Only an lgtm defers, and only a thread that does not block.
    #[error("`{0}` cannot be deferred: only an lgtm can, and only a thread that does not block")]
    NotDeferrable(FindingId),
    /// A text does not fit its field.
    #[error("`{field}` is {found:?}, expected {expected}")]
    Field {
        /// The field, dotted from the verdict.
        field: String,
        /// The text in that field.
        found: String,
        /// The accepted form.
        expected: &'static str,
    },
}

/// The root of a response before its type is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Root {
    response: Map<String, Value>,
}

impl StructuredResponse {
    /// Reads a value in the form of the schema; fields whose text would be empty may be left out. Fails with
    /// [`NotAResponse::Form`] on any other value.
    ///
    /// Reads the type first, by hand: `serde` buffers a tagged enum before it reads the rest, and the path to a wrong
    /// field is lost in the buffer.
    pub fn read(value: &Value) -> Result<Self, NotAResponse> {
        let Root { mut response } = form(value)?;
        let kind = response.remove("type");
        let verdict = Value::Object(response);
        let response = match kind.as_ref().and_then(Value::as_str) {
            Some("review_feedback") => TerminalResponse::Feedback(form(&verdict)?),
            Some("review_lgtm") => TerminalResponse::Lgtm(form(&verdict)?),
            Some(_) | None => {
                let found = kind.as_ref().map_or("missing".to_owned(), shown);
                return Err(NotAResponse::Form(format!(
                    "`type` is {found}, expected review_feedback or review_lgtm"
                )));
            }
        };
        Ok(Self { response })
    }
}

fn form<T: DeserializeOwned>(value: &Value) -> Result<T, NotAResponse> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let why = error.inner().to_string();
        NotAResponse::Form(difference(value, error.path(), &why))
    })
}

/// Describes the field at the end of the path: its value, and what `why` expects.
fn difference(value: &Value, path: &Path, why: &str) -> String {
    let why = why.replace('`', "");
    let is_about_a_key = why.starts_with("unknown field");
    let what = match (why.split_once("expected "), at(value, path)) {
        (Some((_, expected)), Some(found)) if !is_about_a_key => {
            format!(
                " is {}, expected {}",
                shown(found),
                short(expected, EXPECTED_MAX)
            )
        }
        _ => format!(": {}", short(&why, EXPECTED_MAX)),
    };
    match path.to_string().as_str() {
        "." => format!("the answer{what}"),
        place => format!("`{}`{what}", short(place, EXPECTED_MAX)),
    }
}

/// Returns the value at the end of a path.
fn at<'v>(value: &'v Value, path: &Path) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get(index),
        Segment::Map { key } => value.get(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// Returns a value as written, or only its kind if it is an object or a list.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a mapping".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            short(&value.to_string(), FOUND_MAX)
        }
    }
}

/// Returns at most `characters_max` characters of a text, on one line.
fn short(text: &str, characters_max: usize) -> String {
    line::cut(&line::escaped(text), characters_max)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a feedback that has only this field and returns the error's text.
    fn of_feedback(field: &str, given: Value) -> String {
        let mut response = json!({"type": "review_feedback", "threads": {}, "findings": []});
        response[field] = given;
        let read = StructuredResponse::read(&json!({"response": response}));
        read.map_or_else(|error| error.to_string(), |read| format!("{read:?}"))
    }

    #[test]
    fn what_is_no_response_names_its_first_wrong_field() {
        let long = "p".repeat(1_000);
        for (field, given, told) in [
            (
                "findings",
                json!([{"severity": "P3"}, {"severity": "P9"}]),
                r#"`findings[1].severity` is "P9", expected one of P0, P1, P2, P3"#,
            ),
            (
                "findings",
                json!([{"title": "a"}]),
                "`findings[0]`: missing field severity",
            ),
            (
                "findings",
                json!([{"severity": "P1", "lines": 40}]),
                "`findings[0].lines` is 40, expected a string",
            ),
            (
                "findings",
                json!({"severity": "P1"}),
                "`findings` is a mapping, expected a sequence",
            ),
            (
                "findings",
                json!([{"severity": long}]),
                &format!(
                    r#"`findings[0].severity` is "{}…, expected one of P0, P1, P2, P3"#,
                    &long[..FOUND_MAX - 1]
                ),
            ),
            (
                "findings",
                json!([{"severity": "P1", "line": 4}]),
                "`findings[0].line`: unknown field line, expected one of severity, blocking, title, file, lines, category, \
                 evidence, recommendation, introduced_by",
            ),
            (
                "threads",
                json!({"F-1-001": {"action": "drop"}}),
                r#"`threads.F-1-001.action` is "drop", expected resolve, veto, escalate, reply or defer"#,
            ),
            (
                "type",
                json!("approve\n"),
                r#"`type` is "approve\n", expected review_feedback or review_lgtm"#,
            ),
        ] {
            assert_eq!(of_feedback(field, given.clone()), told, "{field}: {given}");
        }
        for (root, told) in [
            (json!({}), "the answer: missing field response"),
            (
                json!({"response": "PASS"}),
                r#"`response` is "PASS", expected a map"#,
            ),
            (
                json!({"response": {"findings": []}}),
                "`type` is missing, expected review_feedback or review_lgtm",
            ),
        ] {
            let error = StructuredResponse::read(&root).expect_err("no response");
            assert_eq!(error.to_string(), told, "{root}");
        }
    }
}
