//! The few shapes a response schema is made of, as JSON text. A brief goes with every request, and
//! building a tree only to print it would cost more than all else in it.

use serde::Serialize;

/// The schema of any text.
pub(super) const TEXT: &str = r#"{"type":"string"}"#;

/// The schema of a yes or no.
pub(super) const BOOLEAN: &str = r#"{"type":"boolean"}"#;

/// A text, a word or a list of them, as JSON.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("words and texts are JSON")
}

/// An object that has these properties, all of them, and no other; each with its schema.
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

/// One of these words.
pub(super) fn one_of(words: &(impl Serialize + ?Sized)) -> String {
    format!(r#"{{"type":"string","enum":{}}}"#, json(words))
}

/// This word.
pub(super) fn only(word: &(impl Serialize + ?Sized)) -> String {
    format!(r#"{{"type":"string","const":{}}}"#, json(word))
}

/// A list of what the schema describes.
pub(super) fn list(items: &str) -> String {
    format!(r#"{{"type":"array","items":{items}}}"#)
}

/// A list of at most so many.
pub(super) fn short_list(max: usize, items: &str) -> String {
    format!(r#"{{"type":"array","maxItems":{max},"items":{items}}}"#)
}

/// A schema that admits any of these; at least one.
pub(super) fn any_of(schemas: &[String]) -> String {
    match schemas {
        [only] => only.clone(),
        several => format!(r#"{{"anyOf":[{}]}}"#, several.join(",")),
    }
}

/// A schema that refers to the definition of this name.
pub(super) fn reference(name: &str) -> String {
    format!(r##"{{"$ref":"#/$defs/{name}"}}"##)
}
