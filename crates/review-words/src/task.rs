//! The handoff of a merged pull request: the tasks dispatched to fixing agents, and why each other finding stayed.
//! `parts::handoff` decides which is which.

use message_schema::id::{AgentName, FindingId, PrNumber, Repo, RepoPath};
use serde::{Deserialize, Serialize};

use crate::is_default;
use crate::key::{ReviewKey, TaskId};
use crate::thread::Thread;

/// Findings of one file for one target: one packet, one message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The agent it goes to.
    pub target: AgentName,
    /// The repository of the merged pull request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The merged pull request.
    pub pr: PrNumber,
    /// The file all its findings are in; `None` for a finding without a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<RepoPath>,
    /// The findings to fix.
    pub findings: Vec<TaskFinding>,
}

/// A finding as it was handed off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFinding {
    /// The review it was raised in.
    pub review: ReviewKey,
    /// Its thread there.
    pub id: FindingId,
    /// The thread at the handoff.
    pub thread: Thread,
}

/// The reason a finding was not handed off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoHandoff {
    /// The pull request was closed without being merged.
    NotMerged,
    /// It was found in a verify run of a fixing agent.
    VerifyRun,
    /// It was handed off before, which happens only once.
    AlreadyHandedOff,
    /// The pull request fixes a task itself: a person decides about what it leaves.
    ClaimsTask,
    /// A bot opened the pull request.
    BotAuthor,
    /// Its severity is below the threshold.
    BelowThreshold,
    /// Its category is not listed.
    CategoryExcluded,
    /// Handoff is off.
    ModeOff,
    /// The author has a task of its own to finish first: a person decides about the rest.
    HoldsTask,
    /// No agent is named for it, or the named agent does not exist.
    NoTarget,
}

impl NoHandoff {
    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotMerged => "not_merged",
            Self::VerifyRun => "verify_run",
            Self::AlreadyHandedOff => "already_handed_off",
            Self::ClaimsTask => "claims_task",
            Self::BotAuthor => "bot_author",
            Self::BelowThreshold => "below_threshold",
            Self::CategoryExcluded => "category_excluded",
            Self::ModeOff => "mode_off",
            Self::HoldsTask => "holds_task",
            Self::NoTarget => "no_target",
        }
    }

    /// Returns the reason in words, after "not handed off:".
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotMerged => "the pull request was not merged",
            Self::VerifyRun => "it was found in a verify run",
            Self::AlreadyHandedOff => "it was handed off before",
            Self::ClaimsTask => "the pull request fixes a task itself; a person decides",
            Self::BotAuthor => "a bot opened the pull request",
            Self::BelowThreshold => "its severity is below `[handoff] threshold`",
            Self::CategoryExcluded => "its category is not in `[handoff] categories`",
            Self::ModeOff => "`[handoff] mode` is \"off\" in settled.toml",
            Self::HoldsTask => "its author has a task of its own to finish; a person decides",
            Self::NoTarget => "`[handoff]` names no agent for it, or none that exists",
        }
    }

    /// True if a person has to decide about the finding, because only the guard against chains of fixes kept it.
    pub fn is_left_to_person(self) -> bool {
        match self {
            Self::ClaimsTask | Self::HoldsTask => true,
            Self::NotMerged
            | Self::VerifyRun
            | Self::AlreadyHandedOff
            | Self::BotAuthor
            | Self::BelowThreshold
            | Self::CategoryExcluded
            | Self::ModeOff
            | Self::NoTarget => false,
        }
    }
}

/// A finding that was considered and not handed off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// Its review.
    pub review: ReviewKey,
    /// Its thread.
    pub id: FindingId,
    /// The reason.
    pub why: NoHandoff,
}

/// The tasks and the remaining findings of a pull request event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handoff {
    /// The tasks dispatched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks: Vec<Task>,
    /// The findings that stay, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left: Vec<Left>,
    /// The number of findings that a person had queued and whose pull request was not merged.
    #[serde(skip_serializing_if = "is_default", default)]
    pub dropped: usize,
}
