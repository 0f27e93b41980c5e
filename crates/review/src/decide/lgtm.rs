//! `review_lgtm`: an approval, if the quality gate agrees; ends the reviewer's invocation.

use message_schema::body::ReviewLgtm;

use super::feedback::{check_round, open_invocation};
use super::{Answer, Case, belongs};
use crate::gate::{self, Evidence};
use crate::phase::{Approval, Phase};
use crate::record::Step;
use crate::refusal::{Refusal, in_review};
use crate::response::{self, Response, Silence};

pub(super) fn decide(case: &Case<'_>, body: &ReviewLgtm) -> Result<Answer, Refusal> {
    let (key, review) = belongs::find(case)?;
    let invocation = open_invocation(key, review)?;
    check_round(key, review, body.round)?;

    let packet = case.posted.valid.packet().map(|packet| &packet.findings);
    let refuse = |faults| in_review(faults, key, review.legal_next(key), true);
    let response = Response {
        review,
        packet,
        mode: case.policy.threads,
        silence: Silence::read_by(case.policy, invocation),
        nits: &body.nits,
    };
    let changed = response::judge(&response).map_err(refuse)?;

    let mut threads = review.threads.clone();
    threads.extend(changed);
    let evidence = Evidence {
        lgtm: body,
        packet,
        required: invocation.validation_commands.iter().chain(&case.policy.gate.validation_commands),
        require_validation: case.policy.gate.require_validation,
    };
    let deferred = gate::judge(&threads, evidence).map_err(refuse)?;
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
