//! Runs the main loop: it wakes the mailroom on events, on time and at the end.

mod checkpoint;
mod file_limit;
mod once;
mod outboxes;
mod recovered;
mod reload;
mod signals;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use file_events::Watch;
use spool::{Os, SpoolError};
use tokio::sync::Notify;
use workspace::clock::{Clock, Moment};
use workspace::error::chain;

use self::file_limit::prove_room_for_files;
pub use self::once::{ServedOnce, Tally, serve_once, serve_shared_once};
use self::outboxes::watch_outbox;
pub use self::signals::Until;
use self::signals::{Heard, Signals};
use crate::invocation::AgentCommands;
use crate::mailroom::{Mailroom, MailroomError, Pass, Sharing};
use crate::metrics::Exporter;
use crate::schedule::{Duty, Schedule};
use crate::supervisor::Supervisor;

/// The interval between two sweeps, in milliseconds.
const SWEEP_MS: u64 = if cfg!(target_os = "linux") {
    2_000
} else {
    1_000
};

/// The quiet time, in milliseconds, after which a checkpoint is made.
const IDLE_MS: u64 = 1_000;

/// The pause after a write to a full disk, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// The time to judge a batch before it is committed. A writer waits for at most two batches, however long the files of
/// others take. `serve --once` has no such limit, because nobody waits.
const BATCH_TIME: Duration = Duration::from_millis(4);

/// The number of files to make after which a batch ends, because writing files takes longer than judging.
const BATCH_FILES: usize = 128;

/// The bytes of messages and packets after which a batch ends: a message of nearly the largest size is alone in its sync.
const BATCH_BYTES: usize = 192 * 1024;

/// The longest step through the outboxes or inboxes. However many agents there are, the loop then serves new writers.
const STEP_TIME: Duration = Duration::from_millis(8);

/// An error that stops the daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The mailroom cannot be opened or cannot continue.
    #[error(transparent)]
    Mailroom(#[from] MailroomError),
    /// The runtime or its signal handlers cannot be set up.
    #[error("cannot set up the daemon")]
    Setup(#[source] std::io::Error),
    /// The daemon cannot listen at the address in `[metrics] listen`.
    #[error("cannot listen on metrics.listen")]
    Metrics(#[source] std::io::Error),
}

impl DaemonError {
    /// True if another process has the lock of the workspace.
    pub fn is_locked(&self) -> bool {
        matches!(
            self,
            Self::Mailroom(MailroomError::Spool(SpoolError::Locked { .. }))
        )
    }
}

impl From<SpoolError> for DaemonError {
    fn from(error: SpoolError) -> Self {
        Self::Mailroom(error.into())
    }
}

/// The reason a daemon ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// A signal or the end of its input stopped it.
    Stopped,
    /// Agents came home to this host or left it; a daemon opened again handles their mail.
    OtherHomes,
}

/// Serves the workspace until SIGINT or SIGTERM, and reloads its config on SIGHUP; at a terminal, SIGHUP ends it,
/// because the terminal is gone. `ready` is called once, after recovery and the first sweep.
pub fn serve(root: &Path, until: Until, ready: impl FnOnce(&Mailroom)) -> Result<(), DaemonError> {
    serve_host(root, until, None, ready).map(drop)
}

/// Serves the workspace like [`serve`], as one of the hosts that share its ledger. It also ends when an agent's home
/// changes to or from this host.
pub fn serve_shared(
    root: &Path,
    until: Until,
    sharing: Sharing,
    ready: impl FnOnce(&Mailroom),
) -> Result<ServeEnd, DaemonError> {
    serve_host(root, until, Some(sharing), ready)
}

fn serve_host(
    root: &Path,
    until: Until,
    sharing: Option<Sharing>,
    ready: impl FnOnce(&Mailroom),
) -> Result<ServeEnd, DaemonError> {
    prove_room_for_files().map_err(DaemonError::Setup)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(DaemonError::Setup)?.block_on(async {
        // Set up before the workspace is opened: a signal during the recovery ends that as well.
        let signals = Signals::listen(until).map_err(DaemonError::Setup)?;
        let mut daemon = match Daemon::open(root, sharing, signals.stops()) {
            Err(DaemonError::Mailroom(MailroomError::Spool(SpoolError::Interrupted))) => {
                tracing::info!("stopping; the next start does what is left");
                return Ok(ServeEnd::Stopped);
            }
            opened => opened?,
        };
        daemon.ready = Some(Box::new(ready));
        daemon.run(signals).await
    })
}

type Ready<'r> = Box<dyn FnOnce(&Mailroom) + 'r>;

struct Daemon<'r> {
    clock: Clock,
    mailroom: Mailroom,
    commands: AgentCommands,
    watch: Watch,
    /// The agent of each outbox, by directory.
    outboxes: HashMap<PathBuf, String>,
    /// The directory of findings packets.
    findings: PathBuf,
    /// True if several packets changed before the last look at hints.
    has_many_packets: bool,
    /// The directory of orders.
    orders: PathBuf,
    /// The sweep in progress: its number, and the time of the request for it.
    sweeping: Option<(u64, Moment)>,
    /// True if only a sweep after this one can show what the watcher missed.
    sweep_again: bool,
    /// Notified when the log that several hosts share has changed.
    log_changed: Arc<Notify>,
    schedule: Schedule<Duty>,
    /// Sweeps before this monotonic time, in milliseconds, neither scan for unknown senders nor report.
    report_at: u64,
    /// Called once the first sweep has seen every outbox.
    ready: Option<Ready<'r>>,
    supervisor: Supervisor,
    checkpoints: checkpoint::Checkpoints,
    /// The server of the metrics, if there is one.
    exporter: Option<Exporter>,
}

impl<'r> Daemon<'r> {
    fn open(
        root: &Path,
        sharing: Option<Sharing>,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, DaemonError> {
        let clock = Clock::start();
        // The watcher reports paths as given, and a relative root would change its meaning with the working directory.
        let root = std::path::absolute(root).map_err(DaemonError::Setup)?;
        let (mut mailroom, recovery) =
            Mailroom::open_until(interrupt, &root, Arc::new(Os), sharing)?;
        let log_changed = Arc::new(Notify::new());
        let waker = Arc::clone(&log_changed);
        mailroom.wake_by(move || waker.notify_one());
        recovered::log(&recovery);
        Ok(Self {
            log_changed,
            ..Self::on(clock, mailroom)
        })
    }

    /// A daemon that has done nothing yet, on an open mailroom.
    fn on(clock: Clock, mailroom: Mailroom) -> Self {
        let (findings, orders) = (mailroom.findings(), mailroom.orders());
        Self {
            clock,
            mailroom,
            commands: AgentCommands::default(),
            watch: Watch::blind(),
            outboxes: HashMap::new(),
            findings,
            has_many_packets: false,
            orders,
            sweeping: None,
            sweep_again: false,
            log_changed: Arc::default(),
            schedule: Schedule::default(),
            report_at: 0,
            ready: None,
            supervisor: Supervisor::from_environment(),
            checkpoints: checkpoint::Checkpoints::default(),
            exporter: None,
        }
    }

    /// Prepares the loop without judging anything.
    fn set_up(&mut self) -> Result<(), DaemonError> {
        self.start_watching();
        self.mailroom
            .limit_batches(BATCH_TIME, BATCH_FILES, BATCH_BYTES);
        self.mailroom.limit_step_time(STEP_TIME);
        self.exporter = self.listen(self.mailroom.config())?;
        self.schedule.set(Duty::Sweep, Some(0));
        Ok(())
    }

    async fn run(mut self, mut signals: Signals) -> Result<ServeEnd, DaemonError> {
        self.set_up()?;
        loop {
            let now = self.clock.read();
            // The cause of the wakeup may have left something to judge.
            self.schedule.no_later(Duty::Pass, now.mono);
            self.perform_due(now)?;
            self.turned(now);
            if self.mailroom.has_other_homes() {
                return self.stop().map(|()| ServeEnd::OtherHomes);
            }
            let wait = self.pause(now);
            match self.woken(&mut signals, wait).await {
                Some(Heard::Stop) => return self.stop().map(|()| ServeEnd::Stopped),
                Some(Heard::Reload) => self.reload(),
                None => {}
            }
        }
    }

    /// Waits for the first event of any kind, and returns the request of a signal.
    async fn woken(&mut self, signals: &mut Signals, wait: Duration) -> Option<Heard> {
        tokio::select! {
            biased;
            heard = signals.next() => return Some(heard),
            () = self.watch.changed() => self.take_hints(),
            () = self.commands.changed() => {}
            () = self.log_changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
        None
    }

    fn perform_due(&mut self, now: Moment) -> Result<(), DaemonError> {
        for duty in self.schedule.due(now.mono) {
            // A pass that delivered has postponed the checkpoint, so one sync serves deliveries in a row.
            if self.schedule.is_due(duty, now.mono) {
                self.perform(duty, now)?;
            }
        }
        Ok(())
    }

    fn perform(&mut self, duty: Duty, now: Moment) -> Result<(), DaemonError> {
        match duty {
            Duty::Hints => self.take_hints(),
            Duty::Sweep => {
                let at = self.sweep(now)?;
                self.schedule.set(duty, Some(at));
                if self.sweeping.is_none() && now.mono >= self.report_at {
                    self.mailroom.look_for_unknown_senders(now);
                    self.look_for_changed_originals(now)?;
                    self.report();
                    self.report_at = now.mono + SWEEP_MS;
                }
            }
            Duty::Pass => match self.pass(now) {
                Ok(pass) if pass.is_empty() => {}
                Ok(_) => self.put_off_checkpoint(now),
                Err(SpoolError::NotTaken { why }) => {
                    tracing::debug!(
                        why,
                        "the shared ledger did not take a batch; judging it again"
                    );
                }
                Err(error) if error.is_retryable() => {
                    tracing::error!(error = %chain(&error), "cannot write the ledger; nothing is lost, will retry");
                    self.schedule.rest_until(now.mono + RETRY_MS);
                }
                Err(error) => return Err(error.into()),
            },
            Duty::Checkpoint => {
                let again = self.checkpoint_beside(now)?;
                self.schedule.set(duty, again);
            }
            Duty::Beat => self.supervisor.beat(now.mono),
        }
        Ok(())
    }

    /// Postpones the checkpoint, so that one sync serves deliveries in a row. Does not postpone a running checkpoint, nor
    /// one of many files, nor one that a snapshot waits for: otherwise memory and the next start would grow for as long
    /// as mail keeps coming.
    fn put_off_checkpoint(&mut self, now: Moment) {
        let at = now.mono + IDLE_MS;
        let is_many = self.mailroom.wants_checkpoint_soon();
        if self.checkpoints.is_running() || is_many || self.mailroom.wants_rest() {
            self.schedule.no_later(Duty::Checkpoint, at);
        } else {
            self.schedule.set(Duty::Checkpoint, Some(at));
        }
    }

    /// Records what writers changed in `sent/`. If the ledger cannot be written now, a later sweep or start does it.
    fn look_for_changed_originals(&mut self, now: Moment) -> Result<(), SpoolError> {
        match self.mailroom.look_for_changed_originals(now) {
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "cannot check the files in sent/; will retry");
                Ok(())
            }
            result => result,
        }
    }

    /// The time until the next duty, unless something happens first.
    fn pause(&mut self, now: Moment) -> Duration {
        // An agent that closes its mailbox keeps its files unsynced for as long as it likes: nothing else waits for it.
        if self.schedule.at(Duty::Checkpoint).is_none() || self.checkpoints.unsynced.is_some() {
            self.mailroom.rest(now);
        }
        let wakeups = [
            self.mailroom.schedule(now).next(),
            self.commands.next_wakeup(),
        ];
        let pass = wakeups.into_iter().flatten().min();
        self.schedule.set(Duty::Pass, pass);
        self.schedule.set(Duty::Beat, self.supervisor.next_beat());
        let next = self.schedule.next().expect("the next sweep is always due");
        Duration::from_millis(next.saturating_sub(self.clock.read().mono))
    }

    fn stop(mut self) -> Result<(), DaemonError> {
        tracing::info!("stopping");
        self.supervisor.stopping();
        self.commands.stop();
        self.mailroom.finish(self.clock.read())?;
        // An agent that closed its mailbox makes this fail; the next start looks for what may be missing.
        self.checkpoint_now()?;
        self.mailroom.close();
        Ok(())
    }

    /// Makes one pass and ends the waits whose deadline has come.
    fn pass(&mut self, now: Moment) -> Result<Pass, SpoolError> {
        let Self {
            mailroom,
            watch,
            outboxes,
            ..
        } = self;
        let mut pass = mailroom.pass_watching(now, &mut |agent, outbox| {
            watch_outbox(watch, outboxes, agent, outbox);
        })?;
        pass.events += self.mailroom.keep_deadlines_in_turn(now)?.events;
        pass.events += self
            .commands
            .tend(&mut self.mailroom, now, !pass.is_empty())?;
        Ok(pass)
    }
}

#[cfg(test)]
mod tests {
    use message_schema::id::AgentName;
    use spool::{DiskFault, FaultyDisk};

    use super::*;

    /// Makes a workspace of claude and codex.
    pub(super) fn init(root: &Path) {
        let agents = ["claude", "codex"].map(|name| AgentName::new(name).expect("a name"));
        workspace::directory::init(root, &agents).expect("a workspace");
    }

    /// A daemon that has done nothing yet, in a new workspace of claude and codex.
    pub(super) fn opened<'r>(root: &Path) -> Daemon<'r> {
        init(root);
        Daemon::open(root, None, Arc::default()).expect("a start")
    }

    /// Writes a question of claude's into its outbox, and returns the path.
    pub(super) fn write_question(root: &Path, id: &str) -> PathBuf {
        let text = format!(
            "id: \"{id}\"\nfrom: claude\nto: codex\ntype: question\npriority: P2\n\
             created_at_utc: \"2026-02-13T10:00:00Z\"\nsubject: \"Which?\"\nbody: \"?\"\n"
        );
        let path = root.join(format!("agents/claude/outbox/{id}.yaml"));
        std::fs::write(&path, text).expect("a message");
        path
    }

    #[test]
    fn a_change_in_sent_that_finds_the_disk_full_stops_no_daemon_and_is_recorded_later() {
        const ENOSPC: i32 = 28;
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        init(root);
        write_question(root, "q-1");
        assert_eq!(serve_once(root).expect("its work").accepted, 1);
        let sent = root.join("agents/claude/sent/q-1.yaml");
        std::fs::write(sent, "id: x\n").expect("a file to change");

        let disk = Arc::new(FaultyDisk::new("boot"));
        let opened = Mailroom::open_on(root, Arc::clone(&disk) as _);
        let mut daemon = Daemon::on(Clock::start(), opened.expect("a start").0);
        let mut now = daemon.clock.read();
        let mut recorded = || {
            let looked = daemon.look_for_changed_originals(now);
            looked.expect("a later look records it");
            now.mono += 60_000;
            let mut count = 0;
            let read = spool::read_ledger(root, &mut |entry| {
                count += u32::from(entry.kind == "sent_differs");
                Ok(())
            });
            read.map(|_| count).expect("a ledger")
        };
        disk.set(Some(DiskFault::FailFrom(1, ENOSPC)));
        assert_eq!(recorded(), 0);
        assert!(disk.changes() > 0, "it tried");
        disk.set(None);
        assert_eq!([recorded(), recorded()], [1, 1]);
    }
}
