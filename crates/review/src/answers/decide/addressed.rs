//! `review_addressed`: the author's report about the latest feedback.

use message_schema::Code;
use message_schema::body::ReviewAddressed;
use message_schema::id::FindingId;
use review_words::key::ReviewKey;
use review_words::phase::{Addressed, Heads, Phase};
use review_words::record::ReviewStep;
use review_words::refusal::{Costs, Fault, Refusal, in_review};

use super::context::{MessageContext, Ruling};
use super::lookup;
use crate::parts::review::Review;

pub(super) fn decide(
    context: &MessageContext<'_>,
    body: &ReviewAddressed,
) -> Result<Ruling, Refusal> {
    let (key, review) = lookup::find(context)?;
    let refuse_all = |faults| {
        Err(in_review(
            faults,
            key,
            context.state.legal_next(key, review),
            Costs::Nothing,
        ))
    };
    let refuse = |fault| refuse_all(vec![fault]);
    let due = match &review.phase {
        Phase::Fixing { due } if body.round == review.round => *due,
        Phase::Fixing { .. } => return refuse(round_mismatch(body, review)),
        Phase::Reviewing(_) => return refuse(reviewers_turn(key, review)),
        // No corrected version can succeed: the author must send another message.
        Phase::Awaiting { .. } | Phase::Addressed { .. } => {
            return refuse(nothing_to_address(body, review)).map_err(|refusal| Refusal {
                retryable: false,
                ..refusal
            });
        }
        Phase::Escalated(_) => return refuse(with_a_person()),
        Phase::Approved(_) | Phase::Closed(_) => return refuse(over()),
    };
    let (mut findings, mut unknown) = (Vec::new(), Vec::new());
    for (index, id) in body.addressed_finding_ids.iter().enumerate() {
        match review.thread_named(id) {
            Some(thread) => findings.push(thread.clone()),
            None => unknown.push(never_named(index, id, review)),
        }
    }
    if !unknown.is_empty() {
        return refuse_all(unknown);
    }
    let report = Addressed {
        findings,
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
        alerts: Vec::new(),
    })
}

/// The fault of an id that the author made up or misspelt: otherwise silence about it would resolve no thread, without
/// a warning.
fn never_named(index: usize, id: &FindingId, review: &Review) -> Fault {
    let open: Vec<_> = review
        .open_threads()
        .map(|(open, _)| open.as_str())
        .collect();
    let open = if open.is_empty() {
        "no finding is open: leave the list out".to_owned()
    } else {
        format!("the open findings: {}", open.join(", "))
    };
    Fault::new(
        Code::ThreadUnknown,
        format!("no packet of this review has named `{id}`"),
    )
    .thread(id)
    .field(&format!("body.addressed_finding_ids[{index}]"))
    .found(id)
    .expected(open.clone())
    .fix(format!(
        "name each finding by the id its packet gives it; {open}"
    ))
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
            "the feedback of round {} is already addressed",
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
    .fix("send review_request: it opens the next round")
}

/// The fault of a report before the reviewer's answer: there is nothing to address yet.
fn reviewers_turn(key: &ReviewKey, review: &Review) -> Fault {
    let reviewer = review.reviewer(key);
    let until = review.deadline().map_or_else(String::new, |(at, _)| {
        format!(", until {}", at.format("%Y-%m-%dT%H:%M:%SZ"))
    });
    Fault::new(
        Code::NotYourTurn,
        format!(
            "`{reviewer}` moves{until}: round {} has no feedback yet",
            review.round
        ),
    )
    .expected(format!("feedback of `{reviewer}` first"))
    .fix(format!(
        "wait for it: settled wait --for verdict --pr {}",
        key.pr
    ))
}

fn with_a_person() -> Fault {
    Fault::new(
        Code::ReviewClosed,
        "the review waits for a person, who decides first",
    )
    .expected("a message after that decision")
}

fn over() -> Fault {
    Fault::new(
        Code::ReviewClosed,
        "the review is over; there is nothing to address",
    )
}
