//! From raw scalars to values: the schema says which letters are a number, and all others stay
//! letters. Values that do not fit are left as text, for the schema to refuse.

use serde_json::{Map, Value};

use crate::schema::Shape;
use crate::schema::Typing;
use crate::yaml::{Content, Node};

/// Reads a tree as its schema means it. Text is trimmed; `86`, `"86"`, `12345e7` and `no` keep
/// their letters in text fields; an optional field that is empty, `~` or `null` is left out.
pub fn coerce(node: &Node, shape: &Shape) -> Value {
    value(node, Some(shape))
}

fn value(node: &Node, shape: Option<&Shape>) -> Value {
    match &node.content {
        Content::Scalar(scalar) => {
            scalar_value(scalar.text.trim(), shape.map_or(Typing::Text, Shape::typing))
        }
        Content::List(items) => {
            Value::Array(items.iter().map(|item| value(item, shape.and_then(Shape::items))).collect())
        }
        Content::Map(fields) => {
            let mut map = Map::new();
            for field in fields {
                match shape.and_then(|shape| shape.field(&field.key)) {
                    Some((_, false)) if field.value.is_absent() => {}
                    Some((shape, _)) => {
                        map.insert(field.key.clone(), value(&field.value, Some(shape)));
                    }
                    None => {
                        map.insert(field.key.clone(), value(&field.value, None));
                    }
                }
            }
            Value::Object(map)
        }
    }
}

fn scalar_value(text: &str, typing: Typing) -> Value {
    let typed = match typing {
        Typing::Text => None,
        Typing::Integer => integer(text),
        Typing::Number => number(text),
        Typing::Boolean => boolean(text),
    };
    typed.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn integer(text: &str) -> Option<Value> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse::<u64>().ok()).flatten().map(Value::from)
}

/// Reads decimal digits with at most a fraction and an exponent: no sign, no `inf`, no `.5`.
fn number(text: &str) -> Option<Value> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let number = plain.then(|| text.parse::<f64>().ok()).flatten()?;
    serde_json::Number::from_f64(number).map(Value::Number)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}
