//! `review_addressed`: the author says what was done about the latest feedback.

use message_schema::Code;
use message_schema::body::ReviewAddressed;

use super::context::{MessageContext, Ruling};
use super::lookup;
use crate::parts::review::Review;
use crate::words::alert::Alert;
use crate::words::phase::{Addressed, Heads, Phase};
use crate::words::record::ReviewStep;
use crate::words::refusal::{Costs, Fault, Refusal, in_review};

pub(super) fn decide(
    context: &MessageContext<'_>,
    body: &ReviewAddressed,
) -> Result<Ruling, Refusal> {
    let (key, review) = lookup::find(context)?;
    let refuse = |fault| {
        Err(in_review(
            vec![fault],
            key,
            context.state.legal_next(key, review),
            Costs::Nothing,
        ))
    };
    let due = match &review.phase {
        Phase::Fixing { due } if body.round == review.round => *due,
        Phase::Fixing { .. } => return refuse(round_mismatch(body, review)),
        Phase::Awaiting { .. } | Phase::Reviewing(_) | Phase::Addressed { .. } => {
            return refuse(nothing_to_address(body, review));
        }
        Phase::Approved(_) | Phase::Escalated(_) | Phase::Closed(_) => return refuse(over()),
    };
    let unknown = body
        .addressed_finding_ids
        .iter()
        .filter(|id| !review.threads.contains_key(*id))
        .map(|id| Alert::FindingUnknown { thread: id.clone() });
    let report = Addressed {
        findings: body.addressed_finding_ids.clone(),
        touched_files: body.touched_files.clone(),
        newer_heads: Heads::default(),
    };
    let step = ReviewStep {
        commit: Some(
            body.validated_head
                .clone()
                .unwrap_or_else(|| body.commit_sha.clone()),
        ),
        ..ReviewStep::to(key, review.round, Phase::Addressed { report, due })
    };
    Ok(Ruling {
        step,
        alerts: unknown.collect(),
    })
}

fn round_mismatch(body: &ReviewAddressed, review: &Review) -> Fault {
    Fault::new(
        Code::RoundMismatch,
        format!(
            "the latest feedback is of round {}, the message addresses round {}",
            review.round, body.round
        ),
    )
    .field("body.round")
    .found(body.round)
    .expected(review.round.to_string())
    .fix(format!("write `round: {}`", review.round))
}

fn nothing_to_address(body: &ReviewAddressed, review: &Review) -> Fault {
    let state = match review.phase {
        Phase::Addressed { .. } => format!(
            "the feedback of round {} was addressed already",
            review.round
        ),
        Phase::Awaiting { .. }
        | Phase::Reviewing(_)
        | Phase::Fixing { .. }
        | Phase::Approved(_)
        | Phase::Escalated(_)
        | Phase::Closed(_) => {
            format!("round {} has no feedback yet", review.round)
        }
    };
    Fault::new(
        Code::RoundMismatch,
        format!("{state}; there is nothing to address"),
    )
    .field("body.round")
    .found(body.round)
    .expected("the round of the latest feedback not yet addressed")
}

fn over() -> Fault {
    Fault::new(
        Code::ReviewClosed,
        "the review is over; there is nothing to address",
    )
}
