//! One review as `status` and `watch` tell it. Every time in it is an instant, so that it changes only when
//! something happens; how long still is worked out by whoever shows it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use review::{Approval, Deadline, Invocation, Phase, Review, ReviewKey, Side};
use serde::Serialize;

/// Where a review stands. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) review: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repo: Option<String>,
    pub(crate) pr: String,
    pub(crate) author: String,
    pub(crate) reviewer: String,
    pub(crate) phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Whose move it is: an agent, `person`, or nobody (absent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mover: Option<String>,
    pub(crate) generation: u8,
    pub(crate) round: u32,
    pub(crate) round_of_generation: u32,
    pub(crate) rounds: u8,
    pub(crate) since: DateTime<Utc>,
    pub(crate) open_threads: usize,
    pub(crate) open_blockers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts_left: Option<u8>,
    /// Turns left of the open request's budget, and how many it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turns_left: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turns: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken_at: Option<DateTime<Utc>>,
    /// Which deadline runs: `pick_up`, `runtime` or `author`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<&'static str>,
    /// When the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<DateTime<Utc>>,
    /// How long the wait is from its begin to its end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wait_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approved_commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merge_ready: Option<bool>,
    /// Whether the pull request has got another head since the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stale: Option<bool>,
    pub(crate) threads: BTreeMap<String, String>,
    /// The threads that stand in the way of approval: they block and are open or with a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) blockers: Vec<String>,
    pub(crate) legal_next: Vec<String>,
}

impl Row {
    /// Where a review stands.
    pub(crate) fn of(key: &ReviewKey, review: &Review) -> Self {
        let approval = approval(&review.phase);
        let (open, deadline) = (review.phase.invocation(), review.deadline());
        let mover = match review.mover() {
            Side::Person => Some("person".to_owned()),
            Side::Author | Side::Reviewer | Side::Nobody => {
                review.phase.mover_of(key).map(ToString::to_string)
            }
        };
        let blockers = review
            .threads
            .iter()
            .filter(|(_, thread)| thread.blocks_approval());
        Self {
            review: key.to_string(),
            repo: key.repo.as_ref().map(ToString::to_string),
            pr: key.pr.to_string(),
            author: key.author.to_string(),
            reviewer: key.reviewer.to_string(),
            phase: review.phase.word(),
            reason: reason(&review.phase),
            mover,
            generation: review.generation,
            round: review.round,
            round_of_generation: review.round_of_generation(),
            rounds: review.rounds.get() + review.granted,
            since: review.since,
            open_threads: review.open_threads().count(),
            open_blockers: review.open_blockers(),
            attempts_left: review.attempts_left(),
            turns_left: open.map(Invocation::turns_left),
            turns: open.map(|open| open.turns.get()),
            taken_at: open.and_then(|open| open.taken_at),
            waits_for: deadline.map(|(_, which)| which.word()),
            due_at: deadline.map(|(at, _)| at),
            wait_s: deadline.map(|(_, which)| length_s(review, which)),
            approved_commit: approval
                .and_then(|approval| approval.commit.as_ref())
                .map(ToString::to_string),
            merge_ready: approval.map(|approval| approval.merge_ready),
            stale: approval.map(|approval| approval.stale),
            threads: review
                .threads
                .iter()
                .map(|(id, thread)| (id.to_string(), thread.state.word().to_owned()))
                .collect(),
            blockers: blockers.map(|(id, _)| id.to_string()).collect(),
            legal_next: review.legal_next(key),
        }
    }
}

/// How long a wait is, in seconds.
fn length_s(review: &Review, which: Deadline) -> u64 {
    let patience = || {
        review::patience(review.priority)
            .num_seconds()
            .unsigned_abs()
    };
    match which {
        Deadline::PickUp | Deadline::Author => patience(),
        Deadline::Runtime => review
            .phase
            .invocation()
            .map_or_else(patience, |open| open.runtime_s.get().into()),
    }
}

/// The approval, while there is one.
pub(crate) fn approval(phase: &Phase) -> Option<&Approval> {
    match phase {
        Phase::Approved(approval) => Some(approval),
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. }
        | Phase::Escalated(_)
        | Phase::Closed(_) => None,
    }
}

/// Why a review ended as it did, where the phase alone does not say it.
pub(crate) fn reason(phase: &Phase) -> Option<String> {
    match phase {
        Phase::Escalated(reason) => Some(reason.to_string()),
        Phase::Closed(reason) => Some(reason.word().to_owned()),
        Phase::Approved(_)
        | Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Addressed { .. } => None,
    }
}
