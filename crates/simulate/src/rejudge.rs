//! Judges recorded decisions again in order, and stops at the first that does not follow from those before it.
//! `replay`, in contrast, goes on under another policy.
//!
//! `judgement::rejudge` says which part of a record can be judged again. The number of tasks in the rest of the ledger
//! cannot.

use chrono::{DateTime, Utc};
use judgement::Judge;
use judgement::rejudge::{self, Differs, RecordedMessage};
use review::{
    EventRecord, Handoff, Happened, Judgement, Policy, RULES_BEFORE_VERSIONS, Record, State,
};
use spool::Entry;
use workspace::index;

use super::facts;

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
    /// The decision that the rules give.
    pub judged: String,
}

/// Returns the version of the rules that decided a record.
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

    /// Returns the current state of every review.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Judges one record and adds it to the state.
    pub fn judge(&mut self, entry: &Entry) -> Result<(), Divergence> {
        let (then, at) = readable(entry)?;
        let moves_nothing = match &then {
            Record::Judged(Judgement::Refused(refused)) => refused.cost.is_none(),
            Record::Judged(Judgement::Duplicate(_)) => true,
            Record::Judged(Judgement::Accepted(_)) | Record::Event(_) => false,
        };
        if moves_nothing {
            let judged = "nothing: it moves no review".to_owned();
            return Err(Divergence::new(&then, judged));
        }
        rejudge::follows(self.judge_at(at), entry, &then, RecordedMessage::of(entry))
            .map_err(|differs| Divergence::of(&then, differs))?;
        review::apply(&mut self.state, &then, at);
        Ok(())
    }

    /// Adds only the tasks of a record to the state, without judging it.
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
        // A task of a judged pull request comes with the record that is judged.
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
            home_away: false,
            order: None,
            steps: Vec::new(),
            messages: Vec::new(),
            handoff,
            pair: None,
        };
        let record = EventRecord::Happened(Box::new(bare));
        review::apply(&mut self.state, &record.into(), at);
        Ok(())
    }

    fn judge_at(&self, now: DateTime<Utc>) -> Judge<'_> {
        Judge {
            state: &self.state,
            policy: &self.policy,
            now,
        }
    }
}

impl Divergence {
    fn new(recorded: &Record, judged: String) -> Self {
        Self {
            recorded: lines(recorded),
            judged,
        }
    }

    fn of(recorded: &Record, differs: Differs) -> Self {
        match differs {
            Differs::NoText => Self::of_texts(
                "an accepted message",
                "nothing: its text is not in the record",
            ),
            Differs::Decides(now) => Self::new(recorded, lines(&now)),
            Differs::OtherSender => {
                Self::new(recorded, "nothing: it was in another's outbox".to_owned())
            }
            Differs::NotRepeated => {
                Self::new(recorded, "nothing: it repeats no message".to_owned())
            }
            Differs::Free(code) => {
                Self::new(recorded, format!("the same, with what `{code}` costs"))
            }
            Differs::Files(what) => Self::new(recorded, what),
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
