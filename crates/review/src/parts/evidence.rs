//! The evidence that a reviewer read the change it approves, and the rules about who may approve it
//! (`docs/protocol.md`, sections 5 and 11).

use std::collections::{BTreeMap, BTreeSet};

use message_schema::Code;
use message_schema::body::Examined;
use message_schema::id::{AgentName, CommitSha, RepoPath};
use message_schema::packet::FindingsPacket;
use policy::{EvidenceMode, Policy};
use review_words::alert::{Alert, named};
use review_words::key::ReviewKey;
use review_words::reading::{ApprovalEvidence, Change, ObservedRun, ReadingState};
use review_words::refusal::{Clause, Fault};

use crate::parts::review::Review;

/// The evidence in a response and in the daemon's records.
#[derive(Clone)]
pub(crate) struct Examination {
    /// The evidence, in numbers of files and commands.
    pub(crate) evidence: ApprovalEvidence,
    /// The missing evidence, one sentence each.
    pub(crate) missing: Vec<String>,
    /// The files that the response calls observed without such a record.
    not_observed: Vec<RepoPath>,
}

/// Compares the change to read with the response's claims and the daemon's records.
pub(crate) fn examine<'a>(
    reading: &ReadingState,
    said: impl Iterator<Item = &'a Examined>,
    packet: Option<&FindingsPacket>,
    head: Option<&CommitSha>,
) -> Examination {
    let said: Vec<&Examined> = said.collect();
    let change = &reading.change;
    let digests: Vec<_> = said
        .iter()
        .filter_map(|one| one.diff_digest.as_ref())
        .collect();
    let digest_matches = change
        .digest
        .as_ref()
        .is_some_and(|digest| digests.contains(&digest));
    let all = |list: fn(&Examined) -> &Vec<RepoPath>| -> BTreeSet<&RepoPath> {
        said.iter().flat_map(|one| list(one)).collect()
    };
    let served = all(|one| &one.served);
    let claimed = all(|one| &one.observed);
    let declared: BTreeSet<&RepoPath> = all(|one| &one.declared).union(&claimed).copied().collect();
    let mut evidence = ApprovalEvidence {
        digest_matches,
        ..ApprovalEvidence::default()
    };
    for file in &change.files {
        // Records of the daemon's own side count most, and each file counts once.
        if reading.observed.contains(file) {
            evidence.observed += 1;
        } else if served.contains(file) {
            evidence.served += 1;
        } else if declared.contains(file) {
            evidence.declared += 1;
        } else {
            evidence.missing.push(file.clone());
        }
    }
    let observed: Vec<&ObservedRun> = reading.runs_on(head).collect();
    let runs = packet
        .and_then(|packet| packet.qa_validation.as_ref())
        .map_or(&[][..], |qa| &qa.commands_run);
    let only_said = runs
        .iter()
        .map(|run| run.command.trim())
        .filter(|command| !observed.iter().any(|run| run.command == *command));
    let only_said: BTreeSet<&str> = only_said.collect();
    evidence.commands_declared = only_said.into_iter().map(str::to_owned).collect();
    evidence.commands_observed = observed.into_iter().cloned().collect();

    let missing = missing(change, &said, &evidence);
    let not_observed = claimed
        .into_iter()
        .filter(|file| !reading.observed.contains(*file))
        .cloned()
        .collect();
    Examination {
        evidence,
        missing,
        not_observed,
    }
}

/// Returns the missing evidence of an approval, one sentence each.
fn missing(change: &Change, said: &[&Examined], evidence: &ApprovalEvidence) -> Vec<String> {
    let digest = said.iter().find_map(|one| one.diff_digest.clone());
    let files = &change.files;
    let names_files = said.iter().any(|one| one.files().next().is_some());
    let mut missing = Vec::new();
    match (&change.digest, digest) {
        (Some(_), _) if evidence.digest_matches => {}
        (Some(asked), Some(other)) => missing.push(format!(
            "it names the diff {other}, but the request names {asked}"
        )),
        (Some(_), None) => {
            missing.push("it does not name the diff_digest that the reviewer read".to_owned());
        }
        (None, None) if files.is_empty() => missing.push(
            "the request names no diff, and the approval does not say what the reviewer read"
                .to_owned(),
        ),
        (None, _) => {}
    }
    let left = &evidence.missing;
    if !left.is_empty() {
        missing.push(format!(
            "{} of {} changed files were not examined: {}",
            left.len(),
            files.len(),
            named(left)
        ));
    } else if files.is_empty() && !names_files && missing.is_empty() {
        missing.push("it names no file that was examined".to_owned());
    }
    missing
}

impl Examination {
    /// Returns the faults of the clause `evidence`, if this mode refuses any.
    pub(crate) fn faults(&self, mode: EvidenceMode) -> Vec<Fault> {
        match mode {
            EvidenceMode::Warn => Vec::new(),
            EvidenceMode::Require => self.missing.iter().map(|what| fault(what)).collect(),
        }
    }

    /// Returns the alerts about an approval that this mode accepts anyway.
    pub(crate) fn alerts(&self, mode: EvidenceMode) -> Vec<Alert> {
        let missing = match mode {
            EvidenceMode::Warn => self.missing.as_slice(),
            EvidenceMode::Require => &[],
        };
        let missing = missing
            .iter()
            .map(|what| Alert::EvidenceMissing { what: what.clone() });
        let not_observed = (!self.not_observed.is_empty()).then(|| Alert::NotObserved {
            files: self.not_observed.clone(),
        });
        let commands = &self.evidence.commands_declared;
        let declared = (!commands.is_empty()).then(|| Alert::CommandsDeclared {
            commands: commands.clone(),
        });
        missing.chain(not_observed).chain(declared).collect()
    }
}

fn fault(what: &str) -> Fault {
    Fault::new(
        Code::ApprovalWithoutEvidence,
        format!("the approval lacks evidence: {what}"),
    )
    .clause(Clause::Evidence)
    .field("body.examined")
    .expected("`examined` with the request's diff_digest and every changed file")
    .fix("read the change with `settled diff`, then run `settled lgtm`; or list in `examined.declared` the files you read in another way")
}

/// The two agents of a review.
#[derive(Clone, Copy)]
pub(crate) struct Between<'a> {
    /// Its author.
    pub(crate) author: &'a AgentName,
    /// Its reviewer, or the agent that may become it.
    pub(crate) reviewer: &'a AgentName,
}

/// Checks the clauses about the approver, which no reviewer can fix.
pub(crate) fn approver_faults(
    policy: &Policy,
    between: Between<'_>,
    change: &Change,
) -> Vec<Fault> {
    let vendor = policy
        .gate
        .reviewer_other_vendor
        .then(|| policy.same_vendor(between.author, between.reviewer));
    let human = human_paths(policy, change);
    vendor
        .flatten()
        .map(|why| approver_fault(Clause::ReviewerOtherVendor, why))
        .into_iter()
        .chain(human.map(|why| approver_fault(Clause::HumanPaths, why)))
        .collect()
}

/// Returns the alerts to both sides about a request that this reviewer cannot approve.
pub(crate) fn barred(policy: &Policy, between: Between<'_>, change: &Change) -> Vec<Alert> {
    let alert = |fault: Fault| {
        let (clause, how) = (fault.clause?, fault.message);
        Some(Alert::ApprovalBarred { clause, how })
    };
    let faults = approver_faults(policy, between, change).into_iter();
    faults.filter_map(alert).collect()
}

/// Returns the reasons that bar every approval of this reviewer, one sentence each.
pub fn approval_barred(policy: &Policy, key: &ReviewKey, review: &Review) -> Vec<String> {
    let between = Between {
        author: &key.author,
        reviewer: review.reviewer(key),
    };
    approver_faults(policy, between, &review.reading.change)
        .into_iter()
        .map(|fault| fault.message)
        .collect()
}

fn approver_fault(clause: Clause, why: String) -> Fault {
    Fault::new(Code::QualityGateViolation, why)
        .clause(clause)
        .fix("send review_feedback with an `escalation`; a person approves with `settled review approve`")
}

/// Returns the reason only a person may approve the change, if there is one. A request that does not name its files may
/// touch any.
fn human_paths(policy: &Policy, change: &Change) -> Option<String> {
    if policy.gate.human_paths.is_empty() {
        return None;
    }
    if change.files.is_empty() {
        return Some(
            "the request does not say which files change; in this project only a person may approve some files"
                .to_owned(),
        );
    }
    let held: Vec<RepoPath> = change
        .files
        .iter()
        .filter(|file| policy.gate.human_paths.admits(file.as_str()))
        .cloned()
        .collect();
    (!held.is_empty()).then(|| format!("only a person may approve changes of {}", named(&held)))
}

/// Returns the last result of each command; a run that the daemon's side saw replaces the response's claim.
pub(crate) fn seen<'a>(
    said: BTreeMap<&'a str, message_schema::packet::CommandResult>,
    runs: impl Iterator<Item = &'a ObservedRun>,
) -> BTreeMap<&'a str, message_schema::packet::CommandResult> {
    use message_schema::packet::CommandResult;
    let mut last = said;
    last.extend(runs.map(|run| {
        let result = if run.passed() {
            CommandResult::Pass
        } else {
            CommandResult::Fail
        };
        (run.command.as_str(), result)
    }));
    last
}
