//! Where a review stands, and whose move it is.

use chrono::{DateTime, Utc};
use message_schema::body::Escalation;
use message_schema::envelope::Priority;
use message_schema::id::{AgentName, CommitSha, FindingId, MessageId, RepoPath};
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
        /// What the author said.
        report: Addressed,
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
    /// How often the author may still replace the request within this round: 2 to 0.
    pub supersessions_left: u8,
    /// Commands the request wants recorded as passing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub validation_commands: Vec<String>,
    /// What the author said was addressed before this request; `None` when nothing was said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub addressed: Option<Addressed>,
}

/// What the author reported about the feedback of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressed {
    /// The findings it named; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<FindingId>,
    /// The files it touched; empty means that it did not say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub touched_files: Vec<RepoPath>,
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

/// Why a review was handed to a person. What a reviewer wrote is kept apart from what the daemon
/// found: the same words do not mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// What a feedback in this round hands the review to a person for, if it does.
    pub fn of_feedback(escalation: Option<&Escalation>, is_last_round: bool) -> Option<Self> {
        match escalation {
            Some(Escalation::ReviewerBudgetExceeded) => Some(Self::ReviewerBudgetExceeded),
            Some(Escalation::Other(text)) => Some(Self::Reviewer(text.clone())),
            // Only the daemon's count says that the rounds are over.
            Some(marker @ Escalation::MaxRoundsExceeded) if !is_last_round => {
                Some(Self::Reviewer(marker.as_str().to_owned()))
            }
            Some(Escalation::MaxRoundsExceeded) => Some(Self::MaxRoundsExceeded),
            None => is_last_round.then_some(Self::MaxRoundsExceeded),
        }
    }
}

impl std::fmt::Display for EscalationReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxRoundsExceeded => f.write_str("max_rounds_exceeded"),
            Self::ReviewerBudgetExceeded => f.write_str("reviewer_budget_exceeded"),
            Self::ProtocolViolation => f.write_str("protocol_violation"),
            Self::BlockerHeld => f.write_str("blocker_held"),
            Self::Reviewer(text) => write!(f, "the reviewer says: {text}"),
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
