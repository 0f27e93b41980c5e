//! Writes one field of an envelope in canonical form: numbers bare, texts in quotes if a YAML 1.1 or 1.2 reader would
//! take them for something else, the body as a literal block.

use message_schema::schema::Step;
use message_schema::yaml::{Content, Field, Node};
use message_schema::{Schema, coerce, render_document, stands_in_a_block};
use serde_json::{Map, Value};

/// Returns the field with its final line feed.
pub(super) fn written(field: &Field) -> String {
    let name = field.key.as_str();
    let Some(scalar) = field.value.scalar() else {
        return document(name, value(&field.value));
    };
    if let Some(block) = (name == "body").then(|| block(&scalar.text)).flatten() {
        return block;
    }
    if is_null(&field.value) {
        return format!(
            "{}{}\n",
            document(name, Value::Null)
                .trim_end()
                .trim_end_matches("null"),
            scalar.text.trim()
        );
    }
    match number(name, &field.value) {
        Some(letters) => format!("{name}: {letters}\n"),
        None => document(name, Value::String(scalar.text.clone())),
    }
}

fn document(name: &str, value: Value) -> String {
    render_document(&Map::from_iter([(name.to_owned(), value)]))
}

/// Returns the text of a number or boolean that needs no quotes: YAML 1.1 reads it the same.
fn number<'v>(name: &str, value: &'v Node) -> Option<&'v str> {
    let shape = Schema::Envelope.shape().at(&[Step::Key(name.to_owned())])?;
    let letters = value.text()?.trim();
    let has_octal_look =
        letters.len() > 1 && letters.starts_with('0') && !letters.starts_with("0.");
    match coerce(value, shape) {
        Value::Number(_) | Value::Bool(_) if !has_octal_look => Some(letters),
        Value::Number(_)
        | Value::Bool(_)
        | Value::Null
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

fn is_null(node: &Node) -> bool {
    node.is_absent() && node.text().is_some_and(|text| !text.trim().is_empty())
}

fn value(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(_) if is_null(node) => Value::Null,
        Content::Scalar(scalar) => Value::String(scalar.text.clone()),
        Content::List(items) => Value::Array(items.iter().map(value).collect()),
        Content::Map(fields) => Value::Object(
            fields
                .iter()
                .map(|field| (field.key.clone(), value(&field.value)))
                .collect(),
        ),
    }
}

/// Returns the body as a literal block, letter by letter; `None` if it would need escapes.
fn block(text: &str) -> Option<String> {
    if text.trim().is_empty() || !text.chars().all(stands_in_a_block) {
        return None;
    }
    let end = text.trim_end_matches('\n');
    let chomping = match text.len() - end.len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let indentation = if text.starts_with(char::is_whitespace) {
        "2"
    } else {
        ""
    };
    let mut block = format!("body: |{indentation}{chomping}\n");
    for line in end.split('\n') {
        if !line.is_empty() {
            block.extend(["  ", line]);
        }
        block.push('\n');
    }
    block.push_str(text[end.len()..].strip_prefix('\n').unwrap_or_default());
    Some(block)
}
