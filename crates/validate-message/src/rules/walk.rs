//! Walks over a document's tree and the shape of its schema side by side, for what a schema alone cannot report: unknown
//! fields with a suggestion, and texts that fit but look wrong. Each of the two has a file of its own.

use std::collections::BTreeSet;

use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Content, Field, Node};

use super::Document;
use super::document::Path;
use crate::found::Found;

/// A walk over tree and shape side by side.
pub(super) struct Walk<'a> {
    pub(super) document: &'a Document<'a>,
    /// The unknown fields that a missing field explains.
    pub(super) misspelt: &'a BTreeSet<Path>,
    /// The values that are refused already.
    pub(super) refused: &'a BTreeSet<Path>,
    pub(super) path: Vec<Step<&'a str>>,
    pub(super) found: &'a mut Found,
}

/// The shape's demand for a value in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

impl<'a> Walk<'a> {
    /// Looks at a value and everything in it.
    pub(super) fn node(&mut self, node: &'a Node, shape: &Shape, presence: Presence) {
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
            Content::Map(fields) => self.fields(node, fields, shape),
        }
    }

    fn fields(&mut self, mapping: &'a Node, fields: &'a [Field], shape: &Shape) {
        let mut strangers = Vec::new();
        for field in fields {
            match shape.field(&field.key) {
                Some((shape, true)) => self.field(field, shape, Presence::Required),
                Some((shape, false)) => self.field(field, shape, Presence::Optional),
                None if shape.is_free() => {}
                None => strangers.push(field),
            }
        }
        if !strangers.is_empty() {
            self.strangers(mapping, &strangers, shape);
        }
    }

    fn field(&mut self, field: &'a Field, shape: &Shape, presence: Presence) {
        self.step(Step::Key(&field.key), &field.value, shape, presence);
    }

    fn step(&mut self, step: Step<&'a str>, node: &'a Node, shape: &Shape, presence: Presence) {
        self.path.push(step);
        self.node(node, shape, presence);
        self.path.pop();
    }
}
