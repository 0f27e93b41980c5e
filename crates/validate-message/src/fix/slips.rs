//! Slips at one value or name of a parsable message: finds them along its schemas, and tells what differs once one is
//! fixed.

use std::ops::Range;

use message_schema::schema::{Shape, Step};
use message_schema::yaml::{Field, Node};
use message_schema::{Message, Place, ReadBody, Schema};

use super::applied::shown;
use super::{AppliedFix, Fix, names, times, words};
use crate::content::{Leaf, Values};
use crate::lines::Lines;
use crate::rules::dotted;

/// One slip and its replacement.
pub(super) struct Slip {
    pub(super) fix: Fix,
    pub(super) path: Vec<Step>,
    pub(super) place: Place,
    /// The bytes of the text that are replaced.
    pub(super) range: Range<usize>,
    pub(super) was: String,
    pub(super) becomes: String,
}

/// One document's schema, and its effect on unknown names.
struct SchemaDocument<'d> {
    shape: &'d Shape,
    /// True if every unknown name refuses the message, not only one for which a required field is missing.
    is_closed: bool,
}

/// Returns the slips of a message in text order: those in names or, if there are none, those in values.
pub(super) fn of(message: &Message, lines: &Lines<'_>) -> Vec<Slip> {
    let mut found = SlipSearch {
        lines,
        names: Vec::new(),
        values: Vec::new(),
    };
    let envelope = SchemaDocument {
        shape: Schema::Envelope.shape(),
        is_closed: true,
    };
    found.search(message.root(), envelope.shape, &envelope, &mut Vec::new());
    let schema = message.kind().and_then(Schema::of_body);
    if let (Some(schema), ReadBody::Mapping(mapping)) = (schema, message.read_body()) {
        let body = SchemaDocument {
            shape: schema.shape(),
            is_closed: false,
        };
        found.search(
            mapping,
            body.shape,
            &body,
            &mut vec![Step::Key("body".to_owned())],
        );
    }
    let mut slips = if found.names.is_empty() {
        found.values
    } else {
        found.names
    };
    slips.sort_by_key(|slip| slip.range.start);
    slips
}

struct SlipSearch<'l> {
    lines: &'l Lines<'l>,
    names: Vec<Slip>,
    values: Vec<Slip>,
}

impl SlipSearch<'_> {
    fn search(
        &mut self,
        node: &Node,
        shape: &Shape,
        document: &SchemaDocument<'_>,
        path: &mut Vec<Step>,
    ) {
        self.value(node, shape, path);
        for field in node.fields() {
            path.push(Step::Key(field.key.clone()));
            match shape.field(&field.key) {
                Some((shape, _)) => self.search(&field.value, shape, document, path),
                None => self.name(field, node, shape, document, path),
            }
            path.pop();
        }
        for (index, item) in node.items().iter().enumerate() {
            let Some(shape) = shape.items() else { break };
            path.push(Step::Index(index));
            self.search(item, shape, document, path);
            path.pop();
        }
    }

    fn value(&mut self, node: &Node, shape: &Shape, path: &[Step]) {
        let Some(scalar) = node.scalar() else { return };
        let fixed = words::fixed(&scalar.text, shape).or_else(|| times::fixed(&scalar.text, shape));
        let Some((fix, becomes)) = fixed else { return };
        if let Some(range) = self.lines.scalar(scalar, node.place) {
            let (path, was) = (path.to_vec(), scalar.text.clone());
            self.values.push(Slip {
                fix,
                path,
                place: node.place,
                range,
                was,
                becomes,
            });
        }
    }

    fn name(
        &mut self,
        field: &Field,
        mapping: &Node,
        shape: &Shape,
        document: &SchemaDocument<'_>,
        path: &[Step],
    ) {
        if shape.is_free() {
            return;
        }
        let is_wanted = |name: &str| {
            let is_required = shape
                .field(name)
                .is_some_and(|(_, is_required)| is_required);
            (document.is_closed || is_required) && mapping.field(name).is_none()
        };
        let Some(becomes) = names::fixed(&field.key, shape.names()).filter(|name| is_wanted(name))
        else {
            return;
        };
        if let Some(range) = self.lines.verbatim(&field.key, field.key_place) {
            let (path, was) = (path.to_vec(), field.key.clone());
            self.names.push(Slip {
                fix: Fix::Name,
                path,
                place: field.key_place,
                range,
                was,
                becomes,
            });
        }
    }
}

impl Slip {
    /// Changes the values of a message as fixing this slip changes them.
    pub(super) fn replace_in(&self, values: &mut Values) {
        if self.fix != Fix::Name {
            values.insert(self.path.clone(), Leaf::Text(self.becomes.clone()));
            return;
        }
        let at = self.path.len() - 1;
        let from_here = values.range(self.path.clone()..).map(|(path, _)| path);
        let below: Vec<Vec<Step>> = from_here
            .take_while(|path| path.starts_with(&self.path))
            .cloned()
            .collect();
        for mut path in below {
            let leaf = values.remove(&path).expect("it was just listed");
            path[at] = Step::Key(self.becomes.clone());
            values.insert(path, leaf);
        }
    }

    /// Returns the slip in the words of a report.
    pub(super) fn applied(&self) -> AppliedFix {
        AppliedFix {
            fix: self.fix,
            place: self.place,
            field: Some(dotted(&self.path)),
            what: format!("{} is now {}", shown(&self.was), shown(&self.becomes)),
        }
    }
}
