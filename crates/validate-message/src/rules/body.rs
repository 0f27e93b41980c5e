//! The body: for review types its schema and the rules across nits, for the others a text.

use std::collections::BTreeSet;

use message_schema::body::Body;
use message_schema::envelope::ReviewKind;
use message_schema::schema::Step;
use message_schema::yaml::{Node, Style};
use message_schema::{Code, Malformed, Message, ReadBody, Schema};

use super::document::BreachKind;
use super::{Document, MisplacedFields};
use crate::found::Found;
use crate::violation::{Source, Violation};

pub(crate) fn check(
    message: &Message,
    misplaced: &MisplacedFields<'_>,
    found: &mut Found,
) -> Option<Body> {
    let kind = message.meant()?;
    match message.read_body() {
        // A review body without text breaks the envelope's rule for `body`, which reports it.
        ReadBody::Unread => {
            let text = message
                .root()
                .field_text("body")
                .filter(|_| !kind.is_review())?;
            Some(Body::Text(text.to_owned()))
        }
        ReadBody::Malformed(malformed) => {
            found.push(syntax(message, malformed));
            None
        }
        ReadBody::Mapping(mapping) => mapped(kind.review()?, mapping, misplaced, found),
    }
}

fn syntax(message: &Message, malformed: &Malformed) -> Violation {
    let is_null = message
        .root()
        .field("body")
        .is_some_and(|body| body.value.is_null());
    let text = match is_null {
        true => "the body is null, not a YAML mapping".to_owned(),
        false => format!("the body is not a YAML mapping: {malformed}"),
    };
    let violation = Violation::malformed(malformed.clone(), Code::BodySyntax, Source::Message);
    let violation = Violation {
        message: text,
        ..violation
    }
    .field("body");
    let style = message
        .root()
        .field("body")
        .and_then(|body| body.value.scalar())
        .map(|body| body.style);
    match style {
        // Their line breaks are gone, which is the fault whatever the parser met first.
        Some(Style::Folded | Style::Plain) => {
            violation.fix("write `body: |`, with a line for each field indented below it")
        }
        Some(Style::Literal | Style::Quoted) | None => violation,
    }
}

/// Returns the document of a review message's body.
fn document<'n>(
    kind: ReviewKind,
    mapping: &'n Node,
    misplaced: &MisplacedFields<'_>,
) -> Document<'n> {
    Document {
        root: mapping,
        schema: Schema::of_review(kind),
        file: Source::Message,
        prefix: "body.",
        code,
        explained: misplaced.explained_in_body(),
    }
}

fn mapped(
    kind: ReviewKind,
    mapping: &Node,
    misplaced: &MisplacedFields<'_>,
    found: &mut Found,
) -> Option<Body> {
    let document = document(kind, mapping, misplaced);
    match kind {
        ReviewKind::Request => document.read(found).map(Body::Request),
        ReviewKind::Feedback => document.read(found).map(Body::Feedback),
        ReviewKind::Addressed => document.read(found).map(Body::Addressed),
        ReviewKind::Lgtm => {
            let lgtm = document.read(found).map(Body::Lgtm);
            nits(&document, found);
            lgtm
        }
    }
}

fn code(path: &[Step], kind: BreachKind) -> Code {
    let in_nit = path.first() == Some(&Step::Key("nits".to_owned()));
    match kind {
        BreachKind::Unknown => Code::BodyFieldUnknown,
        BreachKind::Missing | BreachKind::Invalid if in_nit => Code::NitInvalid,
        BreachKind::Missing => Code::BodyFieldMissing,
        BreachKind::Invalid => Code::BodyFieldInvalid,
    }
}

/// Checks that the ids of nits are unique within the message.
fn nits(document: &Document<'_>, found: &mut Found) {
    let Some(nits) = document.root.field("nits") else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (index, nit) in nits.value.items().iter().enumerate() {
        let Some(id) = nit.field_text("nit_id").filter(|id| !id.is_empty()) else {
            continue;
        };
        if !seen.insert(id) {
            let path = [
                Step::Key("nits".to_owned()),
                Step::Index(index),
                Step::Key("nit_id".to_owned()),
            ];
            let violation = document.invalid(&path, "an id no other nit of this message has");
            found.push(violation.fix("give each nit its own id"));
        }
    }
}
