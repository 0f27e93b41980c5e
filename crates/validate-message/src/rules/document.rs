//! A document against its schema: breaches become violations with a place, a field and a fix, and
//! one cause becomes one violation.

use std::collections::BTreeSet;

use message_schema::schema::{Breach, Shape, Step};
use message_schema::yaml::{Content, Node};
use message_schema::{Code, Place, Schema, coerce};
use serde::de::DeserializeOwned;

use crate::suggest::nearest;
use crate::violation::{Source, Violation, shown};

/// One document under a schema.
pub(crate) struct Document<'a> {
    pub(crate) root: &'a Node,
    pub(crate) schema: Schema,
    pub(crate) file: Source,
    /// What stands before a field's name in reports: `body.` for bodies.
    pub(crate) prefix: &'static str,
    /// The code of a breach at that path.
    pub(crate) code: fn(&[Step], Kind) -> Code,
}

type Path = Vec<Step>;

/// What kind of breach a code is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Missing,
    Unknown,
    Invalid,
}

impl Document<'_> {
    /// Reads the document as `T`; `None` leaves at least one error in `found`.
    pub(crate) fn read<T: DeserializeOwned>(&self, found: &mut Vec<Violation>) -> Option<T> {
        let shape = self.schema.shape();
        let value = coerce(self.root, shape);
        let breaches = self.schema.breaches(&value);
        let misspelt = self.tell(&breaches, found);
        self.warn_unknown(self.root, shape, &mut Vec::new(), &misspelt, found);
        if !breaches.is_empty() {
            return None;
        }
        match serde_json::from_value(value) {
            Ok(read) => Some(read),
            Err(error) => {
                // Schema and types are tested to agree; should they ever not, the types decide.
                found.push(self.violation(Kind::Invalid, &[], self.root.place, error.to_string()));
                None
            }
        }
    }

    /// A violation at a path, with its field filled in.
    pub(crate) fn violation(
        &self,
        kind: Kind,
        path: &[Step],
        place: Place,
        text: impl Into<String>,
    ) -> Violation {
        let violation = Violation::new((self.code)(path, kind), self.file.clone(), Some(place), text);
        if path.is_empty() { violation } else { violation.field(format!("{}{}", self.prefix, dotted(path))) }
    }

    /// Says that the value at a path is not what belongs there.
    pub(crate) fn invalid(&self, path: &[Step], expected: &str) -> Violation {
        let place = self.place(path);
        let name = dotted(path);
        let Some(node) = self.root.at(path) else {
            return self.violation(Kind::Invalid, path, place, format!("`{name}` is missing"));
        };
        let text = format!("`{name}` is {}, expected {expected}", told(node));
        let violation = self.violation(Kind::Invalid, path, place, text).expected(expected);
        violation.found(node.text().unwrap_or(node.kind()))
    }

    fn place(&self, path: &[Step]) -> Place {
        self.root.at(path).map_or(self.root.place, |node| node.place)
    }

    /// Turns breaches into violations, and returns the unknown fields that are explained with
    /// them: misspelt names of missing ones.
    fn tell(&self, breaches: &[Breach], found: &mut Vec<Violation>) -> Vec<Path> {
        let mut told = BTreeSet::new();
        let mut misspelt = Vec::new();
        for breach in breaches {
            match breach {
                Breach::Missing { at, field } => {
                    let path = below(at, field);
                    if told.insert(path.clone()) {
                        found.push(self.missing(at, &path, field, &mut misspelt));
                    }
                }
                Breach::Broken { at, .. } => {
                    if told.insert(at.clone()) {
                        found.push(self.broken(at));
                    }
                }
                Breach::Unknown { .. } => {}
            }
        }
        for breach in breaches {
            if let Breach::Unknown { at, field } = breach
                && !misspelt.contains(&below(at, field))
            {
                found.push(self.unknown(at, field));
            }
        }
        misspelt
    }

    fn broken(&self, at: &[Step]) -> Violation {
        let shape = self.schema.shape().at(at);
        let expected = shape.map_or("a value the schema admits", Shape::expected);
        let violation = self.invalid(at, expected);
        let (Some(shape), Some(node)) = (shape, self.root.at(at)) else { return violation };
        let text = node.text().map(str::trim);
        let near = text.and_then(|text| nearest(text, shape.words().iter().map(String::as_str)));
        match (near, text, at.last()) {
            (Some(word), _, _) => violation.fix(format!("write `{word}`")),
            (None, None, Some(Step::Key(name))) if shape.is_text() => violation
                .fix(format!("write a text; `{name}: |` begins one of several lines, indented below it")),
            (None, _, _) => violation,
        }
    }

    /// A missing field, or a misspelt one: that is one cause and becomes one violation.
    fn missing(&self, at: &[Step], path: &[Step], field: &str, misspelt: &mut Vec<Path>) -> Violation {
        let expected = self.schema.shape().at(path).map_or("a value", Shape::expected);
        let name = dotted(path);
        let mapping = self.root.at(at).unwrap_or(self.root);
        let strangers =
            mapping.fields().iter().map(|f| f.key.as_str()).filter(|key| self.is_unknown(at, key));
        let Some(slip) = nearest(field, strangers).and_then(|slip| mapping.field(slip)) else {
            return self
                .violation(Kind::Missing, path, mapping.place, format!("`{name}` is missing"))
                .expected(expected)
                .fix(format!("add `{field}`: {expected}"));
        };
        misspelt.push(below(at, &slip.key));
        let wrong = shown(&slip.key);
        let text = format!("`{name}` is missing, and `{wrong}` stands here");
        self.violation(Kind::Missing, path, slip.key_place, text)
            .found(&slip.key)
            .expected(field)
            .fix(format!("rename `{wrong}` to `{field}`"))
    }

    fn unknown(&self, at: &[Step], key: &str) -> Violation {
        let mapping = self.root.at(at).unwrap_or(self.root);
        let place = mapping.field(key).map_or(mapping.place, |field| field.key_place);
        let path = below(at, key);
        let text = format!("`{}` is no field of {}", shown(&dotted(&path)), self.noun());
        let violation = self.violation(Kind::Unknown, &path, place, text).found(key);
        let names = self.schema.shape().at(at).into_iter().flat_map(Shape::names);
        match nearest(key, names.filter(|name| mapping.field(name).is_none())) {
            Some(name) => violation.fix(format!("did you mean `{name}`?")),
            None => violation,
        }
    }

    fn noun(&self) -> String {
        match self.schema {
            Schema::Envelope => "the envelope".to_owned(),
            Schema::FindingsPacket => "a findings packet".to_owned(),
            Schema::ReviewRequest
            | Schema::ReviewFeedback
            | Schema::ReviewAddressed
            | Schema::ReviewLgtm
            | Schema::Report => format!("a {}", self.schema.name()),
        }
    }

    fn is_unknown(&self, at: &[Step], key: &str) -> bool {
        self.schema.shape().at(at).is_some_and(|shape| !shape.is_free() && shape.field(key).is_none())
    }

    /// Adds a warning for each field the schema does not name but admits.
    fn warn_unknown(
        &self,
        node: &Node,
        shape: &Shape,
        path: &mut Path,
        misspelt: &[Path],
        found: &mut Vec<Violation>,
    ) {
        match &node.content {
            Content::Scalar(_) => {}
            Content::List(items) => {
                let Some(shape) = shape.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.warn_unknown(item, shape, path, misspelt, found);
                    path.pop();
                }
            }
            Content::Map(fields) => {
                for field in fields {
                    match shape.field(&field.key) {
                        Some((shape, _)) => {
                            path.push(Step::Key(field.key.clone()));
                            self.warn_unknown(&field.value, shape, path, misspelt, found);
                            path.pop();
                        }
                        // The envelope admits no unknown field, so the schema tells of those.
                        None if shape.is_free() || self.schema == Schema::Envelope => {}
                        None if misspelt.contains(&below(path, &field.key)) => {}
                        None => found.push(self.unknown(path, &field.key).warning()),
                    }
                }
            }
        }
    }
}

fn below(at: &[Step], key: &str) -> Path {
    let mut path = at.to_vec();
    path.push(Step::Key(key.to_owned()));
    path
}

/// A value in the words of a sentence.
fn told(node: &Node) -> String {
    match node.text().map(str::trim) {
        None => node.kind().to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) if text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit()) => text.to_owned(),
        Some(text) if text.chars().count() > 200 => format!("a text of {} characters", text.chars().count()),
        Some(text) => format!("`{}`", shown(text)),
    }
}

/// `findings[2].severity`
pub(crate) fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
