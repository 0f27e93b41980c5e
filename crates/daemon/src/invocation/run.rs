//! A started command: its request, and whether that is still open.

use message_schema::id::{AgentName, MessageId};
use message_schema::spend::Spend;
use review::{FailureCause, ReviewKey, RunFailure, RunSpend, UsedUp, Which};
use runner::folder::Launch;
use serde::{Deserialize, Serialize};

use crate::mailroom::Mailroom;

/// The longest time that an agent's unjudged mail delays decisions that depend on it, in milliseconds: a little longer
/// than the longest patience with a file whose packet is missing.
pub(super) const MAIL_MS: u64 = 8_000;

/// A started command and its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The format version of this file: 1.
    pub schema_version: u32,
    /// Its id, which is the folder's name.
    pub id: String,
    /// The review.
    pub review: ReviewKey,
    /// The agent whose command runs, if it is not the reviewer with whom the review was opened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reassigned_to: Option<AgentName>,
    /// The request that the command answers.
    pub request: MessageId,
    /// The number of this start in its round, from 1.
    pub start: u8,
    /// The keeper's task.
    #[serde(flatten)]
    pub launch: Launch,
}

impl Run {
    pub(super) fn which(&self) -> Which {
        Which::at_work(&self.review, self.agent())
    }

    /// Reports this spend as the run's.
    pub(super) fn report(&self, spend: Spend) -> RunSpend {
        RunSpend {
            review: self.review.clone(),
            agent: self.agent().clone(),
            run: self.id.clone(),
            spend,
        }
    }

    /// The agent whose command runs.
    pub(crate) fn agent(&self) -> &AgentName {
        self.reassigned_to.as_ref().unwrap_or(&self.review.reviewer)
    }
}

/// True if the run's request is still open and its agent is still the reviewer.
pub(super) fn is_open(mailroom: &Mailroom, run: &Run) -> bool {
    mailroom
        .review(&run.review)
        .filter(|review| review.reviewer(&run.review) == run.agent())
        .and_then(|review| review.phase.invocation())
        .is_some_and(|open| open.request == run.request)
}

/// The failure of a start for which there is no budget left.
pub(super) fn unavailable(used_up: &UsedUp, run: Option<String>) -> RunFailure {
    RunFailure {
        cause: FailureCause::ProviderUnavailable,
        why: used_up.to_string(),
        retry_after: Some(used_up.until),
        run,
    }
}
