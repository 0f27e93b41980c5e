//! Does housekeeping on a thread of its own while there is no mail: makes a snapshot of the ledger after enough records
//! and, if the config says so, removes old files once a day. No mail waits for either, and nothing depends on them.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use spool::{Removal, SnapshotInfo, Spool, SpoolError};
use workspace::clock::Moment;
use workspace::config::Config;
use workspace::error::chain;
use workspace::index::LedgerIndex;

use crate::docket::Docket;
use crate::gc::{self, RetentionReport};

/// The bytes of new records after which a snapshot is due, however few the records are.
const SNAPSHOT_BYTES: u64 = 4 * 1024 * 1024;

/// The time between two removals of old files, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The housekeeping of one mailroom.
pub(crate) struct Housekeeping {
    root: PathBuf,
    config: Config,
    /// The last record of the newest snapshot, or of the last attempt, and the size of the ledger then, in bytes.
    last_snapshot: (u64, u64),
    /// The monotonic time of the next look for old files.
    old_files_at: u64,
    worker: Option<Worker>,
    is_busy: bool,
}

/// The thread that runs one task after another. The daemon keeps it, because glibc lets each new thread allocate from any
/// free arena: threads that came and went left eight arenas as large as a snapshot's fold.
struct Worker {
    tasks: Sender<Task>,
    finished: Receiver<FinishedTask>,
    thread: JoinHandle<()>,
}

type Task = Box<dyn FnOnce() -> FinishedTask + Send>;

/// A task with its result.
enum FinishedTask {
    Snapshot(Result<SnapshotInfo, SpoolError>),
    OldFiles(Result<RetentionReport, SpoolError>),
}

impl Housekeeping {
    /// `last_snapshot` is the last record of the snapshot that the start restored and the bytes of the ledger before
    /// it; 0 if there was none.
    pub(crate) fn new(root: PathBuf, config: Config, last_snapshot: (u64, u64)) -> Self {
        Self {
            root,
            config,
            last_snapshot,
            old_files_at: 0,
            worker: None,
            is_busy: false,
        }
    }

    /// Uses another config from the next task on.
    pub(crate) fn reconfigure(&mut self, config: Config) {
        self.config = config;
    }

    /// Starts a task that is due. Call it when there is nothing else to do and what can be synced is durable, or when a
    /// checkpoint has just ended.
    pub(crate) fn rest(&mut self, spool: &mut Spool, docket: &mut Docket, moment: Moment) {
        if let Some(finished) = self.poll() {
            finished.handle(docket);
        }
        // An agent that closes its mailbox parks that lane for as long as it likes: nothing else must wait for it.
        if self.is_busy || !spool.is_delivered() {
            return;
        }
        if self.is_snapshot_due(spool) {
            self.begin_snapshot(spool, docket);
        }
        if !self.is_busy && self.config.retention.automatic && moment.mono >= self.old_files_at {
            self.old_files_at = moment.mono.saturating_add(DAY_MS);
            let (root, keep) = (self.root.clone(), self.config.retention);
            self.begin(move || {
                FinishedTask::OldFiles(gc::tidy(&root, &keep, moment.utc, Removal::Now))
            });
        }
    }

    /// Ends the task that is running, and makes a snapshot if one is due: a run that never rested had no other time for
    /// it.
    pub(crate) fn close(&mut self, spool: &mut Spool, docket: &mut Docket) {
        if let Some(finished) = self.wait() {
            finished.handle(docket);
        }
        if self.is_snapshot_due(spool) {
            self.begin_snapshot(spool, docket);
            if let Some(finished) = self.wait() {
                finished.handle(docket);
            }
        }
    }

    /// True if a snapshot has enough new records, or the result of a task has not been handled. Reads no file.
    pub(crate) fn wants_rest(&self, spool: &Spool) -> bool {
        self.is_busy || self.has_records_for_snapshot(spool)
    }

    fn has_records_for_snapshot(&self, spool: &Spool) -> bool {
        self.new_records(spool) >= self.config.ledger.snapshot_records
    }

    fn new_records(&self, spool: &Spool) -> u64 {
        spool.next_seq() - 1 - self.last_snapshot.0
    }

    /// True if the ledger grew enough since the last snapshot.
    fn is_snapshot_due(&self, spool: &Spool) -> bool {
        let (_, bytes) = self.last_snapshot;
        let is_long = || {
            spool
                .ledger_bytes()
                .is_ok_and(|now| now - bytes.min(now) >= SNAPSHOT_BYTES)
        };
        self.has_records_for_snapshot(spool) || (self.new_records(spool) > 0 && is_long())
    }

    fn begin_snapshot(&mut self, spool: &mut Spool, docket: &mut Docket) {
        // While a lane that is not parked has work, try again later.
        let Ok(Some(maker)) = spool.snapshot_maker() else {
            return;
        };
        self.last_snapshot = (spool.next_seq() - 1, spool.ledger_bytes().unwrap_or(0));
        let make = move || FinishedTask::Snapshot(maker.make(&mut LedgerIndex::default()));
        if self.begin(make) {
            docket.begin_snapshot();
        }
    }

    /// Hands a task to the worker; false if no thread could be started.
    fn begin(&mut self, task: impl FnOnce() -> FinishedTask + Send + 'static) -> bool {
        if self.worker.is_none() {
            self.worker = Worker::start();
        }
        let worker = self.worker.as_ref();
        self.is_busy = worker.is_some_and(|worker| worker.tasks.send(Box::new(task)).is_ok());
        self.is_busy
    }

    /// Returns the result of the task if it has finished.
    fn poll(&mut self) -> Option<FinishedTask> {
        let worker = self.worker.take_if(|_| self.is_busy)?;
        let finished = worker.finished.try_recv();
        if finished.is_err() && !worker.thread.is_finished() {
            self.worker = Some(worker);
            return None;
        }
        Some(self.end(worker, finished.ok()))
    }

    /// Waits for the task, if one is running.
    fn wait(&mut self) -> Option<FinishedTask> {
        let worker = self.worker.take_if(|_| self.is_busy)?;
        let finished = worker.finished.recv().ok();
        Some(self.end(worker, finished))
    }

    fn end(&mut self, worker: Worker, finished: Option<FinishedTask>) -> FinishedTask {
        self.is_busy = false;
        if let Some(finished) = finished {
            self.worker = Some(worker);
            return finished;
        }
        let panic = worker.thread.join();
        std::panic::resume_unwind(panic.expect_err("a worker that ends before its caller panicked"))
    }
}

impl FinishedTask {
    /// Logs the result. The daemon frees everything that a new snapshot holds and reads it from there; the system gets
    /// that memory, and what the worker freed.
    fn handle(self, docket: &mut Docket) {
        match self {
            Self::Snapshot(Ok(made)) => {
                docket.rest_on(&made.rows);
                os_calls::give_back_memory();
                tracing::info!(records = made.seq, bytes = made.bytes, "made a snapshot");
            }
            Self::Snapshot(Err(error)) => {
                docket.give_up_snapshot();
                tracing::warn!(error = %chain(&error), "could not make a snapshot; the next start reads more of the ledger");
            }
            Self::OldFiles(Ok(report)) => report.log(),
            Self::OldFiles(Err(error)) => {
                tracing::warn!(error = %chain(&error), "could not look for old files; will retry in a day");
            }
        }
    }
}

impl Worker {
    fn start() -> Option<Self> {
        let (tasks, waiting) = mpsc::channel::<Task>();
        let (tell, finished) = mpsc::channel();
        let work = move || {
            // A mailroom that was dropped before the task ended does not receive the result.
            waiting.iter().for_each(|task| drop(tell.send(task())));
        };
        let started = std::thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(work);
        let thread = started
            .inspect_err(
                |error| tracing::warn!(error = %chain(error), "could not start the housekeeping thread"),
            )
            .ok()?;
        Some(Self {
            tasks,
            finished,
            thread,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use spool::Count;
    use workspace::config::Config;

    use super::{FinishedTask, Housekeeping};
    use crate::gc::RetentionReport;

    fn housekeeping() -> Housekeeping {
        Housekeeping::new("nowhere".into(), Config::default(), (0, 0))
    }

    fn swept() -> FinishedTask {
        FinishedTask::OldFiles(Ok(RetentionReport {
            folders: Vec::new(),
            torn: Count::default(),
        }))
    }

    #[test]
    fn one_thread_does_all_tasks() {
        let mut housekeeping = housekeeping();
        let (tell, threads) = mpsc::channel();
        for _ in 0..3 {
            let tell = tell.clone();
            assert!(housekeeping.begin(move || {
                tell.send(thread::current().id()).expect("the test listens");
                swept()
            }));
            assert!(housekeeping.is_busy);
            assert!(housekeeping.wait().is_some());
            assert!(!housekeeping.is_busy && housekeeping.poll().is_none());
        }
        drop(tell);
        let threads: Vec<_> = threads.iter().collect();
        assert_eq!(threads, [threads[0]; 3]);
        assert_ne!(threads[0], thread::current().id());
    }

    #[test]
    fn a_task_that_is_not_over_holds_nobody_up() {
        let mut housekeeping = housekeeping();
        let (go, gone) = mpsc::channel::<()>();
        housekeeping.begin(move || {
            gone.recv().expect("the test lets it go");
            swept()
        });
        assert!(housekeeping.poll().is_none() && housekeeping.is_busy);
        go.send(()).expect("the task waits");
        assert!(housekeeping.wait().is_some());
    }

    #[test]
    #[should_panic = "a broken invariant"]
    fn a_task_that_panics_does_so_for_who_waits() {
        let mut housekeeping = housekeeping();
        housekeeping.begin(|| panic!("a broken invariant"));
        housekeeping.wait();
    }
}
