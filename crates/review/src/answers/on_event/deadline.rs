//! A deadline has come: the daemon ends the wait, and a person decides.

use message_schema::Code;
use review_words::deadline::Deadline;
use review_words::key::ReviewKey;
use review_words::phase::{EscalationReason, Phase};
use review_words::record::{ReviewStep, Says};

use super::context::{Consequences, Declined, EventContext};

pub(super) fn on_event(
    context: &mut EventContext<'_>,
    key: &ReviewKey,
    which: Deadline,
) -> Result<Consequences, Declined> {
    let review = context
        .state
        .review(key)
        .filter(|review| match review.deadline() {
            Some((at, armed)) => armed == which && at <= context.now,
            None => false,
        });
    let Some(review) = review else {
        return Err(Declined::new(
            Code::ReviewClosed,
            "the review waits for no such deadline",
        ));
    };
    let reason = match which {
        Deadline::PickUp => EscalationReason::ReviewerTimeout,
        Deadline::Runtime => EscalationReason::ReviewerBudgetExceeded,
        Deadline::Author => EscalationReason::AuthorTimeout,
    };
    let messages = match which {
        Deadline::Runtime => {
            let says = Says::BudgetSpent {
                review: key.clone(),
                round: review.round,
            };
            vec![context.message(&key.author, says)]
        }
        Deadline::PickUp | Deadline::Author => {
            let says = Says::Escalated {
                review: key.clone(),
                reason: reason.clone(),
            };
            vec![
                context.message(&key.author, says.clone()),
                context.message(review.reviewer(key), says),
            ]
        }
    };
    let step = ReviewStep::to(key, review.round, Phase::Escalated(reason));
    Ok(Consequences {
        steps: vec![step],
        messages,
        ..Consequences::default()
    })
}
