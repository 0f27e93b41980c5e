//! The failure of a reviewer's command: it is started again, the next reviewer gets the request, or a person decides.
//! It is never a pass.

use message_schema::Code;
use message_schema::id::AgentName;
use review_words::event::Which;
use review_words::failure::FailureCause;
use review_words::key::ReviewKey;
use review_words::phase::{ATTEMPTS, EscalationReason, Invocation, Phase};
use review_words::record::{ReviewStep, Says};
use review_words::spend::DayBudget;

use super::context::{Consequences, Declined, EventContext};
use super::reviewer::{given_up, open_request};
use crate::parts::review::Review;

pub(super) fn failed(
    context: &mut EventContext<'_>,
    which: &Which,
    cause: FailureCause,
) -> Result<Consequences, Declined> {
    let (key, review, open) = open_request(context, which)?;
    let is_again = match cause {
        FailureCause::Untold | FailureCause::GaveUp => {
            return Ok(escalated(
                context,
                (key, review),
                EscalationReason::InvocationFailed,
            ));
        }
        FailureCause::Crashed | FailureCause::Unreadable => true,
        // Another start would fail in the same way; if no other reviewer can be asked, a retry costs nothing.
        FailureCause::Missing | FailureCause::NotLoggedIn | FailureCause::Quota => {
            open.next_reviewers.is_none()
        }
        // The next reviewer could not be started either, so the list is kept for another day.
        FailureCause::ProviderUnavailable => {
            open.next_reviewers.is_none() || is_over_for_all(context, review.reviewer(key))
        }
    };
    if is_again && open.starts_left() > 0 {
        return started_again(key, review, open);
    }
    match &open.next_reviewers {
        None => Ok(escalated(
            context,
            (key, review),
            EscalationReason::InvocationFailed,
        )),
        Some(next) => Ok(reassigned(context, (key, review, open), next)),
    }
}

/// True if the day's budget of all agents is used up, so no command starts before the next day.
fn is_over_for_all(context: &EventContext<'_>, reviewer: &AgentName) -> bool {
    let used_up = context
        .state
        .used_up(context.policy, reviewer, &[], context.now);
    used_up.is_some_and(|used_up| used_up.budget == DayBudget::PerDay)
}

/// Records the failure of the last start, once.
fn started_again(
    key: &ReviewKey,
    review: &Review,
    open: &Invocation,
) -> Result<Consequences, Declined> {
    if open.failed_start == open.starts {
        let why = "no command was started since the last that failed";
        return Err(Declined::new(Code::DecisionInvalid, why));
    }
    let phase = Phase::Reviewing(Invocation {
        failed_start: open.starts,
        ..open.clone()
    });
    Ok(Consequences {
        steps: vec![ReviewStep::to(key, review.round, phase)],
        ..Consequences::default()
    })
}

/// Returns the request to the next available reviewer, with fresh attempts and starts; the round's time and turns
/// continue.
fn reassigned(
    context: &mut EventContext<'_>,
    (key, review, open): (&ReviewKey, &Review, &Invocation),
    next: &[AgentName],
) -> Consequences {
    let Some(place) = next.iter().position(|name| can_review(context, key, name)) else {
        return escalated(context, (key, review), EscalationReason::NoReviewer);
    };
    let to = &next[place];
    let phase = Phase::Reviewing(Invocation {
        attempts_left: ATTEMPTS,
        starts: 0,
        failed_start: 0,
        next_reviewers: Some(next[place + 1..].to_vec()),
        ..open.clone()
    });
    let says = Says::Reassigned {
        review: key.clone(),
        to: to.clone(),
    };
    let messages = [&key.author, review.reviewer(key)]
        .map(|agent| context.message(agent, says.clone()))
        .into();
    let step = ReviewStep {
        reassigned_to: Some(to.clone()),
        ..ReviewStep::to(key, review.round, phase)
    };
    Consequences {
        steps: vec![step],
        messages,
        ..Consequences::default()
    }
}

/// True if an answer of this agent could end the review: it has no other review of the pull request, with which its
/// messages could be confused, and its vendor does not bar it from approving.
fn can_review(context: &EventContext<'_>, key: &ReviewKey, name: &AgentName) -> bool {
    let policy = context.policy;
    let is_barred =
        policy.gate.reviewer_other_vendor && policy.same_vendor(&key.author, name).is_some();
    let mut others = context
        .state
        .of_pr(key.repo.as_ref(), &key.pr)
        .filter(|(other, _)| *other != key);
    let has_own =
        others.any(|(other, review)| other.reviewer == *name || review.reviewer(other) == name);
    !is_barred && !has_own
}

fn escalated(
    context: &mut EventContext<'_>,
    review: (&ReviewKey, &Review),
    reason: EscalationReason,
) -> Consequences {
    let (step, messages) = given_up(context, review, reason);
    Consequences {
        steps: vec![step],
        messages: messages.into(),
        ..Consequences::default()
    }
}
