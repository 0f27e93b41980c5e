//! Keeps the files that wait for judgement: picks the next one, gives a file more time, and holds a file back behind
//! another. The crate `judgement` judges them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use judgement::rejection::Rejection;
use judgement::{Patience, ReadMessage, Stop, Submission, Tentative, named_recipients};
use message_schema::Message;
use message_schema::id::AgentName;
use message_schema::limit::{MESSAGE_BYTES_MAX, PACKET_BYTES_MAX};
use review::{Judgement, Record};
use spool::{
    EntryDraft, FileName, Intake, OutboxFile, PacketRead, QUIET_MS, Rows, SpoolError, Stamp, View,
};
use workspace::clock::{self, Moment};
use workspace::config::Config;
use workspace::error::chain;
use workspace::index::{LedgerIndex, stored_rows};
use workspace::known_deliveries::KnownDeliveries;
use workspace::operator_alerts::Alerts;
use workspace::untaken_requests::UntakenRequests;

use crate::batch::{BatchLimits, Goal, OpenBatch};
use crate::held::HeldMessages;
use crate::log_takes::LogTakes;

/// The most messages in memory at once before they are judged.
const PORTION: usize = 4;

/// The time for which a file that may be unfinished, and then a backlog, holds up a deadline. Only the
/// outboxes of the deadline's own review count. A deadline that passed hours ago, while the machine slept, also waits:
/// the daemon finds the files that were finished by then at the same moment, and they may look too young to be read.
pub(crate) const DEADLINE_GRACE: TimeDelta = TimeDelta::seconds(5);

/// The pause before a file whose agent is unknown or whose packet cannot be read is tried again, in milliseconds.
const RETRY_MS: u64 = 500;

/// The files that wait to be judged, and everything their judgement depends on.
pub(crate) struct Docket {
    pub(crate) intake: Intake,
    /// The state messages are judged on.
    pub(crate) tentative: Tentative,
    pub(crate) untaken: UntakenRequests,
    pub(crate) known_deliveries: KnownDeliveries,
    pub(crate) alerts: Alerts,
    /// The user of each agent that has one of its own.
    users: BTreeMap<AgentName, u32>,
    /// The wait of each file that got more time.
    waits: HashMap<(String, FileName), FileWait>,
    /// Review messages that wait for a packet, or behind one that does.
    held: HeldMessages,
    /// The limits of a batch.
    pub(crate) limits: BatchLimits,
    /// The bytes of messages and packets read for this batch.
    batch_bytes: usize,
    /// The largest batch and record that the log of a shared ledger takes.
    pub(crate) log_takes: LogTakes,
}

/// Since when a file waits, in milliseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct FileWait {
    /// The file at the last look.
    stamp: Stamp,
    /// The first look at a file of this name.
    first: u64,
    /// The look since which it has not changed.
    still: u64,
}

/// An outbox with a refused or large message, or with more files waiting, rests this many times as long as it kept the
/// daemon busy. Such an agent gets at most a quarter of the daemon's time; the others get the rest.
const REST: u32 = 3;

/// The longest rest: a disk that stalls for seconds is not the writer's fault.
const REST_MAX: Duration = Duration::from_millis(250);

/// Once a batch holds every file of some outbox, its writer waits only for the commit, so the batch ends after this
/// fraction of its time.
const TIME_ONCE_AWAITED: u32 = 4;

/// The next step for a file: commit its record, or look again.
enum NextStep {
    Commit(Box<(EntryDraft, Record)>),
    LookAgain { at: u64 },
}

impl Docket {
    pub(crate) fn new(config: &Config, index: LedgerIndex, alerts: Alerts) -> Self {
        let LedgerIndex {
            state,
            names,
            untaken,
            known_deliveries,
            ..
        } = index;
        Self {
            intake: Intake::new(MESSAGE_BYTES_MAX, QUIET_MS),
            tentative: Tentative::new(state, names, config.policy([])),
            untaken,
            known_deliveries,
            alerts,
            users: config.users(),
            waits: HashMap::new(),
            held: HeldMessages::default(),
            limits: BatchLimits::default(),
            batch_bytes: 0,
            log_takes: LogTakes::default(),
        }
    }

    /// Notes that a snapshot of the whole ledger has begun.
    pub(crate) fn begin_snapshot(&mut self) {
        self.tentative.begin_snapshot();
        self.known_deliveries.begin_snapshot();
    }

    /// Notes that the snapshot failed.
    pub(crate) fn give_up_snapshot(&mut self) {
        self.tentative.give_up_snapshot();
        self.known_deliveries.give_up_snapshot();
    }

    /// Notes that the snapshot succeeded. From now on its rows hold the entries from before it, and the docket frees their
    /// memory.
    pub(crate) fn rest_on(&mut self, rows: &Arc<Rows>) {
        let stored = stored_rows(rows);
        self.tentative.rest_on(&stored);
        self.known_deliveries.rest_on(&stored);
    }

    /// The agents that have a mailbox, sorted.
    pub(crate) fn agents(&self) -> &Arc<[AgentName]> {
        self.tentative.agents()
    }

    /// Judges by this config, and for these agents, from the next message.
    pub(crate) fn reconfigure(&mut self, config: &Config, agents: Arc<[AgentName]>) {
        let policy = config.policy(agents.iter().cloned());
        self.tentative.reconfigure(policy, agents);
        self.users = config.users();
    }

    /// Judges the finished files, at most one batch, each on the state that the one before it left. The caller rolls
    /// the state back if it cannot commit the batch.
    pub(crate) fn judge_batch(&mut self, view: &View<'_>, moment: Moment) -> OpenBatch {
        let mut batch = OpenBatch::default();
        self.batch_bytes = 0;
        let began = Instant::now();
        let mut left = self.log_takes.files_max;
        let BatchLimits {
            time, files, bytes, ..
        } = self.limits;
        while left > 0 && self.batch_bytes < bytes && batch.files < files {
            let time_left = match batch.is_awaited {
                true => time / TIME_ONCE_AWAITED,
                false => time,
            };
            if began.elapsed() >= time_left {
                break;
            }
            match self.judge_portion(&mut batch, left.min(PORTION), view, moment) {
                0 => break,
                looked => left -= looked,
            }
        }
        batch
    }

    /// Judges the next few files and returns their number. None of them returns to the queue during the batch, since no
    /// sweep or hint comes in between.
    fn judge_portion(
        &mut self,
        batch: &mut OpenBatch,
        limit: usize,
        view: &View<'_>,
        moment: Moment,
    ) -> usize {
        let mut taken = self.intake.take(view, moment.spool(), limit);
        if !self.held.is_empty() {
            // Held files come first; the others keep their order.
            taken
                .found
                .sort_by_cached_key(|found| self.held.place(&found.agent, &found.file));
        }
        for error in &taken.errors {
            self.unreadable(error, "cannot read a file; will retry");
        }
        for (agent, file) in &taken.gone {
            self.forget(agent, file);
        }
        for found in &taken.found {
            let seq = batch.next_seq(view.next_seq());
            let is_cheap = batch.outboxes.entry(found.agent.clone()).or_insert(true);
            let bytes_before = self.batch_bytes;
            match self.judge(found, view, seq, moment) {
                Ok(NextStep::Commit(decided)) => {
                    let (draft, record) = *decided;
                    let is_large = self.batch_bytes - bytes_before >= self.limits.bytes / 2;
                    *is_cheap &=
                        !is_large && matches!(record, Record::Judged(Judgement::Accepted(_)));
                    self.forget(&found.agent, &found.file);
                    if found.may_grow {
                        batch.growing.insert(seq);
                    }
                    batch.is_awaited |= !self.intake.has_queued(&found.agent);
                    batch.add(draft, record);
                }
                Ok(NextStep::LookAgain { at }) => {
                    *is_cheap = false;
                    self.intake.give_time(found, at);
                }
                // An I/O error is no reason to refuse a message.
                Err(error) => {
                    self.unreadable(&error, "cannot read a packet; will retry");
                    self.intake.give_time(found, moment.mono + RETRY_MS);
                }
            }
        }
        taken.found.len()
    }

    /// Alerts operators to a file or outbox that this process may not read; logs any other error.
    pub(crate) fn unreadable(&mut self, error: &SpoolError, what: &str) {
        if !self.alerts.raise_unreadable(error) {
            tracing::warn!(error = %chain(error), "{what}");
        }
    }

    /// Makes the outboxes of a batch rest, in proportion to the time it took to judge, commit and deliver the batch.
    pub(crate) fn rest(&mut self, outboxes: &BTreeMap<String, bool>, took: Duration, began: u64) {
        if self.limits.goal == Goal::Throughput {
            return;
        }
        for (agent, is_cheap) in outboxes {
            if *is_cheap && !self.intake.has_queued(agent) {
                continue;
            }
            let rest = (took * REST).min(REST_MAX);
            let until = u64::try_from((took + rest).as_micros().div_ceil(1_000));
            let until = began.saturating_add(until.unwrap_or(u64::MAX));
            self.intake.rest(agent, until);
        }
    }

    fn judge(
        &mut self,
        found: &OutboxFile,
        view: &View<'_>,
        seq: u64,
        moment: Moment,
    ) -> Result<NextStep, SpoolError> {
        let agents = Arc::clone(self.agents());
        let Some(outbox) = find_agent(&agents, &found.agent) else {
            // The agent left after the last sweep. The next sweep drops its files, or finds the agent again.
            let at = moment.mono.saturating_add(RETRY_MS);
            return Ok(NextStep::LookAgain { at });
        };
        let user = self.users.get(outbox).copied();
        let submission = Submission {
            found,
            outbox,
            user,
        };
        self.batch_bytes += found.body.bytes_read();
        let read = match judgement::read(submission) {
            Ok(read) => read,
            Err(stop) => return Ok(self.stopped(submission, None, stop, (seq, moment))),
        };
        if self.is_past_deadline(found, outbox, &read.message, moment) {
            let at = moment.mono.saturating_add(RETRY_MS);
            return Ok(NextStep::LookAgain { at });
        }
        let is_repeated = self.tentative.judge(moment.utc).is_repeated(&read);
        let mut packet = None;
        if !is_repeated {
            if let Some(to) = self.held_up(found, &read.message) {
                return Ok(match self.wait_behind(found, to, moment) {
                    Ok(at) => NextStep::LookAgain { at },
                    Err(stop) => self.stopped(submission, Some(&read.message), stop, (seq, moment)),
                });
            }
            packet = packet_of(view, &read, moment)?;
            self.batch_bytes += packet.as_ref().map_or(0, packet_bytes);
        }
        if let Some(bytes_max) = self.log_takes.refuses(found) {
            let rejection = Rejection::too_large_for_log(bytes_max, &found.file);
            let stop = Stop {
                rejection: Box::new(rejection),
                patience: Patience::None,
            };
            return Ok(self.stopped(submission, Some(&read.message), stop, (seq, moment)));
        }
        match self
            .tentative
            .judge(moment.utc)
            .message(&read, packet.as_ref())
        {
            Ok(decided) => {
                let at = (seq, moment.utc);
                let (draft, record) =
                    self.tentative
                        .add_decided(submission, &read.message, decided.decision, at);
                Ok(NextStep::Commit(Box::new((draft, record))))
            }
            Err(stop) => Ok(self.stopped(submission, Some(&read.message), stop, (seq, moment))),
        }
    }

    /// True if a deadline of this agent was over when the file last changed, and is still to be applied because no
    /// daemon ran in between. The file is judged after it, as it would have been.
    fn is_past_deadline(
        &self,
        found: &OutboxFile,
        agent: &AgentName,
        message: &Message,
        moment: Moment,
    ) -> bool {
        let Some(pr) = message.related_pr().filter(|_| is_review(message)) else {
            return false;
        };
        let Some(changed) = DateTime::from_timestamp_millis(found.changed_ms) else {
            return false;
        };
        let is_over =
            |(at, _): (DateTime<Utc>, _)| at <= moment.utc && at + DEADLINE_GRACE < changed;
        let mut reviews = self.tentative.state().reviews_of(&pr);
        reviews.any(|(key, review)| {
            review.mover_of(key) == Some(agent) && review.deadline().is_some_and(is_over)
        })
    }

    /// Gives more time to a file whose writer may still be at work, or refuses it.
    fn stopped(
        &mut self,
        submission: Submission<'_>,
        message: Option<&Message>,
        stop: Stop,
        (seq, moment): (u64, Moment),
    ) -> NextStep {
        let mut rejection = stop.rejection;
        // No packet mends a review message that names no agent or several: it is not held, and waits only until a young packet
        // is old enough to be read, so that the report has its faults as well.
        let (to, patience) = match (message, stop.patience) {
            (Some(message), patience) if patience.is_for_packet() => {
                match ordered_recipient(message) {
                    Some(to) => (Some(to), patience),
                    None => (None, Patience::SecondLook),
                }
            }
            (_, patience) => (None, patience),
        };
        if let Some(at) = self.not_yet(submission.found, patience, moment) {
            let held = to.map_or(Ok(()), |to| self.hold(submission.found, to));
            match held {
                Ok(()) => return NextStep::LookAgain { at },
                Err(full) => rejection = full,
            }
        }
        let judge = self.tentative.judge(moment.utc);
        let ids = &mut clock::new_message_id;
        let refused = judge.refuse(submission.outbox, message, *rejection, ids);
        let at = (seq, moment.utc);
        let (draft, record) = self.tentative.add_refused(submission, message, refused, at);
        NextStep::Commit(Box::new((draft, record)))
    }

    /// Returns the recipient of a review message if an earlier one of this outbox to it is held. No message waits forever:
    /// each wait for a packet is limited, and a file that its writer removes is released.
    fn held_up(&self, found: &OutboxFile, message: &Message) -> Option<AgentName> {
        if self.held.is_empty() {
            return None;
        }
        ordered_recipient(message).filter(|to| self.held.is_behind(&found.agent, &found.file, to))
    }

    /// Holds a message behind an earlier one and returns the time of the next look. The earlier one releases this one; the
    /// look is for a release that was missed.
    fn wait_behind(
        &mut self,
        found: &OutboxFile,
        to: AgentName,
        moment: Moment,
    ) -> Result<u64, Stop> {
        self.hold(found, to).map_err(|rejection| Stop {
            rejection,
            patience: Patience::None,
        })?;
        // Its own wait for a packet begins now, so a line takes no longer than its first message.
        self.wait_of(found, moment);
        Ok(moment.mono.saturating_add(Patience::OpenPacket.still_ms()))
    }

    /// Holds a review message so that later ones to the same recipient cannot overtake it. Refuses it if its outbox
    /// holds too many.
    fn hold(&mut self, found: &OutboxFile, to: AgentName) -> Result<(), Box<Rejection>> {
        if self.held.hold(&found.agent, &found.file, to) {
            Ok(())
        } else {
            Err(Box::new(Rejection::too_many_waiting(&found.file)))
        }
    }

    /// Forgets a file that was judged or removed, and recalls those that waited behind it.
    fn forget(&mut self, agent: &str, file: &FileName) {
        self.log_takes.forget(agent, file);
        self.waits.remove(&(agent.to_owned(), file.clone()));
        if let Some(freed) = self.held.release(agent, file) {
            self.intake.recall(agent, &freed);
        }
    }

    /// Forgets files that disappeared from their outboxes between two looks, and files of agents that left.
    pub(crate) fn forget_gone(&mut self) {
        let Self {
            intake,
            held,
            waits,
            ..
        } = self;
        waits.retain(|(agent, file), _| intake.is_waiting(agent, file));
        for (agent, file) in held.all(|agent, file| !intake.is_waiting(agent, file)) {
            self.forget(&agent, &file);
        }
    }

    /// The time of the next look at a file that changed too recently to be refused; none if its time is up.
    fn not_yet(&mut self, found: &OutboxFile, patience: Patience, moment: Moment) -> Option<u64> {
        // A writer that has the packet open may be at work however old the message is.
        if patience != Patience::OpenPacket && found.age_ms >= patience.still_ms() {
            return None;
        }
        let wait = self.wait_of(found, moment);
        let since = if patience.is_for_packet() {
            wait.first
        } else {
            wait.still
        };
        let over = since.saturating_add(patience.still_ms());
        let pause = patience.retry_ms(moment.mono.saturating_sub(since));
        (moment.mono < over).then_some(over.min(moment.mono.saturating_add(pause)))
    }

    /// The wait of a file that gets more time, also of one behind another.
    fn wait_of(&mut self, found: &OutboxFile, moment: Moment) -> FileWait {
        let now = moment.mono;
        let wait = self
            .waits
            .entry((found.agent.clone(), found.file.clone()))
            .or_insert(FileWait {
                stamp: found.stamp,
                first: now,
                still: now,
            });
        if wait.stamp != found.stamp {
            (wait.stamp, wait.still) = (found.stamp, now);
        }
        *wait
    }
}

/// Finds the agent of this name among `agents`, which are sorted.
pub(crate) fn find_agent<'a>(agents: &'a [AgentName], name: &str) -> Option<&'a AgentName> {
    agents
        .binary_search_by(|agent| agent.as_str().cmp(name))
        .ok()
        .map(|place| &agents[place])
}

fn is_review(message: &Message) -> bool {
    message.kind().is_some_and(|kind| kind.is_review())
}

/// Returns the recipient in whose line a review message waits. The message is not checked yet: one that names no agent,
/// or several, waits for nothing, because the check refuses it in any case.
fn ordered_recipient(message: &Message) -> Option<AgentName> {
    let mut to = named_recipients(message).filter(|_| is_review(message));
    match (to.next(), to.next()) {
        (Some(to), None) => AgentName::new(to).ok(),
        _ => None,
    }
}

fn packet_bytes(packet: &PacketRead) -> usize {
    match packet {
        PacketRead::Bytes(bytes) => bytes.len(),
        PacketRead::Missing
        | PacketRead::Growing
        | PacketRead::Open
        | PacketRead::Linked
        | PacketRead::Unsafe(_)
        | PacketRead::TooLarge
        | PacketRead::OfAnother(_) => 0,
    }
}

fn packet_of(
    view: &View<'_>,
    read: &ReadMessage<'_>,
    moment: Moment,
) -> Result<Option<PacketRead>, SpoolError> {
    let Some(path) = &read.packet else {
        return Ok(None);
    };
    let user = read.submission.user;
    view.read_packet(path.as_str(), PACKET_BYTES_MAX, user, moment.spool())
        .map(Some)
}
