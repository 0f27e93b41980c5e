//! A failed start of the reviewer's command, as the ledger keeps it.

use chrono::{DateTime, Utc};
use message_schema::id::AgentName;
use serde::{Deserialize, Serialize};

/// The failure of a started command, with its cause.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunFailure {
    /// The kind of failure, which decides whether the command is started again.
    #[serde(default)]
    pub cause: FailureCause,
    /// The failure on one line, with the program's last output.
    pub why: String,
    /// The time from which the reviewer can be asked again, if its program or its budget says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after: Option<DateTime<Utc>>,
    /// The name of the run's folder in `.settled/runs`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<String>,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// Unknown: records of earlier versions, which name a failure only if the command was not started again.
    #[default]
    Untold,
    /// The reviewer itself gave up.
    GaveUp,
    /// The command ended with a code or by a signal, or the daemon ended it.
    Crashed,
    /// Its answer cannot be read, or was refused.
    Unreadable,
    /// Its program cannot be started.
    Missing,
    /// Its program is not logged in (401).
    NotLoggedIn,
    /// Its quota is used up (429).
    Quota,
    /// A budget of the workspace is used up for the day.
    ProviderUnavailable,
}

impl FailureCause {
    /// Returns the word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Untold => "untold",
            Self::GaveUp => "gave_up",
            Self::Crashed => "crashed",
            Self::Unreadable => "unreadable",
            Self::Missing => "missing",
            Self::NotLoggedIn => "not_logged_in",
            Self::Quota => "quota",
            Self::ProviderUnavailable => "provider_unavailable",
        }
    }
}

impl RunFailure {
    /// Returns the run's folder, relative to the workspace.
    pub fn folder(&self) -> Option<String> {
        self.run.as_ref().map(|run| format!(".settled/runs/{run}"))
    }

    /// Returns the failure and the place of its files, as people read it.
    pub fn sentence(&self) -> String {
        match self.folder() {
            Some(folder) => format!("{} ({folder})", self.why),
            None => self.why.clone(),
        }
    }
}

/// The last failure in the open round of a review.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedStart {
    /// The reviewer whose command failed.
    pub reviewer: AgentName,
    /// The time of the failure.
    pub at: DateTime<Utc>,
    /// The failure.
    #[serde(flatten)]
    pub failure: RunFailure,
}
