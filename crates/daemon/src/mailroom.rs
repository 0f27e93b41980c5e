//! Takes each message through all its steps on one page: found, judged, committed to the ledger, delivered by the spool.
//! `events` handles everything besides messages, and `fairness` says whose turn it is.

pub mod accept_ledger;
mod events;
mod fairness;
mod housekeeping;
mod operator_alerts;
mod reload;
mod runs;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use message_schema::id::AgentName;
use review::{EventRecord, Judgement, Record, State};
use rustix::fs::Mode;
use spool::{Disk, FileName, Layout, Opened, Os, Recovery, Spool, SpoolError};
use workspace::clock::Moment;
use workspace::config::{Config, ConfigError};
use workspace::error::chain;
use workspace::index::LedgerIndex;
use workspace::operator_alerts::Alerts;
use workspace::{directory, orders};

use crate::docket::{Batch, Docket};
use crate::growing::GrowingOriginals;
use crate::metrics::{Meter, TimedTask};
use crate::unknown_sender::UnknownSenders;

/// What stops the mailroom.
#[derive(Debug, thiserror::Error)]
pub enum MailroomError {
    /// The config cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The disk or the ledger.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Agents have users of their own, and this process is not the daemon's user: what it makes, the daemon could
    /// not write to any more.
    #[error(
        "the agents of this workspace have users of their own, and its daemon is uid {owner}, not {found}"
    )]
    NotTheDaemon {
        /// The owner of `.settled`.
        owner: u32,
        /// The user of this process.
        found: u32,
    },
}

/// A workspace being served: the only writer of its ledger.
pub struct Mailroom {
    root: PathBuf,
    config: Config,
    spool: Spool,
    docket: Docket,
    waits: fairness::Fairness,
    unknown_senders: UnknownSenders,
    growing: GrowingOriginals,
    housekeeping: housekeeping::Housekeeping,
    /// How many outboxes the last sweep could not list.
    unlisted: usize,
    pub(crate) meter: Meter,
}

/// What one pass did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Messages accepted.
    pub accepted: usize,
    /// Messages refused.
    pub refused: usize,
    /// Messages put away as duplicates.
    pub duplicates: usize,
    /// Deadlines, decisions and other events recorded.
    pub events: usize,
    /// Files made in mailboxes.
    pub delivered: usize,
}

impl Pass {
    /// Whether anything happened.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Mailroom {
    /// Opens the workspace: takes the lock, folds the ledger, finishes what was left undone.
    pub fn open(root: &Path) -> Result<(Self, Recovery), MailroomError> {
        Self::open_on(root, Arc::new(Os))
    }

    /// Opens the workspace through another disk, for tests that cut its power.
    pub fn open_on(root: &Path, disk: Arc<dyn Disk>) -> Result<(Self, Recovery), MailroomError> {
        Self::open_by(root, |index| Spool::resume(root, disk, index))
    }

    fn open_by(
        root: &Path,
        open: impl FnOnce(&mut LedgerIndex) -> Result<Opened, SpoolError>,
    ) -> Result<(Self, Recovery), MailroomError> {
        let config = Config::load(root)?;
        if !config.users().is_empty() {
            keep_apart(root)?;
        }
        let mut index = LedgerIndex::default();
        let mut opened = open(&mut index)?;
        opened
            .spool
            .limit_segments(config.ledger.segment_mib * 1024 * 1024);
        let kept = (
            opened.recovery.snapshot.unwrap_or(0),
            opened.recovery.snapshot_bytes,
        );
        let housekeeping = housekeeping::Housekeeping::new(root.to_owned(), config.clone(), kept);
        if let Err(error) = orders::make(root) {
            tracing::warn!(error = %chain(&error), "the place for orders cannot be made, or not safe from other users");
        }
        let docket = Docket::new(&config, index, Alerts::open(root));
        let mut mailroom = Self {
            root: root.to_owned(),
            config,
            spool: opened.spool,
            docket,
            waits: fairness::Fairness::default(),
            unknown_senders: UnknownSenders::default(),
            growing: GrowingOriginals::default(),
            housekeeping,
            unlisted: 0,
            meter: Meter::start(),
        };
        mailroom.call_the_roll()?;
        Ok((mailroom, opened.recovery))
    }

    /// Looks who has a mailbox now, and through every outbox; the next pass asks which requests were
    /// taken. Fails for good if the workspace was moved away or its ledger changed by somebody else.
    pub fn sweep(&mut self) -> Result<(), SpoolError> {
        let began = self.meter.now();
        // Until the end nothing is known to be listed.
        self.unlisted = self.docket.agents().len().max(1);
        self.spool.still_there()?;
        self.call_the_roll()?;
        let agents: Vec<String> = self
            .docket
            .agents()
            .iter()
            .map(ToString::to_string)
            .collect();
        let errors = self.docket.intake.scan(&self.spool.view(), &agents);
        self.unlisted = errors.len();
        for error in errors {
            if self.docket.alerts.raise_unreadable(&error) {
                continue;
            }
            tracing::warn!(error = %chain(&error), "an outbox cannot be listed; it is tried again");
        }
        self.docket.forget_gone();
        self.check_alert_conditions();
        self.waits.any_orders = true;
        self.expect_takes();
        self.meter.took(TimedTask::Sweep, began);
        Ok(())
    }

    fn call_the_roll(&mut self) -> Result<(), SpoolError> {
        let agents = directory::agents(&self.root)?;
        if *agents == **self.docket.agents() {
            return Ok(());
        }
        for agent in agents
            .iter()
            .filter(|agent| !self.docket.agents().contains(agent))
        {
            if let Err(error) = self.spool.make_mailboxes(agent.as_str()) {
                tracing::warn!(%agent, error = %chain(&error), "its mailboxes cannot be completed");
            }
        }
        self.docket.reconfigure(&self.config, agents.into());
        Ok(())
    }

    /// Ends each batch after so much time of judging; until this is called only the size of a batch is limited.
    pub fn limit_batch_time(&mut self, limit: Duration) {
        self.docket.batch_time_max = limit;
    }

    /// Notes what the watcher saw of a file.
    pub fn hint(&mut self, agent: &str, file: &FileName, hint: spool::Hint) {
        self.docket.hint(agent, file, hint);
    }

    /// Notes that the watcher lost some of what happened.
    pub fn doubt_hints(&mut self) {
        self.docket.intake.doubt_hints();
    }

    /// Notes what the watcher saw of a findings packet.
    pub fn hint_packet(&self, file: &FileName, hint: spool::Hint) {
        self.spool.hint_packet(spool::dirs::FINDINGS, file, hint);
    }

    /// Notes that the watcher saw something among the orders.
    pub fn hint_order(&mut self) {
        self.waits.any_orders = true;
    }

    /// Judges what is ready, at most one batch, commits it with one sync, and delivers it.
    ///
    /// While more is waiting, a batch is delivered during the judgement of the next one. Nothing
    /// is delivered before its commit, and nothing is known of a batch whose commit failed: its files
    /// never left their outboxes and are judged again later. When what lay
    /// finished before them is judged, takes are recorded and orders processed.
    pub fn pass(&mut self, moment: Moment) -> Result<Pass, SpoolError> {
        let orders = self.find_orders(moment);
        let Self { spool, docket, .. } = self;
        let judged = spool.deliver_while(moment.mono, |view| docket.judge_batch(view, moment));
        let (before, batch) = judged.inspect_err(|_| self.take_back())?;
        let mut pass = Pass::default();
        self.delivered(&before, &mut pass);

        self.commit(batch, &mut pass)?;
        if self.is_turn_of_takes(moment) {
            self.record_takes(moment, &mut pass)?;
        }
        if let Some(orders) = self.whose_turn(orders, moment) {
            self.process_orders(&orders, moment, &mut pass)?;
        }
        if self.next_look() != Some(0) {
            let after = self.spool.deliver(moment.mono)?;
            self.delivered(&after, &mut pass);
        }
        self.docket.alerts.save();
        Ok(pass)
    }

    fn commit(&mut self, batch: Batch, pass: &mut Pass) -> Result<(), SpoolError> {
        if batch.drafts.is_empty() {
            return Ok(());
        }
        let began = self.meter.now();
        match self.spool.commit(self.spool.next_seq(), batch.drafts) {
            Ok(committed) => {
                self.docket.tentative.commit();
                self.meter.took(TimedTask::Commit, began);
                for (entry, record) in committed.iter().zip(&batch.records) {
                    log(entry, record, self.docket.agents());
                    self.docket.untaken.note(entry, record);
                    self.docket.known_deliveries.note(entry);
                    if batch.growing.contains(&entry.seq) {
                        self.growing.watch(entry);
                    }
                    self.meter.committed(record);
                    pass.count(record);
                }
                Ok(())
            }
            Err(error) => {
                self.take_back();
                self.meter.ledger_failed();
                Err(error)
            }
        }
    }

    fn delivered(&mut self, delivered: &spool::Pass, pass: &mut Pass) {
        pass.delivered += delivered.delivered;
        let parked: usize = self.spool.parked().iter().map(|lane| lane.waiting).sum();
        self.meter
            .delivered(delivered.delivered, self.spool.waiting() <= parked);
        for parked in &delivered.parked {
            tracing::warn!(lane = %parked.lane, waiting = parked.waiting, why = %parked.why, "a mailbox cannot be written; it is tried again");
        }
        for (agent, file) in &delivered.came_back {
            tracing::info!(%agent, %file, "its writer changed it after it was judged; it is judged again");
            self.docket.hint(agent, file, spool::Hint::Created);
        }
    }

    /// Takes back what was decided and not committed. Its files never left their outboxes, and the next
    /// sweep finds them, behind every mark.
    fn take_back(&mut self) {
        self.docket.tentative.roll_back();
        self.waits = fairness::Fairness::default();
    }

    fn state(&self) -> &State {
        self.docket.tentative.state()
    }

    /// Delivers what is committed, without judging anything more: the end of the batch in hand.
    pub fn finish(&mut self, moment: Moment) -> Result<(), SpoolError> {
        let last = self.spool.deliver(moment.mono)?;
        self.delivered(&last, &mut Pass::default());
        Ok(())
    }

    /// Makes everything delivered so far survive a power cut.
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        let began = self.meter.now();
        self.spool.checkpoint()?;
        self.meter.took(TimedTask::Checkpoint, began);
        Ok(())
    }

    /// When there is something to do without any event, on the monotonic clock; 0 for now.
    pub fn next_wakeup(&self) -> Option<u64> {
        let due = [
            self.docket.intake.next_wakeup(),
            self.spool.next_retry(),
            self.orders_due(),
        ];
        due.into_iter().flatten().min()
    }

    /// When a file is to be looked at without any event, on the monotonic clock; 0 for now.
    pub fn next_look(&self) -> Option<u64> {
        self.docket.intake.next_wakeup()
    }

    /// The same, without files that could not be read several times over.
    pub fn next_hopeful_look(&self) -> Option<u64> {
        self.docket.intake.next_hopeful()
    }

    /// How many files are committed and not yet made or put away.
    pub fn undelivered(&self) -> usize {
        self.spool.waiting()
    }

    /// How many outboxes and files in them could not be read yet, or are still being written.
    pub fn unread(&self) -> usize {
        self.unlisted + self.docket.intake.waiting()
    }

    /// Whether the last sweep left an outbox out.
    pub fn is_sweep_owed(&self) -> bool {
        self.unlisted > 0
    }

    /// When a mailbox that could not be written is tried again, on the monotonic clock.
    pub fn next_retry(&self) -> Option<u64> {
        self.spool.next_retry()
    }

    /// The outbox directory of every agent on the roll.
    pub fn outboxes(&self) -> impl Iterator<Item = (&AgentName, PathBuf)> {
        self.docket
            .agents()
            .iter()
            .map(|agent| (agent, self.spool.layout().outbox(agent.as_str())))
    }

    /// The workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where orders lie.
    pub fn orders(&self) -> PathBuf {
        orders::directory(&self.root)
    }

    /// Where findings packets lie.
    pub fn findings(&self) -> PathBuf {
        self.spool.layout().packets(spool::dirs::FINDINGS)
    }
}

/// Only the daemon's user serves, and what it makes can be read by whoever gets into the directory.
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

impl Pass {
    fn count(&mut self, record: &Record) {
        match record {
            Record::Judged(Judgement::Accepted(_)) => self.accepted += 1,
            Record::Judged(Judgement::Duplicate(_)) => self.duplicates += 1,
            Record::Judged(Judgement::Refused(_)) => self.refused += 1,
            Record::Event(_) => self.events += 1,
        }
    }
}

fn log(entry: &spool::Committed, record: &Record, agents: &[AgentName]) {
    let code = match record {
        Record::Judged(Judgement::Refused(refused)) => Some(refused.code.as_str()),
        Record::Event(EventRecord::Declined(declined)) => Some(declined.code.as_str()),
        Record::Judged(Judgement::Accepted(_) | Judgement::Duplicate(_))
        | Record::Event(EventRecord::Happened(_)) => None,
    };
    let from = entry
        .original
        .as_ref()
        .map(|original| original.outbox.as_str());
    let file = entry
        .original
        .as_ref()
        .map(|original| original.file.to_string());
    tracing::info!(seq = entry.seq, verdict = %entry.kind, code, from, file, id = entry.id, review = entry.review);
    let unread = record
        .letters()
        .iter()
        .filter(|letter| !agents.contains(&letter.to));
    for letter in unread {
        tracing::warn!(to = %letter.to, id = letter.id.as_str(), seq = entry.seq, "an agent without a mailbox gets no letter");
    }
}
