//! Holds a message that is being written: its fields as given, right or wrong, and the text made of them. The validator
//! judges them.

use chrono::{DateTime, Utc};
use message_schema::envelope::{MessageType, Priority, Timestamp};
use message_schema::id::{AgentName, MessageId};
use message_schema::{parse, render_document, render_draft};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use validate_message::{PacketInput, Violation, Violations, check};

use crate::in_order::in_order;

use super::packet::MessagePacket;

/// Named values in writing order; each name is unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Vec<(String, Value)>);

/// A message that is being written.
#[derive(Clone, Debug)]
pub struct UncheckedMessage {
    /// Its id, which is also the name of its file.
    pub id: MessageId,
    /// The type.
    pub kind: MessageType,
    /// The envelope from `id` on, without `body` and `auth`.
    pub envelope: Fields,
    /// The body.
    pub body: BodyContent,
    /// The trailer of a signature, carried untouched.
    pub auth: Option<String>,
    /// The reason it does not describe the change, if git could not determine it.
    pub no_diff: Option<String>,
}

/// The content of a body.
#[derive(Clone, Debug)]
pub enum BodyContent {
    /// The text of a message outside the review loop.
    Text(String),
    /// The fields of a review message.
    Fields(Fields),
}

/// A valid message with the packet to write before it. Only [`UncheckedMessage::check`] makes one.
#[derive(Debug)]
pub struct CheckedMessage {
    pub(super) id: MessageId,
    pub(super) text: String,
    pub(super) packet: MessagePacket,
    warnings: Vec<Violation>,
    no_diff: Option<String>,
}

/// The fields that every message begins with.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeHead<'a> {
    /// Its id.
    pub id: &'a MessageId,
    /// The sender.
    pub from: &'a AgentName,
    /// The recipients; without one the message is invalid.
    pub to: &'a [AgentName],
    /// The type.
    pub kind: MessageType,
    /// The urgency of an answer.
    pub priority: Priority,
    /// The time of writing.
    pub at: DateTime<Utc>,
}

impl Fields {
    /// Sets a value; replaces one of the same name in its place.
    pub fn put(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Sets a value if it was given.
    pub fn put_given(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Sets every value of a struct under its own name, except for nulls: those were not given.
    pub fn put_all(&mut self, values: &impl Serialize) {
        let text = serde_json::to_string(values).expect("text keys and plain values are JSON");
        let given = serde_json::from_str::<Fields>(&text).expect("a struct is a mapping");
        for (name, value) in given.0 {
            self.put_given(&name, Some(value).filter(|value| !value.is_null()));
        }
    }

    /// Gives a value another name, in its place.
    pub fn rename(&mut self, from: &str, to: &str) {
        let named = self.0.iter_mut().filter(|(name, _)| name == from);
        named.for_each(|(name, _)| to.clone_into(name));
    }

    /// Sets a value unless the name already has one.
    pub fn fill(&mut self, name: &str, value: impl Into<Value>) {
        if self.get(name).is_none() {
            self.put(name, value);
        }
    }

    /// The value with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl FromIterator<(String, Value)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        let mut all = Self::default();
        fields
            .into_iter()
            .for_each(|(name, value)| all.put(&name, value));
        all
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        in_order(deserializer).map(Self)
    }
}

impl EnvelopeHead<'_> {
    /// The envelope's first fields.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        fields.put("id", self.id.as_str());
        fields.put("from", self.from.as_str());
        match self.to {
            [] => {}
            [one] => fields.put("to", one.as_str()),
            many => fields.put("to", many.iter().map(AgentName::as_str).collect::<Vec<_>>()),
        }
        fields.put("type", self.kind.as_str());
        fields.put("priority", self.priority.as_str());
        fields.put("created_at_utc", Timestamp::from_utc(self.at).to_string());
        fields
    }
}

impl UncheckedMessage {
    /// The exact text of the message's file.
    pub fn text(&self) -> String {
        let body = match &self.body {
            BodyContent::Text(text) => text.clone(),
            BodyContent::Fields(fields) => render_document(fields),
        };
        render_draft(&self.envelope, &body, self.auth.as_deref())
    }

    /// Returns the message if it and its packet are valid, or every violation that the validator finds.
    pub fn check(&self, packet: MessagePacket) -> Result<CheckedMessage, Violations> {
        let text = self.text();
        let message = parse(text.as_bytes())?;
        let input = match &packet {
            MessagePacket::None => PacketInput::NotNamed,
            MessagePacket::Missing => PacketInput::Missing,
            MessagePacket::InPlace(bytes) => PacketInput::Bytes(bytes),
            MessagePacket::New(new) => PacketInput::Bytes(new.text.as_bytes()),
        };
        let valid = check(&message, input)?;
        let warnings = valid.warnings().to_vec();
        Ok(CheckedMessage {
            id: self.id.clone(),
            text,
            packet,
            warnings,
            no_diff: self.no_diff.clone(),
        })
    }
}

impl CheckedMessage {
    /// Warnings about the valid message that its sender may want to know.
    pub fn warnings(&self) -> &[Violation] {
        &self.warnings
    }

    /// The reason it does not describe the change, if git could not determine it.
    pub fn no_diff(&self) -> Option<&str> {
        self.no_diff.as_deref()
    }

    /// The packet to write before it.
    pub fn packet(&self) -> &MessagePacket {
        &self.packet
    }

    /// The message's exact text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use message_schema::envelope::TextKind;

    use super::*;

    #[test]
    fn given_values_are_put_in_the_order_of_their_struct_and_renamed_in_place() {
        #[derive(Serialize)]
        struct Given {
            zeal: u8,
            branch: Option<&'static str>,
            head: Option<&'static str>,
            cost: f64,
        }
        let mut fields = Fields::default();
        fields.put_all(&Given {
            zeal: 1,
            branch: None,
            head: Some("abc1234"),
            cost: 0.5,
        });
        fields.rename("head", "validated_head");
        let text = serde_json::to_string(&fields).expect("JSON");
        assert_eq!(text, r#"{"zeal":1,"validated_head":"abc1234","cost":0.5}"#);
    }

    #[test]
    fn a_wrong_value_reaches_the_validator_as_it_was_given() {
        let id = MessageId::new("m-1").expect("an id");
        let from = AgentName::new("claude").expect("a name");
        let at = "2026-02-13T10:00:00Z".parse().expect("an instant");
        let head = EnvelopeHead {
            id: &id,
            from: &from,
            to: &[],
            kind: MessageType::Text(TextKind::Question),
            priority: Priority::P2,
            at,
        };
        let draft = UncheckedMessage {
            id: id.clone(),
            kind: MessageType::Text(TextKind::Question),
            envelope: head.fields(),
            body: BodyContent::Text("why?".to_owned()),
            auth: None,
            no_diff: None,
        };
        let violations = draft
            .check(MessagePacket::None)
            .expect_err("nobody is named");
        let told: Vec<_> = violations
            .iter()
            .filter_map(|violation| violation.field.as_deref())
            .collect();
        assert_eq!(told, ["subject", "to"]);
    }
}
