//! Runs the main loop: it wakes the mailroom on events, on time and at the end.

mod flush;
mod recovered;
mod reload;
mod signals;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use message_schema::id::AgentName;
use spool::{FileName, SpoolError};
use tokio::sync::Notify;
use workspace::clock::{Clock, Moment};
use workspace::error::chain;

use self::signals::{Heard, Signals};
use crate::docket::on_the_roll;
use crate::invocation::Runner;
use crate::mailroom::{Mailroom, MailroomError, Pass, Sharing, Standing};
use crate::metrics::Exporter;
use crate::schedule::{Duty, Schedule, Wakeup};
use crate::supervisor::Supervisor;
use crate::watch::Watch;

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

/// The longest step through the outboxes or inboxes. However many agents there are, the loop then serves new writers.
const STEP_TIME: Duration = Duration::from_millis(8);

/// The pause between two sweeps is this many times as long as a sweep, up to the maximum below, in milliseconds.
const SWEEP_PAUSE: u64 = 30;
const SWEEP_MAX_MS: u64 = 10_000;

/// The time that `serve --once` gives files that may become finished or readable, in milliseconds: a little longer than
/// the longest patience with a file whose packet is missing.
const ONCE_FILES_MS: u64 = 6_000;

/// The time for which `serve --once` retries failed work, and the pause between tries, in milliseconds.
const ONCE_RETRY_MS: (u64, u64) = (1_000, 100);

/// The time that `serve --once` gives a silent log, in milliseconds: a cluster elects a new leader within it.
const ONCE_LOG_MS: u64 = 15_000;

/// The number of files that the runtime and its signal handlers open.
const RUNTIME_FILES: usize = 8;

/// The number of files that a pass over one agent's mail has open at once, with some to spare.
const PASS_FILES: usize = 10;

/// The results of `serve --once`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages archived as duplicates.
    pub duplicates: usize,
    /// Files that could not be delivered or put away.
    pub undelivered: usize,
    /// Outboxes and files that could not be read.
    pub unread: usize,
}

/// The results of `serve --once` as one of the hosts that share a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedOnce {
    /// The results of judging on this host.
    pub tally: Tally,
    /// The standing of this host at the end. Unless it is in step, it accepted nothing more.
    pub standing: Standing,
    /// True if agents came home to this host or left it; a second run then handles their mail.
    pub has_other_homes: bool,
}

/// An error that stops the daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The mailroom cannot be opened or cannot continue.
    #[error(transparent)]
    Mailroom(#[from] MailroomError),
    /// The runtime or its signal handlers cannot be set up.
    #[error("the daemon cannot be set up")]
    Setup(#[source] std::io::Error),
    /// The daemon cannot listen at the address in `[metrics] listen`.
    #[error("metrics.listen cannot be listened to")]
    Metrics(#[source] std::io::Error),
}

impl From<SpoolError> for DaemonError {
    fn from(error: SpoolError) -> Self {
        Self::Mailroom(error.into())
    }
}

/// The event, besides an error, that ends a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// A signal.
    Signal,
    /// A signal, or the end of standard input: the daemon serves only the process at the other end.
    EndOfInput,
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
    prove_room_for_files(RUNTIME_FILES).map_err(DaemonError::Setup)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(DaemonError::Setup)?.block_on(async {
        // Set up before the workspace is opened: a signal during the recovery ends the daemon after it.
        let signals = Signals::listen(until).map_err(DaemonError::Setup)?;
        let mut daemon = Daemon::open(root, sharing)?;
        daemon.ready = Some(Box::new(ready));
        daemon.run(signals).await
    })
}

/// Opens this many files and closes them again. Without room for its files the runtime would panic, and without room
/// for a pass the daemon would serve and deliver nothing.
fn prove_room_for_files(count: usize) -> std::io::Result<()> {
    (0..count)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect::<std::io::Result<Vec<_>>>()
        .map(drop)
}

/// Judges and delivers everything there is, waits for unfinished files, then stops.
pub fn serve_once(root: &Path) -> Result<Tally, DaemonError> {
    let mut daemon = Daemon::open(root, None)?;
    daemon.serve_once(0)
}

/// Does the same as one of the hosts that share the ledger: takes over what the log has, at least up to record `end`,
/// then judges what is here. Returns whether this host is then in step with the log. Waits some seconds for a log that
/// does not answer.
pub fn serve_shared_once(
    root: &Path,
    sharing: Sharing,
    end: u64,
) -> Result<ServedOnce, DaemonError> {
    let mut daemon = Daemon::open(root, Some(sharing))?;
    let tally = daemon.serve_once(end)?;
    let standing = daemon.mailroom.standing().cloned();
    Ok(ServedOnce {
        tally,
        standing: standing.expect("it shares a ledger"),
        has_other_homes: daemon.mailroom.has_other_homes(),
    })
}

/// Treats records that the shared ledger did not take as no result: the next pass or start judges them again.
fn untaken<T: Default>(done: Result<T, SpoolError>) -> Result<T, SpoolError> {
    match done {
        Err(SpoolError::NotTaken { .. }) => Ok(T::default()),
        done => done,
    }
}

type Ready<'r> = Box<dyn FnOnce(&Mailroom) + 'r>;

struct Daemon<'r> {
    clock: Clock,
    mailroom: Mailroom,
    runner: Runner,
    watch: Watch,
    /// The agent of each outbox, by directory.
    outboxes: HashMap<PathBuf, String>,
    /// The directory of findings packets.
    findings: PathBuf,
    /// The directory of orders.
    orders: PathBuf,
    /// The sweep in progress: its number, and the time of the request for it.
    sweeping: Option<(u64, Moment)>,
    /// True if only a sweep after this one can show what the watcher missed.
    sweep_again: bool,
    /// Rings when the log that several hosts share has news.
    log_rang: Arc<Notify>,
    schedule: Schedule<Duty>,
    /// Sweeps before this monotonic time, in milliseconds, neither scan for unknown senders nor report.
    report_at: u64,
    /// Called once the first sweep has seen every outbox.
    ready: Option<Ready<'r>>,
    supervisor: Supervisor,
    flush: flush::Flush,
    /// The server of the metrics, if there is one.
    exporter: Option<Exporter>,
}

impl<'r> Daemon<'r> {
    fn open(root: &Path, sharing: Option<Sharing>) -> Result<Self, DaemonError> {
        let clock = Clock::start();
        // The watcher reports paths as given, and a relative root would change its meaning with the working directory.
        let root = std::path::absolute(root).map_err(DaemonError::Setup)?;
        let (mut mailroom, recovery) = match sharing {
            Some(sharing) => Mailroom::open_shared(&root, sharing)?,
            None => Mailroom::open(&root)?,
        };
        let log_rang = Arc::new(Notify::new());
        let bell = Arc::clone(&log_rang);
        mailroom.ring_by(move || bell.notify_one());
        recovered::tell(&recovery);
        let (findings, orders) = (mailroom.findings(), mailroom.orders());
        Ok(Self {
            clock,
            mailroom,
            runner: Runner::default(),
            watch: Watch::blind(),
            outboxes: HashMap::new(),
            findings,
            orders,
            sweeping: None,
            sweep_again: false,
            log_rang,
            schedule: Schedule::default(),
            report_at: 0,
            ready: None,
            supervisor: Supervisor::from_environment(),
            flush: flush::Flush::default(),
            exporter: None,
        })
    }

    /// Repeats passes until nothing is left to do, then finishes what it began.
    fn serve_once(&mut self, end: u64) -> Result<Tally, DaemonError> {
        prove_room_for_files(PASS_FILES).map_err(DaemonError::Setup)?;
        self.sweep_once()?;
        let mut moved_at = self.clock.read().mono;
        let mut head = self.mailroom.head();
        loop {
            let now = self.clock.read();
            let was_in_step = self.mailroom.is_in_step();
            let pass = untaken(self.mailroom.pass(now))?;
            let done = self.clock.read().mono;
            // Time spent waiting for the log does not count: the files of this host had none of it.
            moved_at += done.saturating_sub(now.mono);
            let is_in_step = self.mailroom.is_in_step();
            if !pass.is_empty() || self.mailroom.head() != head || is_in_step != was_in_step {
                moved_at = done;
                head = self.mailroom.head();
            }
            let Some(due) = self.next_try(moved_at, now.mono, end) else {
                break;
            };
            let wait = due.saturating_sub(self.clock.read().mono);
            std::thread::sleep(Duration::from_millis(wait));
            if self.mailroom.left_over().at(Wakeup::Sweep).is_some() {
                self.sweep_once()?;
            }
        }
        let now = self.clock.read();
        if self.mailroom.is_in_step() {
            untaken(self.mailroom.keep_deadlines(now.utc, now))?;
            untaken(self.mailroom.pass(now))?;
            self.look_for_changed_originals(now)?;
        }
        self.mailroom.finish(now)?;
        self.mailroom.checkpoint()?;
        self.mailroom.close();
        let Pass {
            accepted,
            refused,
            duplicates,
            ..
        } = *self.mailroom.judged();
        Ok(Tally {
            accepted,
            refused,
            duplicates,
            undelivered: self.mailroom.undelivered(),
            unread: self.mailroom.unread(),
        })
    }

    /// The time of the next try if nothing has happened since `moved_at` and the log must reach record `end`; none if
    /// the time to wait is over. All times are in milliseconds of the monotonic clock.
    fn next_try(&self, moved_at: u64, now: u64, end: u64) -> Option<u64> {
        let quiet = now.saturating_sub(moved_at);
        let (retry, pause) = ONCE_RETRY_MS;
        let mut left = self.mailroom.left_over();
        left.not_before(Wakeup::Sweep, now + pause);
        let has_followed = self.mailroom.is_in_step() && self.mailroom.head().seq >= end;
        if has_followed || quiet >= ONCE_LOG_MS {
            left.set(Wakeup::Log, None);
        }
        if quiet >= ONCE_FILES_MS {
            left.set(Wakeup::Look, None);
        }
        if quiet >= retry {
            left.set(Wakeup::Retry, None);
            left.set(Wakeup::Sweep, None);
        }
        left.next()
    }

    /// Prepares the loop without judging anything.
    fn set_up(&mut self) -> Result<(), DaemonError> {
        self.start_watching();
        prove_room_for_files(PASS_FILES).map_err(DaemonError::Setup)?;
        self.mailroom.limit_batches(BATCH_TIME, BATCH_FILES);
        self.mailroom.limit_step_time(STEP_TIME);
        self.exporter = self.listen(self.mailroom.config())?;
        self.schedule.set(Duty::Sweep, Some(0));
        Ok(())
    }

    async fn run(mut self, mut signals: Signals) -> Result<ServeEnd, DaemonError> {
        self.set_up()?;
        loop {
            let now = self.clock.read();
            // Whatever woke the daemon may have left something to judge.
            self.schedule.no_later(Duty::Pass, now.mono);
            for duty in self.schedule.due(now.mono) {
                // A pass that delivered has postponed the checkpoint, so one sync serves deliveries in a row.
                if self.schedule.is_due(duty, now.mono) {
                    self.perform(duty, now)?;
                }
            }
            self.turned(now);
            if self.mailroom.has_other_homes() {
                return self.stop().map(|()| ServeEnd::OtherHomes);
            }
            let wait = self.pause(now);
            tokio::select! {
                biased;
                heard = signals.next() => match heard {
                    Heard::Stop => return self.stop().map(|()| ServeEnd::Stopped),
                    Heard::Reload => self.reload(),
                },
                () = self.watch.rings() => self.take_hints(),
                () = self.runner.rings() => {}
                () = self.log_rang.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn perform(&mut self, duty: Duty, now: Moment) -> Result<(), DaemonError> {
        match duty {
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
                let again = self.checkpoint_flushed(now)?;
                self.schedule.set(duty, again);
            }
            Duty::Beat => self.supervisor.beat(now.mono),
        }
        Ok(())
    }

    /// Postpones the checkpoint, so that one sync serves deliveries in a row. If a snapshot is due, it is not
    /// postponed: a snapshot needs a checkpoint, and without one memory and the next start would grow for as long as
    /// mail keeps coming.
    fn put_off_checkpoint(&mut self, now: Moment) {
        let at = now.mono + IDLE_MS;
        if self.mailroom.wants_rest() {
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
        if self.schedule.at(Duty::Checkpoint).is_none() {
            self.mailroom.rest(now);
        }
        let wakeups = [
            self.mailroom.schedule(now).next(),
            self.runner.next_wakeup(),
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
        self.runner.stop();
        self.mailroom.finish(self.clock.read())?;
        // An agent that closed its mailbox makes this fail; the next start looks for what may be missing.
        self.checkpoint()?;
        self.mailroom.close();
        Ok(())
    }

    /// Makes deliveries durable; returns when to try again if that could not begin.
    fn checkpoint(&mut self) -> Result<Option<u64>, SpoolError> {
        match self.mailroom.checkpoint() {
            Ok(()) => Ok(None),
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "could not sync delivered files; will retry");
                Ok(Some(self.clock.read().mono + RETRY_MS))
            }
            Err(error) => Err(error),
        }
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
            .runner
            .tend(&mut self.mailroom, now, !pass.is_empty())?;
        Ok(pass)
    }

    fn start_watching(&mut self) {
        let (watch, started) = Watch::start();
        self.watch = watch;
        if let Err(error) = started {
            tracing::warn!(error = %chain(&error), "no events from the file system; the sweep finds everything");
        }
    }

    /// Continues the sweep or begins one, and returns when to call it again. An agent that locks its own outbox does
    /// not delay the start. Fails only if retrying is pointless.
    fn sweep(&mut self, now: Moment) -> Result<u64, SpoolError> {
        let (round, asked) = match self.sweeping {
            Some(going) => going,
            None => {
                self.sweep_again = false;
                // For orders it is enough to know that something changed.
                for directory in [&self.findings, &self.orders] {
                    keep(&mut self.watch, directory);
                }
                (self.mailroom.next_round(), now)
            }
        };
        let Self {
            mailroom,
            watch,
            outboxes,
            ..
        } = self;
        let swept = mailroom.sweep_on(round, &mut |agent, outbox| {
            watch_outbox(watch, outboxes, agent, outbox);
        });
        match swept {
            Ok(false) => {
                self.sweeping = Some((round, asked));
                return Ok(now.mono);
            }
            Ok(true) => self.swept(),
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "the sweep failed; will retry");
            }
            Err(error) => return Err(error),
        }
        self.sweeping = None;
        if self.sweep_again {
            return Ok(now.mono);
        }
        let took = self.clock.read().mono.saturating_sub(asked.mono);
        Ok(now.mono + (SWEEP_PAUSE * took).clamp(SWEEP_MS, SWEEP_MAX_MS))
    }

    /// Notes that a sweep has listed every outbox.
    fn swept(&mut self) {
        let agents = self.mailroom.agents();
        self.outboxes
            .retain(|_, agent| on_the_roll(agents, agent).is_some());
        if let Some(ready) = self.ready.take() {
            ready(&self.mailroom);
            self.supervisor.ready(&self.mailroom.status_line());
        }
    }

    /// Lists every outbox that can be listed. An agent that locks its own outbox does not delay the start. Fails only if
    /// retrying is pointless; otherwise the mailroom's schedule has the retry.
    fn sweep_once(&mut self) -> Result<(), SpoolError> {
        match self.mailroom.sweep() {
            Err(error) if error.is_retryable() => {
                tracing::warn!(error = %chain(&error), "the sweep failed; will retry");
                Ok(())
            }
            result => result,
        }
    }

    /// Passes on the watcher's hints. If it lost some, a sweep finds what happened.
    fn take_hints(&mut self) {
        let seen = self.watch.take();
        for (directory, name, hint) in seen.hints {
            let Ok(name) = FileName::new(name.into_encoded_bytes()) else {
                continue;
            };
            if let Some(agent) = self.outboxes.get(&directory) {
                self.mailroom.hint(agent, &name, hint);
            } else if directory == self.orders {
                self.mailroom.hint_order();
            } else if directory == self.findings {
                self.mailroom.hint_packet(&name, hint);
            }
        }
        if seen.sweep {
            self.mailroom.doubt_hints();
            self.sweep_again = true;
            self.schedule.set(Duty::Sweep, Some(0));
        }
    }
}

/// Watches an outbox that is about to be listed: the listing finds earlier files, the watch sees later ones.
fn watch_outbox(
    watch: &mut Watch,
    outboxes: &mut HashMap<PathBuf, String>,
    agent: &AgentName,
    outbox: &Path,
) {
    keep(watch, outbox);
    if !outboxes.contains_key(outbox) {
        outboxes.insert(outbox.to_owned(), agent.to_string());
    }
}

/// Watches a directory that is not watched yet or was replaced by another one.
fn keep(watch: &mut Watch, directory: &Path) {
    if let Err(error) = watch.keep(directory) {
        tracing::warn!(directory = %directory.display(), error = %chain(&error), "not watched; the sweep finds everything");
    }
}

impl Tally {
    /// Adds up two runs in a row: the counts of both, and what the later one left over.
    #[must_use]
    pub fn then(self, later: Tally) -> Tally {
        Tally {
            accepted: self.accepted + later.accepted,
            refused: self.refused + later.refused,
            duplicates: self.duplicates + later.duplicates,
            ..later
        }
    }
}
