//! Where a review stands, and whose move it is.

use chrono::{DateTime, Utc};
use message_schema::body::Escalation;
use message_schema::envelope::Priority;
use message_schema::id::{AgentName, CommitSha, FindingId, MessageId};
use message_schema::limit::{RuntimeBudget, TurnBudget};
use serde::{Deserialize, Serialize};

use crate::key::ReviewKey;

/// The phase of a review; each carries only what is true in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A request is open; the reviewer owes one feedback or lgtm.
    Reviewing(Invocation),
    /// Feedback was given; the author moves.
    Fixing,
    /// The author reported what was addressed and owes the next request.
    Addressed {
        /// The findings the author named; empty means all.
        findings: Vec<FindingId>,
    },
    /// The review ended in approval.
    Approved(Approval),
    /// The review ended with a person.
    Escalated(EscalationReason),
}

/// One reviewer invocation: the open request and what is left of its means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The request that opened it.
    pub request: MessageId,
    /// How soon the answer is wanted.
    pub priority: Priority,
    /// Turns the reviewer may take.
    pub turns: TurnBudget,
    /// Seconds the reviewer may run.
    pub runtime_s: RuntimeBudget,
    /// Responses that may still be refused for what they say before a person is asked: 3 to 1.
    pub attempts_left: u8,
    /// Commands the request wants recorded as passing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub validation_commands: Vec<String>,
    /// What the author said was addressed before this request; `None` when nothing was said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub addressed: Option<Vec<FindingId>>,
}

/// An approval and the commit it is bound to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The commit approved; `None` is an approval bound to no commit, which no gate check passes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// Whether the reviewer says it may be merged now.
    pub merge_ready: bool,
    /// When it was given.
    pub at: DateTime<Utc>,
}

/// Why a review was handed to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EscalationReason {
    /// The last round is over and the gate did not pass.
    MaxRoundsExceeded,
    /// The reviewer said its budget is spent.
    ReviewerBudgetExceeded,
    /// Three responses of one round were refused for what they said.
    ProtocolViolation,
    /// Nothing blocking is open, but something blocking was handed to a person.
    BlockerHeld,
    /// The reviewer's own words.
    Reviewer(String),
}

impl EscalationReason {
    /// The reason as it stands in the ledger and on the screen.
    pub fn as_str(&self) -> &str {
        match self {
            Self::MaxRoundsExceeded => "max_rounds_exceeded",
            Self::ReviewerBudgetExceeded => "reviewer_budget_exceeded",
            Self::ProtocolViolation => "protocol_violation",
            Self::BlockerHeld => "blocker_held",
            Self::Reviewer(text) => text,
        }
    }
}

impl From<String> for EscalationReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            "max_rounds_exceeded" => Self::MaxRoundsExceeded,
            "reviewer_budget_exceeded" => Self::ReviewerBudgetExceeded,
            "protocol_violation" => Self::ProtocolViolation,
            "blocker_held" => Self::BlockerHeld,
            _ => Self::Reviewer(text),
        }
    }
}

impl From<EscalationReason> for String {
    fn from(reason: EscalationReason) -> Self {
        reason.as_str().to_owned()
    }
}

impl From<&Escalation> for EscalationReason {
    fn from(escalation: &Escalation) -> Self {
        match escalation {
            Escalation::MaxRoundsExceeded => Self::MaxRoundsExceeded,
            Escalation::ReviewerBudgetExceeded => Self::ReviewerBudgetExceeded,
            Escalation::Other(text) => Self::Reviewer(text.clone()),
        }
    }
}

/// Who ended the last invocation: decides how a late response is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closer {
    /// The reviewer gave its one response.
    Reviewer,
    /// The daemon ended it.
    Daemon,
}

/// Whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The author's.
    Author,
    /// The reviewer's.
    Reviewer,
    /// A person's; no agent can move the review.
    Person,
    /// Nobody's: the review is approved.
    Nobody,
}

impl Phase {
    /// The word for the phase on the screen and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reviewing(_) => "reviewing",
            Self::Fixing => "fixing",
            Self::Addressed { .. } => "addressed",
            Self::Approved(_) => "approved",
            Self::Escalated(_) => "escalated",
        }
    }

    /// Whether only a person, or a new generation, can go on from here.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Approved(_) | Self::Escalated(_) => true,
            Self::Reviewing(_) | Self::Fixing | Self::Addressed { .. } => false,
        }
    }

    /// Whose move it is.
    pub fn mover(&self) -> Side {
        match self {
            Self::Reviewing(_) => Side::Reviewer,
            Self::Fixing | Self::Addressed { .. } => Side::Author,
            Self::Approved(_) => Side::Nobody,
            Self::Escalated(_) => Side::Person,
        }
    }

    /// The agent whose move it is, if it is an agent's.
    pub fn mover_of<'a>(&self, key: &'a ReviewKey) -> Option<&'a AgentName> {
        match self.mover() {
            Side::Author => Some(&key.author),
            Side::Reviewer => Some(&key.reviewer),
            Side::Person | Side::Nobody => None,
        }
    }
}
