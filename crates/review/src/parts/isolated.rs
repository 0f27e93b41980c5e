//! Two parts of the rules in isolation: the threads without a round limit, and the quality gate without a review. They
//! call the functions that `decide` calls and leave out only what a review would add (its rounds, its request).

use std::collections::{BTreeMap, BTreeSet};

use message_schema::body::ReviewLgtm;
use message_schema::id::FindingId;
use message_schema::packet::{Finding, FindingsPacket};
use policy::{GatePolicy, Policy};
use review_words::refusal::Fault;
use review_words::thread::{RoundKind, Thread};

use crate::parts::duplicate::FindingSignature;
use crate::parts::gate::Evidence;
use crate::parts::response::{NewBlockers, Response, Silence};
use crate::parts::{gate, response};

/// One answer of a reviewer to its threads, outside of any review and never in a last round.
#[derive(Clone, Copy, Debug)]
pub struct Cycle<'a> {
    /// Its number, from 1: the round in which new threads say they were opened.
    pub number: u32,
    /// The reviewer's findings and actions.
    pub packet: &'a FindingsPacket,
    /// The policy; silence about an open thread is read as in an lgtm.
    pub policy: &'a Policy,
    /// The findings that the author reported as addressed before it: `[]` names none, `None` is no report.
    pub addressed: Option<&'a [FindingId]>,
}

/// Returns the threads after a cycle, or all its faults.
pub fn threads(
    before: &BTreeMap<FindingId, Thread>,
    cycle: &Cycle<'_>,
) -> Result<BTreeMap<FindingId, Thread>, Vec<Fault>> {
    let judged = response::judge(&Response {
        threads: before,
        round: cycle.number,
        packet: Some(cycle.packet),
        mode: cycle.policy.threads,
        silence: Silence::after(cycle.policy, cycle.addressed),
        nits: &[],
        new_blockers: NewBlockers::Any,
        round_kind: RoundKind::Earlier,
        verify_run: false,
    })?;
    let mut after = before.clone();
    after.extend(judged.threads);
    Ok(after)
}

/// True if a finding looks like a thread. Silence does not resolve a thread if such a finding is raised beside it.
pub fn resembles(finding: &Finding, thread: &Thread) -> bool {
    FindingSignature::of_finding(finding).resembles(&FindingSignature::of_thread(thread))
}

/// Returns the threads an lgtm defers, or all its faults against the quality gate.
pub fn gate(
    threads: &BTreeMap<FindingId, Thread>,
    lgtm: &ReviewLgtm,
    packet: Option<&FindingsPacket>,
    policy: &GatePolicy,
) -> Result<BTreeMap<FindingId, Thread>, Vec<Fault>> {
    let required: BTreeSet<&str> = policy
        .validation_commands
        .iter()
        .map(|command| command.trim())
        .collect();
    let evidence = Evidence {
        lgtm,
        packet,
        required,
        require_validation: policy.require_validation,
        require_head: policy.require_head,
        runs: &[],
    };
    let judged = gate::judge(threads, threads, &evidence);
    if judged.faults.is_empty() {
        Ok(judged.deferred)
    } else {
        Err(judged.faults)
    }
}
