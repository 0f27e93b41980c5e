//! Counts what the daemon does, for operators who watch many daemons. Labels are our own words, never text of an agent.
//! Counters begin at 0 with each start, as Prometheus expects.

mod histogram;
mod http;
mod page;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use review::{
    DaemonMessage, EscalationReason, EventRecord, Happened, Judgement, Phase, Record, ReviewKey,
    ReviewStep, Says,
};
use workspace::clock::Clock;

use self::histogram::Histogram;
pub(crate) use self::http::Exporter;

/// The counts of one mailroom.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    clock: Clock,
    accepted: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    duplicates: u64,
    events: u64,
    delivered: u64,
    /// Ended reviews by outcome.
    ended: BTreeMap<&'static str, u64>,
    escalated: BTreeMap<String, u64>,
    budgets_spent: u64,
    /// The rounds in which reviews ended.
    rounds: Histogram,
    /// The times from a commit to its last file.
    delivery: Histogram,
    /// A write and a sync of the ledger.
    commit: Histogram,
    /// The syncs that make deliveries survive a power cut.
    checkpoint: Histogram,
    sweep: Histogram,
    ledger_failures: u64,
    /// The commit times of undelivered batches, each with its number of messages.
    pending: VecDeque<(Duration, u64)>,
    pub(crate) gauges: Gauges,
}

/// The state as of the last sweep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    pub agents: usize,
    /// Reviews by their phase.
    pub reviews: BTreeMap<String, u64>,
    /// Files in outboxes that wait for judgement.
    pub unjudged: usize,
    /// Committed files that wait for delivery or archiving.
    pub undelivered: usize,
    /// Mailboxes that the daemon cannot write to.
    pub parked: usize,
    pub ledger_bytes: u64,
    pub(crate) config_refused: bool,
    /// The number of hosts that share the ledger, and this one's state.
    pub(crate) hosts: Option<(usize, &'static str)>,
}

/// A task whose duration is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedTask {
    Commit,
    Checkpoint,
    Sweep,
}

impl Meter {
    /// A meter with every count at 0.
    pub(crate) fn start() -> Self {
        let seconds = || Histogram::of(&histogram::SECONDS);
        Self {
            clock: Clock::start(),
            accepted: BTreeMap::new(),
            refused: BTreeMap::new(),
            duplicates: 0,
            events: 0,
            delivered: 0,
            ended: BTreeMap::new(),
            escalated: BTreeMap::new(),
            budgets_spent: 0,
            rounds: Histogram::of(&histogram::ROUNDS),
            delivery: seconds(),
            commit: seconds(),
            checkpoint: seconds(),
            sweep: seconds(),
            ledger_failures: 0,
            pending: VecDeque::new(),
            gauges: Gauges::default(),
        }
    }

    /// The time since the meter started, with which a measurement begins.
    pub(crate) fn now(&self) -> Duration {
        self.clock.passed()
    }

    /// The duration of a task that started at `began` and is done.
    pub(crate) fn since(&self, began: Duration) -> Duration {
        self.clock.passed().saturating_sub(began)
    }

    /// Adds the duration of a task.
    pub(crate) fn took(&mut self, task: TimedTask, took: Duration) {
        let took = took.as_secs_f64();
        match task {
            TimedTask::Commit => self.commit.add(took),
            TimedTask::Checkpoint => self.checkpoint.add(took),
            TimedTask::Sweep => self.sweep.add(took),
        }
    }

    /// Counts a failure to write the ledger that will be retried.
    pub(crate) fn ledger_failed(&mut self) {
        self.ledger_failures += 1;
    }

    /// Counts a committed record.
    pub(crate) fn committed(&mut self, record: &Record) {
        match record {
            Record::Judged(judgement) => self.judged(judgement),
            Record::Event(record) => {
                self.events += 1;
                if let EventRecord::Happened(happened) = record {
                    self.happened(happened);
                }
            }
        }
    }

    fn judged(&mut self, judgement: &Judgement) {
        match judgement {
            Judgement::Accepted(accepted) => {
                *self.accepted.entry(accepted.kind.as_str()).or_default() += 1;
                self.pending.push_back((self.clock.passed(), 1));
            }
            Judgement::Duplicate(_) => self.duplicates += 1,
            Judgement::Refused(refused) => {
                *self.refused.entry(refused.code.as_str()).or_default() += 1;
            }
        }
        if let Some(step) = judgement.step() {
            self.ended_by(step);
        }
    }

    fn happened(&mut self, happened: &Happened) {
        self.budgets_spent += happened
            .messages
            .iter()
            .filter(|message| is_budget_spent(message))
            .count() as u64;
        // An event may also add to a review that ended earlier; only the end itself sends a notice to the agents.
        for step in &happened.steps {
            let mut messages = happened.messages.iter();
            if messages.any(|message| ends(message, &step.review)) {
                self.ended_by(step);
            }
        }
    }

    fn ended_by(&mut self, step: &ReviewStep) {
        let outcome = match &step.phase {
            Phase::Awaiting { .. }
            | Phase::Reviewing(_)
            | Phase::Fixing { .. }
            | Phase::Addressed { .. } => {
                return;
            }
            Phase::Approved(_) => "approved",
            Phase::Escalated(reason) => {
                *self.escalated.entry(word(reason)).or_default() += 1;
                "escalated"
            }
            Phase::Closed(_) => "closed",
        };
        *self.ended.entry(outcome).or_default() += 1;
        self.rounds.add(f64::from(step.round));
    }

    /// Counts delivered files. `is_done` is true if nothing committed waits any more, except for mailboxes that cannot
    /// be written; they have their own gauge.
    pub(crate) fn delivered(&mut self, files: usize, is_done: bool) {
        self.delivered += files as u64;
        if is_done {
            let now = self.clock.passed();
            for (at, messages) in self.pending.drain(..) {
                self.delivery
                    .add_times(now.saturating_sub(at).as_secs_f64(), messages);
            }
        }
    }
}

fn is_budget_spent(message: &DaemonMessage) -> bool {
    matches!(message.says, Says::BudgetSpent { .. })
}

fn ends(message: &DaemonMessage, of: &ReviewKey) -> bool {
    matches!(
        &message.says,
        Says::Escalated { review, .. }
            | Says::BudgetSpent { review, .. }
            | Says::Closed { review, .. } if review == of
    )
}

/// Our own word for the reason: text of a reviewer must not become a label.
fn word(reason: &EscalationReason) -> String {
    if matches!(reason, EscalationReason::Reviewer(_)) {
        return "reviewer".to_owned();
    }
    reason.to_string()
}
