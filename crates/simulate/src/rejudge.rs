//! Judges recorded decisions again, one after the other, and stops at the first that does not follow from those before
//! it. `replay`, in contrast, goes on under another policy.
//!
//! Some of it is not in the record: a refused message's text, the ids of the daemon's notices, and how many tasks the
//! rest of the ledger holds. Ids are taken as recorded; of a refusal, only the cost is judged.
use chrono::{DateTime, Utc};
use judgement::Judge;
use message_schema::Message;
use message_schema::id::{AgentName, MessageId};
use review::{
    Accepted, Costs, Event, EventRecord, Handoff, Happened, Judgement, Notice, Policy,
    RULES_BEFORE_VERSIONS, Record, RefusalCost, RefusedMessage, ReportedEvent, State,
};
use spool::{Entry, PacketRead};
use workspace::index;

use super::session::SequentialIds;
use super::{facts, submit};

/// A state that accepts only decisions that follow from it.
pub struct Rejudge {
    policy: Policy,
    state: State,
}

/// A recorded decision that does not follow.
#[derive(Debug)]
pub struct Divergence {
    /// The recorded decision.
    pub recorded: String,
    /// The decision of the rules.
    pub judged: String,
}

/// The version of the rules that decided a record.
pub fn rules(entry: &Entry) -> u32 {
    entry.rules.unwrap_or(RULES_BEFORE_VERSIONS)
}

impl Rejudge {
    /// Starts with an empty state.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::default(),
        }
    }

    /// The state of every review now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Judges one record and adds it to the state.
    pub fn judge(&mut self, entry: &Entry) -> Result<(), Divergence> {
        let (then, at) = readable(entry)?;
        let now = match &then {
            Record::Judged(Judgement::Accepted(accepted)) => {
                self.message(entry, accepted, at)?.into()
            }
            Record::Judged(Judgement::Refused(
                refused @ RefusedMessage {
                    cost: Some(cost), ..
                },
            )) => self.refused(refused, cost, at).into(),
            Record::Judged(Judgement::Refused(_) | Judgement::Duplicate(_)) => {
                return Err(Divergence::new(
                    &then,
                    "nothing: it moves no review".to_owned(),
                ));
            }
            Record::Event(record) => {
                let ids = then.letters().iter().map(|letter| &letter.id);
                self.event(record.event(), record.order(), at, ids).into()
            }
        };
        if comparable(&then) != comparable(&now) {
            return Err(Divergence::new(&then, lines(&now)));
        }
        review::apply(&mut self.state, &then, at);
        Ok(())
    }

    /// Takes the tasks of a record unjudged, and nothing else of it.
    pub fn take_tasks(&mut self, entry: &Entry) -> Result<(), Divergence> {
        let (then, at) = readable(entry)?;
        let Some(happened) = then.happened() else {
            return Err(Divergence::new(
                &then,
                "nothing: it hands nothing off".to_owned(),
            ));
        };
        let Happened { event, handoff, .. } = happened;
        let tasks = handoff
            .as_ref()
            .map(|handoff| handoff.tasks.clone())
            .unwrap_or_default();
        // A task of a pull request that is judged comes with its own record.
        let is_judged = |task: &review::Task| {
            self.state
                .reviews()
                .any(|(key, _)| key.pr == task.pr.to_canonical())
        };
        if tasks.is_empty() || tasks.iter().any(is_judged) {
            return Err(Divergence::new(
                &then,
                "nothing: it hands nothing off from elsewhere".to_owned(),
            ));
        }
        let handoff = Some(Handoff {
            tasks,
            ..Handoff::default()
        });
        let event = event.clone();
        let bare = Happened {
            event,
            order: None,
            steps: Vec::new(),
            letters: Vec::new(),
            handoff,
            pair: None,
        };
        let record = EventRecord::Happened(Box::new(bare));
        review::apply(&mut self.state, &record.into(), at);
        Ok(())
    }

    fn message(
        &mut self,
        entry: &Entry,
        accepted: &Accepted,
        at: DateTime<Utc>,
    ) -> Result<Judgement, Divergence> {
        let none = || {
            Divergence::of_texts(
                "an accepted message",
                "nothing: its text is not in the record",
            )
        };
        let original = entry.original.as_ref().ok_or_else(none)?;
        let text = original.text.as_ref().ok_or_else(none)?;
        let outbox = AgentName::new(original.outbox.as_str()).map_err(|_| none())?;
        let fresh = SequentialIds::default();
        let packet = |message: &Message| {
            message.packet_path()?;
            let packet = accepted.packet.as_ref();
            Some(packet.map_or(PacketRead::Missing, |text| {
                PacketRead::Bytes(text.clone().into_bytes())
            }))
        };
        let judge = self.judge_at(at);
        let ids = &mut || fresh.next();
        Ok(submit::text(judge, &outbox, text.as_bytes(), packet, ids))
    }

    fn judge_at(&self, now: DateTime<Utc>) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now,
        }
    }

    fn event<'i>(
        &self,
        event: &Event,
        order: Option<&MessageId>,
        at: DateTime<Utc>,
        mut ids: impl Iterator<Item = &'i MessageId>,
    ) -> EventRecord {
        let fresh = SequentialIds::default();
        let mut next = || ids.next().cloned().unwrap_or_else(|| fresh.next());
        let reported = ReportedEvent { order, event };
        self.judge_at(at).event(reported, &mut next)
    }

    /// The refusal that costs what is recorded, if the rules know one.
    fn refused(&self, then: &RefusedMessage, cost: &RefusalCost, at: DateTime<Utc>) -> Judgement {
        let RefusedMessage { from, code, .. } = then;
        let fresh = SequentialIds::default();
        let announced = cost.letters.first().map(|letter| &letter.id);
        let judge = self.judge_at(at);
        let of = |costs| {
            let mut ids = [None, announced].into_iter();
            let mut next = || {
                let known = ids.next().flatten();
                known.cloned().unwrap_or_else(|| fresh.next())
            };
            judge.refuse_checked(from, *code, Some((&cost.step.review, costs)), &mut next)
        };
        let [attempt, invocation] = [Costs::Attempt, Costs::Invocation].map(of);
        let is_invocation = without_notice(&invocation) == without_notice(then);
        Judgement::Refused(if is_invocation { invocation } else { attempt })
    }
}

impl Divergence {
    fn new(recorded: &Record, judged: String) -> Self {
        Self {
            recorded: lines(recorded),
            judged,
        }
    }

    fn of_texts(recorded: &str, judged: &str) -> Self {
        Self {
            recorded: recorded.to_owned(),
            judged: judged.to_owned(),
        }
    }
}

fn readable(entry: &Entry) -> Result<(Record, DateTime<Utc>), Divergence> {
    index::decision(entry).map_err(|error| Divergence::of_texts("a record", &error.to_string()))
}

fn lines(record: &Record) -> String {
    let lines: Vec<String> = facts::record(record)
        .into_iter()
        .map(|outcome| outcome.line)
        .collect();
    lines.join("; ")
}

/// The record without what cannot follow: alerts and warnings, which move nothing, whether a sender was told, and the number a
/// new task got among all of the ledger.
fn comparable(record: &Record) -> String {
    let json = |record: &Record| {
        serde_json::to_string(record).expect("records have text keys and plain values")
    };
    match record {
        Record::Judged(Judgement::Accepted(accepted)) => {
            let bare = Accepted {
                alerts: Vec::new(),
                warnings: Vec::new(),
                ..(**accepted).clone()
            };
            json(&Judgement::Accepted(Box::new(bare)).into())
        }
        Record::Judged(Judgement::Refused(refused)) => {
            json(&Judgement::Refused(without_notice(refused)).into())
        }
        Record::Event(EventRecord::Happened(happened)) => {
            let tasks = happened
                .handoff
                .iter()
                .flat_map(|handoff| &handoff.tasks)
                .enumerate();
            tasks.fold(json(record), |text, (n, task)| {
                text.replace(&format!("\"{}\"", task.id), &format!("\"task {n}\""))
            })
        }
        Record::Judged(Judgement::Duplicate(_)) | Record::Event(EventRecord::Declined(_)) => {
            json(record)
        }
    }
}

fn without_notice(refused: &RefusedMessage) -> RefusedMessage {
    RefusedMessage {
        notice: Notice::Never,
        ..refused.clone()
    }
}
