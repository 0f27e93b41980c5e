//! Everything that happens to a review besides messages: time passes, a reviewer takes a request and counts its turns,
//! the pull request moves, a person decides.

use message_schema::id::{AgentName, CommitSha, FindingId, PrNumber, Repo, RepoPath};
use message_schema::line::escaped;
use serde::{Deserialize, Serialize};

use crate::deadline::Deadline;
use crate::failure::RunFailure;
use crate::host_change::HostChange;
use crate::key::ReviewKey;
use crate::reading::ObservedRun;
use crate::spend::RunSpend;
use pair_machine::{PairReport, PairStep};

/// One event, as its witness reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// One of the daemon's deadlines has passed.
    Deadline {
        /// The review.
        review: ReviewKey,
        /// The deadline.
        which: Deadline,
    },
    /// The reviewer took the open request: its runtime budget starts.
    Taken(Which),
    /// The reviewer completed turns.
    Turns {
        /// The review.
        #[serde(flatten)]
        which: Which,
        /// The number of new turns: 1 or above.
        count: u16,
    },
    /// The daemon is about to start the reviewer's command for the open request; the first start is a take.
    Started(Which),
    /// The reviewer's command ended without a response.
    Failed {
        /// The review.
        #[serde(flatten)]
        which: Which,
        /// The failure.
        #[serde(flatten)]
        failure: RunFailure,
    },
    /// A run of a reviewer's command used tokens or money.
    Spent(RunSpend),
    /// The daemon's runner saw the reviewer read files.
    Observed {
        /// The review.
        #[serde(flatten)]
        which: Which,
        /// The files, as paths of the repository.
        files: Vec<RepoPath>,
    },
    /// A validation command was run, by the daemon's runner or by `settled validate-run`.
    Ran {
        /// The review.
        #[serde(flatten)]
        which: Which,
        /// The run.
        run: ObservedRun,
    },
    /// The pull request changed.
    Pull(PullEvent),
    /// A person decided.
    Person(PersonsDecision),
    /// A pair of commands took a step.
    Pair(PairReport),
    /// A person accepted a ledger that a snapshot contradicts.
    LedgerAccepted(LedgerAccepted),
    /// The writer of an accepted message changed its file after it was judged.
    SentDiffers(SentDiffers),
    /// The hosts that share the ledger changed.
    Host(HostChange),
}

impl Event {
    /// Returns the person's decision, if it is one.
    pub fn decision(&self) -> Option<&PersonsDecision> {
        match self {
            Self::Person(decision) => Some(decision),
            Self::Deadline { .. }
            | Self::Taken(_)
            | Self::Turns { .. }
            | Self::Started(_)
            | Self::Failed { .. }
            | Self::Spent(_)
            | Self::Observed { .. }
            | Self::Ran { .. }
            | Self::Pull(_)
            | Self::Pair(_)
            | Self::LedgerAccepted(_)
            | Self::SentDiffers(_)
            | Self::Host(_) => None,
        }
    }

    /// Returns the review it is about, if it names one as people do.
    pub fn which(&self) -> Option<&Which> {
        match self {
            Self::Taken(which)
            | Self::Turns { which, .. }
            | Self::Started(which)
            | Self::Failed { which, .. }
            | Self::Observed { which, .. }
            | Self::Ran { which, .. } => Some(which),
            Self::Person(decision) => Some(&decision.which),
            Self::Deadline { .. }
            | Self::Spent(_)
            | Self::Pull(_)
            | Self::Pair(_)
            | Self::LedgerAccepted(_)
            | Self::SentDiffers(_)
            | Self::Host(_) => None,
        }
    }

    /// Returns the pull request it is about; `None` for a pair of commands, which can have many.
    pub fn pr(&self) -> Option<&PrNumber> {
        match self {
            Self::Deadline { review, .. } | Self::Spent(RunSpend { review, .. }) => {
                Some(&review.pr)
            }
            Self::Pull(pull) => Some(&pull.pr),
            Self::Taken(_)
            | Self::Turns { .. }
            | Self::Started(_)
            | Self::Failed { .. }
            | Self::Observed { .. }
            | Self::Ran { .. }
            | Self::Person(_)
            | Self::Pair(_)
            | Self::LedgerAccepted(_)
            | Self::SentDiffers(_)
            | Self::Host(_) => Some(&self.which()?.pr),
        }
    }

    /// Returns the review and the deadline that passed, if it is one.
    pub fn deadline(&self) -> Option<(&ReviewKey, Deadline)> {
        match self {
            Self::Deadline { review, which } => Some((review, *which)),
            Self::Taken(_)
            | Self::Turns { .. }
            | Self::Started(_)
            | Self::Failed { .. }
            | Self::Spent(_)
            | Self::Observed { .. }
            | Self::Ran { .. }
            | Self::Pull(_)
            | Self::Person(_)
            | Self::Pair(_)
            | Self::LedgerAccepted(_)
            | Self::SentDiffers(_)
            | Self::Host(_) => None,
        }
    }

    /// Every word that [`Self::word`] returns.
    pub const WORDS: [&str; 14] = [
        "deadline",
        "taken",
        "turns",
        "started",
        "failed",
        "spent",
        "observed",
        "ran",
        "pull",
        "decided",
        "pair",
        "ledger_accepted",
        "sent_differs",
        "host",
    ];

    /// Returns the word under which the ledger files it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Deadline { .. } => "deadline",
            Self::Taken(_) => "taken",
            Self::Turns { .. } => "turns",
            Self::Started(_) => "started",
            Self::Failed { .. } => "failed",
            Self::Spent(_) => "spent",
            Self::Observed { .. } => "observed",
            Self::Ran { .. } => "ran",
            Self::Pull(_) => "pull",
            Self::Person(_) => "decided",
            Self::Pair(_) => "pair",
            Self::LedgerAccepted(_) => "ledger_accepted",
            Self::SentDiffers(_) => "sent_differs",
            Self::Host(_) => "host",
        }
    }

    /// Describes the event in a few words.
    pub fn sentence(&self) -> String {
        match self {
            Self::Deadline { which, .. } => format!("deadline {}", which.word()),
            Self::Taken(which) => format!("request of pull request {} taken", which.pr),
            Self::Turns { which, count: 1 } => format!("1 turn on pull request {}", which.pr),
            Self::Turns { which, count } => format!("{count} turns on pull request {}", which.pr),
            Self::Started(which) => format!("reviewer of pull request {} started", which.pr),
            Self::Failed { which, failure } => format!(
                "reviewer of pull request {} failed: {}",
                which.pr,
                failure.sentence()
            ),
            Self::Spent(report) => format!(
                "the run of {} for pull request {} used {}",
                report.agent, report.review.pr, report.spend
            ),
            Self::Observed { which, files } => format!(
                "the runner saw the reviewer of pull request {} read {} files",
                which.pr,
                files.len()
            ),
            Self::Ran { which, run } => {
                let end = run.exit.map_or_else(
                    || "was ended".to_owned(),
                    |code| format!("exit code {code}"),
                );
                format!(
                    "`{}` run for pull request {} ({end})",
                    escaped(&run.command),
                    which.pr
                )
            }
            Self::Pull(event) => format!("pull request {} {}", event.pr, event.action.word()),
            Self::Person(decision) => {
                let thread = decision
                    .act
                    .thread()
                    .map_or_else(String::new, |id| format!(" {id}"));
                let PersonsDecision {
                    which,
                    by,
                    reason,
                    act,
                } = decision;
                format!(
                    "{by}: {}{thread} on pull request {} ({reason})",
                    act.word(),
                    which.pr
                )
            }
            Self::LedgerAccepted(LedgerAccepted { by, reason, head }) => {
                format!("{by}: accepted the rewritten ledger up to {head} ({reason})")
            }
            Self::SentDiffers(SentDiffers { agent, file, .. }) => {
                format!("{agent} changed sent/{file} after it was judged")
            }
            Self::Host(change) => change.sentence(),
            Self::Pair(PairReport { pair, what }) => match what {
                PairStep::Began(start) => format!("run {start} of the pair {pair} began"),
                PairStep::Ended { signal, run } => {
                    format!(
                        "run {} of the pair {pair} ended ({})",
                        run.start,
                        signal.word()
                    )
                }
                PairStep::NotStarted { why }
                | PairStep::Crashed { why, .. }
                | PairStep::Interrupted { why, .. } => {
                    format!("the pair {pair} {} ({why})", what.word())
                }
                PairStep::Opened(_) | PairStep::Started | PairStep::Resumed | PairStep::Dropped => {
                    format!("the pair {pair} {}", what.word())
                }
            },
        }
    }
}

/// A person's decision to continue from a ledger that contradicts a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LedgerAccepted {
    /// The person who decides.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// The digest of the last record that is accepted.
    pub head: String,
}

/// An accepted message whose copy in its sender's `sent/` no longer holds the judged bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentDiffers {
    /// Its sender.
    pub agent: AgentName,
    /// The displayed name of the copy in `sent/`.
    pub file: String,
    /// The number of the record that accepted it.
    pub seq: u64,
}

/// A review as people name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Which {
    /// The pull request.
    pub pr: PrNumber,
    /// The repository, if the number alone is ambiguous.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The reviewer, if the pull request has several: the current one, or the one the review was opened with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reviewer: Option<AgentName>,
}

impl Which {
    /// Returns the name of a known review.
    pub fn of(key: &ReviewKey) -> Self {
        Self {
            pr: key.pr.clone(),
            repo: key.repo.clone(),
            reviewer: Some(key.reviewer.clone()),
        }
    }

    /// Returns the name of a review by the reviewer that is at work.
    pub fn at_work(key: &ReviewKey, reviewer: &AgentName) -> Self {
        Self {
            reviewer: Some(reviewer.clone()),
            ..Self::of(key)
        }
    }

    /// True if it may mean this review: its reviewer goes by both names, the one it was opened with and the `current`.
    pub fn may_mean(&self, key: &ReviewKey, current: &AgentName) -> bool {
        let reviewer = self.reviewer.as_ref();
        key.pr.same_pr(&self.pr)
            && key.may_be_of(self.repo.as_ref())
            && reviewer.is_none_or(|name| *name == key.reviewer || name == current)
    }
}

/// A pull request event, as a forge or `settled pr` reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PullEvent {
    /// The repository, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repo: Option<Repo>,
    /// The pull request.
    pub pr: PrNumber,
    /// The event's kind.
    pub action: PullAction,
    /// The author's name at the forge.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author: Option<String>,
    /// Its head commit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<CommitSha>,
}

/// The kind of a pull request event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullAction {
    /// It was opened.
    Opened,
    /// It has new commits.
    Synchronize,
    /// It was opened again.
    Reopened,
    /// It was closed without being merged.
    Closed,
    /// It was merged.
    Merged,
}

impl PullAction {
    /// Returns the word on the screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Synchronize => "synchronize",
            Self::Reopened => "reopened",
            Self::Closed => "closed",
            Self::Merged => "merged",
        }
    }
}

/// A person's decision about one review, with the name and the reason it is recorded under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PersonsDecision {
    /// The review.
    #[serde(flatten)]
    pub which: Which,
    /// The person who decides.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// The decision.
    pub act: Act,
}

/// A decision that a person can make.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// The review continues in a new generation; threads that a person held are open again.
    Reopen,
    /// The reviewer is cancelled: the daemon ends its command, and the review is escalated.
    Cancel,
    /// The review is approved, including changes that no agent may approve.
    Approve {
        /// The commit; the round's head if it is left out.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        head: Option<CommitSha>,
    },
    /// The generation may take more rounds.
    Grant {
        /// The number of rounds: 1.
        rounds: u8,
    },
    /// A thread is resolved.
    Resolve(FindingId),
    /// A thread stays unfixed on purpose.
    WontFix(FindingId),
    /// A thread is handed off when the pull request is merged, whatever the mode.
    Queue(FindingId),
    /// A thread is reserved for people.
    Hold(FindingId),
    /// A thread goes back to the agents.
    Release(FindingId),
    /// A queued thread loses its place in the queue: the mode decides about its handoff again.
    Drop(FindingId),
}

impl Act {
    /// Returns the thread it is about, if it is about one.
    pub fn thread(&self) -> Option<&FindingId> {
        match self {
            Self::Reopen | Self::Cancel | Self::Approve { .. } | Self::Grant { .. } => None,
            Self::Resolve(id)
            | Self::WontFix(id)
            | Self::Queue(id)
            | Self::Hold(id)
            | Self::Release(id)
            | Self::Drop(id) => Some(id),
        }
    }

    /// Returns the word on the screen and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reopen => "reopen",
            Self::Cancel => "cancel",
            Self::Approve { .. } => "approve",
            Self::Grant { .. } => "grant",
            Self::Resolve(_) => "resolve",
            Self::WontFix(_) => "wont_fix",
            Self::Queue(_) => "queue",
            Self::Hold(_) => "hold",
            Self::Release(_) => "release",
            Self::Drop(_) => "drop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_called_on_the_screen_as_it_is_in_the_ledger() {
        let id = || "F-001".parse().expect("a finding");
        for (act, json) in [
            (Act::Reopen, "\"reopen\""),
            (Act::Cancel, "\"cancel\""),
            (Act::Resolve(id()), "{\"resolve\":"),
            (Act::WontFix(id()), "{\"wont_fix\":"),
            (Act::Queue(id()), "{\"queue\":"),
            (Act::Hold(id()), "{\"hold\":"),
            (Act::Release(id()), "{\"release\":"),
            (Act::Drop(id()), "{\"drop\":"),
        ] {
            let text = serde_json::to_string(&act).expect("plain values are JSON");
            assert!(text.starts_with(json), "{text}");
            assert!(json.contains(&format!("\"{}\"", act.word())), "{json}");
            assert_eq!(act.thread().is_some(), json.starts_with('{'), "{json}");
        }
    }
}
