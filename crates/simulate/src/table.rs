//! The table a scenario is played at: the state, the policy, the packets that were laid down, and
//! time as a number. Everything that happens becomes a record and is applied, as in the daemon.

use std::cell::Cell;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use judgement::{Judge, Submission};
use message_schema::Message;
use message_schema::id::{AgentName, MessageId, PrNumber};
use review::{Event, EventRecord, Policy, Record, ReportedEvent, Restore, State, Undo};
use spool::{Body, OutboxFile, PacketRead};
use workspace::config::Config;

use super::compose::{Laid, Mail};
use super::deeds::{Raw, RawContent};
use super::format::Setup;
use super::outcome::{self, Outcome};
use super::submit;

/// The state of play.
pub(super) struct Table {
    pub(super) state: State,
    policy: Policy,
    pub(super) now: DateTime<Utc>,
    records: Vec<(Record, DateTime<Utc>)>,
    packets: BTreeMap<String, Laid>,
    written: Ids,
}

/// A state that a snapshot kept.
fn kept(state: &State) -> Result<State, String> {
    let mut restoring = Restore::default();
    let kept = state.write_lines(&mut |line| restoring.take(line));
    kept.map_err(|error| error.to_string())
        .map(|()| restoring.into_state())
}

/// Ids for what the daemon writes, one after the other.
#[derive(Default)]
pub(super) struct Ids(Cell<u32>);

impl Ids {
    pub(super) fn next(&self) -> MessageId {
        self.0.set(self.0.get() + 1);
        MessageId::new(format!("settled-{}", self.0.get())).expect("letters and digits are an id")
    }
}

impl Table {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            state: State::default(),
            policy: setup.config.policy(setup.agents.iter().cloned()),
            now: setup.start,
            records: Vec::new(),
            packets: BTreeMap::new(),
            written: Ids::default(),
        }
    }

    /// A message comes, with the packet its author laid down before.
    pub(super) fn post(&mut self, mail: &Mail) -> Vec<Outcome> {
        self.packets.extend(mail.packet.clone());
        let found = submit::file(&mail.outbox, 0, submit::bytes(mail.text.as_bytes()));
        self.submit(&mail.outbox, &found, None)
    }

    /// A file lies in an outbox, whatever it is.
    pub(super) fn find(&mut self, raw: &Raw) -> Vec<Outcome> {
        let (owner, user, body) = match &raw.content {
            RawContent::Bytes(bytes) => (0, None, submit::bytes(bytes)),
            RawContent::Foreign => (1002, Some(1001), submit::bytes(b"")),
            RawContent::Unfit(unfit) => (0, None, Body::Unfit(*unfit)),
        };
        let found = submit::file(&raw.outbox, owner, body);
        self.submit(&raw.outbox, &found, user)
    }

    fn submit(
        &mut self,
        outbox: &AgentName,
        found: &OutboxFile,
        user: Option<u32>,
    ) -> Vec<Outcome> {
        let submission = Submission {
            found,
            outbox,
            user,
        };
        let (judgement, outcomes) = submit::submit(
            self.judge(),
            submission,
            |message| packet_of(message, &self.packets),
            &mut || self.written.next(),
        );
        self.apply(judgement);
        outcomes
    }

    fn judge(&self) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now: self.now,
        }
    }

    /// Something else happens.
    pub(super) fn hear(&mut self, event: &Event) -> Vec<Outcome> {
        let reported = ReportedEvent { order: None, event };
        let record = self.judge().event(reported, &mut || self.written.next());
        let outcomes = outcome::event(&record);
        self.apply(record);
        outcomes
    }

    /// A record that is not the scenario's doing, but what it begins with.
    pub(super) fn apply(&mut self, record: impl Into<Record>) {
        let record = record.into();
        review::apply(&mut self.state, &record, self.now);
        self.records.push((record, self.now));
    }

    /// Time passes up to an instant. Deadlines before it are kept, each at its own instant; those
    /// of that very instant wait, for a message at the same instant goes first.
    pub(super) fn pass_to(&mut self, instant: DateTime<Utc>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        while let Some((at, _)) = self.state.next_deadline().filter(|(at, _)| *at < instant) {
            self.now = self.now.max(at);
            outcomes.extend(self.keep_deadlines());
        }
        self.now = instant;
        outcomes
    }

    /// Ends every wait whose deadline has come.
    pub(super) fn keep_deadlines(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        loop {
            let Some(record) = self.judge().due(&mut || self.written.next()) else {
                return outcomes;
            };
            // A deadline is nobody's step: it only comes with one.
            let at = self.now.format("%Y-%m-%dT%H:%M:%SZ");
            let mut lines: Vec<Outcome> = outcome::event(&record);
            if let (EventRecord::Happened(happened), Some(first)) = (&record, lines.first_mut()) {
                *first = Outcome::note(format!("{} {at}", happened.event.sentence()));
            }
            outcomes.extend(lines);
            self.apply(record);
        }
    }

    /// The daemon starts again: all records are read back from what the ledger would hold of them.
    /// The state there was before has to be there again.
    pub(super) fn restart(&mut self) -> Result<Vec<Outcome>, String> {
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
        self.taken_back()?;
        Ok(vec![Outcome::yes(format!(
            "restarted records={}",
            self.records.len()
        ))])
    }

    /// A batch that the ledger does not take is taken back: after any number of records undone, the state
    /// is the one there was before them.
    fn taken_back(&self) -> Result<(), String> {
        let mut state = State::default();
        let mut before = Vec::new();
        for (record, at) in &self.records {
            before.push((state.clone(), Undo::of(&state, record)));
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

    /// The state as a start makes it that takes up a snapshot; one after any record gives the same.
    fn resumed(&self) -> Result<State, String> {
        let mut before = State::default();
        let mut resumed = kept(&before)?;
        for taken_after in 0..=self.records.len() {
            resumed = kept(&before)?;
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

    /// The daemon starts again with another config.
    pub(super) fn reconfigure(
        &mut self,
        config: &Config,
        setup: &Setup,
    ) -> Result<Vec<Outcome>, String> {
        let restarted = self.restart()?;
        self.policy = config.policy(setup.agents.iter().cloned());
        Ok(restarted)
    }

    /// The policy in force.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The round a message about the pull request is in.
    pub(super) fn round(&self, pr: &PrNumber) -> Option<u32> {
        let of_pr = self.state.reviews().filter(|(key, _)| key.pr.same_pr(pr));
        of_pr.map(|(_, review)| review.round).last()
    }

    /// Where everything stands.
    pub(super) fn lines(&self) -> Vec<String> {
        let reviews = self
            .state
            .reviews()
            .flat_map(|(key, review)| outcome::review(key, review));
        let tasks = self
            .state
            .tasks()
            .map(|task| format!("task {} -> {}", task.id, task.target));
        reviews.chain(tasks).collect()
    }
}

fn packet_of(message: &Message, packets: &BTreeMap<String, Laid>) -> Option<PacketRead> {
    let path = message.packet_path()?;
    Some(match packets.get(path.as_str()) {
        None => PacketRead::Missing,
        Some(Laid::Text(text)) => PacketRead::Bytes(text.clone().into_bytes()),
        Some(Laid::Unsafe(what)) => PacketRead::Unsafe(what.clone().into()),
        Some(Laid::TooLarge) => PacketRead::TooLarge,
    })
}
