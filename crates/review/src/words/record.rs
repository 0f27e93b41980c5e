//! What a decision leaves in the ledger: enough to rebuild the state without the rules.

use std::collections::BTreeMap;
use std::fmt;

use message_schema::Code;
use message_schema::envelope::MessageType;
use message_schema::id::{AgentName, CommitSha, ConversationId, FindingId, MessageId};
use message_schema::limit::Rounds;
use serde::{Deserialize, Serialize};

use crate::words::event::Event;
use crate::words::key::{ReviewKey, TaskId};
use crate::words::pair::record::PairStanding;
use crate::words::phase::{CloseReason, EscalationReason, Phase};
use crate::words::task::Handoff;
use crate::words::thread::Thread;

/// One decision, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The message was accepted and goes to its recipients.
    Accepted(Box<Accepted>),
    /// The same bytes under the same id had been accepted before.
    Duplicate {
        /// Its sender.
        from: AgentName,
        /// Its id.
        id: MessageId,
    },
    /// The message was refused.
    Refused {
        /// The owner of the outbox it lay in.
        from: AgentName,
        /// Why.
        code: Code,
        /// What it cost its review.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cost: Option<Box<RefusalCost>>,
        /// Whether the sender is told.
        notice: Notice,
    },
    /// Something other than a message moved a review, or was noted of it.
    Happened(Box<Happened>),
    /// A person's decision, or what was reported of a reviewer, does not fit where the review stands.
    Declined {
        /// What was asked.
        event: Event,
        /// The id it was asked under.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        order: Option<MessageId>,
        /// Why it changes nothing.
        code: Code,
        /// The same in a sentence.
        why: String,
    },
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
    /// Whom it goes to.
    pub to: Vec<AgentName>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// Its conversation, if it named one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conversation: Option<ConversationId>,
    /// What it does to a review; `None` for the types outside the review loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<ReviewStep>,
    /// What was odd about it, in whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The exact text of the packet that was judged with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub packet: Option<String>,
}

/// Whether the sender of a refused message is told in its inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A notification goes out.
    Sent {
        /// Its id.
        id: MessageId,
        /// How many earlier refusals, withheld for their number, it sums up.
        summed_up: u32,
    },
    /// Too many within a minute: the next notice counts this one in.
    Withheld,
    /// Never: the message was addressed to the daemon, or answered a notice.
    Never,
}

/// What a refused response costs its review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusalCost {
    /// Attempts left in this round; at 0 the review is with a person.
    pub attempts_left: u8,
    /// What it does to the review.
    pub step: ReviewStep,
    /// What the daemon writes to agents about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub letters: Vec<DaemonMessage>,
}

/// An event and everything it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// What happened.
    pub event: Event,
    /// The id it was asked under, by a person or a runner; one id counts once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order: Option<MessageId>,
    /// What it does to reviews.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub steps: Vec<ReviewStep>,
    /// What the daemon writes to agents about it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub letters: Vec<DaemonMessage>,
    /// What is handed off; only pull request events judge that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handoff: Option<Handoff>,
    /// Where the pair of commands stands after it; only its own events say that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair: Option<PairStanding>,
}

/// A message the daemon itself writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonMessage {
    /// Its id.
    pub id: MessageId,
    /// Whom it is for.
    pub to: AgentName,
    /// What it says.
    pub says: Says,
}

/// What a message of the daemon's says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The review is with a person; a notification.
    Escalated {
        /// The review.
        review: ReviewKey,
        /// Why.
        reason: EscalationReason,
    },
    /// The reviewer's budget is spent: the `review_feedback` it did not give, with a packet that
    /// carries the open threads.
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
        /// How.
        reason: CloseReason,
    },
    /// A person decided; a notification to whoever moves next.
    Decided {
        /// The review.
        review: ReviewKey,
    },
    /// A task; a `handoff` with its packet.
    Handoff {
        /// Which of the record's tasks.
        task: TaskId,
    },
}

/// What a record does to one review.
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
    /// The threads it opened or changed, as they are now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub threads: BTreeMap<FindingId, Thread>,
    /// The commit the author says it fixed the findings in, when the step names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<CommitSha>,
    /// The head the author asks to have reviewed, when the step names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub declared_head: Option<CommitSha>,
    /// Rounds a person adds to the generation.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub granted: u8,
    /// Whether a person gives the review back to the agents with this step.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub given_back: bool,
    /// The task whose findings this pull request is to fix, when the step opens its first review.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fixes: Option<TaskId>,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl ReviewStep {
    /// A step that changes the phase of a round and nothing else.
    pub fn to(review: &ReviewKey, round: u32, phase: Phase) -> Self {
        Self {
            review: review.clone(),
            phase,
            opens: None,
            round,
            threads: BTreeMap::new(),
            commit: None,
            declared_head: None,
            granted: 0,
            given_back: false,
            fixes: None,
        }
    }
}

/// A generation as its first request, or the person who reopened the review, fixed it.
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
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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

impl<'de> Deserialize<'de> for ContentDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        let pairs = text.as_bytes().chunks_exact(2);
        if text.len() != 64 || !text.is_ascii() {
            return Err(serde::de::Error::custom("expected 64 hexadecimal digits"));
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let pair = std::str::from_utf8(pair).map_err(serde::de::Error::custom)?;
            *byte = u8::from_str_radix(pair, 16).map_err(serde::de::Error::custom)?;
        }
        Ok(Self(bytes))
    }
}
