//! One review: the fold of its records, and what follows from it: the side that moves next, its deadline, and the legal
//! messages.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use message_schema::envelope::Priority;
use message_schema::id::{AgentName, CommitSha, FindingId, MessageId};
use message_schema::limit::Rounds;
use message_schema::spend::Spend;
use serde::{Deserialize, Serialize};

use pair_machine::RunState;
use review_words::deadline::Deadline;
use review_words::failure::FailedStart;
use review_words::key::{ReviewKey, TaskId};
use review_words::phase::{CloseReason, Closer, EscalationReason, Phase, Side};
use review_words::reading::ReadingState;
use review_words::thread::{RoundKind, Thread};

/// The most reviews of a fix pull request over its life, over all its reviewers: a fix that five reviews did not settle
/// is escalated to a person.
pub const FIX_REVIEWS_MAX: u32 = 5;

/// The most times people may give a pull request back to the agents within 24 hours.
pub const GIVEN_BACK_PER_DAY: usize = 3;

/// The most generations of a pull request over its life, over all its reviewers.
pub const GENERATIONS_MAX: u8 = 5;

/// One review over the life of its pull request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Review {
    /// The running generation, from 1.
    pub generation: u8,
    /// The rounds this generation may take, fixed by its first request.
    pub rounds: Rounds,
    /// Rounds a person has added to this generation.
    pub granted: u8,
    /// The first round of this generation; the count of rounds continues over the pull request's life.
    pub first_round: u32,
    /// The round last opened.
    pub round: u32,
    /// The phase of the review.
    pub phase: Phase,
    /// The start of the phase.
    pub since: DateTime<Utc>,
    /// The side that ended the last invocation; `None` while it is open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closed_by: Option<Closer>,
    /// Every finding ever raised here, by its id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub threads: BTreeMap<FindingId, Thread>,
    /// The last commit the author reported, within this generation and since it last declared a head.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// The urgency of the round's request; the author's time depends on it too.
    pub priority: Priority,
    /// The number of rounds opened by a request, over the pull request's life.
    pub asked: u32,
    /// The times at which people gave the review back to the agents.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub given_back: Vec<DateTime<Utc>>,
    /// The task this pull request claims, if it is a fix pull request. Until it is closed without a merge
    /// no other pull request can claim the task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fixes: Option<TaskId>,
    /// The reviewer that replaced the agent it was opened with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reassigned_to: Option<AgentName>,
    /// The last failed start of the reviewer's command in this round.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<FailedStart>,
    /// The spend of the reviewers' commands in this generation.
    #[serde(skip_serializing_if = "Spend::is_nothing", default)]
    pub spent: Spend,
    /// The requests before the open one: answered, replaced, or ended by the daemon.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub past_requests: Vec<MessageId>,
    /// The change that the round's reviewer must read, and the evidence that it was read.
    #[serde(default)]
    pub reading: ReadingState,
}

impl Review {
    /// True if no other author may ask for a review under its pull request's number. A person gives the number up by
    /// cancelling the review or closing the pull request, once nothing blocks.
    pub fn holds_number(&self) -> bool {
        let is_given_up = matches!(
            self.phase,
            Phase::Escalated(EscalationReason::Cancelled) | Phase::Closed(CloseReason::NotMerged)
        );
        !is_given_up || self.threads.values().any(Thread::blocks_approval)
    }

    /// Returns the last round of this generation.
    pub fn last_round(&self) -> u32 {
        self.first_round + u32::from(self.rounds.get()) + u32::from(self.granted) - 1
    }

    /// True if the open round takes no reply and no round follows it: it is the last of its generation, or of all
    /// reviews a fix pull request may have.
    pub fn is_last_round(&self) -> bool {
        self.is_last(self.round) || self.phase.invocation().is_some_and(|open| open.last_review)
    }

    /// Returns whether the open round is the last, by the same rule as [`Self::is_last_round`].
    pub fn round_kind(&self) -> RoundKind {
        if self.is_last_round() {
            RoundKind::Last
        } else {
            RoundKind::Earlier
        }
    }

    /// True if the round is this generation's last.
    pub fn is_last(&self, round: u32) -> bool {
        round >= self.last_round()
    }

    /// Returns the round within this generation, from 1, for `round n of m`.
    pub fn round_of_generation(&self) -> u32 {
        self.round + 1 - self.first_round
    }

    /// Returns the thread that a packet names by this id: its own id, or one under which it was raised again.
    pub(crate) fn thread_named(&self, id: &FindingId) -> Option<&FindingId> {
        let of = |known: &FindingId, thread: &Thread| known == id || thread.aliases.contains(id);
        let mut threads = self.threads.iter();
        threads
            .find(|(known, thread)| of(known, thread))
            .map(|(known, _)| known)
    }

    /// Returns the threads that need an action.
    pub fn open_threads(&self) -> impl Iterator<Item = (&FindingId, &Thread)> {
        self.threads.iter().filter(|(_, thread)| thread.is_open())
    }

    /// True if nothing blocking is open, but a person holds a blocking thread.
    pub(crate) fn is_left_to_a_person(&self) -> bool {
        self.open_blockers() == 0 && self.held_blockers().next().is_some()
    }

    /// Returns the blocking threads that a person holds. No agent can move them, so no lgtm passes while there is one.
    pub fn held_blockers(&self) -> impl Iterator<Item = (&FindingId, &Thread)> {
        let threads = self.threads.iter();
        threads.filter(|(_, thread)| thread.blocking && thread.is_held())
    }

    /// Returns the number of threads that block and are still open.
    pub fn open_blockers(&self) -> usize {
        self.open_threads()
            .filter(|(_, thread)| thread.blocking)
            .count()
    }

    /// Returns the current reviewer: the agent it was opened with, or the one that replaced it.
    pub fn reviewer<'a>(&'a self, key: &'a ReviewKey) -> &'a AgentName {
        self.reassigned_to.as_ref().unwrap_or(&key.reviewer)
    }

    /// True if the message goes between its author and its current reviewer.
    pub(crate) fn is_between(
        &self,
        key: &ReviewKey,
        author: &AgentName,
        reviewer: &AgentName,
    ) -> bool {
        key.author == *author && self.reviewer(key) == reviewer
    }

    /// Returns whether a blocking thread is open, and whether one is with a person, once these threads have changed.
    pub(crate) fn blockers_after(&self, changed: &BTreeMap<FindingId, Thread>) -> (bool, bool) {
        let same = self.threads.iter();
        let same = same.filter(|(id, _)| !changed.contains_key(*id));
        let (mut open, mut held) = (false, false);
        for (_, thread) in same.chain(changed).filter(|(_, thread)| thread.blocking) {
            open |= thread.is_open();
            held |= thread.is_held();
        }
        (open, held)
    }

    /// Returns the side that moves next.
    pub fn mover(&self) -> Side {
        self.phase.mover()
    }

    /// True if no agent or person has to act: it was closed, or approved for the head of its pull request, no finding
    /// waits for a person or in a queue, and it fixes no task.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_settled = match &self.phase {
            Phase::Closed(_) => true,
            Phase::Approved(approval) => !approval.stale,
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. }
            | Phase::Escalated(_) => false,
        };
        is_settled
            && self.fixes.is_none()
            && !self
                .threads
                .values()
                .any(|thread| thread.is_left_to_person() || thread.is_held() || thread.is_queued())
    }

    /// Returns the agent that moves next, if an agent does.
    pub fn mover_of<'a>(&'a self, key: &'a ReviewKey) -> Option<&'a AgentName> {
        match self.mover() {
            Side::Author => Some(&key.author),
            Side::Reviewer => Some(self.reviewer(key)),
            Side::Person | Side::Nobody => None,
        }
    }

    /// Returns the attempts left to the reviewer in the open invocation; `None` when none is open.
    pub fn attempts_left(&self) -> Option<u8> {
        self.phase
            .invocation()
            .map(|invocation| invocation.attempts_left)
    }

    /// Returns the next deadline and its kind; `None` in a final phase.
    pub fn deadline(&self) -> Option<(DateTime<Utc>, Deadline)> {
        match &self.phase {
            Phase::Awaiting { due } | Phase::Fixing { due } | Phase::Addressed { due, .. } => {
                Some((*due, Deadline::Author))
            }
            Phase::Reviewing(invocation) => Some(match invocation.taken_at {
                None => (invocation.pick_up_by, Deadline::PickUp),
                Some(taken) => {
                    let runtime = TimeDelta::seconds(invocation.runtime_s.get().into());
                    (taken + runtime, Deadline::Runtime)
                }
            }),
            Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => None,
        }
    }

    /// Returns the running generation as a run.
    pub fn run(&self) -> RunState {
        self.phase.run()
    }

    /// Returns the reason the run failed, if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.phase {
            Phase::Escalated(reason) => Some(format!("needs a person: {reason}")),
            Phase::Closed(reason) => Some(format!("closed: {}", reason.word())),
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. }
            | Phase::Approved(_) => None,
        }
    }
}
