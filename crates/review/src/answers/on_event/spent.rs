//! A run used tokens or money: its spend counts, and a review that has used up its budget is escalated.

use message_schema::Code;
use review_words::phase::EscalationReason;
use review_words::record::ReviewStep;
use review_words::spend::RunSpend;

use super::context::{Consequences, Declined, EventContext};
use super::reviewer::given_up;

/// Counts the new spend in any phase: an answer may have ended the review before its run ended.
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
    let (step, messages) = if is_over && !review.phase.is_final() {
        let (step, messages) = given_up(context, (key, review), EscalationReason::SpendExceeded);
        (step, messages.into())
    } else {
        let step = ReviewStep::to(key, review.round, review.phase.clone());
        (step, Vec::new())
    };
    Ok(Consequences {
        steps: vec![ReviewStep {
            spent: Some(more),
            ..step
        }],
        messages,
        ..Consequences::default()
    })
}
