//! The envelope: the fields every message carries, whatever its type.

use chrono::{DateTime, Utc};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::id::DAEMON;
use crate::id::{AgentName, ConversationId, MessageId, PrNumber};

/// The envelope of one message, every value within its rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The sender's id for the message.
    pub id: MessageId,
    /// The sender; must own the outbox the file is in.
    pub from: AgentName,
    /// One recipient, or up to ten.
    pub to: Recipients,
    /// The type of the message.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// The urgency of an answer.
    pub priority: Priority,
    /// The time of writing, as the sender states it.
    pub created_at_utc: Timestamp,
    /// The pull request, if the message is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub related_pr: Option<PrNumber>,
    /// One line that says what the message is about.
    pub subject: String,
    /// A packet that the message is about, as OACP writes it; never opened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub related_packet: Option<String>,
    /// The conversation the message belongs to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conversation_id: Option<ConversationId>,
    /// The id of the message this one answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent_message_id: Option<String>,
    /// Free text for context stores; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context_keys: Option<String>,
    /// The instant after which the message is refused as `expired`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at: Option<Timestamp>,
    /// A channel label; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    /// OACP's `auto_proceed`; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub autonomy_hint: Option<String>,
    /// Telemetry: the model that wrote the response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// Telemetry: turns that the sender says it took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u64>,
    /// Telemetry: input tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_tokens: Option<u64>,
    /// Telemetry: output tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_tokens: Option<u64>,
    /// Telemetry: seconds of wall time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wall_time_s: Option<f64>,
    /// Telemetry: estimated cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub est_cost_usd: Option<f64>,
    /// The body's text; for review types it is YAML itself.
    pub body: String,
    /// OACP's signature trailer; passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub auth: Option<String>,
}

/// The envelope's fields in the order in which they are written. Unknown fields and then the body follow.
pub const ORDER: [&str; 21] = [
    "id",
    "from",
    "to",
    "type",
    "priority",
    "created_at_utc",
    "related_pr",
    "subject",
    "related_packet",
    "conversation_id",
    "parent_message_id",
    "context_keys",
    "expires_at",
    "channel",
    "autonomy_hint",
    "model",
    "turns",
    "input_tokens",
    "output_tokens",
    "wall_time_s",
    "est_cost_usd",
];

/// The first fields, up to the subject: those of every envelope, and the pull request.
pub const HEAD: &[&str] = ORDER.split_at(8).0;

/// The last fields: the model and its cost.
pub const TELEMETRY: &[&str] = ORDER.split_at(ORDER.len() - 6).1;

/// The recipients of a message: one agent written plainly, or a list of 1 to 10.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Recipients {
    /// `to: codex`
    One(AgentName),
    /// `to: [codex, gemini]`
    Many(Vec<AgentName>),
}

impl Recipients {
    /// Returns every recipient, in the order written.
    pub fn names(&self) -> &[AgentName] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order of the protocol.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word as written in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word; `None` for any other text.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// The twelve types of message: four move a review, the others are checked by their envelope and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum MessageType {
    /// A step of the review loop; its body is YAML with rules of its own.
    Review(ReviewKind),
    /// A message with a body of free text.
    Text(TextKind),
}

words!(
    /// The steps of the review loop.
    ReviewKind {
        /// Author to reviewer: please review this pull request.
        Request = "review_request",
        /// Reviewer to author: findings.
        Feedback = "review_feedback",
        /// Author to reviewer: the feedback was addressed.
        Addressed = "review_addressed",
        /// Reviewer to author: approved.
        Lgtm = "review_lgtm",
    }
);

words!(
    /// The types whose body is free text.
    TextKind {
        /// Something to know.
        Notification = "notification",
        /// Something to answer.
        Question = "question",
        /// Something to do.
        TaskRequest = "task_request",
        /// Something left over.
        FollowUp = "follow_up",
        /// Work handed to another agent.
        Handoff = "handoff",
        /// Handed-over work is done.
        HandoffComplete = "handoff_complete",
        /// A brainstorm opens.
        BrainstormRequest = "brainstorm_request",
        /// A brainstorm goes on.
        BrainstormFollowup = "brainstorm_followup",
    }
);

impl MessageType {
    /// Every type, in the order of the protocol.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let reviews = ReviewKind::ALL.iter().copied().map(Self::Review);
        reviews.chain(TextKind::ALL.iter().copied().map(Self::Text))
    }

    /// Returns the word as written in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review(kind) => kind.as_str(),
            Self::Text(kind) => kind.as_str(),
        }
    }

    /// Reads the word; `None` for any other text.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::all().find(|kind| kind.as_str() == word)
    }

    /// Returns the step of the review loop that it is, if any.
    pub fn review(self) -> Option<ReviewKind> {
        match self {
            Self::Review(kind) => Some(kind),
            Self::Text(_) => None,
        }
    }

    /// True if the body is YAML with the rules of the review loop.
    pub fn is_review(self) -> bool {
        self.review().is_some()
    }

    /// True if the message ends a reviewer's invocation: feedback or lgtm.
    pub fn is_terminal_response(self) -> bool {
        match self {
            Self::Review(ReviewKind::Feedback | ReviewKind::Lgtm) => true,
            Self::Review(ReviewKind::Request | ReviewKind::Addressed) | Self::Text(_) => false,
        }
    }

    /// True if a message of this type goes to exactly one agent.
    pub fn has_one_recipient(self) -> bool {
        match self {
            Self::Review(_) | Self::Text(TextKind::Handoff | TextKind::HandoffComplete) => true,
            Self::Text(
                TextKind::Notification
                | TextKind::Question
                | TextKind::TaskRequest
                | TextKind::FollowUp
                | TextKind::BrainstormRequest
                | TextKind::BrainstormFollowup,
            ) => false,
        }
    }

    /// True if the envelope may have the six telemetry fields.
    pub fn may_carry_telemetry(self) -> bool {
        match self {
            Self::Review(ReviewKind::Feedback | ReviewKind::Lgtm | ReviewKind::Addressed) => true,
            Self::Review(ReviewKind::Request) | Self::Text(_) => false,
        }
    }
}

impl std::fmt::Display for MessageType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for MessageType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TypeWord)
    }
}

/// Reads the word directly: `untagged` would copy it first, and its error would not name it.
struct TypeWord;

impl Visitor<'_> for TypeWord {
    type Value = MessageType;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("one of the twelve types of message")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<MessageType, E> {
        MessageType::from_word(word)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(word), &self))
    }
}

words!(
    /// The urgency of an answer; sets the pick-up and author deadlines.
    Priority {
        /// Two hours.
        P0 = "P0",
        /// One day.
        P1 = "P1",
        /// Two days.
        P2 = "P2",
        /// Seven days.
        P3 = "P3",
    }
);

/// An instant to the second; the only accepted form is `YYYY-MM-DDTHH:MM:SSZ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The accepted values, in words for people.
    pub const EXPECTED: &str = "an instant written YYYY-MM-DDTHH:MM:SSZ";

    /// Reads the accepted form; `None` for any other text and for instants that do not exist.
    pub fn parse(text: &str) -> Option<Self> {
        let shape = b"dddd-dd-ddTdd:dd:ddZ";
        let fits = text.len() == shape.len()
            && text.bytes().zip(shape).all(|(b, s)| {
                if *s == b'd' {
                    b.is_ascii_digit()
                } else {
                    b == *s
                }
            });
        // chrono reads a leap second as :59 plus 1000 ms; OACP and we refuse it.
        if !fits || &text[17..19] == "60" || text.starts_with("0000") {
            return None;
        }
        DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|at| Self(at.with_timezone(&Utc)))
    }

    /// Reads an instant with an offset or a fraction of a second, so that a report can show the accepted form; `None`
    /// if it is not RFC 3339.
    pub fn meant(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
        Self::parse(&Self::from_utc(at).to_string())
    }

    /// Returns the instant, truncated to the second.
    pub fn from_utc(at: DateTime<Utc>) -> Self {
        Self(DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at))
    }

    /// Returns the instant.
    pub fn utc(self) -> DateTime<Utc> {
        self.0
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.format("%Y-%m-%dT%H:%M:%SZ").fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("expected {}", Self::EXPECTED)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_its_plain_word() {
        for kind in MessageType::all() {
            let json = serde_json::to_string(&kind).expect("a word");
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(
                serde_json::from_str::<MessageType>(&json).expect("one of ours"),
                kind
            );
        }
        let error = serde_json::from_str::<MessageType>("\"review\"").expect_err("no type");
        assert!(
            error.to_string().contains("one of the twelve types"),
            "{error}"
        );
    }

    #[test]
    fn only_one_spelling_of_an_instant_is_read() {
        assert_eq!(
            Timestamp::parse("2026-02-13T10:00:00Z")
                .expect("read")
                .to_string(),
            "2026-02-13T10:00:00Z"
        );
        for bad in [
            "2026-02-13T10:00:00+00:00",
            "2026-02-13T10:00:00.5Z",
            "2026-02-13 10:00:00Z",
            "2026-02-30T10:00:00Z",
            "2026-02-13T10:00:60Z",
            "2026-02-13T24:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-02-13T10:00:00z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad} was admitted");
        }
    }
}
