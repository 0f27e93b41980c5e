//! The values of a message, each with its path. Two texts with the same values are equivalent, however they are
//! written; code that rewrites a message compares the values before and after.

use std::collections::BTreeMap;

use message_schema::schema::Step;
use message_schema::yaml::{Content, Node};
use message_schema::{Message, ReadBody};

/// Every value of a message by its path; those of a parsed body are below `body`.
pub type Values = BTreeMap<Vec<Step>, Leaf>;

/// A value that contains no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A text, with escapes and folding undone.
    Text(String),
    /// A plain `~` or `null`, which would be a text in quotes.
    Null,
    /// A list without items.
    EmptyList,
    /// A mapping without fields.
    EmptyMap,
}

/// Lists the values of a message; the body of a review message is parsed as YAML.
pub fn values(message: &Message) -> Values {
    let mut values = values_of_text(message);
    if let ReadBody::Mapping(mapping) = message.read_body() {
        let body = vec![Step::Key("body".to_owned())];
        values.remove(&body);
        collect(mapping, body, &mut values);
    }
    values
}

/// Lists the values of a message; its body is one text, whatever the type.
pub(crate) fn values_of_text(message: &Message) -> Values {
    let mut values = Values::new();
    collect(message.root(), Vec::new(), &mut values);
    values
}

fn collect(node: &Node, at: Vec<Step>, into: &mut Values) {
    let below = |step: Step| {
        let mut path = at.clone();
        path.push(step);
        path
    };
    let leaf = match &node.content {
        Content::Scalar(scalar) if node.is_absent() && !scalar.text.trim().is_empty() => Leaf::Null,
        Content::Scalar(scalar) => Leaf::Text(scalar.text.clone()),
        Content::List(items) if items.is_empty() => Leaf::EmptyList,
        Content::Map(fields) if fields.is_empty() => Leaf::EmptyMap,
        Content::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, below(Step::Index(index)), into);
            }
            return;
        }
        Content::Map(fields) => {
            for field in fields {
                collect(&field.value, below(Step::Key(field.key.clone())), into);
            }
            return;
        }
    };
    into.insert(at, leaf);
}
