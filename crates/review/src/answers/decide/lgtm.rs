//! `review_lgtm`: an approval, if the quality gate agrees; ends the reviewer's invocation.

use std::collections::BTreeSet;

use message_schema::body::ReviewLgtm;
use message_schema::packet::FindingsPacket;
use policy::Policy;
use review_words::alert::Alert;
use review_words::phase::{Approval, Invocation, Phase};
use review_words::record::ReviewStep;
use review_words::refusal::{Clause, Costs, Fault, Refusal, in_review};

use super::context::{MessageContext, Ruling};
use super::feedback::{self, open_invocation, round_fault};
use super::{budget, head, lookup};
use crate::parts::gate::{Evidence, GateJudgement};
use crate::parts::response::{NewBlockers, Response, Silence, ThreadChanges};
use crate::parts::review::Review;
use crate::parts::{evidence, gate, response};

pub(super) fn decide(context: &MessageContext<'_>, body: &ReviewLgtm) -> Result<Ruling, Refusal> {
    let (key, review) = lookup::find(context)?;
    let invocation = open_invocation(context, key, review)?;
    let refused = |faults, costs| {
        let next = context.state.legal_next(key, review);
        in_review(faults, key, next, costs)
    };
    let wrong_round = round_fault(review, body.round);
    if wrong_round.is_none()
        && let Some(over) =
            budget::overdrawn(context.declared_turns(body.telemetry.as_ref()), invocation)
    {
        return Err(refused(vec![over.fault()], Costs::Invocation));
    }
    let packet = context.posted.valid.findings();
    let commit = match (&body.validated_head, body.unbound) {
        (None, true) => None,
        (validated, _) => head::approved(invocation, validated.as_ref()),
    };
    let examination = evidence::examine(
        &review.reading,
        context.posted.valid.examined(),
        packet,
        commit.as_ref(),
    );
    let mode = context.policy.gate.evidence;
    let evidence = Evidence {
        lgtm: body,
        packet,
        required: gate::required_commands(context.policy, invocation),
        require_validation: context.policy.gate.require_validation,
        require_head: context.policy.gate.require_head,
        runs: &examination.evidence.commands_observed,
    };
    let (after, judged, actions) = judge(context.policy, review, invocation, &evidence);
    let (mut threads, mut alerts) = (after.threads, after.alerts);
    // The refusal names all faults at once, since each refusal costs an attempt.
    let validated = body.validated_head.as_ref();
    let wrong_head = head::another(invocation, validated).map(|other| other.fault());
    let wrong = wrong_round.into_iter().chain(wrong_head);
    let mut faults: Vec<Fault> = wrong.chain(actions).collect();
    let mut broken = BTreeSet::new();
    let mut of_gate = judged.faults;
    of_gate.extend(examination.faults(mode));
    of_gate.extend(evidence::approver_faults(
        context.policy,
        context.between(),
        &review.reading.change,
    ));
    if context.is_advised(key, review) {
        let (clauses, advice) = attached(&of_gate);
        broken = clauses;
        alerts.extend(advice);
    } else {
        faults.extend(of_gate);
    }
    if !faults.is_empty() {
        return Err(refused(faults, Costs::Attempt));
    }
    threads.extend(judged.deferred);
    threads.retain(|id, thread| review.threads.get(id) != Some(thread));

    alerts.extend(examination.alerts(mode));
    let approval = Approval {
        merge_ready: body.merge_ready,
        broken,
        evidence: Some(Box::new(examination.evidence)),
        ..context.approval(key, commit)
    };
    alerts.extend(context.approval_alert(key, &approval));
    let step = ReviewStep {
        threads,
        ..ReviewStep::to(key, review.round, Phase::Approved(approval))
    };
    Ok(Ruling { step, alerts })
}

/// Returns all threads after the response, the gate's judgement of them, and the faults of the response's actions. If
/// there are such, it omits the gate's clauses about threads: they would repeat the same faults.
fn judge(
    policy: &Policy,
    review: &Review,
    invocation: &Invocation,
    evidence: &Evidence<'_>,
) -> (ThreadChanges, GateJudgement, Vec<Fault>) {
    let silence = Silence::of_lgtm(policy, invocation);
    let response = Response {
        nits: &evidence.lgtm.nits,
        new_blockers: new_blockers(review),
        ..feedback::response_to(policy, review, invocation, evidence.packet, silence)
    };
    match response::judge(&response) {
        Ok(changed) => {
            let mut threads = review.threads.clone();
            threads.extend(changed.threads);
            let gate = gate::judge(&threads, &review.threads, evidence);
            let alerts = changed.alerts;
            (ThreadChanges { threads, alerts }, gate, Vec::new())
        }
        Err(actions) => {
            let gate = GateJudgement {
                faults: evidence.faults(),
                ..GateJudgement::default()
            };
            (ThreadChanges::default(), gate, actions)
        }
    }
}

/// Returns what the gate would find in an lgtm that answers the open request. Whether it must name a commit and record
/// any command at all is left out.
pub fn gate_faults(
    review: &Review,
    policy: &Policy,
    lgtm: &ReviewLgtm,
    packet: Option<&FindingsPacket>,
) -> Vec<Fault> {
    let Some(invocation) = review.phase.invocation() else {
        return Vec::new();
    };
    let commit = head::approved(invocation, lgtm.validated_head.as_ref());
    let runs: Vec<_> = review.reading.runs_on(commit.as_ref()).cloned().collect();
    let evidence = Evidence {
        lgtm,
        packet,
        required: gate::required_commands(policy, invocation),
        require_validation: false,
        require_head: false,
        runs: &runs,
    };
    judge(policy, review, invocation, &evidence).1.faults
}

/// Returns the clauses that the gate finds broken when it only advises, and the alerts about them.
fn attached(faults: &[Fault]) -> (BTreeSet<Clause>, Vec<Alert>) {
    let broken = faults
        .iter()
        .filter_map(|fault| Some((fault.clause?, &fault.message)));
    let clauses = broken.clone().map(|(clause, _)| clause).collect();
    let advice = broken.map(|(clause, how)| Alert::GateAdvises {
        clause,
        how: how.clone(),
    });
    (clauses, advice.collect())
}

/// Returns the new findings of an lgtm that may still block: all, because an approval that raises a blocker contradicts
/// itself. Only a fix pull request is judged by its task alone.
fn new_blockers(review: &Review) -> NewBlockers<'static> {
    if review.fixes.is_some() {
        NewBlockers::OutsideTask
    } else {
        NewBlockers::Any
    }
}
