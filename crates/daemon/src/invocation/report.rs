//! Records what runs report: the files they read, their turns, their validation commands and their spend.

use message_schema::id::RepoPath;
use review::{Event, ObservedRun, ReadingState, RunSpend};
use runner::validation::CommandRun;
use spool::SpoolError;
use workspace::clock::Moment;

use super::live::Live;
use super::{Run, is_open};
use crate::mailroom::Mailroom;

/// Records the changed files that an agent was seen to read; true if there are new ones.
pub(super) fn record_reads(
    mailroom: &mut Mailroom,
    live: &mut Live,
    now: Moment,
) -> Result<bool, SpoolError> {
    let reads = std::mem::take(&mut live.reads);
    let Some(review) = mailroom
        .review(&live.run.review)
        .filter(|_| !reads.is_empty() && is_open(mailroom, &live.run))
    else {
        return Ok(false);
    };
    let ReadingState {
        change, observed, ..
    } = &review.reading;
    let is_new = |file: &RepoPath| change.files.contains(file) && !observed.contains(file);
    let files: Vec<RepoPath> = reads.into_iter().filter(is_new).collect();
    if files.is_empty() {
        return Ok(false);
    }
    let event = Event::Observed {
        which: live.run.which(),
        files,
    };
    mailroom.record_run(&event, now)
}

/// Records the part of a run's spend that the ledger does not have; true if there is any.
pub(super) fn record_spend(
    mailroom: &mut Mailroom,
    report: &RunSpend,
    now: Moment,
) -> Result<bool, SpoolError> {
    if mailroom.unrecorded(report).is_nothing() {
        return Ok(false);
    }
    mailroom.record_run(&Event::Spent(report.clone()), now)
}

/// Records how the validation commands went. The agent starts only when the ledger has them, because its answer is
/// judged by them.
pub(super) fn record_validation_runs(
    mailroom: &mut Mailroom,
    live: &mut Live,
    now: Moment,
) -> Result<usize, SpoolError> {
    let mut recorded = 0;
    for CommandRun { command, end } in std::mem::take(&mut live.ran) {
        let checkout = live.run.launch.checkout.as_ref();
        let run = ObservedRun {
            command,
            exit: end.exit,
            duration_ms: end.duration_ms,
            output: end.output,
            head: checkout.map(|own| own.commit.clone()),
        };
        let which = live.run.which();
        recorded += usize::from(mailroom.record_run(&Event::Ran { which, run }, now)?);
    }
    if live.is_validated {
        live.let_start();
    }
    Ok(recorded)
}

pub(super) fn record_turns(
    mailroom: &mut Mailroom,
    run: &Run,
    count: u16,
    now: Moment,
) -> Result<bool, SpoolError> {
    mailroom.record_run(
        &Event::Turns {
            which: run.which(),
            count,
        },
        now,
    )
}
