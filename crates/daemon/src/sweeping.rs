//! Lists every outbox, a few at a time, so that nobody's mail waits for a whole sweep through thousands of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use message_schema::id::AgentName;
use spool::{OutboxListing, Spool, SpoolError};
use workspace::directory;
use workspace::error::chain;

use crate::docket::{Docket, find_agent};
use crate::shared_ledger::SharedLedger;
use crate::step::{BeforeListing, StepEnd};

/// The time that a sweep gives the listing of one outbox, and the looks that it has in any case. An outbox with more names
/// leaves the sweep: the intake ends its listing later, in slices, and sweeps pass it over for a while. So one agent's full
/// outbox does not delay the listing of the others, nor the discovery of takes.
const LISTING_TIME: Duration = Duration::from_millis(2);
const LISTING_LOOKS: usize = 1_024;

/// The time for which sweeps pass over an outbox that left one, and that after it left several in a row: it doubles each time.
/// Hints still find its messages at once.
const REST: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(80);

/// The log line for an outbox that cannot be listed.
const NOT_LISTED: &str = "cannot list an outbox; will retry";

/// The sweeps through all outboxes.
#[derive(Default)]
pub(crate) struct Sweeping {
    /// The longest step, after which a served mailroom turns to other mail.
    pub(crate) step_max: Option<Duration>,
    /// The number of sweeps that have begun, and of those that have ended.
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    going: Option<Sweep>,
    /// Known agents whose outbox was missing.
    doubtful: BTreeSet<AgentName>,
    /// Known agents that may lack mailboxes; making them costs a sync each.
    incomplete: Vec<AgentName>,
    /// The number of outboxes that the last sweep could not list.
    pub(crate) unlisted: usize,
    /// The agents whose outboxes left the last sweep that listed them.
    passed_over: BTreeMap<String, PassedOver>,
}

/// The time for which sweeps pass over an outbox that left one.
struct PassedOver {
    until: Instant,
    length: Duration,
}

/// A step through the outboxes that this host reads.
pub(crate) struct OutboxStep<'a> {
    pub(crate) spool: &'a mut Spool,
    pub(crate) docket: &'a mut Docket,
    pub(crate) shared: Option<&'a SharedLedger>,
    pub(crate) end: StepEnd,
    /// Called before a sweep lists an outbox.
    pub(crate) before: &'a mut BeforeListing<'a>,
}

/// A sweep in progress.
struct Sweep {
    agents: Arc<[AgentName]>,
    next: usize,
    unlisted: usize,
    took: Duration,
}

impl Sweeping {
    /// The time at which a step that begins now has to end.
    pub(crate) fn step_end(&self) -> StepEnd {
        StepEnd(self.step_max.map(|most| Instant::now() + most))
    }

    /// Counts a sweep that begins, unless one is going; true if it counted one.
    pub(crate) fn begins(&mut self) -> bool {
        let begins = self.going.is_none();
        self.begun += u64::from(begins);
        begins
    }

    /// Begins the sweep that was counted, through the outboxes of these agents; `took` is the time it took so far.
    pub(crate) fn begin(&mut self, agents: Arc<[AgentName]>, took: Duration) {
        self.passed_over
            .retain(|agent, _| find_agent(&agents, agent).is_some());
        self.going = Some(Sweep {
            agents,
            next: 0,
            unlisted: 0,
            took,
        });
    }

    /// Continues the sweep that is going; returns the time it took if it has ended.
    pub(crate) fn step(&mut self, step: &mut OutboxStep<'_>) -> Option<Duration> {
        let began = Instant::now();
        let mut sweep = self.going.take()?;
        let is_over = self.list_some(&mut sweep, step);
        sweep.took += began.elapsed();
        if !is_over {
            self.going = Some(sweep);
            return None;
        }
        self.ended = self.begun;
        self.unlisted = sweep.unlisted;
        Some(sweep.took)
    }

    /// Lists the next outboxes, then completes the mailboxes of new agents; true if those were the last.
    fn list_some(&mut self, sweep: &mut Sweep, step: &mut OutboxStep<'_>) -> bool {
        while let Some(mut listing) = self.next_listing(sweep, step) {
            let view = step.spool.view();
            let slice = step.end.of_slice(LISTING_TIME);
            let intake = &mut step.docket.intake;
            let mut looks = 0;
            let mut is_over = || {
                looks += 1;
                looks > LISTING_LOOKS && slice.has_come()
            };
            match intake.list_on(&view, &mut listing, &mut is_over) {
                Ok(true) => drop(self.passed_over.remove(listing.agent())),
                Ok(false) => {
                    self.pass_over(listing.agent());
                    intake.list_later(listing);
                }
                Err(error) => {
                    sweep.unlisted += 1;
                    step.docket.unreadable(&error, NOT_LISTED);
                }
            }
            if step.end.has_come() {
                break;
            }
        }
        sweep.next >= sweep.agents.len() && self.complete_mailboxes(step)
    }

    /// Has the next sweeps pass over an outbox.
    fn pass_over(&mut self, agent: &str) {
        let last = self.passed_over.get(agent).map(|last| last.length);
        let length = last.map_or(REST, |last| (2 * last).min(REST_MAX));
        let until = Instant::now() + length;
        self.passed_over
            .insert(agent.to_owned(), PassedOver { until, length });
    }

    fn passes_over(&self, agent: &str) -> bool {
        let passed_over = self.passed_over.get(agent);
        passed_over.is_some_and(|it| Instant::now() < it.until)
    }

    /// Makes the missing mailboxes of new agents; true if none is missing. All outboxes are listed first, because each
    /// agent costs a sync, and a delivery makes the mailbox that it needs.
    fn complete_mailboxes(&mut self, step: &mut OutboxStep<'_>) -> bool {
        while let Some(agent) = self.incomplete.pop() {
            if let Err(error) = step.spool.make_mailboxes(agent.as_str()) {
                tracing::warn!(%agent, error = %chain(&error), "cannot create its missing mailboxes");
            }
            if step.end.has_come() {
                break;
            }
        }
        self.incomplete.is_empty()
    }

    /// Begins the listing of the next agent's outbox; `None` after the last, or if the step is over.
    fn next_listing(
        &mut self,
        sweep: &mut Sweep,
        step: &mut OutboxStep<'_>,
    ) -> Option<OutboxListing> {
        let agents = Arc::clone(&sweep.agents);
        while let Some(agent) = agents.get(sweep.next) {
            sweep.next += 1;
            if SharedLedger::reads(step.shared, agent) {
                (step.before)(agent, &step.spool.layout().outbox(agent.as_str()));
                let view = step.spool.view();
                if !(step.end.is_limited() && self.passes_over(agent.as_str())) {
                    match step.docket.intake.list(&view, agent.as_str()) {
                        Ok(Some(listing)) => return Some(listing),
                        Ok(None) => drop(self.doubtful.insert(agent.clone())),
                        Err(error) => {
                            sweep.unlisted += 1;
                            step.docket.unreadable(&error, NOT_LISTED);
                        }
                    }
                }
            }
            if step.end.has_come() {
                return None;
            }
        }
        None
    }

    /// The agents that have a mailbox now; `before` are those of the last sweep. If the time runs out, the next sweep
    /// adds the other new ones.
    pub(crate) fn agents(
        &mut self,
        root: &Path,
        before: &[AgentName],
        end: StepEnd,
    ) -> Result<Vec<AgentName>, SpoolError> {
        let mut agents = Vec::with_capacity(before.len());
        for agent in directory::candidates(root)? {
            let is_known = before.binary_search(&agent).is_ok();
            if is_known && !self.doubtful.contains(&agent) {
                agents.push(agent);
            } else if end.has_come() {
                agents.extend(Some(agent).filter(|_| is_known));
            } else if directory::has_mailbox(root, &agent) {
                self.doubtful.remove(&agent);
                if !is_known {
                    self.incomplete.push(agent.clone());
                }
                agents.push(agent);
            } else {
                self.doubtful.remove(&agent);
            }
        }
        Ok(agents)
    }
}
