//! Holds the state messages are judged on: the ledger's, plus the decisions of a batch that is not committed yet. Each
//! message of a batch is judged on the state the one before it leaves. A commit makes that state the true one; if it
//! fails, the whole batch is rolled back.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::Message;
use message_schema::id::AgentName;
use review::{Decision, EventRecord, Judgement, Policy, Record, State, Undo};
use spool::EntryDraft;

use crate::brief::file as brief_file;
use crate::draft::{Drafting, EntryFiles, RequestFile};
use crate::judge::{Judge, Refused, Submission};
use crate::used_names::UsedNames;

/// The state, the names and the policy messages are judged by.
#[derive(Debug)]
pub struct Tentative {
    state: State,
    names: UsedNames,
    policy: Policy,
    /// The agents that have a mailbox, sorted.
    agents: Arc<[AgentName]>,
    /// The undo steps of the open batch, oldest first.
    undo: Vec<Undo>,
}

impl Tentative {
    /// Begins with the ledger's state.
    pub fn new(state: State, names: UsedNames, policy: Policy) -> Self {
        Self {
            state,
            names,
            policy,
            agents: Arc::from([]),
            undo: Vec::new(),
        }
    }

    /// The state of every review.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The current policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The agents that have a mailbox, sorted.
    pub fn agents(&self) -> &Arc<[AgentName]> {
        &self.agents
    }

    /// Judges by another policy, or for other agents, from the next message on.
    pub fn reconfigure(&mut self, policy: Policy, agents: impl Into<Arc<[AgentName]>>) {
        self.policy = policy;
        self.agents = agents.into();
    }

    /// The judge of the next message or event.
    pub fn judge(&self, now: DateTime<Utc>) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now,
        }
    }

    /// Adds a message that was not refused to the batch; gives its entry and its record.
    pub fn add_decided(
        &mut self,
        submission: Submission<'_>,
        message: &Message,
        decision: Decision,
        (seq, now): (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        let files = self
            .drafting(seq, now)
            .decided(submission, message, &decision);
        self.applied(decision.into_judgement().into(), files, (seq, now))
    }

    /// Adds a refusal to the batch.
    pub fn add_refused(
        &mut self,
        submission: Submission<'_>,
        message: Option<&Message>,
        refused: Refused,
        (seq, now): (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        let files = self
            .drafting(seq, now)
            .refused(submission, message, &refused);
        let judgement = Judgement::Refused(refused.record);
        self.applied(judgement.into(), files, (seq, now))
    }

    /// Adds an event to the batch. One that moves a review to another reviewer needs the file of the open request.
    pub fn add_event(
        &mut self,
        record: EventRecord,
        request: Option<RequestFile>,
        (seq, now): (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        let files = self.drafting(seq, now).event(&record, request);
        self.applied(record.into(), files, (seq, now))
    }

    /// Accepts the batch, which the ledger has now.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.names.commit();
        self.state.release_finished();
    }

    /// Undoes the batch, which the ledger does not have.
    pub fn roll_back(&mut self) {
        for undo in self.undo.drain(..).rev() {
            undo.revert(&mut self.state);
        }
        self.names.roll_back();
    }

    fn drafting(&mut self, seq: u64, now: DateTime<Utc>) -> Drafting<'_> {
        Drafting {
            seq,
            now,
            state: &self.state,
            agents: &self.agents,
            names: &mut self.names,
        }
    }

    fn applied(
        &mut self,
        record: Record,
        mut files: EntryFiles,
        (seq, now): (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        self.undo.push(Undo::of(&self.state, &record));
        review::apply(&mut self.state, &record, now);
        let Self {
            state,
            policy,
            names,
            ..
        } = self;
        let brief = brief_file::of(&record, state, policy, (seq, now), names);
        files.deliveries.extend(brief);
        (files.entry(&record, now), record)
    }
}

#[cfg(test)]
mod tests;
