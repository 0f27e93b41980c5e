//! The generated validators, and their errors brought down to what a report needs.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use super::Schema;

/// One step from a document's root to a value in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into the field of a mapping.
    Key(String),
    /// To an item of a list, from 0.
    Index(usize),
}

/// One way in which a document breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A required field is not there.
    Missing {
        /// The mapping it is missing from.
        at: Vec<Step>,
        /// The field.
        field: String,
    },
    /// A field the schema does not know, where it admits no others.
    Unknown {
        /// The mapping it stands in.
        at: Vec<Step>,
        /// The field.
        field: String,
    },
    /// A value is not what the schema wants.
    Broken {
        /// The value.
        at: Vec<Step>,
        /// The JSON Schema keyword that refuses it.
        keyword: String,
    },
}

macro_rules! validators {
    ($($schema:ident = $path:literal),+ $(,)?) => {
        $(
            #[jsonschema::validator(
                path = $path,
                draft = jsonschema::Draft::Draft202012,
                validate_formats = true,
                formats = { "date-time" => crate::schema::validators::is_instant, "line-range" => crate::schema::validators::is_line_range },
                pattern_options = { engine = regex },
                methods = { is_valid = false, validate = false, iter_errors = true }
            )]
            struct $schema;
        )+

        pub(super) fn breaches(schema: Schema, document: &Value) -> Vec<Breach> {
            let mut breaches = Vec::new();
            match schema {
                $(Schema::$schema => {
                    for error in $schema::iter_errors(document) {
                        sort(&error, &mut breaches);
                    }
                })+
            }
            breaches
        }
    };
}

validators! {
    Envelope = "../../schemas/envelope.schema.json",
    ReviewRequest = "../../schemas/review_request.schema.json",
    ReviewFeedback = "../../schemas/review_feedback.schema.json",
    ReviewAddressed = "../../schemas/review_addressed.schema.json",
    ReviewLgtm = "../../schemas/review_lgtm.schema.json",
    FindingsPacket = "../../schemas/findings_packet.schema.json",
    ChangesPacket = "../../schemas/changes_packet.schema.json",
    Report = "../../schemas/report.schema.json",
}

pub(super) fn is_instant(text: &str) -> bool {
    crate::envelope::Timestamp::parse(text).is_some()
}

pub(super) fn is_line_range(text: &str) -> bool {
    crate::packet::LineRange::parse(text).is_some()
}

fn sort(error: &jsonschema::ValidationError<'_>, breaches: &mut Vec<Breach>) {
    let at: Vec<Step> = error
        .instance_path()
        .iter()
        .map(|segment| match segment {
            LocationSegment::Property(name) => Step::Key(name.into_owned()),
            LocationSegment::Index(index) => Step::Index(index),
        })
        .collect();
    if let ValidationErrorKind::Required { property } = error.kind() {
        let field = property.as_str().unwrap_or_default().to_owned();
        breaches.push(Breach::Missing { at, field });
    } else if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        breaches.extend(unexpected.iter().map(|field| Breach::Unknown {
            at: at.clone(),
            field: field.clone(),
        }));
    } else {
        breaches.push(Breach::Broken {
            at,
            keyword: error.kind().keyword().to_owned(),
        });
    }
}
