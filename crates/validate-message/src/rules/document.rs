//! Checks a document against its schema: breaches become violations with a place, a field and a fix, and one cause
//! becomes one violation.

use std::borrow::Cow;
use std::collections::BTreeSet;

use message_schema::envelope::MessageType;
use message_schema::line::is_strange_space;
use message_schema::schema::{Breach, Shape, Step};
use message_schema::yaml::Node;
use message_schema::{Code, Level, Place, Schema, coerce};
use serde::de::DeserializeOwned;

use super::suggestions::{Wrong, as_in, lead};
use super::walk::{Presence, Walk};
use crate::found::Found;
use crate::suggest::{nearest, synonym};
use crate::violation::{Source, Violation, shown};

/// A mapping with more unknown fields than this contains no typing slips, and comparing them all with the missing
/// fields would take longer than parsing them.
const STRANGERS_MAX: usize = 100;

/// One document under a schema.
pub(crate) struct Document<'a> {
    pub(crate) root: &'a Node,
    pub(crate) schema: Schema,
    pub(crate) file: Source,
    /// The prefix of a field's name in reports: `body.` for bodies.
    pub(crate) prefix: &'static str,
    /// The code of a breach at that path.
    pub(crate) code: fn(&[Step], BreachKind) -> Code,
    /// The values that another violation explains, so that no further violation names them.
    pub(crate) explained: BTreeSet<Path>,
}

/// The path from a document's root to a value.
pub(crate) type Path = Vec<Step>;

/// The kind of a breach, which determines its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreachKind {
    Missing,
    Unknown,
    Invalid,
}

impl Document<'_> {
    /// Reads the document as `T`; `None` leaves at least one error in `found`.
    pub(crate) fn read<T: DeserializeOwned>(&self, found: &mut Found) -> Option<T> {
        self.read_admitting(found, |_| false)
    }

    /// Reads the document as `T`, ignoring admitted breaches.
    pub(crate) fn read_admitting<T: DeserializeOwned>(
        &self,
        found: &mut Found,
        is_admitted: impl Fn(&Breach) -> bool,
    ) -> Option<T> {
        let value = coerce(self.root, self.schema.shape());
        let mut breaches = self.schema.breaches(&value);
        breaches.retain(|breach| !is_admitted(breach));
        let (told, misspelt) = self.report(&breaches, found);
        let mut walk = Walk {
            document: self,
            misspelt: &misspelt,
            refused: &told,
            path: Vec::new(),
            found,
        };
        walk.node(self.root, self.schema.shape(), Presence::Required);
        if !breaches.is_empty() {
            return None;
        }
        match serde_json::from_value(value) {
            Ok(read) => Some(read),
            Err(error) => {
                // Tests check that schemas and types agree; if they ever differ, the types decide.
                found.push(self.violation(
                    BreachKind::Invalid,
                    &[],
                    self.root.place,
                    shown(&error.to_string()),
                ));
                None
            }
        }
    }

    /// Returns a violation at a path, with its field filled in.
    pub(crate) fn violation(
        &self,
        kind: BreachKind,
        path: &[Step],
        place: Place,
        text: impl Into<String>,
    ) -> Violation {
        let violation = Violation::new(
            (self.code)(path, kind),
            self.file.clone(),
            Some(place),
            text,
        );
        if path.is_empty() {
            return violation;
        }
        violation.field(shown(&format!("{}{}", self.prefix, dotted(path))))
    }

    /// Returns a violation for the wrong value at a path.
    pub(crate) fn invalid(&self, path: &[Step], expected: &str) -> Violation {
        let name = dotted(path);
        let Some(node) = self.root.at(path) else {
            return self.violation(
                BreachKind::Invalid,
                path,
                self.root.place,
                format!("`{name}` is missing"),
            );
        };
        let shape = self.schema.shape().at(path);
        let text = format!("`{name}` is {}, expected {expected}", describe(node, shape));
        let violation = self
            .violation(BreachKind::Invalid, path, node.place, text)
            .expected(expected);
        violation.found(node.text().unwrap_or(node.kind()))
    }

    /// Turns breaches into violations. Returns their paths, and the unknown fields that they explain: misspelt names of
    /// missing fields. The walk of the tree reports unknown fields itself.
    fn report(&self, breaches: &[Breach], found: &mut Found) -> (BTreeSet<Path>, BTreeSet<Path>) {
        let mut told = BTreeSet::new();
        let mut misspelt = BTreeSet::new();
        for breach in breaches {
            if found.is_full(Level::Error) {
                break;
            }
            match breach {
                Breach::Missing { at, field } => {
                    let path = below(at, field);
                    if !self.explained.contains(&path) && told.insert(path.clone()) {
                        found.push(self.missing(at, &path, field, &mut misspelt));
                    }
                }
                Breach::Broken { at, .. } => {
                    if !self.explained.contains(at) && told.insert(at.clone()) {
                        found.push(self.broken(at));
                    }
                }
                Breach::Unknown { .. } => {}
            }
        }
        (told, misspelt)
    }

    fn broken(&self, at: &[Step]) -> Violation {
        let shape = self.schema.shape().at(at);
        let expected = shape.map_or("a value the schema allows", Shape::expected);
        let violation = self.invalid(at, expected);
        let (Some(shape), Some(node)) = (shape, self.root.at(at)) else {
            return violation;
        };
        let name = at.iter().rev().find_map(|step| match step {
            Step::Key(name) => Some(name.as_str()),
            Step::Index(_) => None,
        });
        let kind = self
            .root
            .field_text("type")
            .and_then(MessageType::from_word);
        let wrong = Wrong {
            name: name.unwrap_or_default(),
            lead: lead(at),
            node,
            shape,
            kind,
        };
        match wrong.suggestion() {
            Some(suggestion) => violation.fix(suggestion),
            None => violation,
        }
    }

    /// Reports a missing field together with its misspelt name: one cause is one violation.
    fn missing(
        &self,
        at: &[Step],
        path: &[Step],
        field: &str,
        misspelt: &mut BTreeSet<Path>,
    ) -> Violation {
        let wanted = self.schema.shape().at(path);
        let expected = wanted.map_or("a value", Shape::expected);
        let name = dotted(path);
        let mapping = self.root.at(at).unwrap_or(self.root);
        let shape = self.schema.shape().at(at);
        let is_stranger = |key: &&str| {
            shape.is_some_and(|shape| shape.field(key).is_none())
                && !misspelt.contains(&below(at, key))
        };
        let strangers: Vec<&str> = mapping
            .fields()
            .iter()
            .map(|field| field.key.as_str())
            .filter(is_stranger)
            .take(STRANGERS_MAX)
            .collect();
        let quoted = format!("\"{field}\"");
        let holds_field = |key: &&&str| {
            // In a comment with a comma, the last part is the one before the field.
            key.len() > quoted.len() && key.ends_with(&quoted)
                || is_remark(key) && key.trim_end_matches('"').ends_with(field)
        };
        if let Some(remark) = strangers.iter().find(holds_field)
            && let Some(stranger) = mapping.field(remark)
        {
            misspelt.insert(below(at, remark));
            let text =
                format!("`{name}` is missing: the comment before it counts as part of its name");
            return self
                .violation(BreachKind::Missing, path, stranger.key_place, text)
                .found(remark)
                .expected(field)
                .fix(NO_REMARK);
        }
        let slip = nearest(field, strangers.iter().copied()).or_else(|| {
            strangers
                .iter()
                .copied()
                .find(|key| synonym(key, [field].into_iter()).is_some())
        });
        let Some(slip) = slip.and_then(|slip| mapping.field(slip)) else {
            let example = wanted
                .and_then(Shape::example)
                .map(|example| as_in(field, example));
            return self
                .violation(
                    BreachKind::Missing,
                    path,
                    mapping.place,
                    format!("`{name}` is missing"),
                )
                .expected(expected)
                .fix(format!(
                    "add `{field}`: {expected}{}",
                    example.unwrap_or_default()
                ));
        };
        misspelt.insert(below(at, &slip.key));
        let wrong = visible(&slip.key);
        let text = format!("`{name}` is missing, and `{wrong}` is in its place");
        self.violation(BreachKind::Missing, path, slip.key_place, text)
            .found(&slip.key)
            .expected(field)
            .fix(format!("rename `{wrong}` to `{field}`"))
    }
}

/// The fix for a JavaScript comment, which YAML reads as a part of a name or a value.
pub(super) const NO_REMARK: &str =
    "remove the comment: JSON has none, and YAML comments begin with `#`";

/// True if the name contains a JavaScript comment, or a part of one with commas.
pub(super) fn is_remark(name: &str) -> bool {
    name.starts_with("//") || name.starts_with("/*") || name.contains("*/")
}

/// Returns a name on one line, with unusual spaces shown by their number.
pub(super) fn visible(name: &str) -> String {
    let name = if name.contains(is_strange_space) {
        let shown = |c: char| {
            if is_strange_space(c) {
                c.escape_unicode().to_string()
            } else {
                c.to_string()
            }
        };
        Cow::Owned(name.chars().map(shown).collect::<String>())
    } else {
        Cow::Borrowed(name)
    };
    shown(&name)
}

/// Returns the path of a field of the mapping at that path.
pub(super) fn below(at: &[Step], key: &str) -> Path {
    let mut path = at.to_vec();
    path.push(Step::Key(key.to_owned()));
    path
}

/// Describes a value so that it fits into a sentence.
fn describe(node: &Node, shape: Option<&Shape>) -> String {
    let letters = node.scalar().map(|scalar| match shape {
        Some(shape) => shape.trimmed(scalar),
        None => scalar.text.trim(),
    });
    match letters {
        None if shape.is_some_and(|shape| shape.items().is_some()) && node.items().len() > 1 => {
            format!("a list of {}", node.items().len())
        }
        None => node.kind().to_owned(),
        Some("") => "empty".to_owned(),
        Some(_) if node.is_null() => "null".to_owned(),
        Some(text) if text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.to_owned()
        }
        Some(text) if text.chars().count() > 200 => {
            format!("a text of {} characters", text.chars().count())
        }
        Some(text) => format!("`{}`", shown(text)),
    }
}

/// Returns a path in its dotted form: `findings[2].severity`.
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
