//! The phases of a review, and the side that moves next in each.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use message_schema::body::Escalation;
use message_schema::envelope::Priority;
use message_schema::id::{AgentName, CommitSha, FindingId, MessageId, RepoPath};
use message_schema::limit::{RuntimeBudget, TurnBudget};
use pair_machine::RunState;
use serde::{Deserialize, Serialize};

use crate::alert::Alert;
use crate::is_default;
use crate::reading::ApprovalEvidence;
use crate::refusal::Clause;
use crate::thread::RoundKind;

/// The most responses of a round that may be refused for their content.
pub const ATTEMPTS: u8 = 3;

/// The most times an author may replace a request in one round.
pub const SUPERSESSIONS: u8 = 2;

/// The phase of a review; each carries only what is true in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A person opened the review again; the author owes the request of the new generation.
    Awaiting {
        /// The end of the author's time.
        due: DateTime<Utc>,
    },
    /// A request is open; the reviewer owes one feedback or lgtm.
    Reviewing(Invocation),
    /// The reviewer gave feedback; the author moves.
    Fixing {
        /// The end of the author's time.
        due: DateTime<Utc>,
    },
    /// The author reported fixes and owes the next request.
    Addressed {
        /// The author's report.
        report: Addressed,
        /// The end of the author's time: the same instant as before the report.
        due: DateTime<Utc>,
    },
    /// The review ended in approval.
    Approved(Approval),
    /// The review ended with a person.
    Escalated(EscalationReason),
    /// The review ended with its pull request, or as a comment.
    Closed(CloseReason),
}

/// One reviewer invocation: the open request and its remaining budget.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Invocation {
    /// The request that opened it.
    pub request: MessageId,
    /// The urgency of the answer.
    pub priority: Priority,
    /// Turns the reviewer may take in this round.
    pub turns: TurnBudget,
    /// Turns that the reviewer's runner has counted so far: 0 to `turns`.
    #[serde(skip_serializing_if = "is_default", default)]
    pub turns_taken: u16,
    /// Seconds the reviewer may run once it has taken the request.
    pub runtime_s: RuntimeBudget,
    /// The time by which the reviewer must have taken the request.
    pub pick_up_by: DateTime<Utc>,
    /// The time the reviewer took it; its runtime budget starts then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub taken_at: Option<DateTime<Utc>>,
    /// Responses whose content may still be refused before a person decides: 3 to 1.
    pub attempts_left: u8,
    /// The times the author may still replace the request in this round: 2 to 0.
    pub supersessions_left: u8,
    /// The times the daemon has started the reviewer's command in this round: 0 to 2, and one more for each replacement
    /// of the request.
    #[serde(skip_serializing_if = "is_default", default)]
    pub starts: u8,
    /// The last of these starts that is known to have failed, from 1; 0 if none is.
    #[serde(skip_serializing_if = "is_default", default)]
    pub failed_start: u8,
    /// The reviewers to ask, in order, if this reviewer's command fails for good; `None` if the config names no
    /// fallback, not even a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_reviewers: Option<Vec<AgentName>>,
    /// The commit the round is about: the request's `declared_head`, else the last commit its author reported.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
    /// The heads that events reported after the request named the round's head, the newest last.
    #[serde(skip_serializing_if = "Heads::is_empty", default)]
    pub newer_heads: Heads,
    /// The alerts about the request.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alerts: Vec<Alert>,
    /// Commands the request wants recorded as passing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub validation_commands: Vec<String>,
    /// The author's report before this request; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub addressed: Option<Addressed>,
    /// True if the request comes from a verify run of a fixing agent, whose findings are never handed off.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub verify_run: bool,
    /// True if it is the last review a fix pull request may have.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub last_review: bool,
}

/// The most times the daemon starts a reviewer's command in a round. Each replacement of the request allows for one
/// more.
pub const STARTS_MAX: u8 = 2;

impl Invocation {
    /// Returns the starts left to the reviewer's command. A replacement raises them by one, and lowers the
    /// supersessions in the rank.
    pub fn starts_left(&self) -> u8 {
        let replaced = SUPERSESSIONS.saturating_sub(self.supersessions_left);
        (STARTS_MAX + replaced).saturating_sub(self.starts)
    }

    /// True if a response about this commit is about the round: the commit is its head or a newer one. A round without
    /// a head admits any commit.
    pub fn admits(&self, commit: &CommitSha) -> bool {
        self.head
            .as_ref()
            .is_none_or(|head| head.same_commit(commit))
            || self.newer_heads.contains(commit)
    }

    /// Returns the turns left in the round's budget.
    pub fn turns_left(&self) -> u16 {
        self.turns.get().saturating_sub(self.turns_taken)
    }
}

/// The author's report about the feedback of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Addressed {
    /// The findings it named; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<FindingId>,
    /// The files it touched; empty means that it did not say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub touched_files: Vec<RepoPath>,
    /// The heads that events reported after the report, the newest last.
    #[serde(skip_serializing_if = "Heads::is_empty", default)]
    pub newer_heads: Heads,
}

/// The heads of a pull request from its events, the newest last; at most the last 16.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Heads(Vec<CommitSha>);

impl Heads {
    const MAX: usize = 16;

    /// True if there is no head.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the heads, the newest last.
    pub fn iter(&self) -> impl Iterator<Item = &CommitSha> {
        self.0.iter()
    }

    /// True if the commit is one of the heads.
    pub fn contains(&self, commit: &CommitSha) -> bool {
        self.iter().any(|head| head.same_commit(commit))
    }

    /// Returns the heads with a newer one added; beyond 16 the oldest is dropped.
    pub fn with(&self, head: &CommitSha) -> Self {
        let surplus = (self.0.len() + 1).saturating_sub(Self::MAX);
        let kept = self.iter().skip(surplus).chain([head]);
        Self(kept.cloned().collect())
    }
}

/// An approval and the commit it is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approval {
    /// The approved commit; `None` is an approval bound to no commit, which no gate check passes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// True if the reviewer says that the pull request may be merged now.
    pub merge_ready: bool,
    /// The time of the approval.
    pub at: DateTime<Utc>,
    /// True while the last known head of the pull request is another commit.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub stale: bool,
    /// True if no lgtm gave it, but a feedback on a fix pull request in which nothing blocks.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub by_rule: bool,
    /// The clauses of the gate it breaks; only the advisory profile permits any.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub broken: BTreeSet<Clause>,
    /// The evidence behind it; an approval by rule or by a person has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evidence: Option<Box<ApprovalEvidence>>,
    /// The person who approved, if a person did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by_person: Option<String>,
}

impl Approval {
    /// Returns a fresh approval of a commit, ready to merge.
    pub fn of(commit: Option<CommitSha>, at: DateTime<Utc>) -> Self {
        Self {
            commit,
            merge_ready: true,
            at,
            stale: false,
            by_rule: false,
            broken: BTreeSet::new(),
            evidence: None,
            by_person: None,
        }
    }

    /// True if `head`, the head of the pull request, is not the approved commit. False for an approval of
    /// no commit, which cannot be compared.
    pub fn is_outlived_by(&self, head: &CommitSha) -> bool {
        self.commit
            .as_ref()
            .is_some_and(|commit| !commit.same_commit(head))
    }
}

/// The reason a review ended without approval and without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// Its pull request was merged.
    Merged,
    /// Its pull request was closed without being merged.
    NotMerged,
    /// The last round of an advisory review ended in feedback.
    Commented,
}

impl CloseReason {
    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::NotMerged => "not_merged",
            Self::Commented => "commented",
        }
    }
}

/// The reason the daemon escalated a review to a person. A reviewer's text has its own variant, because the same words
/// from the daemon mean something else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// The last round is over and the gate did not pass.
    MaxRoundsExceeded,
    /// The reviewer's turns or seconds are spent.
    ReviewerBudgetExceeded,
    /// The reviewer did not take the request in time.
    ReviewerTimeout,
    /// The author did not move in time.
    AuthorTimeout,
    /// Three responses of one round were refused for their content.
    ProtocolViolation,
    /// Nothing blocking is open, but a person holds a blocking thread.
    BlockerHeld,
    /// The reviewer's command ended without a readable response, also after a restart.
    InvocationFailed,
    /// The daemon tried every reviewer of the list, and none can work.
    NoReviewer,
    /// The review's budget of tokens or money is used up.
    SpendExceeded,
    /// A person cancelled the reviewer.
    Cancelled,
    /// The reviewer's own words.
    Reviewer(String),
}

impl EscalationReason {
    /// Returns the reason for which feedback in this round escalates the review, if it does.
    pub fn of_feedback(escalation: Option<&Escalation>, round: RoundKind) -> Option<Self> {
        let is_last_round = round == RoundKind::Last;
        match escalation {
            Some(Escalation::ReviewerBudgetExceeded) => Some(Self::ReviewerBudgetExceeded),
            Some(Escalation::Other(text)) => Some(Self::Reviewer(text.clone())),
            // Only the daemon's own count ends the rounds.
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
            Self::ReviewerTimeout => f.write_str("reviewer_timeout"),
            Self::AuthorTimeout => f.write_str("author_timeout"),
            Self::ProtocolViolation => f.write_str("protocol_violation"),
            Self::BlockerHeld => f.write_str("blocker_held"),
            Self::InvocationFailed => f.write_str("invocation_failed"),
            Self::NoReviewer => f.write_str("no_reviewer"),
            Self::SpendExceeded => f.write_str("spend_exceeded"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Reviewer(text) => write!(f, "the reviewer says: {text}"),
        }
    }
}

/// The side that ended the last invocation; it decides the refusal of a late response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closer {
    /// The reviewer gave its one response.
    Reviewer,
    /// The daemon ended it.
    Daemon,
}

/// The side that moves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The author's.
    Author,
    /// The reviewer's.
    Reviewer,
    /// A person's; no agent can move the review.
    Person,
    /// Nobody's: the review is approved or closed.
    Nobody,
}

impl Phase {
    /// Returns the running generation as a run, which passes init and working within the record that opens it.
    pub fn run(&self) -> RunState {
        match self {
            Self::Awaiting { .. } | Self::Fixing { .. } | Self::Addressed { .. } => {
                RunState::Working
            }
            Self::Reviewing(_) => RunState::Reviewing,
            Self::Approved(_) => RunState::Complete,
            Self::Escalated(_) | Self::Closed(_) => RunState::Failed,
        }
    }

    /// The words for the phases, in the order in which a review passes through them.
    pub const WORDS: [&str; 7] = [
        "awaiting",
        "reviewing",
        "fixing",
        "addressed",
        "approved",
        "escalated",
        "closed",
    ];

    /// Returns the word for the phase on the screen and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Awaiting { .. } => "awaiting",
            Self::Reviewing(_) => "reviewing",
            Self::Fixing { .. } => "fixing",
            Self::Addressed { .. } => "addressed",
            Self::Approved(_) => "approved",
            Self::Escalated(_) => "escalated",
            Self::Closed(_) => "closed",
        }
    }

    /// True if only a person, or a new generation, can continue the review.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Approved(_) | Self::Escalated(_) | Self::Closed(_) => true,
            Self::Awaiting { .. }
            | Self::Reviewing(_)
            | Self::Fixing { .. }
            | Self::Addressed { .. } => false,
        }
    }

    /// Returns the side that moves next.
    pub fn mover(&self) -> Side {
        match self {
            Self::Reviewing(_) => Side::Reviewer,
            Self::Awaiting { .. } | Self::Fixing { .. } | Self::Addressed { .. } => Side::Author,
            Self::Approved(_) | Self::Closed(_) => Side::Nobody,
            Self::Escalated(_) => Side::Person,
        }
    }

    /// Returns the open request, while there is one.
    pub fn invocation(&self) -> Option<&Invocation> {
        match self {
            Self::Reviewing(invocation) => Some(invocation),
            Self::Awaiting { .. }
            | Self::Fixing { .. }
            | Self::Addressed { .. }
            | Self::Approved(_)
            | Self::Escalated(_)
            | Self::Closed(_) => None,
        }
    }

    /// Returns the heads that events reported after the author named the commit of this phase; `None` if no such commit
    /// waits for an answer.
    pub fn newer_heads(&self) -> Option<&Heads> {
        match self {
            Self::Reviewing(open) => Some(&open.newer_heads),
            Self::Addressed { report, .. } => Some(&report.newer_heads),
            Self::Awaiting { .. }
            | Self::Fixing { .. }
            | Self::Approved(_)
            | Self::Escalated(_)
            | Self::Closed(_) => None,
        }
    }

    /// Returns the approval, while there is one.
    pub fn approval(&self) -> Option<&Approval> {
        match self {
            Self::Approved(approval) => Some(approval),
            Self::Awaiting { .. }
            | Self::Reviewing(_)
            | Self::Fixing { .. }
            | Self::Addressed { .. }
            | Self::Escalated(_)
            | Self::Closed(_) => None,
        }
    }

    /// Returns the approved commit, if there is one.
    pub fn approved_commit(&self) -> Option<&CommitSha> {
        self.approval()?.commit.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_heads_the_newest_sixteen_are_known() {
        let head = |number: u32| -> CommitSha { format!("{number:07}").parse().expect("a commit") };
        let mut heads = Heads::default();
        assert!(heads.is_empty() && !heads.contains(&head(1)));
        for number in 1..=18 {
            heads = heads.with(&head(number));
        }
        let known: Vec<CommitSha> = heads.iter().cloned().collect();
        let expected: Vec<CommitSha> = (3..=18).map(head).collect();
        assert_eq!(known, expected);
        assert!(!heads.is_empty() && heads.contains(&head(3)) && !heads.contains(&head(2)));
    }

    #[test]
    fn the_last_round_ends_whatever_a_feedback_says_and_no_other_does() {
        use EscalationReason as Why;
        let words = |text: &str| Escalation::try_from(text.to_owned()).expect("words");
        let marker = || Why::Reviewer("max_rounds_exceeded".to_owned());
        for (said, in_between, last) in [
            (None, None, Some(Why::MaxRoundsExceeded)),
            (
                Some(words("max_rounds_exceeded")),
                Some(marker()),
                Some(Why::MaxRoundsExceeded),
            ),
            (
                Some(words("reviewer_budget_exceeded")),
                Some(Why::ReviewerBudgetExceeded),
                Some(Why::ReviewerBudgetExceeded),
            ),
            (
                Some(words("who?")),
                Some(Why::Reviewer("who?".to_owned())),
                Some(Why::Reviewer("who?".to_owned())),
            ),
        ] {
            let of = |round| EscalationReason::of_feedback(said.as_ref(), round);
            let found = (of(RoundKind::Earlier), of(RoundKind::Last));
            assert_eq!(found, (in_between, last), "{said:?}");
        }
        for reason in [
            CloseReason::Merged,
            CloseReason::NotMerged,
            CloseReason::Commented,
        ] {
            assert_eq!(serde_json::json!(reason), reason.word());
        }
    }
}
