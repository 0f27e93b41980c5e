//! The context of a check and its outcome.

use std::path::Path;

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use serde::Serialize;

/// The context of a check: the workspace, the agent that asks, and permission to fix things.
pub struct CheckContext<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The agent that asks; the daemon's user if there is none.
    pub agent: Option<&'a AgentName>,
    /// The agents that have mailboxes.
    pub agents: &'a [AgentName],
    /// The time of the check.
    pub now: DateTime<Utc>,
    /// True if a check may apply safe fixes.
    pub fixes: bool,
    /// The monitoring addresses of the brokers of a shared ledger; if empty, they are guessed.
    pub monitors: &'a [String],
    /// Spells one of our commands the way it has to be typed for this workspace.
    pub spell: &'a dyn Fn(&str) -> String,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct CheckResult {
    /// The name of the check.
    pub(super) check: &'static str,
    /// The state: `ok`, `note`, `fixed`, `wrong` or `failed`.
    pub state: CheckState,
    /// The result in one sentence.
    pub what: String,
    /// The fix: a command, or an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl CheckResult {
    /// The check's name.
    pub fn check(&self) -> &'static str {
        self.check
    }
}

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// Worth knowing; requires no action.
    Note,
    /// It was wrong, and the check fixed it.
    Fixed,
    /// Somebody has to act.
    Wrong,
    /// The check itself failed, so the state is unknown.
    Failed,
}

impl CheckState {
    /// The word on screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Fixed => "fixed",
            Self::Wrong => "wrong",
            Self::Failed => "failed",
        }
    }
}

/// One result, not yet labelled with its check.
pub(super) struct CheckOutcome {
    pub(super) state: CheckState,
    pub(super) what: String,
    pub(super) fix: Option<String>,
}

impl CheckOutcome {
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Self {
            state: CheckState::Ok,
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn note(what: impl Into<String>) -> Self {
        Self {
            state: CheckState::Note,
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn fixed(what: impl Into<String>) -> Self {
        Self {
            state: CheckState::Fixed,
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn wrong(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: CheckState::Wrong,
            what: what.into(),
            fix: Some(fix.into()),
        }
    }
}

/// The outcomes of a check, or the reason why it could not run.
pub(super) type Checked = Result<Vec<CheckOutcome>, String>;
