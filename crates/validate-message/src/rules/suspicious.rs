//! Warns of texts that are valid but probably not what the writer meant: a required text that is `null`, and a text
//! that a comment's `#` cuts short. The text counts as written.

use std::collections::BTreeSet;

use message_schema::envelope::MessageType;
use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Content, Node, Scalar, Tail};
use message_schema::{Code, Level, Schema};

use super::Document;
use super::document::{BreachKind, Path, dotted};
use super::suggestions::{in_quotes, lead};
use crate::found::Found;
use crate::violation::{Violation, shown};

impl Document<'_> {
    /// Warns of every suspicious text that is not refused already.
    pub(super) fn tell_suspicious(&self, refused: &BTreeSet<Path>, found: &mut Found) {
        let mut walk = Walk {
            document: self,
            refused,
            path: Vec::new(),
            found,
        };
        walk.node(self.root, self.schema.shape(), Presence::Required);
    }

    /// True if it is the body of a review message: the rules of the body refuse a bare text there.
    fn is_body_of_fields(&self, path: &[Step]) -> bool {
        let kind = self
            .root
            .field_text("type")
            .and_then(MessageType::from_word);
        self.schema == Schema::Envelope
            && path == [Step::Key("body".to_owned())]
            && kind.is_some_and(MessageType::is_review)
    }

    /// Returns the warning about a text that a comment cuts off.
    fn cut(&self, path: &[Step], scalar: &Scalar, tail: &Tail) -> Violation {
        let name = dotted(path);
        let text = match scalar.text.trim() {
            "" => format!("`{name}` is empty: YAML starts a comment at the `#`"),
            kept => format!(
                "`{name}` is only `{}`: YAML starts a comment at the `#`",
                shown(kept)
            ),
        };
        self.violation(BreachKind::Invalid, path, tail.place, text)
            .found(&tail.text)
            .expected("a text in quotes")
            .fix(format!(
                "{}; a comment has a space after the `#`",
                in_quotes(&lead(path), &scalar.text, tail)
            ))
    }

    /// Returns the warning about a required text that other readers take for none.
    fn null(&self, path: &[Step], node: &Node, shape: &Shape, word: &str) -> Violation {
        let text = format!(
            "`{}` is null, which Settled reads as the letters `{word}`",
            dotted(path)
        );
        self.violation(BreachKind::Invalid, path, node.place, text)
            .found(word)
            .expected(shape.expected())
            .fix(format!(
                "write the value, or `\"{word}\"` if these letters are meant"
            ))
    }
}

/// The shape's demand for a value in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// A walk over tree and shape side by side.
struct Walk<'a> {
    document: &'a Document<'a>,
    refused: &'a BTreeSet<Path>,
    path: Path,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, shape: &Shape, presence: Presence) {
        match &node.content {
            Content::Scalar(scalar) => self.scalar(node, scalar, shape, presence),
            Content::List(items) => {
                let (shape, presence) = match shape.items() {
                    Some(shape) => (shape, Presence::Required),
                    // A value of any shape may be a list of texts.
                    None if shape.is_anything() => (shape, Presence::Optional),
                    None => return,
                };
                for (index, item) in items.iter().enumerate() {
                    self.step(Step::Index(index), item, shape, presence);
                }
            }
            Content::Map(fields) => {
                for field in fields {
                    if let Some((shape, is_required)) = shape.field(&field.key) {
                        let presence = if is_required {
                            Presence::Required
                        } else {
                            Presence::Optional
                        };
                        self.step(Step::Key(field.key.clone()), &field.value, shape, presence);
                    }
                }
            }
        }
    }

    fn step(&mut self, step: Step, node: &Node, shape: &Shape, presence: Presence) {
        self.path.push(step);
        self.node(node, shape, presence);
        self.path.pop();
    }

    fn scalar(&mut self, node: &Node, scalar: &Scalar, shape: &Shape, presence: Presence) {
        let is_text = shape.is_prose() || shape.is_one_line() || shape.is_anything();
        let violation = match &scalar.tail {
            Some(tail) if is_text => self.document.cut(&self.path, scalar, tail),
            Some(_) | None if presence == Presence::Required && node.is_null() => self
                .document
                .null(&self.path, node, shape, scalar.text.trim()),
            Some(_) | None => return,
        };
        let is_told = self.refused.contains(&self.path)
            || self.document.explained.contains(&self.path)
            || self.document.is_body_of_fields(&self.path);
        if !is_told && !self.found.is_full(Level::Warning) {
            self.found.push(
                Violation {
                    code: Code::TextDoubtful,
                    ..violation
                }
                .warning(),
            );
        }
    }
}
