//! The state, policy and packets of a scenario while it runs, with time as a number. Every message and event becomes a
//! record and is applied, as in the daemon.

use std::cell::Cell;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use judgement::{Judge, Submission};
use message_schema::id::{AgentName, MessageId, PacketPath, PrNumber};
use review::{Event, EventRecord, Policy, Record, ReportedEvent, State, Undo};
use spool::{Body, OutboxFile, PacketRead};
use workspace::config::Config;

use super::compose::{Mail, PacketEntry};
use super::facts::{self, Ended, Fact};
use super::format::Setup;
use super::steps::{RawContent, RawFile};
use super::submit;

/// The daemon of a scenario, without a disk.
pub(super) struct Session {
    pub(super) state: State,
    policy: Policy,
    pub(super) now: DateTime<Utc>,
    records: Vec<(Record, DateTime<Utc>)>,
    packets: BTreeMap<String, PacketEntry>,
    written: SequentialIds,
}

/// Saves a state in the form of a snapshot and restores it.
fn through_snapshot(state: &State) -> Result<State, String> {
    state.through_snapshot().map_err(|error| error.to_string())
}

/// Sequential ids for the daemon's notices.
#[derive(Default)]
pub(super) struct SequentialIds(Cell<u32>);

impl SequentialIds {
    pub(super) fn next(&self) -> MessageId {
        self.0.set(self.0.get() + 1);
        MessageId::new(format!("settled-{}", self.0.get())).expect("letters and digits are an id")
    }
}

impl Session {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            state: State::default(),
            policy: setup.config.policy(setup.agents.iter().cloned()),
            now: setup.start,
            records: Vec::new(),
            packets: BTreeMap::new(),
            written: SequentialIds::default(),
        }
    }

    /// Judges a message from an agent, with the packet it wrote before.
    pub(super) fn post(&mut self, mail: &Mail) -> Vec<Fact> {
        if let Some((_, PacketEntry::Unchecked)) = mail.packet {
            return submit::by_itself(mail.text.as_bytes());
        }
        self.packets.extend(mail.packet.clone());
        let found = submit::file(
            &mail.outbox,
            0,
            Body::message(mail.text.as_bytes().to_vec()),
        );
        self.submit(&mail.outbox, &found, None)
    }

    /// Judges an entry of an outbox.
    pub(super) fn find(&mut self, raw: &RawFile) -> Vec<Fact> {
        let (owner, user, body) = match &raw.content {
            RawContent::Bytes(bytes) => (0, None, Body::message(bytes.clone())),
            RawContent::Foreign => (1002, Some(1001), Body::message(Vec::new())),
            RawContent::Unfit(unfit) => (0, None, Body::Unfit(*unfit)),
            RawContent::Overflow => {
                let ids = &mut || self.written.next();
                let (judgement, facts) = submit::overflow(self.judge(), &raw.outbox, ids);
                self.apply(judgement);
                return facts;
            }
        };
        let found = submit::file(&raw.outbox, owner, body);
        self.submit(&raw.outbox, &found, user)
    }

    fn submit(&mut self, outbox: &AgentName, found: &OutboxFile, user: Option<u32>) -> Vec<Fact> {
        let submission = Submission {
            found,
            outbox,
            user,
        };
        let (judgement, facts) = submit::submit(
            self.judge(),
            submission,
            |path| packet_at(path, &self.packets),
            &mut || self.written.next(),
        );
        self.apply(judgement);
        facts
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now: self.now,
        }
    }

    /// Judges an event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Fact> {
        let reported = ReportedEvent { order: None, event };
        let record = self.judge().event(reported, &mut || self.written.next());
        let facts = facts::event(&record);
        self.apply(record);
        facts
    }

    /// Applies a record with which the scenario begins.
    pub(super) fn apply(&mut self, record: impl Into<Record>) {
        let record = record.into();
        review::apply(&mut self.state, &record, self.now);
        self.records.push((record, self.now));
    }

    /// Advances time to an instant. Earlier deadlines act, each at its own instant; a deadline at that very instant
    /// waits, because a message at the same instant goes first.
    pub(super) fn pass_to(&mut self, instant: DateTime<Utc>) -> Vec<Fact> {
        let mut facts = Vec::new();
        while let Some((at, _)) = self.state.next_deadline().filter(|(at, _)| *at < instant) {
            self.now = self.now.max(at);
            facts.extend(self.keep_deadlines());
        }
        self.now = instant;
        facts
    }

    /// Acts on every deadline that has passed.
    pub(super) fn keep_deadlines(&mut self) -> Vec<Fact> {
        let mut facts = Vec::new();
        loop {
            let Some(record) = self.judge().due(&mut || self.written.next()) else {
                return facts;
            };
            // A deadline is not a step of the scenario, so its facts carry their own time.
            let at = self.now.format("%Y-%m-%dT%H:%M:%SZ");
            let mut lines: Vec<Fact> = facts::event(&record);
            if let (EventRecord::Happened(happened), Some(first)) = (&record, lines.first_mut()) {
                *first = Fact::note(format!("{} {at}", happened.event.sentence()));
            }
            facts.extend(lines);
            self.apply(record);
        }
    }

    /// Restarts the daemon: folds all records again and checks that they give the same state.
    pub(super) fn restart(&mut self) -> Result<Vec<Fact>, String> {
        let mut state = State::default();
        for (record, at) in &self.records {
            let json = serde_json::to_string(record).map_err(|error| error.to_string())?;
            let record: Record =
                serde_json::from_str(&json).map_err(|error| format!("{error}: {json}"))?;
            review::apply(&mut state, &record, *at);
        }
        if state != self.state {
            return Err(format!(
                "the fold of {} records is not the state there was",
                self.records.len()
            ));
        }
        self.state = self.resumed()?;
        self.check_undo()?;
        self.check_costs()?;
        Ok(vec![Fact::yes(format!(
            "restarted records={}",
            self.records.len()
        ))])
    }

    /// Checks that undoing any number of records restores the state before them. The daemon relies on it when a commit
    /// fails.
    fn check_undo(&self) -> Result<(), String> {
        let mut state = State::default();
        let mut before = Vec::new();
        for (record, at) in &self.records {
            before.push((state.clone(), Undo::of(&state, record, *at)));
            review::apply(&mut state, record, *at);
        }
        for (n, (was, undo)) in before.into_iter().enumerate().rev() {
            undo.revert(&mut state);
            if state != was {
                return Err(format!("record {} undone leaves another state", n + 1));
            }
        }
        Ok(())
    }

    /// Checks that no refusal is free whose code always costs: other hosts do not accept such a record.
    fn check_costs(&self) -> Result<(), String> {
        let refused = self
            .records
            .iter()
            .filter_map(|(record, _)| record.refused());
        let mut free = refused.filter(|refused| refused.cost.is_none());
        match free.find(|refused| review::always_costs(refused.code)) {
            Some(refused) => Err(format!("a refusal with `{}` costs nothing", refused.code)),
            None => Ok(()),
        }
    }

    /// The state that a start restores from a snapshot. Checks that a snapshot after any record gives the same state.
    fn resumed(&self) -> Result<State, String> {
        let mut before = State::default();
        let mut resumed = through_snapshot(&before)?;
        for taken_after in 0..=self.records.len() {
            resumed = through_snapshot(&before)?;
            for (record, at) in &self.records[taken_after..] {
                review::apply(&mut resumed, record, *at);
            }
            if resumed != self.state {
                return Err(format!(
                    "a snapshot after {taken_after} records gives another state"
                ));
            }
            if let Some((record, at)) = self.records.get(taken_after) {
                review::apply(&mut before, record, *at);
            }
        }
        Ok(resumed)
    }

    /// Restarts the daemon with another config.
    pub(super) fn reconfigure(
        &mut self,
        config: &Config,
        setup: &Setup,
    ) -> Result<Vec<Fact>, String> {
        let restarted = self.restart()?;
        self.policy = config.policy(setup.agents.iter().cloned());
        Ok(restarted)
    }

    /// The current policy.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the current round of a pull request's review.
    pub(super) fn round(&self, pr: &PrNumber) -> Option<u32> {
        let of_pr = self.state.reviews().filter(|(key, _)| key.pr.same_pr(pr));
        of_pr.map(|(_, review)| review.round).last()
    }

    /// Describes the state of every review and task.
    pub(super) fn ended(&self) -> Vec<Ended> {
        let reviews = self
            .state
            .reviews()
            .map(|(key, review)| Ended::review(key, review));
        reviews.chain(self.state.tasks().map(Ended::task)).collect()
    }
}

fn packet_at(path: &PacketPath, packets: &BTreeMap<String, PacketEntry>) -> PacketRead {
    match packets.get(path.as_str()) {
        None | Some(PacketEntry::Unchecked) => PacketRead::Missing,
        Some(PacketEntry::Text(text)) => PacketRead::Bytes(text.clone().into_bytes()),
        Some(PacketEntry::Unsafe(what)) => PacketRead::Unsafe(what.clone().into()),
        Some(PacketEntry::TooLarge) => PacketRead::TooLarge,
    }
}
