//! The whole life of a message, from its writing to its answers, each step with its evidence: a record of the ledger or
//! a file. A step that neither shows is unknown.
//!
//! `told` reads the ledger, `places` the directories; `steps` combines both.

mod ledger_trace;
mod places;
mod steps;

use std::path::Path;

use message_schema::id::{AgentName, MessageId};
use serde::Serialize;

/// Everything known about one id.
#[derive(Debug, Serialize)]
pub struct MessageTrace {
    /// The requested id.
    pub id: String,
    /// One life for each sender that used the id; senders number their messages independently.
    pub messages: Vec<Life>,
    /// The reason why the ledger could not be read; then only the directories were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_ledger: Option<String>,
}

/// The life of one message.
#[derive(Debug, Serialize)]
pub struct Life {
    /// The agent whose outbox it came from, or `settled`; absent where nothing proves the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its type, if known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The review it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<LifeStep>,
}

/// One step of a life.
#[derive(Debug, Serialize)]
pub struct LifeStep {
    /// The stage.
    pub step: Stage,
    /// The certainty that it happened.
    pub state: Certainty,
    /// The agent it concerns, where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The time, if a record or a file's timestamp has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The known details, in a few words.
    pub what: String,
    /// The record that proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// The file that proves it, relative to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The digest of the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The steps of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its sender wrote it.
    Written,
    /// It waits for the daemon's judgement.
    Waiting,
    /// The daemon accepted it.
    Accepted,
    /// The daemon refused it.
    Refused,
    /// It repeated a message accepted before.
    Duplicate,
    /// It is in a mailbox.
    Delivered,
    /// Its recipient took it.
    Taken,
    /// Its recipient answered it.
    Answered,
}

impl Stage {
    /// The word on screen and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Duplicate => "duplicate",
            Self::Delivered => "delivered",
            Self::Taken => "taken",
            Self::Answered => "answered",
        }
    }
}

/// The certainty that a step happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// It happened.
    Yes,
    /// It did not happen.
    No,
    /// Nothing proves or disproves it.
    Unknown,
}

impl LifeStep {
    fn new(step: Stage, state: Certainty, what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            step,
            state,
            agent: None,
            at: None,
            what,
            record: None,
            path: None,
            digest: None,
        }
    }

    fn of(self, agent: &str) -> Self {
        Self {
            agent: Some(agent.to_owned()),
            ..self
        }
    }

    fn by_record(self, seq: u64, at: &str) -> Self {
        Self {
            record: Some(seq),
            at: Some(at.to_owned()),
            ..self
        }
    }

    fn by_file(self, path: impl Into<String>) -> Self {
        Self {
            path: Some(path.into()),
            ..self
        }
    }
}

/// Finds everything about an id, of one sender or of all.
pub fn of(root: &Path, id: &MessageId, from: Option<&AgentName>) -> MessageTrace {
    let (told, without_ledger) = match ledger_trace::read(root, id, from) {
        Ok(told) => (told, None),
        Err(error) => (Vec::new(), Some(workspace::error::chain(&error))),
    };
    let mut messages: Vec<Life> = told
        .iter()
        .map(|told| steps::life(root, id, told))
        .collect();
    for (agent, step) in places::waiting(root, id, from) {
        match messages
            .iter_mut()
            .find(|life| life.from.as_deref() == Some(agent.as_str()))
        {
            Some(life) => life.steps.push(step),
            None => messages.push(alone(Some(agent), step)),
        }
    }
    if messages.is_empty() {
        let refused = places::refused(root, id, from).into_iter();
        messages.extend(refused.map(|(agent, step)| alone(Some(agent), step)));
        // Nobody knows who wrote an unproven file, so it belongs to no named sender.
        if from.is_none() {
            messages.extend(
                places::unproven(root, id)
                    .into_iter()
                    .map(|step| alone(None, step)),
            );
        }
    }
    MessageTrace {
        id: id.to_string(),
        messages,
        without_ledger,
    }
}

fn alone(from: Option<String>, step: LifeStep) -> Life {
    Life {
        from,
        kind: None,
        review: None,
        steps: vec![step],
    }
}
