//! The tree: mappings, lists and scalars, each with a place.

use super::frame::Frame;
use crate::place::Place;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The first character of the value; for a block mapping, that of its first key.
    pub place: Place,
    /// The value.
    pub content: Content,
}

/// The three things a value can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text, as written.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Fields in order, keys distinct.
    Map(Vec<Field>),
}

/// A scalar with its escapes and folding undone, but without any typing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// The style it was written in.
    pub style: Style,
    /// A comment that may be a lost part of a plain scalar.
    pub tail: Option<Box<Tail>>,
    pub(crate) frame: Frame,
}

/// A comment after a plain scalar whose `#` has no blank after it, as in `subject: Fix #12`: YAML does not count it as
/// text, but its writer may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// The place of the `#`.
    pub place: Place,
    /// Its text, up to the end of the line.
    pub text: String,
}

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bare.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// A `|` block.
    Literal,
    /// A `>` block.
    Folded,
}

/// One field of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The key's text.
    pub key: String,
    /// The place of the key.
    pub key_place: Place,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Returns the text, if the value is a scalar.
    pub fn text(&self) -> Option<&str> {
        self.scalar().map(|scalar| scalar.text.as_str())
    }

    /// Returns the scalar, if the value is one.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Returns the items; none if the value is no list.
    pub fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Scalar(_) | Content::Map(_) => &[],
        }
    }

    /// Returns the fields; none if the value is no mapping.
    pub fn fields(&self) -> &[Field] {
        match &self.content {
            Content::Map(fields) => fields,
            Content::Scalar(_) | Content::List(_) => &[],
        }
    }

    /// Returns the field of that name, if the value is a mapping that has it.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields().iter().find(|field| field.key == key)
    }

    /// Returns the trimmed text of the scalar field of that name.
    pub fn field_text(&self, key: &str) -> Option<&str> {
        self.field(key)?.value.text().map(str::trim)
    }

    /// Returns the text of an optional field; `None` if its value means "nothing here".
    pub fn optional_text(&self, key: &str) -> Option<&str> {
        self.field(key)
            .filter(|field| !field.value.is_absent())?
            .value
            .text()
            .map(str::trim)
    }

    /// True if the value means "nothing here" in an optional field: an empty text, or a plain `~` or `null`.
    pub fn is_absent(&self) -> bool {
        self.scalar().is_some_and(|scalar| {
            let text = scalar.text.trim();
            text.is_empty() || (scalar.style == Style::Plain && (text == "~" || text == "null"))
        })
    }

    /// True if it is a plain word that other YAML readers take for no value at all.
    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(|scalar| {
            scalar.style == Style::Plain
                && matches!(scalar.text.trim(), "~" | "null" | "Null" | "NULL")
        })
    }

    /// Returns the kind of value, in a word or two for people.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            Content::Scalar(_) => "a text",
            Content::List(items) if items.is_empty() => "an empty list",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }

    /// Follows a path of keys and list indexes as far as it leads.
    pub fn at(&self, path: &[crate::schema::Step]) -> Option<&Self> {
        path.iter().try_fold(self, |node, step| match step {
            crate::schema::Step::Key(key) => node.field(key).map(|field| &field.value),
            crate::schema::Step::Index(index) => node.items().get(*index),
        })
    }
}
