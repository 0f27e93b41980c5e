//! Records changes among the hosts that share the ledger: each alone in its batch, checked by the fleet before and
//! folded once the ledger has it. Everything later is judged for the hosts and agents that the change leaves.

use chrono::DateTime;
use fleet::{Fleet, FleetRefusal};
use message_schema::id::{AgentName, MessageId};
use review::{Event, HostChange, Record, ReportedEvent};
use spool::log::Head;
use spool::{Committed, SpoolError};
use workspace::clock::Moment;
use workspace::index;

use super::{Mailroom, Pass};
use crate::docket::OpenBatch;

/// The reason a change of hosts is not recorded.
#[derive(Debug, thiserror::Error)]
pub enum HostChangeError {
    /// The workspace has one host.
    #[error("this workspace has one host")]
    OneHost,
    /// The fleet refuses it.
    #[error(transparent)]
    Refused(#[from] FleetRefusal),
    /// The log or the ledger did not take it now.
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

impl Mailroom {
    /// The hosts and the homes of agents, as of the last record; none if this is the only host.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.shared.as_ref().map(|shared| &shared.sharing.fleet)
    }

    /// The end of this host's ledger.
    pub fn head(&self) -> Head {
        self.spool.head()
    }

    /// True if an agent's home became this host, or another, since the mailroom was opened. Only a host that is opened
    /// again delivers that agent's mail.
    pub fn has_other_homes(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| shared.sharing.homes() != *self.spool.homes())
    }

    /// The number of hosts that share the ledger, and this one's standing.
    pub(super) fn hosts_gauge(&self) -> Option<(usize, &'static str)> {
        let (fleet, standing) = (self.fleet()?, self.shared.as_ref()?.told_standing());
        let hosts = fleet.members().filter(|(_, member)| !member.is_retired);
        Some((hosts.count(), standing.word()))
    }

    /// Records a change of the hosts, under the id of the request for it, if any.
    pub fn change_hosts(
        &mut self,
        change: &HostChange,
        order: Option<&MessageId>,
        moment: Moment,
    ) -> Result<(), HostChangeError> {
        let shared = self.shared.as_ref().ok_or(HostChangeError::OneHost)?;
        shared.sharing.check_change(change)?;
        let event = Event::Host(change.clone());
        let reported = ReportedEvent {
            order,
            event: &event,
        };
        let mut batch = OpenBatch::default();
        let record = self.judge_event(reported, moment);
        self.add(&mut batch, record, moment);
        self.commit(batch, moment, &mut Pass::default())?;
        Ok(())
    }

    /// Folds a committed record of hosts and puts the agents they have now on the roll.
    pub(super) fn note_host(&mut self, entry: &Committed, record: &Record) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        let fleet = &mut shared.sharing.fleet;
        let at = DateTime::parse_from_rfc3339(&entry.at).map(|at| at.to_utc());
        let at = at.expect("the ledger has no record without a time");
        let folded = index::fold_hosts(fleet, entry, record, at);
        folded.expect("the fleet was asked before the record was committed");
        if index::host_change(record).is_some() {
            let agents: Vec<_> = fleet.agents().cloned().collect();
            self.docket.reconfigure(&self.config, agents.into());
            // An agent's new home judges the files in its outbox.
            let is_here = |agent: AgentName| shared.is_at_home(&agent);
            let intake = &mut self.docket.intake;
            intake.keep(&|agent| agent.parse().is_ok_and(is_here));
        }
    }
}
