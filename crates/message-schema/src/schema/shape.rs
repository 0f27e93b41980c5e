//! The part of a schema that concerns the text of a document: which scalar is a number, which field may be left out,
//! and the description for people.

use serde_json::Value;

use super::Step;
use crate::line;
use crate::yaml::{Scalar, Style};

/// One position in a document, as its schema describes it.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    scalar: Typing,
    margin: Margin,
    expected: String,
    example: Option<String>,
    words: Vec<String>,
    is_free: bool,
    is_anything: bool,
    is_mapping: bool,
    is_instant: bool,
    minimum: Option<u64>,
    maximum: Option<u64>,
    items: Option<Box<Shape>>,
    /// Sorted by name.
    fields: Vec<FieldShape>,
}

#[derive(Clone, Debug)]
struct FieldShape {
    name: String,
    is_required: bool,
    shape: Shape,
}

/// The type as which a scalar is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Typing {
    #[default]
    Text,
    Integer,
    Number,
    Boolean,
}

/// The characters around a scalar's text that are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Margin {
    /// White space of any kind: a text.
    #[default]
    Space,
    /// Spaces and tabs, and the line break that ends a block: for an identifier, a word or a number. Messages are
    /// delivered as they were written, so a reader that trims less than we do must still read the same name.
    Blanks,
    /// White space of any kind except line breaks: for a text of one line.
    Line,
}

impl Margin {
    fn of(schema: &Value) -> Self {
        // Identifiers list the characters they admit; a text's pattern lists those it does not.
        let lists_its_letters = |pattern: &str| !pattern.contains("[^");
        if schema["x-one-line"] == Value::Bool(true) {
            Self::Line
        } else if schema["enum"].is_array()
            || typing(&schema["type"]) != Typing::Text
            || schema["pattern"].as_str().is_some_and(lists_its_letters)
        {
            Self::Blanks
        } else {
            Self::Space
        }
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

impl Shape {
    pub(super) fn of(schema: &Value) -> Self {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields: Vec<FieldShape> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, field)| FieldShape {
                name: name.clone(),
                is_required: required.contains(&name.as_str()),
                shape: Self::of(field),
            })
            .collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            scalar: typing(&schema["type"]),
            margin: Margin::of(schema),
            expected: expected(schema),
            example: example(&schema["examples"][0]),
            words: words(schema),
            is_free: fields.is_empty() || schema["x-free"] == Value::Bool(true),
            is_anything: schema["type"].is_null(),
            is_mapping: schema["type"] == "object",
            is_instant: schema["format"] == "date-time",
            minimum: schema["minimum"].as_u64(),
            maximum: schema["maximum"].as_u64(),
            items: schema["items"]
                .is_object()
                .then(|| Box::new(Self::of(&schema["items"]))),
            fields,
        }
    }

    pub(crate) fn typing(&self) -> Typing {
        self.scalar
    }

    /// Returns the text without the surrounding white space that the field ignores.
    pub fn trimmed<'s>(&self, scalar: &'s Scalar) -> &'s str {
        let text = scalar.text.as_str();
        match self.margin {
            Margin::Space => text.trim(),
            Margin::Blanks => match scalar.style {
                Style::Literal | Style::Folded => {
                    text.strip_suffix('\n').unwrap_or(text).trim_matches(BLANKS)
                }
                Style::Plain | Style::Quoted => text.trim_matches(BLANKS),
            },
            Margin::Line => {
                let text = text.trim_matches(BLANKS);
                if line::is_one_line(text) {
                    text.trim()
                } else {
                    text
                }
            }
        }
    }

    /// True if it is a text of one line.
    pub fn is_one_line(&self) -> bool {
        self.margin == Margin::Line
    }

    /// Returns the accepted values, in words for people.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns the words of an enumeration or a boolean; empty for anything else.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// True if it is a whole number.
    pub fn is_integer(&self) -> bool {
        self.scalar == Typing::Integer
    }

    /// True if it is `true` or `false`.
    pub fn is_boolean(&self) -> bool {
        self.scalar == Typing::Boolean
    }

    /// True if a number is within the bounds.
    pub fn is_within_bounds(&self, number: u64) -> bool {
        self.minimum.is_none_or(|min| min <= number) && self.maximum.is_none_or(|max| number <= max)
    }

    /// True if it is a single value, not a list or a mapping.
    pub fn is_scalar(&self) -> bool {
        self.items.is_none() && !self.is_mapping && !self.is_anything
    }

    /// True if it is an instant.
    pub fn is_instant(&self) -> bool {
        self.is_instant
    }

    /// True if it is a text that may have several lines.
    pub fn is_prose(&self) -> bool {
        self.is_scalar() && self.margin == Margin::Space
    }

    /// Returns a value that the schema admits, if it is a scalar.
    pub fn example(&self) -> Option<&str> {
        self.example.as_deref()
    }

    /// True if fields that the schema does not name are not checked.
    pub fn is_free(&self) -> bool {
        self.is_free
    }

    /// True if the schema admits any value.
    pub fn is_anything(&self) -> bool {
        self.is_anything
    }

    /// Returns the shape of the items of a list.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Returns the shape of a field and whether it is required; `None` for a name that the schema does not know.
    pub fn field(&self, name: &str) -> Option<(&Self, bool)> {
        // A schema has few fields, and most of their names differ in length.
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some((&field.shape, field.is_required))
    }

    /// Returns the names of the fields, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Returns the shape at a path; `None` if the schema says nothing about it.
    pub fn at(&self, path: &[Step]) -> Option<&Self> {
        path.iter().try_fold(self, |shape, step| match step {
            Step::Key(key) => shape.field(key).map(|(shape, _)| shape),
            Step::Index(_) => shape.items(),
        })
    }
}

fn typing(kind: &Value) -> Typing {
    match kind.as_str() {
        Some("integer") => Typing::Integer,
        Some("number") => Typing::Number,
        Some("boolean") => Typing::Boolean,
        Some(_) | None => Typing::Text,
    }
}

fn example(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn words(schema: &Value) -> Vec<String> {
    if schema["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    schema["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn expected(schema: &Value) -> String {
    if let Some(text) = schema["x-expected"].as_str() {
        return text.to_owned();
    }
    let words = words(schema);
    if !words.is_empty() {
        return words.join(", ");
    }
    if let (Some(min), Some(max)) = (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        return format!("{min} to {max}");
    }
    let noun = match schema["type"].as_str() {
        Some("object") => "a mapping",
        Some("array") => "a list",
        Some("integer" | "number") => "a number",
        Some("boolean") => "true or false",
        Some(_) | None => "a text",
    };
    noun.to_owned()
}

#[cfg(test)]
mod tests {
    use crate::Schema;
    use crate::schema::Step;

    #[test]
    fn a_time_in_a_schema_is_an_instant_and_no_other_text_is() {
        let is_instant = |name: &str| {
            let shape = Schema::Envelope.shape().at(&[Step::Key(name.to_owned())]);
            shape.expect("a field").is_instant()
        };
        for name in ["created_at_utc", "expires_at"] {
            assert!(is_instant(name), "{name}");
        }
        for name in ["id", "subject", "to", "conversation_id"] {
            assert!(!is_instant(name), "{name}");
        }
    }
}
