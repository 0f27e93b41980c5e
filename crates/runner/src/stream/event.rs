//! The meaning of one line of a program's output, in whatever format the line is written.

use serde_json::Value;

use super::cause::{Cause, ProgramFailure};
use super::spend::SpendReport;

/// The meaning of one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StreamEvent {
    /// True if the line begins a new turn, which completes the one before.
    pub(super) begins_turn: bool,
    /// Words of the agent, and true if they continue the last ones.
    pub(super) words: Option<(String, bool)>,
    /// The end of the output, as success or failure.
    pub(super) end: Option<Result<(), ProgramFailure>>,
    /// The reason the program stopped the run itself, even if its end claims success.
    pub(super) stopped: Option<ProgramFailure>,
    /// The cause of a failure that may follow.
    pub(super) cause: Option<Cause>,
    /// Tool calls that read files: the id of the call, and the files.
    pub(super) asked: Vec<(String, Vec<String>)>,
    /// Tool calls that ended, each with true if it succeeded.
    pub(super) answered: Vec<(String, bool)>,
    /// The spend that the line reports.
    pub(super) spend: Option<SpendReport>,
}

pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
