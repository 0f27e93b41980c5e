//! A run used tokens or money: it is counted, and a review that used its budget up goes to a person.

use message_schema::Code;

use super::context::{Consequences, Declined, EventContext};
use super::reviewer::given_up;
use crate::words::phase::EscalationReason;
use crate::words::record::ReviewStep;
use crate::words::spend::RunSpend;

/// Counts what is new, whatever phase the review is in: an answer may have ended it before its run did.
pub(super) fn on_event(
    context: &mut EventContext<'_>,
    report: &RunSpend,
) -> Result<Consequences, Declined> {
    let key = &report.review;
    let Some(review) = context.state.review(key) else {
        let why = format!("pull request {} has no such review", key.pr);
        return Err(Declined::new(Code::NoOpenRequest, why));
    };
    let more = context.state.unrecorded(report);
    let is_over = context
        .policy
        .budget
        .per_review
        .is_reached(review.spent.plus(more));
    let (step, letters) = if is_over && !review.phase.is_final() {
        let (step, letters) = given_up(context, (key, review), EscalationReason::SpendExceeded);
        (step, letters.into())
    } else {
        let step = ReviewStep::to(key, review.round, review.phase.clone());
        (step, Vec::new())
    };
    Ok(Consequences {
        steps: vec![ReviewStep {
            spent: Some(more),
            ..step
        }],
        letters,
        ..Consequences::default()
    })
}
