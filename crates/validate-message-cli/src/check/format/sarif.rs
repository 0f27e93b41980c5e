//! SARIF 2.1.0: one run, every rule with its help, a result for each violation.

use std::fmt::Write as _;

use message_schema::Finder;
use message_schema::{Code, Level};
use serde_json::{Value, json};
use validate_message::Violation;

use super::json::indented;

use crate::check::verdict::{Note, Verdict};

/// Returns the document's beginning, up to the first result.
pub(crate) fn head() -> String {
    let driver = json!({
        "name": "validate-message",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": codes().map(rule).collect::<Vec<Value>>(),
    });
    format!(
        "{{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\": \"2.1.0\",\n  \"runs\": [\n    \
         {{\n      \"tool\": {{\n        \"driver\": {}\n      }},\n      \"columnKind\": \"unicodeCodePoints\",\n      \
         \"results\": [",
        indented(&driver, 8).trim_start()
    )
}

/// Returns the codes that a file's results can have, in the order of `ruleIndex`.
fn codes() -> impl Iterator<Item = Code> {
    Code::ALL
        .iter()
        .copied()
        .filter(|code| code.finder() == Finder::Validator)
}

fn rule(code: Code) -> Value {
    let help = format!(
        "{} `validate-message explain {code}` explains it and shows a corrected example.",
        code.sentence()
    );
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.sentence() },
        "help": { "text": help },
    })
}

/// Returns a file's results; `name` is the file as given on the command line.
pub(crate) fn one(verdict: &Verdict, name: &str) -> String {
    let result = |violation: &Violation| indented(&result(violation, verdict, name), 8);
    verdict
        .violations()
        .iter()
        .map(result)
        .collect::<Vec<String>>()
        .join(",")
}

fn result(violation: &Violation, verdict: &Verdict, name: &str) -> Value {
    let fix = violation
        .fix
        .as_ref()
        .map(|fix| format!("\nFix: {fix}"))
        .unwrap_or_default();
    let mut physical =
        json!({ "artifactLocation": { "uri": uri(&verdict.opened(&violation.file, name)) } });
    if let Some(place) = violation.place {
        physical["region"] = json!({ "startLine": place.line, "startColumn": place.column });
    }
    let mut result = json!({
        "ruleId": violation.code.as_str(),
        "level": level(violation.level),
        "message": { "text": plain(&format!("{}{fix}", violation.message)) },
        "locations": [{ "physicalLocation": physical }],
    });
    if let Some(index) = codes().position(|code| code == violation.code) {
        result["ruleIndex"] = json!(index);
    }
    result
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

/// Returns the document's end, after the last result.
pub(crate) fn tail(notes: &[Note]) -> String {
    let is_lost = notes
        .iter()
        .any(|note| matches!(note, Note::Unreadable(..)));
    let notification = |note: &Note| {
        let (level, text) = match note {
            Note::Unreadable(file, why) => ("error", format!("{file}: cannot be read: {why}")),
            Note::Cut(file) => (
                "note",
                format!("{file}: there are more violations than this output shows"),
            ),
        };
        json!({ "level": level, "message": { "text": plain(&text) } })
    };
    let invocation = json!({
        "executionSuccessful": !is_lost,
        "toolExecutionNotifications": notes.iter().map(notification).collect::<Vec<Value>>(),
    });
    format!(
        "\n      ],\n      \"invocations\": [{}\n      ]\n    }}\n  ]\n}}\n",
        indented(&invocation, 8)
    )
}

/// Returns a text in which nothing is a link: `[words](address)` would be one.
fn plain(text: &str) -> String {
    if text.contains("](") {
        text.replace('\\', "\\\\")
            .replace('[', "\\[")
            .replace(']', "\\]")
    } else {
        text.to_owned()
    }
}

/// Returns a path as a URI: relative if the path is, with every reserved character percent-encoded.
fn uri(path: &str) -> String {
    let path = if std::path::MAIN_SEPARATOR == '\\' {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    };
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~+@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
