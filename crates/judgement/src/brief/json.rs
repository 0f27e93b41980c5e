//! The few shapes that make up a response schema, as JSON text. Every request gets a brief, and building a tree only to
//! print it would cost more than the rest of the brief.

use serde::Serialize;

/// The schema of any text.
pub(super) const TEXT: &str = r#"{"type":"string"}"#;

/// The schema of a boolean.
pub(super) const BOOLEAN: &str = r#"{"type":"boolean"}"#;

/// Returns a text, a word or a list of them as JSON.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("words and texts are JSON")
}

/// Returns the schema of an object with exactly these required properties, each with its schema.
pub(super) fn object(properties: &[(&str, &str)]) -> String {
    let names: Vec<String> = properties.iter().map(|(name, _)| json(name)).collect();
    let fields: Vec<String> = names
        .iter()
        .zip(properties)
        .map(|(name, (_, schema))| format!("{name}:{schema}"))
        .collect();
    format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}}"#,
        fields.join(","),
        names.join(",")
    )
}

/// Returns the schema of one of these words.
pub(super) fn one_of(words: &(impl Serialize + ?Sized)) -> String {
    format!(r#"{{"type":"string","enum":{}}}"#, json(words))
}

/// Returns the schema of exactly this word.
pub(super) fn only(word: &(impl Serialize + ?Sized)) -> String {
    format!(r#"{{"type":"string","const":{}}}"#, json(word))
}

/// Returns the schema of a list of these items.
pub(super) fn list(items: &str) -> String {
    format!(r#"{{"type":"array","items":{items}}}"#)
}

/// Returns the schema of a list of at most `max` items.
pub(super) fn short_list(max: usize, items: &str) -> String {
    format!(r#"{{"type":"array","maxItems":{max},"items":{items}}}"#)
}

/// Returns a schema that admits any of these; `schemas` has at least one.
pub(super) fn any_of(schemas: &[String]) -> String {
    match schemas {
        [only] => only.clone(),
        several => format!(r#"{{"anyOf":[{}]}}"#, several.join(",")),
    }
}

/// Returns a schema that refers to the definition of this name.
pub(super) fn reference(name: &str) -> String {
    format!(r##"{{"$ref":"#/$defs/{name}"}}"##)
}
