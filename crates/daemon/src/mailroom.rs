//! Takes each message through all its steps in one place: found, judged, committed to the ledger, delivered by the
//! spool. `events` handles everything besides messages.

pub mod accept_ledger;
mod events;
mod following;
mod operator_alerts;
mod policy;
mod runs;
mod shared;
mod start;
mod sweeps;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::TimeDelta;
use message_schema::id::AgentName;
use review::{EventRecord, Judgement, Record, State};
use rustix::fs::Mode;
use spool::{
    Checkpoint, Committed, Disk, FileName, Fold, Homes, Layout, Opened, Os, PresenceMemory,
    Recovery, Spool, SpoolError, SyncedCheckpoint,
};
use workspace::clock::Moment;
use workspace::config::{Config, ConfigError};
use workspace::error::chain;
use workspace::operator_alerts::Alerts;
use workspace::orders;

use crate::batch::{BatchLimits, Goal, OpenBatch};
use crate::docket::{Docket, find_agent};
use crate::fairness::Fairness;
use crate::growing::GrowingOriginals;
use crate::housekeeping::Housekeeping;
use crate::metrics::{Meter, TimedTask};
use crate::schedule::{Schedule, Wakeup};
use crate::shared_ledger::{LastRecord, SharedLedger};
use crate::step::StepEnd;
use crate::sweeping::Sweeping;
use crate::unknown_sender::UnknownSenders;

pub use self::shared::HostChangeError;
pub use crate::shared_ledger::{Sharing, SharingState, without_its_key};
pub use crate::step::BeforeListing;

/// An error that stops the mailroom.
#[derive(Debug, thiserror::Error)]
pub enum MailroomError {
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The disk or the ledger failed.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Several hosts share the ledger, and this process would write only to this host's mirror.
    #[error(
        "the ledger of this workspace is shared: its end is at {log}, and only a daemon that follows it may write"
    )]
    Shared {
        /// The log that has the ledger's end.
        log: String,
    },
    /// The policy of a shared workspace was changed on one host only.
    #[error(
        "the hosts that share this ledger judge by one policy, and settled.toml has another now"
    )]
    OtherPolicy,
    /// Agents have users of their own, and this process does not run as the daemon's user: the daemon could not write
    /// to files that this process makes.
    #[error(
        "the agents of this workspace have separate users, so its daemon must run as uid {owner}, not {found}"
    )]
    NotTheDaemon {
        /// The owner of `.settled`.
        owner: u32,
        /// The user of this process.
        found: u32,
    },
}

/// The results of one pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages archived as duplicates.
    pub duplicates: usize,
    /// Deadlines, decisions and other events recorded.
    pub events: usize,
    /// Files made in mailboxes.
    pub delivered: usize,
}

impl Pass {
    /// True if nothing happened.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts a record that this host judged.
    fn count(&mut self, record: &Record) {
        match record {
            Record::Judged(Judgement::Accepted(_)) => self.accepted += 1,
            Record::Judged(Judgement::Duplicate(_)) => self.duplicates += 1,
            Record::Judged(Judgement::Refused(_)) => self.refused += 1,
            Record::Event(_) => self.events += 1,
        }
    }
}

/// A workspace being served: the only writer of its ledger.
pub struct Mailroom {
    root: PathBuf,
    config: Config,
    spool: Spool,
    docket: Docket,
    waits: Fairness,
    unknown_senders: UnknownSenders,
    /// The inboxes from which no request had been taken when the daemon last looked.
    presence: PresenceMemory,
    growing: GrowingOriginals,
    housekeeping: Housekeeping,
    sweeping: Sweeping,
    /// The ledger that several hosts share, if this is one of them.
    shared: Option<SharedLedger>,
    /// The messages and events that this host judged and the ledger took since the mailroom was opened.
    judged: Pass,
    pub(crate) meter: Meter,
    /// When the last checkpoint began, on the meter's clock.
    checkpoint_began: Duration,
}

impl Mailroom {
    /// Opens the workspace: takes the lock, folds the ledger and finishes what was left undone.
    pub fn open(root: &Path) -> Result<(Self, Recovery), MailroomError> {
        Self::open_on(root, Arc::new(Os))
    }

    /// Opens the workspace through another disk, for tests that cut its power.
    pub fn open_on(root: &Path, disk: Arc<dyn Disk>) -> Result<(Self, Recovery), MailroomError> {
        Self::open_until(Arc::default(), root, disk, None)
    }

    /// Opens this host's mirror of a ledger that several hosts share. Reads nothing of the log yet: the first pass
    /// follows it.
    pub fn open_shared(root: &Path, sharing: Sharing) -> Result<(Self, Recovery), MailroomError> {
        Self::open_shared_on(root, Arc::new(Os), sharing)
    }

    /// Opens this host's mirror through another disk, for tests that count what is written to it.
    pub fn open_shared_on(
        root: &Path,
        disk: Arc<dyn Disk>,
        sharing: Sharing,
    ) -> Result<(Self, Recovery), MailroomError> {
        Self::open_until(Arc::default(), root, disk, Some(sharing))
    }

    /// Opens the workspace, or this host's mirror, until `interrupt` is set: then the start ends with
    /// [`SpoolError::Interrupted`], and the next one does what is left.
    pub(crate) fn open_until(
        interrupt: Arc<AtomicBool>,
        root: &Path,
        disk: Arc<dyn Disk>,
        sharing: Option<Sharing>,
    ) -> Result<(Self, Recovery), MailroomError> {
        let homes = sharing.as_ref().map_or_else(Homes::of_all, Sharing::homes);
        Self::open_by(root, sharing, interrupt, |index| {
            Spool::resume_at(root, disk, homes, index)
        })
    }

    fn open_by(
        root: &Path,
        sharing: Option<Sharing>,
        interrupt: Arc<AtomicBool>,
        open: impl FnOnce(&mut dyn Fold) -> Result<Opened, SpoolError>,
    ) -> Result<(Self, Recovery), MailroomError> {
        survive_size_limit();
        os_calls::keep_little_memory();
        let config = Config::load(root)?;
        if let (None, Some(log)) = (&sharing, &config.ledger.log) {
            return Err(MailroomError::Shared { log: log.clone() });
        }
        if !config.users().is_empty() {
            keep_apart(root)?;
        }
        let mut start = start::StartFold::new(interrupt);
        let mut opened = open(&mut start)?;
        let last = match &sharing {
            Some(_) => start.last_record(root, opened.spool.head().seq)?,
            None => LastRecord::default(),
        };
        let (mut index, mut past) = (start.index, start.past);
        past.note(opened.spool.head());
        let known = std::mem::take(&mut index.fleet);
        opened.spool.limit_segments(config.ledger.segment_bytes());
        let kept = (
            opened.recovery.snapshot.unwrap_or(0),
            opened.recovery.snapshot_bytes,
        );
        let housekeeping = Housekeeping::new(root.to_owned(), config.clone(), kept);
        if let Err(error) = orders::make(root) {
            tracing::warn!(error = %chain(&error), "cannot create the directory for orders, or protect it from other users");
        }
        let mut docket = Docket::new(&config, index, Alerts::open(root));
        if sharing.is_some() {
            docket.tentative.share_packets();
        }
        let mut mailroom = Self {
            root: root.to_owned(),
            config,
            spool: opened.spool,
            docket,
            waits: Fairness::default(),
            unknown_senders: UnknownSenders::default(),
            presence: PresenceMemory::default(),
            growing: GrowingOriginals::default(),
            housekeeping,
            sweeping: Sweeping::default(),
            shared: sharing.map(|sharing| SharedLedger::new(sharing, known, last, past)),
            judged: Pass::default(),
            meter: Meter::start(),
            checkpoint_began: Duration::ZERO,
        };
        mailroom.find_agents(StepEnd(None))?;
        // A start without a snapshot needs several times the memory of serving.
        os_calls::give_back_memory();
        Ok((mailroom, opened.recovery))
    }

    /// Limits each batch to this time of judging, this many files and these bytes, delivers at most this many files at a
    /// time, and makes an outbox that keeps the daemon busy rest. Until this is called, only the messages of a batch and
    /// its bytes, 4 MiB, are limited, and each batch is delivered whole.
    pub fn limit_batches(&mut self, time: Duration, files: usize, bytes: usize) {
        self.docket.limits = BatchLimits {
            time,
            files,
            bytes,
            goal: Goal::Latency,
        };
        self.spool.limit_slices(files);
    }

    /// Passes on that the watcher saw a file finished.
    pub fn hint(&mut self, agent: &str, file: &FileName) {
        if self.reads_outbox_of(agent) {
            self.docket.intake.hint(agent, file);
        }
    }

    /// Passes on that the watcher saw more files of an outbox finished than it can name.
    pub fn hint_outbox(&mut self, agent: &str) {
        if self.reads_outbox_of(agent) {
            self.docket.intake.hint_outbox(agent);
        }
    }

    fn reads_outbox_of(&self, agent: &str) -> bool {
        find_agent(self.docket.agents(), agent).is_some_and(|agent| self.is_at_home(agent))
    }

    /// Returns the outboxes in which a look since the last call led to nothing that could be judged.
    pub fn take_fruitless(&mut self) -> impl Iterator<Item = PathBuf> {
        let agents = self.docket.intake.take_fruitless().into_iter();
        let layout = self.spool.layout();
        agents.map(move |agent| layout.outbox(&agent))
    }

    /// Passes on that the watcher saw a findings packet finished.
    pub fn hint_packet(&self, file: &FileName) {
        self.spool.hint_packet(spool::dirs::FINDINGS, file);
    }

    /// Does the same without a look at the packet.
    pub fn note_packet(&self, file: &FileName) {
        self.spool.note_packet(spool::dirs::FINDINGS, file);
    }

    /// Notes that the watcher saw a change in the directory of orders.
    pub fn hint_order(&mut self) {
        self.waits.all_listed = false;
    }

    /// Judges at most one batch of what is ready, commits it with one sync, and delivers it.
    ///
    /// While more is waiting, it delivers one batch during the judgement of the next. It delivers nothing before its
    /// commit, and no one outside learns of a batch whose commit failed: its files never left their outboxes and are
    /// judged again later. Takes and orders follow once the files that were finished before them are judged.
    pub fn pass(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        self.pass_watching(moment, &mut |_, _| ())
    }

    /// Makes a pass, and calls `before` with each agent and outbox that it is about to list because of an order.
    pub fn pass_watching(
        &mut self,
        moment: Moment,
        before: &mut BeforeListing<'_>,
    ) -> Result<Pass, SpoolError> {
        let mut pass = Pass::default();
        if !self.follow(moment)? {
            let changed = self.change_policy(moment, &mut pass);
            if !self.is_frozen() {
                self.deliver_slice(moment, &mut pass)?;
            }
            return changed.map(|()| pass);
        }
        let moment = self.judged_at(moment);
        let orders = self.find_orders(moment, before);
        let began = self.meter.now();
        let Self { spool, docket, .. } = self;
        docket.intake.pass_over(spool.flooding(docket.limits.files));
        let judged = spool.deliver_while(moment.mono, |view| docket.judge_batch(view, moment));
        let (delivered, mut batch) = judged.inspect_err(|_| self.roll_back())?;
        self.delivered(&delivered, &mut pass);

        let outboxes = std::mem::take(&mut batch.outboxes);
        let committed = self.commit_unlogged(batch, moment, &mut pass)?;
        let delivered = match self.docket.limits.goal {
            Goal::Latency => self.deliver_slice(moment, &mut pass),
            Goal::Throughput => Ok(()),
        };
        // Recipients wait for the delivery; nobody waits for the log.
        self.log_committed(&committed);
        delivered?;
        self.docket
            .rest(&outboxes, self.meter.since(began), moment.mono);
        if self.waits.is_turn_of_takes(&self.docket.intake, moment) {
            self.record_takes(moment, &mut pass)?;
        }
        let intake = &self.docket.intake;
        if let Some(orders) = self.waits.whose_turn(orders, intake, moment) {
            let end = self.sweeping.step_end();
            self.process_orders(orders, end, moment, &mut pass)?;
        }
        if self.docket.intake.next_wakeup() != Some(0) {
            self.deliver_slice(moment, &mut pass)?;
        }
        self.docket.alerts.save();
        Ok(pass)
    }

    fn deliver_slice(&mut self, moment: Moment, pass: &mut Pass) -> Result<(), SpoolError> {
        let delivered = self.spool.deliver_slice(moment.mono)?;
        self.delivered(&delivered, pass);
        Ok(())
    }

    fn commit(
        &mut self,
        batch: OpenBatch,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<(), SpoolError> {
        let committed = self.commit_unlogged(batch, moment, pass)?;
        self.log_committed(&committed);
        Ok(())
    }

    /// Commits without logging it.
    fn commit_unlogged(
        &mut self,
        batch: OpenBatch,
        moment: Moment,
        pass: &mut Pass,
    ) -> Result<Vec<(Committed, Record)>, SpoolError> {
        if batch.drafts.is_empty() {
            return Ok(Vec::new());
        }
        let began = self.meter.now();
        let judged = self.judged_files(&batch);
        match self.commit_drafts(batch.drafts, &batch.records, moment) {
            Ok(committed) => {
                self.meter.took(TimedTask::Commit, self.meter.since(began));
                self.docket.log_takes.taken();
                self.committed(&committed, &batch.records, pass);
                let is_growing = |entry: &&Committed| batch.growing.contains(&entry.seq);
                let growing = committed.iter().filter(is_growing);
                growing.for_each(|entry| self.growing.watch(entry));
                Ok(committed.into_iter().zip(batch.records).collect())
            }
            Err(error @ SpoolError::NotTaken { .. }) => {
                self.roll_back();
                let shared = self.shared.as_mut();
                let too_large =
                    shared.and_then(|shared| shared.take_too_large(judged.is_empty(), moment));
                if let Some(bytes_max) = too_large {
                    self.docket.log_takes.too_large(&judged, bytes_max);
                }
                // Every file was finished when it was judged, so the intake need not wait for it again.
                for (agent, file) in judged {
                    self.hint(&agent, &file);
                }
                Err(error)
            }
            Err(error) => {
                self.roll_back();
                self.meter.ledger_failed();
                Err(error)
            }
        }
    }

    /// Acts on records that the ledger has, no matter which host judged them.
    fn committed(&mut self, committed: &[Committed], records: &[Record], pass: &mut Pass) {
        self.docket.tentative.commit();
        for (entry, record) in committed.iter().zip(records) {
            if self.is_from_here(entry) {
                self.judged.count(record);
            }
            self.note_host(entry, record);
            self.docket.untaken.note(entry, record);
            self.docket.known_deliveries.note(entry);
            self.meter.committed(record);
            pass.count(record);
        }
    }

    /// The messages and events that this host judged and the ledger took since the mailroom was opened. Each record
    /// counts once, even if the log's answer was lost and the record came back later, or the pass then failed.
    pub fn judged(&self) -> &Pass {
        &self.judged
    }

    fn log_committed(&self, committed: &[(Committed, Record)]) {
        for (entry, record) in committed {
            log(entry, record, self.docket.agents());
        }
    }

    fn delivered(&mut self, delivered: &spool::Pass, pass: &mut Pass) {
        pass.delivered += delivered.delivered;
        self.meter
            .delivered(delivered.delivered, self.spool.is_delivered());
        if !delivered.parked.is_empty() {
            self.alert_unwritable(&delivered.parked);
        }
        for (agent, file) in &delivered.came_back {
            // This host judges nothing more of an agent whose home moved; until it restarts, it puts away what it had judged.
            if !agent.parse().is_ok_and(|name| self.is_at_home(&name)) {
                continue;
            }
            tracing::info!(%agent, %file, "the writer changed a judged file; judging it again");
            self.docket.intake.look_again(agent, file);
        }
    }

    /// Undoes what was decided and not committed. The next sweep finds its files again in their outboxes, behind every
    /// mark, so all waits start again.
    fn roll_back(&mut self) {
        self.docket.tentative.roll_back();
        self.waits = Fairness::default();
    }

    /// Starts a task of housekeeping that is due. Call it when there is nothing else to do and what can be synced is
    /// durable, or when a checkpoint has just ended.
    pub fn rest(&mut self, moment: Moment) {
        self.housekeeping
            .rest(&mut self.spool, &mut self.docket, moment);
    }

    /// Ends the housekeeping, and makes a snapshot if one is due.
    pub fn close(&mut self) {
        self.housekeeping.close(&mut self.spool, &mut self.docket);
    }

    /// True if a snapshot has enough new records, or a task of housekeeping has not ended. Reads no file.
    pub fn wants_rest(&self) -> bool {
        self.housekeeping.wants_rest(&self.spool)
    }

    /// True if a new checkpoint would have something to do.
    pub fn wants_checkpoint(&self) -> bool {
        self.spool.wants_checkpoint()
    }

    /// True if so much was delivered that a checkpoint should begin without a quiet moment.
    pub fn wants_checkpoint_soon(&self) -> bool {
        self.spool.wants_checkpoint_soon()
    }

    fn state(&self) -> &State {
        self.docket.tentative.state()
    }

    /// Delivers what is committed and judges nothing more.
    pub fn finish(&mut self, moment: Moment) -> Result<(), SpoolError> {
        let last = self.spool.deliver(moment.mono)?;
        self.delivered(&last, &mut Pass::default());
        Ok(())
    }

    /// Makes everything delivered so far survive a power cut; returns when that is done.
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        self.checkpoint_began = self.meter.now();
        let ended = self.spool.checkpoint();
        self.checkpointed(ended)
    }

    /// Begins a checkpoint of everything delivered so far, for another thread, if there is anything. It hurries once
    /// `is_awaited` is set.
    pub fn begin_checkpoint(
        &mut self,
        is_awaited: &Arc<AtomicBool>,
    ) -> Result<Option<Checkpoint>, SpoolError> {
        self.checkpoint_began = self.meter.now();
        self.spool.begin_checkpoint(is_awaited)
    }

    /// Ends a checkpoint that was begun.
    pub fn end_checkpoint(&mut self, synced: SyncedCheckpoint) -> Result<(), SpoolError> {
        let ended = self.spool.end_checkpoint(synced);
        self.checkpointed(ended)
    }

    fn checkpointed(&mut self, ended: Result<(), SpoolError>) -> Result<(), SpoolError> {
        ended?;
        self.meter.took(
            TimedTask::Checkpoint,
            self.meter.since(self.checkpoint_began),
        );
        Ok(())
    }

    /// The work that continues without an event, each with its monotonic time.
    pub fn schedule(&self, now: Moment) -> Schedule<Wakeup> {
        let mut schedule = Schedule::default();
        schedule.set(Wakeup::Log, self.next_look());
        let owed = self.spool.next_delivery();
        schedule.set(Wakeup::Retry, owed.filter(|_| !self.is_frozen()));
        if self
            .sharing_state()
            .is_some_and(|sharing_state| *sharing_state != SharingState::InStep)
        {
            // Nothing is judged until this host follows the log again.
            return schedule;
        }
        schedule.set(Wakeup::Look, self.docket.intake.next_wakeup());
        schedule.set(Wakeup::Orders, self.waits.orders_due());
        schedule.set(Wakeup::Deadline, self.waits.deadlines_due());
        let mut coming = self.state().deadlines().map(|(at, _)| at - now.utc);
        if let Some(left) = coming.find(|left| *left > TimeDelta::zero()) {
            let left = u64::try_from(left.num_milliseconds()).unwrap_or(u64::MAX);
            schedule.no_later(Wakeup::Deadline, now.mono.saturating_add(left.max(1)));
        }
        schedule
    }

    /// The work left for a daemon that ends when it has none. Files that could not be read in several attempts do not
    /// count.
    pub fn left_over(&self) -> Schedule<Wakeup> {
        let mut schedule = Schedule::default();
        // While it is not in step, nothing is judged.
        let hopeful = self.docket.intake.next_hopeful();
        schedule.set(Wakeup::Look, hopeful.filter(|_| self.is_in_step()));
        schedule.set(Wakeup::Retry, self.spool.next_delivery());
        schedule.set(Wakeup::Sweep, (self.sweeping.unlisted > 0).then_some(0));
        // A frozen host does not wait for the log: nobody repairs it meanwhile.
        let look = self.next_look().filter(|_| !self.is_frozen());
        schedule.set(Wakeup::Log, look);
        schedule
    }

    /// The number of committed files that are not yet made or put away.
    pub fn undelivered(&self) -> usize {
        self.spool.waiting()
    }

    /// The number of outboxes, and of files in them, that could not be read yet or are still being written; one more if
    /// the orders cannot be listed.
    pub fn unread(&self) -> usize {
        self.sweeping.unlisted + usize::from(self.waits.unlisted) + self.docket.intake.waiting()
    }

    /// The agents that have a mailbox, sorted.
    pub fn agents(&self) -> &[AgentName] {
        self.docket.agents()
    }

    /// The root of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of orders.
    pub fn orders(&self) -> PathBuf {
        orders::directory(&self.root)
    }

    /// The directory of findings packets.
    pub fn findings(&self) -> PathBuf {
        self.spool.layout().packets(spool::dirs::FINDINGS)
    }
}

/// Refuses to serve as a user other than the owner of `.settled`. Sets a umask that lets every user who can enter the
/// directory read the daemon's files.
fn keep_apart(root: &Path) -> Result<(), MailroomError> {
    let found = rustix::process::geteuid().as_raw();
    let owner = Layout::new(root)
        .own()
        .symlink_metadata()
        .map_or(found, |data| data.uid());
    if owner != found {
        return Err(MailroomError::NotTheDaemon { owner, found });
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    Ok(())
}

/// Handles the signal of a file that would become too large, so that the write fails like one on a full disk instead of
/// ending the process. Commands of agents start without this handler.
fn survive_size_limit() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    if let Err(error) = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))) {
        tracing::debug!(%error, "a limit on the size of files ends this process");
    }
}

fn log(entry: &Committed, record: &Record, agents: &[AgentName]) {
    let code = match record {
        Record::Judged(Judgement::Refused(refused)) => Some(refused.code.as_str()),
        Record::Event(EventRecord::Declined(declined)) => Some(declined.code.as_str()),
        Record::Judged(Judgement::Accepted(_) | Judgement::Duplicate(_))
        | Record::Event(EventRecord::Happened(_)) => None,
    };
    let original = entry.original.as_ref();
    let from = original.map(|original| original.outbox.as_str());
    let file = original.map(|original| original.file.to_string());
    tracing::info!(seq = entry.seq, verdict = %entry.kind, code, from, file, id = entry.id, review = entry.review);
    let unread = record
        .messages()
        .iter()
        .filter(|message| agents.binary_search(&message.to).is_err());
    for message in unread {
        tracing::warn!(to = %message.to, id = message.id.as_str(), seq = entry.seq, "the recipient of a notice has no mailbox; not delivered");
    }
}
