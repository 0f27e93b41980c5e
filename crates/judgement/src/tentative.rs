//! Holds the state on which messages are judged: the ledger's, plus the decisions of a batch that is not committed yet.
//! Each message of a batch is judged on the state that the one before it leaves. A commit makes that state the live
//! one; if the commit fails, the whole batch is rolled back.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use message_schema::Message;
use message_schema::id::AgentName;
use review::{
    Decision, EventRecord, Judgement, Policy, Record, RefusedMessage, State, StoredRows, Undo,
};
use spool::{Away, Content, Delivery, Digest, Entry, EntryDraft, Mailbox};

use crate::brief::file as brief_file;
use crate::draft::{Drafting, EntryFiles, RequestFile};
use crate::judge::{Judge, Refused, Submission};
use crate::rejudge::{self, Differs, RecordedMessage};
use crate::used_names::{NameScope, UsedNames};

/// The state, the names and the policy by which messages are judged.
#[derive(Debug)]
pub struct Tentative {
    state: State,
    names: UsedNames,
    policy: Policy,
    /// The agents that have a mailbox, sorted.
    agents: Arc<[AgentName]>,
    /// The undo steps of the open batch, oldest first.
    undo: Vec<Undo>,
    /// True if several hosts share the ledger: a packet reaches them only with its record.
    shares_packets: bool,
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
            shares_packets: false,
        }
    }

    /// Delivers the packet of each message from the next one on, because several hosts share the ledger.
    pub fn share_packets(&mut self) {
        self.shares_packets = true;
    }

    /// Returns the state of every review.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the current policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the agents that have a mailbox, sorted.
    pub fn agents(&self) -> &Arc<[AgentName]> {
        &self.agents
    }

    /// Judges by another policy, or for other agents, from the next message on.
    pub fn reconfigure(&mut self, policy: Policy, agents: impl Into<Arc<[AgentName]>>) {
        self.policy = policy;
        self.agents = agents.into();
    }

    /// Returns the judge of the next message or event.
    pub fn judge(&self, now: DateTime<Utc>) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now,
        }
    }

    /// Adds a message that was not refused to the batch; returns its entry and its record.
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

    /// Adds an event to the batch. An event that gives a review to another reviewer needs the file of the open request.
    pub fn add_event(
        &mut self,
        record: EventRecord,
        request: Option<RequestFile>,
        (seq, now): (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        let files = self.drafting(seq, now).event(&record, request);
        self.applied(record.into(), files, (seq, now))
    }

    /// Judges a record of another host and its files again, and adds it to the batch if both follow. `recorded` is the
    /// message of the entry.
    ///
    /// Not judged: the text of a report and of a notice about a refusal, because the record does not have the refused
    /// message; and the request that a reassigned review hands on, which an earlier record has.
    pub fn add_again(
        &mut self,
        entry: &Entry,
        record: &Record,
        recorded: Option<RecordedMessage>,
        now: DateTime<Utc>,
    ) -> Result<(), Differs> {
        let read = rejudge::follows(self.judge(now), entry, record, recorded)?;
        let at = (entry.seq, now);
        let mut files: EntryFiles = match record {
            Record::Judged(Judgement::Refused(refused)) => {
                refused_files(entry, refused)?;
                self.add_recorded(entry, record, now);
                return Ok(());
            }
            Record::Judged(Judgement::Accepted(accepted)) => {
                let (found, message) = read.ok_or(Differs::NoText)?;
                let outbox =
                    AgentName::new(found.agent.as_str()).map_err(|_| Differs::OtherSender)?;
                let submission = Submission {
                    found: &found,
                    outbox: &outbox,
                    user: None,
                };
                let decision = Decision::Accept(accepted.clone());
                let mut drafting = self.drafting(entry.seq, now);
                drafting.decided(submission, &message, &decision)
            }
            Record::Judged(Judgement::Duplicate(duplicate)) => {
                let original = entry.original.as_ref().ok_or(Differs::NoText)?;
                let scope = NameScope::Sent(&original.outbox);
                let sent = self.names.choose(scope, &original.file, entry.seq);
                let expected = spool::Original {
                    away: Away::Sent(sent),
                    text: None,
                    ..original.clone()
                };
                EntryFiles::of_original(&duplicate.id, expected)
            }
            Record::Event(event) => {
                let request = handed_on(entry, event);
                self.drafting(entry.seq, now).event(event, request)
            }
        };
        self.apply(record, &mut files, at);
        let draft = files.entry_with(entry.decision.clone(), record, now);
        same_files(entry, &draft)
    }

    /// Adds a record to the batch without judging it.
    pub fn add_recorded(&mut self, entry: &Entry, record: &Record, now: DateTime<Utc>) {
        self.undo.push(Undo::of(&self.state, record, now));
        review::apply(&mut self.state, record, now);
        self.names.note(entry);
    }

    /// Accepts the batch: the ledger has it.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.names.commit();
        self.state.release_finished();
    }

    /// Starts a snapshot of everything in the ledger. No batch may be open.
    pub fn begin_snapshot(&mut self) {
        self.state.begin_snapshot();
        self.names.begin_snapshot();
    }

    /// Abandons the snapshot that was started.
    pub fn give_up_snapshot(&mut self) {
        self.state.give_up_snapshot();
        self.names.give_up_snapshot();
    }

    /// Ends the snapshot: from now on, rows from before it are read from `stored`.
    pub fn rest_on(&mut self, stored: &Arc<dyn StoredRows>) {
        self.state.rest_on(stored);
        self.names.rest_on(stored);
    }

    /// Undoes the batch: the ledger does not have it.
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
            shares_packets: self.shares_packets,
        }
    }

    fn applied(
        &mut self,
        record: Record,
        mut files: EntryFiles,
        at: (u64, DateTime<Utc>),
    ) -> (EntryDraft, Record) {
        self.apply(&record, &mut files, at);
        (files.entry(&record, at.1), record)
    }

    /// Applies a record, and adds the brief that follows from it to its files.
    fn apply(&mut self, record: &Record, files: &mut EntryFiles, (seq, now): (u64, DateTime<Utc>)) {
        self.undo.push(Undo::of(&self.state, record, now));
        review::apply(&mut self.state, record, now);
        let Self {
            state,
            policy,
            names,
            ..
        } = self;
        let brief = brief_file::of(record, state, policy, (seq, now), names);
        files.deliveries.extend(brief);
    }
}

/// Returns the request that a record gives to another reviewer: the last text delivered to that reviewer.
fn handed_on(entry: &Entry, record: &EventRecord) -> Option<RequestFile> {
    let EventRecord::Happened(happened) = record else {
        return None;
    };
    let inbox = Mailbox::Inbox(happened.reassigned_to()?.to_string());
    let mut to_inbox = entry.deliveries.iter().filter(|made| made.mailbox == inbox);
    let delivery = to_inbox.next_back()?;
    match &delivery.content {
        Content::Text(text) => Some(RequestFile {
            file: delivery.file.clone(),
            text: text.clone(),
        }),
        Content::Original | Content::Withdrawn(_) => None,
    }
}

/// Checks that a refusal makes only its files: notices to its sender and to the agents that its cost concerns, and
/// withdrawals of copies; it delivers no message.
fn refused_files(entry: &Entry, refused: &RefusedMessage) -> Result<(), Differs> {
    let mut told = vec![refused.from.as_str()];
    if let Some(cost) = &refused.cost {
        told.extend(cost.messages.iter().map(|message| message.to.as_str()));
    }
    for delivery in &entry.deliveries {
        let fits = match (&delivery.mailbox, &delivery.content) {
            (Mailbox::Inbox(_), Content::Withdrawn(_)) => true,
            (Mailbox::Inbox(to), Content::Text(_)) => told.contains(&to.as_str()),
            (Mailbox::DeadLetter(of), Content::Text(_)) => *of == refused.from.as_str(),
            (Mailbox::Packets(_), Content::Text(_)) => refused.cost.is_some(),
            (_, Content::Original | Content::Withdrawn(_)) | (Mailbox::PullRequest(_), _) => false,
        };
        if !fits {
            let what = format!("a refusal makes no file in {}", delivery.mailbox);
            return Err(Differs::Files(what));
        }
    }
    match entry.original.as_ref().map(|original| &original.away) {
        Some(Away::DeadLetter(_)) | None => Ok(()),
        Some(away @ Away::Sent(_)) => {
            let what = format!("a refused original is put away to {away}");
            Err(Differs::Files(what))
        }
    }
}

/// Checks that a record makes the files that are drafted for its decision.
fn same_files(entry: &Entry, draft: &EntryDraft) -> Result<(), Differs> {
    if entry.deliveries != draft.deliveries {
        let mailbox = |delivery: &Delivery| format!("{}/{}", delivery.mailbox, delivery.file);
        let drafted: Vec<String> = draft.deliveries.iter().map(mailbox).collect();
        let what = format!("it makes the files {}", drafted.join(", "));
        return Err(Differs::Files(what));
    }
    fn away(original: Option<&spool::Original>) -> Option<(&Away, Option<Digest>, Option<&str>)> {
        let original = original?;
        Some((&original.away, original.digest, original.text.as_deref()))
    }
    let fits = away(entry.original.as_ref()) == away(draft.original.as_ref())
        && entry.kind == draft.kind
        && (&entry.review, &entry.id) == (&draft.review, &draft.id);
    if fits {
        Ok(())
    } else {
        let what = "it is filed, or its original put away, otherwise".to_owned();
        Err(Differs::Files(what))
    }
}

#[cfg(test)]
mod tests;
