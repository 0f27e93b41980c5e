//! The quality gate (`docs/protocol.md`, section 5), recomputed from the daemon's own threads whatever the lgtm says.

use std::collections::{BTreeMap, BTreeSet};

use message_schema::Code;
use message_schema::body::{GateResult, Nit, NitTier, ReviewLgtm};
use message_schema::id::FindingId;
use message_schema::packet::{CommandResult, CommandRun, FindingsPacket, Severity};
use policy::Policy;
use review_words::phase::Invocation;
use review_words::reading::ObservedRun;
use review_words::refusal::{Clause, Fault};
use review_words::thread::{Thread, ThreadState};

use crate::parts::evidence;
use crate::parts::review::Review;

/// The input of the gate besides the threads.
pub(crate) struct Evidence<'a> {
    pub(crate) lgtm: &'a ReviewLgtm,
    pub(crate) packet: Option<&'a FindingsPacket>,
    /// The commands that must be recorded as passing.
    pub(crate) required: BTreeSet<&'a str>,
    /// True if the gate refuses an approval without any recorded command.
    pub(crate) require_validation: bool,
    /// True if the gate refuses an approval that names no commit.
    pub(crate) require_head: bool,
    /// The runs that the daemon's side saw, on the approved commit.
    pub(crate) runs: &'a [ObservedRun],
}

/// Returns the commands that must be recorded as passing: those of the project and of the request.
pub fn required_commands<'a>(policy: &'a Policy, invocation: &'a Invocation) -> BTreeSet<&'a str> {
    let named = invocation
        .validation_commands
        .iter()
        .chain(&policy.gate.validation_commands);
    named.map(|command| command.trim()).collect()
}

/// Returns the commands that must be recorded as passing, each with the run that the gate will count for an approval of
/// the round's commit, if the daemon's side saw one. Without an open request they are the project's.
pub fn commands_so_far<'a>(
    policy: &'a Policy,
    review: &'a Review,
) -> BTreeMap<&'a str, Option<&'a ObservedRun>> {
    let open = review.phase.invocation();
    let of_request = open.into_iter().flat_map(|open| &open.validation_commands);
    let required = of_request.chain(&policy.gate.validation_commands);
    let commit = open.and_then(|open| open.head.as_ref());
    let seen = |command| (review.reading.runs_on(commit)).find(|run| run.command == command);
    let required = required.map(|command| command.trim());
    required.map(|command| (command, seen(command))).collect()
}

/// The gate's result for an lgtm.
#[derive(Default)]
pub(crate) struct GateJudgement {
    /// The open threads that its nits defer.
    pub(crate) deferred: BTreeMap<FindingId, Thread>,
    /// All broken clauses; a clause can be broken in several ways.
    pub(crate) faults: Vec<Fault>,
}

/// Judges every clause. `before` has the threads before this response: those that it escalates were open until now.
pub(crate) fn judge(
    threads: &BTreeMap<FindingId, Thread>,
    before: &BTreeMap<FindingId, Thread>,
    evidence: &Evidence<'_>,
) -> GateJudgement {
    let open = || {
        threads
            .iter()
            .filter(|(_, thread)| thread.is_open() && !thread.blocking)
    };
    let covered = nit_cover(open(), &evidence.lgtm.nits);
    let mut faults: Vec<Fault> = threads
        .iter()
        .filter(|(_, thread)| thread.blocks_approval())
        .map(|(id, thread)| blocker_fault(id, thread, before.get(id)))
        .chain(
            open()
                .filter(|(id, _)| !covered.contains(*id))
                .map(|(id, thread)| uncovered(id, thread)),
        )
        .collect();
    faults.extend(evidence.faults());
    let deferred = open().filter(|(id, _)| covered.contains(*id));
    GateJudgement {
        deferred: deferred
            .map(|(id, thread)| (id.clone(), thread.moved_to(ThreadState::Deferred)))
            .collect(),
        faults,
    }
}

impl Evidence<'_> {
    /// Returns the faults of the clauses that do not depend on threads.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let qa = self.packet.and_then(|packet| packet.qa_validation.as_ref());
        let said = qa.map_or(&[][..], |qa| &qa.commands_run);
        let mut faults = validation_faults(said, self.runs, &self.required);
        let has_no_command = said.is_empty() && self.runs.is_empty() && self.required.is_empty();
        if self.require_validation && has_no_command {
            faults.push(nothing_validated());
        }
        if self.lgtm.quality_gate_result == GateResult::Fail {
            faults.push(contradiction());
        }
        if self.require_head && self.lgtm.validated_head.is_none() {
            faults.push(unnamed_head());
        }
        faults
    }
}

/// Returns the open threads that nits cover: first by `source`, then nits without one cover threads of their tier one
/// for one. Extra nits are allowed.
pub fn nit_cover<'a>(
    open: impl Iterator<Item = (&'a FindingId, &'a Thread)>,
    nits: &[Nit],
) -> BTreeSet<FindingId> {
    let named: BTreeSet<&FindingId> = nits.iter().filter_map(|nit| nit.source.as_ref()).collect();
    let unnamed = |tier| {
        nits.iter()
            .filter(|nit| nit.source.is_none() && nit.tier == tier)
            .count()
    };
    let (mut p2, mut p3) = (unnamed(NitTier::P2), unnamed(NitTier::P3));
    let mut take = |severity| {
        let left = match severity {
            Severity::P2 => &mut p2,
            Severity::P3 => &mut p3,
            Severity::P0 | Severity::P1 => return false,
        };
        let some = *left > 0;
        *left = left.saturating_sub(1);
        some
    };
    open.filter(|(id, thread)| !thread.blocking && (named.contains(id) || take(thread.severity)))
        .map(|(id, _)| id.clone())
        .collect()
}

/// Returns the faults of an approval's commands: it says that it ran these, and the daemon's side saw others.
pub(crate) fn validation_faults(
    said: &[CommandRun],
    observed: &[ObservedRun],
    required: &BTreeSet<&str>,
) -> Vec<Fault> {
    // The last result of a command counts.
    let last: BTreeMap<&str, CommandResult> = said
        .iter()
        .map(|run| (run.command.trim(), run.result))
        .collect();
    let last = evidence::seen(last, observed.iter());
    let failed = last
        .iter()
        .filter(|(command, result)| **result == CommandResult::Fail && !required.contains(*command))
        .map(|(command, _)| command_fault(command, "failed", CommandResult::Fail.as_str()));
    let unmet = required
        .iter()
        .filter_map(|command| match last.get(command) {
            Some(CommandResult::Pass) => None,
            Some(result @ (CommandResult::Fail | CommandResult::Warn)) => Some(command_fault(
                command,
                "is required and did not pass",
                result.as_str(),
            )),
            None => Some(command_fault(
                command,
                "is required and is not recorded",
                "nothing",
            )),
        });
    failed.chain(unmet).collect()
}

/// Returns the fault of an approval without a command, in a project that requires some.
fn nothing_validated() -> Fault {
    broken(
        Clause::Validation,
        "this project requires recorded validation commands; the approval has none",
    )
    .field("body.findings_packet")
    .fix("record the commands you ran under qa_validation.commands_run of a findings packet")
}

/// Returns the fault of an approval that names no commit, in a project that requires one.
pub(crate) fn unnamed_head() -> Fault {
    broken(
        Clause::Head,
        "this project requires the reviewed commit; the approval names none",
    )
    .field("body.validated_head")
    .found("nothing")
    .expected("the reviewed commit")
    .fix("name it in validated_head")
}

fn broken(clause: Clause, message: impl Into<String>) -> Fault {
    Fault::new(Code::QualityGateViolation, message).clause(clause)
}

fn blocker_fault(id: &FindingId, thread: &Thread, before: Option<&Thread>) -> Fault {
    let clause = if thread.severity == Severity::P0 {
        Clause::P0
    } else {
        Clause::Blocking
    };
    let was_held = before.is_some_and(|before| matches!(before.state, ThreadState::Held(_)));
    let state = if was_held { "with a person" } else { "open" };
    let title = thread
        .title
        .as_deref()
        .map_or_else(String::new, |title| format!(" ({title})"));
    let fix = if was_held {
        "a person decides on it first"
    } else {
        "send review_feedback instead"
    };
    broken(
        clause,
        format!("{} `{id}`{title} blocks and is {state}", thread.severity),
    )
    .thread(id)
    .found(format!("{id} {state}"))
    .expected("no blocking finding open or with a person")
    .fix(fix)
}

fn uncovered(id: &FindingId, thread: &Thread) -> Fault {
    broken(
        Clause::Nits,
        format!("{} `{id}` is open and no nit covers it", thread.severity),
    )
    .thread(id)
    .field("body.nits")
    .expected(format!("a nit with `source: {id}`"))
    .fix(format!(
        "add a nit with source: {id}, owner and next_action, or resolve the finding"
    ))
}

fn command_fault(command: &str, what: &str, found: &str) -> Fault {
    broken(
        Clause::Validation,
        format!("the validation command `{command}` {what}"),
    )
    .field("qa_validation.commands_run")
    .found(found)
    .expected("pass")
    .fix("send review_feedback, or record the command's passing run")
}

fn contradiction() -> Fault {
    broken(
        Clause::Contradiction,
        "an approval cannot say that the quality gate failed",
    )
    .field("body.quality_gate_result")
    .found(GateResult::Fail)
    .expected(GateResult::Pass.as_str())
    .fix("send review_feedback instead")
}
