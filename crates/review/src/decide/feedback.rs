//! `review_feedback`: the reviewer's findings; ends its invocation.

use message_schema::Code;
use message_schema::body::{Escalation, ReviewFeedback};
use message_schema::id::RepoPath;

use super::{Answer, Case, belongs};
use crate::key::ReviewKey;
use crate::phase::{Closer, EscalationReason, Invocation, Phase};
use crate::record::Step;
use crate::refusal::{Fault, Refusal, in_review};
use crate::response::{self, Judged, Response, Silence};
use crate::state::Review;
use crate::thread::{Thread, ThreadState};

pub(super) fn decide(case: &Case<'_>, body: &ReviewFeedback) -> Result<Answer, Refusal> {
    let (key, review) = belongs::find(case)?;
    let invocation = open_invocation(key, review)?;

    // A reviewer whose budget is spent cannot be asked for an action on each thread.
    let silence = match body.escalation {
        Some(Escalation::ReviewerBudgetExceeded) => Silence::Carries,
        Some(Escalation::MaxRoundsExceeded | Escalation::Other(_)) | None => {
            Silence::read_by(case.policy, invocation)
        }
    };
    let response = Response {
        review,
        packet: case.posted.valid.packet().map(|packet| &packet.findings),
        mode: case.policy.threads,
        silence,
        nits: &[],
        late_outside: touched_before(review, invocation),
    };
    let Judged { threads: changed, warnings } =
        match (round_fault(review, Some(body.round)), response::judge(&response)) {
            (None, Ok(judged)) => judged,
            (wrong_round, judged) => {
                let faults = wrong_round.into_iter().chain(judged.err().into_iter().flatten());
                return Err(in_review(faults.collect(), key, review.legal_next(key), true));
            }
        };

    let after = |id, thread| changed.get(id).unwrap_or(thread);
    let standing: Vec<&Thread> = review
        .threads
        .iter()
        .map(|(id, thread)| after(id, thread))
        .chain(changed.iter().filter(|(id, _)| !review.threads.contains_key(*id)).map(|(_, thread)| thread))
        .filter(|thread| thread.stands_in_the_way())
        .collect();
    let step = Step {
        review: key.clone(),
        phase: leads_to(review, body, &standing),
        opens: None,
        round: review.round,
        threads: changed,
        commit: None,
        declared_head: None,
    };
    Ok(Answer { step, warnings })
}

/// The files the author touched since the last feedback, if this is a later round and it said so.
fn touched_before<'a>(review: &Review, invocation: &'a Invocation) -> Option<&'a [RepoPath]> {
    let files = &invocation.addressed.as_ref()?.touched_files;
    (review.round_of_generation() > 1 && !files.is_empty()).then_some(files)
}

fn leads_to(review: &Review, body: &ReviewFeedback, standing: &[&Thread]) -> Phase {
    let is_last = review.is_last(review.round);
    if let Some(reason) = EscalationReason::of_feedback(body.escalation.as_ref(), is_last) {
        return Phase::Escalated(reason);
    }
    let (mut open, mut held) = (false, false);
    for thread in standing {
        match thread.state {
            ThreadState::Open => open = true,
            ThreadState::Held(_) => held = true,
            ThreadState::Resolved | ThreadState::Deferred => {}
        }
    }
    // Nothing the author can do would bring approval nearer.
    if held && !open { Phase::Escalated(EscalationReason::BlockerHeld) } else { Phase::Fixing }
}

/// The invocation a response answers, or why there is none.
pub(super) fn open_invocation<'a>(key: &ReviewKey, review: &'a Review) -> Result<&'a Invocation, Refusal> {
    if let Phase::Reviewing(invocation) = &review.phase {
        return Ok(invocation);
    }
    let fault = match review.closed_by {
        Some(Closer::Daemon) => Fault::new(
            Code::InvocationClosed,
            format!(
                "the daemon closed the invocation of round {}; it takes no response any more",
                review.round
            ),
        ),
        Some(Closer::Reviewer) | None => Fault::new(
            Code::DuplicateTerminalResponse,
            format!("round {} already has its one response", review.round),
        )
        .expected("one review_feedback or review_lgtm per review_request")
        .fix("nothing is to be done; the author's next review_request opens the next round"),
    };
    Err(in_review(vec![fault], key, review.legal_next(key), false))
}

/// What is wrong with a response for another round than the open one.
pub(super) fn round_fault(review: &Review, said: Option<u32>) -> Option<Fault> {
    let said = said.filter(|said| *said != review.round)?;
    let fault = Fault::new(
        Code::RoundMismatch,
        format!("the open request is round {}, the message answers round {said}", review.round),
    );
    let fault = fault.field("body.round").found(said).expected(review.round.to_string());
    Some(fault.fix(format!("write `round: {}`", review.round)))
}
