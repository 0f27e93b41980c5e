//! Lists every outbox, a few at a time, so that nobody's mail waits for a whole round through thousands of agents.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use message_schema::id::AgentName;
use spool::{OutboxListing, SpoolError};
use workspace::directory;
use workspace::error::chain;

use super::Mailroom;
use crate::docket::on_the_roll;
use crate::metrics::TimedTask;
use crate::step::{BeforeListing, StepEnd};

/// The longest slice of one outbox's listing: an outbox of any number of names holds up the round of the others, and the
/// others hold up its own, for no longer at a time.
const LISTING_TIME: Duration = Duration::from_millis(2);

/// The most listings that have begun and not ended; each keeps two files open.
const LISTINGS_MAX: usize = 2;

/// The rounds through all outboxes.
#[derive(Default)]
pub(super) struct Sweeping {
    /// The longest step, after which a served mailroom turns to other mail.
    step_max: Option<Duration>,
    /// The number of rounds that have begun, and of those that have ended.
    begun: u64,
    ended: u64,
    going: Option<Round>,
    /// Agents on the roll whose outbox was missing.
    doubtful: BTreeSet<AgentName>,
    /// Agents on the roll that may lack mailboxes; making them costs a sync each.
    incomplete: Vec<AgentName>,
    /// The number of outboxes that the last round could not list.
    pub(super) unlisted: usize,
}

/// A round in progress.
struct Round {
    agents: Arc<[AgentName]>,
    next: usize,
    /// Listings that did not end within their slice; they take turns.
    unfinished: VecDeque<OutboxListing>,
    unlisted: usize,
    took: Duration,
}

impl Mailroom {
    /// Limits each step of a sweep, and each scan for unknown senders, to this time; without this call there is no
    /// limit.
    pub fn limit_step_time(&mut self, limit: Duration) {
        self.sweeping.step_max = Some(limit);
    }

    /// Lists who has a mailbox now and what is in every outbox; the next pass looks for takes. Fails permanently if the
    /// workspace was moved away or somebody else changed its ledger.
    pub fn sweep(&mut self) -> Result<(), SpoolError> {
        let round = self.next_round();
        while self.sweeping.ended < round {
            self.step(StepEnd(None), &mut |_, _| ())?;
        }
        Ok(())
    }

    /// The number of the first round that will find everything that is in an outbox now.
    pub fn next_round(&self) -> u64 {
        self.sweeping.begun + 1
    }

    /// Continues the rounds up to this one for as long as a step may take; true if it has ended.
    pub fn sweep_on(
        &mut self,
        round: u64,
        before: &mut BeforeListing<'_>,
    ) -> Result<bool, SpoolError> {
        let end = self.step_end();
        while self.sweeping.ended < round {
            self.step(end, before)?;
            if end.has_come() {
                break;
            }
        }
        Ok(self.sweeping.ended >= round)
    }

    /// The time at which a step that begins now has to end.
    pub(super) fn step_end(&self) -> StepEnd {
        StepEnd(self.sweeping.step_max.map(|most| Instant::now() + most))
    }

    /// Continues a round or begins one. If it cannot begin, no outbox counts as listed.
    fn step(&mut self, end: StepEnd, before: &mut BeforeListing<'_>) -> Result<(), SpoolError> {
        let began = Instant::now();
        let going = match self.sweeping.going.take() {
            Some(round) => Ok(round),
            None => self.begin_round(end),
        };
        let mut round =
            going.inspect_err(|_| self.sweeping.unlisted = self.docket.agents().len().max(1))?;
        let is_over = self.list_some(&mut round, end, before);
        round.took += began.elapsed();
        if is_over {
            self.end_round(&round);
        } else {
            self.sweeping.going = Some(round);
        }
        Ok(())
    }

    fn begin_round(&mut self, end: StepEnd) -> Result<Round, SpoolError> {
        self.sweeping.begun += 1;
        self.spool.still_there()?;
        self.call_the_roll(end)?;
        Ok(Round {
            agents: Arc::clone(self.docket.agents()),
            next: 0,
            unfinished: VecDeque::new(),
            unlisted: 0,
            took: Duration::ZERO,
        })
    }

    /// Lists the next outboxes, then completes the mailboxes of new agents; true if those were the last.
    fn list_some(
        &mut self,
        round: &mut Round,
        end: StepEnd,
        before: &mut BeforeListing<'_>,
    ) -> bool {
        while let Some(mut listing) = self.next_listing(round, end, before) {
            let view = self.spool.view();
            let slice = end.of_slice(LISTING_TIME);
            let intake = &mut self.docket.intake;
            match intake.list_on(&view, &mut listing, &mut || slice.has_come()) {
                Ok(true) => {}
                Ok(false) => round.unfinished.push_back(listing),
                Err(error) => self.not_listed(round, &error),
            }
            if end.has_come() {
                break;
            }
        }
        round.next >= round.agents.len()
            && round.unfinished.is_empty()
            && self.complete_mailboxes(end)
    }

    /// Makes the missing mailboxes of new agents; true if none is missing. All outboxes are listed first, because each
    /// agent costs a sync, and a delivery makes the mailbox that it needs.
    fn complete_mailboxes(&mut self, end: StepEnd) -> bool {
        while let Some(agent) = self.sweeping.incomplete.pop() {
            if let Err(error) = self.spool.make_mailboxes(agent.as_str()) {
                tracing::warn!(%agent, error = %chain(&error), "cannot create its missing mailboxes");
            }
            if end.has_come() {
                break;
            }
        }
        self.sweeping.incomplete.is_empty()
    }

    /// Begins the listing of the next agent's outbox, or returns one that is to be continued.
    fn next_listing(
        &mut self,
        round: &mut Round,
        end: StepEnd,
        before: &mut BeforeListing<'_>,
    ) -> Option<OutboxListing> {
        let agents = Arc::clone(&round.agents);
        while round.unfinished.len() < LISTINGS_MAX
            && let Some(agent) = agents.get(round.next)
        {
            round.next += 1;
            if self.is_at_home(agent) {
                before(agent, &self.spool.layout().outbox(agent.as_str()));
                let view = self.spool.view();
                match self.docket.intake.list(&view, agent.as_str()) {
                    Ok(Some(listing)) => return Some(listing),
                    Ok(None) => drop(self.sweeping.doubtful.insert(agent.clone())),
                    Err(error) => self.not_listed(round, &error),
                }
            }
            if end.has_come() {
                return None;
            }
        }
        round.unfinished.pop_front()
    }

    fn not_listed(&mut self, round: &mut Round, error: &SpoolError) {
        round.unlisted += 1;
        if !self.docket.alerts.raise_unreadable(error) {
            tracing::warn!(error = %chain(error), "cannot list an outbox; will retry");
        }
    }

    fn end_round(&mut self, round: &Round) {
        self.sweeping.ended = self.sweeping.begun;
        self.sweeping.unlisted = round.unlisted;
        let agents = Arc::clone(self.docket.agents());
        self.docket
            .intake
            .keep(&|agent| on_the_roll(&agents, agent).is_some());
        self.docket.forget_gone();
        self.check_alert_conditions();
        self.waits.any_orders = true;
        self.expect_takes();
        self.meter.took(TimedTask::Sweep, round.took);
    }

    /// Puts every agent that has a mailbox on the roll. If the time runs out, the next round adds the other new ones.
    fn call_the_roll(&mut self, end: StepEnd) -> Result<(), SpoolError> {
        let before = Arc::clone(self.docket.agents());
        let mut agents = Vec::with_capacity(before.len());
        for agent in directory::candidates(&self.root)? {
            let is_known = before.binary_search(&agent).is_ok();
            if is_known && !self.sweeping.doubtful.contains(&agent) {
                agents.push(agent);
            } else if end.has_come() {
                agents.extend(Some(agent).filter(|_| is_known));
            } else if directory::has_mailbox(&self.root, &agent) {
                self.sweeping.doubtful.remove(&agent);
                if !is_known {
                    self.sweeping.incomplete.push(agent.clone());
                }
                agents.push(agent);
            } else {
                self.sweeping.doubtful.remove(&agent);
            }
        }
        let agents = self.shared_roll(agents);
        if agents != **self.docket.agents() {
            self.docket.reconfigure(&self.config, agents.into());
        }
        Ok(())
    }

    /// Puts every agent that has a mailbox on the roll, however long it takes.
    pub(super) fn call_the_whole_roll(&mut self) -> Result<(), SpoolError> {
        self.call_the_roll(StepEnd(None))
    }
    /// Lists one agent's outbox to its end: an answer was just put there.
    pub(crate) fn look_into_outbox(&mut self, agent: &AgentName) -> Result<(), SpoolError> {
        let view = self.spool.view();
        let listed = self.docket.intake.scan_one(&view, agent.as_str());
        listed.map(drop)
    }
}
