//! Reports about a reviewer at work: it took its request, completed turns, its command started, it read files or ran a
//! command.

use std::collections::BTreeSet;

use message_schema::Code;
use message_schema::id::RepoPath;
use review_words::event::Which;
use review_words::key::ReviewKey;
use review_words::phase::{EscalationReason, Invocation, Phase};
use review_words::reading::{ObservedRun, ReadingState, ReadingStep};
use review_words::record::{DaemonMessage, ReviewStep, Says};

use super::context::{Consequences, Declined, EventContext};
use crate::parts::gate::required_commands;
use crate::parts::review::Review;

/// Records a take: the runtime budget starts. A second take changes nothing.
pub(super) fn taken(
    context: &mut EventContext<'_>,
    which: &Which,
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    if open.taken_at.is_some() {
        return Ok(Consequences::default());
    }
    let phase = Phase::Reviewing(Invocation {
        taken_at: Some(context.now),
        ..open.clone()
    });
    Ok(Consequences {
        steps: vec![ReviewStep::to(key, review.round, phase)],
        ..Consequences::default()
    })
}

/// Counts completed turns. The first one is a take; the last one of the budget, without a response, ends the
/// invocation.
pub(super) fn turns(
    context: &mut EventContext<'_>,
    which: &Which,
    count: u16,
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    if count == 0 {
        return Err(Declined::new(
            Code::DecisionInvalid,
            "the number of turns is 0, expected at least 1",
        ));
    }
    let turns_taken = open.turns_taken.saturating_add(count).min(open.turns.get());
    let taken_at = open.taken_at.or(Some(context.now));
    let now = Invocation {
        turns_taken,
        taken_at,
        ..open.clone()
    };
    if now.turns_left() > 0 {
        return Ok(Consequences {
            steps: vec![ReviewStep::to(key, review.round, Phase::Reviewing(now))],
            ..Consequences::default()
        });
    }
    let says = Says::BudgetSpent {
        review: key.clone(),
        round: review.round,
    };
    let phase = Phase::Escalated(EscalationReason::ReviewerBudgetExceeded);
    Ok(Consequences {
        steps: vec![ReviewStep::to(key, review.round, phase)],
        messages: vec![context.message(&key.author, says)],
        ..Consequences::default()
    })
}

/// Records that the reviewer's command is about to start. The first start is a take; after the last one only a response
/// or a person can end the round.
pub(super) fn started(
    context: &mut EventContext<'_>,
    which: &Which,
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    if open.starts_left() == 0 {
        let why = format!(
            "the command of {} was started {} times in this round",
            review.reviewer(key),
            open.starts
        );
        return Err(Declined::new(Code::DecisionInvalid, why));
    }
    context.has_budget(review.reviewer(key))?;
    // The limit may have been lowered since the last run.
    if context.policy.budget.per_review.is_reached(review.spent) {
        let (step, messages) = given_up(context, (key, review), EscalationReason::SpendExceeded);
        return Ok(Consequences {
            steps: vec![step],
            messages: messages.into(),
            ..Consequences::default()
        });
    }
    let taken_at = open.taken_at.or(Some(context.now));
    let now = Invocation {
        starts: open.starts + 1,
        taken_at,
        ..open.clone()
    };
    Ok(Consequences {
        steps: vec![ReviewStep::to(key, review.round, Phase::Reviewing(now))],
        ..Consequences::default()
    })
}

/// Records the files of the change that the reviewer was seen reading for the first time.
pub(super) fn observed(
    context: &EventContext<'_>,
    which: &Which,
    files: &[RepoPath],
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    let ReadingState {
        change, observed, ..
    } = &review.reading;
    let new: BTreeSet<&RepoPath> = files
        .iter()
        .filter(|file| change.files.contains(file) && !observed.contains(*file))
        .collect();
    if new.is_empty() {
        return Ok(Consequences::default());
    }
    let files = new.into_iter().cloned().collect();
    Ok(noted(key, review, open, ReadingStep::Observed(files)))
}

/// Records the run of a validation command; declines a command that the gate does not require.
pub(super) fn ran(
    context: &EventContext<'_>,
    which: &Which,
    run: &ObservedRun,
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    if !required_commands(context.policy, open).contains(run.command.as_str()) {
        let why = "the command is not a validation command of the open request or of this project";
        return Err(Declined::new(Code::DecisionInvalid, why));
    }
    Ok(noted(key, review, open, ReadingStep::Ran(run.clone())))
}

fn noted(
    key: &ReviewKey,
    review: &Review,
    open: &Invocation,
    reading: ReadingStep,
) -> Consequences {
    let step = ReviewStep::to(key, review.round, Phase::Reviewing(open.clone()));
    Consequences {
        steps: vec![ReviewStep {
            reading: Some(Box::new(reading)),
            ..step
        }],
        ..Consequences::default()
    }
}

/// Escalates an open request that no reviewer is left to answer, and notifies both agents.
pub(super) fn given_up(
    context: &mut EventContext<'_>,
    (key, review): (&ReviewKey, &Review),
    reason: EscalationReason,
) -> (ReviewStep, [DaemonMessage; 2]) {
    let says = Says::Escalated {
        review: key.clone(),
        reason: reason.clone(),
    };
    let messages =
        [&key.author, review.reviewer(key)].map(|agent| context.message(agent, says.clone()));
    (
        ReviewStep::to(key, review.round, Phase::Escalated(reason)),
        messages,
    )
}

pub(super) fn open_request<'a>(
    context: &EventContext<'a>,
    which: &Which,
) -> Result<(&'a ReviewKey, &'a Review, &'a Invocation), Declined> {
    let (key, review) = context.find_at_work(which)?;
    match review.phase.invocation() {
        Some(open) => Ok((key, review, open)),
        None => Err(Declined::new(
            Code::NoOpenRequest,
            format!(
                "the review {key} is {}: no request waits for its reviewer",
                review.phase.word()
            ),
        )),
    }
}
