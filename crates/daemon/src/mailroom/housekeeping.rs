//! Keeps house on a thread of its own while there is no mail: makes a snapshot of the ledger after so many records and,
//! if the config says so, removes old files once a day. No mail waits for either, and nothing depends on them.

use std::path::PathBuf;
use std::thread::JoinHandle;

use spool::{SnapshotInfo, SpoolError};
use workspace::clock::Moment;
use workspace::config::Config;
use workspace::index::LedgerIndex;

use super::Mailroom;
use crate::gc::{self, Sweep};
use workspace::error::chain;

/// A snapshot is due after so many bytes of records, however few they are.
const SNAPSHOT_BYTES: u64 = 4 * 1024 * 1024;

/// The time between two removals of old files, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The housekeeping of one mailroom.
pub(super) struct Housekeeping {
    root: PathBuf,
    config: Config,
    /// The last record of the newest snapshot, or attempt, and the bytes of the ledger then.
    last_snapshot: (u64, u64),
    /// The time of the next sweep for old files, on the monotonic clock.
    sweep_at: u64,
    running: Option<JoinHandle<FinishedTask>>,
}

/// A task with its result.
enum FinishedTask {
    Snapshot(Result<SnapshotInfo, SpoolError>),
    Sweep(Result<Sweep, SpoolError>),
}

impl Housekeeping {
    /// `last_snapshot` is the last record of the snapshot the start restored and the bytes of the ledger before it; 0 if
    /// there was none.
    pub(super) fn new(root: PathBuf, config: Config, last_snapshot: (u64, u64)) -> Self {
        Self {
            root,
            config,
            last_snapshot,
            sweep_at: 0,
            running: None,
        }
    }

    /// Takes another config from the next task on; a running task ends under the old one.
    pub(super) fn reconfigure(&mut self, config: Config) {
        self.config = config;
    }
}

impl Mailroom {
    /// Starts a task that is due; call it while there is nothing else to do and everything is durable.
    pub fn rest(&mut self, moment: Moment) {
        if let Some(running) = self
            .housekeeping
            .running
            .take_if(|running| running.is_finished())
        {
            self.end_task(running);
        }
        if self.housekeeping.running.is_some() || self.spool.waiting() > 0 {
            return;
        }
        if self.is_snapshot_due() {
            self.housekeeping.running = self.make_snapshot();
        } else if self.housekeeping.config.retention.automatic
            && moment.mono >= self.housekeeping.sweep_at
        {
            self.housekeeping.sweep_at = moment.mono.saturating_add(DAY_MS);
            let (root, keep) = (
                self.housekeeping.root.clone(),
                self.housekeeping.config.retention,
            );
            let sweep =
                move || FinishedTask::Sweep(gc::sweep(&root, &keep, moment.utc, gc::Mode::Remove));
            self.housekeeping.running = spawn(sweep);
        }
    }

    /// Ends the housekeeping and makes a snapshot if one is due, since a run that never rests had no other moment for it.
    pub fn close(&mut self) {
        if let Some(running) = self.housekeeping.running.take() {
            self.end_task(running);
        }
        if self.is_snapshot_due()
            && let Some(running) = self.make_snapshot()
        {
            self.end_task(running);
        }
    }

    /// True if enough records are new for a snapshot, or a task that makes one waits to be taken up. Reads no file.
    pub fn wants_rest(&self) -> bool {
        self.housekeeping.running.is_some() || self.has_records_for_snapshot()
    }

    fn has_records_for_snapshot(&self) -> bool {
        self.new_records() >= self.housekeeping.config.ledger.snapshot_records
    }

    fn new_records(&self) -> u64 {
        self.spool.next_seq() - 1 - self.housekeeping.last_snapshot.0
    }

    /// True if the ledger grew enough since the last snapshot.
    fn is_snapshot_due(&self) -> bool {
        let (_, bytes) = self.housekeeping.last_snapshot;
        let is_long = || {
            self.spool
                .ledger_bytes()
                .is_ok_and(|now| now - bytes.min(now) >= SNAPSHOT_BYTES)
        };
        self.has_records_for_snapshot() || (self.new_records() > 0 && is_long())
    }

    fn make_snapshot(&mut self) -> Option<JoinHandle<FinishedTask>> {
        // A snapshot is useless while a power cut could undo a delivery; a later moment will do.
        let maker = self.spool.snapshot_maker().ok().flatten()?;
        self.housekeeping.last_snapshot = (
            self.spool.next_seq() - 1,
            self.spool.ledger_bytes().unwrap_or(0),
        );
        let running =
            spawn(move || FinishedTask::Snapshot(maker.make(&mut LedgerIndex::default())))?;
        self.docket.begin_snapshot();
        Some(running)
    }

    /// Logs what a task did. What a snapshot has is read from it from now on, and given back.
    fn end_task(&mut self, running: JoinHandle<FinishedTask>) {
        match running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        {
            FinishedTask::Snapshot(Ok(made)) => {
                self.docket.rest_on(&made.rows);
                tracing::info!(records = made.seq, bytes = made.bytes, "made a snapshot");
            }
            FinishedTask::Snapshot(Err(error)) => {
                self.docket.give_up_snapshot();
                tracing::warn!(error = %chain(&error), "could not make a snapshot; the next start reads more of the ledger");
            }
            FinishedTask::Sweep(Ok(sweep)) => sweep.log(),
            FinishedTask::Sweep(Err(error)) => {
                tracing::warn!(error = %chain(&error), "could not look for old files; will retry in a day");
            }
        }
    }
}

fn spawn(work: impl FnOnce() -> FinishedTask + Send + 'static) -> Option<JoinHandle<FinishedTask>> {
    let spawned = std::thread::Builder::new()
        .name("housekeeping".to_owned())
        .spawn(work);
    spawned
        .inspect_err(
            |error| tracing::warn!(error = %chain(error), "could not start the housekeeping thread"),
        )
        .ok()
}
