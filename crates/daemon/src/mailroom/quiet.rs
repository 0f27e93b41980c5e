//! What is done at quiet moments, on a thread of its own: a snapshot of the ledger after so many records,
//! and, where the config says so, the removal of old files once a day. Neither is ever waited for
//! while there is mail, and nothing depends on either.

use std::path::PathBuf;
use std::thread::JoinHandle;

use spool::{SnapshotInfo, SpoolError};
use workspace::clock::Moment;
use workspace::config::Config;
use workspace::index::LedgerIndex;

use super::Mailroom;
use crate::gc::{self, Sweep};
use workspace::error::chain;

/// So many bytes of records ask for a snapshot, however few records they are.
const SNAPSHOT_BYTES: u64 = 64 * 1024 * 1024;

/// How often old files are removed, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The housekeeping of one mailroom.
pub(super) struct Quiet {
    root: PathBuf,
    config: Config,
    /// The last record a snapshot was made of, or tried, and how long the ledger was then.
    kept: (u64, u64),
    /// When old files are looked for next, on the monotonic clock.
    sweep_at: u64,
    running: Option<JoinHandle<Done>>,
}

/// What was done.
enum Done {
    Snapshot(Result<SnapshotInfo, SpoolError>),
    Sweep(Result<Sweep, SpoolError>),
}

impl Quiet {
    /// `kept` is the record of the snapshot that the start took up and the bytes of the ledger before it; 0 if there was
    /// none.
    pub(super) fn new(root: PathBuf, config: Config, kept: (u64, u64)) -> Self {
        Self {
            root,
            config,
            kept,
            sweep_at: 0,
            running: None,
        }
    }

    /// Goes by another config from the next quiet moment on; what is running ends under the old one.
    pub(super) fn reconfigure(&mut self, config: Config) {
        self.config = config;
    }
}

impl Mailroom {
    /// Does what is due while there is nothing else to do; to be called when all is made durable.
    pub fn rest(&mut self, moment: Moment) {
        if let Some(running) = self.quiet.running.take_if(|running| running.is_finished()) {
            tell(running);
        }
        if self.quiet.running.is_some() || self.spool.waiting() > 0 {
            return;
        }
        if self.is_snapshot_due() {
            self.quiet.running = self.make_snapshot();
        } else if self.quiet.config.retention.automatic && moment.mono >= self.quiet.sweep_at {
            self.quiet.sweep_at = moment.mono.saturating_add(DAY_MS);
            let (root, keep) = (self.quiet.root.clone(), self.quiet.config.retention);
            let sweep = move || Done::Sweep(gc::sweep(&root, &keep, moment.utc, gc::Mode::Remove));
            self.quiet.running = spawn(sweep);
        }
    }

    /// Ends the housekeeping, with a snapshot if one is due: a run that never rests makes it here.
    pub fn close(&mut self) {
        if let Some(running) = self.quiet.running.take() {
            tell(running);
        }
        if self.is_snapshot_due()
            && let Some(running) = self.make_snapshot()
        {
            tell(running);
        }
    }

    /// Whether so much was written since the last one.
    fn is_snapshot_due(&self) -> bool {
        let (seq, bytes) = self.quiet.kept;
        let records = self.spool.next_seq() - 1 - seq;
        let is_long = || {
            self.spool
                .ledger_bytes()
                .is_ok_and(|now| now - bytes.min(now) >= SNAPSHOT_BYTES)
        };
        records >= self.quiet.config.ledger.snapshot_records || (records > 0 && is_long())
    }

    fn make_snapshot(&mut self) -> Option<JoinHandle<Done>> {
        // While a power cut could undo a delivery a snapshot is of no use; there are quieter moments.
        let maker = self.spool.snapshot_maker().ok().flatten()?;
        self.quiet.kept = (
            self.spool.next_seq() - 1,
            self.spool.ledger_bytes().unwrap_or(0),
        );
        spawn(move || Done::Snapshot(maker.make(&mut LedgerIndex::default())))
    }
}

fn spawn(work: impl FnOnce() -> Done + Send + 'static) -> Option<JoinHandle<Done>> {
    let spawned = std::thread::Builder::new()
        .name("housekeeping".to_owned())
        .spawn(work);
    spawned
        .inspect_err(
            |error| tracing::warn!(error = %chain(error), "no thread for the housekeeping"),
        )
        .ok()
}

fn tell(running: JoinHandle<Done>) {
    match running
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    {
        Done::Snapshot(Ok(made)) => {
            tracing::info!(
                records = made.seq,
                bytes = made.bytes,
                "a snapshot was made"
            );
        }
        Done::Snapshot(Err(error)) => {
            tracing::warn!(error = %chain(&error), "no snapshot could be made; the next start reads more of the ledger");
        }
        Done::Sweep(Ok(sweep)) => sweep.log(),
        Done::Sweep(Err(error)) => {
            tracing::warn!(error = %chain(&error), "old files could not be looked for; it is tried again in a day");
        }
    }
}
