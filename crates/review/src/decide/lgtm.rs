//! `review_lgtm`: an approval, if the quality gate agrees; ends the reviewer's invocation.

use message_schema::body::ReviewLgtm;

use super::feedback::{open_invocation, round_fault};
use super::{Answer, Case, belongs};
use crate::gate::{self, Evidence};
use crate::phase::{Approval, Phase};
use crate::record::Step;
use crate::refusal::{Refusal, in_review};
use crate::response::{self, Response, Silence};

pub(super) fn decide(case: &Case<'_>, body: &ReviewLgtm) -> Result<Answer, Refusal> {
    let (key, review) = belongs::find(case)?;
    let invocation = open_invocation(key, review)?;
    let packet = case.posted.valid.packet().map(|packet| &packet.findings);
    let required = invocation.validation_commands.iter().chain(&case.policy.gate.validation_commands);
    let evidence = Evidence {
        lgtm: body,
        packet,
        required: required.map(|command| command.trim()).collect(),
        require_validation: case.policy.gate.require_validation,
    };
    let response = Response {
        review,
        packet,
        mode: case.policy.threads,
        silence: Silence::read_by(case.policy, invocation),
        nits: &body.nits,
        late_outside: None,
    };
    // All that is wrong is told at once, since each refusal costs an attempt. Where the threads
    // cannot be told, the clauses about them are left out: they would say the same thing twice.
    let mut threads = review.threads.clone();
    let judged = match response::judge(&response) {
        Ok(changed) => {
            threads.extend(changed.threads);
            gate::judge(&threads, &review.threads, &evidence)
        }
        Err(mut faults) => {
            faults.extend(evidence.faults());
            Err(faults)
        }
    };
    let deferred = match (round_fault(review, body.round), judged) {
        (None, Ok(deferred)) => deferred,
        (wrong_round, judged) => {
            let faults = wrong_round.into_iter().chain(judged.err().into_iter().flatten());
            return Err(in_review(faults.collect(), key, review.legal_next(key), true));
        }
    };
    threads.extend(deferred);
    threads.retain(|id, thread| review.threads.get(id) != Some(thread));

    let named = [&body.validated_head, &review.commit, &review.declared_head];
    let commit = named.into_iter().flatten().next().cloned();
    let approval = Approval { commit, merge_ready: body.merge_ready, at: case.now };
    let step = Step {
        review: key.clone(),
        phase: Phase::Approved(approval),
        opens: None,
        round: review.round,
        threads,
        commit: None,
        declared_head: None,
    };
    Ok(Answer { step, warnings: Vec::new() })
}
