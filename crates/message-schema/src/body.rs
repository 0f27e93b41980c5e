//! The bodies of the four review messages of OACP 0.5.4. Unknown fields pass unread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::envelope::{Timestamp, words};
use crate::id::{
    CommitSha, DiffDigest, FindingId, MessageId, NotAnId, PacketPath, PrNumber, Repo, RepoPath,
};
use crate::limit::{Rounds, RuntimeBudget, TurnBudget};
use crate::line;

/// The part of a message below its envelope.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Please review.
    Request(ReviewRequest),
    /// Findings.
    Feedback(ReviewFeedback),
    /// The findings were addressed.
    Addressed(ReviewAddressed),
    /// Approved.
    Lgtm(ReviewLgtm),
    /// The free text of the eight other types.
    Text(String),
}

/// Asks for a review; opens a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewRequest {
    /// The pull request.
    pub pr: PrNumber,
    /// The branch under review.
    pub branch: String,
    /// A summary of the change.
    pub diff_summary: String,
    /// The handoff this review follows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handoff_ref: Option<String>,
    /// Turns the reviewer may take; 8 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_turns_reviewer: Option<TurnBudget>,
    /// Seconds the reviewer may run; 600 when left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_runtime_s_reviewer: Option<RuntimeBudget>,
    /// The round this request would open; the daemon's count decides.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round: Option<u32>,
    /// The rounds the author asks for; clamped to the project's limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_rounds: Option<Rounds>,
    /// The repository, when a workspace serves several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The commit the change is based on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base_sha: Option<CommitSha>,
    /// The commit the author asks to have reviewed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub declared_head: Option<CommitSha>,
    /// The digest of the diff from `base_sha` to `declared_head`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff_digest: Option<DiffDigest>,
    /// The files that the diff changes: at most [`CHANGED_FILES_MAX`]; more go into a packet.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed_files: Vec<RepoPath>,
    /// The packet with the files that the diff changes, if they are too many for the body.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changed_files_packet: Option<PacketPath>,
    /// Commands whose results the gate wants recorded.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub validation_commands: Vec<String>,
    /// The cause of the review.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_trigger: Option<RunTrigger>,
    /// Outward actions the author expects; passed on unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub side_effects: Vec<String>,
    /// A person's instruction as the author reports it: recorded, grants nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub human_direction: Option<Value>,
    /// The open request this one replaces.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub supersedes_message_id: Option<MessageId>,
    /// The reason for replacing it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub supersede_reason: Option<String>,
}

words!(
    /// The cause of a review.
    RunTrigger {
        /// A change to be reviewed.
        Review = "review",
        /// A verify run of a fixing agent; its findings are never handed off.
        Verify = "verify",
    }
);

/// The most files that a request lists in its body.
pub const CHANGED_FILES_MAX: usize = 200;

/// The files of a change that a reviewer has read, as its message or its packet claims. A message proves none of its
/// claims: `docs/protocol.md`, section 11, says what each list is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// The digest of the diff that was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff_digest: Option<DiffDigest>,
    /// Files the reviewer says it has read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub declared: Vec<RepoPath>,
    /// Files whose diff `settled diff` printed for the reviewer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub served: Vec<RepoPath>,
    /// Files that the runner saw the reviewer read. The daemon knows these itself; a file it does not know counts as
    /// declared.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub observed: Vec<RepoPath>,
}

impl Examined {
    /// Returns every file it names, in any of the lists.
    pub fn files(&self) -> impl Iterator<Item = &RepoPath> {
        self.declared
            .iter()
            .chain(&self.served)
            .chain(&self.observed)
    }
}

/// Gives findings; ends the reviewer's invocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewFeedback {
    /// The packet with the findings.
    pub findings_packet: PacketPath,
    /// The round answered, from 1.
    pub round: u32,
    /// The number of findings in the packet that block.
    pub blocking_count: u32,
    /// The reviewer's statement that it cannot continue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub escalation: Option<Escalation>,
    /// The commit that was reviewed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validated_head: Option<CommitSha>,
    /// The files of the change that the reviewer has read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub examined: Option<Examined>,
    /// Outward actions the reviewer left undone; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub withheld_side_effects: Option<Value>,
    /// The cost of the review.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub telemetry: Option<Telemetry>,
}

/// Why a reviewer hands the review to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Escalation {
    /// The last round is over and something still blocks.
    MaxRoundsExceeded,
    /// The reviewer's turns or seconds are spent.
    ReviewerBudgetExceeded,
    /// The reviewer's own words: 1 to 200 characters, shown to people on one line.
    Other(String),
}

impl TryFrom<String> for Escalation {
    type Error = NotAnId;
    fn try_from(text: String) -> Result<Self, NotAnId> {
        match text.as_str() {
            "max_rounds_exceeded" => Ok(Self::MaxRoundsExceeded),
            "reviewer_budget_exceeded" => Ok(Self::ReviewerBudgetExceeded),
            other if (1..=200).contains(&other.chars().count()) && line::is_one_line(other) => {
                Ok(Self::Other(text))
            }
            _ => Err(NotAnId {
                expected: Self::EXPECTED,
            }),
        }
    }
}

impl From<Escalation> for String {
    fn from(escalation: Escalation) -> Self {
        escalation.as_str().to_owned()
    }
}

impl Escalation {
    /// The accepted values, in words for people.
    pub const EXPECTED: &str = "max_rounds_exceeded, reviewer_budget_exceeded or 1 to 200 characters on one line, without control or bidi characters";

    /// Returns the text as written in files.
    pub fn as_str(&self) -> &str {
        match self {
            Self::MaxRoundsExceeded => "max_rounds_exceeded",
            Self::ReviewerBudgetExceeded => "reviewer_budget_exceeded",
            Self::Other(text) => text,
        }
    }
}

/// Reports the author's answer to the feedback of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewAddressed {
    /// The commit with the fixes.
    pub commit_sha: CommitSha,
    /// A summary of the changes.
    pub changes_summary: String,
    /// The round whose feedback is addressed, from 1.
    pub round: u32,
    /// The files edited for it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub touched_files: Vec<RepoPath>,
    /// The findings that the author considers addressed; all if left out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub addressed_finding_ids: Vec<FindingId>,
    /// The head after the push, if it is not `commit_sha`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validated_head: Option<CommitSha>,
    /// A person's instruction as the author reports it: recorded, grants nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub human_direction: Option<Value>,
    /// The cost of the fixes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub telemetry: Option<Telemetry>,
}

/// Approves, if the gate agrees; ends the reviewer's invocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewLgtm {
    /// The reviewer's report on the quality gate.
    pub quality_gate_result: GateResult,
    /// True if the pull request may be merged now.
    pub merge_ready: bool,
    /// The deferred items, each with an owner.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nits: Vec<Nit>,
    /// The packet of this round, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub findings_packet: Option<PacketPath>,
    /// The round answered, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round: Option<u32>,
    /// The commit the approval is bound to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub validated_head: Option<CommitSha>,
    /// True if the reviewer does not vouch that the files it read are those of the round's head: without a
    /// `validated_head` the approval is bound to no commit.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unbound: bool,
    /// The files of the change that the reviewer has read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub examined: Option<Examined>,
    /// OACP's older list; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub follow_ups: Option<Value>,
    /// Outward actions the reviewer left undone; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub withheld_side_effects: Option<Value>,
    /// The cost of the review.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub telemetry: Option<Telemetry>,
}

words!(
    /// The quality gate as the reviewer reports it.
    GateResult {
        /// Nothing blocks.
        Pass = "pass",
        /// Something blocks.
        Fail = "fail",
    }
);

/// One deferred item of an approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nit {
    /// Unique within the message.
    pub nit_id: String,
    /// Its severity.
    pub tier: NitTier,
    /// The item in a sentence or two.
    pub summary: String,
    /// The agent or person that takes it.
    pub owner: String,
    /// The next step.
    pub next_action: String,
    /// The issue or other reference that tracks it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tracking_ref: Option<String>,
    /// The finding it defers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<FindingId>,
    /// The instant at which it expires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at_utc: Option<Timestamp>,
}

words!(
    /// The severities that may be deferred.
    NitTier {
        /// Reviewer's judgement.
        P2 = "P2",
        /// Never blocking.
        P3 = "P3",
    }
);

/// The cost of a response, as its sender reports it. Only the turns count; the other fields are free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Turns the sender says it took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u64>,
    /// Everything else, unchanged.
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}
