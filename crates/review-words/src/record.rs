//! The record of a decision in the ledger: enough to rebuild the state without the rules.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use message_schema::Code;
use message_schema::envelope::MessageType;
use message_schema::from_text;
use message_schema::hex;
use message_schema::id::{AgentName, CommitSha, ConversationId, FindingId, MessageId};
use message_schema::limit::Rounds;
use message_schema::spend::Spend;
use pair_machine::PairStatus;
use serde::{Deserialize, Serialize};

use crate::alert::Alert;
use crate::event::Event;
use crate::is_default;
use crate::key::{ReviewKey, TaskId};
use crate::phase::{CloseReason, EscalationReason, Phase};
use crate::reading::ReadingStep;
use crate::task::Handoff;
use crate::thread::Thread;

/// The version of the rules, which every record names. Raise it with every change that makes the rules decide the same
/// message or event differently on the same state.
pub const RULES: u32 = 4;

/// The version of the rules behind a record that names none: that of settled 0.1.
pub const RULES_BEFORE_VERSIONS: u32 = 1;

/// One decision, as the ledger keeps it: there it is flat, with one word for each of its five kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "FlatRecord")]
pub enum Record {
    /// The decision about a message.
    Judged(Judgement),
    /// The decision about something other than a message.
    Event(EventRecord),
}

/// The decision about a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The message was accepted and goes to its recipients.
    Accepted(Box<Accepted>),
    /// The same bytes under the same id had been accepted before.
    Duplicate(Duplicate),
    /// The message was refused.
    Refused(RefusedMessage),
}

/// The decision about something other than a message: an order, a pull request, a deadline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventRecord {
    /// It moved a review, or added to one.
    Happened(Box<Happened>),
    /// It does not fit the review's phase.
    Declined(DeclinedEvent),
}

/// A record in its written form. With nested enums, a reader would have to try each kind in turn.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FlatRecord {
    Accepted(Box<Accepted>),
    Duplicate(Duplicate),
    Refused(RefusedMessage),
    Happened(Box<Happened>),
    Declined(DeclinedEvent),
}

impl From<FlatRecord> for Record {
    fn from(record: FlatRecord) -> Self {
        match record {
            FlatRecord::Accepted(accepted) => Self::Judged(Judgement::Accepted(accepted)),
            FlatRecord::Duplicate(duplicate) => Self::Judged(Judgement::Duplicate(duplicate)),
            FlatRecord::Refused(refused) => Self::Judged(Judgement::Refused(refused)),
            FlatRecord::Happened(happened) => Self::Event(EventRecord::Happened(happened)),
            FlatRecord::Declined(declined) => Self::Event(EventRecord::Declined(declined)),
        }
    }
}

impl From<Judgement> for Record {
    fn from(judgement: Judgement) -> Self {
        Self::Judged(judgement)
    }
}

impl From<EventRecord> for Record {
    fn from(record: EventRecord) -> Self {
        Self::Event(record)
    }
}

impl Record {
    /// Returns the word by which the ledger's entries are found.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Judged(Judgement::Accepted(_)) => "accepted",
            Self::Judged(Judgement::Duplicate(_)) => "duplicate",
            Self::Judged(Judgement::Refused(_)) => "refused",
            Self::Event(EventRecord::Happened(happened)) => happened.word(),
            Self::Event(EventRecord::Declined(_)) => "declined",
        }
    }

    /// Returns the changes it makes to reviews.
    pub fn steps(&self) -> &[ReviewStep] {
        match self {
            Self::Judged(judgement) => judgement.step().map_or(&[], std::slice::from_ref),
            Self::Event(EventRecord::Happened(happened)) => &happened.steps,
            Self::Event(EventRecord::Declined(_)) => &[],
        }
    }

    /// Returns the daemon's messages to agents about it, except the notice of a refusal.
    pub fn messages(&self) -> &[DaemonMessage] {
        match self {
            Self::Judged(Judgement::Refused(RefusedMessage {
                cost: Some(cost), ..
            })) => &cost.messages,
            Self::Judged(_) | Self::Event(EventRecord::Declined(_)) => &[],
            Self::Event(EventRecord::Happened(happened)) => &happened.messages,
        }
    }

    /// Returns the message it accepts, if it accepts one.
    pub fn accepted(&self) -> Option<&Accepted> {
        match self {
            Self::Judged(Judgement::Accepted(accepted)) => Some(accepted),
            Self::Judged(Judgement::Duplicate(_) | Judgement::Refused(_)) | Self::Event(_) => None,
        }
    }

    /// Returns the message it refuses, if it refuses one.
    pub fn refused(&self) -> Option<&RefusedMessage> {
        match self {
            Self::Judged(Judgement::Refused(refused)) => Some(refused),
            Self::Judged(Judgement::Accepted(_) | Judgement::Duplicate(_)) | Self::Event(_) => None,
        }
    }

    /// Returns the event that took effect, if one did.
    pub fn happened(&self) -> Option<&Happened> {
        match self {
            Self::Event(EventRecord::Happened(happened)) => Some(happened),
            Self::Event(EventRecord::Declined(_)) | Self::Judged(_) => None,
        }
    }
}

impl Judgement {
    /// Returns the message's sender; for a refused one, the owner of its outbox.
    pub fn sender(&self) -> &AgentName {
        match self {
            Self::Accepted(accepted) => &accepted.from,
            Self::Duplicate(duplicate) => &duplicate.from,
            Self::Refused(refused) => &refused.from,
        }
    }

    /// Returns the change it makes to a review, if it makes one.
    pub fn step(&self) -> Option<&ReviewStep> {
        match self {
            Self::Accepted(accepted) => accepted.step.as_ref(),
            Self::Duplicate(_) => None,
            Self::Refused(refused) => refused.cost.as_ref().map(|cost| &cost.step),
        }
    }
}

impl EventRecord {
    /// Returns the reported event.
    pub fn event(&self) -> &Event {
        match self {
            Self::Happened(happened) => &happened.event,
            Self::Declined(declined) => &declined.event,
        }
    }

    /// Returns the id of the order it came from.
    pub fn order(&self) -> Option<&MessageId> {
        match self {
            Self::Happened(happened) => happened.order.as_ref(),
            Self::Declined(declined) => declined.order.as_ref(),
        }
    }
}

/// A message whose bytes had been accepted before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duplicate {
    /// Its sender.
    pub from: AgentName,
    /// Its id.
    pub id: MessageId,
}

/// A refused message and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedMessage {
    /// The owner of its outbox.
    pub from: AgentName,
    /// The code of the refusal.
    pub code: Code,
    /// The cost to its review.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Box<RefusalCost>>,
    /// The fate of the notice to its sender.
    pub notice: Notice,
}

/// A person's decision, or a report about a reviewer, that does not fit the review's phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclinedEvent {
    /// The declined event.
    pub event: Box<Event>,
    /// The id of the order it came from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<MessageId>,
    /// The reason it changes nothing.
    pub code: Code,
    /// The reason in a sentence.
    pub why: String,
}

/// An accepted message and everything it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its sender.
    pub from: AgentName,
    /// Its id, now taken.
    pub id: MessageId,
    /// The digest of its bytes.
    pub digest: ContentDigest,
    /// The recipients.
    pub to: Vec<AgentName>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// Its conversation, if it named one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conversation: Option<ConversationId>,
    /// The change it makes to a review; `None` for types outside the review loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<ReviewStep>,
    /// The alerts about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alerts: Vec<Alert>,
    /// The validator's warnings, in whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The exact text of its packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub packet: Option<String>,
}

/// The fate of the notice to the sender of a refused message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A notification goes out.
    Sent {
        /// Its id.
        id: MessageId,
        /// The number of earlier withheld refusals that it sums up.
        summed_up: u32,
    },
    /// Too many within a minute: the next notice counts this refusal.
    Withheld,
    /// Never: the message was addressed to the daemon, or answered a notice.
    Never,
}

/// The cost of a refused response to its review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusalCost {
    /// Attempts left in this round; at 0 the review is escalated to a person.
    pub attempts_left: u8,
    /// The change to the review.
    pub step: ReviewStep,
    /// The daemon's messages to agents about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default, rename = "letters")]
    pub messages: Vec<DaemonMessage>,
}

/// An event and everything it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// The event.
    pub event: Event,
    /// True if the host that recorded a deadline is not the home of the agent concerned.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub home_away: bool,
    /// The id of the order by which a person or a runner reported it; one id counts once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<MessageId>,
    /// The changes to reviews.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub steps: Vec<ReviewStep>,
    /// The daemon's messages to agents about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default, rename = "letters")]
    pub messages: Vec<DaemonMessage>,
    /// The findings handed off; only pull request events decide that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handoff: Option<Handoff>,
    /// The state of the pair of commands after it; only a pair's own events set it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairStatus>,
}

impl Happened {
    /// Returns the word by which the ledger's entries are found.
    fn word(&self) -> &'static str {
        match self.reassigned_to() {
            Some(_) => "reassigned",
            None => self.event.word(),
        }
    }

    /// Returns the next reviewer, if the event moves a review to one.
    pub fn reassigned_to(&self) -> Option<&AgentName> {
        self.steps
            .iter()
            .find_map(|step| step.reassigned_to.as_ref())
    }
}

/// A message the daemon itself writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonMessage {
    /// Its id.
    pub id: MessageId,
    /// The recipient.
    pub to: AgentName,
    /// The content.
    pub says: Says,
}

/// The content of a daemon's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The review was escalated to a person; a notification.
    Escalated {
        /// The review.
        review: ReviewKey,
        /// The reason.
        reason: EscalationReason,
    },
    /// The reviewer's budget is spent: replaces the missing `review_feedback`, with a packet that carries the open
    /// threads.
    BudgetSpent {
        /// The review.
        review: ReviewKey,
        /// The round it ends.
        round: u32,
    },
    /// The pull request was closed; a notification.
    Closed {
        /// The review.
        review: ReviewKey,
        /// The reason.
        reason: CloseReason,
    },
    /// The reviewer's command failed for good, and the daemon asks the next one; a notification.
    Reassigned {
        /// The review.
        review: ReviewKey,
        /// The reviewer asked now.
        to: AgentName,
    },
    /// A person decided; a notification to the agent that moves next.
    Decided {
        /// The review.
        review: ReviewKey,
    },
    /// A task; a `handoff` with its packet.
    Handoff {
        /// The task, one of the record's.
        task: TaskId,
    },
    /// The reader changed this file of its `sent/` after the daemon had judged it; a notification.
    SentDiffers {
        /// The file's name, as it is shown.
        file: String,
    },
}

/// The change that a record makes to one review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewStep {
    /// The review.
    pub review: ReviewKey,
    /// The phase it leads to.
    pub phase: Phase,
    /// The generation and its limits, when the step opens one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opens: Option<Generation>,
    /// The round after the step.
    pub round: u32,
    /// The threads it opened or changed, in their state after it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub threads: BTreeMap<FindingId, Thread>,
    /// The commit in which the author says it fixed the findings, if the step names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// Rounds a person adds to the generation.
    #[serde(skip_serializing_if = "is_default", default)]
    pub granted: u8,
    /// True if a person gives the review back to the agents with this step.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub given_back: bool,
    /// The task the pull request claims with this step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fixes: Option<TaskId>,
    /// The reviewer from this step on, if that changes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reassigned_to: Option<AgentName>,
    /// The additional spend of the reviewer's command.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spent: Option<Spend>,
    /// The addition to the reading state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reading: Option<Box<ReadingStep>>,
    /// True if the pull request gives up its task, because it was closed without a merge.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub gives_up_task: bool,
}

impl ReviewStep {
    /// Returns a step that changes only the phase of a round.
    pub fn to(review: &ReviewKey, round: u32, phase: Phase) -> Self {
        Self {
            review: review.clone(),
            phase,
            opens: None,
            round,
            threads: BTreeMap::new(),
            commit: None,
            granted: 0,
            given_back: false,
            fixes: None,
            reassigned_to: None,
            spent: None,
            reading: None,
            gives_up_task: false,
        }
    }
}

/// A generation as fixed by its first request, or by the person who reopened the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Its number over the life of the review, from 1.
    pub number: u8,
    /// The rounds it may take.
    pub rounds: Rounds,
}

/// The SHA-256 of a message's bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContentDigest(pub [u8; 32]);

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::write(&self.0))
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ContentDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ContentDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = hex::read_array(text);
        bytes.map(Self).ok_or("expected 64 hexadecimal digits")
    }
}

impl<'de> Deserialize<'de> for ContentDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_one_flat_word_in_the_ledger() {
        let event = r#"{"taken":{"pr":"86","reviewer":"codex"}}"#;
        for (word, fields) in [
            ("duplicate", r#""from":"claude","id":"msg-1""#.to_owned()),
            (
                "refused",
                r#""from":"claude","code":"id_collision","notice":"never""#.to_owned(),
            ),
            ("happened", format!(r#""event":{event}"#)),
            (
                "declined",
                format!(r#""event":{event},"code":"thread_not_open","why":"it is not""#),
            ),
        ] {
            let line = format!(r#"{{"{word}":{{{fields}}}}}"#);
            let record: Record =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(serde_json::to_string(&record).expect("JSON"), line);
        }
    }
}
