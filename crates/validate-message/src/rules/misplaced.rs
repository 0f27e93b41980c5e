//! Finds body fields in the envelope: the writer lost the indentation of the body's lines. That is one cause and
//! becomes one violation, not an unknown field here and a missing one there.

use std::collections::BTreeSet;

use message_schema::envelope::MessageType;
use message_schema::line::is_strange_space;
use message_schema::schema::Step;
use message_schema::yaml::Field;
use message_schema::{Message, Place, ReadBody, Schema};

use super::Document;
use super::document::{BreachKind, Path};
use crate::found::Found;
use crate::suggest::plain;
use crate::violation::{Violation, shown};

/// The most fields that a violation names.
const NAMED_MAX: usize = 10;

/// The body's fields that are in the envelope.
pub(crate) struct MisplacedFields<'m> {
    fields: Vec<&'m Field>,
    /// True if the body is absent or empty.
    is_body_empty: bool,
}

impl<'m> MisplacedFields<'m> {
    pub(crate) fn of(message: &'m Message) -> Self {
        let body = message.root().field("body");
        let is_body_empty = body.is_none_or(|body| body.value.is_absent());
        let envelope = Schema::Envelope.shape();
        let schema = message.meant().and_then(Schema::of_body).map(Schema::shape);
        let in_body = |name: &str| match message.read_body() {
            ReadBody::Mapping(mapping) => mapping.field(name).is_some(),
            ReadBody::Unread | ReadBody::Malformed(_) => false,
        };
        let is_behind = |field: &Field| body.is_some_and(|body| field.key_place > body.key_place);
        let is_misplaced = |field: &&Field| match schema {
            // Nearly all fields are the envelope's.
            _ if envelope.field(&field.key).is_some() => false,
            Some(schema) => {
                let name = plain(&field.key);
                schema.field(&name).is_some() && envelope.field(&name).is_none() && !in_body(&name)
            }
            // Prose without its indentation: a line of it with a colon looks like a field.
            None => is_body_empty && is_behind(field),
        };
        let is_known = message.meant().is_some();
        let fields = message
            .root()
            .fields()
            .iter()
            .filter(|_| is_known)
            .filter(is_misplaced)
            .collect();
        Self {
            fields,
            is_body_empty,
        }
    }

    /// Returns the envelope's paths that need no violation of their own, because the misplaced fields explain them.
    pub(crate) fn explained_in_envelope(&self) -> BTreeSet<Path> {
        let mut paths: BTreeSet<Path> = self
            .fields
            .iter()
            .map(|field| vec![Step::Key(field.key.clone())])
            .collect();
        if self.is_body_empty && !self.fields.is_empty() {
            paths.insert(vec![Step::Key("body".to_owned())]);
        }
        paths
    }

    /// Returns the body's paths that need no violation of their own.
    pub(crate) fn explained_in_body(&self) -> BTreeSet<Path> {
        self.fields
            .iter()
            .map(|field| vec![Step::Key(plain(&field.key))])
            .collect()
    }

    /// Reports them as one violation.
    pub(crate) fn report(
        &self,
        document: &Document<'_>,
        kind: Option<MessageType>,
        found: &mut Found,
    ) {
        let (Some(first), Some(last)) = (self.fields.first(), self.fields.last()) else {
            return;
        };
        let lines = match (first.key_place.line, last.key_place.line) {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        };
        let noun = kind.map_or("message", MessageType::as_str);
        let violation = match (document.root.field("body"), self.is_body_empty) {
            (Some(body), true) => self
                .violation(
                    document,
                    BreachKind::Invalid,
                    &body.key,
                    body.value.place,
                    self.empty(),
                )
                .fix(format!(
                    "write `body: |` and indent {lines} below it by 2 spaces"
                )),
            (None, _) => self
                .violation(
                    document,
                    BreachKind::Missing,
                    "body",
                    first.key_place,
                    format!("`body` is missing: {} in the envelope", self.named()),
                )
                .fix(format!(
                    "write `body: |` and indent what belongs to a {noun} below it by 2 spaces"
                )),
            (Some(_), false) => self
                .violation(
                    document,
                    BreachKind::Unknown,
                    &first.key,
                    first.key_place,
                    format!("{} beside the body, not in it", self.named()),
                )
                .fix(format!(
                    "indent {lines} like the lines of `body`, and write them below those"
                )),
        };
        found.push(violation);
    }

    fn violation(
        &self,
        document: &Document<'_>,
        kind: BreachKind,
        field: &str,
        place: Place,
        text: String,
    ) -> Violation {
        document
            .violation(kind, &[Step::Key(field.to_owned())], place, text)
            .found(&self.fields[0].key)
            .expected("the body's fields, indented below `body: |`")
    }

    /// Explains why the body is empty.
    fn empty(&self) -> String {
        let is_strange = self.fields[0].key.starts_with(is_strange_space);
        let how = if is_strange {
            "indented with characters that YAML does not treat as spaces (such as U+00A0)"
        } else {
            "not indented below it"
        };
        format!("`body` is empty: its lines are {how}")
    }

    /// Returns their names and a verb.
    fn named(&self) -> String {
        let names: Vec<String> = self
            .fields
            .iter()
            .take(NAMED_MAX)
            .map(|field| format!("`{}`", shown(&field.key)))
            .collect();
        match (names.split_last(), self.fields.len() > NAMED_MAX) {
            (Some((only, [])), _) => format!("{only} is"),
            (Some((last, others)), false) => format!("{} and {last} are", others.join(", ")),
            (Some(_), true) | (None, _) => format!("{} and others are", names.join(", ")),
        }
    }
}
