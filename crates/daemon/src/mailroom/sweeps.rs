//! The mailroom's sweeps through all outboxes: what it does before one begins and after one has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spool::SpoolError;

use super::Mailroom;
use crate::docket::find_agent;
use crate::metrics::TimedTask;
use crate::step::{BeforeListing, StepEnd};
use crate::sweeping::OutboxStep;

impl Mailroom {
    /// Limits each step of a sweep, each scan for unknown senders, and the orders of a pass, to this time, and a pass to one
    /// batch of orders; without this call there is no limit.
    pub fn limit_step_time(&mut self, limit: Duration) {
        self.sweeping.step_max = Some(limit);
    }

    /// Lists who has a mailbox now and what is in every outbox; the next pass looks for takes. Fails permanently if the
    /// workspace was moved away or somebody else changed its ledger.
    pub fn sweep(&mut self) -> Result<(), SpoolError> {
        let sweep = self.next_sweep();
        while self.sweeping.ended < sweep {
            self.step(StepEnd(None), &mut |_, _| ())?;
        }
        Ok(())
    }

    /// The number of the first sweep that will find everything that is in an outbox now.
    pub fn next_sweep(&self) -> u64 {
        self.sweeping.begun + 1
    }

    /// Continues the sweeps up to this one for as long as a step may take; true if it has ended.
    pub fn sweep_on(
        &mut self,
        sweep: u64,
        before: &mut BeforeListing<'_>,
    ) -> Result<bool, SpoolError> {
        let end = self.sweeping.step_end();
        while self.sweeping.ended < sweep {
            self.step(end, before)?;
            if end.has_come() {
                break;
            }
        }
        Ok(self.sweeping.ended >= sweep)
    }

    /// Continues a sweep or begins one. If it cannot begin, no outbox counts as listed.
    fn step(&mut self, end: StepEnd, before: &mut BeforeListing<'_>) -> Result<(), SpoolError> {
        let began = Instant::now();
        if self.sweeping.begins() {
            self.spool
                .still_there()
                .and_then(|()| self.find_agents(end))
                .inspect_err(|_| self.sweeping.unlisted = self.docket.agents().len().max(1))?;
            let agents = Arc::clone(self.docket.agents());
            self.sweeping.begin(agents, began.elapsed());
        }
        let mut step = OutboxStep {
            spool: &mut self.spool,
            docket: &mut self.docket,
            shared: self.shared.as_ref(),
            end,
            before: &mut |agent, outbox| before(agent, outbox),
        };
        let ended = self.sweeping.step(&mut step);
        if let Some(took) = ended {
            self.end_sweep(took);
        }
        Ok(())
    }

    fn end_sweep(&mut self, took: Duration) {
        let agents = Arc::clone(self.docket.agents());
        self.docket
            .intake
            .keep(&|agent| find_agent(&agents, agent).is_some());
        self.docket.forget_gone();
        self.check_alert_conditions();
        self.waits.sweep_ended(&self.docket.intake);
        self.meter.took(TimedTask::Sweep, took);
    }

    /// Finds every agent that has a mailbox. If the time runs out, the next sweep adds the other new ones.
    pub(super) fn find_agents(&mut self, end: StepEnd) -> Result<(), SpoolError> {
        let agents = self
            .sweeping
            .agents(&self.root, self.docket.agents(), end)?;
        let agents = self.shared_agents(agents);
        if agents != **self.docket.agents() {
            self.docket.reconfigure(&self.config, agents.into());
        }
        Ok(())
    }
}
