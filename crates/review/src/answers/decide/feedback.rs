//! `review_feedback`: the reviewer's findings; ends its invocation.

use std::collections::BTreeMap;

use message_schema::Code;
use message_schema::body::{Escalation, ReviewFeedback};
use message_schema::id::{CommitSha, FindingId};
use message_schema::packet::FindingsPacket;
use policy::{LateFindings, Policy};
use review_words::alert::Alert;
use review_words::deadline::patience;
use review_words::key::ReviewKey;
use review_words::phase::{Approval, CloseReason, Closer, EscalationReason, Invocation, Phase};
use review_words::record::ReviewStep;
use review_words::refusal::{Costs, Fault, Refusal, in_review};
use review_words::thread::{Thread, ThreadState};

use super::budget::Overdrawn;
use super::context::{MessageContext, Ruling};
use super::{budget, head, lookup};
use crate::parts::response::{NewBlockers, Response, Silence, ThreadChanges};
use crate::parts::review::Review;
use crate::parts::{evidence, gate, response};

pub(super) fn decide(
    context: &MessageContext<'_>,
    body: &ReviewFeedback,
) -> Result<Ruling, Refusal> {
    let (key, review) = lookup::find(context)?;
    let invocation = open_invocation(context, key, review)?;
    let declared = context.declared_turns(body.telemetry.as_ref());
    let over = budget::overdrawn(declared, invocation);
    let refused = |faults: Vec<Fault>| {
        let next = context.state.legal_next(key, review);
        in_review(faults, key, next, Costs::Attempt)
    };
    let silence = silence(context.policy, body, over.as_ref(), invocation);
    let packet = context.posted.valid.findings();
    let answer = response_to(context.policy, review, invocation, packet, silence);
    let wrong_round = round_fault(review, Some(body.round));
    let ThreadChanges {
        threads: changed,
        mut alerts,
    } = match (wrong_round, response::judge(&answer)) {
        (None, Ok(judged)) => judged,
        (wrong_round, judged) => {
            let faults = wrong_round
                .into_iter()
                .chain(judged.err().into_iter().flatten());
            return Err(refused(faults.collect()));
        }
    };
    let is_excused =
        may_say_nothing(review, body, over.as_ref()) || context.is_advised(key, review);
    if !is_excused && says_nothing(review, &changed) {
        return Err(refused(vec![empty()]));
    }
    let phase = match &over {
        Some(over) => {
            alerts.push(over.alert());
            Phase::Escalated(EscalationReason::ReviewerBudgetExceeded)
        }
        None => next_phase(context, key, review, invocation, body, &changed),
    };
    let phase = if let Phase::Approved(approval) = phase {
        let (approval, told) =
            approve_by_rule(context, key, review, invocation, body, approval).map_err(refused)?;
        alerts.extend(told);
        Phase::Approved(approval)
    } else {
        let other = head::another(invocation, body.validated_head.as_ref());
        alerts.extend(other.map(|other| other.alert()));
        phase
    };
    let step = ReviewStep {
        threads: changed,
        ..ReviewStep::to(key, review.round, phase)
    };
    Ok(Ruling { step, alerts })
}

/// True if the rules would refuse this feedback because it says nothing. False for a feedback with other faults. `declared`
/// is the number of turns that it declares. Where the gate only advises, no feedback is refused for that.
pub fn feedback_is_empty(
    review: &Review,
    policy: &Policy,
    (body, declared): (&ReviewFeedback, Option<u64>),
    packet: Option<&FindingsPacket>,
) -> bool {
    let Some(invocation) = review.phase.invocation() else {
        return false;
    };
    let over = budget::overdrawn(declared, invocation);
    let silence = silence(policy, body, over.as_ref(), invocation);
    let judged = response::judge(&response_to(policy, review, invocation, packet, silence));
    !may_say_nothing(review, body, over.as_ref())
        && judged.is_ok_and(|judged| says_nothing(review, &judged.threads))
}

/// True if a feedback decides something without a finding: it gives the review to a person, or ends one of fixes.
fn may_say_nothing(review: &Review, body: &ReviewFeedback, over: Option<&Overdrawn>) -> bool {
    over.is_some() || body.escalation.is_some() || review.fixes.is_some()
}

pub(super) fn response_to<'a>(
    policy: &Policy,
    review: &'a Review,
    invocation: &'a Invocation,
    packet: Option<&'a FindingsPacket>,
    silence: Silence<'a>,
) -> Response<'a> {
    Response {
        threads: &review.threads,
        round: review.round,
        packet,
        mode: policy.threads,
        silence,
        nits: &[],
        new_blockers: new_blockers(policy, review, invocation),
        round_kind: review.round_kind(),
        verify_run: invocation.verify_run,
    }
}

/// Returns the rule about threads that the feedback does not name.
fn silence<'a>(
    policy: &Policy,
    body: &ReviewFeedback,
    over: Option<&Overdrawn>,
    invocation: &'a Invocation,
) -> Silence<'a> {
    // A reviewer whose budget is spent cannot be asked for an action on each thread.
    if over.is_some() || body.escalation == Some(Escalation::ReviewerBudgetExceeded) {
        Silence::Carries
    } else {
        Silence::of_feedback(policy, invocation)
    }
}

/// Returns the approval of a fix pull request with its evidence, and its alerts, or the gate's faults.
fn approve_by_rule(
    context: &MessageContext<'_>,
    key: &ReviewKey,
    review: &Review,
    invocation: &Invocation,
    body: &ReviewFeedback,
    approval: Approval,
) -> Result<(Approval, Vec<Alert>), Vec<Fault>> {
    let validated = body.validated_head.as_ref();
    let is_unnamed = context.policy.gate.require_head && validated.is_none();
    let change = &review.reading.change;
    let examination = evidence::examine(
        &review.reading,
        context.posted.valid.examined(),
        context.posted.valid.findings(),
        approval.commit.as_ref(),
    );
    let mode = context.policy.gate.evidence;
    let faults: Vec<Fault> = head::another(invocation, validated)
        .map(|other| other.fault())
        .into_iter()
        .chain(is_unnamed.then(gate::unnamed_head))
        .chain(examination.faults(mode))
        .chain(evidence::approver_faults(
            context.policy,
            context.between(),
            change,
        ))
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut alerts = examination.alerts(mode);
    alerts.extend(context.approval_alert(key, &approval));
    let approval = Approval {
        evidence: Some(Box::new(examination.evidence)),
        ..approval
    };
    Ok((approval, alerts))
}

/// Returns the new findings that may still block in this round.
fn new_blockers<'a>(
    policy: &Policy,
    review: &'a Review,
    invocation: &'a Invocation,
) -> NewBlockers<'a> {
    if review.fixes.is_some() {
        return NewBlockers::OutsideTask;
    }
    match (policy.late_findings, &invocation.addressed) {
        // Nothing is addressed before the first round of a generation.
        (LateFindings::Defer, Some(report)) if !report.touched_files.is_empty() => {
            NewBlockers::InTouched([&report.touched_files, &review.reading.change.files])
        }
        (LateFindings::Block | LateFindings::Defer, _) => NewBlockers::Any,
    }
}

fn next_phase(
    context: &MessageContext<'_>,
    key: &ReviewKey,
    review: &Review,
    invocation: &Invocation,
    body: &ReviewFeedback,
    changed: &BTreeMap<FindingId, Thread>,
) -> Phase {
    let (open, held) = review.blockers_after(changed);
    let reason = EscalationReason::of_feedback(body.escalation.as_ref(), review.round_kind());
    let rounds_over = reason == Some(EscalationReason::MaxRoundsExceeded);
    if let Some(reason) = reason
        && !rounds_over
    {
        return Phase::Escalated(reason);
    }
    if review.fixes.is_some() && !open && !held {
        let commit = head::approved(invocation, body.validated_head.as_ref());
        return Phase::Approved(Approval {
            by_rule: true,
            ..context.approval(key, commit)
        });
    }
    if rounds_over && context.is_advised(key, review) {
        return Phase::Closed(CloseReason::Commented);
    }
    if rounds_over {
        return Phase::Escalated(EscalationReason::MaxRoundsExceeded);
    }
    // Nothing the author can do would bring approval nearer.
    if held && !open {
        return Phase::Escalated(EscalationReason::BlockerHeld);
    }
    Phase::Fixing {
        due: context.now + patience(review.priority),
    }
}

/// True if a feedback changes no unresolved thread and a person holds no blocker, so an lgtm could say as much: it
/// would cost a round in which the author has nothing to do.
fn says_nothing(review: &Review, changed: &BTreeMap<FindingId, Thread>) -> bool {
    let says = |(id, thread): (&FindingId, &Thread)| {
        thread.state != ThreadState::Resolved && review.threads.get(id) != Some(thread)
    };
    let (_, held) = review.blockers_after(changed);
    !held && !changed.iter().any(says)
}

fn empty() -> Fault {
    Fault::new(
        Code::FeedbackEmpty,
        "the feedback raises no finding, keeps no thread open and escalates none to a person",
    )
    .field("findings")
    .expected("a finding, an action that keeps a thread open, or an escalation")
    .fix("send review_lgtm with this findings_packet, or raise what is wrong as a finding")
}

/// Returns the invocation a response answers, or the refusal if there is none.
pub(super) fn open_invocation<'a>(
    context: &MessageContext<'_>,
    key: &ReviewKey,
    review: &'a Review,
) -> Result<&'a Invocation, Refusal> {
    // No round is named: a reopened review is in a round without a request.
    let fault = match (review.phase.invocation(), review.closed_by) {
        (Some(open), _) => match past_request(context, key, review, open) {
            None => return Ok(open),
            Some(fault) => fault,
        },
        (None, Some(Closer::Daemon)) => Fault::new(
            Code::InvocationClosed,
            "the daemon closed the last invocation; it takes no more responses",
        ),
        (None, Some(Closer::Reviewer) | None) => Fault::new(
            Code::DuplicateTerminalResponse,
            "the last request already has its one response",
        )
        .expected("one review_feedback or review_lgtm per review_request")
        .fix("do nothing; the author's next review_request opens the next round"),
    };
    Err(in_review(
        vec![fault],
        key,
        context.state.legal_next(key, review),
        Costs::Nothing,
    ))
}

/// Returns the fault of a response to an earlier request: its reviewer has not read the open one.
fn past_request(
    context: &MessageContext<'_>,
    key: &ReviewKey,
    review: &Review,
    open: &Invocation,
) -> Option<Fault> {
    let parent = context.envelope().parent_message_id.as_deref()?;
    let is_past = review
        .past_requests
        .iter()
        .any(|past| past.as_str() == parent);
    let of = |head: &CommitSha| format!(", which is about {head}");
    let about = open.head.as_ref().map_or_else(String::new, of);
    is_past.then(|| {
        Fault::new(
            Code::RequestMismatch,
            format!(
                "the response answers `{parent}`, but the open request is `{}`{about}",
                open.request
            ),
        )
        .field("parent_message_id")
        .found(parent)
        .expected(open.request.as_str())
        .fix(format!(
            "read the open request, `settled brief {}`, and answer that",
            key.pr
        ))
    })
}

/// Returns the fault of a response for a round that is not the open one.
pub(super) fn round_fault(review: &Review, said: Option<u32>) -> Option<Fault> {
    let said = said.filter(|said| *said != review.round)?;
    let fault = Fault::new(
        Code::RoundMismatch,
        format!(
            "the open request is round {}, the message answers round {said}",
            review.round
        ),
    );
    let fault = fault
        .field("body.round")
        .found(said)
        .expected(review.round.to_string());
    Some(fault.fix(format!("write `round: {}`", review.round)))
}
