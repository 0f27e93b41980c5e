//! What a message says, letter by letter: each value with the way that leads to it. Two texts that
//! say the same have the same letters, however they are written; whoever rewrites a message compares
//! them before and after.

use std::collections::BTreeMap;

use message_schema::schema::Step;
use message_schema::yaml::{Content, Node};
use message_schema::{Message, ReadBody};

/// Every value of a message with its path; the body's below `body` where it is read.
pub type Letters = BTreeMap<Vec<Step>, Leaf>;

/// A value without values in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A text, escapes and folding undone.
    Text(String),
    /// A plain `~` or `null`, which in quotes is a text.
    Null,
    /// A list without items.
    EmptyList,
    /// A mapping without fields.
    EmptyMap,
}

/// The letters of a message, the body of a review message read as the YAML it is.
pub fn letters(message: &Message) -> Letters {
    let mut letters = written(message);
    if let ReadBody::Mapping(mapping) = message.read_body() {
        let body = vec![Step::Key("body".to_owned())];
        letters.remove(&body);
        collect(mapping, body, &mut letters);
    }
    letters
}

/// The letters of a message, its body a text whatever its type.
pub(crate) fn written(message: &Message) -> Letters {
    let mut letters = Letters::new();
    collect(message.root(), Vec::new(), &mut letters);
    letters
}

fn collect(node: &Node, at: Vec<Step>, into: &mut Letters) {
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
