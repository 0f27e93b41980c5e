//! The only way the state changes: one record after the other, the same at start and while running.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use message_schema::envelope::MessageType;

use crate::phase::{Closer, EscalationReason, Phase};
use crate::record::{Accepted, AttemptSpent, Generation, Record, Step};
use crate::state::{Review, State};

/// Adds one record to the state. Cannot fail: whatever the ledger holds has been decided.
pub fn apply(state: &mut State, record: &Record, at: DateTime<Utc>) {
    match record {
        Record::Accepted(accepted) => accept(state, accepted, at),
        Record::Duplicate { .. } => {}
        Record::Refused { from, attempt, notice, .. } => {
            state.post.tell(from, notice, at);
            if let Some(spent) = attempt {
                spent.announced.iter().for_each(|id| state.post.wrote(id));
                spend(state, spent, at);
            }
        }
    }
}

fn accept(state: &mut State, accepted: &Accepted, at: DateTime<Utc>) {
    let Accepted { from, id, digest, to, kind, conversation, step, .. } = accepted;
    let review = step.as_ref().map(|step| step.review.clone());
    if let (Some(conversation), Some(key)) = (conversation, &review) {
        state.conversations.insert(conversation.clone(), key.clone());
    }
    state.post.accept(from, id, *digest, review);
    if !kind.is_review() {
        to.iter().for_each(|to| state.post.count(from, to, at));
    }
    if let Some(step) = step {
        take(state, step, *kind, at);
    }
}

/// A step of an unknown review that opens nothing cannot come from `decide` and is passed over.
fn take(state: &mut State, step: &Step, kind: MessageType, at: DateTime<Utc>) {
    let make = step.opens.map(|generation| opened(generation, step, at));
    state.reviews.change(&step.review, make, |review| {
        if let Some(generation) = step.opens {
            review.generation = generation.number;
            review.rounds = generation.rounds;
            review.first_round = step.round;
            review.commit = None;
            review.declared_head = None;
        }
        review.round = step.round;
        review.phase = step.phase.clone();
        review.since = at;
        review.threads.extend(step.threads.iter().map(|(id, thread)| (id.clone(), thread.clone())));
        if kind == MessageType::ReviewRequest {
            review.closed_by = None;
        } else if kind.is_terminal_response() {
            review.closed_by = Some(Closer::Reviewer);
        }
        if step.commit.is_some() {
            review.commit.clone_from(&step.commit);
        }
        if step.declared_head.is_some() {
            review.declared_head.clone_from(&step.declared_head);
        }
    });
}

/// A review as its first step makes it.
fn opened(generation: Generation, step: &Step, at: DateTime<Utc>) -> Review {
    Review {
        generation: generation.number,
        rounds: generation.rounds,
        first_round: step.round,
        round: step.round,
        phase: step.phase.clone(),
        since: at,
        closed_by: None,
        threads: BTreeMap::new(),
        commit: None,
        declared_head: None,
    }
}

fn spend(state: &mut State, spent: &AttemptSpent, at: DateTime<Utc>) {
    state.reviews.change(&spent.review, None, |review| {
        if spent.left == 0 {
            review.phase = Phase::Escalated(EscalationReason::ProtocolViolation);
            review.closed_by = Some(Closer::Daemon);
            review.since = at;
        } else if let Phase::Reviewing(invocation) = &mut review.phase {
            invocation.attempts_left = spent.left;
        }
    });
}
