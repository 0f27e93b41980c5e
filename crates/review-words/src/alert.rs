//! Alerts: everything the daemon changed, limited or observed when it accepted a message. No alert refuses the message,
//! and both sides get it. Only this module defines the code and the sentence of each alert.

use message_schema::id::{AgentName, CommitSha, FindingId, MessageId, PrNumber, RepoPath};
use message_schema::limit::Rounds;
use message_schema::packet::Severity;
use serde::{Deserialize, Serialize};

use crate::key::TaskId;
use crate::refusal::Clause;

/// One change, limit or observation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alert {
    /// The request asked for more rounds than the project allows.
    RoundsLimited {
        /// The rounds it asked for.
        asked: Rounds,
        /// The rounds it got.
        allowed: Rounds,
    },
    /// `supersedes_message_id` names a request although none is open.
    NothingSuperseded {
        /// The request it names.
        named: MessageId,
        /// The round that the request opens.
        round: u32,
    },
    /// `run_trigger: verify` comes from an agent that runs no verify reviews.
    RunTriggerIgnored {
        /// The agent.
        author: AgentName,
    },
    /// `handoff_ref` claims no task.
    HandoffRefIgnored {
        /// The reason.
        why: NoClaim,
    },
    /// An open thread is resolved although the response does not name it.
    ResolvedBySilence {
        /// The thread.
        thread: FindingId,
    },
    /// A packet states a lower severity than the thread's.
    SeverityKept {
        /// The thread.
        thread: FindingId,
        /// Its severity.
        severity: Severity,
        /// The severity that the packet states.
        stated: Severity,
    },
    /// A packet says that a blocking thread does not block.
    BlockingKept {
        /// The thread.
        thread: FindingId,
    },
    /// A new finding came too late to block.
    FindingDeferred {
        /// The finding.
        thread: FindingId,
        /// The round it is new in.
        round: u32,
        /// The reason it does not block.
        why: Late,
    },
    /// The feedback is about a commit other than that of its round.
    OtherCommit {
        /// The commit it is about.
        validated: CommitSha,
        /// The round's head.
        head: CommitSha,
    },
    /// The approval is for a commit other than the head of the pull request.
    ApprovalStale {
        /// The approved commit.
        commit: CommitSha,
        /// The head of the pull request.
        head: CommitSha,
    },
    /// The approval is bound to no commit, so it passes no gate.
    ApprovalUnbound,
    /// The approval does not show that its reviewer read the change; this project does not require that.
    EvidenceMissing {
        /// The missing evidence, in a sentence.
        what: String,
    },
    /// The response calls files observed that the runner never saw read.
    NotObserved {
        /// The files.
        files: Vec<RepoPath>,
    },
    /// Only the reviewer says that these validation commands ran.
    CommandsDeclared {
        /// The commands.
        commands: Vec<String>,
    },
    /// No approval of this reviewer can pass the gate.
    ApprovalBarred {
        /// The clause.
        clause: Clause,
        /// The reason, in a sentence.
        how: String,
    },
    /// The response took more turns than its request allows.
    TurnsOverdrawn {
        /// The turns it took.
        declared: u64,
        /// The turns it had.
        allowed: u16,
    },
    /// The approval breaks a clause of the gate, which only advises here.
    GateAdvises {
        /// The clause.
        clause: Clause,
        /// The failed condition, in a sentence.
        how: String,
    },
}

/// The reason a new finding no longer blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// It is outside the files the author touched, and does not say what introduced it.
    OutsideTouched,
    /// In the files of a fix pull request's task only a P0 can still block.
    InTask,
}

/// The reason a request claims no task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoClaim {
    /// No such task was handed off to the author.
    NoTask {
        /// The task it names.
        named: String,
        /// The author.
        author: AgentName,
    },
    /// Another pull request claims it.
    Elsewhere {
        /// The pull request.
        pr: PrNumber,
        /// The task.
        task: TaskId,
    },
    /// The review claims another task.
    Another {
        /// That task.
        task: TaskId,
    },
    /// It is not the first request of its review.
    NotFirst,
}

impl std::fmt::Display for NoClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTask { named, author } => {
                write!(f, "no task `{named}` was handed off to `{author}`")
            }
            Self::Elsewhere { pr, task } => write!(
                f,
                "pull request {pr} claims `{task}`, until it is closed without a merge"
            ),
            Self::Another { task } => write!(f, "this review already claims `{task}`"),
            Self::NotFirst => f.write_str("only the first request of a review claims a task"),
        }
    }
}

impl Alert {
    /// Returns the word for programs: stable, in snake_case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RoundsLimited { .. } => "rounds_limited",
            Self::NothingSuperseded { .. } => "nothing_superseded",
            Self::RunTriggerIgnored { .. } => "run_trigger_ignored",
            Self::HandoffRefIgnored { .. } => "handoff_ref_ignored",
            Self::ResolvedBySilence { .. } => "resolved_by_silence",
            Self::SeverityKept { .. } => "severity_kept",
            Self::BlockingKept { .. } => "blocking_kept",
            Self::FindingDeferred { .. } => "finding_deferred",
            Self::OtherCommit { .. } => "other_commit",
            Self::ApprovalStale { .. } => "approval_stale",
            Self::ApprovalUnbound => "approval_unbound",
            Self::EvidenceMissing { .. } => "evidence_missing",
            Self::NotObserved { .. } => "not_observed",
            Self::CommandsDeclared { .. } => "commands_declared",
            Self::ApprovalBarred { .. } => "approval_barred",
            Self::TurnsOverdrawn { .. } => "turns_overdrawn",
            Self::GateAdvises { .. } => "gate_advises",
        }
    }

    /// Returns the thread it is about, if it is about one.
    pub fn thread(&self) -> Option<&FindingId> {
        match self {
            Self::ResolvedBySilence { thread }
            | Self::SeverityKept { thread, .. }
            | Self::BlockingKept { thread }
            | Self::FindingDeferred { thread, .. } => Some(thread),
            Self::RoundsLimited { .. }
            | Self::NothingSuperseded { .. }
            | Self::RunTriggerIgnored { .. }
            | Self::HandoffRefIgnored { .. }
            | Self::OtherCommit { .. }
            | Self::ApprovalStale { .. }
            | Self::ApprovalUnbound
            | Self::EvidenceMissing { .. }
            | Self::NotObserved { .. }
            | Self::CommandsDeclared { .. }
            | Self::ApprovalBarred { .. }
            | Self::TurnsOverdrawn { .. }
            | Self::GateAdvises { .. } => None,
        }
    }
}

/// Writes the sentence for people.
impl std::fmt::Display for Alert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RoundsLimited { asked, allowed } => write!(
                f,
                "max_rounds: the request asks for {asked}, this project allows {allowed}"
            ),
            Self::NothingSuperseded { named, round } => write!(
                f,
                "supersedes_message_id: `{named}` is not open; the request opens round {round}"
            ),
            Self::RunTriggerIgnored { author } => write!(
                f,
                "run_trigger: verify is ignored: settled.toml does not name `{author}` in handoff.verify_agents"
            ),
            Self::HandoffRefIgnored { why } => write!(f, "handoff_ref: {why}"),
            Self::ResolvedBySilence { thread } => write!(
                f,
                "`{thread}` is resolved by silence: the author reported fixes, and the response does not name it"
            ),
            Self::SeverityKept {
                thread,
                severity,
                stated,
            } => write!(
                f,
                "`{thread}` stays {severity}, not {stated}: a packet can raise a severity, never lower it"
            ),
            Self::BlockingKept { thread } => write!(
                f,
                "`{thread}` still blocks: a packet can make a finding block, but not stop it from blocking"
            ),
            Self::FindingDeferred { thread, round, why } => {
                let why = match why {
                    Late::OutsideTouched => {
                        "is in no file the author touched, and does not say what introduced it"
                    }
                    Late::InTask => {
                        "and in the files that a fix pull request repairs only a P0 can still block; the maintainer decides about it"
                    }
                };
                write!(f, "`{thread}` is deferred: it is new in round {round}, {why}")
            }
            Self::OtherCommit { validated, head } => write!(
                f,
                "the feedback is about `{validated}`, but the head of this round is `{head}`"
            ),
            Self::ApprovalStale { commit, head } => write!(
                f,
                "the approval of `{commit}` is stale: the head of the pull request is `{head}`"
            ),
            Self::ApprovalUnbound => f.write_str(
                "the approval names no commit and passes no gate check: nobody named the commit that was reviewed",
            ),
            Self::EvidenceMissing { what } => {
                write!(f, "the approval lacks evidence: {what}")
            }
            Self::NotObserved { files } => write!(
                f,
                "the runner did not see the reviewer read these files, so they count as declared: {}",
                named(files)
            ),
            Self::CommandsDeclared { commands } => write!(
                f,
                "only the reviewer says that these commands ran: {}",
                commands.join(", ")
            ),
            Self::ApprovalBarred { how, .. } => {
                write!(f, "no approval of this reviewer passes: {how}")
            }
            Self::TurnsOverdrawn { declared, allowed } => write!(
                f,
                "the response took {declared} turns, the request allows {allowed}: the review goes to a person"
            ),
            Self::GateAdvises { how, .. } => {
                write!(f, "the quality gate advises against it: {how}")
            }
        }
    }
}

/// The most files a sentence names.
const NAMED_MAX: usize = 5;

/// Names the first few of these files and counts the rest.
pub fn named(files: &[RepoPath]) -> String {
    let names: Vec<String> = files
        .iter()
        .take(NAMED_MAX)
        .map(|file| format!("`{file}`"))
        .collect();
    match files.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// One alert as agents and people read it. Later versions add fields and never change one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldAlert {
    /// The word for programs.
    pub code: String,
    /// The sentence for people.
    pub message: String,
    /// The thread it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
}

impl From<&Alert> for ToldAlert {
    fn from(alert: &Alert) -> Self {
        Self {
            code: alert.code().to_owned(),
            message: alert.to_string(),
            thread: alert.thread().map(ToString::to_string),
        }
    }
}
