//! The mailroom of one of several hosts: what it may judge, fire and record as far as the shared ledger allows, and
//! changes of the hosts, each alone in its batch. `following` takes over what the others judged.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::DateTime;
use fleet::{Fleet, FleetRefusal};
use message_schema::id::{AgentName, MessageId};
use review::{Event, EventRecord, HostChange, Record, ReviewKey};
use spool::log::Head;
use spool::{Committed, Entry, EntryDraft, FileName, SpoolError};
use workspace::clock::Moment;
use workspace::index;
use workspace::operator_alerts::{Alert, AlertKind};

use super::Mailroom;
use crate::batch::OpenBatch;
use crate::shared_ledger::{SharedLedger, SharingState};

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
    /// The relation of this host's ledger to the shared one; none if it is the only host.
    pub fn sharing_state(&self) -> Option<&SharingState> {
        self.shared.as_ref().map(|shared| &shared.sharing_state)
    }

    /// Follows the log from now on even if the fleet does not know this host's key, so that the host can join with it. Until
    /// it has joined, it records nothing else.
    pub fn follow_to_join(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.is_joining = true;
        }
    }

    /// Sets the callback for news of the log: it wakes the loop that calls [`Mailroom::pass`].
    pub fn wake_by(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        if let Some(shared) = &mut self.shared {
            let has_changed = Arc::clone(&shared.has_changed);
            shared.sharing.log.on_change(Box::new(move || {
                has_changed.store(true, Ordering::Release);
                wake();
            }));
        }
    }

    /// True if this host judged the record, whichever way its ledger got it.
    pub(super) fn is_from_here(&self, entry: &Entry) -> bool {
        let shared = self.shared.as_ref();
        shared.is_none_or(|shared| entry.host.as_ref() == Some(&shared.sharing.host))
    }

    /// True if this host reads the agent's outbox and delivers to it.
    pub(super) fn is_at_home(&self, agent: &AgentName) -> bool {
        SharedLedger::reads(self.shared.as_ref(), agent)
    }

    /// The agents of a shared workspace: the fleet's agents, whether or not they have a mailbox on this host.
    pub(super) fn shared_agents(&self, here: Vec<AgentName>) -> Vec<AgentName> {
        match &self.shared {
            Some(shared) => shared.sharing.fleet.agents().cloned().collect(),
            None => here,
        }
    }

    /// The time of the next look at the log, on the monotonic clock.
    pub(super) fn next_look(&self) -> Option<u64> {
        let shared = self.shared.as_ref()?;
        match shared.sharing_state {
            SharingState::InStep | SharingState::Waiting { .. } | SharingState::Frozen { .. } => {
                Some(shared.look_at)
            }
            SharingState::Outdated { .. } if self.may_change_policy() => Some(shared.look_at),
            SharingState::Outdated { .. } => None,
        }
    }

    /// The moment at which something is judged: never before the last record's, whatever this host's clock says.
    pub(super) fn judged_at(&self, moment: Moment) -> Moment {
        let last = self.shared.as_ref().map(|shared| shared.last.at);
        Moment {
            utc: last.map_or(moment.utc, |last| last.max(moment.utc)),
            ..moment
        }
    }

    /// True if this host may fire the deadline of this review now.
    pub(super) fn may_fire(&self, key: &ReviewKey, moment: Moment) -> bool {
        self.shared.as_ref().is_none_or(|shared| {
            let state = self.docket.tentative.state();
            let now = shared.deadline_clock(moment.utc);
            shared.may_fire(state, key, &shared.sharing.host, now)
        })
    }

    /// The record of a deadline, marked if the agent it is about is at home on another host.
    pub(super) fn marked_away(&self, mut record: EventRecord) -> EventRecord {
        if let (Some(shared), EventRecord::Happened(happened)) = (&self.shared, &mut record)
            && let Event::Deadline { review, .. } = &happened.event
        {
            let state = self.docket.tentative.state();
            happened.home_away = shared.is_away(state, review, &shared.sharing.host);
        }
        record
    }

    /// Commits what was judged for the very end of the ledger: here, or in the log first.
    pub(super) fn commit_drafts(
        &mut self,
        drafts: Vec<EntryDraft>,
        records: &[Record],
        moment: Moment,
    ) -> Result<Vec<Committed>, SpoolError> {
        let Self { spool, shared, .. } = self;
        match shared {
            Some(shared) => shared.commit(spool, drafts, records, moment),
            None => spool.commit(spool.next_seq(), drafts),
        }
    }

    /// The files that a batch judged; none without a shared ledger, because only its log may refuse the batch.
    pub(super) fn judged_files(&self, batch: &OpenBatch) -> Vec<(String, FileName)> {
        if self.shared.is_none() {
            return Vec::new();
        }
        let originals = batch
            .drafts
            .iter()
            .filter_map(|draft| draft.original.as_ref());
        originals
            .map(|original| (original.outbox.clone(), original.file.clone()))
            .collect()
    }

    /// True if this host follows the log, or there is none.
    pub(crate) fn is_in_step(&self) -> bool {
        let sharing_state = self.sharing_state();
        sharing_state.is_none_or(|sharing_state| *sharing_state == SharingState::InStep)
    }

    /// True if this host delivers nothing any more.
    pub(super) fn is_frozen(&self) -> bool {
        matches!(self.sharing_state(), Some(SharingState::Frozen { .. }))
    }

    /// Tells operators while this host waits, or does not go on.
    pub(super) fn alert_of_sharing_state(&mut self) {
        let Some(shared) = &self.shared else {
            return;
        };
        let what = shared.told_state().describe();
        self.meter.gauges.hosts = self.hosts_gauge();
        let path = self.spool.layout().ledger();
        let alerts = &mut self.docket.alerts;
        match what {
            Some(what) => {
                let kind = AlertKind::SharedLedger;
                alerts.raise(Alert { kind, path, what });
            }
            None => alerts.clear(|alert| alert.kind == AlertKind::SharedLedger),
        }
        alerts.save();
    }

    /// The hosts and the homes of agents, as of the last record; none if this is the only host.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.shared.as_ref().map(|shared| &shared.sharing.fleet)
    }

    /// The end of this host's ledger.
    pub fn head(&self) -> Head {
        self.spool.head()
    }

    /// True if an agent's home moved to or from this host since the mailroom was opened. The host delivers that agent's mail
    /// only after a restart.
    pub fn has_other_homes(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| shared.sharing.homes() != *self.spool.homes())
    }

    /// The number of hosts that share the ledger, and this one's state.
    pub(super) fn hosts_gauge(&self) -> Option<(usize, &'static str)> {
        let (fleet, sharing_state) = (self.fleet()?, self.shared.as_ref()?.told_state());
        let hosts = fleet.members().filter(|(_, member)| !member.is_retired);
        Some((hosts.count(), sharing_state.word()))
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
        Ok(self.record_event(&Event::Host(change.clone()), order, moment)?)
    }

    /// Folds a committed record of hosts and takes over the agents they have now.
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
