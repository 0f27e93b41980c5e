//! One review as `status` and `watch` show it. Every time in it is an instant, so that the row changes only when
//! something happens; views compute the time that is left.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use review::{
    Deadline, FailedStart, Invocation, Phase, Review, ReviewKey, RunFailure, Side, State,
};
use serde::Serialize;

/// The state of a review. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewRow {
    /// The review's key, as people write it.
    pub review: String,
    /// Its repository, if its requests name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Its pull request.
    pub pr: String,
    /// Its author.
    pub author: String,
    /// Its present reviewer.
    pub reviewer: String,
    /// Its first reviewer, if another one reviews now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reassigned_from: Option<String>,
    /// The reviewers to ask next if the current one's command fails for good; absent where the config lists none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_reviewers: Option<Vec<String>>,
    /// Its phase.
    pub phase: &'static str,
    /// The state of its run, by the stored name: `working`, `reviewing`, `completed` or `failed`.
    pub run_state: &'static str,
    /// The reason why it is escalated or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The mover: an agent's name or `person`; absent if nobody has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover: Option<String>,
    /// Its generation, from 1.
    pub generation: u8,
    /// The round, counted over the life of the pull request.
    pub round: u32,
    /// The round within its generation.
    pub round_of_generation: u32,
    /// The rounds this generation may take.
    pub rounds: u8,
    /// The time since when it is in this phase.
    pub since: DateTime<Utc>,
    /// The number of open threads.
    pub open_threads: usize,
    /// The number of threads that block an approval.
    pub open_blockers: usize,
    /// The reviewer's attempts left in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_left: Option<u8>,
    /// The turns left of the open request's budget, and the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_left: Option<u16>,
    /// The turns used in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u16>,
    /// The time at which the reviewer took the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<DateTime<Utc>>,
    /// The running deadline: `pick_up`, `runtime` or `author`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<&'static str>,
    /// The time at which the daemon ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// The length of the wait from its start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<u64>,
    /// The commit that its approval is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_commit: Option<String>,
    /// True if the reviewer said that the pull request may be merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_ready: Option<bool>,
    /// True if the head of the pull request changed since the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// The last failed start of the reviewer's command in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRow>,
    /// The tokens that the reviewers' commands used in this generation, as their programs report it; absent if none
    /// did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The US dollars they used, as their programs report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<String>,
    /// The state of each thread, by its id.
    pub threads: BTreeMap<String, String>,
    /// The threads that prevent an approval: they block and are open or escalated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// The messages that may be sent next, with their senders.
    pub legal_next: Vec<String>,
}

/// A start of a reviewer's command that failed. Fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct FailedRow {
    /// The reviewer whose command failed.
    pub reviewer: String,
    /// The time of the failure.
    pub at: DateTime<Utc>,
    /// The kind of failure, such as `crashed` or `quota`.
    pub cause: &'static str,
    /// The failure on one line, with the last words of the program.
    pub why: String,
    /// The time from which the reviewer can be asked again, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<DateTime<Utc>>,
    /// The run's folder, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

impl FailedRow {
    /// Makes the row of a failed start.
    pub fn of(failed: &FailedStart) -> Self {
        let RunFailure {
            cause,
            why,
            retry_after,
            ..
        } = &failed.failure;
        Self {
            reviewer: failed.reviewer.to_string(),
            at: failed.at,
            cause: cause.word(),
            why: why.clone(),
            retry_after: *retry_after,
            folder: failed.failure.folder(),
        }
    }
}

impl ReviewRow {
    /// Makes the row of a review.
    pub fn of(state: &State, key: &ReviewKey, review: &Review) -> Self {
        let approval = review.phase.approval();
        let (open, deadline) = (review.phase.invocation(), review.deadline());
        let mover = match review.mover() {
            Side::Person => Some("person".to_owned()),
            Side::Author | Side::Reviewer | Side::Nobody => {
                review.mover_of(key).map(ToString::to_string)
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
            reviewer: review.reviewer(key).to_string(),
            reassigned_from: review
                .reassigned_to
                .as_ref()
                .map(|_| key.reviewer.to_string()),
            next_reviewers: open
                .and_then(|open| open.next_reviewers.as_ref())
                .map(|next| next.iter().map(ToString::to_string).collect()),
            phase: review.phase.word(),
            run_state: review.run().stored(),
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
            failed: review.failed.as_ref().map(FailedRow::of),
            tokens: Some(review.spent.tokens).filter(|tokens| *tokens > 0),
            cost_usd: Some(review.spent.micro_usd)
                .filter(|micro| *micro > 0)
                .map(message_schema::spend::usd),
            threads: review
                .threads
                .iter()
                .map(|(id, thread)| (id.to_string(), thread.state.word().to_owned()))
                .collect(),
            blockers: blockers.map(|(id, _)| id.to_string()).collect(),
            legal_next: state.legal_next(key, review),
        }
    }
}

/// The length of a wait, in seconds.
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

/// Returns the reason for a review's end, where the phase alone does not say it.
pub fn reason(phase: &Phase) -> Option<String> {
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
